"""Cooperative OEF: the largest total throughput among allocations that nobody envies."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.models.shares import shares_of
from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.program import Formulation, Program

#: The optimum is unique; a trade that gains without hurting anybody is left out because somebody would envy it.
NOT_PARETO_EFFICIENT = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
#: At the optimum user 1 holds all of the first type and half of the third, and nothing of the second.
NOT_ADJACENT = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class CooperativeOEF(Formulated):
    """Maximise total throughput subject to envy-freeness, by weight, between all pairs of users.

    As printed, Eq. (10c) compares a user with itself; it is read as in the proof of Theorem 5.1, with the other user's
    shares on the right. Throughputs of different users are added up: give speedups in common units
    (`Market.normalised`). With demands, (10c) counts all GPUs of the other, also those that the user cannot use: that
    is stricter than envy-freeness, and GPUs may stay idle.

    Source: OEF Eq. (10); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.
    """

    name = "oef-cooperative"
    source = "OEF, Middleware 2024, Eq. (10)"
    rebuilt = True
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (
        Claim("envy_freeness", "OEF Theorem 5.1"),
        Claim("sharing_incentive", "OEF Theorem 5.1", assumes="no demands"),
        Claim("pareto_efficiency", "OEF Theorem 5.3", refuted_by=NOT_PARETO_EFFICIENT),
        Claim("adjacent_types", "OEF Theorem 5.2", refuted_by=NOT_ADJACENT),
    )
    examples = (
        Example(
            "OEF Eq. (2)",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, 0], [0, "1/2"], [0, "1/2"]],
            utilities=[1, "3/2", 2],
        ),
        Example(
            "OEF Eq. (6), total 5.25",
            Market.of([[1, 2], [1, 5]], capacity=[1, 1]),
            shares=[[1, "1/4"], [0, "3/4"]],
            utilities=["3/2", "15/4"],
        ),
        Example(
            "OEF Sec. 3.1, user 1 reports 4",
            Market.of([[1, 4], [1, 5]], capacity=[1, 1]),
            shares=[[1, "3/8"], [0, "5/8"]],
        ),
        Example(
            "OEF Fig. 2",
            Market.of([[1, 2], [1, 4]], capacity=[1, 1]),
            shares=[[1, "1/4"], [0, "3/4"]],
        ),
        Example(
            "OEF Fig. 2, user 1 reports 3",
            Market.of([[1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, "1/3"], [0, "2/3"]],
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (10)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        own = (problem.speedup * share).sum(axis=1)
        of_others = problem.speedup @ share.T  # entry (l, i): what l would get out of i's shares
        p.maximize(own.sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (10a)")
        p.constrain(
            "envy_free",
            (own[:, None] >= of_others * by_weight(problem)).where(~np.eye(len(problem.users), dtype=bool)),
            equation="sum_j w_lj x_lj >= pi_l/pi_i sum_j w_lj x_ij",
            source="OEF Eq. (10c), Sec. 4.2.3",
            labels=(problem.users, problem.users),
        )
        return p.program()


def by_weight(problem: Market) -> Any:
    """Return (n, n): how large user l's claim is against user i's, pi_l / pi_i."""
    return problem.weight[:, None] / problem.weight[None, :]

"""Non-cooperative OEF: the largest total throughput among allocations that give all users the same."""

from __future__ import annotations

from typing import Any

from fairopt.models.shares import shares_of
from fairopt.policy import Claim, Formulated
from fairopt.problem import Market
from fairopt.program import Formulation, Program


class NonCooperativeOEF(Formulated):
    """Maximise total throughput subject to equal throughput, by weight, for all users.

    The common throughput per unit of weight is a variable, so that there are n equations instead of the n^2 printed.
    Throughputs of different users are compared: give speedups in common units (`Market.normalised`).

    Source: OEF Eq. (9); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.
    """

    name = "oef-noncooperative"
    source = "OEF, Middleware 2024, Eq. (9)"
    claims = (
        Claim("strategy_proofness", "OEF Theorem 5.4"),
        Claim("pareto_efficiency", "OEF Theorem 5.3"),
        Claim("adjacent_types", "OEF Theorem 5.2"),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (9)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        level = p.variable("level")
        own = (problem.speedup * share).sum(axis=1)
        p.maximize(own.sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (9a)")
        p.constrain(
            "equal_efficiency",
            own == problem.weight * level,
            equation="sum_j w_lj x_lj = pi_l E",
            source="OEF Eq. (9c), Sec. 4.2.3",
            labels=(problem.users,),
        )
        return p.program()

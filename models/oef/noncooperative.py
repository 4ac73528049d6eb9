"""Non-cooperative OEF: the largest total throughput among allocations with equal throughputs."""

from __future__ import annotations

from typing import Any

from fairopt.models.common.levels import PriceMethod
from fairopt.models.oef.above_guarantees import AboveGuarantees
from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program

OEF_EQUATION_6 = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
#: User 2 gains nothing from the second type, so that equality limits both users to the first type's one GPU.
ONE_CANNOT_RUN = Market.of([[1, 1], [1, 0]], capacity=[1, 2])
#: At the optimum user 1 holds all of the first type and 4/5 of the third, and nothing of the second.
NOT_ADJACENT = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class NonCooperativeOEF(Formulated):
    """Maximise total throughput subject to equal throughput, by weight, for all users.

    The common throughput per unit of weight is a variable, so that there are n equations instead of the n^2 printed.
    Throughputs of different users are compared: give speedups in common units (`Market.normalised`).

    Users and groups get at least their floors and at most their caps (`fairopt.problem.floors`). What users hold beyond
    their guarantees is then of equal throughput; who can hold nothing beyond is left out. As a demand does, a cap of
    one user or group holds down all. The members of a group that is guaranteed more than they are have a level of their
    own (`AboveGuarantees`). There may still be no allocation: `NotSolved` then names the rows that contradict each
    other.

    Source: OEF Eq. (9); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.

    >>> from fairopt import allocate
    >>> print(*allocate(NonCooperativeOEF(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    15/7 15/7
    """

    name = "oef-noncooperative"
    source = "OEF, Middleware 2024, Eq. (9)"
    verifier_knows_program = True
    methods = (PriceMethod(),)
    level_variable = "level"
    equal = True
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("strategy_proofness", "OEF Theorem 5.4 with the definition of Sec. 2.3.1 (1)", misreport="larger"),
        Claim("strategy_proofness", "OEF Theorem 5.4 for any report", refuted_by=OEF_EQUATION_6),
        Claim("pareto_efficiency", "OEF Theorem 5.3", assumes="every user runs on every type, and no demands"),
        Claim("pareto_efficiency", "OEF Theorem 5.3, where a user cannot run everywhere", refuted_by=ONE_CANNOT_RUN),
        Claim("adjacent_types", "OEF Theorem 5.2", refuted_by=NOT_ADJACENT),
    )
    examples = (
        Example(
            "OEF Sec. 4.2.3: user 2 has weight 2",
            Market.of([[1, 2], [1, 5]], capacity=[1, 1], weight=[1, 2]),
            shares=[[1, "1/3"], [0, "2/3"]],
        ),
        Example(
            "OEF Sec. 4.2.3 by replication",
            Market.of([[1, 2], [1, 5], [1, 5]], capacity=[1, 1]),
            shares=[[1, "1/3"], [0, "1/3"], [0, "1/3"]],
        ),
        Example(
            "OEF Sec. 4.2.4: user 1 has a second job type (1, 3); weights are halves, so user 2 stands once",
            Market.of(
                [[1, 2], [1, 3], [1, 5]],
                capacity=[1, 1],
                weight=["1/2", "1/2", 1],
                users=["u1/a", "u1/b", "u2"],
                owner=["u1", "u1", "u2"],
            ),
            shares=[[1, "4/37"], [0, "15/37"], [0, "18/37"]],
            printed="0.11, 0.41 and twice 0.24: the two copies of user 2 have 9/37 each",
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (9)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        p.maximize((problem.speedup * share).sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (9a)")
        compared = AboveGuarantees.of(problem)
        own = (problem.speedup * (share - compared.floor)).sum(axis=1)
        levels = int(compared.level.max()) + 1
        level = p.variable("level", (levels,))[compared.level] if levels > 1 else p.variable("level")
        p.constrain(
            "equal_efficiency",
            (own == problem.weight * level).where(compared.rises),
            equation="sum_j w_lj x_lj = pi_l E",
            source="OEF Eq. (9c), Sec. 4.2.3",
            labels=(problem.users,),
        )
        return p.program()

    def rate(self, market: Market) -> Array:
        """Return the weights (n,): a user's throughput at E = 1."""
        return market.weight

    def worth(self, market: Market) -> Number:
        """Return the total throughput at E = 1."""
        total: Number = market.weight.sum()
        return total

    def user_duals(self, values: Array, rate: Array) -> tuple[str, Array]:
        """Return the duals of the equations: a unit more for a user is worth 1, minus the others' loss."""
        return "equal_efficiency", 1 - values

    def weight_ratio(self, part: Number, times: Number) -> Number:
        """Return the claim: Coq's `noncooperative_oef_weight_claim`."""
        return times

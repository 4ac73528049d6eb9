"""Maximum efficiency: the largest total throughput."""

from __future__ import annotations

from typing import Any

from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS
from fairopt.problem.share_variables import shares_of
from fairopt.program import Formulation, Program


class MaxEfficiency(Formulated):
    """Maximise the users' total throughput and nothing else.

    Throughputs of different users are added up: give speedups in common units (`Market.normalised`). Users and groups
    get at least their floors and at most their caps (`fairopt.problem.floors`).

    Source: OEF Eq. (4).

    >>> from fairopt import allocate
    >>> print(*allocate(MaxEfficiency(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    1 5
    """

    name = "max-efficiency"
    source = "OEF, Middleware 2024, Eq. (4)"
    verifier_knows_program = True
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (Claim("pareto_efficiency", "OEF Sec. 2.3.2: a dominating allocation would have a larger total"),)
    examples = (
        Example(
            "OEF Eq. (5)",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1]),
            total=5,
            printed="X = (1,0; 0,0; 0,1); the slow GPU is worth the same to all three, so that X is one of many optima",
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (4)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        p.maximize((problem.speedup * share).sum(), equation="sum_jl w_lj x_lj", source="OEF Eq. (4)")
        return p.program()

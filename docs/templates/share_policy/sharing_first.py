"""A share policy that is a program: `formulate` writes it down, and any backend can solve it."""

from __future__ import annotations

from typing import Any

from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Formulation, Program


class SharingFirst(Formulated):
    """The largest total throughput that leaves nobody below its own partition of the cluster.

    Source: the paper, venue, year, its equation.
    """

    name = "sharing-first"
    source = "Example of a share policy"
    traits = frozenset({Trait.PROGRAM, Trait.EXACT, Trait.COPIES})
    claims = (
        Claim("sharing_incentive", "Eq. (1b)"),
        Claim("pareto_efficiency", "a dominating allocation would have a larger total"),
    )
    examples = (Example("worked out by hand", Market.of([[1, 2], [1, 5]], capacity=[1, 1]), total="21/4"),)

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (1)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)  # (n, k), within capacities and demands
        own = (problem.speedup * share).sum(axis=1)
        p.maximize(own.sum(), equation="sum_lj w_lj x_lj", source="Eq. (1a)")
        p.constrain(
            "sharing",
            own >= problem.fair_utility(),
            equation="E_l >= E_l(equal)",
            source="Eq. (1b)",
            labels=(problem.users,),  # a message about a row then says whose it is
        )
        return p.program()

"""Max-min: raise the user that gains least over its own partition of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fairopt.backends.solution import Solution
from fairopt.certificates import Certificate
from fairopt.methods.level.solve import Raised
from fairopt.models.common.levels import by_prices, exact_bound, following, solution_of
from fairopt.models.common.shares import shares_of
from fairopt.policy import Claim, Decision, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.program import Array, Formulation, Program


class MaxMin(Formulated):
    """Maximise the least ratio of a user's throughput to what its own partition of the cluster would give.

    Gavel bounds the sum of a job's time fractions by one; with GPUs instead of fractions that is the user's
    ``demand``, and a market without demands has no such bound.

    Source: Gavel, OSDI 2020, Sec. 4.1; OEF Sec. 2.4.
    """

    name = "max-min"
    source = "Gavel, OSDI 2020, Sec. 4.1"
    rebuilt = True
    specialised = True
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (Claim("sharing_incentive", "OEF Table 1; the equal split has ratio 1"),)
    examples = (
        Example(
            "OEF Eq. (3): each user's shares sum to at most one, as Gavel's time fractions do",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1], demand=[1, 1, 1]),
            shares=[["10/11", "1/11"], ["1/11", "5/11"], [0, "5/11"]],
            utilities=["12/11", "16/11", "20/11"],
            printed="efficiencies 1.09, 1.44, 1.8: products of the rounded shares; right are 1.09, 1.45, 1.82",
        ),
        Example(
            "OEF Eq. (3) without that bound",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, "5/98"], [0, "24/49"], [0, "45/98"]],
            utilities=["54/49", "72/49", "90/49"],
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the max-min program."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        least = p.variable("least_ratio")
        ratio = (problem.speedup * share).sum(axis=1) / problem.fair_utility()
        p.maximize(least, equation="min_l E_l / E_l(equal)", source="Gavel Sec. 4.1")
        p.constrain(
            "least_ratio",
            ratio >= least,
            equation="sum_j w_lj x_lj / E_l(equal) >= t",
            source="Gavel Sec. 4.1",
            labels=(problem.users,),
        )
        return p.program()

    def specialise(self, problem: Market, state: Any) -> Decision:
        """Raise the least ratio by the prices of the types, which are its dual; the evidence is `Proven`.

        The bounds are those of the program whose own partitions are rounded to floats, as its coefficients are.
        """
        return self._from(problem, None)[0]

    def follow(self) -> Callable[[Market], Decision]:
        """Return a function that decides market after market, each from the prices of the last."""
        return following(self._from)

    def _from(self, problem: Market, start: Raised | None) -> tuple[Decision, Raised]:
        fair = problem.as_(float).fair_utility()
        return by_prices(self.name, problem, fair, 1.0, lambda values: _duals(values, fair), start)

    def solved(self, decision: Decision) -> tuple[Program, Solution] | None:
        """Return the program and its solution; of a decision by prices, with the prices as duals."""
        if decision.program is not None:
            return super().solved(decision)
        program = self.formulate(decision.market.as_(float), None)
        return program, solution_of(program, decision, float(decision.objective))

    def certify(self, decision: Decision) -> Certificate:
        """Return the proof that the decision is optimal; of one by prices, an exact allocation, a bound and the gap."""
        if decision.program is not None:
            return super().certify(decision)
        fair = decision.market.as_(Fraction).fair_utility()
        return exact_bound(decision, fair, Fraction(1), lambda values: _duals(values, fair), "least_ratio", equal=False)


def _duals(values: Array, fair: Array) -> tuple[str, Array]:
    # a row asks for a ratio, and whoever needs more of it leaves less to the others
    return "least_ratio", -values * fair

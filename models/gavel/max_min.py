"""Max-min: maximise the least ratio of a user's throughput to that of its equal share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairopt.backends.exact import Exact
from fairopt.models.common.levels import PriceMethod
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program


@dataclass(frozen=True)
class MaxMin(Formulated):
    """Maximise the least ratio of a user's throughput to that of its equal share of the cluster.

    Gavel bounds the sum of a job's time fractions by one; with GPUs instead of fractions that is the user's
    ``demand``, and a market without demands has no such bound. Users and groups get at least their floors and at most
    their caps (`fairopt.problem.floors`). Ratios are then those to the equal share all the same; a group is bounded as
    a whole, and its members are not compared with each other first.

    ``normaliser``: what throughputs are compared with, "own-partition", "equal-time" or "isolated" (`Normaliser`).

    Source: Gavel, OSDI 2020, Sec. 4.1; OEF Sec. 2.4.

    >>> from fairopt import allocate
    >>> print(*allocate(MaxMin(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    5/3 10/3
    """

    normaliser: Normaliser = Normaliser.OWN_PARTITION

    name = "max-min"
    source = "Gavel, OSDI 2020, Sec. 4.1"
    verifier_knows_program = True
    methods = (PriceMethod(),)
    level_variable = "least_ratio"
    equal = False
    supports = FLOORS_AND_CAPS
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
        ratio = (problem.speedup * share).sum(axis=1) / self.rate(problem)
        p.maximize(least, equation="min_l E_l / E_l(equal)", source="Gavel Sec. 4.1")
        p.constrain(
            "least_ratio",
            ratio >= least,
            equation="sum_j w_lj x_lj / E_l(equal) >= t",
            source="Gavel Sec. 4.1",
            labels=(problem.users,),
        )
        return p.program()

    def rate(self, market: Market) -> Array:
        """Return the throughput (n,) that each user's is compared with."""
        return self.normaliser.of(market)

    def worth(self, market: Market) -> Number:
        """Return the least ratio at t = 1."""
        return 1

    def user_duals(self, values: Array, rate: Array) -> tuple[str, Array]:
        """Return the duals of the ratios' rows: minus each user's worth, since a need lowers the optimum."""
        return "least_ratio", -values * rate

    def least_in_range(self, problem: Market, user: int, truth: Array) -> Number:
        """Return it by the least ratio that is reached at all reports, t: the user has t times its equal share by all.

        For any reports in the range the robust allocation has at least that ratio, and so has the optimum.
        """
        from fairopt.models.robust.robust import RobustMaxMin  # here, since few ask for it
        from fairopt.properties.worst_reports import by_fair_share

        ratio = Exact().solve(RobustMaxMin().formulate(problem, None)).require_optimal().objective
        least, most = (each[user] for each in problem.ends)
        return by_fair_share(truth, least, most, problem.equal_split()[user] * ratio, problem.capacity)

    def incentive_ratio(self, part: Number) -> Number:
        """Return (1 - p) / p + p for the part p: `fairopt.proofs.findings.liars.bounds`, max_min."""
        return (1 - part) / part + part

    def weight_ratio(self, part: Number, times: Number) -> Number:
        """Return the lesser of the claim and 1 / p: Coq's `gavel_weight_claim`."""
        return min(times, 1 / part)

    def verifier_knows(self, market: Market) -> bool:
        """Whether ``proofs/verify.py`` builds the program: only with its own normaliser."""
        return super().verifier_knows(market) and self.normaliser is Normaliser.OWN_PARTITION

    def told(self, market: Market) -> str:
        """Return the name for certificates, with the normaliser where it is not the verifier's."""
        other = "" if self.normaliser is Normaliser.OWN_PARTITION else f", {self.normaliser.value}"
        return super().told(market) + other

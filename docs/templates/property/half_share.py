"""A property of allocations: anybody's, however they came about."""

from __future__ import annotations

import numpy as np

from fairopt.problem import Market, worth
from fairopt.program import Array, Number, number_text
from fairopt.properties import AllocationProperty, Answer, Verdict
from fairopt.properties.property import CitedInstance, SlackCase

TWO_USERS = Market.of([[1, 2], [1, 5]], capacity=[1, 1])


class HalfShare(AllocationProperty):
    """Each user gets at least half the throughput of its weight's part of every type.

    Source: the paper, venue, year, its section.
    """

    name = "half_share"
    head = "at least half a share"  # the head of its column
    broken = "{who} gets less than half a share"  # what is so where it fails
    source = "Example of a property"
    definition = "2 E_l(x_l) >= E_l(pi_l / sum(pi) * m) for every user l"
    instances = (
        CitedInstance("half of the equal split", TWO_USERS, [["1/4", "1/4"], ["1/4", "1/4"]], Answer.HOLDS),
        CitedInstance("u1 has nothing", TWO_USERS, [[0, 0], [1, 1]], Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        own, half = market.utility(shares), market.fair_utility() / 2
        worst = int(np.argmin((own - half) / half))
        case = self.case(
            own[worst] - half[worst],  # the margin: negative where the property fails
            half[worst],  # what a tolerance is relative to
            user=market.users[worst],  # from here on what the case shows
            throughput=own[worst],
            half=half[worst],
        )
        unit, effort = f"throughput of {case.user}", f"{len(own)} users"
        return self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return a case in a sentence."""
        return f"{case.user} gets {number_text(case.throughput)}; half of its own partition is {number_text(case.half)}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user gets less, by the bare definition."""
        i = market.users.index(case.user)
        part = market.weight[i] / sum(market.weight.tolist())
        return 2 * worth(market, i, shares[i]) < worth(market, i, market.capacity * part)

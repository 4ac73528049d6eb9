"""A property of allocations: anybody's, however they came about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem import Market, worth
from fairopt.program import Array, Number, number_text
from fairopt.properties import AllocationProperty, Answer, Verdict
from fairopt.properties.property import CitedInstance

TWO_USERS = Market.of([[1, 2], [1, 5]], capacity=[1, 1])


@dataclass(frozen=True)
class BelowHalf:
    """A witness: a user, its throughput, and half of what its own partition would give it."""

    user: str
    throughput: Number
    half: Number

    def refutes(self, market: Market, shares: Array) -> bool:
        """Whether the user gets less, by the bare definition."""
        i = market.users.index(self.user)
        part = market.weight[i] / sum(market.weight.tolist())
        return 2 * worth(market, i, shares[i]) < worth(market, i, market.capacity * part)

    def __str__(self) -> str:
        return f"{self.user} gets {number_text(self.throughput)}; half of its own partition is {number_text(self.half)}"


class HalfShare(AllocationProperty):
    """Each user gets at least half the throughput of its weight's part of every type.

    Source: the paper, venue, year, its section.
    """

    name = "half_share"
    source = "Example of a property"
    definition = "2 E_l(x_l) >= E_l(pi_l / sum(pi) * m) for every user l"
    instances = (
        CitedInstance("half of the equal split", TWO_USERS, [["1/4", "1/4"], ["1/4", "1/4"]], Answer.HOLDS),
        CitedInstance("u1 has nothing", TWO_USERS, [[0, 0], [1, 1]], Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        own, half = market.utility(shares), market.fair_utility() / 2
        worst = int(np.argmin((own - half) / half))
        return self._by_slack(
            market,
            own[worst] - half[worst],  # the margin: negative where the property fails
            half[worst],  # what a tolerance is relative to
            tolerance,
            unit=f"throughput of {market.users[worst]}",
            effort=f"{len(own)} users",
            witness=BelowHalf(market.users[worst], own[worst], half[worst]),
        )

"""Nash welfare and partial allocation under many misreports at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.methods.eisenberg_gale.solve import many_maximal_nash_welfare
from fairopt.policy import Allocation
from fairopt.policy.many import ManyBundles, reported
from fairopt.problem import Market
from fairopt.problem.throughput import capped_value
from fairopt.program import Array

#: The error at which an equilibrium is taken, as a part of all money.
TARGET = 1e-13


class ManyEquilibria(ManyBundles):
    """Bundles of maximal Nash welfare, by interior points."""

    def __init__(self, market: Market) -> None:
        self._market = market

    def __call__(self, users: Array, reports: Array) -> Array:
        """Return the bundles (cases, k)."""
        shares = many_maximal_nash_welfare(self._market, reported(self._market, users, reports), TARGET)
        bundles: Array = shares[np.arange(len(users)), users]
        return bundles


class ManyParts(ManyBundles):
    """Bundles of partial allocation: ``apart`` are the decisions without each user, which its misreports leave alone."""

    def __init__(self, market: Market, apart: Sequence[Allocation]) -> None:
        n = len(market.users)
        self._market, self._utility = market, np.ones((n, n))
        for user, decision in enumerate(apart):
            self._utility[user, np.arange(n) != user] = decision.utilities.astype(float)

    def __call__(self, users: Array, reports: Array) -> Array:
        """Return the bundles (cases, k)."""
        market, case = self._market, np.arange(len(users))
        shares = many_maximal_nash_welfare(market, reported(market, users, reports), TARGET)
        ratio = capped_value(market.speedup, shares, market.demand) / self._utility[users]
        ratio[case, users] = 1.0
        kept = np.exp(np.log(ratio) @ market.weight / market.weight[users])
        bundles: Array = np.minimum(kept, 1.0)[:, None] * shares[case, users]
        return bundles

"""The task of cooperative OEF: the largest total throughput that nobody envies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.benchmarks.tasks.shares import BLOCK_CELLS, ROUNDED, Duals, Floats, ShareTask, limits
from fairopt.problem import Market
from fairopt.program import ROUNDING


class CooperativeOEF(ShareTask):
    """The largest total throughput without envy, OEF Eq. (10): s_l . x_l >= (w_l / w_i) s_l . x_i for all l and i.

    With multipliers y_li of these, q of the demands and prices p, the Lagrangian's part in x_lj is
    s_lj (1 + sum_i y_li) - sum_i y_il (w_i / w_l) s_ij - p_j - q_l. Prices at which none of these is positive (for
    users that can run there) prove that the optimum is at most p . m + q . d. So p follows from y and q.
    """

    name = "oef-cooperative"

    def objective(self, market: Market, shares: Floats) -> float:
        """Return the total throughput."""
        return float((market.speedup * shares).sum())

    def upper(self, market: Market, duals: Duals) -> float:
        """Return the bound of the envy multipliers and those of the demands; prices are computed from them."""
        (envious, envied), push = duals.envy
        n, k = market.shape
        own = market.speedup * (1.0 + np.bincount(envious, push, minlength=n))[:, None]
        # sum_i y_il (w_i / w_l) s_ij, one type at a time
        told = push * market.weight[envious] / market.weight[envied]
        envy = np.stack([np.bincount(envied, told * market.speedup[envious, j], minlength=n) for j in range(k)], axis=1)
        terms = np.bincount(envious, minlength=n) + np.bincount(envied, minlength=n) + 8
        rounding = ROUNDING * terms[:, None] * (own + envy)
        limit = limits(market)
        finite = np.isfinite(limit)
        demand = np.where(finite, duals.demand, 0.0)
        prices = np.where(market.speedup > 0, own - envy - demand[:, None] + rounding, 0.0).max(axis=0).clip(0.0)
        return float(prices @ market.capacity + demand[finite] @ limit[finite]) * (1 + ROUNDED)

    def others(self, market: Market, shares: Floats) -> Iterator[tuple[float, str]]:
        """Yield the worst envy, as a part of what is envied: in blocks of users, distinct bundles only.

        Divided by w_l: s_l . x_l / w_l against s_l . x_i / w_i.
        """
        own = (market.speedup * shares).sum(axis=1) / market.weight
        bundles = np.unique(shares / market.weight[:, None], axis=0)
        worst, who = 0.0, 0
        step = max(1, BLOCK_CELLS // len(bundles))
        for first in range(0, len(own), step):
            rows = slice(first, first + step)
            most = (market.speedup[rows] @ bundles.T).max(axis=1)
            mine = own[rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                envy = np.where(most > mine, 1 - mine / most, 0.0)
            if envy.max() > worst:
                worst, who = float(envy.max()), first + int(envy.argmax())
        yield worst, f"envy of {market.users[who]}"

    def rows(self, market: Market) -> int:
        """Return the number of pairs."""
        return len(market.weight) ** 2

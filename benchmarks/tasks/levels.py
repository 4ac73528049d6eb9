"""Tasks of one level for all: non-cooperative OEF, and max-min."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from fairopt.benchmarks.tasks.shares import ROUNDED, Duals, Floats, ShareTask, cheapest, fair, spent
from fairopt.problem import Market


class LevelTask(ShareTask):
    """Each user l gets at least r_l times a level, which is maximised.

    For any prices p of GPUs and q of the right to use one, all throughput r_l t together costs at least
    t sum_l r_l min_j (p_j + q_l) / s_lj, and what there is costs p . m + q . d; so t is at most their ratio.
    """

    @abstractmethod
    def share_of_level(self, market: Market) -> Floats:
        """Return r (n,)."""

    def level_bound(self, market: Market, duals: Duals) -> float:
        """Return what prices prove of the level."""
        cost = float(self.share_of_level(market) @ cheapest(market, duals))
        return spent(market, duals) / cost * (1 + ROUNDED) if cost > 0 else np.inf


class NonCooperativeOEF(LevelTask):
    """The largest throughput, equal by weight for all; the objective is the total."""

    name = "oef-noncooperative"

    def share_of_level(self, market: Market) -> Floats:
        """Return the weights."""
        return np.asarray(market.weight)

    def objective(self, market: Market, shares: Floats) -> float:
        """Return the total throughput."""
        return float((market.speedup * shares).sum())

    def upper(self, market: Market, duals: Duals) -> float:
        """Return the bound on the level, for all users."""
        return self.level_bound(market, duals) * float(market.weight.sum())

    def others(self, market: Market, shares: Floats) -> Iterator[tuple[float, str]]:
        """Yield how far throughputs by weight are apart."""
        level = (market.speedup * shares).sum(axis=1) / market.weight
        top = float(level.max())
        yield (1 - float(level.min()) / top if top > 0 else 1.0), "equal throughput by weight"


class MaxMin(LevelTask):
    """The least ratio of throughput to that of the user's own partition of the cluster."""

    name = "max-min"

    def share_of_level(self, market: Market) -> Floats:
        """Return the throughputs on the own partitions."""
        return fair(market)

    def objective(self, market: Market, shares: Floats) -> float:
        """Return the least ratio."""
        return float(((market.speedup * shares).sum(axis=1) / fair(market)).min())

    def upper(self, market: Market, duals: Duals) -> float:
        """Return the bound on the least ratio."""
        return self.level_bound(market, duals)

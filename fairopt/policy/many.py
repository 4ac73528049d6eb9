"""What decides on thousands of misreports at once: see `Policy.many_bundles`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array


class ManyBundles:
    """Decides on many misreports on one market at once: see `Policy.many_bundles`.

    ``decide(users, reports)``: the same as calling it. A class of policies may override `__call__` instead.
    """

    def __init__(self, decide: Callable[[Array, Array], Array]) -> None:
        self._decide = decide

    @property
    def chunk(self) -> int:
        """How many are best decided at once."""
        return 1024

    def __call__(self, users: Array, reports: Array) -> Array:
        """Return what users get (cases, k) where each of ``users`` (cases,) alone reports ``reports`` (cases, k).

        NaN where a case must be decided alone.
        """
        return self._decide(users, reports)


def reported(market: Market, users: Array, reports: Array) -> Array:
    """Return the speedups (cases, n, k) of a market in floats where each user in turn reports otherwise."""
    speedups = np.repeat(market.speedup[None], len(users), axis=0)
    speedups[np.arange(len(users)), users] = reports
    return speedups

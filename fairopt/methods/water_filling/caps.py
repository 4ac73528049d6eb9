"""Caps: the ratios that users have when they spend all of their demand on the fastest type that they may use."""

from __future__ import annotations

import numpy as np

from fairopt.methods.level.solve import bound_level
from fairopt.program import INFINITY, Array

#: Newton's method ends where a step lowers the level by less than this part, or after so many steps.
COARSE, MOST_STEPS = 1e-3, 60


def ceiling(
    speedup: Array, capacity: Array, demand: Array, rate: Array, floor: Array | None, cap: Array, open_: Array
) -> float:
    """Return a level that the ``open_`` users, each up to its ``cap``, cannot all be above; at most a little too high.

    Prices that prove targets too high tell the next level: the one whose targets cost as much as all GPUs do. That is
    still not too low. Shapes: ``speedup`` (n, k), ``capacity`` (k,); ``rate``, ``floor``, ``cap``, ``open_`` (n,).
    """
    upper, values = bound_level(speedup, capacity, rate, floor=floor, tolerance=COARSE)
    level = affordable(values * rate, upper, cap, open_)
    for _ in range(MOST_STEPS):
        target = rate * np.where(open_, np.minimum(cap, level), 0.0)
        upper, values = bound_level(speedup, capacity, target, floor=floor, demand=demand, tolerance=COARSE)
        following = affordable(values * rate, upper, cap, open_)
        if not following < level * (1 - COARSE):
            return min(following, level)
        level = following
    return level


def affordable(price: Array, spent: float, cap: Array, open_: Array) -> float:
    """Return the level at which ``open_`` users, up to their caps, pay ``spent``, at a ``price`` (n,) by ratio."""
    price, caps = price[open_], cap[open_]
    order = np.argsort(caps, kind="stable")
    price, caps = price[order], caps[order]
    # at level t users below their cap pay price * t, and those at it price * cap
    at_caps = np.concatenate([[0.0], np.cumsum(price * np.where(np.isfinite(caps), caps, 0.0))])
    rising = price.sum() - np.concatenate([[0.0], np.cumsum(price)])
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(rising > 0, (spent - at_caps) / rising, INFINITY)[:-1]
    at = np.flatnonzero(levels <= caps)
    return float(levels[at[0]]) if len(at) else float(caps[-1])

"""What shares and prices prove of the largest common level, all rounding counted.

Every elementary operation is off by at most `ROUNDING` of its result; long sums are `math.fsum`'s, which are rounded
once. What could be off is then moved to the safe side by a few roundings more than the operations can make.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.level.problem import BLOCK
from fairopt.methods.proven import ROUNDING
from fairopt.program import Array

#: No price is less than this: dividing by a speed of 0 then gives infinity, never a number.
LEAST = 1e-250


def upper_bound(
    speedup: Array, capacity: Array, rate: Array, floor: Array | None, demand: Array | None, prices: Array, rents: Array
) -> tuple[float, Array, Array, Array]:
    """Return what any ``prices`` (k,) and ``rents`` (n,) prove that no level is above, and normalised duals.

    The value y of a user's throughput is the least of ``(price_j + rent) / speedup_j``; then by weak duality no level
    is above ``(prices @ capacity + rents @ demand - floor @ y) / (rate @ y)``. Returns the bound, prices, rents and
    values such that ``rate @ values`` is 1. A type without GPUs has the price at which nobody would want it.
    """
    n = len(speedup)
    there = capacity > 0
    price = np.where(there, np.maximum(prices, LEAST), np.inf)
    rent = np.maximum(rents, 0.0)
    limits = None
    if demand is not None and rent.any():
        limits = np.isfinite(demand)
        rent = np.where(limits, rent, 0.0)
    value = np.empty(n)
    with np.errstate(divide="ignore"):
        for first in range(0, n, BLOCK):
            part = slice(first, first + BLOCK)
            cost = price if limits is None else price + rent[part, None]
            value[part] = (cost / speedup[part]).min(axis=1)
    needs = rate > 0 if floor is None else (rate > 0) | (floor > 0)
    value = np.where(needs | np.isfinite(value), value, 0.0) * (1 - 4 * ROUNDING)
    gain = fsum((rate * value).tolist()) * (1 - 4 * ROUNDING)
    if not gain > 0:
        raise NotSolved("the prices found bound no level")
    paid = (price[there] * capacity[there]).tolist()
    if limits is not None and demand is not None:
        paid += (rent[limits] * demand[limits]).tolist()
    most = fsum(paid) * (1 + 4 * ROUNDING)
    if floor is not None:
        most -= fsum((floor * value).tolist()) * (1 - 4 * ROUNDING)
        most += abs(most) * 2 * ROUNDING
    if not there.all():
        price[~there] = (speedup[:, ~there] * value[:, None]).max(axis=0, initial=0.0) * (1 + 4 * ROUNDING)
    bound = most / gain
    return bound + abs(bound) * 4 * ROUNDING, price / gain, rent / gain, value / gain


def lower_bound(
    shares: Array, speedup: Array, capacity: Array, rate: Array, floor: Array | None, demand: Array | None
) -> float:
    """Scale each user's row of ``shares`` (n, k), in place, to one level that all can have; return that level.

    Rows in these proportions that keep capacities and demands exactly, and reach exactly the level returned, are
    within rounding of what is left in ``shares``. A user that is not to be raised is left at its floor.
    Errors: `NotSolved` where a user has nothing.
    """
    n, k = shares.shape
    reached = np.empty(n)
    for first in range(0, n, BLOCK):
        part = slice(first, first + BLOCK)
        np.einsum("ij,ij->i", shares[part], speedup[part], out=reached[part])
    rising = rate > 0
    least = rising if floor is None else rising | (floor > 0)
    if not (reached[least] > 0).all():
        raise NotSolved("a user has been given nothing")
    safe = (k + 12) * ROUNDING
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(least, rate / reached, 0.0)
        start = None if floor is None else np.where(least, floor / reached, 0.0)
    level = float("inf")
    for j in range(k):
        column = shares[:, j]
        held = np.flatnonzero(column)
        if not len(held):
            continue
        column = column[held]
        room = float(capacity[j])
        if start is not None:
            room -= fsum((column * start[held]).tolist()) * (1 + safe)
            room -= abs(room) * 2 * ROUNDING
        each = fsum((column * slope[held]).tolist()) * (1 + safe)
        if each > 0:
            level = min(level, room / each)
    if demand is not None:
        limited = np.flatnonzero(np.isfinite(demand) & rising)
        total = shares[limited].sum(axis=1)
        most = demand[limited] * reached[limited] / np.where(total > 0, total, 1.0) * (1 - 2 * safe)
        if floor is not None:
            most -= floor[limited]
            most -= np.abs(most) * 2 * ROUNDING
        level = min(level, float((most / rate[limited]).min(initial=np.inf)))
    level -= abs(level) * 4 * ROUNDING
    factor = slope * level if start is None else slope * level + start
    for first in range(0, n, BLOCK):
        shares[first : first + BLOCK] *= factor[first : first + BLOCK, None]
    return level

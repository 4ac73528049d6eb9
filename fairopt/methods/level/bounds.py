"""What shares and prices prove of the largest common level, every step rounded to the safe side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.errors import NotSolved
from fairopt.methods.level.problem import BLOCK, AskedLevel
from fairopt.methods.result import StageClock, proven, rounded_down, rounded_up, summed
from fairopt.program import Array

#: Prices that all types together are worth less than this part of the level come of demands and say nothing of types.
WORTHLESS = 1e-4
#: No price is less than this: divided by a speed of 0 it gives infinity, where 0 would give NaN.
LEAST = 1e-250


def proved(
    asked: AskedLevel,
    shares: Array,
    prices: Array,
    demand_duals: Array,
    *,
    clock: StageClock,
    effort: Mapping[str, float] | None = None,
    ended: bool = True,
) -> Solution:
    """Return what ``shares`` (n, k), which are changed, ``prices`` (k,) and ``demand_duals`` (n,) prove.

    All users reach the level ``lower`` with the shares, and the largest level is at most ``upper``. The duals
    "capacity" (k,), "demand" (n,) and "target" (n,) are the level gained by one GPU more of a type, by one more of
    demand, and lost by one unit of throughput more that a user must have. A market of the same types can begin at the
    `Solution.warm_start`, prices and level. It takes the stage "certify" of the ``clock``.
    """
    upper, prices, demand_duals, targets = upper_bound(asked, prices, demand_duals)
    lower = lower_bound(asked, shares)
    clock.lap("certify")
    return proven(
        "prices",
        lower,
        upper,
        ended=ended,
        values={"share": shares},
        duals={"capacity": prices, "demand": demand_duals, "target": targets},
        warm_start=(prices, lower),
        **clock.told(effort or {}),
    )


def near_start(start: tuple[Array, float], asked: AskedLevel) -> tuple[Array, float] | None:
    """Return prices and level of a `proved` solution's warm start in the units of the problem; None for no use."""
    (known, level), problem = start, asked.problem
    if known.shape != asked.capacity.shape:
        return None
    prices, level = known[asked.types] * problem.unit, level * problem.unit
    return (prices, level) if prices @ problem.capacity > WORTHLESS * level else None


def upper_bound(asked: AskedLevel, prices: Array, demand_duals: Array) -> tuple[float, Array, Array, Array]:
    """Return what any ``prices`` (k,) and ``demand_duals`` (n,) prove that no level is above, and normalised duals.

    The value y of a user's throughput is the least of ``(price_j + demand_dual) / speedup_j``; then by weak duality no
    level is above ``(prices @ capacity + demand_duals @ demand - floor @ y) / (rate @ y)``. Returns the bound, prices,
    demand duals and values such that ``rate @ values`` is 1. A type without GPUs has the price at which nobody would
    want it.
    """
    speedup, capacity, rate, floor, demand = asked.speedup, asked.capacity, asked.rate, asked.floor, asked.demand
    n = len(speedup)
    there = capacity > 0
    price = np.where(there, np.maximum(prices, LEAST), np.inf)
    demand_dual = np.maximum(demand_duals, 0.0)
    limits = None
    if demand is not None and demand_dual.any():
        limits = np.isfinite(demand)
        demand_dual = np.where(limits, demand_dual, 0.0)
    value = np.empty(n)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is no number bounds no level
        for first in range(0, n, BLOCK):
            part = slice(first, first + BLOCK)
            cost = price if limits is None else price + demand_dual[part, None]
            np.ascontiguousarray((cost / speedup[part]).T).min(axis=0, out=value[part])  # along rows it takes longer
        value = rounded_down(np.where(asked.needy | np.isfinite(value), value, 0.0), 4)
        gain = rounded_down(*_sum(rate * value))
        if not 0 < gain < np.inf:
            raise NotSolved("the prices found bound no level")
        most = rounded_up(*_sum(price[there] * capacity[there]))
        if limits is not None and demand is not None:
            most = rounded_up(most + rounded_up(*_sum(demand_dual[limits] * demand[limits])), 2)
        if floor is not None:
            most = rounded_up(most - rounded_down(*_sum(floor * value)), 2)
    if not there.all():
        price[~there] = rounded_up((speedup[:, ~there] * value[:, None]).max(axis=0, initial=0.0), 4)
    return rounded_up(most / gain, 4), price / gain, demand_dual / gain, value / gain


def lower_bound(asked: AskedLevel, shares: Array) -> float:
    """Scale each user's row of ``shares`` (n, k), in place, to one level that all can have; return that level.

    There is an allocation that differs from the scaled shares by rounding only, keeps capacities and demands exactly,
    and reaches the level exactly. A user that is not to be raised is left at its floor.
    Errors: `NotSolved` where a user has nothing.
    """
    speedup, capacity, rate, floor, demand = asked.speedup, asked.capacity, asked.rate, asked.floor, asked.demand
    n, k = shares.shape
    reached = np.empty(n)
    for first in range(0, n, BLOCK):
        part = slice(first, first + BLOCK)
        np.einsum("ij,ij->i", shares[part], speedup[part], out=reached[part])
    rising, least = rate > 0, asked.needy
    if not (reached[least] > 0).all():
        raise NotSolved("a user has been given nothing")
    safe = k + 12
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is no number is refused
        slope = np.where(least, rate / reached, 0.0)
        start = None if floor is None else np.where(least, floor / reached, 0.0)
        room = capacity.astype(float)
        if start is not None:
            room = rounded_down(room - _held(shares, start, safe), 2)
        each = _held(shares, slope, safe)
    if not (each < np.inf).all():
        raise NotSolved("numerically out of range for floats: how little a user has been given")
    level = float((room[each > 0] / each[each > 0]).min(initial=np.inf))
    if demand is not None:
        limited = np.flatnonzero(np.isfinite(demand) & rising)
        total = shares[limited].sum(axis=1)
        most = demand[limited] * reached[limited] / np.where(total > 0, total, 1.0)
        most = rounded_down(most, 2 * safe)
        if floor is not None:
            most = rounded_down(most - floor[limited], 2)
        level = min(level, float((most / rate[limited]).min(initial=np.inf)))
    level = rounded_down(level, 4)
    factor = slope * level if start is None else slope * level + start
    for first in range(0, n, BLOCK):
        shares[first : first + BLOCK] *= factor[first : first + BLOCK, None]
    return level


def _sum(products: Array) -> tuple[float, int]:
    """Return the sum of (n,) positive ``products``, which are lost, and by how many roundings it is off at most."""
    total, roundings = summed(products)
    return float(total), roundings + 4


def _held(shares: Array, factor: Array, safe: int) -> Array:
    """Return at least what users hold of each type (k,) when each holds ``factor`` (n,) times its ``shares`` (n, k).

    A factor is off by ``safe`` roundings at most.
    """
    n, k = shares.shape
    sums = np.empty((-(-n // BLOCK), k))
    most = 0
    for place, first in enumerate(range(0, n, BLOCK)):
        part = slice(first, first + BLOCK)
        sums[place], roundings = summed(shares[part] * factor[part, None])
        most = max(most, roundings)
    total, roundings = summed(sums)
    return rounded_up(total, safe + most + roundings)

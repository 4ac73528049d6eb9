"""One round of water filling as a linear program of all users: slower than by prices, and surer where ties abound."""

from __future__ import annotations

import numpy as np

from fairopt.methods.incremental_lp import Blocks, IncrementalLP, places
from fairopt.methods.level.bounds import LevelResult
from fairopt.methods.level.problem import AskedLevel
from fairopt.program import INFINITY, Array


def raise_by_program(
    speedup: Array, capacity: Array, rate: Array, *, floor: Array | None = None, demand: Array | None = None
) -> LevelResult:
    """Return what `raise_level` does, by HiGHS on the whole program; the bounds are as rigorous.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,); ``rate``, ``floor``, ``demand`` (n,). Errors: `NotSolved`.
    """
    n, k = speedup.shape
    floors = np.zeros(n) if floor is None else floor
    needy = (rate > 0) | (floors > 0)
    user, type_ = np.nonzero((speedup > 0) & (capacity > 0) & needy[:, None])
    worth = speedup * capacity
    unit = np.where(needy, worth.max(axis=1), 1.0)
    rates = n * rate / unit
    scale = float(rates.sum()) / n
    limited = np.flatnonzero(needy & (floors >= 0) & np.isfinite(demand)) if demand is not None else np.arange(0)
    limits = np.ones(n) if demand is None else demand

    lp = Blocks()
    # shares are counted in n-th parts of a type, so that all numbers are about 1
    level, parts = lp.columns(np.ones(1)), lp.columns(np.zeros(len(user)))
    within_capacity = lp.rows(-INFINITY, float(n), k)
    reaches_target = lp.rows(n * floors / unit, INFINITY, n)
    within_demand = lp.rows(-INFINITY, 1.0, len(limited))
    lp.entries(within_capacity[type_], parts, np.ones(len(user)))
    lp.entries(reaches_target[user], parts, worth[user, type_] / unit[user])
    lp.entries(reaches_target, np.repeat(level, n), -rates / scale)
    row = places(n, limited)[user]
    some = row >= 0
    lp.entries(within_demand[row[some]], parts[some], (capacity[type_] / (n * limits[user]))[some])

    found = IncrementalLP(lp.program("a round of water filling"), presolve=True).solve()
    shares = np.zeros((n, k))
    shares[user, type_] = np.maximum(found.x[parts], 0.0) * capacity[type_] / n
    prices, demand_duals = np.zeros(k), np.zeros(n)
    there = capacity > 0
    # the bound holds for any prices, so that their common unit does not matter
    prices[there] = np.maximum(found.dual[within_capacity], 0.0)[there] / capacity[there]
    demand_duals[limited] = np.maximum(found.dual[within_demand], 0.0) / (n * limits[limited])
    return LevelResult.proved(AskedLevel(speedup, capacity, rate, floor, demand), shares, prices, demand_duals)

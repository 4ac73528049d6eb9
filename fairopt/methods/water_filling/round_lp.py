"""One round of water filling as a linear program of all users: slower than prices, and surer where ties abound."""

from __future__ import annotations

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.level.bounds import lower_bound, upper_bound
from fairopt.methods.level.solve import Raised
from fairopt.program import INFINITY, Array

#: How far a row or a reduced cost may be off, in units in which users have about 1.
TOLERANCE = 1e-10


def raise_plainly(
    speedup: Array, capacity: Array, rate: Array, *, floor: Array | None = None, demand: Array | None = None
) -> Raised:
    """Return what `level_prices.raise_level` does, by HiGHS on the whole program; the bounds are as rigorous.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,); ``rate``, ``floor``, ``demand`` (n,). Errors: `NotSolved`.
    """
    n, k = speedup.shape
    floors = np.zeros(n) if floor is None else floor
    needy = (rate > 0) | (floors > 0)
    user, type_ = np.nonzero((speedup > 0) & (capacity > 0) & needy[:, None])
    amount = speedup * capacity  # with y_ij n-th parts of a type all numbers are about 1
    unit = np.where(needy, amount.max(axis=1), 1.0)
    rates, least = n * rate / unit, n * floors / unit
    scale = float(rates.sum()) / n
    limited = np.flatnonzero(needy & (floors >= 0) & np.isfinite(demand)) if demand is not None else np.arange(0)
    limits = np.ones(n) if demand is None else demand
    place = np.full(n, -1)
    place[limited] = k + n + np.arange(len(limited))
    pairs = 1 + np.arange(len(user))
    of_limited = place[user] >= 0
    rows = [type_, k + user, place[user][of_limited], k + np.flatnonzero(rates)]
    columns = [pairs, pairs, pairs[of_limited], np.zeros(int((rates > 0).sum()), dtype=np.int64)]
    values = [
        np.ones(len(user)),
        amount[user, type_] / unit[user],
        (capacity[type_] / (n * limits[user]))[of_limited],
        -rates[rates > 0] / scale,
    ]
    lower = np.concatenate([np.full(k, -INFINITY), least, np.full(len(limited), -INFINITY)])
    upper = np.concatenate([np.full(k, float(n)), np.full(n, INFINITY), np.ones(len(limited))])
    entries = (np.concatenate(rows), np.concatenate(columns), np.concatenate(values))
    point, dual = _maximised(1 + len(user), lower, upper, entries)
    shares = np.zeros((n, k))
    shares[user, type_] = np.maximum(point[1:], 0.0) * capacity[type_] / n
    prices, rents = np.zeros(k), np.zeros(n)
    there = capacity > 0
    # a bound holds for any prices, so that their common unit is of no account
    prices[there] = np.maximum(dual[:k], 0.0)[there] / capacity[there]
    rents[limited] = np.maximum(dual[k + n :], 0.0) / (n * limits[limited])
    bound, prices, rents, worth = upper_bound(speedup, capacity, rate, floor, demand, prices, rents)
    level = lower_bound(shares, speedup, capacity, rate, floor, demand)
    return Raised(level, shares, prices, rents, worth, level, bound, {"boxes": 0.0})


def _maximised(count: int, lower: Array, upper: Array, entries: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Maximise the first of ``count`` variables, none negative, with HiGHS; return the point and the rows' duals."""
    import highspy

    row, column, value = entries
    order = np.argsort(column, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=count))[:-1]]).astype(np.int32)
    gain = np.zeros(count)
    gain[0] = 1.0
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    highs.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    highs.passModel(
        count, len(lower), len(value), 1, -1, 0.0, gain, np.zeros(count), np.full(count, np.inf), lower, upper, start,
        row[order].astype(np.int32), value[order], np.zeros(count, dtype=np.int32),
    )  # fmt: skip
    highs.run()
    answer, status = highs.getSolution(), highs.getModelStatus().name
    if status != "kOptimal" or not answer.value_valid or not answer.dual_valid:
        raise NotSolved(f"HiGHS found no level of a round: {status}")
    return np.array(answer.col_value), np.array(answer.row_dual)

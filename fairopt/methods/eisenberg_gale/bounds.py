"""How far shares in floats can be from maximal Nash welfare: a bound by prices, with all rounding counted."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, log

import numpy as np

from fairopt.program import INFINITY, ROUNDING, Array

#: NumPy's logarithm is off by at most four units in the last place; here twice that.
LOGARITHM = 16 * ROUNDING
#: Outside of this range results may have underflowed or overflowed, which the factors below do not count.
SMALLEST, LARGEST = 1e-250, 1e250


@dataclass(frozen=True, eq=False)
class NashBound:
    """The largest sum of w_i log u_i lies between ``lower`` and ``upper``; ``gap`` is the distance by unit of weight.

    ``gap`` is that of the weighted mean of the logarithms: no allocation has a weighted geometric mean of utilities
    that is more than e^gap times that of the shares. It is proved without a logarithm. Where ``lower`` and ``upper``
    are so large that floats cannot tell them apart any better, it is much smaller than their distance.
    """

    lower: float
    upper: float
    gap: float


def nash_bound(
    speedup: Array, capacity: Array, weight: Array, limit: Array, shares: Array, prices: Array, rents: Array | None
) -> NashBound:
    """Return what ``prices`` (k,) and ``rents`` (n,) prove of ``shares`` (n, k); the other shapes are a market's.

    For any prices p and rents q >= 0 and any allocation x within capacities m and demands d

        sum_i w_i log u_i(x) <= sum_i w_i log(w_i max_j s_ij / (p_j + q_i)) + p.m + q.d - sum_i w_i.

    With b_i = w_i max_j s_ij / (p_j + q_i) / u_i, for utilities u_i of the shares, the right-hand side less what the
    shares reach is sum_i w_i log b_i + p.m + q.d - sum_i w_i, and log b_i <= b_i - 1: at an equilibrium all b_i are 1.
    Where the shares overbook a type by rounding, all of them are scaled down. The numbers given may be rounded
    themselves, each by half a unit in the last place.

    Source: the dual of Eisenberg and Gale 1959.
    """
    k = len(capacity)
    factor = 1 + (k + 16) * ROUNDING  # more than all that one chain of operations over the types can lose
    usable = (speedup > 0) & (capacity > 0)
    used = np.where(usable, shares, 0.0)
    limited = limit < capacity.sum() * factor
    rents = np.zeros(len(weight)) if rents is None else np.where(limited, np.maximum(rents, 0.0), 0.0)
    prices = np.where(capacity > 0, np.maximum(prices, 0.0), 0.0)
    _, exponent = np.frexp(speedup.max(axis=1))
    scaled = np.ldexp(speedup, -exponent[:, None])
    with np.errstate(all="ignore"):
        columns = [fsum(column) / amount for column, amount in zip(used.T.tolist(), capacity, strict=True) if amount]
        rows = (used.sum(axis=1) / limit)[limited]
        over = max(1.0, *columns, rows.max(initial=0.0)) * factor
        utility = (scaled * used).sum(axis=1) / over / factor
        best = np.where(usable, scaled / (prices + rents[:, None]), 0.0).max(axis=1)
        ratio = weight * best / utility * factor * factor
        excess = weight * (ratio - 1)
        paid = np.concatenate([prices * capacity, np.where(limited, rents * np.where(limited, limit, 0.0), 0.0)])
        value = weight * np.log(utility)
    parts = np.concatenate([utility, best, ratio])
    if not ((parts > SMALLEST) & (parts < LARGEST)).all() or (used < 0).any() or not np.isfinite(over):
        return NashBound(-INFINITY, INFINITY, INFINITY)
    total = fsum(weight)
    lost = 8 * ROUNDING * (fsum(np.abs(excess)) + fsum(weight * ratio) + fsum(paid) + total)
    gap = max(fsum([*excess, *paid, *-weight]), 0.0) + lost
    unit = weight * exponent * log(2)
    objective = fsum([*value, *unit])
    blurred = LOGARITHM * (fsum(np.abs(value)) + fsum(np.abs(unit)) + total)
    return NashBound(objective - blurred, objective + blurred + gap, gap / total * (1 + 8 * ROUNDING))

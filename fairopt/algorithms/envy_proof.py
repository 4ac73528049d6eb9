"""What an envy-free answer in floats proves: bounds on the optimum in which every rounding is counted.

Above: any multipliers against envy give prices, and these a bound. Below: bundles that a solver returns are envied by a
rounding error here and there. Where that goes round in no circle, each bundle is made smaller than those whose holders
may envy it, by a little more than the error. What is left is mixed with a little of bundles that are strictly free of
envy: a user of speedups v gets v / |v|, in the capacities as units, and by Cauchy and Schwarz values that most, by the
more the directions differ. The mixture is an allocation of real numbers; its total is the lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.program import INFINITY, Array
from fairopt.proven import ROUNDING

#: Rows of the table of envy between all pairs that are looked at together, in entries.
BLOCK = 4_000_000
#: Bundles that differ by less, as a part of all GPUs per weight, are made the same.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Menu:
    """What is held: ``bundle`` (c, k) per weight and ``holds`` (n,) which is whose, a little made smaller to fit.

    ``mixed`` is the part of the strictly envy-free bundles that the proven allocation has in it.
    """

    bundle: Array
    holds: Array
    mixed: float


def upper_bound(
    speedup: Array,
    capacity: Array,
    weight: Array,
    demand: Array,
    multipliers: tuple[Array, Array, Array],
    rents: Array,
) -> tuple[float, Array]:
    """Return a bound on the largest total throughput without envy, and the prices (k,) that it is made of.

    ``multipliers`` are (l, i, y): y >= 0 for "s_l . b_l >= s_l . b_i" with bundles per weight; ``rents`` (n,) >= 0 for
    the demands. For any of them the total of an allocation without envy is at most the sum of price times capacity and
    rent times demand, where the price of type t is the most that anybody would pay:
    s_lt (1 + sum_i y_li / w_l) - sum_i y_il s_it / w_l - rent_l.
    """
    envious, envied, y = multipliers
    n, k = speedup.shape
    own = np.bincount(envious, y, minlength=n)
    taken = np.zeros((n, k))
    for t in range(k):
        taken[:, t] = np.bincount(envied, y * speedup[envious, t], minlength=n)
    terms = np.maximum(np.bincount(envious, minlength=n), np.bincount(envied, minlength=n))
    plus = speedup * (weight + own)[:, None]
    off = ROUNDING * (terms + 6)[:, None] * (plus + taken)
    pays = ((plus - taken) + off) / weight[:, None] - rents[:, None]
    prices = np.maximum(pays.max(axis=0), 0.0) * (1 + 4 * ROUNDING)
    limited = demand < INFINITY
    bound = math.fsum([*(prices * capacity).tolist(), *(rents[limited] * demand[limited]).tolist()])
    return bound * (1 + 4 * ROUNDING), prices


def lower_bound(
    speedup: Array, capacity: Array, weight: Array, demand: Array, bundle: Array, holds: Array, direction: Array
) -> tuple[float, Menu]:
    """Return a total that an envy-free allocation near the given bundles reaches, and these made to fit.

    ``direction`` (n,) numbers users so that those with proportional speedups have the same number. Among them all
    must value their bundles the same: where they hold different ones (since demands differ), each is made smaller by a
    rounding error, to the least of their values. Where they are proportional up to rounding only, nothing is proven.
    """
    k = speedup.shape[1]
    per_weight = np.where(capacity > 0, capacity, 1.0) / weight.sum()
    _, first, same = np.unique(np.round(bundle / per_weight / SAME), axis=0, return_index=True, return_inverse=True)
    bundle, holds = bundle[first], same.ravel()[holds]
    bundle = bundle * _fit(weight[:, None] * bundle[holds], capacity, demand)
    strict = _strict(speedup, capacity, weight, demand)
    value_strict = (speedup * strict).sum(axis=1)
    own = (speedup * bundle[holds]).sum(axis=1)
    unequal = _hold_different(direction, holds)
    if unequal.any():
        if not _proportional(speedup[unequal], direction[unequal]):
            return 0.0, Menu(bundle, holds, 1.0)
        top = speedup.max(axis=1)
        least = np.full(direction.max() + 1, INFINITY)
        np.minimum.at(least, direction, own / top)
        own = np.where(unequal, least[direction] * top, own)
    elif len(bundle) > 1:
        bundle = bundle * _stairs(speedup, bundle, holds, own)[:, None]
        own = (speedup * bundle[holds]).sum(axis=1)
    mixed = _mixed(speedup, bundle, holds, own, strict, value_strict, direction, unequal)
    total = math.fsum((weight * ((1 - mixed) * own + mixed * value_strict)).tolist())
    return total * (1 - ROUNDING * (2 * k + 20)), Menu(bundle, holds, mixed)


def _stairs(speedup: Array, bundle: Array, holds: Array, own: Array) -> Array:
    """Return factors (c,) a little below 1 that leave no envy between bundles, but in circles.

    Source: the order is that of the strongly connected components, by closing the relation of envy transitively.
    """
    c = len(bundle)
    envy = np.full((c, c), -INFINITY)  # of the holders of a bundle for another one, at most, as a part of their own
    relative = speedup / own[:, None]
    step = max(1, BLOCK // c)
    for begin in range(0, len(speedup), step):
        rows = slice(begin, begin + step)
        np.maximum.at(envy, holds[rows], relative[rows] @ bundle.T - 1.0)
    np.fill_diagonal(envy, -INFINITY)
    rounding = 4 * ROUNDING * (2 * speedup.shape[1] + 20)
    error = rounding + 2 * max(0.0, float(envy.max()))
    reach = envy > -error * c
    for through in range(c):
        reach |= np.outer(reach[:, through], reach[through])
    below = reach & ~reach.T
    # whoever can be reached by more is lower: along the relation the number grows
    _, stair = np.unique(below.sum(axis=0), return_inverse=True)
    return np.asarray((1.0 - error) ** stair.ravel())


def _hold_different(direction: Array, holds: Array) -> Array:
    """Return which users (n,) have a user beside them with the same direction and another bundle."""
    low, high = (np.full(direction.max() + 1, start) for start in (holds.max() + 1, -1))
    np.minimum.at(low, direction, holds)
    np.maximum.at(high, direction, holds)
    return np.asarray((low != high)[direction])


def _proportional(speedup: Array, direction: Array) -> bool:
    """Return whether rows of one direction are proportional, exactly."""
    first: dict[int, list[Fraction]] = {}
    for row, number in zip(speedup.tolist(), direction.tolist(), strict=True):
        exact = [Fraction(value) for value in row]
        other = first.setdefault(number, exact)
        at = next(place for place, value in enumerate(other) if value)
        if any(a * other[at] != b * exact[at] for a, b in zip(exact, other, strict=True)):
            return False
    return True


def _mixed(
    speedup: Array,
    bundle: Array,
    holds: Array,
    own: Array,
    strict: Array,
    value_strict: Array,
    direction: Array,
    unequal: Array,
) -> float:
    """Return how much of the strict bundles must be mixed in so that, whatever was rounded, nobody envies anybody."""
    n, k = speedup.shape
    # of a product of k terms, and of the bundles made above
    rounding = ROUNDING * (2 * k + 20)
    order = np.argsort(holds, kind="stable")
    used = np.unique(holds)
    starts = np.searchsorted(holds[order], used)
    most = 0.0
    step = max(1, BLOCK // n)
    for begin in range(0, n, step):
        rows = slice(begin, min(begin + step, n))
        short = (speedup[rows] @ bundle[used].T) * (1 + rounding) - own[rows, None] * (1 - rounding)
        # who holds the same bundle is not envied, rounding or not, unless one of them is made smaller
        short[(used[None, :] == holds[rows, None]) & ~unequal[rows, None]] = 0.0
        if not (short > 0).any():
            continue
        strictly = (speedup[rows] @ strict.T)[:, order]
        if unequal.any():
            strictly[direction[rows, None] == direction[order][None, :]] = -INFINITY
        strictly = np.maximum.reduceat(strictly, starts, axis=1)
        tight = (short > 0) & (strictly > -INFINITY)
        slack = (value_strict[rows, None] * (1 - rounding) - strictly * (1 + rounding))[tight]
        need = np.where(slack > 0, short[tight] / (short[tight] + np.maximum(slack, 0.0)), 1.0)
        most = max(most, float(need.max(initial=0.0)) * (1 + 1e-9))
    return min(1.0, most)


def _strict(speedup: Array, capacity: Array, weight: Array, demand: Array) -> Array:
    """Return bundles per weight (n, k) that are right for their holders and nobody else."""
    direction = speedup * capacity
    # dividing by the largest first keeps squares in range
    direction = direction / direction.max(axis=1, keepdims=True)
    direction /= np.sqrt((direction * direction).sum(axis=1, keepdims=True))
    bundle = direction * capacity / weight.sum()
    return np.asarray(bundle * _fit(weight[:, None] * bundle, capacity, demand))


def _fit(shares: Array, capacity: Array, demand: Array) -> float:
    """Return the factor by which all shares must shrink to keep capacities and demands, every rounding counted."""
    k = shares.shape[1]
    used = np.array([math.fsum(shares[:, t].tolist()) for t in range(k)])
    there = used > 0
    factor = float(np.min(capacity[there] / used[there], initial=1.0))
    limited = demand < INFINITY
    held = shares[limited].sum(axis=1)
    some = held > 0
    factor = min(factor, float(np.min(demand[limited][some] / held[some], initial=1.0)))
    return float(factor * (1 - ROUNDING * (2 * k + 16)))

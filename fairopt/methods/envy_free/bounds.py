"""What an envy-free answer in floats proves: bounds on the optimum in which every rounding is counted.

Upper bound: any multipliers against envy give prices, and these a bound.

Lower bound: bundles that a solver returns are envied by a rounding error here and there. Where that envy has no cycles,
each bundle is made a little smaller, by more than the error, than those of the users who may envy it. What is left is
mixed away with a little of bundles that are strictly free of envy: a user of speedups v gets v / |v|, in the capacities
as units, and by Cauchy and Schwarz values that most; the more directions differ, the stricter this is. The mixture is
an allocation of real numbers, and its total is the lower bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.deadline import remaining
from fairopt.methods.envy_free.problem import Duals, MergedUsers
from fairopt.methods.result import ends_of, rounded_down, rounded_up
from fairopt.program import INFINITY, ROUNDING, Array

#: So many entries of the table of envy between all pairs are computed at a time.
BLOCK = 4_000_000
#: At most so many users are relieved of a shortfall, those that cost the bound most; each if it costs more than this
#: part of the bound.
RELIEVED, COSTS = 100, 1e-11
#: Bundles that differ by less, as a part of all GPUs per weight, are made the same: first only those that differ by
#: rounding, then, where more than `MIXED` of the strict bundles would be needed, those that a method left apart.
SAME = 1e-12, 1e-10, 1e-8
MIXED = 1e-10


def better(one: Solution, other: Solution | None) -> Solution:
    """Return the larger total of two with the lesser bound."""
    if other is None:
        return one
    (lower, upper), (other_lower, other_upper) = ends_of(one), ends_of(other)
    most = one if lower >= other_lower else other
    if not min(upper, other_upper) < ends_of(most)[1]:
        return most
    least = one if upper < other_upper else other
    return replace(most, upper=least.upper, duals=least.duals)


def upper_bound(
    users: MergedUsers, multipliers: tuple[Array, Array, Array], prices: Array, demand_duals: Array
) -> Solution:
    """Return a bound ``upper`` on the largest total throughput without envy, and the duals that prove it.

    ``multipliers`` are (l, i, y): y >= 0 for "s_l . b_l >= s_l . b_i" with bundles per weight; ``demand_duals`` (n,) >=
    0 for the demands. For any of them the total of an allocation without envy is at most the sum of price times
    capacity and demand dual times demand, where the price of type t is the most that anybody would pay:
    s_lt (1 + sum_i y_li / w_l) - sum_i y_il s_it / w_l - rent_l.

    The ``prices`` (k,) and ``demand_duals`` (n,) of a solver are short of that by a rounding error, which is large per
    weight where a weight is tiny. For users who would pay more, the demand dual is raised, or else the price; or the
    shortfall is moved to users of larger weight (`_relieved`). The least bound is taken. Weights and demands may be off
    by one rounding.
    """
    demand_duals = np.where(users.demand < INFINITY, demand_duals, 0.0)
    pays = _pays(users, multipliers)
    above = _least(users, pays, prices, demand_duals, multipliers)
    more = _relieved(users, pays, np.maximum(prices, 0.0), demand_duals, COSTS * ends_of(above)[1])
    if not len(more[0]):
        return above
    envious, envied, y = (np.concatenate(both) for both in zip(multipliers, more, strict=True))
    multipliers = (envious, envied, y)
    eased = _least(users, _pays(users, multipliers), prices, demand_duals, multipliers)
    return eased if ends_of(eased)[1] < ends_of(above)[1] else above


def _pays(users: MergedUsers, multipliers: tuple[Array, Array, Array]) -> Array:
    """Return what everybody would pay for a GPU of each type (n, k) if there were no demand duals; roundings are up."""
    (envious, envied, y), speedup = multipliers, users.speedup
    n, k = speedup.shape
    own = np.bincount(envious, y, minlength=n)
    taken = np.zeros((n, k))
    for t in range(k):
        taken[:, t] = np.bincount(envied, y * speedup[envious, t], minlength=n)
    terms = np.maximum(np.bincount(envious, minlength=n), np.bincount(envied, minlength=n))
    plus = speedup * (users.weight + own)[:, None]
    off = ROUNDING * (terms + 8)[:, None] * (plus + taken)
    return np.asarray(((plus - taken) + off) / users.weight[:, None])


def _least(
    users: MergedUsers, pays: Array, prices: Array, demand_duals: Array, multipliers: tuple[Array, Array, Array]
) -> Solution:
    """Return the least of the bounds that raise prices or demand duals to what is paid."""
    limited = users.demand < INFINITY
    found = [_bound(users, pays, (pays - demand_duals[:, None]).max(axis=0))]
    # a dual costs by the demand, a price by the capacity: duals are raised for small demands only, or for all
    for raised in (limited & (users.demand < users.capacity.max()), limited):
        least = (pays - np.where(raised, INFINITY, demand_duals)[:, None]).max(axis=0)
        found.append(_bound(users, pays, np.maximum(prices, least)))
    # NaN means no bound
    bound, prices, demand_duals = min(found, key=lambda each: INFINITY if math.isnan(each[0]) else each[0])
    envious, envied, y = multipliers
    duals: Duals = {"capacity": prices, "demand": demand_duals, "envy_free": (np.stack([envious, envied]), y)}
    return Solution(Status.OPTIMAL, "", "auto", lower=0.0, upper=bound, duals=duals)


def _bound(users: MergedUsers, pays: Array, prices: Array) -> tuple[float, Array, Array]:
    """Return the bound at these prices, the prices, and the demand duals that are still needed; roundings are up."""
    demand, limited = users.demand, users.demand < INFINITY
    prices = rounded_up(np.maximum(prices, 0.0), 4)
    short = rounded_up(np.maximum((pays - prices).max(axis=1), 0.0), 4)
    demand_duals = np.where(limited, short, 0.0)
    bound = math.fsum([*(prices * users.capacity).tolist(), *(demand_duals[limited] * demand[limited]).tolist()])
    return rounded_up(bound, 6), prices, demand_duals


def _relieved(
    users: MergedUsers, pays: Array, prices: Array, demand_duals: Array, least: float
) -> tuple[Array, Array, Array]:
    """Return further multipliers (l, i, y) for users i who pay more than the prices, by more than ``least`` in all.

    A user l of larger weight takes off i what i is short of, and pays that by its own weight, where it is much less.
    """
    speedup, capacity, weight = users.speedup, users.capacity, users.weight
    excess = np.maximum(pays - prices - demand_duals[:, None], 0.0)
    costs = (excess * capacity).max(axis=1)
    found: list[tuple[int, int, float]] = []
    for i in np.argsort(-costs)[:RELIEVED].tolist():
        if not costs[i] > least:
            break
        short = excess[i] > 0
        # of the heavier users who run on all these types, the one who pays least for it is taken
        able = np.flatnonzero((speedup[:, short] > 0).all(axis=1) & (weight > weight[i]))
        if not len(able):
            continue
        y = (excess[i, short] * weight[i] / speedup[able][:, short]).max(axis=1)
        y = rounded_up(y, 16)
        paid = (speedup[able] * capacity).max(axis=1) * y / weight[able]
        best = int(paid.argmin())
        if paid[best] < costs[i]:
            found.append((int(able[best]), i, float(y[best])))
    envious, envied, y = (np.array(each) for each in zip(*found, strict=True)) if found else (np.zeros(0),) * 3
    return envious.astype(np.int64), envied.astype(np.int64), y.astype(float)


def lower_bound(users: MergedUsers, bundle: Array, holds: Array) -> tuple[float, float, Array]:
    """Return a total that an envy-free allocation near the given bundles reaches, and what each user holds (n, k).

    In between: the part of the strictly envy-free bundles that the proven allocation has in it. Per weight,
    ``bundle`` (c, k) is what is held and ``holds`` (n,) says which is whose; what is returned is made smaller to fit.

    Users with proportional speedups must all value their bundles the same: where they hold different ones (since
    demands differ), each is made smaller by a rounding error, to the least of their values. Where they are proportional
    up to rounding only, envy between them is left to the mixture, which may then consist of strict bundles alone.

    Users who should hold the same, and do but for what a method left, are all indifferent: strict bundles of users who
    are nearly alike remove that only in large parts. Their bundles are made the same (`SAME`), which costs as little.
    """
    best = _total(users, bundle, holds, SAME[0])
    for same in SAME[1:]:
        if best[1] <= MIXED or remaining() <= 0:
            break
        best = max(best, _total(users, bundle, holds, same), key=lambda each: each[0])
    return best


def _total(users: MergedUsers, bundle: Array, holds: Array, apart: float) -> tuple[float, float, Array]:
    """Return what `lower_bound` returns where bundles that differ by less than ``apart`` are the same."""
    speedup, capacity, weight, direction = users.speedup, users.capacity, users.weight, users.direction
    k = speedup.shape[1]
    per_weight = np.where(capacity > 0, capacity, 1.0) / weight.sum()
    _, first, same = np.unique(np.round(bundle / per_weight / apart), axis=0, return_index=True, return_inverse=True)
    bundle, holds = bundle[first], same.ravel()[holds]
    bundle = bundle * _fit(users, bundle[holds])
    strict = _strict(users)
    value_strict = (speedup * strict).sum(axis=1)
    own = (speedup * bundle[holds]).sum(axis=1)
    unequal = _hold_different(direction, holds)
    if unequal.any() and not _proportional(speedup[unequal], direction[unequal]):
        unequal[:] = False
    if unequal.any():
        top = speedup.max(axis=1)
        least = np.full(direction.max() + 1, INFINITY)
        np.minimum.at(least, direction, own / top)
        own = np.where(unequal, least[direction] * top, own)
    elif len(bundle) > 1:
        bundle = bundle * _shrinking(speedup, bundle, holds, own)[:, None]
        own = (speedup * bundle[holds]).sum(axis=1)
    mixed = _mixed(users, bundle, holds, own, strict, unequal)
    total = math.fsum((weight * ((1 - mixed) * own + mixed * value_strict)).tolist())
    return rounded_down(total, 2 * k + 20), mixed, bundle[holds]


def _shrinking(speedup: Array, bundle: Array, holds: Array, own: Array) -> Array:
    """Return factors (c,) a little below 1 that leave no envy between bundles, unless that has a cycle.

    The factor f_d of a bundle must be at most f_c divided by how many times the holders of c value d as much as their
    own. In logarithms these are longest paths, found by Bellman's and Ford's steps; where a cycle gains at every turn,
    or time is over, the steps are stopped, and the rest is left to the mixture.
    """
    c = len(bundle)
    times = np.zeros((c, c))
    relative = speedup / own[:, None]
    step = max(1, BLOCK // c)
    for begin in range(0, len(speedup), step):
        rows = slice(begin, begin + step)
        np.maximum.at(times, holds[rows], relative[rows] @ bundle.T)
    # for what is rounded here, in the factors and in the bundles that they make
    rounding = 4 * ROUNDING * (2 * speedup.shape[1] + 20)
    with np.errstate(divide="ignore"):
        length = np.log(times) + rounding
    np.fill_diagonal(length, 0.0)
    lower = np.zeros(c)
    for _ in range(c):
        longer = (lower[:, None] + length).max(axis=0)
        if (longer <= lower).all() or remaining() <= 0:
            break
        lower = longer
    return np.exp(-lower)


def _hold_different(direction: Array, holds: Array) -> Array:
    """Return which users (n,) share their direction with a user who holds another bundle."""
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


def _mixed(users: MergedUsers, bundle: Array, holds: Array, own: Array, strict: Array, unequal: Array) -> float:
    """Return how much of the strict bundles must be mixed in so that, whatever was rounded, nobody envies anybody."""
    speedup, direction = users.speedup, users.direction
    n, k = speedup.shape
    value_strict = (speedup * strict).sum(axis=1)
    # for a product of k terms, and for the bundles made above
    rounding = ROUNDING * (2 * k + 20)
    order = np.argsort(holds, kind="stable")
    used = np.unique(holds)
    starts = np.searchsorted(holds[order], used)
    most = 0.0
    step = max(1, BLOCK // n)
    for begin in range(0, n, step):
        rows = slice(begin, min(begin + step, n))
        short = (speedup[rows] @ bundle[used].T) * (1 + rounding) - own[rows, None] * (1 - rounding)
        # users with the same bundle do not envy each other, whatever was rounded, unless one of them is made smaller
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


def _strict(users: MergedUsers) -> Array:
    """Return bundles per weight (n, k) that are right for their holders and nobody else.

    What these leave over everybody gets the same part of, which changes no envy, unless demands may limit it.
    """
    direction = users.speedup * users.capacity
    # dividing by the largest first keeps squares in range
    direction = direction / direction.max(axis=1, keepdims=True)
    direction /= np.sqrt((direction * direction).sum(axis=1, keepdims=True))
    bundle = direction * users.capacity / users.weight.sum()
    bundle = bundle * _fit(users, bundle)
    if (users.demand == INFINITY).all():
        bundle = bundle + np.maximum(users.capacity - users.weight @ bundle, 0.0) / users.weight.sum()
        bundle = bundle * _fit(users, bundle)
    return np.asarray(bundle)


def _fit(users: MergedUsers, bundle: Array) -> float:
    """Return the factor by which all bundles (n, k) must shrink to keep capacities and demands, rounding counted."""
    shares, k = users.weight[:, None] * bundle, bundle.shape[1]
    used = np.array([math.fsum(shares[:, t].tolist()) for t in range(k)])
    there = used > 0
    factor = float(np.min(users.capacity[there] / used[there], initial=1.0))
    limited = users.demand < INFINITY
    held = shares[limited].sum(axis=1)
    some = held > 0
    factor = min(factor, float(np.min(users.demand[limited][some] / held[some], initial=1.0)))
    return rounded_down(factor, 2 * k + 16)

"""Envy-free shares of the largest total throughput, with their proof: the program (10) of OEF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairopt.backends.solution import OnDemand, Solution
from fairopt.deadline import left
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.bounds import better, lower_bound, upper_bound
from fairopt.methods.envy_free.nearly_alike import SPREAD, SpreadUsers
from fairopt.methods.envy_free.problem import (
    MergedUsers,
    RestrictedStart,
    Users,
    against_envy,
    cold_start,
    everybody_free,
    optimum_of,
)
from fairopt.methods.envy_free.relaxation import interior_optimum, restricted_optimum
from fairopt.methods.envy_free.smoothed_dual import smoothed_multipliers
from fairopt.methods.grouping import shared_out
from fairopt.methods.result import StageClock, duals_of, ends_of, gap_of
from fairopt.methods.result import proven as by_then
from fairopt.program import INFINITY, Array

#: Gives prices (k,) of an equilibrium, for users of these speedups, capacities and weights.
Begin = Callable[[Array, Array, Array], Array]

#: Up to so many users, once merged, everybody is free from the start: there is nothing to save.
SMALL = 40
#: Where a demand may limit at least so many users, and this part of all, the interior-point method is tried first; for
#: more users than `MANY` its tables would be too large. Its answer is taken if its proven gap is at most `PROVEN`.
LIMITED, MOSTLY, MANY, PROVEN = 50, 0.25, 2000, 1e-7
#: A larger gap is tried again by another simplex method.
STRAINED = 1e-9
#: After a time limit, what users hold is proved free of envy if there are no more pairs of users and bundles.
SOON = 300_000
#: A larger gap after a time limit is closed, as far as it goes, by multipliers that take a moment.
LOOSE = 0.01


def envy_free_shares(
    users: Sequence[str],
    speedup: Array,
    capacity: Array,
    weight: Array,
    demand: Array | None,
    begin: Begin,
    start: RestrictedStart | None = None,
) -> Solution:
    """Return envy-free shares of the largest total throughput, in floats, with rigorous bounds.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), ``weight`` (n,), ``demand`` (n,) or None. ``start`` is the
    `Solution.warm_start` of a market of the same types with some of the same ``users``, by name. ``begin`` is asked for
    prices where there are many users and no start of use. The values are "share" (n, k), and "bundle" (n, k), what
    everybody holds per weight, equal to the last bit where shares are meant to be. The duals are "capacity" (k,),
    "demand" (n,) and "envy_free", for pairs of an envious and an envied user (2, q), computed when they are asked for.
    Where time is over, the best by then is returned, as far as its proof takes no seconds. Errors: `NotSolved` where
    HiGHS fails on a part of the program.

    >>> ones, speedup = np.ones(2), np.array([[1.0, 2], [1, 5]])
    >>> found = envy_free_shares(["A", "B"], speedup, ones, ones, None, lambda direction, there, weights: ones)
    >>> found.values["share"].round(3).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """
    clock = StageClock()
    merged = MergedUsers.of(users, speedup, capacity, weight, demand)
    there = merged.of_kinds
    value, size = merged.value * there, there / merged.weights.sum()
    if start is not None and start.fits(merged):
        at = start.start_for(merged, value, size)
    elif len(merged.weights) <= SMALL:
        at = everybody_free(value)
    else:
        at = cold_start(value, size, merged.limit, begin(merged.value, there, merged.weights) * there)
    clock.lap("build")
    proven, ended = None, True
    try:
        for found, most in _candidates(merged, at, begin):
            clock.lap("solve")
            left(found=[found])
            proven = _proven(merged, found)
            clock.lap("certify")
            if gap_of(proven) <= most:
                break
    except OutOfTime as over:
        known, ended = [_all_the_same(merged), *(over.solution or [])], False
        clock.lap("solve")
        for found in known:
            if len(found.values["bundle"]) * len(merged.weight) <= SOON:
                proven = better(_proven(merged, found), proven)
        if proven is not None and gap_of(proven) > LOOSE:
            # any multipliers are valid: those that take a moment
            none = np.zeros(len(merged.capacity)), np.zeros(len(merged.weight))
            proven = better(proven, upper_bound(merged, smoothed_multipliers(merged), *none))
    assert proven is not None
    bundle, prices = np.zeros(speedup.shape), np.zeros(len(capacity))
    bundle[:, merged.types] = proven.values["bundle"][merged.group]
    prices[merged.types], demand_duals = duals_of(proven, "capacity", "demand")
    of_all = np.bincount(merged.kind, prices[merged.types] * merged.capacity)
    (lower, upper), end = ends_of(proven), found.warm_start
    clock.lap("certify")
    duals = {
        "capacity": partial(np.asarray, prices),
        "demand": partial(np.take, demand_duals, merged.group),
        "envy_free": partial(_against_envy, merged, proven, weight),  # of 10,000 users a tenth of all seconds
    }
    solution = by_then(
        "multipliers",
        lower,
        max(lower, upper),
        ended=ended,
        # bundles that were almost the same are one; what a user cannot run on is of no use to it
        values={"share": np.where(speedup > 0, bundle * weight[:, None], 0.0), "bundle": bundle},
        duals=OnDemand(duals),
        effort={**found.effort, "groups": float(len(merged.weights)), **proven.effort},
        warm_start=None if end is None else replace(end, users=merged, prices=of_all),
    )
    return clock.stamped(solution)


def _against_envy(users: MergedUsers, proven: Solution, weight: Array) -> tuple[Array, Array]:
    """Return the pairs (2, q) of envious and envied users, and the duals (q,) of their rows.

    In what is ``proven`` they are of distinct users, for "s_l . b_l >= s_l . b_i" with bundles per weight.
    """
    envious, envied, value = shared_out(users.group, users.of_group, *against_envy(proven))
    # the program's row is the weight times the row for bundles per weight
    return np.stack([envious, envied]), value / weight[envious]


def _mostly_limited(at: RestrictedStart, limit: Array) -> bool:
    """Return whether demands may limit so many users that hardly any stand in single-type groups."""
    count, n = int(((at.single_type < 0) & (limit < INFINITY)).sum()), len(limit)
    return at.basis is None and LIMITED <= n <= MANY and count >= max(LIMITED, MOSTLY * n)


def _candidates(merged: MergedUsers, at: RestrictedStart, begin: Begin) -> Iterator[tuple[Solution, float]]:
    """Yield optima, each with the gap up to which it is taken: the fastest first, the last in any case."""
    rows = merged.value, merged.gain, merged.of_kinds, merged.weights
    users, limit = Users.of(*rows, merged.limit), merged.limit
    if _mostly_limited(at, limit):
        yield interior_optimum(users, merged.merged_direction), PROVEN
    if len(limit) > SMALL and (limit == INFINITY).all():
        wide = SpreadUsers.of(*rows, SPREAD[1])
        if wide.nearly_alike:
            near = SpreadUsers.of(*rows, wide.far)
            found = _spread_optimum(wide, near, limit, begin)
            yield near.back(found), PROVEN
            if len(limit) <= MANY:
                yield near.back(near.with_room(found)), PROVEN
    if at.dual:  # where numbers are strained, the multipliers of the other simplex method may prove more
        yield restricted_optimum(users, at), STRAINED
    yield restricted_optimum(users, replace(at, dual=False)), np.inf


def _spread_optimum(wide: SpreadUsers, near: SpreadUsers, limit: Array, begin: Begin) -> Solution:
    """Return the optimum of users ``near`` who differ more than those of a market, from the start of ``wide`` ones."""
    there, weight = near.capacity, near.weight
    prices = begin(wide.speedup, there, weight) * there
    at = cold_start(wide.speedup * there, there / weight.sum(), limit, prices)
    try:
        return restricted_optimum(Users.of(near.speedup, near.gain, there, weight, limit), at)
    except OutOfTime as over:
        over.solution = [near.back(each) for each in over.solution or []]
        raise


def _all_the_same(merged: MergedUsers) -> Solution:
    """Return what is known from the start: nobody envies anybody where all bundles are the same."""
    n, there = len(merged.weights), merged.of_kinds
    none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    bundle, holds = (there / merged.weights.sum())[None], np.zeros(n, dtype=np.int64)
    return optimum_of(bundle, holds, np.zeros(len(there)), np.zeros(n), none)


def _proven(merged: MergedUsers, found: Solution) -> Solution:
    """Return the bounds that an optimum of the merged users proves, and what distinct users then hold per weight."""
    found = merged.apart(found)
    dual = upper_bound(merged, against_envy(found), *duals_of(found, "capacity", "demand"))
    lower, mixed, held = lower_bound(merged, found.values["bundle"], found.values["holds"])
    return replace(dual, lower=lower, values={"bundle": held}, effort={"mixed": mixed})

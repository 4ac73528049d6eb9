"""Envy-free shares of the largest total throughput, with their proof: the program (10) of OEF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairopt.backends.solution import OnDemand, Solution
from fairopt.deadline import left
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.bounds import EnvyFreeProof, lower_bound, upper_bound
from fairopt.methods.envy_free.interior_start import could_buy_any, interior_start
from fairopt.methods.envy_free.nearly_alike import SPREAD, SpreadUsers
from fairopt.methods.envy_free.problem import EnvyFreeWarmStart, MergedUsers, cold_start, everybody_free
from fairopt.methods.envy_free.relaxation import envy_free_optimum, in_parts, interior_optimum
from fairopt.methods.envy_free.restricted_lp import EnvyFreeOptimum, RestrictedStart
from fairopt.methods.envy_free.smoothed_dual import smoothed_multipliers
from fairopt.methods.grouping import shared_out
from fairopt.methods.result import StageClock
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
    start: EnvyFreeWarmStart | None = None,
) -> Solution:
    """Return envy-free shares of the largest total throughput, in floats, with rigorous bounds.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), ``weight`` (n,), ``demand`` (n,) or None. ``start`` is the
    `Solution.warm_start` of a market of the same types with some of the same ``users``, by name. ``begin`` is asked for
    prices where there are many users and no start of use. The values are "share" (n, k), and "bundle" (n, k), what
    everybody holds per weight, equal to the last bit where shares are meant to be. The duals "capacity" (k,), "demand"
    (n,) and "envy_free", for pairs of an envious and an envied user (2, q), are computed when they are asked for. Where
    time is over, the best by then is returned, as far as its proof takes no seconds. Errors: `NotSolved` where HiGHS
    fails on a part of the program.

    >>> ones, speedup = np.ones(2), np.array([[1.0, 2], [1, 5]])
    >>> found = envy_free_shares(["A", "B"], speedup, ones, ones, None, lambda direction, there, weights: ones)
    >>> found.values["share"].round(3).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """
    clock = StageClock()
    merged = MergedUsers.of(users, speedup, capacity, weight, demand)
    instance, there = merged.instance, merged.kinds.capacity
    value, size = instance.direction * there, there / merged.weights.sum()
    if start is not None and start.fits(instance):
        at = start.start_for(instance, value, size)
    elif len(merged.weights) <= SMALL:
        at = everybody_free(value)
    else:
        at = cold_start(value, size, instance.limit, begin(instance.direction, there, merged.weights) * there)
    clock.lap("build")
    rows = instance.direction, merged.gain, there, merged.weights, instance.limit
    proven, ended = None, True
    try:
        for found, most in _candidates(merged, rows, at, begin):
            clock.lap("solve")
            left(found=[found])
            proven = _proven(merged, found)
            clock.lap("certify")
            if proven.gap <= most:
                break
    except OutOfTime as over:
        known, ended = [_all_the_same(merged), *(over.solution or [])], False
        clock.lap("solve")
        for found in known:
            if len(found.bundle) * len(merged.weight) <= SOON:
                proven = _proven(merged, found).better(proven)
        if proven is not None and proven.gap > LOOSE:
            # any multipliers are valid: those that take a moment
            none = np.zeros(len(merged.capacity)), np.zeros(len(merged.weight))
            proven = proven.better(upper_bound(merged, smoothed_multipliers(merged), *none))
    assert proven is not None
    bundle, prices = np.zeros(speedup.shape), np.zeros(len(capacity))
    bundle[:, merged.types] = proven.held[merged.group]
    prices[merged.types] = proven.prices
    of_all = merged.kinds.together(proven.prices * merged.capacity)
    clock.lap("certify")
    duals = {
        "capacity": partial(np.asarray, prices),
        "demand": partial(np.take, proven.demand_duals, merged.group),
        "envy_free": partial(_against_envy, merged, proven.multipliers, weight),
    }
    solution = by_then(
        "multipliers",
        proven.lower,
        max(proven.lower, proven.bound),
        ended=ended,
        # bundles that were almost the same are one; what a user cannot run on is of no use to it
        values={"share": np.where(speedup > 0, bundle * weight[:, None], 0.0), "bundle": bundle},
        duals=OnDemand(duals),
        effort={**found.effort, "groups": float(len(merged.weights)), "mixed": proven.mixed},
        warm_start=None if found.end is None else EnvyFreeWarmStart(instance, found.end, of_all),
    )
    return clock.stamped(solution)


def _against_envy(users: MergedUsers, multipliers: tuple[Array, Array, Array], weight: Array) -> tuple[Array, Array]:
    """Return the pairs (2, q) of envious and envied users, and the duals (q,) of their rows.

    ``multipliers`` are those of distinct users, for "s_l . b_l >= s_l . b_i" with bundles per weight.
    """
    envious, envied, value = shared_out(users.group, users.part, *multipliers)
    # the program's row is the weight times the row for bundles per weight
    return np.stack([envious, envied]), value / weight[envious]


def _mostly_limited(at: RestrictedStart, limit: Array) -> bool:
    """Return whether demands may limit so many users that hardly any stand in single-type groups."""
    count, n = int(((at.single_type < 0) & (limit < INFINITY)).sum()), len(limit)
    return at.basis is None and LIMITED <= n <= MANY and count >= max(LIMITED, MOSTLY * n)


def _candidates(
    merged: MergedUsers, rows: tuple[Array, Array, Array, Array, Array], at: RestrictedStart, begin: Begin
) -> Iterator[tuple[EnvyFreeOptimum, float]]:
    """Yield optima, each with the gap up to which it is taken: the fastest first, the last in any case."""
    if _mostly_limited(at, rows[-1]):
        yield interior_optimum(*rows, merged.instance_direction), PROVEN
    if len(rows[0]) > SMALL and (rows[-1] == INFINITY).all():
        wide = SpreadUsers.of(*rows[:-1], SPREAD[1])
        if wide.nearly_alike:
            near = SpreadUsers.of(*rows[:-1], wide.far)
            found = _spread_optimum(wide, near, rows[-1], begin)
            yield near.back(found), PROVEN
            if len(rows[0]) <= MANY:
                yield near.back(near.with_room(found)), PROVEN
        elif could_buy_any(at):
            at = interior_start(in_parts(*rows)[0]) or at
    if at.dual:  # where numbers are strained, the multipliers of the other simplex method may prove more
        yield envy_free_optimum(*rows, at), STRAINED
    yield envy_free_optimum(*rows, replace(at, dual=False)), np.inf


def _spread_optimum(wide: SpreadUsers, near: SpreadUsers, limit: Array, begin: Begin) -> EnvyFreeOptimum:
    """Return the optimum of users ``near`` who differ more than those of a market, from the start of ``wide`` ones."""
    there, weight = near.capacity, near.weight
    prices = begin(wide.speedup, there, weight) * there
    at = cold_start(wide.speedup * there, there / weight.sum(), limit, prices)
    try:
        return envy_free_optimum(near.speedup, near.gain, there, weight, limit, at)
    except OutOfTime as over:
        over.solution = [near.back(each) for each in over.solution or []]
        raise


def _all_the_same(merged: MergedUsers) -> EnvyFreeOptimum:
    """Return what is known from the start: nobody envies anybody where all bundles are the same."""
    n, there = len(merged.weights), merged.kinds.capacity
    bundle, nothing = (there / merged.weights.sum())[None], (np.zeros(0, dtype=np.int64),) * 2
    holds = np.zeros(n, dtype=np.int64)
    return EnvyFreeOptimum(bundle, holds, np.zeros(len(there)), np.zeros(n), *nothing, np.zeros(0), end=None, effort={})


def _proven(merged: MergedUsers, found: EnvyFreeOptimum) -> EnvyFreeProof:
    found = merged.kinds.apart(found)
    dual = upper_bound(merged, merged.multipliers(found), found.prices, found.demand_duals[merged.merged])
    lower, mixed, held = lower_bound(merged, found.bundle, found.holds[merged.merged])
    return replace(dual, lower=lower, mixed=mixed, held=held)

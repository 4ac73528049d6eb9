"""Envy-free shares of the largest total throughput, with their proof: the program (10) of OEF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairopt.methods.envy_free.bounds import DualBound, lower_bound, upper_bound
from fairopt.methods.envy_free.problem import EnvyFreeWarmStart, MergedUsers, cold_start, everybody_free
from fairopt.methods.envy_free.relaxation import envy_free_optimum
from fairopt.methods.grouping import shared_out
from fairopt.methods.result import SharesResult, StageClock
from fairopt.program import Array

#: Gives prices (k,) of an equilibrium, for users of these speedups, capacities and weights.
Begin = Callable[[Array, Array, Array], Array]

#: Up to so many users, once merged, everybody is free from the start: there is nothing to save.
SMALL = 40
#: A larger gap between the bounds is tried again.
PROVEN = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvyFreeResult(SharesResult):
    """Envy-free shares, and what is proved of them: the largest total is between ``lower`` and ``upper``.

    ``prices``, ``demand_duals`` and `multipliers` make up the upper bound; ``bundle`` (n, k) is what everybody holds
    per weight, equal to the last bit where shares are meant to be.
    """

    bundle: Array
    warm_start: EnvyFreeWarmStart = field(repr=False)
    _users: MergedUsers = field(repr=False)
    _proof: DualBound = field(repr=False)

    def multipliers(self) -> tuple[Array, Array, Array]:
        """Return who envies, who is envied, and y >= 0 for "s_l . b_l >= s_l . b_i", in bundles per weight."""
        return shared_out(self._users.group, self._users.part, *self._proof.multipliers)


def envy_free_shares(
    users: Sequence[str],
    speedup: Array,
    capacity: Array,
    weight: Array,
    demand: Array | None,
    begin: Begin,
    start: EnvyFreeWarmStart | None = None,
) -> EnvyFreeResult:
    """Return envy-free shares of the largest total throughput, in floats, with rigorous bounds.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), ``weight`` (n,), ``demand`` (n,) or None. ``start`` is the
    `EnvyFreeResult.warm_start` of a market of the same types with some of the same ``users``, by name. ``begin`` is
    asked for prices where there are many users and no start of use. Errors: `NotSolved` where HiGHS fails on a part of
    the program.
    """
    clock = StageClock()
    merged = MergedUsers.of(users, speedup, capacity, weight, demand)
    instance, there = merged.instance, merged.capacity
    value, size = instance.direction * there, there / merged.weights.sum()
    if start is not None and start.fits(instance):
        at = start.start_for(instance, value, size)
    elif len(merged.weights) <= SMALL:
        at = everybody_free(value)
    else:
        at = cold_start(value, size, instance.limit, begin(instance.direction, there, merged.weights) * there)
    clock.lap("build")
    # where numbers are strained, the multipliers of one simplex method may prove what those of the other do not
    for attempt in (at, replace(at, dual=False)) if at.dual else (at,):
        found = envy_free_optimum(instance.direction, merged.gain, there, merged.weights, instance.limit, attempt)
        clock.lap("solve")
        proof = upper_bound(merged, merged.multipliers(found), found.prices, found.demand_duals[merged.merged])
        lower, mixed, held = lower_bound(merged, found.bundle, found.holds[merged.merged])
        clock.lap("certify")
        if proof.bound - lower <= PROVEN * proof.bound:
            break
    bundle, prices = np.zeros(speedup.shape), np.zeros(len(capacity))
    bundle[:, merged.types] = held[merged.group]
    prices[merged.types] = proof.prices
    clock.lap("certify")
    return EnvyFreeResult(
        # bundles that were almost the same are one; what a user cannot run on is of no use to it
        shares=np.where(speedup > 0, bundle * weight[:, None], 0.0),
        bundle=bundle,
        lower=lower,
        upper=max(lower, proof.bound),
        prices=prices,
        demand_duals=proof.demand_duals[merged.group],
        effort={**found.effort, "groups": float(len(merged.weights)), "mixed": mixed},
        seconds=clock.stages,
        warm_start=EnvyFreeWarmStart(instance, found.end, proof.prices * there),
        _users=merged,
        _proof=proof,
    )

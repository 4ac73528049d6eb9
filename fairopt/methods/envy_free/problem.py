"""From a market's arrays to envy-free shares with their proof: identical users together, and apart again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from fairopt.methods.envy_free.bounds import Menu, lower_bound, upper_bound
from fairopt.methods.envy_free.solve import cold_start, envy_free, everybody_free
from fairopt.methods.envy_free.warm_start import Ended, Met
from fairopt.methods.grouping import alike_rows, evened_out, identical_rows, shared_out, sums
from fairopt.program import INFINITY, Array

#: Gives prices (k,) to begin with, for users of these speedups, capacities and weights.
Begin = Callable[[Array, Array, Array], Array]

#: Up to so many kinds of users everybody is free from the start: there is nothing to save.
SMALL = 40
#: Users whose speedups are proportional up to this are of one kind: 0.1, 0.3 is 1, 3 in other units, but for rounding.
ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class Answer:
    """Shares (n, k) and what is proven of them: the optimum is between ``lower`` and ``upper``.

    ``prices`` (k,), ``rents`` (n,) and the multipliers ``envious``, ``envied``, ``envy`` (y >= 0 for
    "s_l . b_l >= s_l . b_i" in bundles per weight) make up the upper bound. ``menu`` is what kinds of user hold, whose
    ``group`` is (n,).
    """

    shares: Array
    lower: float
    upper: float
    prices: Array
    rents: Array
    menu: Menu
    group: Array
    effort: Mapping[str, float]
    seconds: Mapping[str, float]
    ended: Ended = field(repr=False)
    _multipliers: tuple[Array, Array, Array] = field(repr=False)
    _part: Array = field(repr=False)

    def bundles(self) -> Array:
        """Return what everybody holds per weight (n, k), of the types that are used: equal where shares are alike."""
        bundle = np.zeros(self.shares.shape)
        bundle[:, self.ended.met.types] = self.menu.bundle[self.menu.holds[self.group]]
        return bundle

    def multipliers(self) -> tuple[Array, Array, Array]:
        """Return who envies, who is envied, and the multiplier of that, for users."""
        return shared_out(self.group, self._part, *self._multipliers)


def envy_free_shares(
    users: Sequence[str],
    speedup: Array,
    capacity: Array,
    weight: Array,
    demand: Array | None,
    begin: Begin,
    earlier: Ended | None = None,
) -> Answer:
    """Return envy-free shares of the largest total throughput, in floats, with rigorous bounds.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), ``weight`` (n,), ``demand`` (n,) or None. ``begin`` is asked for
    prices where there are many users and no ``earlier`` answer to a market of the same types, with some of the same
    ``users`` by name. Errors: `NotSolved` where HiGHS fails on a part of the program.
    """
    begun = perf_counter()
    there = np.flatnonzero((capacity > 0) & (speedup > 0).any(axis=0))
    per_weight = np.full(len(weight), INFINITY) if demand is None else demand / weight
    first, group = identical_rows(np.column_stack([speedup[:, there], per_weight]))
    rows, limit = speedup[first][:, there], per_weight[first]
    together = sums(group, weight)
    most = np.full(len(first), INFINITY) if demand is None else sums(group, demand)
    top = rows.max(axis=1)
    direction = rows / top[:, None]
    # alike in what a GPU is worth, and in what all GPUs of a type are
    of_all = direction * capacity[there]
    towards = alike_rows(np.column_stack([direction, of_all / of_all.max(axis=1, keepdims=True)]), ALIKE)[1]
    kinds, kind = identical_rows(np.column_stack([towards, limit]))
    # users of one kind can as well hold the same per weight: their average is worth the same to them
    weights, gain = np.bincount(kind, together), np.bincount(kind, together * top)
    met = Met(tuple(users[i] for i in first[kinds]), direction[kinds], limit[kinds], there)
    value, size = met.direction * capacity[there], capacity[there] / weights.sum()
    if earlier is not None and earlier.fits(met):
        start = earlier.start_for(met, value, size)
    elif len(kinds) <= SMALL:
        start = everybody_free(value)
    else:
        prices = begin(met.direction, capacity[there], weights)
        start = cold_start(value, size, met.limit, prices * capacity[there])
    started = perf_counter()
    found = envy_free(met.direction, gain, capacity[there], weights, met.limit, start)
    solved = perf_counter()
    part = together / weights[kind]
    apart = shared_out(kind, part, found.envious, found.envied, found.envy)
    # who counts for more than its part of its kind would give to the others, were it not for their envy
    evened = evened_out(kind, part * gain[kind] - together * top)
    envious, envied, envy = (np.concatenate(both) for both in zip(apart, evened, strict=True))
    multipliers = (envious, envied, envy / top[envious])
    above = upper_bound(rows, capacity[there], together, most, multipliers, found.prices, found.rents[kind])
    lower, menu = lower_bound(rows, capacity[there], together, most, found.bundle, found.holds[kind], towards)
    shares, all_prices = np.zeros(speedup.shape), np.zeros(len(capacity))
    shares[:, there] = menu.bundle[menu.holds[group]] * weight[:, None]
    # bundles that were almost the same are one; what a user cannot run on is of no use to it
    shares[speedup == 0] = 0.0
    all_prices[there] = above.prices
    return Answer(
        shares=shares,
        lower=lower,
        upper=max(lower, above.bound),
        prices=all_prices,
        rents=above.rents[group],
        menu=menu,
        group=group,
        effort={**found.effort, "groups": float(len(kinds)), "mixed": menu.mixed},
        seconds={"begin": started - begun, "solve": solved - started, "prove": perf_counter() - solved},
        _multipliers=above.multipliers,
        ended=Ended(met, found.ended, above.prices * capacity[there]),
        _part=weight / together[group],
    )

"""From a market's arrays to few users and back, and where the restricted program of these begins.

Users that hold the same per weight in some optimum are merged. A competitive equilibrium from equal incomes is
envy-free and already within a thousandth of the optimum on all that we tried; at its prices most users clearly want one
type. So users in single-type groups, and the types that others may hold, are chosen by its prices. After a user
changed, came or went, the restriction, rows and basis of the last answer are the better start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.alike_types import AlikeTypes
from fairopt.methods.envy_free.restricted_lp import EnvyFreeOptimum, EnvyRows, KeyedBasis, RestrictedStart
from fairopt.methods.grouping import alike_rows, evened_out, identical_rows, shared_out, sums
from fairopt.program import INFINITY, Array

#: So many users are free at first: this times the number of users to the power of `GROWTH`.
FREE, GROWTH = 1.6, 0.6
#: A free user may at first hold types that are at most this much worse a buy than its best, and its two best.
WIDE = 0.12
#: A user is in a single-type group only if its demand allows this many times what it can buy there.
ROOM = 1.25
#: Prices are at least this part of the highest where speedups are divided by them.
CHEAPEST = 1e-12
#: A newcomer whose second best buy is worse than this part of its best joins the group of its best.
CLEAR = 0.9
#: A warm start is of use where at least this part of the users was there before.
SAME = 0.5
#: Users whose speedups are proportional up to this are merged: 0.1, 0.3 is 1, 3 in other units, but for rounding.
ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class EnvyInstance:
    """The users of a market once identical ones are merged, by ``name``: ``direction`` (n, k) speedups, ``limit`` (n,).

    ``types``: the market's columns that the k types stand in, or the first of those that are alike.
    """

    name: tuple[str, ...]
    direction: Array
    limit: Array
    types: Array


@dataclass(frozen=True, eq=False)
class EnvyFreeWarmStart:
    """Where an answer ended: the users of which ``instance``, ``at`` which restriction, with which ``prices`` (k,).

    A price is that of all GPUs of a type.
    """

    instance: EnvyInstance
    at: RestrictedStart
    prices: Array

    def fits(self, instance: EnvyInstance) -> bool:
        """Return whether the types are the same and enough users were there before."""
        if not np.array_equal(instance.types, self.instance.types):
            return False
        return bool((self._before(instance) >= 0).sum() >= SAME * len(instance.name))

    def _before(self, instance: EnvyInstance) -> Array:
        """Return which user each was before (n,), -1 for newcomers and for users who changed."""
        known = {name: place for place, name in enumerate(self.instance.name)}
        before = np.array([known.get(name, -1) for name in instance.name])
        same = (instance.direction == self.instance.direction[before]).all(axis=1)
        return np.where(same & (instance.limit == self.instance.limit[before]), before, -1)

    def start_for(self, instance: EnvyInstance, value: Array, size: Array) -> RestrictedStart:
        """Return the start for users of speedups ``value`` (n, k), with ``size`` (k,) GPUs per weight in all.

        Users keep their place. A newcomer joins the group of its best buy if that is clear or is free, tied to it.
        """
        at, before = self.at, self._before(instance)
        n, k = value.shape
        there = before >= 0
        single_type = np.where(there, at.single_type[before], -1)
        may_hold = np.where(there[:, None], at.may_hold[before], False)
        # where each old holder stands now: groups stay, users that are gone have none
        holder = np.full(k + len(self.instance.name), -1)
        holder[:k] = np.arange(k)
        holder[k + before[there]] = k + np.flatnonzero(there)
        in_group = np.bincount(single_type[single_type >= 0], minlength=k) > 0

        buys, second = buys_at(value, self.prices) if k > 1 else (np.ones((n, 1)), np.zeros(n))
        best, new = buys.argmax(axis=1), np.flatnonzero(~there)
        joins = (
            in_group[best[new]] & (second[new] < CLEAR) & (instance.limit[new] > _room(size, self.prices)[best[new]])
        )
        single_type[new[joins]] = best[new[joins]]
        free = new[~joins]
        may_hold[free] = _wide(value, buys, second)[free]
        tied = free[in_group[best[free]]]

        envious, envied = holder[k + at.rows.envious] - k, holder[at.rows.envied]
        stay = (envious >= 0) & (envied >= 0)
        rows = EnvyRows(
            np.concatenate([envious[stay], tied]),
            np.concatenate([envied[stay], best[tied]]),
            np.concatenate([at.rows.tight[stay], np.ones(len(tied), dtype=bool)]),
        )
        # outsiders of earlier groups may have left: pairs of users who are not there now are dropped
        givers, takers = (holder[k + each] - k for each in (at.givers, at.takers))
        pair = (givers >= 0) & (takers >= 0)
        basis = None
        if at.basis is not None:
            held, limits = np.zeros((k + n, k), dtype=bool), np.zeros(k + n, dtype=bool)
            kept = np.flatnonzero(holder >= 0)
            held[holder[kept]], limits[holder[kept]] = at.basis.held[kept], at.basis.limits[kept]
            held[k + free, best[free]] = True
            basis = KeyedBasis(held, limits)
        return RestrictedStart(single_type, may_hold, rows, givers[pair], takers[pair], basis)


def everybody_free(value: Array) -> RestrictedStart:
    """Return the start for few users, of speedups (n, k): there is nothing to save."""
    # HiGHS would choose the primal simplex, which takes six times the steps for 20 users, and three times for 50
    return RestrictedStart.cold(np.full(len(value), -1), value > 0, dual=True)


def cold_start(value: Array, size: Array, limit: Array, prices: Array) -> RestrictedStart:
    """Return the start at ``prices`` (k,) of an equilibrium; ``size`` (k,) and ``limit`` (n,) are GPUs per weight."""
    n, k = value.shape
    if k == 1:
        return everybody_free(value)
    buys, second = buys_at(value, prices)
    single_type = buys.argmax(axis=1)
    count = min(n, int(np.ceil(FREE * n**GROWTH)))
    single_type[np.argpartition(-second, count - 1)[:count]] = -1
    # users that a demand may limit are free: they cannot hold what the group holds
    single_type[limit < _room(size, prices)[np.maximum(single_type, 0)]] = -1
    return RestrictedStart.cold(single_type, _wide(value, buys, second), dual=True)


def buys_at(value: Array, prices: Array) -> tuple[Array, Array]:
    """Return how good a buy each type is as a part of the user's best (n, k), and its second best (n,)."""
    buys = np.where(value > 0, value / np.maximum(prices, prices.max() * CHEAPEST), 0.0)
    buys /= buys.max(axis=1, keepdims=True)
    return buys, np.partition(buys, -2, axis=1)[:, -2]


def _room(size: Array, prices: Array) -> Array:
    """Return how many GPUs per weight the demand of a group's members must allow (k,): more than they can buy."""
    return np.asarray(ROOM * size * prices.sum() / np.maximum(prices, prices.max() * CHEAPEST))


def _wide(value: Array, buys: Array, second: Array) -> Array:
    """Return which types a free user may hold at first (n, k)."""
    return np.asarray((value > 0) & (buys >= np.minimum(1 - WIDE, second)[:, None]))


@dataclass(frozen=True, eq=False)
class MergedUsers:
    """Users with identical rows are one of d *distinct* users; distinct users in proportion are one of an ``instance``.

    Shapes: ``group`` (n,) the distinct user that each user is, ``part`` (n,) its part of that one's weight. Of distinct
    users: ``speedup`` (d, k), ``weight``, ``demand``, ``top`` (largest speedup), ``direction`` (the same number where
    speedups are in proportion) and ``merged`` (place in the instance), all (d,). Of the instance's users: ``weights``
    and ``gain``, what a unit of throughput and weight counts in the objective. ``types``, ``capacity`` (k,): the types
    that have GPUs and a user that runs on them. The instance has one type for each of the ``kinds`` of these.
    """

    types: Array
    capacity: Array
    group: Array
    part: Array
    speedup: Array
    weight: Array
    demand: Array
    top: Array
    direction: Array
    merged: Array
    kinds: AlikeTypes
    instance: EnvyInstance
    weights: Array
    gain: Array

    @classmethod
    def of(
        cls, users: Sequence[str], speedup: Array, capacity: Array, weight: Array, demand: Array | None
    ) -> MergedUsers:
        """Merge the users of a market; shapes as in `envy_free_shares`."""
        types = np.flatnonzero((capacity > 0) & (speedup > 0).any(axis=0))
        per_weight = np.full(len(weight), INFINITY) if demand is None else demand / weight
        first, group = identical_rows(np.column_stack([speedup[:, types], per_weight]))
        rows, limit = speedup[first][:, types], per_weight[first]
        together = sums(group, weight)
        top = rows.max(axis=1)
        scaled = rows / top[:, None]
        # alike in what a GPU is worth, and in what all GPUs of a type are
        of_all = scaled * capacity[types]
        alike = np.column_stack([scaled, of_all / of_all.max(axis=1, keepdims=True)])
        direction = alike_rows(alike, ALIKE)[1]
        leaders, merged = identical_rows(np.column_stack([direction, limit]))
        kinds = AlikeTypes.of(rows, capacity[types], by_worth=bool((limit == INFINITY).all()))
        one_each, names = scaled[np.ix_(leaders, kinds.first)], tuple(users[i] for i in first[leaders])
        return cls(
            types=types,
            capacity=capacity[types],
            group=group,
            part=weight / together[group],
            speedup=rows,
            weight=together,
            demand=np.full(len(first), INFINITY) if demand is None else sums(group, demand),
            top=top,
            direction=direction,
            merged=merged,
            kinds=kinds,
            instance=EnvyInstance(names, one_each, limit[leaders], types[kinds.first]),
            # users in proportion can as well hold the same per weight: their average is worth the same to them
            weights=np.bincount(merged, together),
            gain=np.bincount(merged, together * top),
        )

    @property
    def instance_direction(self) -> Array:
        """The number of each of the instance's users' direction, from 0."""
        numbers = np.zeros(len(self.weights), dtype=np.int64)
        numbers[self.merged] = self.direction
        return numbers

    def multipliers(self, found: EnvyFreeOptimum) -> tuple[Array, Array, Array]:
        """Return the multipliers (envious, envied, value) of an optimum of the instance, between distinct users."""
        part = self.weight / self.weights[self.merged]
        apart = shared_out(self.merged, part, found.envious, found.envied, found.envy)
        # users that count for more than their part would give to the others, were it not for their envy
        even = evened_out(self.merged, part * self.gain[self.merged] - self.weight * self.top)
        envious, envied, envy = (np.concatenate(both) for both in zip(apart, even, strict=True))
        return envious, envied, envy / self.top[envious]

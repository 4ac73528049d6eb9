"""From a market's arrays to few users and back, and where the restricted program of these begins.

Users that hold the same per weight in some optimum are merged. Types that all users rank by one factor are one type: a
GPU of the one is worth so many of the other to everybody, and which of them a user holds matters to nobody. A program
that tells them apart has many optima, and the simplex method may go from one to the next without end; each user gets
the same part of all of them. A competitive equilibrium from equal incomes is
envy-free and already within a thousandth of the optimum on all that we tried; at its prices most users clearly want one
type. So users in single-type groups, and the types that others may hold, are chosen by its prices. After a user
changed, came or went, the restriction, rows and basis of the last answer are the better start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fairopt.backends.solution import Solution, Status
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
#: Factors between types that differ by less than this part are the same: they are quotients of rounded speedups.
ROUNDED = 1e-11
#: What stands for the logarithm of 0: no number in floats has such a one.
NEVER = -1e4

#: Multipliers by blocks of rows, as in `Solution.duals`.
Duals: TypeAlias = dict[str, Array | tuple[Array, Array]]


def optimum_of(
    bundle: Array,
    holds: Array,
    prices: Array,
    demand_duals: Array,
    against: tuple[Array, Array, Array],
    *,
    end: RestrictedStart | None = None,
    effort: Mapping[str, float] | None = None,
) -> Solution:
    """Return an optimum: the values "bundle" (c, k) per weight, and "holds" (n,), whose is which.

    Its duals are "capacity" (k,), "demand" (n,), and "envy_free" of ``against``: (l, i, y) for "l does not envy i". In
    a restricted program the bundles are those of the k + n holders, and i are holders; in the whole, in the units of
    the caller, i are users. ``end`` is where the restricted program of a whole ended.
    """
    envious, envied, envy = against
    duals: Duals = {"capacity": prices, "demand": demand_duals, "envy_free": (np.stack([envious, envied]), envy)}
    total, values = float(prices.sum() + demand_duals.sum()), {"bundle": bundle, "holds": holds}
    return Solution(Status.OPTIMAL, "", "auto", total, values=values, duals=duals, warm_start=end, effort=effort or {})


def against_envy(found: Solution) -> tuple[Array, Array, Array]:
    """Return who envies, who is envied, and the multipliers, of an optimum."""
    pairs, envy = found.duals["envy_free"]
    envious, envied = np.asarray(pairs)
    return envious, envied, np.asarray(envy)


@dataclass(frozen=True, eq=False)
class Users:
    """The users among whom there is to be no envy, in the units of `fairopt.methods.envy_free.restricted_lp`.

    Shapes: ``value`` (n, k) speedups, the largest of each user is 1; ``gain`` (n,) what a unit of that counts in the
    objective; ``weight`` (n,), adds up to 1; ``limit`` (n,) GPUs per weight, infinity for no demand, where a unit of
    type j counts ``size`` (k,) GPUs. The caller's weights add up to ``total``, and the largest value of a user counts
    ``top`` (n,) of its units, the objective ``unit``.
    """

    value: Array
    gain: Array
    weight: Array
    limit: Array
    size: Array
    top: Array
    unit: float
    total: float

    @classmethod
    def of(cls, value: Array, gain: Array, capacity: Array, weight: Array, limit: Array) -> Users:
        """Return users of different speedups.

        Shapes: ``value`` (n, k) speedups and ``gain`` (n,) what a unit of throughput and weight counts in the
        objective; every type has GPUs, and a user that runs on it. ``limit`` (n,) GPUs per weight, or infinity.
        """
        total = float(weight.sum())
        scaled = value * capacity
        top = scaled.max(axis=1)
        unit = float((top * gain).sum() / total)  # so that the objective is about one
        parts = scaled / top[:, None], gain / total * top / unit, weight / total
        return cls(*parts, limit, capacity / total, top, unit, total)

    def optimum(
        self,
        bundle: Array,
        holds: Array,
        prices: Array,
        demand_duals: Array,
        against: tuple[Array, Array, Array],
        *,
        end: RestrictedStart | None = None,
        effort: Mapping[str, float],
    ) -> Solution:
        """Return what was found as an optimum of the caller's program, in its units."""
        limited = self.limit < INFINITY
        envious, envied, envy = against
        demands = np.where(limited, self.limit * self.weight * self.total, 1.0)
        return optimum_of(
            bundle * self.size,
            holds,
            np.maximum(prices * self.unit / (self.size * self.total), 0.0),
            np.maximum(np.where(limited, demand_duals * self.unit / demands, 0.0), 0.0),
            # counted in the largest value of the envious user, whose bundles are parts of all GPUs per weight
            (envious, envied, np.maximum(envy * self.unit * self.total / self.top[envious], 0.0)),
            end=end,
            effort=effort,
        )


@dataclass(frozen=True, eq=False)
class RestrictedStart:
    """Where a restricted program begins.

    Shapes: ``single_type`` (n,) the type whose group each user is in, -1 for the free; ``may_hold`` (n, k) what free
    users may hold; ``rows`` (2, q) to begin with, "user l does not envy holder i", and ``tight`` (q,), those that the
    basis binds. ``near`` (2, p): pairs of users that are likely to carry multipliers within groups. ``basis``: what is
    basic, whatever variables and rows a program has, by holder and type (k + n, k), and of the rows of the capacities,
    then of the users' demands (k + n,); None: none is known. ``dual``: then the dual simplex solves, and not what HiGHS
    chooses. Where it is the end of another program, that was of ``users``, with ``prices`` (k,) of all GPUs of a type.
    """

    single_type: Array
    may_hold: Array
    rows: Array
    tight: Array
    near: Array
    basis: tuple[Array, Array] | None = None
    dual: bool = False
    users: MergedUsers | None = None
    prices: Array | None = None

    @classmethod
    def cold(cls, single_type: Array, may_hold: Array, *, dual: bool = False) -> RestrictedStart:
        """Return a start without rows and basis."""
        none = np.zeros((2, 0), dtype=np.int64)
        return cls(single_type, may_hold, none, np.zeros(0, dtype=bool), none, dual=dual)

    def fits(self, users: MergedUsers) -> bool:
        """Return whether the types are the same and enough users were there before."""
        if self.users is None or not np.array_equal(users.first_types, self.users.first_types):
            return False
        return bool((self._before(users) >= 0).sum() >= SAME * len(users.name))

    def _before(self, users: MergedUsers) -> Array:
        """Return which user each was before (n,), -1 for newcomers and for users who changed."""
        assert self.users is not None
        known = {name: place for place, name in enumerate(self.users.name)}
        before = np.array([known.get(name, -1) for name in users.name])
        same = (users.value == self.users.value[before]).all(axis=1)
        return np.where(same & (users.limit == self.users.limit[before]), before, -1)

    def start_for(self, users: MergedUsers, value: Array, size: Array) -> RestrictedStart:
        """Return the start for users who have ``value`` (n, k) of all GPUs, with ``size`` (k,) GPUs per weight in all.

        Users keep their place. A newcomer joins the group of its best buy if that is clear or is free, tied to it.
        """
        assert self.users is not None
        assert self.prices is not None
        before = self._before(users)
        n, k = value.shape
        there = before >= 0
        single_type = np.where(there, self.single_type[before], -1)
        may_hold = np.where(there[:, None], self.may_hold[before], False)
        # where each old holder stands now: groups stay, users that are gone have none
        holder = np.full(k + len(self.users.name), -1)
        holder[:k] = np.arange(k)
        holder[k + before[there]] = k + np.flatnonzero(there)
        in_group = np.bincount(single_type[single_type >= 0], minlength=k) > 0

        buys, second = buys_at(value, self.prices) if k > 1 else (np.ones((n, 1)), np.zeros(n))
        best, new = buys.argmax(axis=1), np.flatnonzero(~there)
        joins = in_group[best[new]] & (second[new] < CLEAR) & (users.limit[new] > _room(size, self.prices)[best[new]])
        single_type[new[joins]] = best[new[joins]]
        free = new[~joins]
        may_hold[free] = _wide(value, buys, second)[free]
        tied = free[in_group[best[free]]]

        rows = np.stack([holder[k + self.rows[0]] - k, holder[self.rows[1]]])
        stay = (rows >= 0).all(axis=0)
        rows = np.concatenate([rows[:, stay], [tied, best[tied]]], axis=1)
        tight = np.concatenate([self.tight[stay], np.ones(len(tied), dtype=bool)])
        # outsiders of earlier groups may have left: pairs of users who are not there now are dropped
        near = holder[k + self.near] - k
        near, basis = near[:, (near >= 0).all(axis=0)], None
        if self.basis is not None:
            held, limits = np.zeros((k + n, k), dtype=bool), np.zeros(k + n, dtype=bool)
            kept = np.flatnonzero(holder >= 0)
            held[holder[kept]], limits[holder[kept]] = (each[kept] for each in self.basis)
            held[k + free, best[free]] = True
            basis = held, limits
        return RestrictedStart(single_type, may_hold, rows, tight, near, basis)


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
    """Users with identical rows are one of d *distinct* users; distinct users in proportion are one of the n *merged*.

    ``types``, ``capacity`` (t,): the types that have GPUs and a user that runs on them; they are of k *kinds*, whose
    first types are ``first`` (k,) of these. ``kind``, ``worth``, ``part`` (t,): the kind of each type, how many GPUs of
    the kind's first type one of it is worth, and how many of its GPUs go with one that the kind has.

    ``group``, ``of_group`` for each user: the distinct user that it is, and its part of that one's weight. Of distinct
    users: ``speedup`` (d, t), ``weight``, ``demand``, ``top`` (largest speedup), ``direction`` (the same number where
    speedups are in proportion) and ``merged`` (place among the merged), all (d,). Of merged users: ``name``, ``value``
    (n, k) speedups of the kinds, the largest of each user's types 1, and ``limit`` (n,) GPUs per weight.
    """

    types: Array
    capacity: Array
    first: Array
    kind: Array
    worth: Array
    part: Array
    group: Array
    of_group: Array
    speedup: Array
    weight: Array
    demand: Array
    top: Array
    direction: Array
    merged: Array
    name: tuple[str, ...]
    value: Array
    limit: Array

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
        kinds = kinds_of(rows, capacity[types], by_worth=bool((limit == INFINITY).all()))
        return cls(
            types,
            capacity[types],
            *kinds,
            group=group,
            of_group=weight / together[group],
            speedup=rows,
            weight=together,
            demand=np.full(len(first), INFINITY) if demand is None else sums(group, demand),
            top=top,
            direction=direction,
            merged=merged,
            name=tuple(users[i] for i in first[leaders]),
            value=scaled[np.ix_(leaders, kinds[0])],
            limit=limit[leaders],
        )

    @property
    def first_types(self) -> Array:
        """The market's columns that the kinds stand in (k,): the first of each."""
        return np.asarray(self.types[self.first])

    @cached_property
    def weights(self) -> Array:
        """The weight of each merged user (n,): users in proportion can as well hold the same per weight."""
        return np.bincount(self.merged, self.weight)

    @cached_property
    def gain(self) -> Array:
        """What a unit of throughput and weight of each merged user counts in the objective (n,)."""
        return np.bincount(self.merged, self.weight * self.top)

    @cached_property
    def of_kinds(self) -> Array:
        """How many GPUs of its first type each kind is worth (k,)."""
        return np.bincount(self.kind, self.worth * self.capacity)

    @property
    def merged_direction(self) -> Array:
        """The number of each merged user's direction, from 0."""
        numbers = np.zeros(len(self.weights), dtype=np.int64)
        numbers[self.merged] = self.direction
        return numbers

    def apart(self, found: Solution) -> Solution:
        """Return an optimum of merged users and kinds as one of distinct users and types."""
        part = self.weight / self.weights[self.merged]
        prices, demand_duals = (np.asarray(found.duals[name]) for name in ("capacity", "demand"))
        split = shared_out(self.merged, part, *against_envy(found))
        # users that count for more than their part would give to the others, were it not for their envy
        even = evened_out(self.merged, part * self.gain[self.merged] - self.weight * self.top)
        envious, envied, envy = (np.concatenate(both) for both in zip(split, even, strict=True))
        return optimum_of(
            found.values["bundle"][:, self.kind] * self.part,
            found.values["holds"][self.merged],
            prices[self.kind] * self.worth,
            demand_duals[self.merged],
            (envious, envied, envy / self.top[envious]),
        )


def kinds_of(speedup: Array, capacity: Array, *, by_worth: bool) -> tuple[Array, Array, Array, Array]:
    """Return ``first``, ``kind``, ``worth`` and ``part`` of `MergedUsers`, for types on each of which a user runs.

    Shapes: ``speedup`` (n, t), ``capacity`` (t,). Where demands count GPUs, only types of the same speedups are alike:
    ``by_worth`` is False.

    >>> first, kind, worth, part = kinds_of(np.array([[1.0, 2, 3], [1, 5, 3]]), np.array([1.0, 1, 2]), by_worth=True)
    >>> first.tolist(), kind.tolist(), worth.round(9).tolist()
    ([0, 1], [0, 1, 0], [1.0, 1.0, 3.0])
    """
    runs = speedup > 0
    who, every = runs.argmax(axis=0), np.arange(len(capacity))
    logarithm = np.log(np.where(runs, speedup, 1.0))
    if by_worth:
        logarithm = logarithm - logarithm[who, every]
    first, kind = alike_rows(np.where(runs, logarithm, NEVER).T, ROUNDED)
    worth = speedup[who, every] / speedup[who, first[kind]]
    together = np.bincount(kind, worth * capacity)
    return first, kind, worth, capacity / together[kind]

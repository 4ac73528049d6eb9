"""Envy-free shares by restricting and proving: the loop that relaxes a restricted program until it is right.

The optimum of the restricted program (`fairopt.methods.envy_free.restricted_lp`) is that of the whole program if
multipliers complete it inside each single-type group and no free user would gain from a type that it may not hold.
Users for whom that fails get variables, and the program is solved again. In the end everybody may be free.

The members of the group of type j share one bundle of type j. It is right for all if there are multipliers y_li >= 0 of
"l does not envy i" among members, and a division of the multipliers of outsiders against the bundle over the members
that hold it, such that for every member i and type t

    gain_i v_it + v_it (its multipliers) - sum over l of y_li v_lt <= weight_i price_t.

That is a linear program with a non-negative excess for each (i, t), of which the sum is minimised. Where it is zero the
multipliers complete those of the restricted program; else the duals say which members would gain from which types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.interior_point import interior
from fairopt.methods.envy_free.restricted_lp import RestrictedLP, RestrictedOptimum, RestrictedStart, Users
from fairopt.methods.grouping import evened_out
from fairopt.methods.incremental_lp import PRIMAL, TOLERANCE, IncrementalLP, Sparse, places, rowwise
from fairopt.program import INFINITY, Array

#: Each member's multipliers may go to so many others, and come from so many, before any are priced.
NEAR = 10
#: Up to so many pairs, all are there from the start.
FEW = 400
#: Reduced costs and duals below this count as zero.
ZERO = 1e-9
#: Where rows are divided by prices, no price is less than this part of the largest: a type may be free at first.
CHEAP = 1e-3
#: Most multipliers added in a round, for each member.
ADDED = 3
#: So many answers of restricted programs are told where time is over.
LAST = 3
#: Pairs of users (giver, taker), by type, that carried multipliers within its group.
Pairs = dict[int, tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class GroupMultipliers:
    """Multipliers within a group; who should be ``leaving`` it, and which types each of them ``takes`` (q, k)."""

    envious: Array
    envied: Array
    value: Array
    leaving: Array
    takes: Array


def high_price(found: RestrictedOptimum) -> float:
    """Return the largest price, but at least the one that all types have where all are as dear: all may be free."""
    return max(float(found.prices.max()), 1 / len(found.prices))


def group_multipliers(
    users: Users, single_type: Array, j: int, found: RestrictedOptimum, given: Array, near: tuple[Array, Array]
) -> GroupMultipliers:
    """Return the multipliers within group ``j``; ``given`` (n,) are each user's in ``found``, ``near`` likely pairs."""
    members = np.flatnonzero(single_type == j)
    from_outside = (found.envied == j) & (found.envy > 0)
    outside, amount = found.envious[from_outside], found.envy[from_outside]
    prices = np.maximum(found.prices, high_price(found) * CHEAP)
    scale = users.weight[members][:, None] * prices
    value = users.value[members]
    room = users.weight[members][:, None] * found.prices - value * (users.gain[members] + given[members])[:, None]
    none = np.zeros(0, dtype=np.int64)
    if not len(outside) and (room >= -ZERO * scale).all():
        return GroupMultipliers(none, none, np.zeros(0), none, np.zeros((0, len(prices)), dtype=bool))
    unit = np.concatenate([scale.max(axis=1), amount])
    program = _GroupLP(np.concatenate([value, users.value[outside]]), unit, scale, room / scale)
    everyone = np.concatenate([members, outside])
    known = _known(everyone, len(members), near) if len(near[0]) else _near(program.speed, len(members), prices, j)
    program.add(*known)
    multipliers, excess, gains = program.solve()
    giver, taker = program.pairs
    positive = multipliers > 0
    takes = gains > ZERO
    takes[:, j] = False
    leaving = np.flatnonzero(takes.any(axis=1)) if excess.max() > ZERO else none
    return GroupMultipliers(
        everyone[giver[positive]],
        members[taker[positive]],
        (multipliers * unit[giver])[positive],
        members[leaving],
        takes[leaving],
    )


class _GroupLP:
    """The linear program of one group. Givers are the members, then the outsiders; takers are the members.

    A giver's multipliers count in its ``unit``: an outsider's add up to 1. Rows (i, t) are divided by ``scale``.
    """

    def __init__(self, speed: Array, unit: Array, scale: Array, room: Array) -> None:
        self.speed, self.unit, self.scale = speed, unit, scale
        self.q, self.k = scale.shape
        cells, outsiders = self.q * self.k, len(speed) - self.q
        # an excess for each (i, t); the rows that add up an outsider's multipliers are empty as yet
        start = np.minimum(np.arange(cells + outsiders), cells).astype(np.int32)
        rows = Sparse(start, np.arange(cells, dtype=np.int32), -np.ones(cells))
        lower = np.concatenate([np.full(cells, -INFINITY), np.ones(outsiders)])
        upper = np.concatenate([room.ravel(), np.ones(outsiders)])
        program = rowwise("the multipliers of a single-type group", -np.ones(cells), lower, upper, rows)
        self._program = IncrementalLP(program, strategy=PRIMAL, tolerance=TOLERANCE)
        self._known = np.eye(len(speed), self.q, dtype=bool)  # nobody envies itself
        self.pairs = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def add(self, giver: Array, taker: Array) -> bool:
        """Add the multipliers of these pairs that are not there; return whether there were any."""
        new = ~self._known[giver, taker]
        self._known[giver, taker] = True
        giver, taker = giver[new], taker[new]
        inside = giver < self.q
        amount = self.speed[giver] * self.unit[giver][:, None]
        cells = np.arange(self.k)
        own = np.where(inside, giver, 0)
        of_member = np.where(inside[:, None], own[:, None] * self.k + cells, -1)
        of_outsider = np.where(inside, -1, self.q * self.k + giver - self.q)[:, None]
        place = np.concatenate([of_member, taker[:, None] * self.k + cells, of_outsider], axis=1)
        one = np.ones((len(giver), 1))
        value = np.concatenate([amount / self.scale[own], -amount / self.scale[taker], one], axis=1)
        self._program.add_columns(np.zeros(len(giver)), Sparse.of(place, value))
        self.pairs = (np.concatenate([self.pairs[0], giver]), np.concatenate([self.pairs[1], taker]))
        return bool(len(giver))

    def solve(self) -> tuple[Array, Array, Array]:
        """Return the multipliers of all pairs, the excess (q, k), and what members would gain from types (q, k)."""
        cells = self.q * self.k
        while True:
            found = self._program.solve()
            x, dual = np.maximum(found.x, 0.0), found.dual
            gains = np.maximum(dual[:cells].reshape(self.q, self.k), 0.0)
            # a multiplier helps where its giver would rather have what the taker would get
            worth = (self.speed * self.unit[:, None]) @ (gains / self.scale).T
            own = np.concatenate([np.diagonal(worth), dual[cells:]])
            helps = np.where(self._known, 0.0, worth - own[:, None])
            if not self.add(*_largest(helps)):
                return x[cells:], x[:cells].reshape(self.q, self.k), gains


def _largest(helps: Array) -> tuple[Array, Array]:
    """Return the places of the `ADDED` largest entries of each row, of those above `ZERO`; changes ``helps``."""
    rows = np.flatnonzero(helps.max(axis=1, initial=0.0) > ZERO)
    givers, takers = [], []
    for _ in range(ADDED):
        # the first of those that tie, whatever the processor: a part of a sort would not say
        best = helps[rows].argmax(axis=1)
        positive = helps[rows, best] > ZERO
        rows, best = rows[positive], best[positive]
        helps[rows, best] = 0.0
        givers.append(rows)
        takers.append(best)
    return np.concatenate(givers), np.concatenate(takers)


def _known(everyone: Array, q: int, near: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pairs of ``near`` as places in ``everyone``, the first q takers; outsiders without a pair get one."""
    place = places(int(max(everyone.max(), near[0].max(), near[1].max())) + 1, everyone)
    giver, taker = place[near[0]], place[near[1]]
    there = (giver >= 0) & (taker >= 0) & (taker < q)
    giver, taker = giver[there], taker[there]
    left = np.setdiff1d(np.arange(q, len(everyone)), giver)
    return np.concatenate([giver, left]), np.concatenate([taker, left % q])


def _near(speed: Array, q: int, prices: Array, j: int) -> tuple[Array, Array]:
    """Return the pairs (giver, taker) that are likely to carry multipliers: all if few.

    A taker pays in other types for what it gets in type j, by the giver's speeds: those as fast there harm it least.
    """
    if len(speed) * q <= FEW:
        every = np.indices((len(speed), q)).reshape(2, -1)
        return every[0], every[1]
    on_j = speed[:, j]
    relative = speed / np.where(on_j > 0, on_j, 1.0)[:, None] * (prices[j] / prices)
    harm = (relative[None, :q, :] - relative[:, None, :]).max(axis=2)
    harm[np.arange(q), np.arange(q)] = INFINITY
    count = min(NEAR, q)
    takers = np.argpartition(harm, count - 1, axis=1)[:, :count]
    givers = np.argpartition(harm, count - 1, axis=0)[:count]
    giver = np.concatenate([np.repeat(np.arange(len(speed)), count), givers.ravel()])
    return giver, np.concatenate([takers.ravel(), np.tile(np.arange(q), count)])


@dataclass(frozen=True, eq=False)
class EnvyFreeOptimum(RestrictedOptimum):
    """The optimum of the whole program, in the units of the caller; ``end``: where a restricted program ended, or None.

    ``bundle`` (c, k): what is held per weight, ``holds`` (n,): which of these is whose; ``envied`` are users.
    """

    end: RestrictedStart | None
    effort: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class ScaledUnits:
    """The units of the caller, to which `optimum` goes back."""

    unit: float
    top: Array
    capacity: Array
    weight: Array
    limit: Array

    def optimum(
        self,
        bundle: Array,
        holds: Array,
        prices: Array,
        demand_duals: Array,
        multipliers: tuple[Array, Array, Array],
        *,
        end: RestrictedStart | None,
        effort: Mapping[str, float],
    ) -> EnvyFreeOptimum:
        """Return what was found in parts as an optimum of the caller's program."""
        total, limited = self.weight.sum(), self.limit < INFINITY
        envious, envied, envy = multipliers
        of_gpus = np.where(limited, demand_duals * self.unit / np.where(limited, self.limit * self.weight, 1.0), 0.0)
        return EnvyFreeOptimum(
            bundle=bundle * (self.capacity / total),
            holds=holds,
            prices=np.maximum(prices * self.unit / self.capacity, 0.0),
            demand_duals=np.maximum(of_gpus, 0.0),
            envious=envious,
            envied=envied,
            # counted in the largest value of the envious user, whose bundles are parts of all GPUs per weight
            envy=np.maximum(envy * self.unit * total / self.top[envious], 0.0),
            end=end,
            effort=effort,
        )


def in_parts(value: Array, gain: Array, capacity: Array, weight: Array, limit: Array) -> tuple[Users, ScaledUnits]:
    """Return the users in the units of `restricted_lp`, and the way back; shapes as in `envy_free_optimum`."""
    total = weight.sum()
    scaled = value * capacity
    top = scaled.max(axis=1)
    unit = float((top * gain).sum() / total)  # so that the objective is about one
    users = Users(scaled / top[:, None], gain / total * top / unit, weight / total, limit, capacity / total)
    return users, ScaledUnits(unit, top, capacity, weight, limit)


def interior_optimum(
    value: Array, gain: Array, capacity: Array, weight: Array, limit: Array, direction: Array
) -> EnvyFreeOptimum:
    """Return an optimum by the interior-point method; shapes as in `envy_free_optimum`, ``direction`` (n,) from 0."""
    users, units = in_parts(value, gain, capacity, weight, limit)
    found = interior(users, direction)
    first = np.unique(direction, return_index=True)[1]
    against = first[found.pairs.envious], found.pairs.envied, found.envy
    own = np.bincount(against[0], against[2], minlength=len(value))
    even = evened_out(direction, found.gain - users.gain - own)
    envious, envied, envy = (np.concatenate(both) for both in zip(against, even, strict=True))
    holds = np.arange(len(value))
    effort = {"free": float(len(value)), "rows": float(len(envied)), "rounds": 1.0, "iterations": float(found.steps)}
    return units.optimum(
        found.bundle, holds, found.prices, found.demand_duals, (envious, envied, envy), end=None, effort=effort
    )


def envy_free_optimum(
    value: Array, gain: Array, capacity: Array, weight: Array, limit: Array, start: RestrictedStart
) -> EnvyFreeOptimum:
    """Return an optimum for users of different speedups.

    Shapes: ``value`` (n, k) speedups and ``gain`` (n,) what a unit of throughput and weight counts in the objective;
    every type has GPUs, and a user that runs on it. ``limit`` (n,) GPUs per weight, or infinity. ``start`` says where
    to begin; it changes nothing but the time (and the choice, where optima tie).
    Errors: `NotSolved` where HiGHS fails on a part of the program; `OutOfTime`, with what was found by then.
    """
    users, units = in_parts(value, gain, capacity, weight, limit)
    k = len(capacity)
    program, near = RestrictedLP(users, start), dict.fromkeys(range(k), (start.givers, start.takers))
    relaxed, first = True, list[int]()
    known, told = dict[int, GroupMultipliers](), list[EnvyFreeOptimum]()
    try:
        while relaxed:
            found = program.solve()
            told = told or [_of_all(program, units, found, known, near)]
            relaxed, groups = _relax(program, found, near, first)
            near |= {j: (each.envious, each.envied) for j, each in groups.items()}
            first = [j for j, each in groups.items() if len(each.leaving)]
            known |= groups  # those of other groups are old, and still bound something
            told.append(_of_all(program, units, found, known if relaxed else groups, near))
    except OutOfTime as over:
        over.solution = told[-LAST:]  # the bounds of earlier ones may be better
        raise
    return told[-1]


def _of_all(
    program: RestrictedLP,
    units: ScaledUnits,
    found: RestrictedOptimum,
    groups: Mapping[int, GroupMultipliers],
    near: Pairs,
) -> EnvyFreeOptimum:
    """Return a restricted optimum, with multipliers within groups, as one of the caller's program."""
    k = program.types
    used, holds = np.unique(found.holds, return_inverse=True)
    to_free = found.envied >= k
    envious = np.concatenate([found.envious[to_free], *(each.envious for each in groups.values())])
    return units.optimum(
        found.bundle[used],
        holds,
        found.prices,
        found.demand_duals,
        (
            envious,
            np.concatenate([found.envied[to_free] - k, *(each.envied for each in groups.values())]),
            np.concatenate([found.envy[to_free], *(each.value for each in groups.values())]),
        ),
        end=program.as_start(*(np.concatenate(each) for each in zip(*near.values(), strict=True))),
        effort={
            "free": float((program.single_type < 0).sum()),
            "rows": float(len(found.envy)),
            "rounds": float(program.rounds),
            "iterations": float(program.iterations),
        },
    )


def _relax(
    program: RestrictedLP, found: RestrictedOptimum, near: Pairs, first: Sequence[int]
) -> tuple[bool, dict[int, GroupMultipliers]]:
    """Return whether the restriction had to be relaxed, and the multipliers within the groups that were looked at.

    Groups of the types ``first`` come first; the others are left out if any of these must be relaxed.
    """
    users, single_type = program.users, program.single_type
    n, k = users.value.shape
    own = np.bincount(found.envious, found.envy, minlength=n)
    allowed = _allow_gainful_types(program, found, own)
    if _free_over_demand(program, found) or allowed:
        return True, {}
    groups = dict[int, GroupMultipliers]()
    there = np.bincount(single_type[single_type >= 0], minlength=k) > 0
    for j in (*first, *(j for j in range(k) if j not in first)):
        if len(groups) == len(first) and any(len(each.leaving) for each in groups.values()):
            break
        if there[j]:
            groups[j] = group_multipliers(users, single_type, j, found, own, near[j])
    leaving = [each for each in groups.values() if len(each.leaving)]
    for each in leaving:
        may_hold = each.takes & (users.value[each.leaving] > 0)
        program.free(each.leaving, may_hold, each.envious, each.envied)
    return bool(leaving), groups


def _allow_gainful_types(program: RestrictedLP, found: RestrictedOptimum, own: Array) -> bool:
    """Allow free users the types that they would gain from; return whether there were any."""
    users = program.users
    n, k = users.value.shape
    taken = np.zeros((k + n, k))
    np.add.at(taken, found.envied, found.envy[:, None] * users.value[found.envious])
    worth = users.value * (users.gain + own)[:, None] - taken[k:]
    cost = users.weight[:, None] * found.prices + (found.demand_duals / users.limit)[:, None] * users.size
    gains = worth - cost > ZERO * high_price(found) * users.weight[:, None]
    helps = gains & (users.value > 0) & ~program.may_hold & (program.single_type < 0)[:, None]
    program.may_hold |= helps
    return bool(helps.any())


def _free_over_demand(program: RestrictedLP, found: RestrictedOptimum) -> bool:
    """Free members of groups whose demand is less than what the group holds; return whether there were any."""
    users = program.users
    gpus = (found.bundle[found.holds] * users.size).sum(axis=1)
    over = np.flatnonzero((program.single_type >= 0) & (gpus > users.limit * (1 + ZERO)))
    if not len(over):
        return False
    none = np.zeros(0, dtype=np.int64)
    program.free(over, users.value[over] > 0, none, none)
    return True

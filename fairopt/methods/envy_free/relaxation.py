"""Envy-free shares by restricting and proving: the loop that relaxes a restricted program until it is right.

The optimum of the restricted program (`fairopt.methods.envy_free.restricted_lp`) is that of the whole program if
multipliers complete it inside each single-type group and no free user would gain from a type that it may not hold.
Users for whom that fails get variables, and the program is solved again. In the end everybody may be free. Where many
are, those who still hold what a group holds go back to it once the total is higher: prices have moved since they left.

Whether a group is right is decided in `fairopt.methods.envy_free.group_multipliers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.group_multipliers import ZERO, GroupMultipliers, group_multipliers, high_price
from fairopt.methods.envy_free.interior_point import interior
from fairopt.methods.envy_free.restricted_lp import EnvyFreeOptimum, RestrictedLP, RestrictedStart, Users
from fairopt.methods.grouping import evened_out
from fairopt.program import INFINITY, Array

#: At most so many members leave their groups at once: far from the end more would leave than must.
MOST_FREED = 750
#: A total that rises by at most this part does not rise: then groups are looked at even where free users gain from
#: further types, if there are so many of these users.
RISES, MANY_GAIN = 1e-6, 10
#: Beyond so many free users, those who hold what a group does go back to it where the total has risen by this part.
MANY_FREE, HIGHER = 600, 1e-5
#: So many answers of restricted programs are told where time is over.
LAST = 3
#: Pairs of users (giver, taker), by type, that carried multipliers within its group.
Pairs = dict[int, tuple[Array, Array]]


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
    found: EnvyFreeOptimum,
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


def _rises(program: RestrictedLP, found: EnvyFreeOptimum) -> bool:
    """Return whether the total is higher than the last, and remember it."""
    higher = found.total > program.total * (1 + RISES)
    program.total, program.back = found.total, program.back or found.total
    return higher


def _put_back(program: RestrictedLP, found: EnvyFreeOptimum, stay: Array) -> None:
    """Put users back, but for those who ``stay`` (n,); not again before the total is higher, so that this ends."""
    if (program.single_type < 0).sum() > MANY_FREE and found.total > program.back * (1 + HIGHER):
        program.back = found.total
        program.put_back(found, stay)


def _relax(
    program: RestrictedLP, found: EnvyFreeOptimum, near: Pairs, first: Sequence[int]
) -> tuple[bool, dict[int, GroupMultipliers]]:
    """Return whether the restriction had to be relaxed, and the multipliers within the groups that were looked at.

    Groups of the types ``first`` come first; the others are left out if any of these must be relaxed.
    """
    users, single_type = program.users, program.single_type
    n, k = users.value.shape
    own = np.bincount(found.envious, found.envy, minlength=n)
    rises, gaining = _rises(program, found), _allow_gainful_types(program, found, own)
    over = _free_over_demand(program, found)
    if over or (gaining.any() and (rises or gaining.sum() < MANY_GAIN)):
        _put_back(program, found, gaining)
        return True, {}
    groups = dict[int, GroupMultipliers]()
    there = np.bincount(single_type[single_type >= 0], minlength=k) > 0
    for j in (*first, *(j for j in range(k) if j not in first)):
        if len(groups) == len(first) and any(len(each.leaving) for each in groups.values()):
            break
        if there[j]:
            groups[j] = group_multipliers(users, single_type, j, found, own, near[j])
    leaving = [each for each in groups.values() if len(each.leaving)]
    # those who would pay most above the prices go first
    excess = np.concatenate([each.excess for each in leaving]) if leaving else np.zeros(0)
    now = np.argsort(np.argsort(-excess, kind="stable"), kind="stable") < MOST_FREED
    if leaving:
        _put_back(program, found, gaining)
    goes = np.split(now, np.cumsum([len(each.leaving) for each in leaving])[:-1])
    for each, go in zip(leaving, goes, strict=False):
        may_hold = each.takes[go] & (users.value[each.leaving[go]] > 0)
        program.free(each.leaving[go], may_hold, each.envious, each.envied)
    return bool(leaving) or bool(gaining.any()), groups


def _allow_gainful_types(program: RestrictedLP, found: EnvyFreeOptimum, own: Array) -> Array:
    """Allow free users the types that they would gain from; return who these users are (n,)."""
    users = program.users
    n, k = users.value.shape
    taken = np.zeros((k + n, k))
    np.add.at(taken, found.envied, found.envy[:, None] * users.value[found.envious])
    worth = users.value * (users.gain + own)[:, None] - taken[k:]
    cost = users.weight[:, None] * found.prices + (found.demand_duals / users.limit)[:, None] * users.size
    gains = worth - cost > ZERO * high_price(found) * users.weight[:, None]
    helps = gains & (users.value > 0) & ~program.may_hold & (program.single_type < 0)[:, None]
    program.may_hold |= helps
    return np.asarray(helps.any(axis=1))


def _free_over_demand(program: RestrictedLP, found: EnvyFreeOptimum) -> bool:
    """Free members of groups whose demand is less than what the group holds; return whether there were any."""
    users = program.users
    gpus = (found.bundle[found.holds] * users.size).sum(axis=1)
    over = np.flatnonzero((program.single_type >= 0) & (gpus > users.limit * (1 + ZERO)))
    if not len(over):
        return False
    none = np.zeros(0, dtype=np.int64)
    program.free(over, users.value[over] > 0, none, none)
    return True

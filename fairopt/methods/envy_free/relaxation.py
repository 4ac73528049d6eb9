"""Envy-free shares by restricting and proving: the loop that relaxes a restricted program until it is right.

The optimum of the restricted program (`fairopt.methods.envy_free.restricted_lp`) is that of the whole program if
multipliers complete it inside each single-type group (`fairopt.methods.envy_free.single_type_groups`) and no free user
would gain from a type that it may not hold. Users for whom that fails get variables, and the program is solved again.
Nothing rests on the start: in the end everybody may be free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.restricted_lp import RestrictedLP, RestrictedOptimum, RestrictedStart, Users
from fairopt.methods.envy_free.single_type_groups import ZERO, GroupMultipliers, group_multipliers, high_price
from fairopt.program import INFINITY, Array

#: Pairs of users (giver, taker), by type, that carried multipliers within its group.
Pairs = dict[int, tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class EnvyFreeOptimum(RestrictedOptimum):
    """The optimum of the whole program, in the units of the caller; ``end``: where the restricted program ended.

    ``bundle`` (c, k): what is held per weight, ``holds`` (n,): which of these is whose; ``envied`` are users.
    """

    end: RestrictedStart
    effort: Mapping[str, float]


def envy_free_optimum(
    value: Array, gain: Array, capacity: Array, weight: Array, limit: Array, start: RestrictedStart
) -> EnvyFreeOptimum:
    """Return an optimum for users of different speedups.

    Shapes: ``value`` (n, k) speedups and ``gain`` (n,) what a unit of throughput and weight counts in the objective;
    every type has GPUs, and a user that runs on it. ``limit`` (n,) GPUs per weight, or infinity. ``start`` says where
    to begin; it changes nothing but the time (and the choice, where optima tie).
    Errors: `NotSolved` where HiGHS fails on a part of the program.
    """
    k, total = len(capacity), weight.sum()
    scaled = value * capacity
    top = scaled.max(axis=1)
    unit = (top * gain).sum() / total  # so that the objective is about one
    users = Users(scaled / top[:, None], gain / total * top / unit, weight / total, limit, capacity / total)
    program, near = RestrictedLP(users, start), dict.fromkeys(range(k), (start.givers, start.takers))
    relaxed, first = True, list[int]()
    while relaxed:
        found = program.solve()
        relaxed, groups = _relax(program, found, near, first)
        near |= {j: (each.envious, each.envied) for j, each in groups.items()}
        first = [j for j, each in groups.items() if len(each.leaving)]
    used, holds = np.unique(found.holds, return_inverse=True)
    limited = limit < INFINITY
    demand_duals = np.where(limited, found.demand_duals * unit / np.where(limited, limit * weight, 1.0), 0.0)
    to_free = found.envied >= k
    envious = np.concatenate([found.envious[to_free], *(each.envious for each in groups.values())])
    envy = np.concatenate([found.envy[to_free], *(each.value for each in groups.values())])
    return EnvyFreeOptimum(
        bundle=found.bundle[used] * (capacity / total),
        holds=holds,
        prices=np.maximum(found.prices * unit / capacity, 0.0),
        demand_duals=np.maximum(demand_duals, 0.0),
        envious=envious,
        envied=np.concatenate([found.envied[to_free] - k, *(each.envied for each in groups.values())]),
        # counted in the largest value of the envious user, whose bundles are parts of all GPUs per weight
        envy=np.maximum(envy * unit * total / top[envious], 0.0),
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

    The groups of the types ``first`` come before the others, which are left out if any of these must be relaxed.
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

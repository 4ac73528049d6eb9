"""Envy-free shares by restricting and proving: the loop that relaxes a restricted program until it is right.

The optimum of the restricted program (`fairopt.methods.envy_free.restricted_lp`) is that of the whole program if
multipliers complete it inside each single-type group and no free user would gain from a type that it may not hold.
Users for whom that fails get variables, and the program is solved again. In the end everybody may be free. Where many
are, those who still hold what a group holds go back to it once the total is higher: prices have moved since they left.

Whether a group is right is decided in `fairopt.methods.envy_free.group_multipliers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.errors import OutOfTime
from fairopt.methods.envy_free.group_multipliers import ZERO, group_multipliers, high_price
from fairopt.methods.envy_free.interior_point import interior
from fairopt.methods.envy_free.problem import RestrictedStart, Users, against_envy
from fairopt.methods.envy_free.restricted_lp import RestrictedLP
from fairopt.methods.grouping import evened_out
from fairopt.methods.result import duals_of
from fairopt.program import Array

#: At most so many members leave their groups at once: far from the end more would leave than must.
MOST_FREED = 750
#: A total that rises by at most this part does not rise: then groups are looked at even where free users gain from
#: further types, if there are so many of these users.
RISES, MANY_GAIN = 1e-6, 10
#: Beyond so many free users, those who hold what a group does go back to it where the total has risen by this part.
MANY_FREE, HIGHER = 600, 1e-5
#: So many answers of restricted programs are told where time is over.
LAST = 3


def interior_optimum(users: Users, direction: Array) -> Solution:
    """Return an optimum by the interior-point method; ``direction`` (n,) numbers the users' directions from 0."""
    found = interior(users, direction)
    first = np.unique(direction, return_index=True)[1]
    envious, envied, envy = against_envy(found)
    envious = first[envious]
    own = np.bincount(envious, envy, minlength=len(direction))
    even = evened_out(direction, np.asarray(found.duals["worth"]) - users.gain - own)
    envious, envied, envy = (np.concatenate(both) for both in zip((envious, envied, envy), even, strict=True))
    effort = {"free": len(direction), "rows": len(envied), "rounds": 1, "iterations": found.effort["steps"]}
    prices, demand_duals = duals_of(found, "capacity", "demand")
    told = found.values["bundle"], np.arange(len(direction)), prices, demand_duals, (envious, envied, envy)
    return users.optimum(*told, effort={name: float(each) for name, each in effort.items()})


def restricted_optimum(users: Users, start: RestrictedStart) -> Solution:
    """Return an optimum for users of different speedups.

    ``start`` says where to begin; it changes nothing but the time (and the choice, where optima tie).
    Errors: `NotSolved` where HiGHS fails on a part of the program; `OutOfTime`, with what was found by then.
    """
    k = len(users.size)
    program, near = RestrictedLP(users, start), dict.fromkeys(range(k), start.near)
    relaxed, first = True, list[int]()
    known, told = dict[int, Solution](), list[Solution]()
    try:
        while relaxed:
            found = program.solve()
            told = told or [_of_all(program, found, known, near)]
            relaxed, groups = _relax(program, found, near, first)
            near |= {j: np.asarray(each.duals["envy_free"][0]) for j, each in groups.items()}
            first = [j for j, each in groups.items() if len(each.values["leaving"])]
            known |= groups  # those of other groups are old, and still bound something
            told.append(_of_all(program, found, known if relaxed else groups, near))
    except OutOfTime as over:
        over.solution = told[-LAST:]  # the bounds of earlier ones may be better
        raise
    return told[-1]


def _of_all(
    program: RestrictedLP, found: Solution, groups: Mapping[int, Solution], near: Mapping[int, Array]
) -> Solution:
    """Return a restricted optimum, with multipliers within groups, as one of the caller's program."""
    k = program.types
    used, holds = np.unique(found.values["holds"], return_inverse=True)
    envious, envied, envy = against_envy(found)
    to_free = envied >= k
    parts = [(envious[to_free], envied[to_free] - k, envy[to_free])]
    parts += [against_envy(each) for each in groups.values()]
    envious, envied, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    prices, demand_duals = duals_of(found, "capacity", "demand")
    return program.users.optimum(
        found.values["bundle"][used],
        holds,
        prices,
        demand_duals,
        (envious, envied, value),
        end=program.as_start(np.concatenate([*near.values()], axis=1)),
        effort={
            "free": float((program.single_type < 0).sum()),
            "rows": float(len(envy)),
            "rounds": float(program.rounds),
            "iterations": float(program.iterations),
        },
    )


def total_of(found: Solution) -> float:
    """Return the objective of a restricted program, by its duals."""
    assert found.objective is not None
    return float(found.objective)


def _rises(program: RestrictedLP, found: Solution) -> bool:
    """Return whether the total is higher than the last, and remember it."""
    total = total_of(found)
    higher = total > program.total * (1 + RISES)
    program.total, program.back = total, program.back or total
    return higher


def _put_back(program: RestrictedLP, found: Solution, stay: Array) -> None:
    """Put users back, but for those who ``stay`` (n,); not again before the total is higher, so that this ends."""
    if (program.single_type < 0).sum() > MANY_FREE and total_of(found) > program.back * (1 + HIGHER):
        program.back = total_of(found)
        program.put_back(found, stay)


def _relax(
    program: RestrictedLP, found: Solution, near: Mapping[int, Array], first: Sequence[int]
) -> tuple[bool, dict[int, Solution]]:
    """Return whether the restriction had to be relaxed, and the multipliers within the groups that were looked at.

    Groups of the types ``first`` come first; the others are left out if any of these must be relaxed.
    """
    users, single_type = program.users, program.single_type
    n, k = users.value.shape
    envious, _, envy = against_envy(found)
    own = np.bincount(envious, envy, minlength=n)
    rises, gaining = _rises(program, found), _allow_gainful_types(program, found, own)
    over = _free_over_demand(program, found)
    if over or (gaining.any() and (rises or gaining.sum() < MANY_GAIN)):
        _put_back(program, found, gaining)
        return True, {}
    groups = dict[int, Solution]()
    there = np.bincount(single_type[single_type >= 0], minlength=k) > 0
    for j in (*first, *(j for j in range(k) if j not in first)):
        if len(groups) == len(first) and any(len(each.values["leaving"]) for each in groups.values()):
            break
        if there[j]:
            groups[j] = group_multipliers(users, single_type, j, found, own, near[j])
    leaving = [each for each in groups.values() if len(each.values["leaving"])]
    # those who would pay most above the prices go first
    excess = np.concatenate([each.values["excess"] for each in leaving]) if leaving else np.zeros(0)
    now = np.argsort(np.argsort(-excess, kind="stable"), kind="stable") < MOST_FREED
    if leaving:
        _put_back(program, found, gaining)
    goes = np.split(now, np.cumsum([len(each.values["leaving"]) for each in leaving])[:-1])
    for each, go in zip(leaving, goes, strict=False):
        leaves, (envious, envied, _) = each.values["leaving"][go], against_envy(each)
        program.free(leaves, each.values["takes"][go] & (users.value[leaves] > 0), envious, envied)
    return bool(leaving) or bool(gaining.any()), groups


def _allow_gainful_types(program: RestrictedLP, found: Solution, own: Array) -> Array:
    """Allow free users the types that they would gain from; return who these users are (n,)."""
    users = program.users
    n, k = users.value.shape
    taken = np.zeros((k + n, k))
    (envious, envied, envy), (prices, demand_duals) = against_envy(found), duals_of(found, "capacity", "demand")
    np.add.at(taken, envied, envy[:, None] * users.value[envious])
    worth = users.value * (users.gain + own)[:, None] - taken[k:]
    cost = users.weight[:, None] * prices + (demand_duals / users.limit)[:, None] * users.size
    gains = worth - cost > ZERO * high_price(found) * users.weight[:, None]
    helps = gains & (users.value > 0) & ~program.may_hold & (program.single_type < 0)[:, None]
    program.may_hold |= helps
    return np.asarray(helps.any(axis=1))


def _free_over_demand(program: RestrictedLP, found: Solution) -> bool:
    """Free members of groups whose demand is less than what the group holds; return whether there were any."""
    users = program.users
    gpus = (found.values["bundle"][found.values["holds"]] * users.size).sum(axis=1)
    over = np.flatnonzero((program.single_type >= 0) & (gpus > users.limit * (1 + ZERO)))
    if not len(over):
        return False
    none = np.zeros(0, dtype=np.int64)
    program.free(over, users.value[over] > 0, none, none)
    return True

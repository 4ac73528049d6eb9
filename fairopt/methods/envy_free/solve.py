"""Envy-free shares of the largest total throughput: the program (10) of OEF, solved by restricting and proving.

A competitive equilibrium from equal incomes is envy-free and already within a thousandth of the optimum on all that we
tried; at its prices most users clearly want one type. So the restricted program of `EnvyProgram` starts from there. Its
optimum is that of the whole program if multipliers complete it inside each core (`core_flows`) and no free user would
gain from a type that it may not hold; whoever would, is freed or allowed, and so on. Nothing rests on the start: in the
end everybody may be free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.restricted_lp import EnvyProgram, Held, Start, Users
from fairopt.methods.envy_free.single_type_groups import ZERO, Flows, core_flows, high_price
from fairopt.program import INFINITY, Array

#: So many users are free at first: this times the number of users to the power of `GROWTH`.
FREE, GROWTH = 1.6, 0.6
#: A free user may at first hold types that are at most this much worse a buy than its best, and its two best.
WIDE = 0.12
#: A user is in a core only if its demand allows this many times what it can buy there.
ROOM = 1.25


@dataclass(frozen=True, eq=False)
class EnvyFree:
    """Bundles with multipliers: ``bundle`` (c, k) what is held per weight, ``holds`` (n,) which of these is whose.

    ``prices`` (k,) are the duals of the capacities, ``rents`` (n,) those of the demands, a GPU; ``envious``,
    ``envied``, ``envy`` those of the rows "v_l . b_l >= v_l . b_i". In the units of the caller.
    """

    bundle: Array
    holds: Array
    prices: Array
    rents: Array
    envious: Array
    envied: Array
    envy: Array
    ended: Start
    effort: Mapping[str, float]


def envy_free(value: Array, gain: Array, capacity: Array, weight: Array, limit: Array, start: Start) -> EnvyFree:
    """Return an optimum for users of different speedups.

    Shapes: ``value`` (n, k) speedups and ``gain`` (n,) what a unit of throughput and weight counts in the objective;
    every type has GPUs, and a user that runs on it. ``limit`` (n,) GPUs per weight, or infinity. ``start`` says where
    to begin; it changes nothing but the time (and the choice, where optima tie).
    Errors: `NotSolved` where HiGHS fails on a part of the program.
    """
    total = weight.sum()
    scaled = value * capacity
    top = scaled.max(axis=1)
    unit = (top * gain).sum() / total  # so that the objective is about one
    users = Users(scaled / top[:, None], gain / total * top / unit, weight / total, limit, capacity / total)
    program, near = EnvyProgram(users, start), dict.fromkeys(range(len(capacity)), (start.givers, start.takers))
    relaxed, first = True, list[int]()
    while relaxed:
        held = program.solve()
        relaxed, flows = _complete(program, held, near, first)
        near |= {j: (each.envious, each.envied) for j, each in flows.items()}
        first = [j for j, each in flows.items() if len(each.leaving)]
    k = len(capacity)
    used, holds = np.unique(held.holds, return_inverse=True)
    limited = limit < INFINITY
    rents = np.where(limited, held.rents * unit / np.where(limited, limit * weight, 1.0), 0.0)
    to_free = held.envied >= k
    envious = np.concatenate([held.envious[to_free], *(each.envious for each in flows.values())])
    envy = np.concatenate([held.envy[to_free], *(each.value for each in flows.values())])
    return EnvyFree(
        bundle=held.bundle[used] * (capacity / total),
        holds=holds,
        prices=np.maximum(held.prices * unit / capacity, 0.0),
        rents=np.maximum(rents, 0.0),
        envious=envious,
        envied=np.concatenate([held.envied[to_free] - k, *(each.envied for each in flows.values())]),
        # counted in the largest value of the envious user, whose bundles are parts of all GPUs per weight
        envy=np.maximum(envy * unit * total / top[envious], 0.0),
        ended=program.as_start(*(np.concatenate(each) for each in zip(*near.values(), strict=True))),
        effort={
            "free": float((program.core < 0).sum()),
            "rows": float(len(held.envy)),
            "rounds": float(program.rounds),
            "iterations": float(program.iterations),
        },
    )


def everybody_free(value: Array) -> Start:
    """Return the start for few users, of speedups (n, k): there is nothing to save."""
    return Start.cold(np.full(len(value), -1), value > 0)


def cold_start(value: Array, size: Array, limit: Array, prices: Array) -> Start:
    """Return who is in which core at first and which types the free may hold, at prices (k,) of an equilibrium.

    Shapes: ``value`` (n, k), ``size`` (k,) all GPUs per weight, ``limit`` (n,) GPUs per weight.
    """
    n, k = value.shape
    if k == 1:
        return everybody_free(value)
    buys, second = buys_at(value, prices)
    core = buys.argmax(axis=1)
    count = min(n, int(np.ceil(FREE * n**GROWTH)))
    core[np.argpartition(-second, count - 1)[:count]] = -1
    # whoever a demand may limit is free: it cannot hold what its core holds
    core[limit < room(size, prices)[np.maximum(core, 0)]] = -1
    return Start.cold(core, wide(value, buys, second))


def room(size: Array, prices: Array) -> Array:
    """Return how many GPUs per weight the demand of a core's members must allow (k,): more than they can buy."""
    return np.asarray(ROOM * size * prices.sum() / np.maximum(prices, prices.max() * 1e-12))


def buys_at(value: Array, prices: Array) -> tuple[Array, Array]:
    """Return how good a buy each type is as a part of the user's best (n, k), and its second best (n,)."""
    buys = np.where(value > 0, value / np.maximum(prices, prices.max() * 1e-12), 0.0)
    buys /= buys.max(axis=1, keepdims=True)
    return buys, np.partition(buys, -2, axis=1)[:, -2]


def wide(value: Array, buys: Array, second: Array) -> Array:
    """Return which types a free user may hold at first (n, k)."""
    return np.asarray((value > 0) & (buys >= np.minimum(1 - WIDE, second)[:, None]))


def _complete(
    program: EnvyProgram, held: Held, near: Mapping[int, tuple[Array, Array]], first: Sequence[int]
) -> tuple[bool, dict[int, Flows]]:
    """Return whether the restriction had to be relaxed, and the multipliers within the cores that it came to.

    The cores ``first`` are looked at before the others, which need not be if any of these must be relaxed.
    """
    users, core = program.users, program.core
    n, k = users.value.shape
    own = np.bincount(held.envious, held.envy, minlength=n)
    relaxed = _price_types(program, held, own)
    relaxed |= _over_demand(program, held)
    if relaxed:
        return True, {}
    flows = dict[int, Flows]()
    there = np.bincount(core[core >= 0], minlength=k) > 0
    for j in (*first, *(j for j in range(k) if j not in first)):
        if len(flows) == len(first) and any(len(each.leaving) for each in flows.values()):
            break
        if there[j]:
            flows[j] = core_flows(users, core, j, held, own, near[j])
    for found in flows.values():
        if len(found.leaving):
            may_hold = found.takes & (users.value[found.leaving] > 0)
            program.free(found.leaving, may_hold, found.envious, found.envied)
            relaxed = True
    return relaxed, flows


def _price_types(program: EnvyProgram, held: Held, own: Array) -> bool:
    """Allow free users the types that they would gain from; whether there were any."""
    users = program.users
    n, k = users.value.shape
    taken = np.zeros((k + n, k))
    np.add.at(taken, held.envied, held.envy[:, None] * users.value[held.envious])
    worth = users.value * (users.gain + own)[:, None] - taken[k:]
    cost = users.weight[:, None] * held.prices + (held.rents / users.limit)[:, None] * users.size
    excess = worth - cost
    helps = (
        (excess > ZERO * high_price(held) * users.weight[:, None])
        & (users.value > 0)
        & ~program.may_hold
        & (program.core < 0)[:, None]
    )
    if not helps.any():
        return False
    program.allow(*np.nonzero(helps))
    return True


def _over_demand(program: EnvyProgram, held: Held) -> bool:
    """Free the members of cores who cannot use what their core holds; whether there were any."""
    users, core = program.users, program.core
    over = np.flatnonzero((core >= 0) & ((held.bundle[held.holds] * users.size).sum(axis=1) > users.limit * (1 + ZERO)))
    if not len(over):
        return False
    none = np.zeros(0, dtype=np.int64)
    program.free(over, users.value[over] > 0, none, none)
    return True

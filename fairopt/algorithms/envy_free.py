"""Envy-free shares of the largest total throughput: the program (10) of OEF, solved by restricting and proving.

A competitive equilibrium from equal incomes is envy-free and already within a thousandth of the optimum on all that we
tried; at its prices most users clearly want one type. So the restricted program of `EnvyProgram` starts from there. Its
optimum is that of the whole program if multipliers complete it inside each core (`core_flows`) and no free user would
gain from a type that it may not hold; whoever would, is freed or allowed, and so on. Nothing rests on the start: in the
end everybody may be free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.algorithms.envy_cores import ZERO, Flows, core_flows
from fairopt.algorithms.envy_program import EnvyProgram, Held, Users
from fairopt.program import INFINITY, Array

#: Up to so many users everybody is free from the start: there is nothing to save.
SMALL = 40
#: So many users are free at first: this times the number of users to the power of `GROWTH`.
FREE, GROWTH = 2.2, 0.6
#: A free user may at first hold types that are at most this much worse a buy than its best, and its two best.
WIDE = 0.12


@dataclass(frozen=True, eq=False)
class EnvyFree:
    """Bundles with multipliers: ``bundle`` (c, k) what is held per weight, ``holds`` (n,) which of these is whose.

    ``rents`` (n,) are the duals of the demands, a GPU; ``envious``, ``envied``, ``envy`` those of the rows
    "v_l . b_l >= v_l . b_i". In the units of the caller.
    """

    bundle: Array
    holds: Array
    rents: Array
    envious: Array
    envied: Array
    envy: Array
    effort: Mapping[str, float]


def envy_free(value: Array, gain: Array, capacity: Array, weight: Array, limit: Array, prices: Array) -> EnvyFree:
    """Return an optimum for users of different speedups.

    Shapes: ``value`` (n, k) speedups and ``gain`` (n,) what a unit of throughput and weight counts in the objective;
    every type has GPUs, and a user that runs on it. ``limit`` (n,) GPUs per weight, or infinity. ``prices`` (k,) are
    where to begin, best those of a competitive equilibrium; they change nothing but the time.
    Errors: `NotSolved` where HiGHS fails on a part of the program.
    """
    total = weight.sum()
    scaled = value * capacity
    top = scaled.max(axis=1)
    unit = (top * gain).sum() / total  # so that the objective is about one
    users = Users(scaled / top[:, None], gain / total * top / unit, weight / total, limit, capacity / total)
    program = EnvyProgram(users, *_first(users, prices * capacity))
    flows = None
    while flows is None:
        held = program.solve()
        flows = _complete(program, held)
    k = len(capacity)
    used, holds = np.unique(held.holds, return_inverse=True)
    limited = limit < INFINITY
    rents = np.where(limited, held.rents * unit / np.where(limited, limit * weight, 1.0), 0.0)
    to_free = held.envied >= k
    envious = np.concatenate([held.envious[to_free], *(each.envious for each in flows)])
    envy = np.concatenate([held.envy[to_free], *(each.value for each in flows)])
    return EnvyFree(
        bundle=held.bundle[used] * (capacity / total),
        holds=holds,
        rents=np.maximum(rents, 0.0),
        envious=envious,
        envied=np.concatenate([held.envied[to_free] - k, *(each.envied for each in flows)]),
        # counted in the largest value of the envious user, whose bundles are parts of all GPUs per weight
        envy=np.maximum(envy * unit * total / top[envious], 0.0),
        effort={
            "free": float((program.core < 0).sum()),
            "rows": float(len(held.envy)),
            "rounds": float(program.rounds),
            "iterations": float(program.iterations),
        },
    )


def _first(users: Users, prices: Array) -> tuple[Array, Array]:
    """Return who is in which core at first (-1: free), and which types the free may hold."""
    n, k = users.value.shape
    runs = users.value > 0
    if n <= SMALL or k == 1:
        return np.full(n, -1), runs
    buys = np.where(runs, users.value / np.maximum(prices, prices.max() * 1e-12), 0.0)
    buys /= buys.max(axis=1, keepdims=True)
    second = np.partition(buys, k - 2, axis=1)[:, k - 2]
    core = buys.argmax(axis=1)
    count = min(n, int(np.ceil(FREE * n**GROWTH)))
    core[np.argpartition(-second, count - 1)[:count]] = -1
    # whoever a demand may limit is free: it cannot hold what its core holds
    pure = users.size[np.maximum(core, 0)] * 2 * k
    core[users.limit < pure] = -1
    return core, runs & (buys >= np.minimum(1 - WIDE, second)[:, None])


def _complete(program: EnvyProgram, held: Held) -> list[Flows] | None:
    """Return the multipliers within the cores; None where the restriction had to be relaxed instead."""
    users, core = program.users, program.core
    n, k = users.value.shape
    own = np.bincount(held.envious, held.envy, minlength=n)
    relaxed = _price_types(program, held, own)
    relaxed |= _over_demand(program, held)
    if relaxed:
        return None
    flows = []
    for j in range(k):
        if (core == j).any():
            found = core_flows(users, core, j, held, own)
            flows.append(found)
    for found in flows:
        if len(found.leaving):
            may_hold = found.takes & (users.value[found.leaving] > 0)
            program.free(found.leaving, may_hold, found.envious, found.envied)
            relaxed = True
    return None if relaxed else flows


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
        (excess > ZERO * (users.weight * held.prices.max())[:, None])
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

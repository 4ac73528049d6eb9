"""Rounds in which every job can have the type on which it is cheapest: nothing has to be weighed there."""

from __future__ import annotations

import math

import numpy as np

from fairopt.methods.gang_assignment.groups import IDLE
from fairopt.program import INFINITY, Array

#: What the effort of a solution counts.
EFFORT = ("groups", "linear", "integer", "columns", "nodes", "dual_bound")


def on_cheapest(cost: Array, gangs: Array, capacity: Array) -> Array | None:
    """Return the type (n,) of least ``cost`` (n, k) of each gang, `IDLE` where all are infinite; None: not all fit."""
    if not len(gangs):
        return np.zeros(0, dtype=np.int64)
    type_of = cost.argmin(axis=1)
    type_of[np.isinf(cost[np.arange(len(gangs)), type_of])] = IDLE
    runs = type_of != IDLE
    busy = np.bincount(type_of[runs], weights=gangs[runs], minlength=len(capacity))
    return None if (busy > capacity).any() else type_of


def all_on_cheapest(
    cost: Array, gangs: Array, capacity: Array, allowed: Array, least: int
) -> tuple[Array, float, float, dict[str, Array], dict[str, float]] | None:
    """Return the answer where all jobs must run, each is cheapest on one type, and all find room there; else None.

    The arguments are those of a `GangAssignment`. The answer is each job's type (n,), bounds on the cost from below and
    above, the duals and the effort.
    """
    if int(gangs[allowed.any(axis=1)].sum()) != least:
        return None
    cost = np.where(allowed, cost, INFINITY)
    type_of = on_cheapest(cost, gangs, capacity)
    if type_of is None:
        return None
    runs = np.flatnonzero(type_of != IDLE)
    lowest = cost[runs, type_of[runs]]
    if not len(runs) or np.count_nonzero(cost[runs] == lowest[:, None]) > len(runs):
        return None
    value = math.fsum(lowest.tolist())
    # GPUs cost nothing; the reward is what makes every job worth its cost
    reward = max(0.0, float((lowest / gangs[runs]).max()))
    duals = {"capacity": np.zeros(len(capacity)), "work_conserving": np.array(reward)}
    effort = dict.fromkeys(EFFORT, 0.0) | {"dual_bound": value}
    return type_of, math.nextafter(value, -INFINITY), value, duals, effort

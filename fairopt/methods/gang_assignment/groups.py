"""From jobs to groups of identical jobs, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.methods.gang_assignment.problem import IDLE, GangAssignment
from fairopt.program import Array

#: Groups priced at a time: a block and what is made of it stay in the cache.
BLOCK = 1 << 14
#: A group of jobs is found by a random projection of its numbers, and then compared number by number.
SEED = 20250101


@dataclass(frozen=True, eq=False)
class Groups:
    """Identical jobs together. Where GPUs may idle, a last group of gangs of one GPU stands for them.

    Shapes: ``cost`` (k, g), infinite where the type is not allowed; ``gang`` (GPUs) and ``count`` (jobs) (g,);
    ``capacity`` (k,) GPUs. ``waiting``: whether a group may wait (False: every job and idle GPU must be placed).
    """

    cost: Array
    gang: Array
    count: Array
    capacity: Array
    waiting: bool

    @cached_property
    def weight(self) -> Array:
        """The GPUs that a whole group asks for."""
        return (self.gang * self.count).astype(float)

    @cached_property
    def size(self) -> Array:
        """The gangs as floats."""
        return self.gang.astype(float)

    def blocks(self) -> list[slice]:
        """Return the groups in blocks."""
        return [slice(first, first + BLOCK) for first in range(0, len(self.gang), BLOCK)]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups and the way back: ``jobs`` that fit somewhere, by group, and where each begins, ``first`` (g + 1,)."""

    groups: Groups
    jobs: Array
    first: Array

    def type_of(self, jobs: int, base: Array, moved: tuple[Array, Array, Array]) -> Array:
        """Return each job's type, shape (``jobs``,): its group's ``base`` but for (group, type, number) moved."""
        types = len(self.groups.capacity)
        number = len(self.first) - 1  # the group of idle GPUs, if there is one, has no jobs
        chosen = np.repeat(base[:number].astype(np.int64), np.diff(self.first))
        taken = np.zeros(number, dtype=np.int64)
        for group, to, count in zip(*(part.tolist() for part in moved), strict=True):
            if group < number:
                begin = int(self.first[group] + taken[group])
                chosen[begin : begin + count] = to
                taken[group] += count
        answer = np.full(jobs, IDLE, dtype=np.int64)
        answer[self.jobs] = np.where(chosen == types, IDLE, chosen)
        return answer


def grouped(problem: GangAssignment) -> Grouping:
    """Return the groups of a tightened problem: jobs with the same gang, allowed types and costs are one group."""
    allowed, types = problem.allowed, len(problem.capacity)
    some = allowed.any(axis=1)
    jobs, cost, gang = np.flatnonzero(some), problem.cost, problem.gangs
    if not allowed.all():
        cost = np.where(allowed, cost, np.inf)
    if len(jobs) < len(gang):
        cost, gang = cost[jobs], gang[jobs]
    first = np.arange(len(jobs) + 1)
    order, starts = _alike(cost, gang)
    if len(starts) < len(jobs):
        first = np.append(starts, len(jobs))
        jobs, gang, cost = jobs[order], gang[order[starts]], cost[order[starts]]
    count = np.diff(first)
    idle = int(problem.capacity.sum()) - problem.least
    # where all jobs must run none waits; the reward of Eq. (7) is then as large as it needs to be
    waiting = int(problem.gangs[some].sum()) > problem.least
    extra = int(idle > 0)
    table = np.empty((types, len(gang) + extra))
    table[:, : len(gang)] = cost.T
    table[:, len(gang) :] = 0.0
    gang, count = np.append(gang, [1] * extra), np.append(count, [idle] * extra)
    return Grouping(Groups(table, gang, count, problem.capacity, waiting), jobs, first)


def _alike(cost: Array, gang: Array) -> tuple[Array, Array]:
    """Return an order of the jobs in which identical ones stand together, and where each group begins."""
    everyone = np.arange(len(gang))
    draw = np.random.default_rng(SEED).uniform(1, 2, cost.shape[1] + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        key = np.where(np.isfinite(cost), cost, 1.0) @ draw[:-1] + gang * draw[-1]
    order = np.argsort(key, kind="stable")
    same = np.zeros(len(gang), dtype=bool)
    close = np.flatnonzero(key[order[1:]] == key[order[:-1]]) + 1
    one, other = order[close], order[close - 1]
    same[close] = (cost[one] == cost[other]).all(axis=1) & (gang[one] == gang[other])
    return (everyone, everyone) if not same.any() else (order, np.flatnonzero(~same))

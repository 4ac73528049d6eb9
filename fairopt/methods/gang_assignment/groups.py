"""From jobs to groups of identical jobs and back, and what these choose at duals: the Lagrangian dual and its bound.

The dual has one variable w_i a type, which pays w_i for each GPU in use; a job takes the type where cost - w_i * gang
is least, or waits at 0. GPUs that may stay idle are one more group of gangs of one GPU that cost nothing, so that every
type is to be filled exactly: L(w) = sum_i w_i Y_i + sum_g m_g min(0, min_i c_gi - w_i d_g). In the multipliers of the
program, q = max(0, max w) is the reward of Eq. (7) and p_i = q - w_i >= 0 the price of Eq. (1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.errors import BadInput
from fairopt.methods.grouping import equal_runs
from fairopt.numbers import counted
from fairopt.program import INFINITY, ROUNDING, Array

#: Waiting jobs have this for a type.
IDLE = -1
#: Masks of allowed types are packed into one integer together with the gang's number.
MOST_TYPES = 40
#: Groups priced at a time: a block and what is made of it stay in the cache.
BLOCK = 1 << 14
#: About so many groups are looked at where a sample of them will do.
SAMPLE = 6000
#: A limit on regrets that only a type that is not allowed exceeds.
EVERYTHING = float(np.finfo(float).max)
#: The sums below have a handful of operations for each term: what they can be off by, as a part of the terms' sizes.
SUMMED = 8 * ROUNDING


@dataclass(frozen=True, eq=False)
class Groups:
    """Identical jobs together. Where GPUs may idle, a last group of gangs of one GPU stands for them.

    Shapes: ``cost`` (k, g), infinite where the type is not allowed; ``gang`` (GPUs) and ``count`` (jobs) (g,);
    ``capacity`` (k,) GPUs. ``waiting``: whether a group may wait (False: every job and idle GPU must be placed).
    ``jobs`` are those that fit somewhere, by group; those of a group begin at ``first`` (groups of jobs + 1,).
    """

    cost: Array
    gang: Array
    count: Array
    capacity: Array
    waiting: bool
    jobs: Array
    first: Array

    @classmethod
    def of(cls, cost: Array, gangs: Array, allowed: Array, capacity: Array, *, idle: int, waiting: bool) -> Groups:
        """Return the groups of jobs with these costs (n, k) and ``gangs`` (n,), where ``idle`` GPUs may be left idle.

        Jobs that may run nowhere, as ``allowed`` (n, k) says, are left out.
        """
        jobs = np.flatnonzero(allowed.any(axis=1))
        if not allowed.all():
            cost = np.where(allowed, cost, np.inf)
        if len(jobs) < len(gangs):
            cost, gangs = cost[jobs], gangs[jobs]
        first = np.arange(len(jobs) + 1)
        order, starts = equal_runs(np.vstack((cost.T, gangs)))
        if len(starts) < len(jobs):
            first = np.append(starts, len(jobs))
            jobs, gangs, cost = jobs[order], gangs[order[starts]], cost[order[starts]]
        extra = int(idle > 0)
        table = np.zeros((len(capacity), len(gangs) + extra))
        table[:, : len(gangs)] = cost.T
        more = np.full(extra, idle, dtype=np.int64)
        gang, count = np.append(gangs, np.minimum(more, 1)), np.append(np.diff(first), more)
        return cls(table, gang, count, capacity, waiting, jobs, first)

    @classmethod
    def without_costs(cls, gangs: Array, allowed: Array, capacity: Array) -> Groups:
        """Return the groups of jobs that cost nothing, of those that fit some type; whose they are is not kept.

        Shapes and units as in `fairopt.methods.gang_assignment.usable_gpus`. Errors: `BadInput`.
        """
        types, nobody = len(capacity), np.zeros(0, dtype=np.int64)
        if types > MOST_TYPES:
            raise BadInput(f"got {counted(types, 'type')}", place="capacity", remedy=f"Give at most {MOST_TYPES}")
        sizes, size = _distinct(gangs)
        mask = np.zeros(len(gangs), dtype=np.int64)
        for i in range(types):
            mask |= allowed[:, i].astype(np.int64) << i
        if types <= 12 and len(sizes) << types <= 1 << 16:
            counts = np.bincount((size << types) | mask, minlength=len(sizes) << types)
            keys = np.flatnonzero(counts)
            count = counts[keys]
        else:
            keys, count = np.unique((size << types) | mask, return_counts=True)
        gang = sizes[keys >> types]
        masks = (keys & ((1 << types) - 1)) >> np.arange(types)[:, None]
        fits = (masks & 1).astype(bool) & (gang <= capacity[:, None])
        some = fits.any(axis=0)
        cost = np.where(fits[:, some], 0.0, np.inf)
        return cls(cost, gang[some], count[some], capacity, True, nobody, nobody)

    @cached_property
    def allowed(self) -> Array:
        """On which types each group may run (k, g)."""
        return self.cost < INFINITY

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

    def type_of(self, jobs: int, base: Array, moved: tuple[Array, Array, Array]) -> Array:
        """Return each job's type, shape (``jobs``,): its group's ``base`` but for (group, type, number) moved."""
        types = len(self.capacity)
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


def _distinct(gangs: Array) -> tuple[Array, Array]:
    """Return the distinct gang sizes and each job's place among them; small sizes are counted, not sorted."""
    if len(gangs) and gangs.max() < 1 << 16:
        present = np.zeros(int(gangs.max()) + 1, dtype=bool)
        present[gangs] = True
        return np.flatnonzero(present), (np.cumsum(present) - 1)[gangs]
    sizes, size = np.unique(gangs, return_inverse=True)
    return sizes, size


@dataclass(frozen=True, eq=False)
class Priced:
    """What groups choose at ``duals`` (k,): ``base`` (g,) the type, k for waiting; ``reduced`` (g,) the cost of a job.

    ``value`` is L(w), ``demand`` (k,) the GPUs asked for of each type.
    """

    groups: Groups
    duals: Array
    base: Array
    reduced: Array
    demand: Array
    value: float

    @property
    def off(self) -> float:
        """About how many groups choose the wrong type: GPUs asked for too much or too little, in groups."""
        wrong = float(np.abs(self.groups.capacity - self.demand).sum())
        return wrong * len(self.groups.gang) / float(self.groups.weight.sum())

    @classmethod
    def at(cls, groups: Groups, duals: Array) -> Priced:
        """Price every group at ``duals``; shape (k,), cost a GPU."""
        types, jobs = groups.cost.shape
        base, reduced = np.empty(jobs, dtype=np.int8), np.empty(jobs)
        for block in groups.blocks():
            size = groups.size[block]
            best = np.zeros(len(size)) if groups.waiting else np.full(len(size), np.inf)
            chosen = np.full(len(size), types, dtype=np.int8)
            for i in range(types):
                own = groups.cost[i, block] - duals[i] * size
                chosen[own < best] = i
                np.minimum(best, own, out=best)
            base[block], reduced[block] = chosen, best
        demand = np.bincount(base, weights=groups.weight, minlength=types + 1)[:types]
        value = float(duals @ groups.capacity + reduced @ groups.count)
        return cls(groups, duals, base, reduced, demand, value)

    def near(self, limit: float) -> tuple[Array, Array, Array]:
        """Return the deviations that cost at most ``limit``: group, type (k: waiting) and regret, one entry each."""
        types = len(self.duals)
        nothing = np.zeros(0, dtype=np.int64)
        found: list[tuple[Array, Array, Array]] = [(nothing, nothing, np.zeros(0))]
        for block in self.groups.blocks():
            size, base, reduced = self.groups.size[block], self.base[block], self.reduced[block]
            for i in range(types + self.groups.waiting):
                regret = (self.groups.cost[i, block] - self.duals[i] * size if i < types else 0.0) - reduced
                at = np.flatnonzero((regret <= limit) & (base != i))
                if len(at):
                    found.append((at + block.start, np.full(len(at), i), regret[at]))
        group, to, regret = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return group, to, regret

    def limit_for(self, columns: int) -> float:
        """Return a limit within which lie about so many deviations, judged from a sample of the groups."""
        types, jobs = self.groups.cost.shape
        step = max(1, jobs // (4 * SAMPLE))
        size, base = self.groups.size[::step], self.base[::step]
        regret = np.zeros((types + 1, len(size)))
        regret[:types] = self.groups.cost[:, ::step] - self.duals[:, None] * size
        regret -= self.reduced[::step]
        regret[base, np.arange(len(size))] = np.inf
        every = regret[: types + self.groups.waiting].ravel()
        wanted = columns // step + 1
        return min(float(np.partition(every, wanted)[wanted]), EVERYTHING) if wanted < len(every) else EVERYTHING


def size(priced: Priced) -> float:
    """Return the sum of the sizes of the dual's terms, in the unit of cost: what tolerances refer to."""
    return float(np.abs(priced.duals) @ priced.groups.capacity + np.abs(priced.reduced) @ priced.groups.count)


def safe_value(priced: Priced) -> float:
    """Return the dual's value less all that rounding can have added to it."""
    groups = priced.groups
    chosen = np.flatnonzero(priced.reduced)
    terms = (priced.reduced[chosen] * groups.count[chosen]).tolist() + (priced.duals * groups.capacity).tolist()
    asked = float(np.abs(priced.duals).max()) * float(groups.weight.sum())
    return math.fsum(terms) - SUMMED * (asked + size(priced))


def grain_of(cost: Array) -> float:
    """Return a number that all finite costs are whole multiples of, 0 where they are not whole."""
    for some in (cost[..., :64], cost):  # a few first: mostly these tell
        finite = some[np.isfinite(some)]
        if (finite != np.rint(finite)).any() or np.abs(finite).max(initial=0.0) >= 2.0**53:
            return 0.0
    return float(np.gcd.reduce(np.abs(finite).astype(np.int64)))

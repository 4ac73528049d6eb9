"""FIFO with static quotas, like YARN's capacity scheduler: each tenant has its own GPUs and its own queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import Room, non_preemptive, ordered
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.queue import Queue, any_type
from fairopt.program import INFINITY, Array, Number
from fairopt.simulation import Consolidated, Placement, placed


def quotas(weights: Sequence[Number], gpus: int) -> tuple[int, ...]:
    """Return whole GPUs for each tenant, in proportion to ``weights``; they sum to ``gpus``.

    Each gets its proportion rounded down. The GPUs left go, one each, to the largest remainders; ties go to the larger
    weight, then to the first.

    Source: ASTRAEA Eq. (6); the rounding is the method of the largest remainder.

    >>> quotas([1, 1, 2], 9)
    (2, 2, 5)
    """
    return _quotas(tuple(weights), gpus)


@lru_cache(maxsize=64)
def _quotas(weights: tuple[Number, ...], gpus: int) -> tuple[int, ...]:
    exact = [Fraction(weight) for weight in weights]
    due = [weight * gpus / sum(exact) for weight in exact]
    given = [floor(each) for each in due]
    order = sorted(range(len(due)), key=lambda tenant: (given[tenant] - due[tenant], -exact[tenant], tenant))
    for tenant in order[: gpus - sum(given)]:
        given[tenant] += 1
    return tuple(given)


@dataclass(frozen=True)
class FifoQuota(Policy):
    """Each tenant's jobs in order of arrival, within its quota of GPUs; a job that runs is never stopped.

    * ``pooled``: a tenant's quota is a number of GPUs of any type; else it is a number for each type, a virtual
      cluster. The paper has one type, where both are the same.
    * ``overtake``: a job that does not fit is skipped; else it blocks the later jobs of its tenant.
    * ``borrow``: a job that is larger than its tenant's quota on every type that could hold it runs on idle GPUs, once
      no other job of its tenant runs and no other tenant wants them. Else it waits for ever, and a run that has nothing
      else to do ends with `NotSolved`. `Schedule.notes` says so in both cases.
    * ``placement``: how hosts are chosen.

    Quotas are static: they count all tenants of the trace, present or not, and all hosts, up or not. Only such a
    borrower exceeds a quota, and its tenant starts nothing else on that quota meanwhile. A job takes the type that is
    fastest for it among those with room.

    Source: ASTRAEA Sec. 6.1.5 (YARN-CS), Eq. (6), 3.2 (first in, first out).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(FifoQuota(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of fifo-quota, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "fifo-quota"
    source = "ASTRAEA, TPDS 2022, Sec. 6.1.5 (YARN-CS)"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.RUNS_TO_COMPLETION})
    pooled: bool = False
    overtake: bool = False
    borrow: bool = True
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Keep running jobs, start each tenant's first jobs, then borrowers; see `Policy.decide`."""
        queue = non_preemptive(problem)
        room = _Room(queue, self.pooled)
        waiting = ordered(np.flatnonzero(queue.can & ~queue.holds), queue.jobs.arrival)
        blocked: set[int] = set()  # tenants with a job that did not fit, which blocks the others
        borrowers = []
        for tenant, row in _in_turn(waiting, queue.jobs.tenant[waiting], blocked):
            gpu_type = None if room.large[row] else room.within_quota(row)
            if gpu_type is not None:
                room.take(row, gpu_type)
                continue
            if not self.overtake:
                blocked.add(tenant)
            borrowers += [row] if room.large[row] and self.borrow else []
        borrowed = False
        for row in borrowers:
            gpu_type = room.idle(row)
            if gpu_type is not None:
                room.take(row, gpu_type)
                borrowed = True
        placements = placed(queue, room.requests, self.placement)
        # who did not fit finds less room in the next round; but the jobs behind a borrower that runs may pass
        same = not borrowed and len(placements) == int(queue.holds.sum()) + len(room.requests)
        notes = {row: room.larger_than_quota(row) for row in waiting[room.large[waiting]].tolist()}
        return Schedule(self.name, problem, placements, notes=notes, stands=INFINITY if same else None)


def _in_turn(waiting: Array, tenants: Array, blocked: set[int]) -> Iterator[tuple[int, int]]:
    """Yield tenant and row of those ``waiting``, in their order; a tenant that is ``blocked`` meanwhile has no more."""
    order = np.argsort(tenants, kind="stable")
    bounds = np.flatnonzero(np.diff(tenants[order], prepend=-1, append=-1))
    queues = {int(tenants[order[first]]): iter(order[first:last]) for first, last in pairwise(bounds.tolist())}
    heads = [(int(next(places)), tenant) for tenant, places in queues.items()]
    heapify(heads)
    while heads:
        place, tenant = heads[0]
        yield tenant, int(waiting[place])
        after = None if tenant in blocked else next(queues[tenant], None)
        if after is None:
            heappop(heads)
        else:
            heapreplace(heads, (int(after), tenant))


class _Room(Room):
    """The free GPUs of a round, and the rest of each tenant's quota, while jobs start."""

    def __init__(self, queue: Queue, pooled: bool) -> None:
        super().__init__(queue)
        self.pooled = pooled
        weights, capacity = queue.jobs.tenant_weight.tolist(), queue.cluster.capacity
        sizes = [int(capacity.sum())] if pooled else capacity.tolist()
        #: (T, 1 or k): GPUs of any type, or of each.
        self.quota = np.array([quotas(weights, size) for size in sizes], dtype=np.int64).T.reshape(-1, len(sizes))
        self.used = np.zeros_like(self.quota)
        held = np.flatnonzero(queue.holds)
        alone = held[queue.last_type[held] >= 0]
        column = np.zeros_like(alone) if pooled else queue.last_type[alone]
        np.add.at(self.used, (queue.jobs.tenant[alone], column), queue.jobs.gpus[alone])
        for row in held[queue.last_type[held] < 0].tolist():
            for host, gpus in queue.last[row]:
                self.used[queue.jobs.tenant[row], self._column(queue.cluster.type_of[host])] += gpus
        own = self.quota[queue.jobs.tenant]
        fits = queue.allowed & (queue.jobs.gpus[:, None] <= own)
        #: (n,): whether a job does not fit its tenant's quota on any type that could hold it now.
        self.large: Array = np.logical_not(any_type(fits))

    def _column(self, gpu_type: int) -> int:
        return 0 if self.pooled else gpu_type

    def larger_than_quota(self, row: int) -> str:
        """Return how a job that is ``large`` does not fit its tenant's quota."""
        jobs, types = self.queue.jobs, self.queue.cluster.types
        own, gpus = self.quota[jobs.tenant[row]], int(jobs.gpus[row])
        why = f"needs {gpus} GPUs of {own[0]}"
        if not self.pooled:
            why = "; ".join(f"{types[each]}: needs {gpus} GPUs of {own[each]}" for each in self.queue.open_to(row))
        return f"larger than the quota of {jobs.tenant_of(row)!r}: {why}"

    def within_quota(self, row: int) -> int | None:
        """Return the fastest type with room for a job in its tenant's quota and on hosts that work; None for none."""
        tenant, gpus = self.queue.jobs.tenant[row], self.queue.jobs.gpus[row]
        left = self.quota[tenant] - self.used[tenant]
        return next((each for each in self.types(row) if gpus <= left[self._column(each)]), None)

    def idle(self, row: int) -> int | None:
        """Return the fastest type with room for a job whose tenant runs nothing, without its quota; None for none."""
        return None if self.used[self.queue.jobs.tenant[row]].any() else next(iter(self.types(row)), None)

    def take(self, row: int, gpu_type: int) -> None:
        """Take the GPUs of a job from the free ones and from its tenant's quota."""
        super().take(row, gpu_type)
        self.used[self.queue.jobs.tenant[row], self._column(gpu_type)] += self.sizes[row]

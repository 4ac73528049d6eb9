"""The fair GPU-time of jobs and tenants, and how many jobs are present, as a run goes on.

It is what `fairopt.simulation.gpu_time.GpuTime` says with its default options, for each job at its completion: nothing
is kept but what is needed for the jobs present.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation.gpu_time import Window, job_part, overlap, quota, tenant_share


@dataclass(slots=True)
class _Alike:
    """Active jobs of a tenant with the same size and weight: how many, and the fair GPU-time of each so far."""

    gpus: int
    weight: Number
    due: Number
    count: int = 0


@dataclass(slots=True)
class _Tenant:
    """A tenant's active jobs, and what accrued up to ``since``, by job and for the tenant in the window."""

    quota: Number
    since: Number
    fair: Number
    demand: int = 0
    alike: dict[tuple[int, Number], _Alike] = field(default_factory=dict)

    def pass_to(self, time: Number, window: Window | None) -> None:
        """Let all accrue up to a time."""
        if time == self.since:
            return
        if self.demand and time > self.since:
            share = tenant_share(self.demand, self.quota, True)
            # jobs are counted by weight, so that no rounding error is left when all of them are gone
            weights: Number = 0
            for each in self.alike.values():
                weights += each.weight * each.count
            span, weight, part = time - self.since, None, weights
            for each in self.alike.values():
                if each.weight != weight:
                    weight, part = each.weight, job_part(each.weight, weights, share)
                each.due += (part if part < each.gpus else each.gpus) * span
            self.fair += share * overlap(window, self.since, time)
        self.since = time

    def change(self, gpus: int, weight: Number, by: int) -> Number:
        """Count a job that becomes active (1), or is not any more (-1); return what is due to one like it so far."""
        self.demand += by * gpus
        alike = self.alike.get((gpus, weight))
        if alike is None:
            alike = self.alike[gpus, weight] = _Alike(gpus, weight, self.since * 0)
        alike.count += by
        if not alike.count:
            del self.alike[gpus, weight]
        return alike.due


class FairShares:
    """Fair shares over time; completions come by rising time, arrivals are those of the trace.

    ``queue`` is that of all jobs of the trace, ``able`` (n,) says which of them are active from their arrival on;
    ``window`` is that in which the fair GPU-time of tenants counts. Source: ASTRAEA Sec. 4.2, Eq. (6)-(14).
    """

    def __init__(self, queue: Queue, able: Sequence[bool], window: Window | None) -> None:
        jobs = queue.jobs
        gpus, tenants = int(queue.cluster.gpus.sum()), jobs.tenant_weight.tolist()
        weights = sum(tenants)
        self._window, self._able = window, able
        self._arrival, self._now, self._next, self._last = jobs.arrival.tolist(), queue.now, 0, len(jobs)
        self._tenants = [_Tenant(quota(each, weights, gpus), queue.now, queue.now) for each in tenants]
        self._owner, self._size, self._weight = jobs.tenant.tolist(), jobs.gpus.tolist(), jobs.weight.tolist()
        self._count, self._presence = 0, queue.now
        self._begun: dict[int, tuple[Number, Number]] = {}  # what had accrued when a job came

    def pass_to(self, time: Number) -> None:
        """Let all accrue up to a time: the jobs that arrive before it become active."""
        while self._next < self._last and self._arrival[self._next] < time:
            row, self._next = self._next, self._next + 1
            if self._able[row]:
                self._enter(row, self._arrival[row])
        self._at(time)

    def complete(self, row: int, time: Number) -> tuple[Number, Number]:
        """Return what accrued for a job that is completed at a time, not before that of the last call.

        That is the number of jobs present times time, and its fair GPU-time, both from its arrival on.
        """
        self.pass_to(time)
        (presence, fair), tenant = self._begun.pop(row), self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window)
        due = tenant.change(self._size[row], self._weight[row], -1)
        self._count -= 1
        return self._presence - presence, due - fair

    def of(self, row: int, time: Number) -> Number:
        """Return the fair GPU-time of a job until a time, not before that of the last call; 0 if it fits no type."""
        self.pass_to(time)
        begun = self._begun.get(row)
        if begun is None:
            return time * 0
        tenant = self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window)
        due: Number = tenant.alike[self._size[row], self._weight[row]].due
        return due - begun[1]

    def of_tenants(self, time: Number) -> list[Number]:
        """Return the fair GPU-time of each tenant within the window so far."""
        self.pass_to(time)
        for tenant in self._tenants:
            tenant.pass_to(time, self._window)
        return [tenant.fair for tenant in self._tenants]

    def _enter(self, row: int, time: Number) -> None:
        self._at(time)
        tenant = self._tenants[self._owner[row]]
        tenant.pass_to(time, self._window)
        due = tenant.change(self._size[row], self._weight[row], 1)
        self._count += 1
        self._begun[row] = self._presence, due

    def _at(self, time: Number) -> None:
        self._presence += self._count * (time - self._now)
        self._now = time

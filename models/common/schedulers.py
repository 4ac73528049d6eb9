"""Shared parts of schedulers: job times, free GPUs, leases, jobs that stay, what is kept of each, checks of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.program import INFINITY, Array, Number, cast
from fairopt.simulation.placement import (
    ByThroughput,
    Consolidated,
    Placement,
    Preference,
    Request,
    Requests,
    by_throughput,
)

V = TypeVar("V")


def fastest(queue: Queue) -> Array:
    """Return each job's throughput (n,) on the fastest type that can hold it with all hosts up; 0 if none can."""
    speeds = np.where(queue.fits, queue.jobs.throughput, 0)
    return speeds[:, 0] if speeds.shape[1] == 1 else speeds.max(axis=1)


def time_left(queue: Queue, row: int, gpu_type: int) -> Number:
    """Return the time that a job's remaining work takes on a type, without loading."""
    left: Number = queue.remaining[row] / queue.jobs.throughput[row, gpu_type]
    return left


def until_free(queue: Queue, row: int) -> Number:
    """Return how much longer a running job holds its GPUs if it stays, at the speed of its slowest type."""
    held: Number = queue.setup[row] + time_left(queue, row, queue.last_gpu_type(row))
    return held


def finish_time_fairness(
    queue: Queue, rows: Sequence[int], contention: Sequence[Number], *, gang_share: bool = False
) -> list[Number]:
    """Return rho for each of ``rows``: the time to completion if the job runs from now on, over its fair time.

    The time to completion is the job's age plus its remaining time on its fastest type. The fair time is its time alone
    on its fastest type (T*), times N, the number of jobs that share the cluster (``contention``, for each of ``rows``).
    Above 1 the job has lost by sharing. With ``gang_share`` the fair time is the time on a cluster of 1/N of the GPUs:
    a gang of d GPUs larger than M/N runs for the part M/(N d) of the time, and a smaller one gains nothing from the
    other GPUs.

    Rows must fit some type.

    Source: ASTRAEA Sec. 4.1.2 (rho = T / (T* N)); FFT Sec. 6.1.5 (rho = T_sh / T_id, 1/N of the cluster).
    """
    at = np.asarray(rows, dtype=np.int64)
    speed, gpus = fastest(queue)[at], int(queue.cluster.capacity.sum())
    shared = queue.now - queue.jobs.arrival[at] + queue.remaining[at] / speed
    alone, slowdown = queue.jobs.work[at] / speed, np.array(contention)
    if gang_share:
        slowdown = np.maximum(1, cast(queue.jobs.gpus[at] * slowdown, queue.number) / gpus)
    rhos: list[Number] = (shared / (alone * slowdown)).tolist()
    return rhos


def ordered(rows: Sequence[int] | Array, *keys: Array) -> Array:
    """Return ``rows`` by the first of ``keys`` (n,), then by the second, and so on; ties keep their order."""
    order = np.asarray(rows, dtype=np.int64)
    for key in reversed(keys):
        order = order[np.argsort(key[order], kind="stable")]
    return order


def leases_end(queue: Queue) -> Number:
    """Return when the first of the leases ends that jobs hold now; infinity where there is none."""
    return min(queue.lease[queue.holds].tolist(), default=INFINITY)


def stands_while_ahead(queue: Queue, requests: Requests, placement: Placement) -> Number | None:
    """Return until when `choose` and `placed` answer the same, where jobs that run only get ahead of those that wait.

    That is so under orders by what is left to do. All ``requests`` fit together, so none of them is passed over in any
    order. A job that waits finds no more room than before, because those that were ahead of it still are, and others
    may have joined them. But each request must be for the type that its job asks for first: else the job would take
    that type once it is ahead of those that hold it. And the placement must leave jobs where they run.
    """
    if type(placement) is not Consolidated:
        return None
    if (by_throughput.first(queue)[requests.rows] != requests.gpu_types).any():
        return None
    return leases_end(queue)


def lease_length(queue: Queue, lease: object) -> Number:
    """Return how long a ``lease`` lasts; None is one round."""
    return queue.length if lease is None else queue.number(exact(lease, "lease"))


def non_preemptive(queue: Queue) -> Queue:
    """Return the queue in which every job that ran in the last round holds a lease on its GPUs for this one.

    `choose` and `placed` then leave those jobs where they are. Jobs whose host failed get no lease: they wait again.
    """
    lease = queue.lease.copy()
    lease[queue.running] = queue.end
    made = replace(queue, lease=lease)
    made.recall(queue)
    return made


#: The type that a job runs on, then the others, the fastest for it first.
staying_first = ByThroughput(stay=True)


def by_arrival(queue: Queue) -> Array:
    """Return one number for each job (n,), by which jobs keep the order in which they came."""
    return np.zeros(len(queue))


class Room:
    """The GPUs of each type that are free while jobs are chosen, and the ``requests`` of those chosen so far.

    ``order`` ranks the types of a job, best first. With a ``placement`` a job must find hosts, too, together with all
    jobs before it.
    """

    def __init__(self, queue: Queue, order: Preference = by_throughput, placement: Placement | None = None) -> None:
        self.queue, self.requests, self._order, self._placement = queue, list[Request](), order, placement
        self.left: list[int] = queue.room.tolist()
        self.sizes: list[int] = queue.jobs.gpus.tolist()
        self._allowed: list[list[bool]] = queue.allowed.tolist()
        self._free = None if placement is None else queue.free(queue.leased)

    def types(self, row: int) -> list[int]:
        """Return the types with room for a job, the best first."""
        size = self.sizes[row]
        if not any(able and left >= size for able, left in zip(self._allowed[row], self.left, strict=True)):
            return []  # ranking the types of every job that waits would take most of the time
        return [gpu_type for gpu_type in self._order(self.queue, row) if self.left[gpu_type] >= size]

    def start(self, row: int) -> bool:
        """Start a job on the best type with room; return whether there was one."""
        for gpu_type in self.types(row):
            if self._placed(Request(row, (gpu_type,))):
                self.take(row, gpu_type)
                return True
        return False

    def take(self, row: int, gpu_type: int) -> None:
        """Take a job's GPUs."""
        self.left[gpu_type] -= self.sizes[row]
        self.requests.append(Request(row, (gpu_type,)))

    def _placed(self, request: Request) -> bool:
        if self._placement is None or self._free is None:
            return True
        requests = [*self.requests, request]
        return len(self._placement.place(self.queue, requests, self._free)) == len(requests)


def open_with(queue: Queue, row: int, gpus: int) -> list[int]:
    """Return the types that a job may run on now with one of its numbers of GPUs; with some it has no speed there."""
    profile, there = queue.jobs.profile(row), queue.open_to(row)
    return there if profile is None else [each for each in there if profile.speed(0, gpus, 1)[each]]


@dataclass(frozen=True)
class Adapted:
    """By name, how often each job present was ``restarted``, and the ``most`` GPUs that it has run with."""

    restarted: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    def after(self, queue: Queue, placements: Mapping[int, Spots]) -> Adapted:
        """Return the same after a round; a job is restarted that ran before and now does so elsewhere, or again."""
        restarted, most = {}, {}
        for row, name in enumerate(queue.jobs.names):
            spots = placements.get(row, ())
            stayed = queue.running[row] and spots == queue.last[row]
            again = bool(spots) and bool(queue.last[row]) and not stayed
            restarted[name] = self.restarted.get(name, 0) + again
            most[name] = max(self.most.get(name, 0), sum(gpus for _, gpus in spots))
        return Adapted(restarted, most)

    def sizes(self, queue: Queue, row: int, growth: int | None) -> list[int]:
        """Return a job's numbers of GPUs up to ``growth`` times what it has run with, the least at any rate."""
        sizes = list(queue.jobs.sizes(row))
        most = sizes[-1] if growth is None else growth * self.most.get(queue.jobs.names[row], 0)
        return [each for each in sizes if each <= max(most, sizes[0])]

    def pause(self, queue: Queue, row: int, pause: float) -> float:
        """Return the time of a restart: that of the job's profile, else ``pause``."""
        profile = queue.jobs.profile(row)
        return pause if profile is None or profile.restart is None else float(profile.restart)

    def moved(self, queue: Queue, row: int, pause: float) -> float:
        """Return the factor (T - N S) / (T + S) on a job that moves: its age T, restarts N, and S.

        Source: Pollux, OSDI 2021, Sec. 4.2.1.
        """
        pause = self.pause(queue, row, pause)
        age, times = float(queue.now - queue.jobs.arrival[row]), self.restarted.get(queue.jobs.names[row], 0)
        return max(age - times * pause, 0.0) / (age + pause) if age + pause else 1.0


@dataclass(frozen=True)
class Tally(Generic[V]):
    """What is kept ``of`` each job or tenant, by name, as it is at ``until``, where it changes with time.

    The policy says what that is: a number mostly.
    """

    of: Mapping[str, V] = field(default_factory=dict)
    until: Number = 0

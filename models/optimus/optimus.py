"""Optimus: each round GPUs go one by one to the job whose remaining time they shorten most."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import open_with
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array
from fairopt.simulation.placement import over_hosts, take


@dataclass(frozen=True)
class Optimus(Policy):
    """Each job that comes first gets its least number of GPUs, then the job that gains most gets the next, and so on.

    What a job gains is the fall of its remaining time with the next larger of its numbers of GPUs, on its fastest type,
    by the GPUs that this takes. Jobs that keep their number stay where they are; the others are put, those with the
    fewest GPUs first, onto the hosts with the most free ones.

    Remaining times are those of the jobs' profiles, changes of speed to come included: the "oracle" of the comparison
    in Pollux's paper, where Optimus itself fits a curve to the loss. Parameter servers and workers are not told apart.

    Source: Optimus, EuroSys 2018, Sec. 4.1; Pollux's code, simulator/optimus.py ("Optimus+Oracle").

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Optimus(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of optimus, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "optimus"
    source = "Optimus, EuroSys 2018, Sec. 4.1"
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS})

    def decide(self, problem: Queue, state: None, solve: Session) -> Schedule:
        """Share and place the round's GPUs; see `Policy.decide`."""
        sizes, placements = self.sizes(problem), dict(problem.leased)
        for row, gpus in sizes.items():
            if problem.running[row] and gpus == sum(each for _, each in problem.last[row]):
                placements[row] = problem.last[row]
        free = problem.free(placements)
        for row in sorted(sizes, key=lambda row: sizes[row]):
            if row not in placements and (spots := self._spots(problem, row, sizes[row], free)):
                placements[row] = spots
                take(free, spots)
        return Schedule(self.name, problem, placements)

    def sizes(self, queue: Queue) -> dict[int, int]:
        """Return how many GPUs each job gets that gets any, were all hosts one."""
        room, sizes = int(queue.room.sum()), {}
        for row in queue.able:
            least = min(each for each in queue.jobs.sizes(row) if open_with(queue, row, each))
            if not queue.holds[row] and least <= room:
                sizes[row], room = least, room - least
        gains: list[tuple[float, int, int]] = []
        for row in sizes:
            self._offer(queue, row, sizes[row], gains)
        heapify(gains)
        while gains:
            gain, row, more = heappop(gains)
            if gain >= 0:
                break
            if more - sizes[row] <= room:
                room -= more - sizes[row]
                sizes[row] = more
                self._offer(queue, row, more, gains)
        return sizes

    def _offer(self, queue: Queue, row: int, gpus: int, gains: list[tuple[float, int, int]]) -> None:
        """Add what a job would gain, less than 0 where it does, by its next number of GPUs."""
        larger = [each for each in queue.jobs.sizes(row) if each > gpus and open_with(queue, row, each)]
        if larger:
            fall = time_left(queue, row, gpus) - time_left(queue, row, larger[0])
            heappush(gains, (-fall / (larger[0] - gpus), row, larger[0]))

    def _spots(self, queue: Queue, row: int, gpus: int, free: Array) -> Spots:
        """Return GPUs on the emptiest hosts, of the fastest type that has so many; () for none."""
        able = open_with(queue, row, gpus)
        for gpu_type in (each for each in queue.by_speed(row) if each in able):
            hosts = np.array(queue.hosts(gpu_type), dtype=np.int64)
            if spots := over_hosts(hosts, free[hosts], gpus):
                return spots
        return ()


def time_left(queue: Queue, row: int, gpus: int) -> float:
    """Return the time that a job's remaining work takes with so many GPUs of its fastest type, on few hosts."""
    jobs, able = queue.jobs, open_with(queue, row, gpus)
    work, left = float(jobs.work[row]), float(queue.remaining[row])
    profile = jobs.profile(row)
    if profile is None:
        return left / max(float(jobs.throughput[row, each]) for each in able)
    times = [profile.time(gpus, each, work) - profile.time(gpus, each, work - left) for each in able]
    return float(min(times))

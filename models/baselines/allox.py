"""AlloX: jobs are matched to places in the sequences of machines, for the least sum of completion times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from fairopt.backends import Session
from fairopt.later import library
from fairopt.models.common.schedulers import Tally, fastest, non_preemptive, time_left, until_free
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Queue, Spots
from fairopt.program import INFINITY, Array, Number
from fairopt.simulation import Consolidated, Placement, Request, placed


@dataclass(frozen=True)
class AlloX(Policy):
    """Each round, all waiting jobs are matched to places on machines; the first job of a free machine starts.

    * ``alpha``: the fraction of the tenants with jobs waiting, at least one, whose jobs are matched first: those with
      the least progress, GPU-time received over weight. 1 matches all at once. The others are matched to the machines
      that these leave idle.
    * ``most``: the largest number of waiting jobs that are matched at once, None for all. First those with the shortest
      times on their fastest types; the next ones find the machines as these leave them, ready when the last of them is
      done, until no job that is left fits into the GPUs that are. A matching of all would put longer jobs closer to the
      ends of sequences, too, but doing it by portions can change the types of jobs.
    * ``placement``: how hosts are chosen for jobs that start.

    A running job is not stopped. AlloX is for jobs of one GPU each, or all of one size, for which its matching is
    exact. Machines are then slots of that many GPUs. A slot is ready when the job that runs there completes, given its
    remaining work and speed. Different sizes are our reading: a slot has the GPUs of the smallest job present, and a
    job of d GPUs counts on a slot of g GPUs as d / g times as long, which is the same GPU-time. Jobs then start in the
    order of the matching, each on its type, as far as whole gangs fit. With one size, exactly the first job of each
    sequence on a free slot starts. A slot may stay idle on purpose, for a job that waits for a faster type.

    The matching ignores the time for moving and loading. It is computed in floats.

    Source: AlloX, EuroSys 2020; ASTRAEA Sec. 6.1.5 (tenants of least progress); FFT Sec. 2.3, 6.1.3-6.1.4 (no
    switching; equal demands).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(AlloX(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of allox, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "allox"
    source = "AlloX, EuroSys 2020; ASTRAEA, TPDS 2022, Sec. 6.1.5; FFT, ICS 2025, Sec. 6.1.4"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.RUNS_TO_COMPLETION})
    #: The GPU-time that each tenant has received so far, in whole rounds.
    states = (Tally[Number],)
    alpha: object = within(1, above=0, most=1)
    most: int | None = within(100, least=1)
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Tally[Number], solve: Session) -> Schedule:
        """Keep running jobs, match waiting ones, and start the first ones; see `Policy.decide`."""
        queue = non_preemptive(problem)
        waiting = [row for row in queue.able if row not in queue.leased]
        requests: list[Request] = []
        for group in self._groups(queue, waiting, state):
            requests += self._starting(queue, group, requests)
        placements = placed(queue, requests, self.placement)
        after = state if exact(self.alpha, "allox, alpha") == 1 else _progressed(queue, state, placements)
        # nobody who waits fits, and no progress is counted: all goes on like this until something happens
        room = queue.capacity - queue.held_by(placements.values())
        rest = [row for row in waiting if row not in placements]
        stands = INFINITY if after is state and not _fit(queue, rest, room) else None
        return Schedule(self.name, problem, placements, state=after, stands=stands)

    def _groups(self, queue: Queue, waiting: Sequence[int], state: Tally[Number]) -> list[list[int]]:
        """Return the jobs of the tenants of least progress, and those of the others."""
        jobs = queue.jobs
        progress = {
            tenant: state.of.get(jobs.tenants[tenant], queue.number(0)) / jobs.tenant_weight[tenant]
            for tenant in {int(jobs.tenant[row]) for row in waiting}
        }
        order = sorted(progress, key=lambda tenant: (progress[tenant], tenant))
        first = set(order[: ceil(exact(self.alpha, "allox, alpha") * len(order))])
        return [[row for row in waiting if (jobs.tenant[row] in first) is least] for least in (True, False)]

    def _starting(self, queue: Queue, group: Sequence[int], requests: Sequence[Request]) -> list[Request]:
        """Return the jobs of a group that start now, with their types, beside running jobs and ``requests``."""
        jobs, left = queue.jobs, queue.room.copy()
        for request in requests:
            left[request.gpu_types[0]] -= jobs.gpus[request.row]
        if not _fit(queue, group, left):
            return []
        area = (queue.remaining[group] / fastest(queue)[group] * jobs.gpus[group]).tolist()
        order = [row for _, row in sorted(zip(area, group, strict=True))]
        size = int(jobs.gpus[[*group, *queue.leased, *(request.row for request in requests)]].min())
        held = zip(_held(queue, requests), queue.capacity.tolist(), strict=True)
        ready = [ready_times(*each, size) for each in held]
        matching: list[tuple[Number, Number, int, int]] = []  # when each begins, for how long; row, type
        for first in range(0, len(order), self.most or len(order)):
            portion = order[first : first + (self.most or len(order))]
            times = [_times(queue, row, size) for row in portion]
            there = matched(times, ready)
            for begin, time, at, row in zip(starts(times, there), times, there, portion, strict=True):
                length = time[at.gpu_type] or 0
                matching.append((begin, length, row, at.gpu_type))
                ready[at.gpu_type][at.machine] += length
            ready = [sorted(each) for each in ready]
            starting, room = _starting_in_order(queue, sorted(matching), left)
            if not _fit(queue, order[first + len(portion) :], room):
                break
        return starting


def _starting_in_order(
    queue: Queue, matching: Sequence[tuple[Number, Number, int, int]], left: Array
) -> tuple[list[Request], Array]:
    """Return the jobs that start, as far as whole gangs fit into ``left`` (k,), and what they leave."""
    sizes, room = queue.jobs.gpus.tolist(), left.tolist()
    starting = []
    for *_, row, gpu_type in matching:
        if sizes[row] <= room[gpu_type]:
            room[gpu_type] -= sizes[row]
            starting.append(Request(row, (gpu_type,)))
    return starting, np.array(room)


def _fit(queue: Queue, rows: Sequence[int], left: Array) -> bool:
    """Whether any of ``rows`` could start on the GPUs that are ``left`` (k,)."""
    return bool((queue.allowed[rows] & (queue.jobs.gpus[rows][:, None] <= left)).any()) if len(rows) else False


def _times(queue: Queue, row: int, size: int) -> list[Number | None]:
    """Return how long a job takes on a slot of ``size`` GPUs of each type; None where it cannot run now."""
    return [
        time_left(queue, row, gpu_type) * int(queue.jobs.gpus[row]) / size if able else None
        for gpu_type, able in enumerate(queue.allowed[row].tolist())
    ]


def _held(queue: Queue, requests: Sequence[Request]) -> list[list[tuple[int, Number]]]:
    """Return, for each type, (GPUs, time until they are free) of jobs that run and of those about to start."""
    held: list[list[tuple[int, Number]]] = [[] for _ in queue.cluster.types]
    gpu_type_of = queue.cluster.gpu_type.tolist()
    for row, spots in queue.leased.items():
        until = until_free(queue, row)
        for host, gpus in spots:
            held[gpu_type_of[host]].append((gpus, until))
    for request in requests:
        gpu_type = request.gpu_types[0]
        held[gpu_type].append((int(queue.jobs.gpus[request.row]), time_left(queue, request.row, gpu_type)))
    return held


def _progressed(queue: Queue, state: Tally[Number], placements: Mapping[int, Spots]) -> Tally[Number]:
    """Return the state after a round in which ``placements`` run."""
    held = dict(state.of)
    for row in placements:
        name = queue.jobs.tenant_of(row)
        held[name] = held.get(name, queue.now * 0) + int(queue.jobs.gpus[row]) * queue.length
    return Tally(held)


@dataclass(frozen=True)
class _MachinePosition:
    """A place in a machine's sequence: its type, its number among them, when it is ready, and the place from the end.

    A job at place k from the end delays k - 1 others and itself: its time counts k times in the total, and the time
    until the machine is ready counts once for each job.
    """

    gpu_type: int
    machine: int
    ready: Number
    from_end: int


def places(gpu_type: int, ready: Sequence[Number], jobs: int) -> list[_MachinePosition]:
    """Return the places of one type's machines that a matching of ``jobs`` jobs may need; ``ready`` rises.

    A place is left out if at least ``jobs`` others are no worse for every job: those on machines that are ready no
    later, and no farther from the end. In a matching that uses it, one of those is free, and moving the job there costs
    nothing. That leaves about n log n places of n for each machine.
    """
    found = []
    for machine, when in enumerate(ready[:jobs]):
        no_later = bisect_right(ready, when)
        from_end = 1
        while (from_end - 1) * no_later + machine < jobs:
            found.append(_MachinePosition(gpu_type, machine, when, from_end))
            from_end += 1
    return found


def matched(times: Sequence[Sequence[Number | None]], ready: Sequence[Sequence[Number]]) -> list[_MachinePosition]:
    """Return each job's place such that the sum of all completion times is least.

    * ``times`` (n, k): how long job j takes on a machine of type i, positive; None where it cannot run. Each job can
      run on some type that has machines.
    * ``ready``: for each type, when each of its machines is ready; rising, from 0.

    The matching is computed in floats. Of two with equal cost, up to rounding, either may be returned; `starts` removes
    the differences between identical machines.

    Errors: `NotInstalled` where scipy is missing.

    Source: AlloX, EuroSys 2020 (the bipartite graph); Horn, 1973, and Bruno et al., 1974 (why it is exact).
    """
    count = len(times)
    if not count:
        return []
    optimize = library("scipy.optimize", "matching jobs to machines", "rounds")
    found = [place for gpu_type, each in enumerate(ready) for place in places(gpu_type, each, count)]
    gpu_types = np.array([place.gpu_type for place in found], dtype=np.int64)
    when = np.array([place.ready for place in found], dtype=float)
    from_end = np.array([place.from_end for place in found], dtype=float)
    length = np.array([[np.inf if time is None else float(time) for time in row] for row in times])
    _, chosen = optimize.linear_sum_assignment(when + from_end * length[:, gpu_types])
    return [found[place] for place in chosen.tolist()]


def starts(times: Sequence[Sequence[Number | None]], matching: Sequence[_MachinePosition]) -> list[Number]:
    """Return when each job begins.

    Jobs equally far from the end, on machines of one type, can swap machines without changing the total; so can jobs of
    equal length. The choice is made here: in each type, the shortest jobs are farthest from the end, ties in order, and
    of those equally far the shortest goes to the machine that is free first. So matchings that differ only in such
    swaps start the same jobs at the same times.
    """
    free: dict[tuple[int, int], Number] = {(place.gpu_type, place.machine): place.ready for place in matching}
    shortest: dict[int, list[tuple[Number, int]]] = {}
    levels: dict[tuple[int, int], list[int]] = {}
    for job, place in enumerate(matching):
        shortest.setdefault(place.gpu_type, []).append((times[job][place.gpu_type] or 0, job))
        levels.setdefault((place.gpu_type, place.from_end), []).append(place.machine)
    coming = {gpu_type: iter(sorted(jobs)) for gpu_type, jobs in shortest.items()}
    begin: dict[int, Number] = {}
    for gpu_type, from_end in sorted(levels, reverse=True):
        for now, machine in sorted((free[gpu_type, machine], machine) for machine in levels[gpu_type, from_end]):
            time, job = next(coming[gpu_type])
            begin[job] = now
            free[gpu_type, machine] = now + time
    return [begin[job] for job in range(len(matching))]


def ready_times(held: Sequence[tuple[int, Number]], gpus: int, size: int) -> list[Number]:
    """Return when the machines of ``size`` GPUs each, made of ``gpus`` GPUs, are ready; rising.

    ``held`` are (GPUs, time until they are free) of those in use. GPUs form machines in the order in which they become
    free. A machine is ready when its last GPU is free; left-over GPUs form none.

    >>> ready_times([(2, 30), (2, 10)], 6, 2)
    [0, 10, 30]
    """
    taken = sum(count for count, _ in held)
    free: list[Number] = [0] * (gpus - taken)
    free += sorted(until for count, until in held for _ in range(count))
    return free[size - 1 :: size]

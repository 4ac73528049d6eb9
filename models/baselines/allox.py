"""AlloX: jobs are matched to places in the sequences of machines, for the least sum of completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.baselines.allox_matching import matched, ready_times, starts
from fairopt.models.common.job_times import fastest, time_left, until_free
from fairopt.models.common.non_preemptive import non_preemptive
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, Request, placed


@dataclass(frozen=True)
class Progress:
    """The GPU-time that each tenant has received so far, by name, in whole rounds."""

    held: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True)
class AlloX(Policy):
    """Each round, all waiting jobs are matched to places on machines; the first job of a free machine starts.

    * ``alpha``: the fraction of the tenants with jobs waiting, at least one, whose jobs are matched first: those with
      the least progress, GPU-time received over weight. 1 matches all at once. The others are matched to the machines
      that these leave idle.
    * ``most``: the largest number of waiting jobs that are matched, None for all: those with the shortest times on
      their fastest types. The others wait until some of these have started. A matching would put them at the ends of
      sequences, but leaving them out can change the types of the jobs that are matched.
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
    """

    problem = Queue
    name = "allox"
    source = "AlloX, EuroSys 2020; ASTRAEA, TPDS 2022, Sec. 6.1.5; FFT, ICS 2025, Sec. 6.1.4"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.RUNS_TO_COMPLETION})
    states = (Progress,)

    alpha: object = 1
    most: int | None = 300
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        place = "allox, alpha"
        require(0 < exact(self.alpha, place) <= 1, self.alpha, place, "Give a fraction above 0, at most 1")
        some = self.most is None or self.most >= 1
        require(some, self.most, "allox, most", "Give a number of jobs, or None for all")

    def decide(self, problem: Queue, state: Progress, solve: Session) -> Schedule:
        """Keep running jobs, match waiting ones, and start the first ones; see `Policy.decide`."""
        queue = non_preemptive(problem)
        waiting = [row for row in queue.able if row not in queue.leased]
        requests: list[Request] = []
        for group in self._groups(queue, waiting, state):
            requests += self._starting(queue, group, requests)
        placements = placed(queue, requests, self.placement)
        return Schedule(self.name, problem, placements, state=_progressed(queue, state, placements))

    def _groups(self, queue: Queue, waiting: Sequence[int], state: Progress) -> list[list[int]]:
        """Return the jobs of the tenants of least progress, and those of the others."""
        jobs = queue.jobs
        progress = {
            tenant: state.held.get(jobs.tenants[tenant], queue.number(0)) / jobs.tenant_weight[tenant]
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
        if not any((queue.allowed[row] & (jobs.gpus[row] <= left)).any() for row in group):
            return []
        speed = fastest(queue)
        area = {row: queue.remaining[row] / speed[row] * int(jobs.gpus[row]) for row in group}
        chosen = sorted(group, key=lambda row: (area[row], row))[: self.most]
        there = [*chosen, *queue.leased, *(request.row for request in requests)]
        size = min(int(jobs.gpus[row]) for row in there)
        capacity = queue.capacity.tolist()
        ready = [ready_times(*each, size) for each in zip(_held(queue, requests), capacity, strict=True)]
        times = [_times(queue, row, size) for row in chosen]
        matching = matched(times, ready)
        jobs_of = zip(starts(times, matching), times, matching, chosen, strict=True)
        starting = []
        for *_, row, gpu_type in sorted(
            (begin, time[at.gpu_type], row, at.gpu_type) for begin, time, at, row in jobs_of
        ):
            if jobs.gpus[row] <= left[gpu_type]:
                left[gpu_type] -= jobs.gpus[row]
                starting.append(Request(row, (gpu_type,)))
        return starting


def _times(queue: Queue, row: int, size: int) -> list[Number | None]:
    """Return how long a job takes on a slot of ``size`` GPUs of each type; None where it cannot run now."""
    return [
        time_left(queue, row, gpu_type) * int(queue.jobs.gpus[row]) / size if able else None
        for gpu_type, able in enumerate(queue.allowed[row])
    ]


def _held(queue: Queue, requests: Sequence[Request]) -> list[list[tuple[int, Number]]]:
    """Return, for each type, (GPUs, time until they are free) of jobs that run and of those about to start."""
    held: list[list[tuple[int, Number]]] = [[] for _ in queue.cluster.types]
    for row, spots in queue.leased.items():
        for gpu_type, gpus in enumerate(queue.held_by([spots]).tolist()):
            held[gpu_type].append((gpus, until_free(queue, row)))
    for request in requests:
        gpu_type = request.gpu_types[0]
        held[gpu_type].append((int(queue.jobs.gpus[request.row]), time_left(queue, request.row, gpu_type)))
    return held


def _progressed(queue: Queue, state: Progress, placements: Mapping[int, Spots]) -> Progress:
    """Return the state after a round in which ``placements`` run."""
    held = dict(state.held)
    for row in placements:
        name = queue.jobs.tenant_of(row)
        held[name] = held.get(name, queue.now * 0) + int(queue.jobs.gpus[row]) * queue.length
    return Progress(held)

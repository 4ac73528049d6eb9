"""AlloX: jobs are matched to places in the sequences of machines, for the least sum of completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.models.baselines.allox_matching import matched, ready_times, starts
from fairopt.models.common.job_times import fastest, time_left, until_free
from fairopt.models.common.non_preemptive import holding
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, Want, placed


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
        if not 0 < exact(self.alpha, "allox, alpha") <= 1:
            raise BadInput(f"got {self.alpha}", place="allox, alpha", remedy="Give a fraction above 0, at most 1")
        if self.most is not None and self.most < 1:
            raise BadInput(f"got {self.most}", place="allox, most", remedy="Give a number of jobs, or None for all")

    def start(self, problem: Queue) -> Progress:
        """Return the state in which no tenant has received anything."""
        return Progress()

    def decide(self, problem: Queue, state: Progress, solve: Session) -> Schedule:
        """Keep running jobs, match waiting ones, and start the first ones; see `Policy.decide`."""
        queue = holding(problem)
        waiting = [row for row in range(len(queue)) if row not in queue.leased and queue.allowed[row].any()]
        wants: list[Want] = []
        for group in self._groups(queue, waiting, state):
            wants += self._starting(queue, group, wants)
        placements = placed(queue, wants, self.placement)
        return Schedule(self.name, problem, placements, state=_progressed(queue, state, placements))

    def _groups(self, queue: Queue, waiting: Sequence[int], state: Progress) -> list[list[int]]:
        """Return the jobs of the tenants of least progress, and those of the others."""
        number: type = Fraction if queue.exact else float
        jobs = queue.jobs
        progress = {
            tenant: state.held.get(jobs.tenants[tenant], number(0)) / jobs.tenant_weight[tenant]
            for tenant in {int(jobs.tenant[row]) for row in waiting}
        }
        order = sorted(progress, key=lambda tenant: (progress[tenant], tenant))
        first = set(order[: ceil(exact(self.alpha, "allox, alpha") * len(order))])
        return [[row for row in waiting if (jobs.tenant[row] in first) is least] for least in (True, False)]

    def _starting(self, queue: Queue, group: Sequence[int], wants: Sequence[Want]) -> list[Want]:
        """Return the jobs of a group that start now, with their types, beside running jobs and ``wants``."""
        jobs, capacity = queue.jobs, queue.capacity
        left = np.bincount(queue.cluster.kind, weights=queue.free(queue.leased), minlength=len(capacity)).astype(int)
        for want in wants:
            left[want.kinds[0]] -= jobs.gpus[want.row]
        if not any((queue.allowed[row] & (jobs.gpus[row] <= left)).any() for row in group):
            return []
        speed = fastest(queue)
        area = {row: queue.remaining[row] / speed[row] * int(jobs.gpus[row]) for row in group}
        chosen = sorted(group, key=lambda row: (area[row], row))[: self.most]
        there = [*chosen, *queue.leased, *(want.row for want in wants)]
        size = min(int(jobs.gpus[row]) for row in there)
        ready = [ready_times(held, int(capacity[kind]), size) for kind, held in enumerate(_held(queue, wants))]
        times = [_times(queue, row, size) for row in chosen]
        matching = matched(times, ready)
        begin = starts(times, matching)
        starting = []
        for job in sorted(
            range(len(chosen)), key=lambda job: (begin[job], times[job][matching[job].kind], chosen[job])
        ):
            row, kind = chosen[job], matching[job].kind
            if jobs.gpus[row] <= left[kind]:
                left[kind] -= jobs.gpus[row]
                starting.append(Want(row, (kind,)))
        return starting


def _times(queue: Queue, row: int, size: int) -> list[Number | None]:
    """Return how long a job takes on a slot of ``size`` GPUs of each type; None where it cannot run now."""
    return [
        time_left(queue, row, kind) * int(queue.jobs.gpus[row]) / size if able else None
        for kind, able in enumerate(queue.allowed[row])
    ]


def _held(queue: Queue, wants: Sequence[Want]) -> list[list[tuple[int, Number]]]:
    """Return, for each type, (GPUs, time until they are free) of jobs that run and of those about to start."""
    held: list[list[tuple[int, Number]]] = [[] for _ in queue.cluster.types]
    for row, spots in queue.leased.items():
        for kind, gpus in _by_kind(queue, spots).items():
            held[kind].append((gpus, until_free(queue, row)))
    for want in wants:
        kind = want.kinds[0]
        held[kind].append((int(queue.jobs.gpus[want.row]), time_left(queue, want.row, kind)))
    return held


def _by_kind(queue: Queue, spots: Spots) -> dict[int, int]:
    found: dict[int, int] = {}
    for host, gpus in spots:
        kind = int(queue.cluster.kind[host])
        found[kind] = found.get(kind, 0) + gpus
    return found


def _progressed(queue: Queue, state: Progress, placements: Mapping[int, Spots]) -> Progress:
    """Return the state after a round in which ``placements`` run."""
    held = dict(state.held)
    for row in placements:
        name = queue.jobs.tenants[queue.jobs.tenant[row]]
        held[name] = held.get(name, queue.now * 0) + int(queue.jobs.gpus[row]) * queue.length
    return Progress(held)

"""Tiresias: least attained service, and FFT's version of it, shortest remaining service."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.common.schedulers import staying_first, time_left
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, choose, placed


@dataclass(frozen=True)
class Attained:
    """By job name: GPU-time attained at its last promotion (``since_then``), and the start of its wait (``waits``)."""

    since_then: Mapping[str, Number] = field(default_factory=dict)
    waits: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True)
class LeastAttainedService(Policy):
    """Each round, jobs in queues by the GPU-time that they have received; the queue with the least goes first.

    * ``thresholds``: GPU-times, in the trace's unit of time, at which a job falls into the next queue; one hour of one
      GPU in a trace in seconds. () is a single queue, first come first served. None orders by GPU-time itself, without
      queues.
    * ``by_start``: a queue is ordered by first start, jobs that never started last; else by arrival.
    * ``promote``: a job whose wait exceeds this multiple of its running time so far goes back into the first queue, as
      if it had attained nothing; None for never.
    * ``skip``: who does not fit is passed over; else nobody overtakes it.
    * ``placement``: where the chosen go.

    Attained service is two-dimensional: GPUs times time held, loading included. Time run, for ``promote``, is that over
    the job's GPUs since it was last promoted. Tiresias has one type of GPU. Here a job that ran stays on its type where
    there is room, and others take the type with room that is fastest for them. As in the source, the operator chooses
    the thresholds and the knob.

    Source: Tiresias, NSDI 2019, discretised two-dimensional LAS (Tiresias-L); ASTRAEA Sec. 6.1.5.
    """

    problem = Queue
    name = "tiresias"
    source = "Tiresias, NSDI 2019; ASTRAEA, TPDS 2022, Sec. 6.1.5"
    # work-conserving by default: with ``skip``
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING})
    states = (Attained,)
    thresholds: Sequence[object] | None = (3600,)
    by_start: bool = False
    promote: object = None
    skip: bool = True
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        steps = [exact(value, "tiresias, thresholds") for value in self.thresholds or ()]
        rise = all(low < high for low, high in pairwise([Fraction(0), *steps]))
        require(rise, self.thresholds, "tiresias, thresholds", "Give positive GPU-times that rise")
        positive = self.promote is None or exact(self.promote, "tiresias, promote") > 0
        require(positive, self.promote, "tiresias, promote", "Give a positive factor, or None for never")

    def decide(self, problem: Queue, state: Attained, solve: Session) -> Schedule:
        """Promote, order and place; see `Policy.decide`."""
        names, waits = problem.jobs.names, self._waits(problem, state)
        since_then = self._promoted(problem, state, waits)
        service = [
            problem.attained[row] - since_then.get(name, problem.attained[row] * 0) for row, name in enumerate(names)
        ]
        steps = (
            None if self.thresholds is None else [problem.number(exact(each, "thresholds")) for each in self.thresholds]
        )
        # a job that could not run even alone blocks no others
        order = sorted(problem.able, key=lambda row: _key(problem, row, service[row], steps, self.by_start))
        requests = choose(problem, order, gpu_types=staying_first, skip=self.skip)
        placements = placed(problem, requests, self.placement)
        if self.promote is not None:
            waits |= {names[row]: problem.end for row in placements}
        return Schedule(self.name, problem, placements, state=Attained(since_then, waits))

    def _waits(self, queue: Queue, state: Attained) -> dict[str, Number]:
        """Return when each job's wait began; kept only where ``promote`` needs it."""
        if self.promote is None:
            return {}
        return {name: state.waits.get(name, queue.jobs.arrival[row]) for row, name in enumerate(queue.jobs.names)}

    def _promoted(self, queue: Queue, state: Attained, waits: Mapping[str, Number]) -> dict[str, Number]:
        if self.promote is None:
            return {}
        factor = queue.number(exact(self.promote, "tiresias, promote"))
        since_then = {name: state.since_then[name] for name in queue.jobs.names if name in state.since_then}
        for row, name in enumerate(queue.jobs.names):
            attained = queue.attained[row]
            ran = (attained - since_then.get(name, attained * 0)) / int(queue.jobs.gpus[row])
            if ran > 0 and queue.now - waits[name] >= factor * ran:
                since_then[name] = attained
        return since_then


def _key(
    queue: Queue, row: int, service: Number, thresholds: Sequence[Number] | None, by_start: bool
) -> tuple[Number, ...]:
    """Return a job's sort key: its queue, by attained ``service``, then its place in the queue."""
    arrival, started = queue.jobs.arrival[row], queue.started[row]
    if thresholds is None:
        return service, arrival, row
    level = bisect_right(thresholds, service)
    first = queue.now if started is None else started
    return (level, first, arrival, row) if by_start else (level, arrival, row)


@dataclass(frozen=True)
class Assigned:
    """The type that each job present queues for, by job name."""

    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShortestServiceQueues(Policy):
    """A queue for each type of GPU, which a job joins on arrival for good; shortest remaining service time first.

    * ``random``: a job joins the queue of a random type that it fits (``seed``); else that with the smallest sum of
      remaining service times. The paper says both.
    * ``gpu_time``: service time is GPUs times time, as in Tiresias; else time.
    * ``per_gpu``: a queue's sum is divided by the GPUs of its type, so that a type with more of them draws more jobs.
    * ``wait_for_hosts``: a job whose type has lost the hosts it needs waits for them; else it joins another queue. A
      job changes its type in no other case.
    * ``placement``: where the chosen go.

    Jobs that arrive together join one after another. Ties go to the type that is fastest for the job, then to the
    first. A job that does not fit is skipped. A job that ran before this policy took over keeps its type.

    Source: FFT Sec. 6.1.4 (Tiresias).
    """

    problem = Queue
    name = "tiresias-service"
    source = "FFT, ICS 2025, Sec. 6.1.4"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    states = (Assigned,)
    random: bool = False
    gpu_time: bool = True
    per_gpu: bool = False
    wait_for_hosts: bool = False
    seed: int = 0
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        require(self.seed >= 0, self.seed, "tiresias-service, seed", "Give a whole number, not negative")

    def decide(self, problem: Queue, state: Assigned, solve: Session) -> Schedule:
        """Let arrivals join queues, order each queue, place; see `Policy.decide`."""
        gpu_types = self._joined(problem, state)
        order = sorted(gpu_types, key=lambda row: (self._service(problem, row, gpu_types[row]), row))
        placements = placed(problem, choose(problem, order, gpu_types=lambda _, row: (gpu_types[row],)), self.placement)
        names, types = problem.jobs.names, problem.cluster.types
        after = Assigned({names[row]: types[gpu_type] for row, gpu_type in gpu_types.items()})
        return Schedule(self.name, problem, placements, state=after)

    def _joined(self, queue: Queue, state: Assigned) -> dict[int, int]:
        """Return the type that each job queues for; misfits have none."""
        at = {name: gpu_type for gpu_type, name in enumerate(queue.cluster.types)}
        known: dict[int, int] = {}
        for row, name in enumerate(queue.jobs.names):
            gpu_type = at[state.types[name]] if name in state.types else queue.last_gpu_type(row)
            able = queue.allowed[row]
            if gpu_type >= 0 and (able[gpu_type] or self.wait_for_hosts or not able.any()):
                known[row] = gpu_type
        total: list[Any] = [queue.now * 0] * len(at)
        for row, gpu_type in known.items():
            total[gpu_type] += self._service(queue, row, gpu_type)
        draws = np.random.default_rng((self.seed, queue.index))
        for row in queue.fitting:
            if row not in known:
                gpu_type = known[row] = self._joins(queue, row, total, draws)
                total[gpu_type] += self._service(queue, row, gpu_type)
        return known

    def _joins(self, queue: Queue, row: int, total: Sequence[Number], draws: np.random.Generator) -> int:
        """Return the type that a new job queues for; one with enough hosts up, if there is one."""
        gpu_types: list[int] = queue.open_to(row) or np.flatnonzero(queue.fits[row]).tolist()
        if self.random:
            return int(draws.choice(gpu_types))
        size, speeds = queue.cluster.capacity.tolist(), queue.jobs.throughput[row]
        load = {each: total[each] / size[each] if self.per_gpu else total[each] for each in gpu_types}
        return min(gpu_types, key=lambda gpu_type: (load[gpu_type], -speeds[gpu_type]))

    def _service(self, queue: Queue, row: int, gpu_type: int) -> Number:
        """Return a job's remaining service on a type, in GPU-time or in time."""
        left = time_left(queue, row, gpu_type)
        return left * int(queue.jobs.gpus[row]) if self.gpu_time else left

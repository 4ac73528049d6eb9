"""Tiresias: least attained service, and FFT's version of it, shortest remaining service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.common.schedulers import Tally, by_arrival, leases_end, ordered, staying_first
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number, objects
from fairopt.simulation import Consolidated, Placement, choose, placed

#: Of a job where jobs are promoted: the GPU-time that it had attained when it last was, and when its wait began.
Promoted: TypeAlias = tuple[Number, Number]


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

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(LeastAttainedService(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of tiresias, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "tiresias"
    source = "Tiresias, NSDI 2019; ASTRAEA, TPDS 2022, Sec. 6.1.5"
    # work-conserving by default: with ``skip``
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING})
    states = (Tally[Promoted],)
    thresholds: Sequence[object] | None = (3600,)
    by_start: bool = False
    promote: object = within(None, above=0)
    skip: bool = True
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = [exact(value, "tiresias, thresholds") for value in self.thresholds or ()]
        rise = all(low < high for low, high in pairwise([Fraction(0), *steps]))
        require(rise, self.thresholds, "tiresias, thresholds", "Give positive GPU-times that rise")

    def decide(self, problem: Queue, state: Tally[Promoted], solve: Session) -> Schedule:
        """Promote, order and place; see `Policy.decide`."""
        names, promoted = problem.jobs.names, self._promoted(problem, state)
        service = problem.attained.copy()
        for row, name in enumerate(names) if promoted else ():
            service[row] -= promoted[name][0]
        steps = None
        if self.thresholds is not None:
            steps = [problem.number(exact(each, "thresholds")) for each in self.thresholds]
        # a job that could not run even alone blocks no others
        order = ordered(problem.able, *_keys(problem, service, steps, self.by_start))
        requests = choose(problem, order, gpu_types=staying_first, skip=self.skip)
        placements = placed(problem, requests, self.placement)
        stands = self._stands(problem, placements, service, steps)
        # nobody waits, nobody takes the type that another one asks for first
        asked = staying_first.first(problem)[requests.rows]
        settled = stands is not None and len(placements) == len(problem.able) and (asked == requests.gpu_types).all()
        if self.promote is not None:
            promoted |= {names[row]: (promoted[names[row]][0], problem.end) for row in placements}
        return Schedule(
            self.name,
            problem,
            placements,
            state=Tally(promoted),
            stands=stands,
            settled=bool(settled),
            newcomers=by_arrival if self._in_order else None,
        )

    @property
    def _in_order(self) -> bool:
        """Whether those who come are all in the first queue, and are placed in the order in which they came."""
        return self.thresholds is not None and self.promote is None and type(self.placement) is Consolidated

    def _stands(
        self, queue: Queue, placements: Mapping[int, Spots], service: Array, thresholds: Sequence[Number] | None
    ) -> Number | None:
        """Return when the first job that runs falls into the next queue, while others wait, or a lease ends.

        Until then all keep their places in the order, so that each finds the same room; who runs stays on its type.
        Half a round early, because floats may add up to a threshold sooner than they should.
        """
        if thresholds is None or not self._in_order:
            return None
        stands = leases_end(queue)
        if len(placements) == len(queue.able):
            return stands  # nobody waits, and in any order each finds its own GPUs free
        rows = np.fromiter(placements, dtype=np.int64, count=len(placements))
        for threshold in thresholds:
            below = rows[service[rows] < threshold]
            if len(below):
                falls = ((threshold - service[below]) / queue.jobs.gpus[below]).min()
                stands = min(stands, queue.now + falls - queue.length / 2)
        return stands

    def _promoted(self, queue: Queue, state: Tally[Promoted]) -> dict[str, Promoted]:
        """Return what is kept of each job now; nothing where ``promote`` needs it not."""
        if self.promote is None:
            return {}
        factor, found = queue.number(exact(self.promote, "tiresias, promote")), dict[str, Promoted]()
        for row, name in enumerate(queue.jobs.names):
            attained = queue.attained[row]
            before, since = state.of.get(name, (attained * 0, queue.jobs.arrival[row]))
            ran = (attained - before) / int(queue.jobs.gpus[row])
            found[name] = attained if ran > 0 and queue.now - since >= factor * ran else before, since
        return found


def _keys(queue: Queue, service: Array, thresholds: Sequence[Number] | None, by_start: bool) -> Iterator[Array]:
    """Yield the jobs' sort keys: their queue, by attained ``service``, then their place in the queue."""
    if thresholds is None:
        yield service
    else:
        level = np.zeros(len(queue), dtype=np.int64)
        for threshold in thresholds:
            level += service >= threshold
        yield level
        if by_start:
            yield objects(queue.now if started is None else started for started in queue.started)
    yield queue.jobs.arrival


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

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(ShortestServiceQueues(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of tiresias-service, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "tiresias-service"
    source = "FFT, ICS 2025, Sec. 6.1.4"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    #: The number of the type that each job present queues for.
    states = (Tally[int],)
    random: bool = False
    gpu_time: bool = True
    per_gpu: bool = False
    wait_for_hosts: bool = False
    seed: int = within(0, least=0)
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Tally[int], solve: Session) -> Schedule:
        """Let arrivals join queues, order each queue, place; see `Policy.decide`."""
        joined = self._joined(problem, state)
        service = self._service(problem, joined)
        order = ordered(np.flatnonzero(joined >= 0), service)
        requests = choose(problem, order, gpu_types=joined)
        of_each = zip(problem.jobs.names, joined.tolist(), strict=True)
        after = Tally({name: gpu_type for name, gpu_type in of_each if gpu_type >= 0})
        # a job has one type, so that those who get ahead of others take nothing from them
        stands = leases_end(problem) if type(self.placement) is Consolidated else None
        placements = placed(problem, requests, self.placement)
        return Schedule(self.name, problem, placements, state=after, stands=stands)

    def _joined(self, queue: Queue, state: Tally[int]) -> Array:
        """Return the type that each job queues for (n,); -1 for unschedulable jobs."""
        known = np.array([state.of.get(name, -1) for name in queue.jobs.names], dtype=np.int64)
        for row in np.flatnonzero(known < 0).tolist():
            known[row] = queue.last_gpu_type(row)
        able = queue.allowed
        kept = able[np.arange(len(queue)), known] | ~able.any(axis=1) | self.wait_for_hosts
        known = np.where(kept, known, -1)
        new = [row for row in queue.fitting if known[row] < 0]
        if not new:
            return known
        there = np.flatnonzero(known >= 0)
        total = np.full(len(queue.cluster.types), queue.now * 0)
        np.add.at(total, known[there], self._service(queue, known)[there])
        draws = np.random.default_rng((self.seed, queue.index)) if self.random else None
        gpus = queue.jobs.gpus if self.gpu_time else np.ones_like(queue.jobs.gpus)
        for row in new:
            known[row] = self._joins(queue, row, total, draws)
            speed = queue.jobs.throughput[row, known[row]]
            total[known[row]] += queue.remaining[row] / (speed or 1) * gpus[row]
        return known

    def _joins(self, queue: Queue, row: int, total: Array, draws: np.random.Generator | None) -> int:
        """Return the type that a new job queues for; one with enough hosts up, if there is one."""
        gpu_types: list[int] = queue.open_to(row) or np.flatnonzero(queue.fits[row]).tolist()
        if draws is not None:
            return int(draws.choice(gpu_types))
        size, speeds = queue.cluster.capacity.tolist(), queue.jobs.throughput[row]
        load = {each: total[each] / size[each] if self.per_gpu else total[each] for each in gpu_types}
        return min(gpu_types, key=lambda gpu_type: (load[gpu_type], -speeds[gpu_type]))

    def _service(self, queue: Queue, gpu_types: Array) -> Array:
        """Return the jobs' remaining service on their types (n,), in GPU-time or in time."""
        speed = queue.jobs.throughput[np.arange(len(queue)), gpu_types]
        left = queue.remaining / np.where(speed.astype(bool), speed, 1)
        service: Array = left * queue.jobs.gpus if self.gpu_time else left
        return service

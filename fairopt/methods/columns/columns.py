"""The schedules that a job may have: when, with how many workers, and on which servers; worse ones are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, lcm

from fairopt.deadline import left
from fairopt.errors import BadInput
from fairopt.problem.batch import MOST_SLOTS, Batch, JobSchedule
from fairopt.program import Number

#: Where a job's workers and its PS are: (server, how many), servers rising.
Spots = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RunMode:
    """How a job may run, apart from where and when: types of ``worker`` and ``ps``, how many ``workers`` in all.

    ``together``: whether all is on one server (zeta_j). ``slots``: how long that takes at least (3k).
    """

    worker: int
    ps: int
    together: bool
    workers: int
    slots: int


@dataclass(frozen=True, eq=False)
class Times:
    """When jobs may run, and what completing is worth: slots 1 to ``slots``, utilities counted from the arrival.

    ``first`` (n,): the first slot that a job may run in. ``last`` (n,): the last slot in which its completion is worth
    more than nothing, 0 where there is none; completing later is never better than not to run. ``worth``: for each job
    f(t - r) at t = 1, ..., ``slots``, 0 before ``first``. ``modes``: how each job may run.
    """

    slots: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    worth: tuple[tuple[Number, ...], ...]
    modes: tuple[tuple[RunMode, ...], ...]

    @classmethod
    def of(cls, batch: Batch, slots: int | None = None, in_slot_of_arrival: bool = False) -> Times:
        """Return the times of a batch; ``slots`` None for as many as the optimum can need, see `_needed`.

        A job that arrives at r runs from slot r + 1 on, as slot r has passed: it is the interval (r - 1, r]. (3l) as
        printed allows slot r too: ``in_slot_of_arrival``. Errors: `BadInput` where ``slots`` is no whole number from
        1, or an f(0) is infinite.
        """
        if slots is not None and (not isinstance(slots, int) or isinstance(slots, bool) or slots < 1):
            raise BadInput(f"got {slots!r}", place="option slots", remedy="Give a whole number from 1, or None")
        if slots is not None and slots > MOST_SLOTS:
            raise BadInput(f"got {slots}", place="option slots", remedy=f"Give at most {MOST_SLOTS}")
        ways = tuple(run_modes(batch, job) for job in range(len(batch.jobs)))
        count = _needed(batch, ways) if slots is None else slots
        first = tuple(max(1, int(r) + (0 if in_slot_of_arrival else 1)) for r in batch.jobs.arrival)
        worth = tuple(_worths(batch, job, first[job], count) for job in range(len(batch.jobs)))
        last = tuple(max((t for t, value in enumerate(row, start=1) if value > 0), default=0) for row in worth)
        return cls(count, first, last, worth, ways)

    @cached_property
    def unit(self) -> Fraction | None:
        """A number that every worth is a multiple of, and so every revenue; None where one is a float."""
        values = [value for row in self.worth for value in row]
        if any(isinstance(value, float) for value in values):
            return None
        return Fraction(1, lcm(*{Fraction(value).denominator for value in values}))

    def rounded(self, bound: Fraction) -> Fraction:
        """Return the largest revenue that there can be up to a bound on it."""
        return bound if self.unit is None else bound // self.unit * self.unit


def _needed(batch: Batch, ways: Sequence[Sequence[RunMode]]) -> int:
    """Return a number of slots within which some optimal schedule ends; 1 at least.

    No job runs for nothing, so that none completes after the last slot in which its utility is positive. And after the
    last arrival no slot is left empty, so that all jobs end within the sum of their longest durations. Also, the time
    from one completion to the next is at most the sum of the shortest durations of the jobs that are still to complete:
    else all of these would complete sooner when run one after the other. The least of the three is taken.
    """
    durations = [[mode.slots for mode in each] for each in ways]
    runnable = [each for each in durations if each]
    latest = int(batch.jobs.arrival.max(initial=0))
    ranked = sorted(min(each) for each in runnable)
    one_by_one = sum(place * each for place, each in enumerate(ranked, start=1))
    cap = latest + min(sum(max(each) for each in runnable), one_by_one)
    useful = (_last_positive(batch, job, cap) for job, each in enumerate(durations) if each)
    return max(1, min(cap, max(useful, default=1)))


def run_modes(batch: Batch, job: int) -> tuple[RunMode, ...]:
    """Return how a job may run; modes with more workers that take as many slots are left out.

    Fewer workers in as many slots use less on the same servers, so that no optimum is lost, of whatever prices.

    Source: Astraea (posted prices) (3e), (3g), (3i), (3k).
    """
    found = []
    for worker, ps in product(range(len(batch.worker_types)), range(len(batch.ps_types))):
        if not batch.ps[:, ps].any():
            continue
        with_ps = batch.workers[batch.ps[:, ps] > 0, worker]
        for together, most in ((True, with_ps.max(initial=0)), (False, batch.workers[:, worker].sum())):
            before = 0
            for workers in range(1, min(int(batch.jobs.chunks[job]), int(most)) + 1):
                slots = batch.duration(job, workers, together, worker, ps)
                mode = RunMode(worker, ps, together, workers, slots)
                if slots != before and (together or _placeable(batch, mode)):
                    found.append(mode)
                    before = slots
    return tuple(found)


def ps_needed(batch: Batch, worker: int, ps: int, elsewhere: int) -> int:
    """Return the PS that a server must give for ``elsewhere`` workers elsewhere, by types: b_p z >= b_w y, 1 at least.

    Source: Astraea (posted prices) (3g), (3i).
    """
    ratio: Fraction = batch.worker_bandwidth[worker] / batch.ps_bandwidth[ps]
    return max(1, ceil(elsewhere * ratio))


def hosts(batch: Batch, mode: RunMode) -> Iterator[tuple[int, int, int]]:
    """Yield (server of the PS, workers there, PS there) for a mode, with as few PS as (3g) and (3i) allow.

    (3i) as printed holds of servers without PS too, and then forbids every placement on one server; it is read of
    servers with PS. Each of them must then serve all workers elsewhere, so that a second one is never of use.
    """
    needed = [ps_needed(batch, mode.worker, mode.ps, count) for count in range(mode.workers + 1)]
    for server, (here, there) in enumerate(zip(batch.workers[:, mode.worker], batch.ps[:, mode.ps], strict=True)):
        least, most = (mode.workers, mode.workers) if mode.together else (0, mode.workers - 1)
        for workers in range(least, min(most, int(here)) + 1):
            ps = needed[mode.workers - workers]
            if ps <= there:
                yield server, workers, ps


def placements(batch: Batch, mode: RunMode) -> Iterator[tuple[Spots, Spots]]:
    """Yield every (workers, PS) by server of a mode, with no more PS than needed."""
    room = [int(each) for each in batch.workers[:, mode.worker]]
    for server, workers, ps in hosts(batch, mode):
        others = [(other, there) for other, there in enumerate(room) if other != server and there]
        for rest in _spread(mode.workers - workers, others):
            yield tuple(sorted([*rest, *([(server, workers)] if workers else [])])), ((server, ps),)


def columns(batch: Batch, job: int, times: Times) -> Iterator[JobSchedule]:
    """Yield the schedules of a job that (5) needs: for each mode and placement, every slot to start in.

    A schedule is left out only where another one is as good and uses no more of anything: where it is longer than (3k)
    asks for, has more PS than (3g) and (3i) ask for, or is worth nothing.

    Source: Astraea (posted prices) Sec. 4.4, L_j of Eq. (5).
    """
    for mode in times.modes[job]:
        starts = range(times.first[job], times.last[job] - mode.slots + 2)
        if starts:
            for workers, ps in placements(batch, mode):
                for first in starts:
                    yield JobSchedule(job, first, first + mode.slots - 1, workers, ps, mode.worker, mode.ps)


def _spread(count: int, room: list[tuple[int, int]]) -> Iterator[Spots]:
    """Yield every way to put ``count`` workers on servers with room."""
    if not count:
        yield ()
    elif room and sum(there for _, there in room) >= count:
        (server, there), others = room[0], room[1:]
        for here in range(min(there, count), -1, -1):
            for rest in _spread(count - here, others):
                yield ((server, here), *rest) if here else rest


def _placeable(batch: Batch, mode: RunMode) -> bool:
    there = batch.workers[:, mode.worker]
    total = int(there.sum())
    return any(total - int(there[server]) >= mode.workers - workers for server, workers, _ in hosts(batch, mode))


def _last_positive(batch: Batch, job: int, cap: int) -> int:
    """Return the last slot up to ``cap`` whose completion is worth something; utilities never rise."""
    low, high = int(batch.jobs.arrival[job]), max(cap, int(batch.jobs.arrival[job]))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _worth(batch, job, middle) > 0 else (low, middle - 1)
    return low


def _worths(batch: Batch, job: int, first: int, count: int) -> tuple[Number, ...]:
    """Return what a job is worth that ends in each slot, 0 before the ``first`` in which it can run."""
    left()
    return tuple(_worth(batch, job, slot) if slot >= first else Fraction(0) for slot in range(1, count + 1))


def _worth(batch: Batch, job: int, slot: int) -> Number:
    time = Fraction(slot - int(batch.jobs.arrival[job]))
    try:
        return batch.jobs.utility[job].value(time)
    except ZeroDivisionError:
        raise BadInput(
            f"its utility is infinite at time {time}",
            place=f"job {batch.jobs.names[job]!r}, slot {slot}",
            remedy="Let jobs run from the slot after their arrival on, or give it another utility",
        ) from None

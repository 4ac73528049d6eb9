"""`Measuring`: the measures of a run, taken as it goes on; and `measure`, those of a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic
from fairopt.problem import Cluster, Queue, Trace, exact
from fairopt.problem.queue import Spots
from fairopt.program import INFINITY, Number
from fairopt.simulation.gpu_time import FairShares, IdealTime, Window, overlap, ratio, sharing_loss, time_on_own_part
from fairopt.simulation.history import History
from fairopt.simulation.measures_result import (
    UNITS,
    WORDS,
    WORSE_OFF_TOLERANCE,
    GpuUse,
    JobTable,
    Measures,
    Moves,
    Spread,
    TenantMeasures,
)
from fairopt.simulation.record import Change, Changes, Placed

__all__ = ["UNITS", "WORDS", "JobTable", "Measures", "Measuring", "Spread", "measure", "measured_window"]


class Fragments:
    """The GPUs that are free and the gangs that wait, as a run goes on: GPU-time that was free and of no use to them.

    In a round, F_i is the number of free GPUs of type i on working hosts after all placements, and J_i is the set of
    waiting jobs that suit the type (throughput, memory). If every gang in J_i is larger than F_i, no waiting job could
    use the GPUs, and all of F_i is fragmented. If some gang is not, but each is larger than the free GPUs of any single
    host of the type, F_i is scattered: a job could use it only across hosts. Otherwise the policy chose to leave the
    GPUs idle, and they count as neither. The same holds if no job waits for the type. The results are sums over types
    and rounds, times the rounds' length.

    Source: ours, for gangs. The idea (free GPUs that the workload's tasks cannot use) is from Weng et al., "Beware of
    Fragmentation", USENIX ATC 2023.
    """

    def __init__(self, queue: Queue) -> None:
        """Begin with all hosts free; ``queue`` is that of all jobs."""
        cluster = queue.cluster
        kinds: dict[tuple[bool, ...], tuple[int, ...]] = {}  # the types that jobs suit; few jobs differ
        for each in (suits := list(map(tuple, queue.suits.tolist()))):
            if each not in kinds:
                kinds[each] = tuple(np.flatnonzero(each).tolist())
        self._suits = [kinds[each] for each in suits]
        self._size = queue.jobs.gpus.tolist()
        self._gpus, self._free = cluster.gpus.tolist(), cluster.gpus.copy()
        self._type = cluster.gpu_type.tolist()
        self._hosts = cluster.hosts_by_type
        self._there = [int(self._free[hosts].sum()) for hosts in self._hosts]
        self._waiting: list[Counter[int]] = [Counter() for _ in cluster.types]  # of each type and size
        self._waits = [0] * len(cluster.types)
        self.usable = sum(self._gpus)
        self.fragmented: Number = queue.now
        self.scattered: Number = queue.now

    def change(self, spots: Spots, sign: int) -> None:
        """Count GPUs as free (1), or as taken (-1)."""
        for host, gpus in spots:
            self._free[host] += sign * gpus
            self._there[self._type[host]] += sign * gpus

    def works(self, host: int, sign: int) -> None:
        """Count a host, on which nobody runs, as working again (1), or as down (-1)."""
        self.change(((host, self._gpus[host]),), sign)
        self.usable += sign * self._gpus[host]

    def wait(self, row: int, sign: int) -> None:
        """Count a job as waiting (1), or not any more (-1)."""
        for gpu_type in self._suits[row]:
            self._waiting[gpu_type][self._size[row]] += sign
            self._waits[gpu_type] += sign

    def pass_(self, time: Number) -> None:
        """Let time pass in which nothing changes."""
        for gpu_type, waiting in enumerate(self._waiting):
            if not self._waits[gpu_type]:
                continue
            there = self._there[gpu_type]
            least = min((size for size, count in waiting.items() if count), default=0) if there else 0
            if least > there:
                self.fragmented += there * time
            elif least > 1 and least > self._free[self._hosts[gpu_type]].max():
                self.scattered += there * time


class Measuring:
    """The measures of a run, taken as it goes on: give it each of the run's `Changes`, and ask for the result.

    In memory are the trace, the jobs present, and a few numbers for each completed job. ``window`` cuts warm-up and
    cool-down: jobs are measured that arrive from its begin to before its end, and GPU-time within it. ``rows`` cuts by
    the jobs' rows in the trace, which rise by arrival: others are not measured. ``ideal`` is what finish-time fairness
    compares with. Numbers are those of the trace. Errors: `BadInput` for an empty window.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
    >>> from fairopt.simulation.engine import Engine
    >>> from fairopt.simulation.gpu_time import Window
    >>> trace, cluster = philly_trace().as_(float), philly_cluster()
    >>> engine = Engine(ShortestRemainingTimeFirst(), trace, cluster, length=300, rounds=40)
    >>> measuring = Measuring(trace, cluster, window=Window(3600, 7200))
    >>> for changes in engine:
    ...     measuring.add(changes)
    >>> found = measuring.result(engine.index)
    >>> found.jobs, round(found.row()["jct_mean"]), len(measuring.jobs().column("jct"))
    (21, 1588, 21)
    """

    def __init__(
        self,
        trace: Trace,
        cluster: Cluster,
        *,
        window: Window | None = None,
        rows: range | None = None,
        ideal: IdealTime = time_on_own_part,
    ) -> None:
        jobs = trace.jobs
        self.trace, self.cluster = trace, cluster
        self.window = None if window is None else measured_window(window, jobs.arithmetic)
        self._ideal = ideal
        self._queue = queue = Queue.fresh(jobs, cluster, length=1)
        self._able = [bool(each) for each in np.any(queue.fits, axis=1)]
        self._free, self._moves = Fragments(queue), Moves()
        self._shares = FairShares(queue, self._able, self.window)
        zero = queue.now
        self._gpus, self._tenants = GpuUse(*[zero] * len(fields(GpuUse))), [zero] * len(jobs.tenants)
        self._size, self._owner, self._arrival = jobs.gpus.tolist(), jobs.tenant.tolist(), jobs.arrival.tolist()
        self._measured = measured(self._arrival, self.window, rows)
        self._type = cluster.gpu_type.tolist()
        self._running: dict[int, Placed] = {}
        self._since: dict[int, Number] = {}  # since when they run, with that much to load
        self._last: dict[int, Spots] = {}  # of the jobs present, as the next two
        self._started: dict[int, Number] = {}
        self._held: dict[int, Number] = {}
        self._more: dict[int, Number] = {}  # GPU-time of elastic jobs beyond that of their own number of GPUs
        self._present: dict[int, None] = {}  # those that fit some type
        self._done: dict[int, tuple[Any, ...]] = {}  # rows of `JobTable`: Python's collector skips plain tuples
        self._arrived = self._index = self._rounds = 0
        self._until, self._length, self._seconds = zero, zero, 0.0

    # -- as the run goes on ----------------------------------------------------------------------------------------
    def add(self, changes: Changes) -> None:
        """Take a round in; rounds of which nothing was said before it were like the one before."""
        self._quiet(changes.index)
        begin, end = changes.begin, changes.end
        for row in changes.arrived:
            if self._able[row]:
                self._present[row] = None
                self._free.wait(row, 1)
        self._arrived = changes.arrived.stop
        for row in changes.stopped:
            self._leave(row, begin)
            self._free.wait(row, 1)
        self._place(changes)
        self._pass(begin, end, 1)
        for row, time in sorted(changes.completed.items(), key=lambda each: (each[1], each[0])):
            self._complete(row, time, end)
        for row, time in changes.lost.items():
            self._gpus.freed += self._leave(row, time, begin) * overlap(self.window, time, end)
            self._free.wait(row, 1)
        self._index, self._length, self._seconds = changes.index + 1, end - begin, self._seconds + changes.seconds

    def _place(self, changes: Changes) -> None:
        for placed in changes.placed:
            if placed.row in self._running:
                self._leave(placed.row, changes.begin)
                self._free.wait(placed.row, 1)
        for hosts, sign in ((changes.failed, -1), (changes.back, 1)):
            for host in hosts:
                self._free.works(host, sign)
        counted = overlap(self.window, changes.begin, changes.end) > 0
        for placed in changes.placed:
            if counted:
                self._count_move(placed)
            self._enter(placed, changes.begin)

    def _count_move(self, placed: Placed) -> None:
        self._moves.resumed += placed.how is Change.RESUME
        if placed.how is Change.MIGRATE:
            self._moves.migrations += 1
            if before := self._last.get(placed.row, ()):
                old, new = (self._slowest(placed.row, spots) for spots in (before, placed.spots))
                self._moves.between_types += old[1] != new[1]
                self._moves.to_faster += new[0] > old[0]

    def _enter(self, placed: Placed, begin: Number) -> None:
        row = placed.row
        self._running[row], self._since[row] = placed, begin
        self._last[row] = placed.spots
        self._started.setdefault(row, begin)
        self._free.change(placed.spots, -1)
        self._free.wait(row, -1)

    def _leave(self, row: int, end: Number, lost: Number | None = None) -> int:
        """Take a job from its GPUs, and return how many they were; what it did from ``lost`` on was in vain."""
        ran = self._running.pop(row)
        gpus = self._count(row, ran, self._since.pop(row), end, lost)
        self._free.change(ran.spots, 1)
        return gpus

    def _count(self, row: int, ran: Placed, since: Number, end: Number, lost: Number | None = None) -> int:
        span, gpus = end - since, sum([gpus for _, gpus in ran.spots])
        self._held[row] = self._held.get(row, 0) + span
        if gpus != self._size[row]:
            self._more[row] = self._more.get(row, 0) + (gpus - self._size[row]) * span
        self._tenants[self._owner[row]] += self._gpus.add(self.window, gpus, since, end, ran.setup, lost)
        if len(ran.spots) > 1 and len({self._type[host] for host, _ in ran.spots}) > 1:
            gang: Counter[int] = Counter()
            for host, count in ran.spots:
                gang[self._type[host]] += count
            self._gpus.add_mixed(overlap(self.window, since, end), gang, self.trace.jobs.throughput[row].tolist())
        return gpus

    def _slowest(self, row: int, spots: Spots) -> tuple[Number, str]:
        """Return a job's speed on the type of ``spots`` on which it is slowest, and the type's name."""
        types, speeds = self.cluster.types, self.trace.jobs.throughput[row]
        return min((speeds[at], types[at]) for at in {self._type[host] for host, _ in spots})

    def _complete(self, row: int, time: Number, end: Number) -> None:
        self._gpus.freed += self._leave(row, time) * overlap(self.window, time, end)
        presence, fair = self._shares.complete(row, time)
        if self._measured[row]:
            jct = time - self._arrival[row]
            contention, slowdown = presence / jct, jct / self._held[row]
            rho = jct / self._ideal(self._queue, row, contention)
            made = self._job(row, time, time, fair, jct=jct, slowdown=slowdown, rho=rho, contention=contention)
            self._done[row] = made
        for kept in (self._present, self._started, self._held, self._last):
            del kept[row]
        self._more.pop(row, None)

    def _quiet(self, index: int) -> None:
        """Let the rounds pass that were like the one before: all up to ``index``, if somebody was there to run."""
        if self._present and index > self._index:
            self._pass(self._until, self._until + (index - self._index) * self._length, index - self._index)
        self.skip(index)

    def skip(self, index: int) -> None:
        """Go on to round ``index``; in the rounds before it nobody was there to run."""
        self._index = max(self._index, index)

    def _pass(self, begin: Number, end: Number, rounds: int) -> None:
        time = overlap(self.window, begin, end)
        self._gpus.usable += self._free.usable * time
        self._free.pass_(time)
        self._until, self._rounds = end, self._rounds + rounds

    # -- what came of it ---------------------------------------------------------------------------------------------
    def result(self, index: int | None = None) -> Measures:
        """Return the measures up to round ``index`` (default: the one after the last changes), which comes next.

        It may be asked for at any time, and the run may go on afterwards.
        """
        if index is not None:
            self._quiet(index)
        table = self.jobs()
        here = [row for row in range(self._arrived) if self._measured[row]]
        at, completed = table.columns["row"], table.columns["completed"]
        names, left = self.trace.jobs.names, [row for row, end in zip(at, completed, strict=True) if end is None]
        done = [row for row, end in zip(at, completed, strict=True) if end is not None]
        rho, long_term = table.column("finish_time"), dict(zip(map(str, at), table.columns["ltgf"], strict=True))
        over = not left and bool(done) and not any(self._measured[self._arrived :])
        limit = 1 if self.trace.jobs.exact else 1 + WORSE_OFF_TOLERANCE
        return Measures(
            jobs=len(here),
            completed=len(done),
            unfinished=tuple(names[row] for row in left),
            never_started=tuple(names[row] for row in left if row not in self._started),
            unschedulable=tuple(names[row] for row in here if not self._able[row]),
            jct=Spread.of(table.column("jct")),
            slowdown=Spread.of(table.column("slowdown")),
            first_wait=Spread.of(table.column("wait")),
            makespan=max(table.column("completed")) - self.trace.jobs.arrival[done[0]] if over else None,
            finish_time=Spread.of(rho),
            worse_off=sum(value > limit for value in rho) / len(rho) if rho else None,
            ltgf=Spread.of([value for value in long_term.values() if value is not None]),
            sharing_loss=sharing_loss(long_term),
            gpu=replace(self._gpus, fragmented=self._free.fragmented, scattered=self._free.scattered),
            moves=replace(self._moves),
            tenants=self._of_tenants(here, dict(zip(done, table.column("jct"), strict=True))),
            rounds=self._rounds,
            deciding=self._seconds,
        )

    def jobs(self) -> JobTable:
        """Return the measured jobs so far, one by one."""
        until = self._until
        for row, ran in self._running.items():  # counted up to now, as if they began anew
            since, self._since[row] = self._since[row], until
            self._count(row, ran, since, until)
            self._running[row] = ran._replace(setup=max(ran.setup - (until - since), ran.setup * 0))
        present = [row for row in self._present if self._measured[row]]
        rest = [self._job(row, None, until, self._shares.of(row, until)) for row in present]
        return JobTable(self.trace, [*self._done.values(), *rest])

    def _job(
        self,
        row: int,
        completed: Number | None,
        until: Number,
        fair: Number,
        *,
        jct: Number | None = None,
        slowdown: Number | None = None,
        rho: Number | None = None,
        contention: Number | None = None,
    ) -> tuple[Any, ...]:
        """Return the row of a job in `JobTable`."""
        held, started = self._held.get(row, until * 0), self._started.get(row)
        wait = (until if started is None else started) - self._arrival[row]
        long_term = ratio(self._size[row] * held + self._more.get(row, 0), fair)
        return row, started, completed, held, wait, jct, slowdown, rho, long_term, contention

    def _of_tenants(self, here: list[int], done: Mapping[int, Number]) -> dict[str, TenantMeasures]:
        jobs, completed = Counter(self._owner[row] for row in here), [list[Number]() for _ in self._tenants]
        for row, jct in done.items():
            completed[self._owner[row]].append(jct)
        fair = self._shares.of_tenants(self._until)
        return {
            name: TenantMeasures(
                jobs[at], len(completed[at]), Spread.of(completed[at]).mean, held, ratio(held, fair[at])
            )
            for at, (name, held) in enumerate(zip(self.trace.jobs.tenants, self._tenants, strict=True))
        }


def measured(arrival: Sequence[Number], window: Window | None, rows: range | None) -> list[bool]:
    """Return which jobs are measured, by their ``arrival``: those that arrive in the window, of these ``rows``."""
    inside = [window is None or bool(window.begin <= each < window.end) for each in arrival]
    return inside if rows is None else [here and row in rows for row, here in enumerate(inside)]


def measured_window(window: Window, number: type | Arithmetic, place: str = "window") -> Window:
    """Return a window in the numbers of a run. Errors: `BadInput` for one that is empty.

    >>> [int(each) for each in measured_window(Window(300, 900), float)]
    [300, 900]
    """
    begin, end = (each if each == INFINITY else number(exact(each, place)) for each in window)
    if not begin < end:
        remedy = "Give a window that ends after it begins"
        raise BadInput(f"it begins at {float(begin):g} and ends at {float(end):g}", place=place, remedy=remedy)
    return Window(begin, end)


def measure(history: History, *, ideal: IdealTime = time_on_own_part, window: Window | None = None) -> Measures:
    """Return the measures of a history from its beginning; ``window`` and ``ideal`` as `Measuring` has them.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> measure(History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=3)))
    <Measures: 9 of 9 jobs completed in 3 rounds, jct_mean ≈105.466, finish_time_mean ≈2.69874, utilisation ≈0.00866662>
    """
    measuring = Measuring(history.trace, history.cluster, window=window, ideal=ideal)
    for changes in history.changes:
        measuring.skip(changes.index)
        measuring.add(changes)
    return measuring.result()

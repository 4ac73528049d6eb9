"""`Measuring`: the measures of a run, taken as it goes on; and `measure`, those of a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic
from fairopt.problem import Cluster, Queue, Trace, exact
from fairopt.problem.queue import Spots
from fairopt.program import INFINITY, Array, Number, objects
from fairopt.report import Statement
from fairopt.simulation.fragments import Fragments
from fairopt.simulation.gpu_time import (
    FairShares,
    IdealTime,
    Window,
    ideal_times,
    overlap,
    ratio,
    sharing_loss,
    time_on_own_part,
)
from fairopt.simulation.history import History
from fairopt.simulation.measures_result import (
    TENANT,
    UNITS,
    WORDS,
    WORSE_OFF_TOLERANCE,
    GpuUse,
    JobTable,
    Measures,
    Moves,
    spread,
)
from fairopt.simulation.record import Change, Changes, Placed

__all__ = ["UNITS", "WORDS", "JobTable", "Measures", "Measuring", "measure", "measured_window"]

#: Spans of jobs that are counted in one step, at the most.
MOST_AT_ONCE = 100_000


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
        self._gpus = GpuUse(*[zero] * len(fields(GpuUse)))
        self._tenants = jobs.arithmetic.cast(np.zeros(len(jobs.tenants)))
        self._size, self._owner, self._arrival = jobs.gpus.tolist(), jobs.tenant.tolist(), jobs.arrival.tolist()
        self._measured = measured(self._arrival, self.window, rows)
        self._type = cluster.gpu_type.tolist()
        self._running: dict[int, Placed] = {}
        self._since: dict[int, Number] = {}  # since when they run, with that much to load
        self._last: dict[int, Spots] = {}  # of the jobs present
        self._started: list[Number | None] = [None] * len(jobs)
        self._ended: list[tuple[int, Number, Number, int, Number]] = []  # spans in which jobs ran, not counted yet
        self._lost: dict[int, Number] = {}  # of these, when they were lost
        self._held = jobs.work * 0
        self._more: dict[int, Number] = {}  # GPU-time of elastic jobs beyond that of their own number of GPUs
        self._present: dict[int, None] = {}  # those that fit some type
        self._done: dict[int, Number] = {}  # when
        self._arrived = self._index = self._rounds = 0
        self._until, self._length, self._seconds = zero, zero, 0.0

    # -- as the run goes on ----------------------------------------------------------------------------------------
    def add(self, changes: Changes) -> None:
        """Take a round in; rounds of which nothing was said before it were like the one before."""
        self._quiet(changes.index)
        begin, end = changes.begin, changes.end
        starting = {row for row, *_ in changes.placed} if changes.arrived else ()
        for row in changes.arrived:
            if self._able[row]:
                self._present[row] = None
                if row not in starting:  # who starts at once has not waited
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
            if counted and placed.how is not Change.START:
                self._count_move(placed)
            self._enter(placed, changes.begin)
            if placed.row not in changes.arrived:
                self._free.wait(placed.row, -1)

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
        if self._started[row] is None:
            self._started[row] = begin
        self._free.change(placed.spots, -1)

    def _leave(self, row: int, end: Number, lost: Number | None = None) -> int:
        """Take a job from its GPUs, and return how many they were; what it did from ``lost`` on was in vain."""
        ran = self._running.pop(row)
        gpus = self._count(row, ran, self._since.pop(row), end)
        if lost is not None:
            self._lost[len(self._ended) - 1] = lost
        self._free.change(ran.spots, 1)
        return gpus

    def _count(self, row: int, ran: Placed, since: Number, end: Number) -> int:
        if len(self._ended) >= MOST_AT_ONCE:
            self._add_up()
        spots = ran.spots
        gpus = spots[0][1] if len(spots) == 1 else sum([gpus for _, gpus in spots])
        self._ended.append((row, since, end, gpus, ran.setup))
        if gpus != self._size[row]:
            self._more[row] = self._more.get(row, 0) + (gpus - self._size[row]) * (end - since)
        if len(spots) > 1 and len({self._type[host] for host, _ in spots}) > 1:
            gang: Counter[int] = Counter()
            for host, count in spots:
                gang[self._type[host]] += count
            self._gpus.add_mixed(overlap(self.window, since, end), gang, self.trace.jobs.throughput[row].tolist())
        return gpus

    def _add_up(self) -> None:
        """Count the spans that have ended."""
        ended, lost = self._ended, self._lost
        self._ended, self._lost = [], {}
        if not ended:
            return
        number = self.trace.jobs.arithmetic.cast
        rows, since, end, gpus, setup = zip(*ended, strict=True)
        at, begin, until = np.array(rows), number(objects(since)), number(objects(end))
        held = self._gpus.add(self.window, np.array(gpus), begin, until, number(objects(setup)), lost)
        # one by one, as they come
        np.add.at(self._held, at, until - begin)
        np.add.at(self._tenants, self.trace.jobs.tenant[at], held)

    def _slowest(self, row: int, spots: Spots) -> tuple[Number, str]:
        """Return a job's speed on the type of ``spots`` on which it is slowest, and the type's name."""
        types, speeds = self.cluster.types, self.trace.jobs.throughput[row]
        return min((speeds[at], types[at]) for at in {self._type[host] for host, _ in spots})

    def _complete(self, row: int, time: Number, end: Number) -> None:
        self._gpus.freed += self._leave(row, time) * overlap(self.window, time, end)
        self._shares.complete(row, time)
        self._done[row] = time
        del self._present[row], self._last[row]

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
            never_started=tuple(names[row] for row in left if self._started[row] is None),
            unschedulable=tuple(names[row] for row in here if not self._able[row]),
            jct=spread(table.column("jct")),
            slowdown=spread(table.column("slowdown")),
            first_wait=spread(table.column("wait")),
            makespan=max(table.column("completed")) - self.trace.jobs.arrival[done[0]] if over else None,
            finish_time=spread(rho),
            worse_off=sum(value > limit for value in rho) / len(rho) if rho else None,
            ltgf=spread([value for value in long_term.values() if value is not None]),
            sharing_loss=sharing_loss(long_term),
            gpu=replace(self._gpus, fragmented=self._free.fragmented, scattered=self._free.scattered),
            moves=replace(self._moves),
            tenants=self._of_tenants(here, dict(zip(done, table.column("jct"), strict=True))),
            rounds=self._rounds,
            deciding=self._seconds,
        )

    def jobs(self) -> JobTable:
        """Return the measured jobs so far, one by one."""
        jobs, until = self.trace.jobs, self._until
        for row, ran in self._running.items():  # counted up to now, as if they began anew
            since, self._since[row] = self._since[row], until
            self._count(row, ran, since, until)
            self._running[row] = ran._replace(setup=max(ran.setup - (until - since), ran.setup * 0))
        self._add_up()
        self._shares.until(until)
        rows = [row for row in sorted((*self._done, *self._present)) if self._measured[row]]
        at, done = np.array(rows, dtype=np.int64), np.array([row in self._done for row in rows], dtype=bool)
        number = jobs.arithmetic.cast
        started = [self._started[row] for row in rows]
        wait = number(objects(until if each is None else each for each in started)) - jobs.arrival[at]
        long_term = jobs.gpus[at] * self._held[at]
        for place in np.flatnonzero(np.isin(at, list(self._more))).tolist() if self._more else ():
            long_term[place] += self._more[rows[place]]
        fair = self._shares.fair[at]
        some = fair != 0
        ends = at[done]
        jct = number(objects(self._done[row] for row in ends.tolist())) - jobs.arrival[ends]
        contention = self._shares.presence[ends] / jct
        columns = {
            "row": rows,
            "started": started,
            "completed": [self._done.get(row) for row in rows],
            "held": self._held[at].tolist(),
            "wait": wait.tolist(),
            "jct": _where(done, jct),
            "slowdown": _where(done, jct / self._held[ends]),
            "finish_time": _where(done, jct / ideal_times(self._ideal, self._queue, ends, contention)),
            "ltgf": _where(some, long_term[some] / fair[some]),
            "contention": _where(done, contention),
        }
        return JobTable(self.trace, {name: columns[name] for name in JobTable.NAMES})

    def _of_tenants(self, here: list[int], done: Mapping[int, Number]) -> dict[str, Statement]:
        jobs, completed = Counter(self._owner[row] for row in here), [list[Number]() for _ in self._tenants]
        for row, jct in done.items():
            completed[self._owner[row]].append(jct)
        fair = self._shares.due.tolist()
        return {
            name: TENANT.of(
                jobs=jobs[at],
                completed=len(completed[at]),
                jct_mean=spread(completed[at]).mean,
                held=held,
                ltgf=ratio(held, fair[at]),
            )
            for at, (name, held) in enumerate(zip(self.trace.jobs.tenants, self._tenants.tolist(), strict=True))
        }


def _where(there: Array, values: Array) -> list[Number | None]:
    """Return a column (n,) of the ``values``, where ``there`` (n,) says that there is one; else None."""
    column = np.full(len(there), None, dtype=object)
    column[there] = values
    return list(column)


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

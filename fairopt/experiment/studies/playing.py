"""One cell of a study played and measured: all that a study knows of simulations is here.

Beside the measures of a run it keeps what pictures show over time: GPUs held, jobs that wait, hosts' bars.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from fairopt.experiment.statistics import BATCH
from fairopt.policy import Policy
from fairopt.problem import Cluster, Queue, Trace
from fairopt.problem.queue import Spots
from fairopt.program import INFINITY, Array, objects
from fairopt.simulation import History, Mechanics
from fairopt.simulation.engine import Engine
from fairopt.simulation.gpu_time import IdealTime, Window, ideal_times, ratio, time_on_whole_cluster
from fairopt.simulation.measures import UNITS, JobTable, Measuring
from fairopt.simulation.record import Changes
from fairopt.simulation.steps import StepFunction

HOUR = 3600.0
#: The most numbers of a line over time.
POINTS = 201
#: The most parts of a Gantt chart.
BARS = 1500

# -- how often tenants are served unfairly: the part of cases, a tenant in an interval, in which rho is below 1 --------
# ASTRAEA calculates rho of tenants "at multiple fixed intervals" and tells "the ratio of cases whose metric value is
# smaller than 1" (Sec. 6.1.4, 6.3). Which intervals these are it does not say: each reading is a measure. All end at
# full hours, from the first arrival to the last.
#
# Source: ASTRAEA, TPDS 2022, Eq. (8), (12), (16).
#: Measures by Eq. (8), with the last hours that an interval has (None: all since the first arrival), where intervals in
#: which nothing is due are no cases; and by Eq. (16). The published simulator has the last 24 hours, and Eq. (8).
BY_DEMAND: Mapping[str, int | None] = {"tenant_loss_hour": 1, "tenant_loss_day": 24, "tenant_loss_begun": None}
BY_QUOTA: Mapping[str, int | None] = {"tenant_loss_quota": 24}
#: What rho may miss by, in floats, and still be 1.
NOISE = 1e-6
#: The unit of each measure of a study: beside those of a run, GPU-time of gangs on several types, and unfair cases.
MEASURES: Mapping[str, str] = {
    **UNITS,
    **dict.fromkeys(("mixed_types", "held_back"), "share of GPU-time"),
    **dict.fromkeys((*BY_DEMAND, *BY_QUOTA), "share of cases"),
}


@dataclass(frozen=True)
class Timeline:
    """Means of something over time: ``values`` (m,) over m equal parts of the time from ``begin`` to ``end``."""

    begin: float
    end: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class HostBar:
    """GPUs of a host that a job held without a pause: row of the host, from when, until when, how many, whose."""

    host: int
    begin: float
    end: float
    gpus: int
    tenant: str


#: Definitions of the time without others beside that of the measure "finish_time".
IDEALS: Mapping[str, IdealTime] = MappingProxyType(
    {"whole cluster": time_on_whole_cluster, "whole cluster, N times": partial(time_on_whole_cluster, times_jobs=True)}
)


@dataclass(frozen=True)
class Observed:
    """What is kept of a run: measures, distributions for pictures, lines over time.

    * ``measures``: those of `MEASURES`; of jobs and tenants they are of the measured window, but for how often tenants
      were served unfairly.
    * ``quantiles``: of "jct", "finish_time" and "ltgf", evenly from the least to the largest.
    * ``over_time``: "utilisation" (part of the GPUs) and "queue" (jobs that wait). ``held`` and ``entitled``: GPUs of
      each tenant. ``bars``, ``hosts``: of a Gantt chart, its beginning; empty but for the first seed.
    * ``measured``: jobs that are measured; ``unfinished``: those of them that did not complete.
    * ``course``: mean completion times of batches of jobs, by arrival, over the whole run: `BATCH` jobs in each, or
      more where there would be more than `POINTS` batches.
    * ``finish_times``: by other `IDEALS`, finish-time fairness rho of completed jobs: its "mean", the "most", and the
      share of jobs with rho "below" 1. ``between_types``: migrations that changed a job's type.
    """

    measures: Mapping[str, float | None]
    quantiles: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    over_time: Mapping[str, Timeline] = field(default_factory=dict)
    held: Mapping[str, Timeline] = field(default_factory=dict)
    entitled: Mapping[str, Timeline] = field(default_factory=dict)
    bars: tuple[HostBar, ...] = ()
    hosts: tuple[str, ...] = ()
    measured: int = 0
    unfinished: int = 0
    course: tuple[float, ...] = ()
    finish_times: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    between_types: int = 0


class Observing:
    """What is kept of a run, gathered as it goes on: give it each of the run's `Changes`, and ask for the result.

    ``rows`` are those of the jobs that are measured, None for all. Measures of GPUs are over the time in which the
    measured jobs arrive, where not all are measured. ``detailed``: with tenants and hosts, for pictures. A job that
    fits no type of the cluster neither waits nor counts as demand.
    """

    def __init__(self, trace: Trace, cluster: Cluster, rows: range | None = None, *, detailed: bool = True) -> None:
        jobs, self._detailed = trace.jobs, detailed
        self._trace, self._cluster = trace, cluster
        chosen = range(len(jobs)) if rows is None else rows
        window = None
        if 0 < len(chosen) < len(jobs):
            first, last = (float(jobs.arrival[row]) for row in (chosen[0], chosen[-1]))
            window = Window(first, float(np.nextafter(last, INFINITY)))
        self._queue = Queue.fresh(jobs, cluster, length=1)
        self._able = np.any(self._queue.fits, axis=1)
        self._measuring = Measuring(trace, cluster, window=window, rows=chosen)
        self._whole = self._measuring if window is None else Measuring(trace, cluster)
        self._gpus, self._owner = jobs.gpus.tolist(), jobs.tenant.tolist()
        self._arrival = jobs.arrival.astype(float).tolist()
        # what changes over time: by how much at which times; at first all are 0
        self._all_held, self._waiting = defaultdict[float, int](int), defaultdict[float, int](int)
        self._held = [defaultdict[float, int](int) for _ in jobs.tenants]
        self._asked = [defaultdict[float, int](int) for _ in jobs.tenants]
        weight = jobs.tenant_weight.astype(float)
        # each tenant's quota: its part, by weight, of all GPUs
        self._quota: list[float] = (weight / weight.sum() * float(cluster.gpus.sum())).tolist()
        self._running: dict[int, tuple[float, Spots]] = {}
        self._bars: list[HostBar] = []
        self._begin = self._until = self._arrival[0] if len(jobs) else 0.0

    def add(self, changes: Changes) -> None:
        """Take in what changed in a round."""
        self._measuring.add(changes)
        if self._whole is not self._measuring:
            self._whole.add(changes)
        begin = float(changes.begin)
        for row in changes.arrived:
            if self._able[row]:
                self._waiting[self._arrival[row]] += 1
                self._asked[self._owner[row]][self._arrival[row]] += self._gpus[row]
        for row in changes.stopped:
            self._leave(row, begin)
        for placed in changes.placed:
            if placed.row in self._running:
                self._leave(placed.row, begin)
        for placed in changes.placed:
            self._running[placed.row] = (begin, placed.spots)
            self._count(placed.row, begin, placed.spots, 1)
        for row, time in changes.lost.items():
            self._leave(row, float(time))
        for row, time in changes.completed.items():
            self._leave(row, float(time))
            self._waiting[float(time)] -= 1
            self._asked[self._owner[row]][float(time)] -= self._gpus[row]
        self._until = max(self._until, float(changes.end))

    def skip(self, index: int) -> None:
        """Go on to round ``index``; in the rounds before it nobody was there to run."""
        self._measuring.skip(index)
        self._whole.skip(index)

    def result(self, index: int | None = None) -> Observed:
        """Return what is kept of the run up to round ``index``; the default is that after the last changes."""
        measured, whole = self._measuring.result(index), self._whole.result(index)
        measures, gpu = measured.row(), measured.gpu
        table = self._measuring.jobs()
        begin, end = self._begin, self._until
        of_jobs = {name: [float(value) for value in table.column(name)] for name in ("jct", "finish_time", "ltgf")}
        done = len(table.column("completed"))
        # a run that is cut has a makespan and rounds as a whole
        measures |= {name: whole.row()[name] for name in ("makespan", "rounds")}
        mixed = {"mixed_types": ratio(gpu.mixed, gpu.usable), "held_back": ratio(gpu.held_back, gpu.usable)}
        measures |= {name: None if part is None else float(part) for name, part in mixed.items()}
        measures |= self._losses()
        own = [*zip(self._trace.jobs.tenants, self._held, self._asked, self._quota, strict=True)] * self._detailed
        return Observed(
            measures={name: value and float(f"{value:.12g}") for name, value in measures.items()},
            quantiles={name: _quantiles(values) for name, values in of_jobs.items() if values},
            over_time={
                "utilisation": _means(_line(self._all_held), begin, end, scale=float(self._cluster.gpus.sum())),
                "queue": _means(_line(self._waiting), begin, end),
            },
            held={name: _means(_line(held), begin, end) for name, held, _, _ in own},
            # by weight, at most what it asked: ASTRAEA Eq. (6), (8)
            entitled={name: _means(_line(asked).at_most(quota), begin, end) for name, _, asked, quota in own},
            bars=self._first_bars(end) if self._detailed else (),
            hosts=self._cluster.hosts if self._detailed else (),
            measured=len(table),
            unfinished=len(table) - done,
            course=_course(self._whole.jobs()),
            finish_times={name: found for name, ideal in IDEALS.items() if (found := self._finish_times(table, ideal))},
            between_types=measured.moves.between_types,
        )

    def _count(self, row: int, time: float, spots: Spots, sign: int) -> None:
        gpus = sign * sum(each for _, each in spots)  # an elastic job may hold another number than its own
        self._waiting[time] -= sign
        self._all_held[time] += gpus
        self._held[self._owner[row]][time] += gpus

    def _leave(self, row: int, time: float) -> None:
        since, spots = self._running.pop(row)
        self._count(row, time, spots, -1)
        if self._detailed:
            self._bars += self._bars_of(row, since, time, spots)
            if len(self._bars) > 2 * BARS:
                self._bars = self._sorted_bars()

    def _bars_of(self, row: int, since: float, until: float, spots: Spots) -> Iterator[HostBar]:
        tenant = self._trace.jobs.tenants[self._owner[row]]
        return (HostBar(host, since, until, int(gpus), tenant) for host, gpus in spots)

    def _sorted_bars(self) -> list[HostBar]:
        return sorted(self._bars, key=lambda bar: (bar.begin, bar.host))[: BARS + 1]

    def _first_bars(self, until: float) -> tuple[HostBar, ...]:
        """Return what jobs held on hosts, as far as `BARS` go."""
        for row, (since, spots) in self._running.items():
            self._bars += self._bars_of(row, since, until, spots)
        found = self._sorted_bars()
        last = found[BARS].begin if len(found) > BARS else until  # what begins later is left out
        return tuple(replace(bar, end=min(bar.end, last)) for bar in found[:BARS] if bar.begin < last)

    def _losses(self) -> dict[str, float | None]:
        """Return how often tenants were served unfairly while jobs came, by each reading."""
        arrival = self._arrival
        edges = np.arange(arrival[0], arrival[-1], HOUR) if arrival else np.zeros(0)
        if len(edges) < 2:
            return dict.fromkeys((*BY_DEMAND, *BY_QUOTA))
        held = [_line(each).integrals(edges[0], edges) for each in self._held]
        asked = zip(self._asked, self._quota, strict=True)
        demanded = [_line(each).at_most(most).integrals(edges[0], edges) for each, most in asked]
        quotas = [most * (edges - edges[0]) for most in self._quota]
        readings = [(BY_DEMAND, demanded), (BY_QUOTA, quotas)]
        return {name: tenant_loss(hours, edges, held, due) for cases, due in readings for name, hours in cases.items()}

    def _finish_times(self, table: JobTable, ideal: IdealTime) -> dict[str, float]:
        done = [at for at, jct in enumerate(table.columns["jct"]) if jct is not None]
        rows, cast = np.array(table.columns["row"], dtype=np.int64)[done], self._queue.arithmetic.cast
        jct, present = (cast(objects(table.column(name))) for name in ("jct", "contention"))
        rho = (jct / ideal_times(ideal, self._queue, rows, present)).astype(float)
        if not len(rho):
            return {}
        return {"mean": float(rho.mean()), "most": float(rho.max()), "below": float((rho < 1).mean())}


def play(
    policy: Policy,
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics,
    rounds: int | None = None,
    rows: range | None = None,
    detailed: bool = True,
) -> Observed:
    """Play a trace and return what is kept of it; ``rows`` are the jobs that are measured. Errors: those of `run`."""
    observing = Observing(trace, cluster, rows, detailed=detailed)
    engine = Engine(policy, trace, cluster, length=length, mechanics=mechanics, rounds=rounds)
    for changes in engine:
        observing.add(changes)
    return observing.result(engine.index)


def observe(history: History, rows: range | None = None, *, detailed: bool = True) -> Observed:
    """Return what is kept of a run that was played; see `Observing`.

    >>> from fairopt import History, run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> seen = observe(History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=30)))
    >>> seen.measured, seen.unfinished, seen.over_time["queue"].end
    (103, 15, 9000.0)
    """
    observing = Observing(history.trace, history.cluster, rows, detailed=detailed)
    for changes in history.changes:
        observing.skip(changes.index)
        observing.add(changes)
    return observing.result()


def tenant_loss(hours: int | None, edges: Array, held: Sequence[Array], due: Sequence[Array]) -> float | None:
    """Return the part of the cases in which less was held than was due; None without cases.

    An interval is the last ``hours``, None for all before. ``edges`` (m,) are hours;
    ``held`` and ``due`` are GPU-time up to each (m,), for each tenant.

    >>> edges = 3600.0 * np.arange(4)
    >>> tenant_loss(1, edges, [np.array([0, 1, 2, 2])], [np.array([0, 1, 3, 3])])
    0.5
    """
    below = count = 0
    for got, owed in zip(held, due, strict=True):
        back = len(edges) if hours is None else hours
        since = np.maximum(np.arange(1, len(edges)) - back, 0)
        had, wanted = got[1:] - got[since], owed[1:] - owed[since]
        some = wanted > NOISE
        below += int((had[some] < wanted[some] * (1 - NOISE)).sum())
        count += int(some.sum())
    return below / count if count else None


def _line(changes: Mapping[float, int]) -> StepFunction:
    """Return what is 0 at first and changes by so much at these times."""
    return StepFunction.of_changes(changes.items())


def _means(line: StepFunction, begin: float, end: float, *, scale: float = 1.0) -> Timeline:
    """Return the means over time, over ``scale``."""
    if end <= begin:
        return Timeline(begin, end, (0.0,) * (POINTS - 1))
    edges = np.linspace(begin, end, POINTS)
    means = np.diff(line.integrals(begin, edges)) / np.diff(edges) / scale
    return Timeline(begin, end, tuple(float(f"{value:.5g}") for value in means))


def _course(table: JobTable) -> tuple[float, ...]:
    spans = [float(value) for value in table.column("jct")]
    size = max(BATCH, -(-len(spans) // POINTS))
    batches = np.reshape(spans[: len(spans) // size * size], (-1, size)).mean(axis=1)
    return tuple(float(f"{value:.6g}") for value in batches)


def _quantiles(values: list[float]) -> tuple[float, ...]:
    at = np.linspace(0, 1, min(POINTS, len(values)))
    return tuple(float(f"{value:.6g}") for value in np.quantile(values, at))

"""One cell of a study played and measured: all that a study knows of simulations is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from fairopt.experiment.statistics import BATCH
from fairopt.experiment.studies.lines import CASES, POINTS, HostBar, Lines, Timeline
from fairopt.policy import Policy
from fairopt.problem import Cluster, Queue, Trace
from fairopt.program import INFINITY
from fairopt.simulation import History, Mechanics
from fairopt.simulation.engine import Engine
from fairopt.simulation.gpu_time import Ideal, Window, ratio
from fairopt.simulation.measures import UNITS, JobTable, Measuring
from fairopt.simulation.record import Changes

#: The unit of each measure of a study: beside those of a run, GPU-time of gangs on several types, and unfair cases.
MEASURES: Mapping[str, str] = {
    **UNITS,
    **dict.fromkeys(("mixed_types", "held_back"), "share of GPU-time"),
    **dict.fromkeys(CASES, "share of cases"),
}


@dataclass(frozen=True)
class FinishTimes:
    """Finish-time fairness rho of completed jobs by one definition of the time without others.

    ``below``: the share of jobs with rho below 1.
    """

    mean: float
    most: float
    below: float


#: Definitions of the time without others beside that of the measure "finish_time".
IDEALS: Mapping[str, Ideal] = MappingProxyType(
    {"whole cluster": Ideal(whole_cluster=True), "whole cluster, N times": Ideal(whole_cluster=True, times_jobs=True)}
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
    * ``finish_times``: finish-time fairness by other `IDEALS`. ``between_types``: migrations that changed a job's type.
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
    finish_times: Mapping[str, FinishTimes] = field(default_factory=dict)
    between_types: int = 0


class Observing:
    """What is kept of a run, gathered as it goes on: give it each of the run's `Changes`, and ask for the result.

    ``rows`` are those of the jobs that are measured, None for all. Measures of GPUs are over the time in which the
    measured jobs arrive, where not all are measured. ``detailed``: with tenants and hosts, for pictures.
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
        able = np.any(self._queue.fits, axis=1)
        self._measuring = Measuring(trace, cluster, window=window, rows=chosen)
        self._whole = self._measuring if window is None else Measuring(trace, cluster)
        self._lines = Lines(trace, cluster, able, detailed=detailed)
        self._begin = float(jobs.arrival[0]) if len(jobs) else 0.0
        self._until = self._begin

    def add(self, changes: Changes) -> None:
        """Take in what changed in a round."""
        self._measuring.add(changes)
        if self._whole is not self._measuring:
            self._whole.add(changes)
        self._lines.add(changes)
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
        begin, end, lines = self._begin, self._until, self._lines
        of_jobs = {name: [float(value) for value in table.column(name)] for name in ("jct", "finish_time", "ltgf")}
        held, entitled = lines.of_tenants(begin, end)
        done = sum(each.completed is not None for each in table.rows)
        # a run that is cut has a makespan and rounds as a whole
        measures |= {name: whole.row()[name] for name in ("makespan", "rounds")}
        mixed = {"mixed_types": ratio(gpu.mixed, gpu.usable), "held_back": ratio(gpu.held_back, gpu.usable)}
        measures |= {name: None if part is None else float(part) for name, part in mixed.items()}
        measures |= {name: lines.loss(cases) for name, cases in CASES.items()}
        return Observed(
            measures={name: value and float(f"{value:.12g}") for name, value in measures.items()},
            quantiles={name: _quantiles(values) for name, values in of_jobs.items() if values},
            over_time={
                "utilisation": lines.held.means(begin, end, scale=float(self._cluster.gpus.sum())),
                "queue": lines.waiting.means(begin, end),
            },
            held=held,
            entitled=entitled,
            bars=lines.bars(end) if self._detailed else (),
            hosts=self._cluster.hosts if self._detailed else (),
            measured=len(table.rows),
            unfinished=len(table.rows) - done,
            course=_course(self._whole.jobs()),
            finish_times={name: found for name, ideal in IDEALS.items() if (found := self._finish_times(table, ideal))},
            between_types=measured.moves.between_types,
        )

    def _finish_times(self, table: JobTable, ideal: Ideal) -> FinishTimes | None:
        rho = np.array(
            [
                float(each.jct / ideal.time(self._queue, each.row, each.contention))
                for each in table.rows
                if each.jct is not None and each.contention is not None
            ]
        )
        return FinishTimes(float(rho.mean()), float(rho.max()), float((rho < 1).mean())) if len(rho) else None


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


def _course(table: JobTable) -> tuple[float, ...]:
    spans = [float(value) for value in table.column("jct")]
    size = max(BATCH, -(-len(spans) // POINTS))
    batches = np.reshape(spans[: len(spans) // size * size], (-1, size)).mean(axis=1)
    return tuple(float(f"{value:.6g}") for value in batches)


def _quantiles(values: list[float]) -> tuple[float, ...]:
    at = np.linspace(0, 1, min(POINTS, len(values)))
    return tuple(float(f"{value:.6g}") for value in np.quantile(values, at))

"""One cell of a study played and measured: all that a study knows of simulations is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fairopt.policy import Policy
from fairopt.problem import Cluster, Trace
from fairopt.simulation import Change, History, Mechanics, run
from fairopt.simulation.gpu_time import GpuTime, Window, job_fairness, ratio
from fairopt.simulation.measures import ROUNDING, Spread, measure
from fairopt.simulation.measures_finish_time import finish_time_fairness, presence
from fairopt.simulation.steps import StepFunction, combine
from fairopt.studies.statistics import BATCH

#: The most numbers of a distribution, and of a line over time, that are kept for pictures.
POINTS = 201
#: The most parts of a Gantt chart.
BARS = 1500


@dataclass(frozen=True)
class Steps:
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


@dataclass(frozen=True)
class Observed:
    """What is kept of a run: measures, distributions for pictures, lines over time.

    * ``measures``: those of `fairopt.simulation.measures.UNITS`; of jobs and tenants they are of the measured window.
    * ``quantiles``: of "jct", "finish_time" and "ltgf", evenly from the least to the largest.
    * ``over_time``: "utilisation" (part of the GPUs) and "queue" (jobs that wait). ``held`` and ``entitled``: GPUs of
      each tenant. ``bars``, ``hosts``: of a Gantt chart, its beginning; empty but for the first seed.
    * ``measured``: jobs that are measured; ``unfinished``: those of them that did not complete.
    * ``course``: mean completion times of batches of jobs, by arrival, over the whole run: `BATCH` jobs in each, or
      more where there would be more than `POINTS` batches.
    """

    measures: Mapping[str, float | None]
    quantiles: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    over_time: Mapping[str, Steps] = field(default_factory=dict)
    held: Mapping[str, Steps] = field(default_factory=dict)
    entitled: Mapping[str, Steps] = field(default_factory=dict)
    bars: tuple[HostBar, ...] = ()
    hosts: tuple[str, ...] = ()
    measured: int = 0
    unfinished: int = 0
    course: tuple[float, ...] = ()


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
    played = run(policy, trace, cluster, length=length, mechanics=mechanics, rounds=rounds)
    return observe(History.of(trace, cluster, played), rows, detailed=detailed)


def observe(history: History, rows: range | None = None, *, detailed: bool = True) -> Observed:
    """Return what is kept of a run; ``rows`` are those of the jobs that are measured, None for all.

    Measures of GPUs are over the time in which the measured jobs arrive, where not all are measured.

    >>> from fairopt import History, run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> seen = observe(History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=30)))
    >>> seen.measured, seen.unfinished, seen.over_time["queue"].end
    (63, 4, 9000.0)
    """
    jobs = history.trace.jobs
    chosen = range(len(jobs)) if rows is None else rows
    names = [jobs.names[row] for row in chosen if jobs.names[row] in history.ran]
    able = [name for name in names if name not in history.misfits]
    done = [name for name in able if history.completion[name] is not None]
    spans = {name: float(history.completion[name] - history.arrival[name]) for name in done}  # type: ignore[operator]
    rho, fair = finish_time_fairness(history), job_fairness(history)
    of_jobs = {
        "jct": list(spans.values()),
        "finish_time": [float(rho[name]) for name in done],
        "ltgf": [float(value) for name in able if (value := fair[name]) is not None],
    }
    window = None
    if len(chosen) < len(jobs) and len(chosen):
        window = Window(float(jobs.arrival[chosen[0]]), float(jobs.arrival[chosen[-1]]))
    time = GpuTime(history)
    measures = measure(history).row()
    if window is not None:
        measures |= _windowed(history, time, window, able, spans, of_jobs)
    begin, end = float(time.run.begin), float(time.run.end)
    used = combine(lambda *gpus: sum(gpus), *time.tenant_held.values())
    running = StepFunction.of_windows((each.begin, each.end, 1) for ran in history.ran.values() for each in ran)
    waiting = combine(lambda there, run_: there - run_, presence(history), running)
    return Observed(
        measures={name: value and float(f"{value:.12g}") for name, value in measures.items()},
        quantiles={name: _quantiles(values) for name, values in of_jobs.items() if values},
        over_time={
            "utilisation": _binned(used, begin, end, float(history.cluster.gpus.sum())),
            "queue": _binned(waiting, begin, end),
        },
        held={name: _binned(line, begin, end) for name, line in time.tenant_held.items() if detailed},
        entitled={name: _binned(line, begin, end) for name, line in time.tenant_share.items() if detailed},
        bars=_bars(history) if detailed else (),
        hosts=history.cluster.hosts if detailed else (),
        measured=len(able),
        unfinished=len(able) - len(done),
        course=_course(history),
    )


def _windowed(
    history: History,
    time: GpuTime,
    window: Window,
    able: Sequence[str],
    spans: Mapping[str, float],
    of_jobs: Mapping[str, list[float]],
) -> dict[str, float | None]:
    """Return the measures that a window changes, by name."""
    jct, rho, fair = (Spread.of(of_jobs[name]) for name in ("jct", "finish_time", "ltgf"))
    ran = {name: float(sum(each.end - each.begin for each in history.ran[name])) for name in spans}
    slowdown = Spread.of([spans[name] / ran[name] for name in spans])
    waits = [
        float((history.until if (at := history.first_start[name]) is None else at) - history.arrival[name])
        for name in able
    ]
    tenants = [ratio(*time.of_tenant(name, window)) for name in history.trace.jobs.tenants]
    gpus = int(history.cluster.gpus.sum()) * (window.end - window.begin)
    held = sum(time.tenant_held[name].integral(*window) for name in history.trace.jobs.tenants)
    changes = [each.change for name in able for each in history.ran[name]]
    found: dict[str, Any] = {
        "completed": len(spans),
        "unfinished": len(able) - len(spans),
        "jct_mean": jct.mean,
        **{f"jct_p{at}": value for at, value in jct.percentiles.items()},
        "finish_time_mean": rho.mean,
        "finish_time_max": rho.most,
        "worse_off": float(np.mean([value > 1 + ROUNDING for value in of_jobs["finish_time"]])) if rho.count else None,
        "ltgf_job_mean": fair.mean,
        "sharing_loss": float(np.mean([value < 0.95 for value in of_jobs["ltgf"]])) if fair.count else None,
        "ltgf_tenant_min": min((value for value in tenants if value is not None), default=None),
        "slowdown_mean": slowdown.mean,
        "slowdown_p99": slowdown.percentiles[99],
        "first_wait_mean": float(np.mean(waits)) if waits else None,
        "first_wait_max": max(waits, default=None),
        "utilisation": ratio(held, gpus),
        "migrations": changes.count(Change.MIGRATE),
        "restarts": changes.count(Change.RESUME),
    }
    return {name: None if value is None else float(value) for name, value in found.items()}


def _course(history: History) -> tuple[float, ...]:
    found = history.completion.items()
    spans = [float(done - history.arrival[name]) for name, done in found if done is not None]
    size = max(BATCH, -(-len(spans) // POINTS))
    batches = np.reshape(spans[: len(spans) // size * size], (-1, size)).mean(axis=1)
    return tuple(float(f"{value:.6g}") for value in batches)


def _quantiles(values: Sequence[float]) -> tuple[float, ...]:
    at = np.linspace(0, 1, min(POINTS, len(values)))
    return tuple(float(f"{value:.6g}") for value in np.quantile(values, at))


def _binned(line: StepFunction, begin: float, end: float, scale: float = 1.0) -> Steps:
    edges = np.linspace(begin, end, POINTS).tolist()
    means = [
        float(line.integral(low, high)) / (high - low) / scale if high > low else 0.0 for low, high in pairwise(edges)
    ]
    return Steps(begin, end, tuple(float(f"{value:.5g}") for value in means))


def _bars(history: History) -> tuple[HostBar, ...]:
    """Return what jobs held on hosts, as far as `BARS` go, with rounds that continue each other as one."""
    rows = {name: row for row, name in enumerate(history.cluster.hosts)}
    jobs = history.trace.jobs
    tenant = dict(zip(jobs.names, (jobs.tenants[owner] for owner in jobs.tenant), strict=True))
    going: dict[str, tuple[Any, float, float]] = {}
    found: list[HostBar] = []

    def ended(job: str) -> None:
        spots, begin, end = going.pop(job)
        found.extend(HostBar(rows[host], begin, end, gpus, tenant[job]) for host, gpus in spots)

    for record in history.rounds:
        for each in record.ran:
            before = going.get(each.job)
            if before is not None and (before[0] != each.spots or before[2] < each.begin):
                ended(each.job)
                before = None
            going[each.job] = (each.spots, float(each.begin) if before is None else before[1], float(each.end))
        if len(found) > BARS:
            break
    for job in list(going):
        ended(job)
    found.sort(key=lambda bar: (bar.begin, bar.host))
    until = found[BARS].begin if len(found) > BARS else float("inf")  # what begins later is left out
    return tuple(replace(bar, end=min(bar.end, until)) for bar in found[:BARS] if bar.begin < until)

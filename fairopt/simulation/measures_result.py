"""`Measures`: the numbers by which papers compare schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt.numbers import counted
from fairopt.problem import Trace
from fairopt.program import Array, Number, short_text
from fairopt.report import Grid, ResultForm, Statement, Tabular, short_repr
from fairopt.simulation.gpu_time import Window, overlap, overlaps, ratio

PERCENTILES = (50, 90, 99)
#: A finish-time fairness in floats counts as 1 up to this excess: jobs that run alone have exactly 1.
WORSE_OFF_TOLERANCE = 1e-9


#: One number per job; all but the count is None without jobs.
SPREAD = ResultForm("A summary of numbers.", in_full=True, sentence=lambda it: f"{it.count}, {it.mean} on average")


def spread(values: Sequence[Number]) -> Statement:
    """Return count, mean (exact if they are), extremes, and percentiles in floats, of ``values``; None without any."""
    if not values:
        return SPREAD.of(count=0, mean=None, least=None, most=None, percentiles=dict.fromkeys(PERCENTILES))
    at = np.percentile(np.array(values, dtype=float), PERCENTILES)
    middle = dict(zip(PERCENTILES, at.tolist(), strict=True))
    ends = {"least": min(values), "most": max(values)}
    return SPREAD.of(count=len(values), mean=sum(values[1:], values[0]) / len(values), **ends, percentiles=middle)


def summed(before: Number, values: Array) -> Number:
    """Return a number and values (m,), added to it one by one: in floats, sums in another order are others."""
    if not len(values):
        return before
    values = values.copy()
    values[0] = before + values[0]
    total: Number = np.add.accumulate(values).tolist()[-1]
    return total


def _tenant(it: Statement) -> str:
    return f"{it.completed} of {counted(it.jobs, 'job')} completed, GPU-time {short_text(it.held)}"


#: One tenant: its ``jobs`` that arrived, those ``completed``, their mean JCT, the GPU-time it ``held``, and its LTGF.
TENANT = ResultForm("A tenant.", in_full=True, sentence=_tenant)


@dataclass(repr=False)
class GpuUse:
    """GPU-time in GPUs times the trace's unit of time, over the rounds in which somebody was present.

    ``usable``: of hosts that worked when a round began. ``held``: by jobs, until they were done or their host failed;
    it is the sum of ``useful`` (progress that stays), ``loading`` (setup) and ``lost`` (all that was held in a round
    whose work a failure destroyed). ``freed``: from when a job was done, or its host failed, to the end of that round:
    nobody gets GPUs in mid-round. ``fragmented`` and ``scattered`` were free while jobs waited: see `Fragments`.
    ``mixed``: held by gangs on GPUs of several types; ``held_back``: of that, by GPUs that are faster for the job than
    the slowest of its gang, and wait for it.

    It is counted as the run goes on, within a window.
    """

    usable: Number
    held: Number
    useful: Number
    loading: Number
    lost: Number
    freed: Number
    fragmented: Number
    scattered: Number
    mixed: Number
    held_back: Number

    __repr__ = short_repr

    def add(
        self, window: Window | None, gpus: Array, begin: Array, end: Array, setup: Array, lost: Mapping[int, Number]
    ) -> Array:
        """Add that jobs held GPUs, loading first (m,); return what of it is in the window (m,).

        ``lost`` says by place from when on it was in vain. Sums are taken in the order of the jobs.
        """
        till, in_vain = end, None
        if lost:
            till, in_vain = end.copy(), end * 0
            for at, moment in lost.items():
                till[at], in_vain[at] = moment, gpus[at] * overlap(window, moment, end[at])
        held = gpus * overlaps(window, begin, end)
        loading = gpus * overlaps(window, begin, np.minimum(begin + setup, till))
        useful = held - loading
        if in_vain is not None:
            useful, self.lost = useful - in_vain, summed(self.lost, in_vain)
        self.held, self.loading = summed(self.held, held), summed(self.loading, loading)
        self.useful = summed(self.useful, useful)
        return held

    def add_mixed(self, time: Number, gang: Mapping[int, int], speeds: Sequence[Number]) -> None:
        """Add that a gang held GPUs of several types: how many of each, of which the job has these ``speeds`` (k,)."""
        slowest = min(speeds[gpu_type] for gpu_type in gang)
        faster = sum(gpus for gpu_type, gpus in gang.items() if speeds[gpu_type] > slowest)
        self.mixed += sum(gang.values()) * time
        self.held_back += faster * time


@dataclass
class Moves:
    """The numbers of moves of jobs: counts of (job, round).

    ``migrations``: a host was new to the job. ``between_types``: migrations that changed the job's slowest type;
    ``to_faster``: those of them to a type that is faster for the job. ``resumed``: it continued, after a pause, on the
    hosts where it ran last. They are counted as the run goes on.

    Source: FFT Sec. 6.2.3 (the share towards faster types).
    """

    migrations: int = 0
    between_types: int = 0
    to_faster: int = 0
    resumed: int = 0

    @property
    def restarts(self) -> int:
        """The number of restarts of jobs that had run before, on any host."""
        return self.migrations + self.resumed


@dataclass(frozen=True, repr=False)
class Measures(Tabular):
    """The measures of a run. Times are in the trace's unit, GPU-time is in GPUs times that; ratios have no unit.

    * ``jobs``: the number that arrived. ``completed``: the number completed. ``unfinished``: names of jobs that arrived
      and can run, but did not complete. ``never_started``: those of them that never ran. ``unschedulable``: names of
      jobs that fit no type of the cluster.
    * ``jct``: from arrival to completion. ``slowdown``: that over the time in which the job held GPUs. Both are of
      completed jobs. ``first_wait``: from arrival to the first GPUs; for jobs that never ran, to the end of the last
      round.
    * ``makespan``: from the first arrival to the last completion; None while a job is unfinished or to come.
    * ``finish_time``: rho = T_sh / T_id of completed jobs, `finish_time_fairness`; ``worse_off``: the share above 1.
    * ``ltgf``: long-term GPU-time fairness of jobs, Eq. (15) of ASTRAEA; ``sharing_loss``: share of jobs below 0.95.
    * ``gpu``: the use of the GPU-time. ``moves``: counts of moves of jobs. ``rounds``: the number in which somebody was
      present.
    * ``tenants``: a `TENANT` by name. ``deciding``: seconds for decisions, the only measure that differs between equal
      runs.

    With a measured window (`fairopt.simulation.measures.Measuring`), what is of jobs is of those that arrive in it;
    GPU-time, moves and what tenants hold are within it; ``rounds`` and ``deciding`` are of the whole run.

    Source: ASTRAEA, TPDS 2022, Sec. 3.2, 4.2, 6.1.4, 6.3 (slowdown, LTGF, sharing loss); FFT, ICS 2025, Sec. 6.1.5, 6.2
    (finish-time fairness, first wait, migrations).
    """

    jobs: int
    completed: int
    unfinished: tuple[str, ...]
    never_started: tuple[str, ...]
    unschedulable: tuple[str, ...]
    jct: Statement
    slowdown: Statement
    first_wait: Statement
    makespan: Number | None
    finish_time: Statement
    worse_off: float | None
    ltgf: Statement
    sharing_loss: Number | None
    gpu: GpuUse
    moves: Moves
    tenants: Mapping[str, Statement]
    rounds: int
    deciding: float

    def __repr__(self) -> str:
        shown = ("jct_mean", "makespan", "finish_time_mean", "utilisation")
        said = [f"{name} {short_text(value)}" for name in shown if (value := _ROW[name][-1](self)) is not None]
        done = f"{self.completed} of {counted(self.jobs, 'job')} completed in {counted(self.rounds, 'round')}"
        return f"<Measures: {', '.join([done, *said])}>"

    def _table(self) -> Grid:
        found = {name: (of(self), unit) for name, (unit, _, of) in _ROW.items()}
        columns = {name: [each[at] for each in found.values()] for at, name in enumerate(("value", "unit"))}
        return Grid("measure", list(found), columns)

    def row(self) -> dict[str, int | float | None]:
        """Return the measures of the table that compares policies, by the names of `UNITS`; floats and counts."""
        found = {name: of(self) for name, (_, _, of) in _ROW.items()}
        return {
            name: value if value is None or isinstance(value, int) else float(value) for name, value in found.items()
        }


def _part(name: str, words: str) -> tuple[str, str, Callable[[Measures], Number | None]]:
    """Return the entry of the share of the usable GPU-time that is ``name`` in `GpuUse`."""
    return "share of GPU-time", words, lambda found: ratio(getattr(found.gpu, name), found.gpu.usable)


def _percentile(at: int) -> tuple[str, str, Callable[[Measures], Number | None]]:
    return "time", f"time in which {at}% complete", lambda found: found.jct.percentiles[at]


def _worst_served(found: Measures) -> Number | None:
    return min((each.ltgf for each in found.tenants.values() if each.ltgf is not None), default=None)


#: By the entry of `Measures.row`: its unit, words for it, and what it is. "time" is the trace's unit, seconds in files;
#: "" is for ratios.
_ROW: Mapping[str, tuple[str, str, Callable[[Measures], Number | None]]] = {
    "completed": ("jobs", "jobs completed", lambda found: found.completed),
    "unfinished": ("jobs", "jobs not completed", lambda found: len(found.unfinished)),
    "unschedulable": ("jobs", "jobs that fit no type", lambda found: len(found.unschedulable)),
    "jct_mean": ("time", "mean time to complete", lambda found: found.jct.mean),
    **{f"jct_p{at}": _percentile(at) for at in PERCENTILES},
    "makespan": ("time", "makespan", lambda found: found.makespan),
    "finish_time_mean": ("", "mean finish-time fairness", lambda found: found.finish_time.mean),
    "finish_time_max": ("", "worst finish-time fairness", lambda found: found.finish_time.most),
    "worse_off": ("share of jobs", "jobs later than on their own part", lambda found: found.worse_off),
    "ltgf_job_mean": ("", "mean GPU-time fairness of a job", lambda found: found.ltgf.mean),
    "sharing_loss": ("share of jobs", "jobs with GPU-time fairness below 1", lambda found: found.sharing_loss),
    "ltgf_tenant_min": ("", "least GPU-time fairness of a tenant", _worst_served),
    "slowdown_mean": ("", "mean slowdown", lambda found: found.slowdown.mean),
    "slowdown_p99": ("", "slowdown of which 99% are below", lambda found: found.slowdown.percentiles[99]),
    "first_wait_mean": ("time", "mean wait for the first GPUs", lambda found: found.first_wait.mean),
    "first_wait_max": ("time", "longest wait for the first GPUs", lambda found: found.first_wait.most),
    "utilisation": _part("held", "GPUs in use"),
    "useful": _part("useful", "GPUs that work"),
    "loading": _part("loading", "GPUs that load"),
    "lost": _part("lost", "GPU-time lost by failures"),
    "freed": _part("freed", "GPU-time of jobs that ended within a round"),
    "fragmentation": _part("fragmented", "GPUs free, too few for any gang"),
    "scattered": _part("scattered", "GPUs free, on too many hosts for any gang"),
    "migrations": ("count", "migrations", lambda found: found.moves.migrations),
    "to_faster": (
        "share of migrations",
        "migrations to a faster type",
        lambda found: ratio(found.moves.to_faster, found.moves.migrations),
    ),
    "restarts": ("count", "restarts", lambda found: found.moves.restarts),
    "rounds": ("count", "rounds", lambda found: found.rounds),
    "deciding": ("seconds", "time to decide", lambda found: found.deciding),
}
UNITS: Mapping[str, str] = MappingProxyType({name: unit for name, (unit, _, _) in _ROW.items()})
#: By the same names, what stands in the head of a table.
WORDS: Mapping[str, str] = MappingProxyType({name: words for name, (_, words, _) in _ROW.items()})


class JobTable(Tabular):
    """The measured jobs that arrived and fit some type, by rising arrival, in columns: for quantiles and pictures.

    ``row``: that in the trace. ``started``, ``completed``: when (None: never). ``held``: for how long it held GPUs.
    ``wait``: from arrival to the first GPUs, or to the end of the run. ``jct``, ``slowdown``, ``finish_time`` (rho of
    finish-time fairness), ``contention`` (N, the mean number of jobs present meanwhile that fit some type): None for a
    job that is not completed. ``ltgf``: its long-term GPU-time fairness.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fairopt.simulation.measures import Measuring
    >>> measuring = Measuring(trace, cluster)
    >>> for record in run("srtf", trace, cluster, length=300, rounds=3):
    ...     measuring.add(record.changes)
    >>> measuring.jobs(), [round(each) for each in measuring.jobs().column("jct")[:3]]
    (<JobTable: 9 of 1000 jobs>, [79, 82, 232])
    """

    #: Its columns, the first of which numbers the jobs.
    NAMES = ("row", "started", "completed", "held", "wait", "jct", "slowdown", "finish_time", "ltgf", "contention")

    def __init__(self, trace: Trace, columns: Mapping[str, list[Any]]) -> None:
        """Take a column for each of `NAMES`."""
        self.trace, self.columns = trace, columns

    def __len__(self) -> int:
        return len(self.columns["row"])

    def __repr__(self) -> str:
        return f"<JobTable: {len(self)} of {counted(len(self.trace.jobs), 'job')}>"

    def column(self, name: str) -> list[Number]:
        """Return one of the columns, of all jobs that have a value there."""
        return [value for value in self.columns[name] if value is not None]

    def _table(self) -> Grid:
        jobs, at = self.trace.jobs, self.columns["row"]
        columns = {
            "tenant": [jobs.tenants[jobs.tenant[row]] for row in at],
            "gpus": jobs.gpus[at].tolist(),
            "arrival": jobs.arrival[at].tolist(),
            **{name: self.columns[name] for name in self.NAMES[1:]},
        }
        return Grid("job", [jobs.names[row] for row in at], columns)

"""Microsoft's Philly trace: a thousand jobs, a cluster of matching size, and counts of all jobs, as of Venus's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairopt.datasets.tables import dataset_path, records
from fairopt.problem.cluster import Cluster
from fairopt.problem.files.cluster import read_cluster
from fairopt.problem.files.trace import read_trace
from fairopt.problem.trace import Trace

PHILLY_TYPES = ("K80", "P100", "V100")


def philly_trace(types: Sequence[str] = PHILLY_TYPES) -> Trace:
    """Return 1,000 jobs of eight tenants that arrive within a day; times in seconds, sizes in gigabytes.

    Jobs, tenants, times of submission, running times and GPUs are from the trace. Models, with throughputs as Gavel
    measured them, and sizes of training state are assigned by a seeded random draw. On P100 a job has throughput 1 and
    takes its real running time. `SOURCES.md` beside the data has the rules. ``types``: those of K80, P100, V100 that
    the cluster has, in its order.

    Source: Jeon et al., USENIX ATC 2019 (the trace); Narayanan et al., OSDI 2020 (throughputs).

    >>> philly_trace()
    <Trace: <Jobs: 1000 of 8 tenants, types K80, P100, V100>, 0 outages>
    """
    return read_trace(dataset_path("philly_1000.csv"), types)


def philly_cluster() -> Cluster:
    """Return a cluster of 64 GPUs on eight hosts, which the jobs of `philly_trace` keep busy but do not overload.

    Source: made up for that trace; `SOURCES.md` beside the data has the rule.

    >>> philly_cluster()
    <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>
    """
    return read_cluster(dataset_path("philly_cluster.toml"))


class JobCount(NamedTuple):
    """Jobs of a trace that are alike: their GPUs, their end, and run times from ``at_least_s`` to below ``below_s``.

    ``below_s`` None means no limit; ``status`` "" means not known. ``clipped`` is the number of ``jobs`` whose run
    times the source cut off at 48 hours. ``gpu_seconds`` is the sum of GPUs times run time.
    """

    trace: str
    gpus: int
    status: str
    at_least_s: int
    below_s: int | None
    jobs: int
    clipped: int
    gpu_seconds: int


def job_counts(trace: str) -> tuple[JobCount, ...]:
    """Return the counts of a trace, "philly" or "venus"; () for another.

    Source: Jeon et al., USENIX ATC 2019 (Philly); Hu et al., SC 2021 (Venus).

    >>> sum(count.jobs for count in job_counts("venus"))
    125303
    """
    rows = [row for row in records("philly_venus_distributions.csv") if row["trace"] == trace]
    texts = ("trace", "status")
    numbers = [{name: int(text) if text else None for name, text in row.items() if name not in texts} for row in rows]
    return tuple(JobCount(trace, status=row["status"], **each) for row, each in zip(rows, numbers, strict=True))  # type: ignore[arg-type]


def jobs_in(counts: Iterable[JobCount]) -> int:
    """Return the total number of jobs of some counts."""
    return sum(count.jobs for count in counts)

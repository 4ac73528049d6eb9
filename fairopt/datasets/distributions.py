"""Counts of jobs by run time and GPUs in two production clusters, Philly and Venus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairopt.datasets.tables import records


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
    return tuple(_count(row) for row in records("philly_venus_distributions.csv") if row["trace"] == trace)


def jobs_in(counts: Iterable[JobCount]) -> int:
    """Return the total number of jobs of some counts."""
    return sum(count.jobs for count in counts)


def _count(row: dict[str, str]) -> JobCount:
    counts = {name: int(text) if text else None for name, text in row.items() if name not in ("trace", "status")}
    return JobCount(trace=row["trace"], status=row["status"], **counts)  # type: ignore[arg-type]

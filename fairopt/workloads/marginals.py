"""What real traces are like: sizes of gangs, run times, tenants, and how many jobs came in each hour.

The tables are made by ``benchmarks/make_workload_tables.py``. All draws are of integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairopt.datasets.tables import records
from fairopt.errors import BadInput
from fairopt.problem.labels import nearest
from fairopt.program import Array


class Marginals(NamedTuple):
    """Jobs of a trace by part: ``jobs`` of them hold ``gpus`` GPUs for ``mean`` seconds, give or take ``half``.

    All are arrays of integers with one entry for each part.
    """

    gpus: Array
    jobs: Array
    mean: Array
    half: Array

    def up_to(self, largest: int, hours: float | None = None) -> Marginals:
        """Return the parts of gangs of at most ``largest``, and of run times of at most so many hours (None: any)."""
        fit = self.gpus <= largest
        if hours is not None:
            fit &= self.mean + self.half <= hours * 3600
        if not fit.any():
            raise BadInput(f"got {hours}", place="longest_hours", remedy="Give more hours: no jobs are so short")
        return Marginals(*(column[fit] for column in self))

    def of_size(self, gpus: int) -> Marginals:
        """Return the parts of the largest gangs of at most ``gpus``: the run times of jobs of that size."""
        return Marginals(*(column[self.gpus == self.gpus[self.gpus <= gpus].max()] for column in self))

    def draw(self, random: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Return the GPUs and the seconds of ``count`` jobs, int64: a part by its jobs, then evenly within it."""
        last = np.cumsum(self.jobs)
        part = np.searchsorted(last, random.integers(last[-1], size=count), side="right")
        return self.gpus[part], self.mean[part] + random.integers(-self.half[part], self.half[part] + 1)

    @property
    def seconds(self) -> float:
        """The mean run time."""
        return float((self.jobs * self.mean).sum() / self.jobs.sum())


def marginals(trace: str) -> Marginals:
    """Return the gangs and run times of a trace. Errors: `BadInput` names those that there are.

    >>> round(marginals("philly").seconds)
    32287
    """
    found = _parts()
    if trace not in found:
        raise BadInput(f"there is no trace {trace!r}", place="like", remedy=nearest(trace, list(found), "trace"))
    return found[trace]


def tenants(trace: str) -> Mapping[str, int]:
    """Return how many jobs each tenant of a trace has; empty where the trace names none.

    >>> len(tenants("venus"))
    15
    """
    return {row["tenant"]: int(row["jobs"]) for row in records("workload_tenants.csv") if row["trace"] == trace}


def quotas(trace: str) -> Mapping[str, int]:
    """Return the GPUs that each tenant of a trace was given; empty where they are not known.

    >>> sum(quotas("venus").values())
    1048
    """
    rows = [row for row in records("workload_tenants.csv") if row["trace"] == trace and row["quota"]]
    return {row["tenant"]: int(row["quota"]) for row in rows}


def hours(trace: str) -> list[int]:
    """Return how many jobs came in each hour of two weeks of a trace. Errors: `BadInput` where that is not known.

    >>> len(hours("philly")), sum(hours("philly"))
    (336, 29200)
    """
    rows = records("workload_hours.csv")
    found = [int(row["jobs"]) for row in rows if row["trace"] == trace]
    if not found:
        known = sorted({row["trace"] for row in rows})
        raise BadInput(f"arrivals of {trace!r} are not known", place="arrivals", remedy=f"Give {' or '.join(known)}")
    return found


@cache
def _parts() -> Mapping[str, Marginals]:
    rows: dict[str, list[list[int]]] = {}
    for row in records("workload_parts.csv"):
        rows.setdefault(row["trace"], []).append([int(row[name]) for name in ("gpus", "jobs", "mean_s", "half_s")])
    return MappingProxyType({trace: Marginals(*np.array(parts).T) for trace, parts in rows.items()})

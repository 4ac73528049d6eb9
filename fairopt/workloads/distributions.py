"""What jobs are drawn from: what real traces are like, and throughputs where a trace does not say them.

Traces are known by sizes of gangs, run times, tenants, and how many jobs came in each hour; the tables are made by
``benchmarks/make_workload_tables.py``. All draws are of integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairopt.datasets.gavel import gavel_throughputs
from fairopt.datasets.tables import records
from fairopt.errors import BadInput
from fairopt.problem import Cluster
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact
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


# -- throughputs on the types of a cluster, and sizes of state -------------------------------------------------------

#: The type on which a measured job takes the run time that the trace has; every measured gang fits on it.
REFERENCE = "P100"
#: Gigabytes of the models that Tiresias lists (weights only); what moves with a job. Source: `SOURCES.md`.
STATE_SIZES = tuple(
    map(Fraction, ("0.5471", "0.5268", "0.5065", "0.2358", "0.1496", "0.1197", "0.0806", "0.1328", "0.0566"))
)
#: Random speedups have so many steps between the least and the largest.
STEPS = 1000


class Speeds(Enum):
    """Where throughputs are from.

    EQUAL: 1 on all types. MEASURED: of a model that Gavel measured on as many GPUs, drawn evenly for each job, 1 on
    P100; of K80, P100 and V100 only. DRAWN: 1 on the cluster's first type, a random speedup on its last, the others
    evenly between.
    """

    EQUAL = "equal"
    MEASURED = "measured"
    DRAWN = "drawn"


def throughputs(
    speeds: Speeds, gpus: Sequence[int], cluster: Cluster, random: np.random.Generator, range_: tuple[object, object]
) -> list[tuple[Fraction, ...]]:
    """Return the throughputs of jobs of ``gpus`` GPUs (n, k); ``range_``: the least and largest drawn speedup.

    Errors: `BadInput` for types that were not measured.
    """
    if speeds is Speeds.EQUAL:
        return [(Fraction(1),) * len(cluster.types)] * len(gpus)
    if speeds is Speeds.DRAWN:
        return drawn(len(gpus), len(cluster.types), random, range_)
    capacity = {name: int(count) for name, count in zip(cluster.types, cluster.capacity, strict=True)}
    choices = {size: _fitting(size, capacity) for size in sorted(set(gpus))}
    picks = random.integers(2**32, size=len(gpus))
    return [choices[size][int(pick) % len(choices[size])] for size, pick in zip(gpus, picks, strict=True)]


def drawn(
    count: int, types: int, random: np.random.Generator, range_: tuple[object, object]
) -> list[tuple[Fraction, ...]]:
    """Return rows that rise evenly from 1 to a speedup, drawn evenly from ``range_``."""
    low, high = (exact(each, "speedup") for each in range_)
    if not 0 < low <= high:
        raise BadInput(f"from {low} to {high}", place="speedup", remedy="Give the least, positive, and the largest")
    return [
        _rising(low + (high - low) * Fraction(int(step), STEPS), types)
        for step in random.integers(STEPS + 1, size=count)
    ]


def _rising(last: Fraction, types: int) -> tuple[Fraction, ...]:
    """Return speeds from 1 to ``last``, to four decimals."""
    return tuple(round(1 + (last - 1) * Fraction(at, max(types - 1, 1)), 4) for at in range(types))


def state_sizes(count: int, random: np.random.Generator) -> list[Fraction]:
    """Return gigabytes of state, drawn evenly."""
    return [STATE_SIZES[at] for at in random.integers(len(STATE_SIZES), size=count)]


def _fitting(gpus: int, capacity: dict[str, int]) -> list[tuple[Fraction, ...]]:
    """Return the measured rows of a gang that can run somewhere; one that was not measured is as the next smaller."""
    rows = _measured(max(each for each in (1, 2, 4, 8) if each <= gpus), tuple(capacity))
    return [
        row for row in rows if any(speed and count >= gpus for speed, count in zip(row, capacity.values(), strict=True))
    ]


@cache
def _measured(gang: int, types: tuple[str, ...]) -> list[tuple[Fraction, ...]]:
    """Return throughputs relative to the reference, to four digits, of the models that were measured on all types."""
    rows = []
    for job in gavel_throughputs(scale_factor=gang):
        strange = [name for name in types if name not in job.steps_per_s]
        if strange:
            remedy = "Say speeds=drawn or speeds=equal; Gavel measured K80, P100 and V100"
            raise BadInput(f"{strange[0]} was not measured", place="speeds", remedy=remedy)
        unit, steps = job.steps_per_s[REFERENCE], [job.steps_per_s[name] for name in types]
        if unit and None not in steps:
            rows.append(tuple(Fraction(f"{float(each / unit):.4g}") for each in steps if each is not None))
    return rows

"""Throughputs of jobs on the types of a cluster, where a trace does not say them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from functools import cache

import numpy as np

from fairopt.datasets.gavel import gavel_throughputs
from fairopt.errors import BadInput
from fairopt.problem import Cluster
from fairopt.problem.numbers import exact

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

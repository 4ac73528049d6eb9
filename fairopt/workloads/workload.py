"""A `Workload`: a generator of traces, by seed, for a cluster; and the load of a trace.

The load is the GPU-time that jobs need, divided by the GPU-time that a cluster has while they come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import arithmetic
from fairopt.problem import Cluster, Trace
from fairopt.problem.numbers import check_within, exact, whole
from fairopt.program import Number


class Counted(Enum):
    """The speed at which a job's GPU-time is counted: the mean over all GPUs of the cluster, or its fastest type's."""

    MEAN = "mean"
    FASTEST = "fastest"


def load_of(trace: Trace, cluster: Cluster, *, over: object = None, counted: Counted = Counted.MEAN) -> Number:
    """Return the load of a trace on a cluster: demand for GPU-time, divided by GPUs times the time in which jobs come.

    A job demands its GPUs times its work over its speed. The speed is the mean of its throughputs over all GPUs of the
    cluster (0 where it cannot run), or with ``counted`` that on its fastest type. Jobs come from the first arrival to
    the last, or for ``over`` where that is given. Source: ours; the same as in datasets/SOURCES.md.

    Errors: `BadInput` where all jobs come at once and ``over`` is not given.

    >>> from fairopt.problem import Cluster, Jobs
    >>> jobs = Jobs.of(gpus=[1, 2], work=[60, 120], arrival=[0, 100], types=["V100"])
    >>> load_of(Trace(jobs), Cluster.uniform({"V100": (1, 4)}))
    Fraction(3, 4)
    """
    jobs = trace.jobs
    if over is None and not jobs.arrival[-1] > jobs.arrival[0]:
        remedy = "Say over which time the load is meant"
        raise BadInput("all jobs arrive at once, so that the load has no bounds", place="trace", remedy=remedy)
    number = jobs.arithmetic.number
    span = jobs.arrival[-1] - jobs.arrival[0] if over is None else number(exact(over, "over"))
    needed: Number = gpu_time(jobs.gpus.tolist(), jobs.work.tolist(), jobs.throughput.tolist(), cluster, counted)
    load: Number = needed / (int(cluster.gpus.sum()) * span)
    return load


def gpu_time(
    gpus: Sequence[int],
    work: Sequence[Number],
    throughput: Sequence[Sequence[Number]],
    cluster: Cluster,
    counted: Counted,
) -> Number:
    """Return the sum over jobs of GPUs times work over speed; jobs that can run nowhere demand nothing."""
    capacity = [int(each) for each in cluster.capacity]
    # many jobs have the same throughputs
    needed: dict[tuple[Number, ...], Number] = {}
    for own, each, row in zip(gpus, work, map(tuple, throughput), strict=True):
        needed[row] = needed.get(row, 0) + own * each
    return sum((total / _speed(row, capacity, counted) for row, total in needed.items() if any(row)), work[0] * 0)


def _speed(row: Sequence[Number], capacity: Sequence[int], counted: Counted) -> Number:
    if counted is Counted.FASTEST:
        return max(row)
    total = sum(each * there for each, there in zip(row, capacity, strict=True))
    return total / arithmetic(total)(sum(capacity))  # type: ignore[no-any-return]


class Workload(ABC):
    """A generator of traces: a frozen dataclass whose fields are its options, each with a default and checked.

    ``name`` is that of its entry point (group ``fairopt.workloads``), ``source`` says where it is from. ``home`` is
    the data set of its own cluster, "" where it has none.

    >>> from fairopt.discovery import workload
    >>> workload("poisson").name
    'poisson'
    """

    name: ClassVar[str]
    source: ClassVar[str]
    home: ClassVar[str] = ""
    #: The speed at which the load counts a job's GPU-time; an option of those who state a load.
    counted: Counted = Counted.MEAN

    def __post_init__(self) -> None:
        check_within(self)

    @abstractmethod
    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed for ``cluster``, in Fractions, the same on every machine.

        Errors: `BadInput` where the options do not suit the cluster.
        """

    def load_of(self, trace: Trace, cluster: Cluster) -> Number:
        """Return the load of a trace as this generator counts it: between the first arrival and the last."""
        return load_of(trace, cluster, counted=self.counted)


def streams(seed: int, count: int, *apart: int) -> list[np.random.Generator]:
    """Return independent generators of random numbers, so that a change of one part of a trace leaves the others.

    Who draws with the same seed for another purpose gives a number ``apart``, else both draw the same. Draws from them
    are of integers only (PCG64), and are the same on every machine. Errors: `BadInput`.
    """
    number = whole(seed, "seed", least=0)
    return [
        np.random.Generator(np.random.PCG64(each))
        for each in np.random.SeedSequence(number, spawn_key=apart).spawn(count)
    ]

"""Jobs drawn from what real traces are like, arriving at a rate that changes in steps, at a load that is stated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from fairopt.errors import BadInput, type_of
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.jobs import MOST_JOBS
from fairopt.problem.numbers import exact, within
from fairopt.program import Number
from fairopt.workloads.distributions import Speeds, marginals, state_sizes, tenants, throughputs
from fairopt.workloads.workload import Counted, Workload, gpu_time, streams

#: Times are told in thousandths of a second.
FINE = 1000
#: Random moments are multiples of this part of a whole.
GRAIN = 2**48


@dataclass(frozen=True)
class Poisson(Workload):
    """Jobs that arrive one by one and independently, at a constant rate.

    They are random, with the gangs, run times and tenants of a real trace; subclasses have other rates of arrivals.

    * ``jobs``: how many. ``load``: demand for GPU-time over the GPU-time that there is between the first arrival and
      the last, as `load_of` has it; this makes the time in which they arrive.
    * ``like``: the real trace: philly, venus, pai, openb, or gavel (the rule of its generator).
    * ``largest``: the largest gang (none: the largest that one type of the cluster has GPUs for).
    * ``longest_hours``: the longest run time (none: any).
    * ``tenants``: how many, with equally many jobs; 0 for those of the real trace, and their parts of its jobs.
    * ``speeds``: throughputs by type: equal ones, those of models that Gavel measured (on K80, P100, V100), or drawn.
    * ``slowest_speedup``: of drawn speeds, the least of the last type over the first. ``largest_speedup``: the largest.
    * ``counted``: the speed at which the load counts a job's GPU-time.

    Source: ours; Gavel, OSDI 2020, Sec. 7.1, generates its continuous traces so.

    >>> from fairopt.datasets import philly_cluster
    >>> Poisson(jobs=50, tenants=3).trace(seed=1, cluster=philly_cluster())
    <Trace: <Jobs: 50 of 3 tenants, types K80, P100, V100>, 0 outages>
    """

    name = "poisson"
    source = "a Poisson process; Gavel, OSDI 2020, Sec. 7.1"

    jobs: int = within(1000, least=2, most=MOST_JOBS)
    load: float = within(0.8, above=0, most=1000)
    like: str = "philly"
    largest: int | None = within(None, least=1)
    longest_hours: float | None = None
    tenants: int = within(0, least=0)
    speeds: Speeds = Speeds.MEASURED
    slowest_speedup: float = 1.6
    largest_speedup: float = 2.71
    counted: Counted = Counted.MEAN

    def __post_init__(self) -> None:
        super().__post_init__()
        marginals(self.like)

    def pieces(self, span: int, random: np.random.Generator) -> Sequence[tuple[int, int]]:
        """Return the rate of arrivals over ``span`` thousandths: pairs (how long, the jobs' part that comes then)."""
        return [(span, 1)]

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed for ``cluster``. Errors: `BadInput`."""
        if not isinstance(cluster, Cluster):
            raise BadInput(f"got {type_of(cluster)}", place="cluster", remedy="Give a Cluster")
        for_jobs, for_speeds, for_tenants, for_arrivals = streams(seed, 4)
        largest = int(cluster.capacity.max())
        parts = marginals(self.like).up_to(min(self.largest or largest, largest), self.longest_hours)
        sizes, seconds = parts.draw(for_jobs, self.jobs)
        gpus, work = sizes.tolist(), [Fraction(each) for each in seconds.tolist()]
        range_ = (self.slowest_speedup, self.largest_speedup)
        speed = throughputs(self.speeds, gpus, cluster, for_speeds, range_)
        needed = gpu_time(gpus, work, speed, cluster, self.counted)
        span = span_of(needed, self.load, cluster)
        return Trace(
            Jobs.of(
                gpus=gpus,
                work=work,
                types=cluster.types,
                throughput=speed,
                arrival=arrivals(self.jobs, span, self.pieces(span, for_arrivals), for_arrivals),
                tenant=self._owners(for_tenants),
                state_size=state_sizes(len(gpus), for_speeds),
            )
        )

    def _owners(self, random: np.random.Generator) -> list[str]:
        known = {} if self.tenants else tenants(self.like)
        parts = known or {f"t{number}": 1 for number in range(1, (self.tenants or 1) + 1)}
        last = np.cumsum(list(parts.values()))
        names = list(parts)
        return [names[at] for at in np.searchsorted(last, random.integers(last[-1], size=self.jobs), side="right")]


def span_of(needed: Number, load: object, cluster: Cluster) -> int:
    """Return the thousandths of a second in which jobs that need ``needed`` GPU-seconds come at a load."""
    span = round(needed * FINE / (exact(load, "load") * int(cluster.gpus.sum())))
    if span < 1:
        raise BadInput(f"got {load}", place="load", remedy="Give a smaller one, or more jobs: all would come at once")
    return span


def arrivals(count: int, span: int, pieces: Iterable[tuple[int, int]], random: np.random.Generator) -> list[Fraction]:
    """Return ``count`` arrivals in seconds, rising, the first at 0 and the last after ``span`` thousandths.

    They are those of a Poisson process of the rate that ``pieces`` describe, given how many there are: each is drawn
    for itself. Then the first and the last are moved to the ends, and all others with them.
    """
    lengths, parts = zip(*pieces, strict=True)
    ends, sums = list(accumulate(lengths)), list(accumulate(parts))
    moments = []
    for drawn in random.integers(GRAIN, size=count).tolist():
        at = bisect_right(sums, drawn * sums[-1] // GRAIN)
        inside = Fraction(drawn * sums[-1] - (sums[at] - parts[at]) * GRAIN, parts[at] * GRAIN)
        moments.append(ends[at] - lengths[at] + inside * lengths[at])
    first, last = min(moments), max(moments)
    if first == last:
        raise BadInput("all jobs arrive at once", place="jobs", remedy="Ask for more jobs")
    return [Fraction(round((moment - first) * span / (last - first)), FINE) for moment in sorted(moments)]


def scaled(seconds: Sequence[Fraction], factor: Number) -> list[Fraction]:
    """Return run times times a factor, in thousandths of a second, none of them 0."""
    short = Fraction(round(factor * 10**12), 10**12)  # else the numbers have thousands of digits
    return [max(round(each * short, 3), Fraction(1, FINE)) for each in seconds]


def stretched(counts: Sequence[int], span: int) -> list[tuple[int, int]]:
    """Return pieces of about equal length that make up ``span``, each with its count of jobs."""
    edges = [span * at // len(counts) for at in range(len(counts) + 1)]
    return [(end - begin, count) for (begin, end), count in zip(pairwise(edges), counts, strict=True)]

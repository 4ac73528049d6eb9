"""Hypothesis strategies for clusters, traces and queues: `clusters`, `traces`, `queues`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fairopt.problem import Cluster, Jobs, Outage, Pattern, Queue, Spots, Trace
from fairopt.program import INFINITY, Number, fractions, objects

__all__ = ["clusters", "placements", "queues", "traces"]

#: A few small numbers with small denominators, quickly drawn: ties are frequent, and sums stay readable.
NUMBERS = tuple(map(Fraction, ("1", "2", "3", "1/2", "5", "3/2", "8", "1/3", "12", "7/4")))
POSITIVE = st.sampled_from(NUMBERS)
AMOUNTS = st.sampled_from((Fraction(0), *NUMBERS))


def clusters(*, max_types: int = 3, max_hosts: int = 5, max_gpus: int = 8) -> SearchStrategy[Cluster]:
    """Return a strategy for valid, exact clusters: every type has a host; memory and bandwidth may be unlimited.

    >>> from hypothesis import given
    >>> @given(clusters(max_hosts=2))
    ... def every_type_has_a_host(cluster):
    ...     assert set(cluster.gpu_type) == set(range(len(cluster.types)))
    """

    @st.composite
    def build(draw: DrawFn) -> Cluster:
        count = draw(st.integers(1, max_hosts))
        types = [f"T{number}" for number in range(1, 1 + draw(st.integers(1, min(max_types, count))))]
        gpu_type = [*types, *draw(_lists(st.sampled_from(types), count - len(types)))]
        return Cluster.of(
            gpu_type,
            draw(_lists(st.integers(1, max_gpus), count)),
            types=types,
            memory=dict(zip(types, draw(_lists(st.none() | POSITIVE, len(types))), strict=True)),
            bandwidth=draw(_lists(st.none() | POSITIVE, count)),
        )

    return build()


def traces(
    cluster: Cluster, *, max_jobs: int = 6, max_gpus: int = 8, unschedulable: bool = True, outages: bool = True
) -> SearchStrategy[Trace]:
    """Return a strategy for valid, exact traces on a cluster.

    ``unschedulable``: whether jobs may fit no type (throughput, memory, GPUs). ``outages``: whether hosts fail.

    >>> from hypothesis import given
    >>> from fairopt.datasets import philly_cluster
    >>> @given(traces(philly_cluster()))
    ... def jobs_come_in_order(trace):
    ...     assert list(trace.jobs.arrival) == sorted(trace.jobs.arrival)
    """

    @st.composite
    def build(draw: DrawFn) -> Trace:
        jobs = draw(_jobs(cluster, draw(st.integers(1, max_jobs)), max_gpus, unschedulable))
        return Trace(jobs, tuple(draw(st.lists(_outages(cluster), max_size=3))) if outages else ())

    return build()


def queues(*, max_jobs: int = 6, leases: bool = True) -> SearchStrategy[Queue]:
    """Return a strategy for queues in the middle of a run: some jobs ran, some hold ``leases``, hosts may be down.

    >>> from hypothesis import given
    >>> @given(queues(max_jobs=3))
    ... def jobs_have_arrived(queue):
    ...     assert (queue.jobs.arrival <= queue.now).all()
    """

    @st.composite
    def build(draw: DrawFn) -> Queue:
        cluster = draw(clusters())
        jobs = draw(_jobs(cluster, draw(st.integers(1, max_jobs)), 8, True))
        now, length = draw(st.integers(0, 5)) * Fraction(10), Fraction(10)
        jobs = replace(jobs, arrival=objects(min(each, now) for each in jobs.arrival))
        fresh = Queue.fresh(jobs, cluster, length=length, now=now, index=int(now / length))
        up = np.array(draw(_lists(st.booleans() | st.just(True), len(cluster.hosts))), dtype=bool)
        fresh = replace(fresh, up=up)
        running = draw(placements(fresh))
        before = draw(placements(replace(fresh, up=np.ones_like(up))))
        last = tuple(running.get(row, before.get(row, ())) for row in range(len(jobs)))
        held = [draw(POSITIVE) if leases and row in running and draw(st.booleans()) else 0 for row in range(len(jobs))]
        part = draw(_lists(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 10)]), len(jobs)))
        return replace(
            fresh,
            remaining=jobs.work * objects(part),
            attained=fractions([draw(AMOUNTS) if spots else 0 for spots in last]),
            setup=fractions([draw(AMOUNTS) if row in running else 0 for row in range(len(jobs))]),
            last=last,
            running=np.array([row in running for row in range(len(jobs))], dtype=bool),
            lease=fractions([now + each for each in held]),
            started=tuple(now / 2 if spots else None for spots in last),
        )

    return build()


@st.composite
def placements(draw: DrawFn, queue: Queue) -> dict[int, Spots]:
    """Draw, for some jobs of a queue, GPUs of one type that are free and that they can run on.

    >>> from hypothesis import given
    >>> @given(queues().flatmap(lambda queue: placements(queue)))
    ... def no_job_runs_in_parts(spots):
    ...     assert all(sum(gpus for _, gpus in each) > 0 for each in spots.values())
    """
    left = queue.free()
    out: dict[int, Spots] = {}
    for row in draw(st.permutations(range(len(queue)))):
        spots, missing = [], int(queue.jobs.gpus[row])
        suited = np.flatnonzero(queue.suits[row]).tolist()
        gpu_types = [each for each in suited if left[list(queue.cluster.of_type(each))].sum() >= missing]
        if not gpu_types or not draw(st.booleans()):
            continue
        for host in queue.cluster.of_type(draw(st.sampled_from(gpu_types))):
            here = min(missing, int(left[host]))
            if here:
                spots.append((host, here))
                left[host] -= here
                missing -= here
        out[row] = tuple(spots)
    return out


def _lists(each: SearchStrategy[Any], size: int) -> SearchStrategy[list[Any]]:
    return st.lists(each, min_size=size, max_size=size)


@st.composite
def _jobs(draw: DrawFn, cluster: Cluster, count: int, max_gpus: int, unschedulable: bool) -> Jobs:
    most = max_gpus if unschedulable else min(max_gpus, int(cluster.capacity.min()))
    speeds = AMOUNTS if unschedulable else POSITIVE
    tenant = draw(_lists(st.sampled_from(["A", "B", "C"]), count))
    return Jobs.of(
        gpus=draw(_lists(st.integers(1, most), count)),
        work=draw(_lists(POSITIVE.map(lambda value: 10 * value), count)),
        types=cluster.types,
        throughput=[draw(_lists(speeds, len(cluster.types))) for _ in range(count)],
        arrival=draw(_lists(AMOUNTS.map(lambda value: 5 * value), count)),
        tenant=tenant,
        tenant_weight={name: draw(POSITIVE) for name in dict.fromkeys(tenant)},
        memory=draw(_lists(AMOUNTS, count)) if unschedulable else None,
        state_size=draw(_lists(AMOUNTS, count)),
        pattern=draw(_lists(st.sampled_from(Pattern), count)),
        dataset=draw(_lists(st.sampled_from(["", "images", "words"]), count)),
        dataset_size=draw(_lists(AMOUNTS, count)),
        weight=draw(_lists(POSITIVE, count)),
        priority=draw(_lists(st.integers(0, 3), count)),
    )


@st.composite
def _outages(draw: DrawFn, cluster: Cluster) -> Outage:
    begin = Fraction(5 * draw(AMOUNTS))
    end: Number = draw(st.just(INFINITY) | POSITIVE.map(lambda value: begin + 5 * value))
    return Outage(draw(st.sampled_from(cluster.hosts)), begin, end)

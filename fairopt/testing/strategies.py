"""Hypothesis strategies for markets and allocations, and for clusters, traces and queues.

The centrepiece is the `markets` strategy: valid, exact markets with small numbers, in which ties, zeros, weights,
demands and job types can be switched on and off. `allocations` divides the GPUs of a market. `clusters`, `traces` and
`queues` are what policies of rounds are asked about.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import DrawFn, SearchStrategy

from fairopt.problem import Cluster, Jobs, Market, Outage, Pattern, Queue, Spots, Trace
from fairopt.program import INFINITY, Array, Number, fractions, objects

__all__ = ["allocations", "clusters", "markets", "placements", "queues", "traces"]


def _check_range(low: object, high: object, names: str, most: int) -> None:
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidArgument(f"{names}: got {value!r}, expected an integer")
    if not 1 <= low <= high <= most:  # type: ignore[operator]
        raise InvalidArgument(f"{names}: got {low} and {high}, expected 1 <= min <= max <= {most}")


def markets(
    *,
    min_users: int = 1,
    max_users: int = 6,
    min_types: int = 1,
    max_types: int = 4,
    weights: bool = True,
    zeros: bool = True,
    demands: bool = False,
    jobs: bool = False,
    max_value: int = 12,
    ties: bool = True,
) -> SearchStrategy[Market]:
    """Return a strategy for valid, exact markets.

    * ``min_users``, ``max_users``, ``min_types``, ``max_types``: bounds on the shape; rows count, and with ``jobs``
      a user may have several.
    * ``weights``: whether weights may differ from 1. ``demands``: whether users may have one.
    * ``zeros``: whether speedups and capacities may be 0; every user can run somewhere all the same.
    * ``jobs``: whether rows may be virtual users, called "user/job".
    * ``max_value``: no speedup, capacity, weight or demand is larger; with ties denominators are 1 to 4.
    * ``ties``: whether speedups may be equal; without ties they are positive, rise from each type to the next, and rise
      faster for some users than for others, no two alike.

    Errors: `hypothesis.errors.InvalidArgument` for bounds that cannot be met.

    >>> from hypothesis import given
    >>> @given(markets(max_users=3, demands=True))
    ... def equal_shares_fit(market):
    ...     assert (market.equal_split().sum(axis=0) <= market.capacity).all()
    """
    _check_range(min_users, max_users, "min_users and max_users", 100)
    _check_range(min_types, max_types, "min_types and max_types", 100)
    _check_range(1, max_value, "1 and max_value", 10**6)
    if not ties and max_value < 2:
        raise InvalidArgument(f"max_value={max_value} leaves no room for speedups without ties; give at least 2")

    numbers = st.integers(1, max_value) | st.builds(Fraction, st.integers(1, max_value), st.integers(2, 4))

    @st.composite
    def build(draw: DrawFn) -> Market:
        n, k = draw(st.integers(min_users, max_users)), draw(st.integers(min_types, max_types))
        speedup = [draw(_rows(k, numbers, zeros)) for _ in range(n)] if ties else draw(_different_rows(n, k, max_value))
        capacity = draw(st.lists(numbers, min_size=k, max_size=k))
        if zeros and draw(st.booleans()):
            needed = {next(j for j, value in enumerate(row) if value) for row in speedup}
            spare = [j for j in range(k) if j not in needed]
            for j in draw(st.sets(st.sampled_from(spare))) if spare else ():
                capacity[j] = 0
        users, owner = draw(_virtual_users(n)) if jobs else ([f"u{number}" for number in range(1, n + 1)], None)
        return Market.of(
            speedup,
            capacity,
            weight=draw(st.lists(numbers, min_size=n, max_size=n)) if weights else None,
            demand=draw(st.none() | st.lists(st.none() | numbers, min_size=n, max_size=n)) if demands else None,
            users=users,
            owner=owner,
            types=[f"T{number}" for number in range(1, k + 1)],
        )

    return build()


def _rows(k: int, numbers: SearchStrategy[Any], zeros: bool) -> SearchStrategy[list[Any]]:
    entries = st.just(0) | numbers if zeros else numbers
    return st.lists(entries, min_size=k, max_size=k).filter(any)


@st.composite
def _different_rows(draw: DrawFn, n: int, k: int, max_value: int) -> list[list[Any]]:
    """Return rows 1, 1 + c s, 1 + c (s + s^2), ...: strictly rising, the faster the larger s, and s differs by user."""
    finest = max(n, max_value)
    slopes = draw(st.lists(st.integers(1, finest), min_size=n, max_size=n, unique=True))
    scale = Fraction(max_value - 1, max(1, k - 1))  # the last entry is max_value at most
    return [
        [1 + scale * sum(Fraction(slope, finest) ** power for power in range(1, j + 1)) for j in range(k)]
        for slope in slopes
    ]


@st.composite
def _virtual_users(draw: DrawFn, n: int) -> tuple[list[str], list[str]]:
    """Return names and owners of n rows, of which neighbours may be the job types of one user."""
    starts = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    owner = [f"u{sum(starts[: row + 1])}" for row in range(n)]
    alone = [owner.count(name) == 1 and draw(st.booleans()) for name in owner]  # one job type may be written either way
    users = [name if single else f"{name}/j{row}" for row, (name, single) in enumerate(zip(owner, alone, strict=True))]
    return users, owner


def allocations(market: Market, feasible: bool = True) -> SearchStrategy[Array]:
    """Return a strategy for exact shares (n, k) of a market.

    ``feasible``: whether they are non-negative and within capacity; otherwise each one has a negative entry or books
    more than there is.

    Errors: `hypothesis.errors.InvalidArgument` where ``market`` is no market in Fractions.

    >>> from hypothesis import given
    >>> @given(allocations(Market.of([[1, 2], [1, 5]], [1, 1])))
    ... def nothing_is_given_out_twice(shares):
    ...     assert (shares.sum(axis=0) <= 1).all()
    """
    if not isinstance(market, Market) or not market.exact:
        raise InvalidArgument(f"expected an exact Market, got {market!r}")
    n, k = market.shape

    @st.composite
    def build(draw: DrawFn) -> Array:
        shares = np.empty((n, k), dtype=object)
        for j in range(k):
            parts = draw(st.lists(st.integers(0, 6), min_size=n + 1, max_size=n + 1))  # the last part stays idle
            whole = sum(parts)
            shares[:, j] = [market.capacity[j] * Fraction(part, whole) if whole else Fraction(0) for part in parts[:n]]
        if not feasible:
            i, j = (draw(st.integers(0, size - 1)) for size in (n, k))
            off = draw(st.fractions(Fraction(1, 100), 5, max_denominator=100))
            beyond = shares[i, j] + market.capacity[j] - shares[:, j].sum() + off
            shares[i, j] = draw(st.sampled_from([-off, beyond]))
        return shares

    return build()


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

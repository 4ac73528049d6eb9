"""Hypothesis strategies for markets and allocations, and for clusters, traces and queues.

The centrepiece is the `markets` strategy: valid, exact markets with small numbers, in which ties, zeros, weights,
demands and job types can be switched on and off. `allocations` divides the GPUs of a market. `clusters`, `traces` and
`queues` are what policies of rounds are asked about, drawn as in `fairopt.testing.round_samples`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import DrawFn, SearchStrategy

from fairopt.problem import Cluster, Market, Queue, Spots, Trace
from fairopt.program import Array
from fairopt.testing.round_samples import sample_cluster, sample_placements, sample_queue, sample_trace

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


#: Draws like Python's random numbers, and shrinks.
RANDOM = st.randoms(use_true_random=False)


def clusters() -> SearchStrategy[Cluster]:
    """Return a strategy for valid, exact clusters: every type has a host; memory and bandwidth may be unlimited.

    >>> from hypothesis import given
    >>> @given(clusters())
    ... def every_type_has_a_host(cluster):
    ...     assert set(cluster.gpu_type) == set(range(len(cluster.types)))
    """
    return RANDOM.map(lambda random: sample_cluster(random, (1, 3), (1, 5)))


def traces(cluster: Cluster) -> SearchStrategy[Trace]:
    """Return a strategy for valid, exact traces on a cluster: jobs may fit no type, and hosts may fail.

    >>> from hypothesis import given
    >>> from fairopt.datasets import philly_cluster
    >>> @given(traces(philly_cluster()))
    ... def jobs_come_in_order(trace):
    ...     assert list(trace.jobs.arrival) == sorted(trace.jobs.arrival)
    """
    return RANDOM.map(lambda random: sample_trace(random, cluster, (1, 6)))


def queues() -> SearchStrategy[Queue]:
    """Return a strategy for queues in the middle of a run: some jobs ran, some hold leases, hosts may be down.

    >>> from hypothesis import given
    >>> @given(queues())
    ... def jobs_have_arrived(queue):
    ...     assert (queue.jobs.arrival <= queue.now).all()
    """
    return RANDOM.map(sample_queue)


def placements(queue: Queue) -> SearchStrategy[dict[int, Spots]]:
    """Return a strategy for GPUs of one type, for some jobs of a queue, that are free and that they can run on.

    >>> from hypothesis import given
    >>> @given(queues().flatmap(placements))
    ... def no_job_runs_in_parts(spots):
    ...     assert all(sum(gpus for _, gpus in each) > 0 for each in spots.values())
    """
    return RANDOM.map(lambda random: sample_placements(random, queue))

"""Makes a market of a queue: its users are tenants with their types of jobs, or the jobs themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.deadline import only_a_part
from fairopt.numbers import arithmetic
from fairopt.policy import Policy, decide
from fairopt.problem import Market
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Array, Number, cast

#: Speedups in floats with a smaller relative difference belong to one type of job.
DIGITS = 12


def per_gpu(queue: Queue, rows: Sequence[int] | Array, runs: Array) -> Array:
    """Return the throughput per GPU of each of ``rows`` (n, k): the gang's over its size; 0 unless it ``runs``.

    ``runs`` (all jobs, k) is `Queue.allowed` where a gang is on one type, `Queue.suits` where types may mix.

    Source: OEF Sec. 2.3 (speedups are of one worker).
    """
    at = np.asarray(rows, dtype=np.int64)
    sizes = cast(queue.jobs.gpus[at], queue.number)
    return np.asarray(queue.jobs.throughput[at] / sizes[:, None] * runs[at])


# -- tenants -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    """The tenants' requests in plain numbers, which can be compared between rounds and kept in a state.

    For each type of job of each tenant (a virtual user): ``tenant``, ``speedup`` on one GPU of each type, ``weight``,
    and ``demand``, the most GPUs that it can use (infinity for no limit). ``capacity``: GPUs by type.
    """

    tenant: tuple[str, ...]
    speedup: tuple[tuple[Number, ...], ...]
    weight: tuple[Number, ...]
    demand: tuple[Number, ...]
    capacity: tuple[int, ...]


def asked_by_tenants(
    queue: Queue, *, common_units: bool = True, demand: bool = False, cross_type: bool = True
) -> Asked:
    """Return the requests of the tenants of a queue; only jobs that could run now count.

    Jobs of a tenant with the same speedups are one type of job. ``common_units`` takes speedups relative to the job's
    fastest type; False takes throughputs in the jobs' own units. A tenant's weight is divided equally among its types
    of jobs. ``demand`` limits each to the GPUs that its jobs can use. Without ``cross_type`` a job has no speedup on a
    type with too few GPUs for its gang.

    Source: OEF Sec. 4.2.4.
    """
    rows, jobs = queue.able, queue.jobs
    speeds = per_gpu(queue, rows, queue.suits if cross_type else queue.allowed)
    if common_units and rows:
        speeds = speeds / speeds.max(axis=1)[:, None]
    if not queue.exact:
        values, place = np.unique(speeds, return_inverse=True)
        speeds = np.array([float(f"{value:.{DIGITS}g}") for value in values])[place].reshape(speeds.shape)
    wanted: Counter[tuple[int, tuple[Number, ...]]] = Counter()
    for tenant, speed, gpus in zip(jobs.tenant[rows].tolist(), speeds.tolist(), jobs.gpus[rows].tolist(), strict=True):
        wanted[tenant, tuple(speed)] += gpus
    tenants = [tenant for tenant, _ in wanted]
    types_of = Counter(tenants)
    return Asked(
        tenant=tuple(jobs.tenants[tenant] for tenant in tenants),
        speedup=tuple(speed for _, speed in wanted),
        weight=tuple(jobs.tenant_weight[tenant] / types_of[tenant] for tenant in tenants),
        demand=tuple(gpus if demand else INFINITY for gpus in wanted.values()),
        capacity=tuple(queue.capacity.tolist()),
    )


def market_of(asked: Asked, types: Sequence[str], *, common_units: bool = True) -> Market:
    """Return the market of the tenants' requests; a tenant owns each row. ``common_units``: the slowest type is 1.

    Source: OEF Sec. 2.3 (the speedup on the slowest type is 1), 4.2.4 (virtual users).
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for tenant in asked.tenant:
        seen[tenant] += 1
        names.append(f"{tenant[:150]}/{seen[tenant]}/{len(names) + 1}")
    market = Market.of(
        asked.speedup,
        asked.capacity,
        weight=asked.weight,
        demand=None if all(value == INFINITY for value in asked.demand) else asked.demand,
        users=names,
        types=types,
        owner=asked.tenant,
    )
    return market.normalised() if common_units else market


def ideal_shares(
    policy: Policy, market: Market, solve: Session, number: type
) -> tuple[dict[str, tuple[Number, ...]], Any]:
    """Return each tenant's share of each type under a share policy, in ``number``, and the decision itself.

    The share policy must have no memory: it starts afresh each time. Where a float solver overbooks a type within its
    tolerance, all shares of that type are scaled down.
    """
    with only_a_part():
        if solve.method is None:
            decision = decide(policy, market, solve.backend, options=solve.options)
        else:
            decision = decide(policy, market.as_(number))
    shares = cast(np.asarray(decision.shares), number)
    capacity, given = cast(market.capacity, number), shares.sum(axis=0)
    over = np.asarray(given > capacity, dtype=bool)
    if over.any():
        shares = shares.copy()
        shares[:, over] = shares[:, over] * (capacity[over] / given[over])
    ideal: dict[str, tuple[Number, ...]] = {}
    for owner, row in zip(market.owner, shares.tolist(), strict=True):
        before = ideal.get(owner, (number(0),) * len(row))
        ideal[owner] = tuple(one + other for one, other in zip(before, row, strict=True))
    return ideal, decision


# -- jobs ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class JobMarket:
    """The jobs of a queue that could run now, as users of a market; shapes for n jobs on k types.

    * ``rows``: their rows in the queue. ``market``: speedups are per GPU, demands are the gangs' sizes, weights are the
      jobs'. Shares are mean numbers of GPUs over time: the time fraction X times the gang's size.
    * ``remaining``, ``work`` (n,): remaining and total work. ``elapsed`` (n,): time since arrival.

    Source: Gavel, OSDI 2020, Sec. 3.1 (0 <= X_mj, sum_j X_mj <= 1, sum_m scale_m X_mj <= workers of type j).
    """

    rows: tuple[int, ...]
    market: Market
    remaining: Array
    work: Array
    elapsed: Array

    @classmethod
    def of(cls, queue: Queue, *, by_tenant: bool = False) -> JobMarket | None:
        """Return the market of the jobs that could run now, in the queue's numbers; None where there are none.

        ``by_tenant``: each tenant's weight is divided among its jobs here, in proportion to their own weights.
        """
        rows = np.array(queue.able)
        if not len(rows):
            return None
        weight = queue.jobs.weight[rows]
        if by_tenant:
            tenant = queue.jobs.tenant[rows]
            whole = queue.jobs.tenant_weight * 0
            np.add.at(whole, tenant, weight)
            weight = weight / whole[tenant] * queue.jobs.tenant_weight[tenant]
        names = tuple(map(queue.jobs.names.__getitem__, queue.able))
        market = Market(
            speedup=per_gpu(queue, rows, queue.allowed),
            capacity=cast(queue.capacity, queue.number),
            weight=weight,
            users=names,
            types=queue.cluster.types,
            demand=cast(queue.jobs.gpus[rows], queue.number),
            owner=names,
        )
        columns = (queue.remaining[rows], queue.jobs.work[rows], queue.now - queue.jobs.arrival[rows])
        return cls(tuple(queue.able), market, *map(np.asarray, columns))

    def as_(self, number: type) -> JobMarket:
        """Return the same in ``float`` or in ``Fraction``."""
        if self.market.arithmetic is arithmetic(number):
            return self
        numbers: dict[str, Any] = {name: cast(getattr(self, name), number) for name in ("remaining", "work", "elapsed")}
        return replace(self, market=self.market.as_(number), **numbers)

    def fastest(self) -> Array:
        """Return the throughput (n,) that each job would have with the cluster to itself."""
        return self.market.utility(np.broadcast_to(self.market.capacity, self.market.shape))

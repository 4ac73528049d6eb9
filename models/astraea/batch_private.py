"""The same packing without sharing: each tenant has a private part of the servers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import Admission, Claim, Plan, Policy, Seconds, Trait, decide
from fairopt.problem.batch import Batch
from fairopt.program import Array


@dataclass(frozen=True)
class BatchPrivate(Policy):
    """Divide the servers by the tenants' quotas, and run posted-price packing in each part; there are no payments.

    Servers are handed out in order, tenants in order, until a tenant's quotas of workers and of PS are full. A server
    on the border is split between two tenants. A tenant owns all of its part, so the second pass of a round changes
    nothing.

    Source: Astraea (posted prices) Sec. 5.1, baseline BatchSche.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> decide(BatchPrivate(), astraea_example())
    <Plan: batch-private on <Batch: 4 jobs of 2 tenants on 4 servers>: 4 of 4 jobs run>
    """

    problem = Batch
    name = "batch-private"
    source = "Astraea, IEEE TC 2022, Sec. 5.1 (BatchSche)"
    traits = frozenset({Trait.NAMELESS})
    claims = (Claim("batch_sharing_incentive", "by definition: everybody is alone"),)
    packing: PostedPricePacking = field(default_factory=PostedPricePacking)

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Decide each tenant's part; see `Policy.decide`."""
        begun = perf_counter()
        admissions: list[Admission] = []
        for tenant, part in enumerate(partition(problem)):
            rows = np.flatnonzero(problem.jobs.tenant == tenant).tolist()
            if not rows:
                continue
            for each in decide(self.packing, part).admissions:
                schedule = None if each.schedule is None else replace(each.schedule, job=rows[each.job])
                admissions.append(replace(each, job=rows[each.job], schedule=schedule))
        return Plan.of_admissions(self.name, problem, admissions, seconds=Seconds(solve=perf_counter() - begun))


def partition(batch: Batch) -> list[Batch]:
    """Return a batch for each tenant: its jobs, and servers cut down to what it owns."""
    left = [batch.workers.copy(), batch.ps.copy()]
    parts = []
    for tenant, name in enumerate(batch.tenants):
        quotas = batch.worker_quota[tenant], batch.ps_quota[tenant]
        workers, ps = (_take(there, quota) for there, quota in zip(left, quotas, strict=True))
        jobs = batch.jobs.take(np.flatnonzero(batch.jobs.tenant == tenant).tolist())
        jobs = replace(jobs, tenant=np.zeros(len(jobs), dtype=np.int64))
        own_quotas = {"worker_quota": quotas[0][None].copy(), "ps_quota": quotas[1][None].copy()}
        parts.append(replace(batch, tenants=(name,), workers=workers, ps=ps, jobs=jobs, **own_quotas))
    return parts


def _take(left: Array, quota: Array) -> Array:
    """Take a quota (types,) from ``left`` (S, types), servers in order, and return what was taken."""
    before = np.cumsum(left, axis=0) - left
    taken = np.clip(quota[None, :] - before, 0, left)
    left -= taken
    return np.asarray(taken)

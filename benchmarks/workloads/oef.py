"""The tenants of OEF's evaluation of completion times."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.numbers import check_number, exact, within
from fairopt.program import Number
from fairopt.workloads.distributions import drawn, marginals
from fairopt.workloads.poisson import GRAIN, scaled
from fairopt.workloads.workload import Counted, Workload, gpu_time, load_of, streams


class Coming(Enum):
    """When a tenant's jobs come, which OEF does not say.

    AT_ONCE: all at time 0. BY_TENANT: a tenant's all at one random time. BY_JOB: each at a random time.
    """

    AT_ONCE = "at-once"
    BY_TENANT = "by-tenant"
    BY_JOB = "by-job"


@dataclass(frozen=True)
class OefTenants(Workload):
    """50 tenants with about 20 jobs each, of one type for each tenant; what the paper does not say is an option.

    * ``tenants``: how many, 50 (Sec. 6.3.2). ``jobs``: of a tenant, "averaging 20 jobs of the same type" (Sec. 6.3.2).
      ``spread``: a tenant has that many more or fewer at most, drawn evenly (ours).
    * ``days``: "a three-day-long evaluation" (Sec. 6.3.2), over which the load is meant. ``coming``: when jobs come
      (open); random times are within the first half of the days (ours), so that the evaluation sees their ends.
    * ``load``: open ("contention levels consistent with ... Philly", Sec. 6.1.2): run times are multiplied to reach it.
    * ``like``: the trace whose gangs and run times are taken (ours). ``largest``: the largest gang (ours).
      ``longest_hours``: the longest run time, before they are multiplied (none: any; ours).
    * ``slowest_speedup``: the least of the last type over the first, 1.39 for VGG on an RTX 3090 (Sec. 2.2, Fig. 1(a)).
      ``largest_speedup``: the largest, 2.15 for LSTM. All jobs of a tenant have one; even, the 3080 between (ours).
    * ``counted``: the speed at which the load counts a job's GPU-time.

    Source: OEF (2024), Sec. 6.1 and 6.3.2.

    >>> from fairopt.datasets import oef_cluster
    >>> OefTenants().trace(seed=1, cluster=oef_cluster()).jobs.tenants[-1]
    't50'
    """

    name = "oef-tenants"
    source = "OEF (2024), Sec. 6.1 and 6.3.2"
    home = "oef-cluster"

    tenants: int = within(50, least=1)
    jobs: int = within(20, least=1)
    spread: int = 10
    days: float = within(3, above=0, most=10_000)
    coming: Coming = Coming.AT_ONCE
    load: float = within(0.8, above=0, most=1000)
    like: str = "philly"
    largest: int = within(4, least=1)
    longest_hours: float | None = None
    slowest_speedup: float = 1.39
    largest_speedup: float = 2.15
    counted: Counted = Counted.MEAN

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.spread, "spread", least=0, most=self.jobs - 1, whole=True)
        marginals(self.like)

    def load_of(self, trace: Trace, cluster: Cluster) -> Number:
        """Return the load of a trace over all of the days."""
        return load_of(trace, cluster, over=exact(self.days, "days") * 86_400, counted=self.counted)

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed for ``cluster``, such as the data set oef-cluster."""
        for_counts, for_jobs, for_speeds, for_arrivals = streams(seed, 4)
        counts = (self.jobs + for_counts.integers(-self.spread, self.spread + 1, size=self.tenants)).tolist()
        owner = [tenant for tenant, count in enumerate(counts) for _ in range(count)]
        parts = marginals(self.like).up_to(min(self.largest, int(cluster.capacity.max())), self.longest_hours)
        sizes, seconds = parts.draw(for_jobs, len(owner))
        gpus = sizes.tolist()
        by_tenant = drawn(self.tenants, len(cluster.types), for_speeds, (self.slowest_speedup, self.largest_speedup))
        speed = [by_tenant[tenant] for tenant in owner]
        work = [Fraction(each) for each in seconds.tolist()]
        needed = gpu_time(gpus, work, speed, cluster, self.counted)
        wanted = exact(self.load, "load") * int(cluster.gpus.sum()) * exact(self.days, "days") * 86_400
        return Trace(
            Jobs.of(
                gpus=gpus,
                work=scaled(work, wanted / needed),
                types=cluster.types,
                throughput=speed,
                arrival=self._arrivals(owner, for_arrivals),
                tenant=[f"t{tenant + 1}" for tenant in owner],
            )
        )

    def _arrivals(self, owner: list[int], random: np.random.Generator) -> list[Fraction]:
        half = exact(self.days, "days") * 43_200
        of_tenants, of_jobs = random.integers(GRAIN, size=self.tenants), random.integers(GRAIN, size=len(owner))
        part = {
            Coming.AT_ONCE: [0] * len(owner),
            Coming.BY_TENANT: [int(of_tenants[tenant]) for tenant in owner],
            Coming.BY_JOB: of_jobs.tolist(),
        }[self.coming]
        return [round(half * Fraction(each, GRAIN), 3) for each in part]

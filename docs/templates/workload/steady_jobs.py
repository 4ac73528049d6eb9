"""A generator of traces: a frozen dataclass whose fields are its options."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.numbers import within
from fairopt.workloads import Workload
from fairopt.workloads.workload import streams


@dataclass(frozen=True)
class SteadyJobs(Workload):
    """Jobs of one GPU that come one an hour and take 1 to 6 hours.

    ``jobs``: how many. Source: where its parameters are from.
    """

    name = "steady-jobs"
    source = "made up"

    jobs: int = within(24, least=2)

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed: random numbers are integers of its own stream."""
        (random,) = streams(seed, 1)
        hours = random.integers(1, 7, size=self.jobs).tolist()
        return Trace(
            Jobs.of(
                gpus=[1] * self.jobs,
                work=[3600 * each for each in hours],
                arrival=[3600 * at for at in range(self.jobs)],
                types=cluster.types,
            )
        )

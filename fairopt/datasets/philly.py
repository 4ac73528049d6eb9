"""Microsoft's Philly trace: a thousand jobs, and a cluster of matching size."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.datasets.tables import dataset_path
from fairopt.problem.cluster import Cluster
from fairopt.problem.files.cluster import read_cluster
from fairopt.problem.files.trace import read_trace
from fairopt.problem.trace import Trace

PHILLY_TYPES = ("K80", "P100", "V100")


def philly_trace(types: Sequence[str] = PHILLY_TYPES) -> Trace:
    """Return 1,000 jobs of eight tenants that arrive within a day; times in seconds, sizes in gigabytes.

    Jobs, tenants, times of submission, running times and GPUs are from the trace. Models, with throughputs as Gavel
    measured them, and sizes of training state are assigned by a seeded random draw. On P100 a job has throughput 1 and
    takes its real running time. `SOURCES.md` beside the data has the rules. ``types``: those of K80, P100, V100 that
    the cluster has, in its order.

    Source: Jeon et al., USENIX ATC 2019 (the trace); Narayanan et al., OSDI 2020 (throughputs).

    >>> philly_trace()
    <Trace: <Jobs: 1000 of 8 tenants, types K80, P100, V100>, 0 outages>
    """
    return read_trace(dataset_path("philly_1000.csv"), types)


def philly_cluster() -> Cluster:
    """Return a cluster of 64 GPUs on eight hosts, which the jobs of `philly_trace` keep busy but do not overload.

    Source: made up for that trace; `SOURCES.md` beside the data has the rule.

    >>> philly_cluster()
    <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>
    """
    return read_cluster(dataset_path("philly_cluster.toml"))

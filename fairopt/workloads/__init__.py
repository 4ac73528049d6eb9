"""Generators of traces: who comes when, with which jobs, on a cluster and at a load that is stated and checked.

A generator is a frozen dataclass, whose fields are its options, found by entry point (``fairopt.workloads``).

>>> from fairopt.datasets import philly_cluster
>>> trace = Poisson(jobs=100, load=0.8).trace(seed=3, cluster=philly_cluster())
>>> round(float(load_of(trace, philly_cluster())), 4)
0.8
"""

from fairopt.workloads.distributions import Speeds
from fairopt.workloads.estimates import ErrorForm, ErrorSign, WorkEstimates
from fairopt.workloads.on_off import OnOff
from fairopt.workloads.poisson import Poisson
from fairopt.workloads.trace_driven import TraceDriven
from fairopt.workloads.workload import Counted, Workload, load_of

__all__ = [
    "Counted",
    "ErrorForm",
    "ErrorSign",
    "OnOff",
    "Poisson",
    "Speeds",
    "TraceDriven",
    "WorkEstimates",
    "Workload",
    "load_of",
]

"""Generators of traces: who comes when, with which jobs, on a cluster and at a load that is stated and checked.

A generator is a frozen dataclass, whose fields are its options, found by entry point (``fairopt.workloads``).

>>> from fairopt.datasets import philly_cluster
>>> trace = Poisson(jobs=100, load=0.8).trace(seed=3, cluster=philly_cluster())
>>> round(float(load_of(trace, philly_cluster())), 4)
0.8
"""

from fairopt.later import offered
from fairopt.workloads.distributions import Speeds as Speeds
from fairopt.workloads.estimates import ErrorForm as ErrorForm
from fairopt.workloads.estimates import ErrorSign as ErrorSign
from fairopt.workloads.estimates import WorkEstimates as WorkEstimates
from fairopt.workloads.on_off import OnOff as OnOff
from fairopt.workloads.poisson import Poisson as Poisson
from fairopt.workloads.trace_driven import TraceDriven as TraceDriven
from fairopt.workloads.workload import Counted as Counted
from fairopt.workloads.workload import Workload as Workload
from fairopt.workloads.workload import load_of as load_of

__all__ = offered(__name__)

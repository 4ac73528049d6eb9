"""What is allocated: markets of GPU shares, in Python and in files.

>>> from fairopt.datasets import dataset_path
>>> read_market(dataset_path("oef_example.toml"))
<Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>
"""

from typing import TYPE_CHECKING

from fairopt.later import later, offered
from fairopt.problem.entitled_rows import Good as Good
from fairopt.problem.entitlements import Entitled as Entitled
from fairopt.problem.entitlements import Entitlements as Entitlements
from fairopt.problem.gangs import Gangs as Gangs
from fairopt.problem.market import Market as Market
from fairopt.problem.numbers import exact as exact
from fairopt.problem.throughput import capped_value as capped_value
from fairopt.problem.throughput import usable as usable
from fairopt.problem.worth import worth as worth

if TYPE_CHECKING:
    from fairopt.problem.cluster import Cluster as Cluster
    from fairopt.problem.files.allocation import allocation_from as allocation_from
    from fairopt.problem.files.allocation import read_allocation as read_allocation
    from fairopt.problem.files.cluster import cluster_schema as cluster_schema
    from fairopt.problem.files.cluster import read_cluster as read_cluster
    from fairopt.problem.files.cluster import write_cluster as write_cluster
    from fairopt.problem.files.market import market_from_dict as market_from_dict
    from fairopt.problem.files.market import market_schema as market_schema
    from fairopt.problem.files.market import market_to_dict as market_to_dict
    from fairopt.problem.files.market import read_market as read_market
    from fairopt.problem.files.market import write_market as write_market
    from fairopt.problem.files.trace import read_trace as read_trace
    from fairopt.problem.files.trace import trace_schema as trace_schema
    from fairopt.problem.files.trace import write_trace as write_trace
    from fairopt.problem.jobs import Jobs as Jobs
    from fairopt.problem.jobs import Pattern as Pattern
    from fairopt.problem.queue import Queue as Queue
    from fairopt.problem.queue import Spots as Spots
    from fairopt.problem.trace import Outage as Outage
    from fairopt.problem.trace import Trace as Trace

# a module is loaded when a name of it is first used: who shares a market needs no trace and no file
__getattr__ = later(__name__)
__all__ = offered(__name__)

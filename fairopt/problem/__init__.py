"""What is allocated: markets of GPU shares, in Python and in files.

>>> from fairopt.datasets import dataset_path
>>> read_market(dataset_path("oef_example.toml"))
<Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairopt.problem.cluster import Cluster
from fairopt.problem.entitled_rows import Good
from fairopt.problem.entitlements import Entitled, Entitlements
from fairopt.problem.gangs import Gangs
from fairopt.problem.jobs import Jobs, Pattern
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.problem.throughput import capped_value, usable
from fairopt.problem.trace import Outage, Trace
from fairopt.problem.worth import worth

if TYPE_CHECKING:
    from fairopt.problem.files.allocation import allocation_from, read_allocation
    from fairopt.problem.files.cluster import cluster_schema, read_cluster, write_cluster
    from fairopt.problem.files.market import market_from_dict, market_schema, market_to_dict, read_market, write_market
    from fairopt.problem.files.trace import read_trace, trace_schema, write_trace

__all__ = [
    "Cluster",
    "Entitled",
    "Entitlements",
    "Gangs",
    "Good",
    "Jobs",
    "Market",
    "Outage",
    "Pattern",
    "Queue",
    "Spots",
    "Trace",
    "allocation_from",
    "capped_value",
    "cluster_schema",
    "exact",
    "market_from_dict",
    "market_schema",
    "market_to_dict",
    "read_allocation",
    "read_cluster",
    "read_market",
    "read_trace",
    "trace_schema",
    "usable",
    "worth",
    "write_cluster",
    "write_market",
    "write_trace",
]

#: What reads and writes files is imported when it is first asked for: who has a market reads none.
_IN_FILES = {
    name: module
    for module, names in {
        "allocation": ("allocation_from", "read_allocation"),
        "cluster": ("cluster_schema", "read_cluster", "write_cluster"),
        "market": ("market_from_dict", "market_schema", "market_to_dict", "read_market", "write_market"),
        "trace": ("read_trace", "trace_schema", "write_trace"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _IN_FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.files.{_IN_FILES[name]}"), name)
    return value

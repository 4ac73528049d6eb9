"""Write any problem to a file: a market, a trace, a cluster or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.cluster import Cluster
from fairopt.problem.files.batch import write_batch
from fairopt.problem.files.cluster import write_cluster
from fairopt.problem.files.market import write_market
from fairopt.problem.files.storage import AnyPath
from fairopt.problem.files.trace import write_trace
from fairopt.problem.market import Market
from fairopt.problem.trace import Trace

#: What a data set can be, and what an importer can return, and how each is written to a file.
KINDS: Mapping[type, Callable[[Any, AnyPath], None]] = MappingProxyType(
    {Market: write_market, Trace: write_trace, Cluster: write_cluster, Batch: write_batch}
)


def name_of(kind: type) -> str:
    """Return what people call a kind of problem: "market", say."""
    return kind.__name__.lower()


def kind_of(problem: Any, place: str) -> type:
    """Return the kind of ``problem``; errors: `BadInput` at ``place`` for anything else."""
    for kind in KINDS:
        if isinstance(problem, kind):
            return kind
    wanted = ", ".join(f"a {kind.__name__}" for kind in KINDS)
    raise BadInput(f"got {problem!r:.80}, which is no problem", place=place, remedy=f"Return one of {wanted}")

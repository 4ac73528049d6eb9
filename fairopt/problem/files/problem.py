"""Write any problem to a file: a market, a trace, a cluster or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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


class ProblemKind(NamedTuple):
    """What a kind of problem is called, and how it is written to a file."""

    name: str
    write: Callable[[Any, AnyPath], None]


#: What a data set can be, and what an importer can return.
KINDS: Mapping[type, ProblemKind] = MappingProxyType(
    {
        Market: ProblemKind("market", write_market),
        Trace: ProblemKind("trace", write_trace),
        Cluster: ProblemKind("cluster", write_cluster),
        Batch: ProblemKind("batch", write_batch),
    }
)


def kind_of(problem: Any, place: str) -> ProblemKind:
    """Return the kind of ``problem``; errors: `BadInput` at ``place`` for anything else."""
    for each, kind in KINDS.items():
        if isinstance(problem, each):
            return kind
    wanted = ", ".join(f"a {each.__name__}" for each in KINDS)
    raise BadInput(f"got {problem!r:.80}, which is no problem", place=place, remedy=f"Return one of {wanted}")

"""The same trace under several policies, measured side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairopt.backends import Solver
from fairopt.errors import FairoptError
from fairopt.policy import Policy
from fairopt.problem.cluster import Cluster
from fairopt.problem.trace import Trace
from fairopt.simulation.history import History
from fairopt.simulation.measures import Measures, measure
from fairopt.simulation.measures_finish_time import Ideal
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.run import run


class Compared(NamedTuple):
    """A policy, its run and its measures; if an error stopped it, the run up to then, and the error."""

    policy: Policy
    history: History
    measures: Measures
    error: FairoptError | None = None


def compare_runs(
    policies: Iterable[Policy],
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics | None = None,
    backend: Solver | None = None,
    rounds: int | None = None,
    ideal: Ideal | None = None,
) -> Iterator[Compared]:
    """Yield each policy's measures on a trace as soon as its run ends; arguments are those of `run` and `measure`."""
    for policy in policies:
        records, stopped = [], None
        try:
            for record in run(
                policy, trace, cluster, length=length, mechanics=mechanics, backend=backend, rounds=rounds
            ):
                records.append(record)
        except FairoptError as error:
            stopped = error
        history = History.of(trace, cluster, records)
        yield Compared(policy, history, measure(history, ideal=ideal), stopped)

"""Runs that are played as they are told, round by round: for instances and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Spots, Trace
from fairopt.simulation import History, Mechanics, Round, advance, begin, next_queue

#: The GPUs of the instances: two of one type on one host.
TWO_GPUS = Cluster.uniform({"T": (1, 2)})
#: Where single jobs run there.
ONE: Spots = ((0, 1),)
BOTH: Spots = ((0, 2),)


def jobs(gpus: Sequence[int], work: Sequence[object], arrival: Sequence[object] | None = None) -> Trace:
    """Return jobs a, b, c, ... for `TWO_GPUS`, which do a unit of work in a unit of time."""
    names = [chr(ord("a") + row) for row in range(len(gpus))]
    return Trace(Jobs.of(gpus=gpus, work=work, types=TWO_GPUS.types, arrival=arrival, names=names))


def scripted(
    trace: Trace,
    *plan: Mapping[str, Spots],
    cluster: Cluster = TWO_GPUS,
    length: int = 10,
    leases: Mapping[tuple[int, str], int] | None = None,
    mechanics: Mechanics | None = None,
) -> History:
    """Return the run in which jobs lie where ``plan`` says, round by round; ``leases``: by (round, job), until when.

    Errors: `BadInput` where rounds are told in which nobody is left; `BrokenSchedule`.
    """
    number = Fraction if trace.jobs.exact else float
    snapshot, rounds = begin(cluster.as_(number), number), list[Round]()
    for told in plan:
        coming = next_queue(snapshot, trace, cluster.as_(number), number(length))
        if coming is None:
            raise BadInput(f"{len(plan)} rounds are told, and {len(rounds)} are played", place="plan", remedy="Cut it")
        moved, queue = coming
        rows = {name: row for row, name in enumerate(queue.jobs.names)}
        until = {rows[job]: number(end) for (index, job), end in (leases or {}).items() if index == len(rounds)}
        placements = {rows[name]: spots for name, spots in told.items()}
        record = advance(moved, trace, Schedule("scripted", queue, placements, until), mechanics or Mechanics())
        rounds.append(record)
        snapshot = record.after
    return History.of(trace, cluster, rounds)

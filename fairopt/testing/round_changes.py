"""What changed in a run, from the referee's whole records; and whether an engine says the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from fairopt.policy import Policy
from fairopt.problem import Cluster, Spots, Trace
from fairopt.program import Number
from fairopt.simulation import Setting, Snapshot
from fairopt.simulation.changes import Changes, Placed
from fairopt.simulation.engine import Engine
from fairopt.simulation.record import PLACED, Change, JobRun, Round
from fairopt.simulation.run import run

#: A sampled setting needs fewer rounds.
MOST_ROUNDS = 300


def check_engine(
    policy: Policy, setting: Setting, after: Snapshot | None = None, *, cut: int | None = None, ask: bool = False
) -> None:
    """Fail unless the engine's changes, and all that it leaves, are those of the referee, from ``after`` on.

    ``cut``: a second engine goes on from the snapshot of the first one after so many changes. ``ask`` as `Engine` has.
    """
    trace, cluster = setting.trace, setting.cluster
    how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
    rounds = list(run(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, **how))
    wanted = list(changes_of(rounds, trace, cluster, setting.length, after))
    engine = Engine(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, ask=ask, **how)
    said: list[Changes] = []
    for changes in engine:
        said.append(changes)
        if len(said) == cut:
            left = sum(record.index >= engine.index for record in rounds)
            engine = Engine(policy, trace, cluster, rounds=left, after=engine.snapshot(), ask=ask, **how)
            said += engine
            break
    # after a snapshot the costs, notes and back end are said anew
    again = {said[at].index for at in (0, cut) if at is not None and at < len(said) and (at or after is not None)}
    left_, right = ([each for each in map(_comparable(again), of) if not _empty(each)] for of in (wanted, said))
    for one, other in zip_longest(left_, right):
        assert one == other, f"{setting.trace!r}: the referee says {one}, the engine {other}"
    if rounds:
        assert engine.snapshot() == rounds[-1].after, "the engine leaves another state"


def _comparable(again: set[int]) -> Any:
    def comparable(each: Changes) -> Changes:
        ends = {**each.completed, **each.lost}
        # a record holds only the part of a loading time that was spent in the round
        placed = tuple(
            one._replace(setup=min(one.setup, ends.get(one.row, each.end) - each.begin)) for one in each.placed
        )
        bare: dict[str, Any] = {"costs": None, "notes": None, "backend": None} if each.index in again else {}
        return replace(each, placed=placed, **bare)

    return comparable


def _empty(each: Changes) -> bool:
    return each == Changes(each.index, each.begin, each.end, range(0))


def changes_of(
    rounds: Iterable[Round], trace: Trace, cluster: Cluster, length: Number, after: Snapshot | None = None
) -> Iterator[Changes]:
    """Yield the changes of the rounds that `fairopt.simulation.run` yields, from a snapshot on where one is given.

    A record does not hold the loading time of those who are placed, but the part of it that they spent in the round.
    """
    row = {name: at for at, name in enumerate(trace.jobs.names)}
    host = {name: at for at, name in enumerate(cluster.hosts)}
    lease: dict[str, Number] = {}  # of the jobs that run
    down: tuple[str, ...] = ()
    if after is not None:
        lease = {trace.jobs.names[at]: each.lease for at, each in after.present.items() if each.running}
        before = after.now - length
        down = tuple({each.host for each in trace.outages if each.begin <= before < each.end})
    said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
    for record in rounds:
        notes = {row[job]: text for job, text in record.notes.items()}
        says: dict[str, Any] = {"costs": record.costs, "notes": notes, "backend": record.backend}
        ran = {each.job: each for each in record.ran}
        usual = {
            job: lease[job]
            if each.change is Change.STAY and lease.get(job, record.begin) > record.begin
            else record.end
            for job, each in ran.items()
        }
        new = {name: value for name, value in says.items() if said[name] != value}
        arrived = record.after.arrived
        changes = Changes(
            index=record.index,
            begin=record.begin,
            end=record.end,
            arrived=range(arrived - len(record.arrived), arrived),
            failed=tuple(sorted(host[name] for name in record.down if name not in down)),
            back=tuple(sorted(host[name] for name in down if name not in record.down)),
            misfits={row[job]: why for job, why in record.misfits.items() if job in record.arrived},
            stopped=tuple(sorted(row[job] for job in lease if job not in ran)),
            placed=tuple(_placed(each, row, host) for each in record.ran if each.change in PLACED),
            leases={row[job]: each.lease for job, each in ran.items() if each.lease != usual[job]},
            completed={row[each.job]: each.end for each in record.ran if each.completed},
            lost={row[each.job]: each.end for each in record.ran if each.lost},
            **new,
        )
        lease = {each.job: each.lease for each in record.ran if not each.completed and not each.lost}
        down, said = record.down, says
        if changes != Changes(record.index, record.begin, record.end, range(0)):
            yield changes


def _placed(each: JobRun, row: dict[str, int], host: dict[str, int]) -> Placed:
    spots: Spots = tuple((host[name], gpus) for name, gpus in each.spots)
    return Placed(row[each.job], spots, each.change, each.setup, each.speed)

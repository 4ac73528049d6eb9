"""From whole records of rounds to what changed: the way back from `fairopt.simulation.changes` for who has `Round`s."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairopt.problem import Cluster, Trace
from fairopt.problem.queue import Spots
from fairopt.program import Number
from fairopt.simulation.changes import Changes, Placed
from fairopt.simulation.record import Change, JobRun, Round, Snapshot


def differences(trace: Trace, cluster: Cluster, rounds: Iterable[Round]) -> Iterator[Changes]:
    """Yield what changed in each of the rounds, also where nothing did."""
    found = Differences(trace, cluster)
    return (found.of(record) for record in rounds)


@dataclass
class _Running:
    """How a job that runs goes on, unless something is said of it."""

    lease: Number
    setup: Number
    speed: Number | None  # None: not known


class Differences:
    """What a round adds to what the rounds before it say; it remembers what the last one was like.

    ``after`` is the snapshot that rounds of ``length`` go on from, None for the beginning. What the policy said before
    is not in a snapshot: it is said again.
    """

    def __init__(
        self, trace: Trace, cluster: Cluster, after: Snapshot | None = None, length: Number | None = None
    ) -> None:
        self._row = {name: row for row, name in enumerate(trace.jobs.names)}
        self._host = {name: host for host, name in enumerate(cluster.hosts)}
        self._running: dict[int, _Running] = {}
        self._arrived = 0
        self._down: frozenset[int] = frozenset()
        self._said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
        if after is not None and after.index and length is not None:
            before = after.now - length
            down = (each for each in trace.outages if each.begin <= before < each.end)
            self._down, self._arrived = frozenset(self._host[each.host] for each in down), after.arrived
            there = ((row, one) for row, one in after.present.items() if one.running)
            self._running = {row: _Running(one.lease, one.setup, None) for row, one in there}
            self._said = dict.fromkeys(self._said)

    def of(self, record: Round, seconds: float | None = None) -> Changes:
        """Return what changed in a round; ``seconds`` are what deciding took since the last changes that were used."""
        ran = {self._row[each.job]: each for each in record.ran}
        down, before = frozenset(self._host[name] for name in record.down), self._down
        first, self._arrived, self._down = self._arrived, record.after.arrived, down
        told = {row: each.lease for row, each in ran.items() if each.lease != self._unsaid(row, each, record)}
        stopped = tuple(sorted(self._running.keys() - ran.keys()))
        placed = tuple(self._placed(row, each, record) for row, each in ran.items() if not self._stays(row, each))
        self._running = {
            row: _Running(each.lease, record.after.present[row].setup, each.speed)
            for row, each in ran.items()
            if not each.completed and not each.lost
        }
        arriving = ((name, row) for name in record.arrived if (row := self._row[name]) >= first)
        notes = {self._row[name]: text for name, text in record.notes.items()}
        said: dict[str, Any] = {"costs": dict(record.costs), "notes": notes, "backend": record.backend}
        new = {key: value for key, value in said.items() if value != self._said[key]}
        self._said |= new
        return Changes(
            index=record.index,
            begin=record.begin,
            end=record.end,
            arrived=range(first, record.after.arrived),
            failed=tuple(sorted(down - before)),
            back=tuple(sorted(before - down)),
            unschedulable={row: record.unschedulable[name] for name, row in arriving if name in record.unschedulable},
            stopped=stopped,
            placed=placed,
            leases=told,
            completed={row: each.end for row, each in ran.items() if each.completed},
            lost={row: each.end for row, each in ran.items() if each.lost},
            seconds=record.seconds if seconds is None else seconds,
            **new,
        )

    def _stays(self, row: int, ran: JobRun) -> bool:
        """Whether a job goes on as it did; a model of a cluster of one's own may slow it down, or let it load again."""
        before = self._running.get(row)
        if ran.change is not Change.STAY or before is None or before.speed not in (None, ran.speed):
            return False
        return bool(ran.setup == min(before.setup, ran.end - ran.begin))

    def _placed(self, row: int, ran: JobRun, record: Round) -> Placed:
        after = record.after.present.get(row)
        setup = ran.setup if after is None else after.setup if ran.lost else ran.setup + after.setup
        spots: Spots = tuple((self._host[name], gpus) for name, gpus in ran.spots)
        return Placed(row, spots, ran.change, setup, ran.speed)

    def _unsaid(self, row: int, ran: JobRun, record: Round) -> Number:
        """Return the lease of a job of which nothing is said: the one that it has, else the round."""
        before = self._running.get(row)
        goes_on = ran.change is Change.STAY and before is not None and before.lease > record.begin
        return before.lease if before is not None and goes_on else record.end

"""The file that `fairopt run --state` writes: the record of the run, with snapshots to go on from.

It is a record as `fairopt.simulation.recording` describes it. Now and then, and whenever the run stops, a line
``{"snapshot": {...}, "seconds": s}`` is added; the seconds are what deciding took since the last round with a line.
Lines are added and never changed: the last snapshot and the rounds before it can be read even where the program ended
while it wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.storage import naming
from fairopt.simulation import Mechanics, Round, Snapshot
from fairopt.simulation.record import snapshot_from_json, snapshot_to_json
from fairopt.simulation.recording import Recorder
from fairopt.simulation.replay import Record, first_line, lines

#: Seconds between two snapshots: what an end without warning costs at most.
BETWEEN = 30.0


class Resumed(NamedTuple):
    """What a journal holds: the rounds so far, and the snapshot after the last of them."""

    rounds: tuple[Round, ...]
    snapshot: Snapshot


class Journal(Recorder):
    """A record with snapshots, the last of them written when the run stops."""

    def __init__(
        self, path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, before: Resumed | None = None
    ) -> None:
        self._written, self._after = perf_counter(), None if before is None else before.snapshot
        rounds = () if before is None else before.rounds
        super().__init__(path, run, trace, cluster, before=rounds, place="--state")

    def begin(self, before: Iterable[Round]) -> None:
        """Write the rounds of the run that is gone on from, and its snapshot."""
        for record in before:
            super().add(record)
        self._snapshot()

    def add(self, record: Round) -> None:
        """Add a round, and a snapshot where the last one is old."""
        super().add(record)
        self._after = record.after
        if perf_counter() - self._written > BETWEEN:
            self._snapshot()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._snapshot()
        super().__exit__(kind, error, trace)

    def _snapshot(self) -> None:
        if self._after is not None:
            self._line({"snapshot": snapshot_to_json(self._after), "seconds": self._changes.seconds})
            self._stream.flush()
            self._after, self._written = None, perf_counter()


def read_journal(
    path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, mechanics: Mechanics, states: Sequence[type]
) -> Resumed:
    """Return what the journal at ``path`` holds; ``run`` is the header of the run that is to go on.

    Errors: `BadInput` where the file is no journal or has no snapshot yet, and where the run was begun otherwise.
    """
    with naming(str(path)):
        _check_same(first_line(path), run)
        found = [(number, line) for number, line in enumerate(lines(path, torn=True)) if "snapshot" in line][-1:]
        if not found:
            raise BadInput("no snapshot yet", place="the file", remedy="Begin the run anew")
        [(last, line)] = found
        snapshot, seconds = snapshot_from_json(line["snapshot"], states), {"seconds": line.get("seconds", 0.0)}
        # an interruption may have come after a round was written down and before its snapshot was taken
        told = (line for _, line in zip(range(last), lines(path, torn=True), strict=False) if "round" in line)
        rounds = tuple(
            Record(path, run, trace, cluster, mechanics).replayed(
                [*takewhile(lambda line: line["round"] < snapshot.index, told), {"end": snapshot.index, **seconds}]
            )
        )
        return Resumed(rounds, snapshot)


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, value in now.items():
        if before.get(key) != value:
            what = "another file's contents" if key in ("trace", "cluster") else f"{before.get(key)!r}"
            raise BadInput(
                f"the run was begun with {what}, not with {'this one' if key in ('trace', 'cluster') else repr(value)}",
                place=f"run, {key}",
                remedy="Go on with what the run was begun with, or begin anew",
            )

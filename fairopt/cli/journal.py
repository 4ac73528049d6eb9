"""The file that `fairopt run --state` writes: the record of the run, with snapshots to go on from.

It is a record as `fairopt.simulation.recording` describes it. At its beginning, every half minute, and whenever it
stops, a line ``{"snapshot": {...}, "seconds": s}`` is added; the seconds are what deciding took since the last round
with a line. Lines are added and never changed: the last snapshot and the rounds before it can be read even where the
program ended while it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from fairopt.codec import decode
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.storage import naming
from fairopt.simulation import Mechanics, Snapshot
from fairopt.simulation.changes import Changes, Play
from fairopt.simulation.record import snapshot_from_json, snapshot_to_json
from fairopt.simulation.recording import Recorder
from fairopt.simulation.replay import Record, first_line, lines

#: Seconds between two snapshots: what an end without warning costs at most.
BETWEEN = 30.0


@dataclass(frozen=True)
class Resumed:
    """What a journal holds: the snapshot that is gone on from, on line ``last``, and what changed before it."""

    record: Record
    snapshot: Snapshot
    last: int
    seconds: float

    def changes(self) -> Iterator[Changes]:
        """Yield what changed before the snapshot, read from the file once more."""
        with naming(str(self.record.path)):
            yield from self.record.told(self._lines())

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        for _, line in zip(range(self.last), lines(self.record.path, torn=True), strict=False):
            # an interruption may have come after a round was written down and before its snapshot was taken
            if line.get("round", 0) >= self.snapshot.index:
                break
            yield line
        yield {"end": self.snapshot.index, "seconds": self.seconds}


class Journal(Recorder):
    """A record with snapshots, the last of them written when the run stops."""

    def __init__(self, path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, play: Play) -> None:
        super().__init__(path, run, trace, cluster, place="--state")
        self._play, self._kept, self._written = play, False, perf_counter()

    def keep(self) -> None:
        """Write how to go on from here, and put the file in place."""
        self._snapshot()
        self._kept = True
        super().keep()

    def add(self, changes: Changes) -> None:
        """Add a round, and a snapshot where the last one is old."""
        super().add(changes)
        if self._kept and perf_counter() - self._written > BETWEEN:
            self._snapshot()

    def end(self, snapshot: Snapshot, outcome: Mapping[str, Any] | None = None) -> None:
        """Write the last snapshot, and how the run ended."""
        self._snapshot()
        super().end(snapshot, outcome)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # in the midst of a round, which is where Ctrl-C may come, there is no snapshot
        if self._kept and kind is not None and not issubclass(kind, KeyboardInterrupt):
            self._snapshot()
        super().__exit__(kind, error, trace)

    def _snapshot(self) -> None:
        self._write([{"snapshot": snapshot_to_json(self._play.snapshot()), "seconds": self._seconds}])
        self._stream.flush()
        self._written = perf_counter()


def read_journal(
    path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, mechanics: Mechanics, states: Sequence[type]
) -> Resumed:
    """Return what the journal at ``path`` holds; ``run`` is the header of the run that is to go on.

    Errors: `BadInput` where the file is no journal or has no snapshot yet, and where the run was begun otherwise.
    """
    with naming(str(path)):
        _check_same(first_line(path), run)
        found: tuple[int, dict[str, Any]] | None = None
        for number, line in enumerate(lines(path, torn=True)):
            found = (number, line) if "snapshot" in line else found
        if found is None:
            raise BadInput("no snapshot yet", place="the file", remedy="Begin the run anew")
        last, line = found
        snapshot = snapshot_from_json(line["snapshot"], states)
        seconds: float = decode(float, line.get("seconds", 0.0), "seconds")
        return Resumed(Record(path, run, trace, cluster, mechanics), snapshot, last, seconds)


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, value in now.items():
        if before.get(key) != value:
            what = "another file's contents" if key in ("trace", "cluster") else f"{before.get(key)!r}"
            raise BadInput(
                f"the run was begun with {what}, not with {'this one' if key in ('trace', 'cluster') else repr(value)}",
                place=f"run, {key}",
                remedy="Go on with what the run was begun with, or begin anew",
            )

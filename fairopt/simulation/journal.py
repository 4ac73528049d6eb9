"""The file that `fairopt run --state` writes: the record of the run, with snapshots to go on from.

It is a record as `fairopt.simulation.recording` describes it. At its beginning, every half minute, and whenever it
stops, a line ``{"snapshot": {...}, "seconds": s, "sha256": "..."}`` is added; the seconds are what deciding took since
the last round with a line, and the digest is of the two. Lines are added and never changed: the last snapshot and the
rounds before it can be read even where the program ended while it wrote. A snapshot that was changed is not gone on
from: what a policy remembers is its own, and nobody else can tell whether it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from fairopt.codec import decode
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.storage import naming
from fairopt.problem.numbers import shown
from fairopt.simulation import Mechanics, Snapshot
from fairopt.simulation.engine import Engine
from fairopt.simulation.record import Changes, snapshot_from_json, snapshot_to_json
from fairopt.simulation.recording import Recorder, digest
from fairopt.simulation.replay import Record, first_line, lines
from fairopt.simulation.rounds import check_goes_on

#: Seconds between two snapshots: what an end without warning costs at most.
BETWEEN = 30.0


class Journal(Recorder):
    """A record with snapshots, the last of them written when the run stops."""

    def __init__(self, path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, play: Engine) -> None:
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
        told = {"snapshot": snapshot_to_json(self._play.snapshot()), "seconds": self._seconds}
        self._write([{**told, "sha256": digest(told)}])
        self._stream.flush()
        self._written = perf_counter()


def read_journal(
    path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, mechanics: Mechanics, states: Sequence[type]
) -> tuple[Snapshot, Iterator[Changes]]:
    """Return the last snapshot of the journal at ``path``, and what changed before it, read once more when asked for.

    ``run`` is the header of the run that is to go on.

    Errors: `BadInput` where the file is no journal or has no snapshot yet, where the run was begun otherwise, and where
    the snapshot is not as it was written.
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
        seconds: float = decode(float, line.get("seconds"), "seconds")
        check_goes_on(snapshot, trace, cluster)
        _check_as_written(line, last + 1)
        return snapshot, _before(snapshot, Record(path, run, trace, cluster, mechanics), last, seconds)


def _before(snapshot: Snapshot, record: Record, last: int, seconds: float) -> Iterator[Changes]:
    """Yield what changed before a snapshot, which is gone on from, on line ``last``."""

    def told() -> Iterator[Mapping[str, Any]]:
        for _, line in zip(range(last), lines(record.path, torn=True), strict=False):
            # an interruption may have come after a round was written down and before its snapshot was taken
            if line.get("round", 0) >= snapshot.index:
                break
            yield line
        yield {"end": snapshot.index, "seconds": seconds}

    with naming(str(record.path)):
        yield from record.told(told())


def _check_as_written(line: Mapping[str, Any], number: int) -> None:
    """Refuse a snapshot whose digest is not the one that was written with it."""
    found, stated = digest({key: each for key, each in line.items() if key != "sha256"}), line.get("sha256")
    if stated != found:
        raise BadInput(
            f"the snapshot is not as it was written: its digest is {found}, and there stands {shown(stated)}",
            place=f"line {number}, key 'sha256'",
            remedy="Go on from the file as `--state` wrote it, or begin anew",
        )


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, value in now.items():
        if before.get(key) != value:
            file = key in ("trace", "cluster")
            what = "another file's contents" if file else shown(before.get(key))
            raise BadInput(
                f"the run was begun with {what}, not with {'this one' if file else shown(value)}",
                place=f"run, {key}",
                remedy="Go on with what the run was begun with, or begin anew",
            )

"""The file that `fairopt run --state` writes: how the run was begun, its records, and the snapshot to go on from.

It is a text of one JSON object a line. The first says what was run, ``{"schema": 1, "run": {...}}``; then each round
adds ``{"round": {...}}``, and now and then, and at the end, ``{"snapshot": {...}}``. Lines are added and never changed:
whatever stops the program, the last snapshot and the rounds before it can be read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.cluster import cluster_to_dict
from fairopt.problem.files.storage import naming, read_text
from fairopt.problem.files.trace import trace_to_dict
from fairopt.problem.labels import nearest
from fairopt.simulation import Change, Mechanics, Ran, Round, Snapshot, snapshot_from, snapshot_text
from fairopt.simulation.codec import decode, encode

SCHEMA = 1
#: Seconds between two snapshots: what an end without warning costs at most.
BETWEEN = 30.0


class Resumed(NamedTuple):
    """What a journal holds: the rounds so far, and the snapshot after the last of them."""

    rounds: tuple[Round, ...]
    snapshot: Snapshot


def header(
    policy: str,
    settings: Sequence[str],
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics,
    backend: str,
    floats: bool,
) -> dict[str, Any]:
    """Return what must be the same for a run to go on: as the command line had it, files by their contents."""
    return {
        "policy": policy,
        "options": sorted(settings),
        "length": str(length),
        "restart": str(mechanics.restart),
        "launch": str(mechanics.launch),
        "spread": str(mechanics.spread),
        "local_data": mechanics.local_data,
        "backend": backend,
        "floats": floats,
        "trace": _digest(trace_to_dict(trace)),
        "cluster": _digest(cluster_to_dict(cluster)),
    }


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class Journal:
    """A journal that is being written; a context manager, which writes the last snapshot at the end."""

    def __init__(self, path: Path, run: Mapping[str, Any], before: Resumed | None = None) -> None:
        if path.is_dir() or not path.parent.is_dir():
            raise BadInput(f"{path} cannot be written", place="--state", remedy="Name a file in a folder that exists")
        self._last: Snapshot | None = None
        self._written = perf_counter()
        beginning = path.with_name(path.name + ".new")
        try:
            with beginning.open("wb") as stream:
                _line(stream, {"schema": SCHEMA, "run": run})
                if before is not None:
                    for record in before.rounds:
                        _line(stream, {"round": round_to_json(record)})
                    _line(stream, {"snapshot": json.loads(snapshot_text(before.snapshot))})
            # the file that is gone on from may be this one: it is replaced once the new one is whole
            os.replace(beginning, path)
            # without a buffer: a line is there whole or not at all, also where an interruption comes between two
            self._stream: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise BadInput(
                f"{path} cannot be written: {error.strerror}", place="--state", remedy="Check the folder"
            ) from error

    def __enter__(self) -> Journal:
        return self

    def add(self, record: Round) -> None:
        """Add a round."""
        _line(self._stream, {"round": round_to_json(record)})
        self._last = record.after
        if perf_counter() - self._written > BETWEEN:
            self._snapshot()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._snapshot()
        finally:
            self._stream.close()

    def _snapshot(self) -> None:
        if self._last is not None:
            _line(self._stream, {"snapshot": json.loads(snapshot_text(self._last))})
            self._last, self._written = None, perf_counter()


def _line(stream: BinaryIO, data: Mapping[str, Any]) -> None:
    stream.write(json.dumps(data, separators=(",", ":")).encode() + b"\n")


def read_journal(path: Path, run: Mapping[str, Any], states: tuple[type, ...]) -> Resumed:
    """Return what the journal at ``path`` holds; ``run`` is the header of the run that is to go on.

    Errors: `BadInput` where the file is no journal, where it holds no snapshot yet, and where the run was begun
    otherwise: with another trace, cluster, policy or option.
    """
    with naming(str(path)):
        lines = read_text(path).splitlines()
        first = _parsed(lines[0], 1)
        if first.get("schema") != SCHEMA or not isinstance(first.get("run"), dict):
            raise BadInput("no run begins there", place="line 1", remedy="Give a file that `fairopt run --state` wrote")
        _check_same(first["run"], run)
        at = max((number for number, line in enumerate(lines) if line.startswith('{"snapshot"')), default=0)
        if at and not _whole(lines[at]):  # it was being written when the program ended
            at = max((number for number, line in enumerate(lines[:at]) if line.startswith('{"snapshot"')), default=0)
        if not at:
            raise BadInput("no snapshot yet", place=f"line {len(lines)}", remedy="Begin the run anew")
        snapshot = snapshot_from(json.dumps(_parsed(lines[at], at + 1)["snapshot"]), states)
        rounds = [
            round_from_json(_parsed(line, number)["round"], snapshot, number)
            for number, line in enumerate(lines[1:at], start=2)
            if not line.startswith('{"snapshot"')
        ]
        # an interruption may have come after a round was written down and before its snapshot was taken
        return Resumed(tuple(record for record in rounds if record.index < snapshot.index), snapshot)


def _whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _parsed(line: str, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise BadInput(
            f"not JSON: {error}", place=f"line {number}", remedy="Give a file that `fairopt run --state` wrote"
        ) from error
    if not isinstance(data, dict) or not data.keys() & {"schema", "round", "snapshot"}:
        raise BadInput(
            "neither a round nor a snapshot",
            place=f"line {number}",
            remedy="Give a file that `fairopt run --state` wrote",
        )
    return data


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, value in now.items():
        if before.get(key) != value:
            what = "another file's contents" if key in ("trace", "cluster") else f"{before.get(key)!r}"
            raise BadInput(
                f"the run was begun with {what}, not with {'this one' if key in ('trace', 'cluster') else repr(value)}",
                place=f"run, {key}",
                remedy="Go on with what the run was begun with, or begin anew",
            )


# -- rounds ----------------------------------------------------------------------------------------------------------
def round_to_json(record: Round) -> dict[str, Any]:
    """Return a record without its snapshot, so that `round_from_json` gives it back exactly."""
    data = {name: encode(getattr(record, name)) for name in _names(Round) if name not in ("ran", "after")}
    return data | {"ran": [_ran_to_json(ran) for ran in record.ran]}


def _ran_to_json(ran: Ran) -> dict[str, Any]:
    data = {name: encode(getattr(ran, name)) for name in _names(Ran) if name != "change"}
    return data | {"change": ran.change.value}


def round_from_json(data: Mapping[str, Any], after: Snapshot, line: int = 0) -> Round:
    """Return the record that `round_to_json` wrote; ``after`` is the snapshot that it gets, of itself or a later round.

    Errors: `BadInput` where it is none.
    """
    place = f"line {line}"
    _check_names(data, [name for name in _names(Round) if name != "after"], place)
    values = {name: decode(value, {}) for name, value in data.items() if name != "ran"}
    return Round(**values, ran=tuple(_ran_from_json(each, place) for each in data["ran"]), after=after)


def _ran_from_json(data: Mapping[str, Any], place: str) -> Ran:
    _check_names(data, _names(Ran), place)
    values = {name: decode(value, {}) for name, value in data.items() if name != "change"}
    return Ran(**values, change=Change(data["change"]))


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _check_names(given: Iterable[str], wanted: Sequence[str], place: str) -> None:
    wrong = sorted({*given} ^ {*wanted})
    if wrong:
        raise BadInput(f"{wrong[0]!r} is missing, or not known", place=place, remedy=nearest(wrong[0], wanted, "key"))

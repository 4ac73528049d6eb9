"""Files of records: JSON lines that survive being killed, and are only ever appended.

``kind`` of a line says which class of records it is, each a frozen dataclass with ``kind`` as a constant of its class.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from fairopt.codec import decode, encode
from fairopt.errors import BadInput
from fairopt.problem.files.storage import naming, read_bytes
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown
from fairopt.replacing import writable


class TrialStatus(Enum):
    """How one trial of an experiment ended: a measurement of a benchmark, or a cell of a study."""

    SOLVED = "solved"  # an answer that the task's own code accepted
    WRONG = "wrong"  # an answer that it did not accept; the times are kept and must not be counted
    TIMEOUT = "timeout"  # no answer within the limit
    MEMORY = "memory"  # stopped at the memory limit
    ERROR = "error"  # it ended without an answer: an exception, a crash, the solver's own status
    MISSING = "missing"  # a library that it needs is not installed
    SKIPPED = "skipped"  # not tried, or not yet
    PLAYED = "played"  # a cell, to its end
    FAILED = "failed"  # a cell with an error; the others go on


#: The version of the lines. Keys may be added under the same number, never changed.
SCHEMA = 1
#: The classes of records that a file may hold.
Kinds: TypeAlias = Sequence[type[Any]]


def line_of(record: Any) -> str:
    """Return the line of a record, without the line's end."""
    data = {"schema": SCHEMA, "kind": record.kind, **encode(record, finite=True)}
    return json.dumps(data, allow_nan=False)  # in ASCII: names of files may have what no UTF-8 has


def record_in(line: str, kinds: Kinds, place: str = "") -> Any:
    """Return the record of one of ``kinds`` in a line; `BadInput` names the key that cannot be read."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", place=place, remedy="Each line is one object; drop this one") from error
    if not isinstance(data, dict):
        raise BadInput(f"got {shown(data)}", place=place, remedy="Give one object a line")
    kind = data.pop("kind", None)
    if (schema := data.pop("schema", None)) != SCHEMA:
        raise BadInput(f"schema {shown(schema)}", place=place, remedy=f"This version reads schema {SCHEMA}")
    known = {each.kind: each for each in kinds}
    if not isinstance(kind, str) or kind not in known:
        raise BadInput(f"kind {shown(kind)}", place=place, remedy=nearest(kind, known, "kind"))
    return decode(known[kind], data, place)


#: A larger file of results is taken for a mistake, in bytes.
LARGEST = 2**30


def read_records(path: str | PathLike[str], kinds: Kinds, say: Callable[[str], None] = lambda text: None) -> list[Any]:
    """Return the records of a file, in order. A last line without an end was cut off while written, and is left out.

    ``say`` is told of that. Errors: `BadInput` that names the file, the line and the key.
    """
    records, torn = _read(path, kinds)
    if torn:
        say(f"{path}: the last line was cut off, and is left out")
    return records


def _read(path: str | PathLike[str], kinds: Kinds) -> tuple[list[Any], str]:
    with naming(path):
        *whole, last = read_bytes(path, LARGEST).decode("utf-8", errors="replace").split("\n")
        return [record_in(line, kinds, f"line {n}") for n, line in enumerate(whole, start=1) if line.strip()], last


class RecordsFile(AbstractContextManager["RecordsFile"]):
    """A file of records that a run continues: ``before`` is what it holds, `add` appends a record.

    ``kinds`` are the classes of its records, ``place`` is the option that names it. A last line that was cut off is
    dropped, with a message to ``say``; a complete one without its line end is kept. A second run that writes the same
    file at the same time is refused.

    Errors: `BadInput` for a file that cannot be written, or that holds something else.
    """

    def __init__(self, path: Path, kinds: Kinds, say: Callable[[str], None], *, place: str) -> None:
        self.path, self.say, self.kinds, self.place = path, say, kinds, place
        self.before: list[Any] = []
        self._file: TextIO

    def __enter__(self) -> RecordsFile:
        with ExitStack() as on_error:
            with writable(self.path, self.place):
                self._file = on_error.enter_context(self.path.open("a", encoding="utf-8"))
            self._lock()
            self._mend()
            on_error.pop_all()
        return self

    def __exit__(self, *ended: object) -> None:
        self._file.close()

    def add(self, record: Any) -> None:
        """Append a record; when this returns, it is on the disk."""
        self._file.write(line_of(record) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lock(self) -> None:
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not on this system, where a second run is not noticed
            return
        except OSError as error:
            problem, remedy = f"another run is writing {self.path}", "Wait for it, or name another file"
            raise BadInput(problem, place=self.place, remedy=remedy) from error

    def _mend(self) -> None:
        self.before, torn = _read(self.path, self.kinds)
        if not torn:
            return
        try:
            self.before.append(record_in(torn, self.kinds))
        except BadInput:
            self.say(f"{self.path}: the last line was cut off; it is dropped, and made again")
            whole = self.path.read_bytes().rpartition(b"\n")
            os.truncate(self.path, len(whole[0]) + len(whole[1]))
            return
        self._file.write("\n")
        self._file.flush()

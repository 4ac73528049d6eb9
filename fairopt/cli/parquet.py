"""Tables as Parquet files, with what each column means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

from fairopt.discovery import library
from fairopt.problem.files.storage import require_place
from fairopt.replacing import Replacing, writable

#: A column: its name, its Arrow type (``list<int64>`` for a list of them), and what it says.
Column: TypeAlias = tuple[str, str, str]
#: Rows of a group: so many are in memory.
ROWS = 50_000


def require_parquet(path: Path, place: str = "--parquet") -> tuple[Any, Any]:
    """Return pyarrow and its part for Parquet; ``place`` is the option that names the file.

    Errors, to be known before anything is computed: `NotInstalled` without pyarrow, `BadInput` where the file cannot be
    written.
    """
    require_place(path, place)
    return library("pyarrow", place, "tables"), library("pyarrow.parquet", place, "tables")


def write_parquet(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], path: Path, place: str = "--parquet"
) -> None:
    """Write rows as a table; an existing file is replaced. Errors as `require_parquet`."""
    with ParquetTable(columns, path, place) as table:
        table.add(rows)


class ParquetTable:
    """A table that is being written, a group of rows at a time; a context manager, at whose end the file is there.

    An existing file is replaced then; where the block ends by an error, it stays. Errors as `require_parquet`.
    """

    def __init__(self, columns: Sequence[Column], path: Path, place: str = "--parquet") -> None:
        self._pyarrow, parquet = require_parquet(path, place)
        self._place = place
        field = self._pyarrow.field
        described = [field(name, _type(self._pyarrow, kind), metadata={"says": says}) for name, kind, says in columns]
        self._schema, self._path = self._pyarrow.schema(described), path
        self._rows: list[Mapping[str, Any]] = []
        with writable(self._path, self._place):
            self._file = Replacing(path)
            self._writer = parquet.ParquetWriter(self._file.stream, self._schema)

    def __enter__(self) -> Self:
        return self

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == ROWS:
                self._write()

    def _write(self) -> None:
        with writable(self._path, self._place):
            self._writer.write_table(self._pyarrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None and self._rows:
                self._write()
            with writable(self._path, self._place):
                self._writer.close()
                if kind is None:
                    self._file.keep()


def _type(pyarrow: Any, name: str) -> Any:
    if name.startswith("list<"):
        return pyarrow.list_(_type(pyarrow, name[len("list<") : -1]))
    return pyarrow.bool_() if name == "bool" else getattr(pyarrow, name)()

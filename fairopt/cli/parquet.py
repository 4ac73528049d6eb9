"""Tables as Parquet files, with what each column means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.problem.files.storage import require_place

#: A column: its name, its Arrow type (``list<int64>`` for a list of them), and what it says.
Column: TypeAlias = tuple[str, str, str]


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
    pyarrow, parquet = require_parquet(path, place)
    described = [pyarrow.field(name, _type(pyarrow, kind), metadata={"says": says}) for name, kind, says in columns]
    try:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=pyarrow.schema(described)), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error}", place=place, remedy="Check the folder") from error


def _type(pyarrow: Any, name: str) -> Any:
    if name.startswith("list<"):
        return pyarrow.list_(_type(pyarrow, name[len("list<") : -1]))
    return pyarrow.bool_() if name == "bool" else getattr(pyarrow, name)()

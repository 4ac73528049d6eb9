"""Tables as Parquet files, with what each column means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.problem.files.storage import require_place


class ParquetColumn(NamedTuple):
    """A column: its name, its Arrow type (``list<int64>`` for a list of them), and what it says."""

    name: str
    type: str
    says: str


def require_parquet(path: Path, place: str = "--parquet") -> tuple[Any, Any]:
    """Return pyarrow and its part for Parquet.

    Errors, to be known before anything is computed: `NotInstalled` without pyarrow, `BadInput` where ``path``, which
    the option ``place`` gave, cannot be written.
    """
    require_place(path, place)
    return library("pyarrow", place, "parquet"), library("pyarrow.parquet", place, "parquet")


def write_parquet(rows: Iterable[Mapping[str, Any]], columns: Sequence[ParquetColumn], path: Path) -> None:
    """Write rows as a table; an existing file is replaced. Errors as `require_parquet`."""
    pyarrow, parquet = require_parquet(path)
    described = [pyarrow.field(each.name, _type(pyarrow, each.type), metadata={"says": each.says}) for each in columns]
    try:
        parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=pyarrow.schema(described)), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error}", place="--parquet", remedy="Check the folder") from error


def _type(pyarrow: Any, name: str) -> Any:
    if name.startswith("list<"):
        return pyarrow.list_(_type(pyarrow, name[len("list<") : -1]))
    return pyarrow.bool_() if name == "bool" else getattr(pyarrow, name)()

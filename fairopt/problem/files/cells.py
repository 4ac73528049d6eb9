"""CSV texts as data: a header, and a row of cells for each name, read as the columns of a table say."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.checks import check_name
from fairopt.problem.files.schema import REQUIRED, Column, ObjectPart, TableType
from fairopt.problem.files.storage import separator
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact, shown


def read_csv(text: str, key: str, check_column: Callable[[str, str], None]) -> tuple[int, list[str], list[ObjectPart]]:
    """Return the line and the names of the header of a CSV text, and its rows, named by the column ``key``.

    The values of a row are the texts of its cells, without spaces around them. ``check_column`` is given each column's
    name and place. Errors: `BadInput` that names the line.
    """
    (line, header), *records = _records(text) or [(1, [""])]
    for number, name in enumerate(header, start=1):
        place = f"line {line}, column {number}"
        check_name(name, place)
        if name in header[: number - 1]:
            raise BadInput(f"the column {shown(name)} stands twice", place=place, remedy="Rename or drop one")
        check_column(name, place)
    if key not in header:
        raise BadInput(f"no column is called {key!r}", place=f"line {line}", remedy=say_which(key, header))
    rows: list[ObjectPart] = []
    seen: dict[str, int] = {}
    for at, cells in records:
        if len(cells) != len(header):
            raise BadInput(
                f"{len(cells)} cells for {len(header)} columns",
                place=f"line {at} ({shown(cells[0])})",
                remedy="Give one cell for each column; write 0 where there is none",
            )
        values = dict(zip(header, cells, strict=True))
        name = check_name(values[key], f"line {at}, column {key!r}")
        if seen.setdefault(name, at) != at:
            raise BadInput(
                f"{shown(name)} stands in line {seen[name]} too",
                place=f"line {at}, column {key!r}",
                remedy="Give each row a name of its own",
            )
        place = f"line {at} ({shown(name)})"
        rows.append(ObjectPart(place, values, name, cells=True))
    return line, header, rows


def column_of(name: str, header: Sequence[str], place: str) -> int:
    """Return where the column of that name stands. Errors: `BadInput` that names those that are there.

    >>> column_of("b", ["a", "b"], "line 1")
    1
    """
    if name not in header:
        raise BadInput(f"no column {shown(name)}", place=place, remedy=nearest(name, header, "column"))
    return header.index(name)


def say_which(what: str, header: Sequence[str]) -> str:
    """Return the remedy where no column is called ``what``.

    >>> say_which("submit", ["when", "gpus"])
    "Say which one does: --column submit=NAME (in Python columns={'submit': 'NAME'}); there are when, gpus"
    """
    there = ", ".join(name for name in header if name)[:200]
    return f"Say which one does: --column {what}=NAME (in Python columns={{{what!r}: 'NAME'}}); there are {there}"


def number(row: ObjectPart, column: str, *, tiny: bool = False) -> Fraction:
    """Return the number in a cell that must not be blank; errors and ``tiny`` as `exact`."""
    return exact(filled(row, column), row.place_of(column), tiny=tiny)


def filled(row: ObjectPart, column: str, remedy: str = "Write a number; 0 where there is none") -> str:
    """Return the text of a cell that must not be blank."""
    text: str = row[column]
    if not text:
        raise BadInput("the cell is blank", place=row.place_of(column), remedy=remedy)
    return text


def read_cells(rows: Sequence[ObjectPart], table: TableType) -> list[ObjectPart]:
    """Return rows with their cells read as the columns of ``table`` say; a blank cell is one that is left out."""
    header = rows[0].value.keys() if rows else ()
    left_out = {column.name: column.default for column in table.columns}
    here = [column for column in table.columns if column.name in header or column.default is REQUIRED]
    known: list[tuple[Column, dict[str, Any]]] = [(column, {}) for column in here]
    return [ObjectPart(row.place, left_out | _values(row, known), row.name, row.cells) for row in rows]


def _values(row: ObjectPart, columns: Iterable[tuple[Column, dict[str, Any]]]) -> dict[str, Any]:
    """Return the values of a row, and add them to those that are known by their texts: many cells are alike."""
    values: dict[str, Any] = {}
    for column, known in columns:
        text = row.value.get(column.name, "")
        if text not in known:
            if not text and (column.default is REQUIRED or column.blank):
                filled(row, column.name, column.blank or "Write a number; 0 where there is none")
            known[text] = column.value.read(text, row.place_of(column.name)) if text else column.default
        values[column.name] = known[text]
    return values


def _records(text: str) -> list[tuple[int, list[str]]]:
    """Return the records that are not blank lines, each with the line where it ends."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator(text))
    try:
        return [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells]
    except csv.Error as error:
        remedy = "Check the quotes in this line"
        raise BadInput(f"not CSV: {error}", place=f"line {reader.line_num}", remedy=remedy) from error

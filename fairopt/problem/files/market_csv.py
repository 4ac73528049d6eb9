"""CSV tables with named rows and columns, and markets in them.

A market's table is ``user,weight,demand,<type>...`` with a row for each user and one row called ``capacity``.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.problem.checks import check_name
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact, shown, written
from fairopt.program import INFINITY

CAPACITY = "capacity"
_OPTIONAL = ("weight", "demand")


@dataclass(frozen=True)
class Row:
    """One row of a table: its line in the file, the name in its first cell, and its other cells by column."""

    line: int
    name: str
    cells: dict[str, str]

    def place(self, column: str = "") -> str:
        """Return what messages call the row, or one cell of it."""
        called = f"line {self.line} ({shown(self.name)})"
        return f"{called}, column {shown(column)}" if column else called

    def number(self, column: str, *, tiny: bool = False) -> Fraction:
        """Return the number in a cell; errors and ``tiny`` as `exact`."""
        if not self.cells[column]:
            raise BadInput(
                "the cell is blank", place=self.place(column), remedy="Write a number; 0 where there is none"
            )
        return exact(self.cells[column], self.place(column), tiny=tiny)

    def optional(self, column: str) -> Fraction | None:
        """Return the number in a cell, None where it is blank or there is no such column."""
        return self.number(column) if self.cells.get(column) else None


def parse_table(text: str) -> tuple[tuple[str, ...], list[Row]]:
    """Return the columns after ``user`` and the rows of a CSV text; spaces around a cell are dropped.

    Errors: `BadInput` that names the line, for a missing header, names that are blank or stand twice, rows of another
    length than the header, and broken quotes.
    """
    records = csv_records(text)
    if not records:
        raise BadInput("the file is empty", place="line 1", remedy="Start with the header user,<type>,...")
    line, header = records[0]
    if header[0] != "user":
        raise BadInput(
            f"the first column is {shown(header[0])}",
            place=f"line {line}",
            remedy="Start with the header user,<type>,...",
        )
    for number, name in enumerate(header, start=1):
        check_name(name, f"line {line}, column {number}")
        if name in header[: number - 1]:
            raise BadInput(
                f"the column {shown(name)} stands twice",
                place=f"line {line}, column {number}",
                remedy="Rename or drop one",
            )
        slip = name.casefold() in ("user", *_OPTIONAL) and name != name.casefold()
        if slip:
            raise BadInput(
                f"unknown column {shown(name)}",
                place=f"line {line}, column {number}",
                remedy=f"Write {name.casefold()}, in small letters",
            )
    rows: list[Row] = []
    seen: dict[str, int] = {}
    for line, cells in records[1:]:
        if len(cells) != len(header):
            raise BadInput(
                f"{len(cells)} cells for {len(header)} columns",
                place=f"line {line} ({shown(cells[0])})",
                remedy="Give one cell for each column; write 0 where the user cannot run",
            )
        name = check_name(cells[0], f"line {line}, column 'user'")
        if name in seen:
            raise BadInput(
                f"{shown(name)} stands in line {seen[name]} too",
                place=f"line {line}, column 'user'",
                remedy="Give each row a name of its own",
            )
        seen[name] = line
        rows.append(Row(line, name, dict(zip(header[1:], cells[1:], strict=True))))
    return tuple(header[1:]), rows


def csv_records(text: str) -> list[tuple[int, list[str]]]:
    """Return the records that are not blank lines, each with the line where it ends."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records = []
    try:
        for cells in reader:
            if cells:
                records.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise BadInput(
            f"not CSV: {error}", place=f"line {reader.line_num}", remedy="Check the quotes in this line"
        ) from error
    return records


def market_from_csv(text: str) -> Market:
    """Return the market in a CSV text; a blank weight is 1, a blank demand is no limit, other blanks are errors."""
    columns, rows = parse_table(text)
    types = [name for name in columns if name not in _OPTIONAL]
    if not types:
        raise BadInput("no GPU types", place="line 1", remedy="Give a column for each type, after the header user")
    capacity = next((row for row in rows if row.name == CAPACITY), None)
    if capacity is None:
        last = rows[-1].line if rows else 1
        raise BadInput(
            "no row is called 'capacity'",
            place=f"line {last}",
            remedy="Add the row capacity,... with the GPUs of each type",
        )
    for name in _OPTIONAL:
        if capacity.cells.get(name):
            raise BadInput(
                f"got {shown(capacity.cells[name])}", place=capacity.place(name), remedy="Leave the cell blank"
            )
    users = [row for row in rows if row is not capacity]
    if not users:
        raise BadInput("no users", place=capacity.place(), remedy="Give a row for each user")
    demand = [row.optional("demand") for row in users]
    return Market.of(
        [[row.number(name) for name in types] for row in users],
        [capacity.number(name) for name in types],
        weight=[1 if (weight := row.optional("weight")) is None else weight for row in users],
        demand=None if all(limit is None for limit in demand) else demand,
        users=[row.name for row in users],
        types=types,
        places=[row.place() for row in users],
    )


def market_to_csv(market: Market) -> str:
    """Return the CSV text of a market; `BadInput` where the names or job types cannot be told from CSV's own words."""
    if market.owner != market.users:
        raise BadInput(
            "a market with job types", place="owner", remedy="Write it as .toml or .json; CSV has no job types"
        )
    reserved = {"user": ("user", *_OPTIONAL), CAPACITY: (CAPACITY,)}
    for names, words in ((market.types, reserved["user"]), (market.users, reserved[CAPACITY])):
        for name in names:
            if name.casefold() in words or name != name.strip():
                raise BadInput(
                    f"the name {shown(name)}", place="names", remedy="Write it as .toml or .json, or rename it"
                )
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    has_weight, has_demand = any(market.weight != 1), any(market.limit != INFINITY)
    optional = [name for name, there in zip(_OPTIONAL, (has_weight, has_demand), strict=True) if there]
    writer.writerow(["user", *optional, *market.types])
    for user, row, weight, limit in zip(market.users, market.speedup, market.weight, market.limit, strict=True):
        cells = {"weight": written(weight, user), "demand": "" if limit == INFINITY else written(limit, user)}
        writer.writerow([user, *(cells[name] for name in optional), *(written(value, user) for value in row)])
    writer.writerow([CAPACITY, *("" for _ in optional), *(written(amount, CAPACITY) for amount in market.capacity)])
    return out.getvalue()

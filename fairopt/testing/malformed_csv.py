"""CSV market files that are broken, each in one way that no reader may accept; see `fairopt.testing.malformed`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Rows = list[list[str]]
_NO_NUMBERS = (
    *("nan", "inf", "-inf", "-1", "-1/3", "text", "1/0", "1e999999", "True", "0x10", "1,5", "1 2", "9" * 450),
    *("1e31", "=1+1", "٣", "1/2/3", "--1", "1e", "."),
)


@st.composite
def _valid(draw: DrawFn) -> Rows:
    """Draw a table with all columns: user, weight, demand and one to three types."""
    types = ["K80", "P100", "V100"][: draw(st.integers(1, 3))]
    number = st.sampled_from(["1", "2", "3.5", "5/4"])
    rows = [["user", "weight", "demand", *types]]
    for name in ["A", "B", "C"][: draw(st.integers(2, 3))]:
        rows.append(
            [name, draw(st.sampled_from(["", "2"])), draw(st.sampled_from(["", "4"])), *(draw(number) for _ in types)]
        )
    return [*rows, ["capacity", "", "", *(draw(number) for _ in types)]]


def _index(draw: DrawFn, rows: Rows, first: int = 0, last: int = 0) -> int:
    return draw(st.integers(first, len(rows) - 1 - last))


def _no_capacity(draw: DrawFn, rows: Rows) -> None:
    if draw(st.booleans()):
        rows.pop()
    else:
        rows[-1][0] = draw(st.sampled_from(["Capacity", "total", "capacities"]))


def _two_capacities(draw: DrawFn, rows: Rows) -> None:
    rows.insert(_index(draw, rows, 1), list(rows[-1]))


def _no_header(draw: DrawFn, rows: Rows) -> None:
    if draw(st.booleans()):
        del rows[0]
    else:
        rows[0][0] = draw(st.sampled_from(["User", "name", "", "users", "capacity"]))


def _same_column(draw: DrawFn, rows: Rows) -> None:
    column = draw(st.integers(0, len(rows[0]) - 1))
    for row in rows:
        row.append(row[column])


def _slip_in_header(draw: DrawFn, rows: Rows) -> None:
    column = draw(st.sampled_from([1, 2]))
    rows[0][column] = draw(st.sampled_from([rows[0][column].upper(), rows[0][column].title(), "", "  ", "bell\x07"]))


def _same_user(draw: DrawFn, rows: Rows) -> None:
    rows.insert(_index(draw, rows, 1), list(rows[_index(draw, rows, 1, 1)]))


def _ragged(draw: DrawFn, rows: Rows) -> None:
    row = rows[_index(draw, rows)]
    if draw(st.booleans()):
        row.append("1")
    else:
        row.pop()


def _no_number(draw: DrawFn, rows: Rows) -> None:
    row = rows[_index(draw, rows, 1)]
    column = draw(st.integers(1, len(row) - 1))
    row[column] = draw(st.sampled_from([*_NO_NUMBERS, ""] if column > 2 else _NO_NUMBERS))


def _not_positive(draw: DrawFn, rows: Rows) -> None:
    rows[_index(draw, rows, 1, 1)][draw(st.sampled_from([1, 2]))] = draw(st.sampled_from(["0", "0.0", "0/5", "-1"]))


def _weighed_capacity(draw: DrawFn, rows: Rows) -> None:
    rows[-1][draw(st.sampled_from([1, 2]))] = draw(st.sampled_from(["1", "0", "x"]))


def _zeros(draw: DrawFn, rows: Rows) -> None:
    """Let a user run nowhere, or let there be no GPUs."""
    row = rows[_index(draw, rows, 1)]
    row[3:] = ["0"] * len(row[3:])


def _no_name(draw: DrawFn, rows: Rows) -> None:
    rows[_index(draw, rows, 1, 1)][0] = draw(st.sampled_from(["", "   ", "bell\x07", "two\nlines", "n" * 201]))


def _no_users(draw: DrawFn, rows: Rows) -> None:
    del rows[1:-1]


def _no_types(draw: DrawFn, rows: Rows) -> None:
    for row in rows:
        del row[3:]


_ROW_BREAKS: tuple[Callable[[DrawFn, Rows], None], ...] = (
    _no_capacity,
    _two_capacities,
    _no_header,
    _same_column,
    _slip_in_header,
    _same_user,
    _ragged,
    _no_number,
    _not_positive,
    _weighed_capacity,
    _zeros,
    _no_name,
    _no_users,
    _no_types,
)


def _text(rows: Rows, end: str = "\n") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end).writerows(rows)
    return out.getvalue()


def _open_quote(draw: DrawFn, rows: Rows) -> bytes:
    lines = _text(rows).split("\n")
    at = draw(st.integers(0, len(rows) - 1))
    lines[at] = '"' + lines[at]
    return "\n".join(lines).encode()


def _text_after_quote(draw: DrawFn, rows: Rows) -> bytes:
    lines = _text(rows).split("\n")
    at = draw(st.integers(1, len(rows) - 1))
    lines[at] = '"quoted"' + lines[at]
    return "\n".join(lines).encode()


def _not_utf8(draw: DrawFn, rows: Rows) -> bytes:
    data = _text(rows).encode()
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.sampled_from([b"\xff", b"\xc3(", b"\x80"])) + data[at:]


def _truncated(draw: DrawFn, rows: Rows) -> bytes:
    """Cut the file before or inside its last row, the capacities, such that a cell is missing."""
    data = _text(rows).encode().rstrip()
    return data[: draw(st.integers(0, data.rindex(b",") - 1))]


def _random_bytes(draw: DrawFn, rows: Rows) -> bytes:
    return draw(st.sampled_from([b"\x00", b"\xff", b"0", b",", b";"])) + draw(st.binary(max_size=60))


def _long_cell(draw: DrawFn, rows: Rows) -> bytes:
    rows[1][0] = draw(st.sampled_from(["x" * 200_000, "9" * 5_000]))
    return _text(rows).encode()


_TEXT_BREAKS: tuple[Callable[[DrawFn, Rows], bytes], ...] = (
    _open_quote,
    _text_after_quote,
    _not_utf8,
    _truncated,
    _random_bytes,
    _long_cell,
)


@st.composite
def malformed_csv(draw: DrawFn) -> tuple[str, bytes]:
    """Draw ".csv" and the bytes of a broken market table."""
    rows = draw(_valid())
    if draw(st.integers(0, 3)):
        draw(st.sampled_from(_ROW_BREAKS))(draw, rows)
        mark = draw(st.sampled_from(["", "\ufeff"]))
        return ".csv", (mark + _text(rows, draw(st.sampled_from(["\n", "\r\n"])))).encode()
    return ".csv", draw(st.sampled_from(_TEXT_BREAKS))(draw, rows)

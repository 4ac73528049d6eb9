"""Market files that are broken, each in one way that no reader may accept.

Every break gives a malformed file for any draw. The reader is not asked, because the files are there to test it.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Data = dict[str, Any]
Rows = list[list[str]]
#: Where a value stands: a table and its key, or a list and its index.
Slot = tuple[Any, Any]
#: Places, and what may stand at none of them.
Wrong = tuple[list[Slot], Sequence[Any]]

_NO_NUMBERS: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, -1, -0.5, "text", "", "1/0", "1e999999", "nan", "0x10", "1,5"),
    *(True, [], [1], {}, 10**31, 10**450),
)
_NO_CELLS = (
    *("nan", "inf", "-inf", "-1", "-1/3", "text", "1/0", "1e999999", "True", "0x10", "1,5", "1 2", "9" * 450),
    *("1e31", "=1+1", "٣", "1/2/3", "--1", "1e", "."),
)
_NO_TEXTS = ("", "   ", "two\nlines", "bell\x07", "n" * 201)
_NO_NAMES: tuple[Any, ...] = (*_NO_TEXTS, 1, 1.5, True, [], ["A"], {})


def _one(draw: DrawFn, *values: Any) -> Any:
    return draw(st.sampled_from(values))


def _index(draw: DrawFn, values: Sequence[Any], first: int = 0, last: int = 0) -> int:
    """Draw the index of a value, other than the ``first`` few and the ``last`` few."""
    return draw(st.integers(first, len(values) - 1 - last))


def _slots(values: list[Any]) -> list[Slot]:
    return [(values, at) for at in range(len(values))]


# -- markets as data ----------------------------------------------------------------------------------------------
def _market(draw: DrawFn) -> Data:
    """Draw the dictionary of a valid market file; the first user always has speedups, the second has jobs."""
    k = draw(st.integers(1, 3))
    rows = st.lists(st.sampled_from([1, 2, 3.5, "5/4"]), min_size=k, max_size=k)
    users: list[Data] = [
        {"name": "A", "speedup": draw(rows), "weight": draw(st.integers(1, 3)), "demand": draw(st.integers(1, 3))},
        {"name": "B", "job": [{"name": "train", "speedup": draw(rows)}, {"name": "tune", "speedup": draw(rows)}]},
    ]
    users += [{"name": f"u{number}", "speedup": draw(rows)} for number in range(draw(st.integers(0, 2)))]
    capacity = draw(st.lists(st.integers(1, 60), min_size=k, max_size=k))
    return {"schema": 1, "types": ["K80", "P100", "V100"][:k], "capacity": capacity, "user": users}


def _tables(data: Data) -> list[Data]:
    return [data, *data["user"], *data["user"][1]["job"]]


def _running(data: Data) -> list[Data]:
    """Return the tables that have speedups."""
    return [table for table in _tables(data) if "speedup" in table]


def _wrong_values(data: Data) -> list[Wrong]:
    tables, speedups = _tables(data)[1:], [(table, "speedup") for table in _running(data)]
    numbers = [slot for row in (data["capacity"], *(table[key] for table, key in speedups)) for slot in _slots(row)]
    first, jobs = data["user"][0], data["user"][1]["job"]
    lists = [(data, "types"), (data, "capacity"), (data, "user"), (data["user"][1], "job"), *speedups]
    return [
        ([*numbers, (first, "weight"), (first, "demand")], _NO_NUMBERS),
        ([(table, key) for table in tables for key in ("weight", "demand")], [0, 0.0, "0", "0/7", -1, "-1/3"]),
        ([*((table, "name") for table in tables), *_slots(data["types"])], _NO_NAMES),
        (lists, [1, "text", True, {"a": 1}, []]),
        ([*_slots(data["user"]), *_slots(jobs)], [1, "A", True, ["A", [1]]]),
        ([(data, "capacity"), *speedups], [[zero] * len(data["types"]) for zero in (0, 0.0, "0")]),
        ([(data, "schema")], [0, 2, 99, -1, 10**30, "1", 1.5, True, [1], {}]),
    ]


def _drop_key(draw: DrawFn, data: Data) -> None:
    table = _one(draw, *_tables(data))
    del table[_one(draw, *(key for key in table if key not in ("weight", "demand")))]


def _rename_key(draw: DrawFn, data: Data) -> None:
    table = _one(draw, *_tables(data))
    key = _one(draw, *sorted(table))
    table[key + _one(draw, "s", "_", "x1")] = table.pop(key)


def _add_key(draw: DrawFn, data: Data) -> None:
    key = _one(draw, "gpus", "note", "Name", "speed up", "__class__", "ключ")
    _one(draw, *_tables(data))[key] = _one(draw, 1, "x", [1])


def _same_names(draw: DrawFn, data: Data) -> None:
    names = _one(draw, "user", "job", "types", "across")
    if names == "user":
        data["user"].append(copy.deepcopy(_one(draw, *data["user"])))
        if "job" in data["user"][-1]:  # other rows, so that the users' names alone clash
            data["user"][-1]["job"][0]["name"], data["user"][-1]["job"][1]["name"] = "more", "most"
    elif names == "job":
        data["user"][1]["job"][1]["name"] = data["user"][1]["job"][0]["name"]
    elif names == "across":
        data["user"].append({"name": "B/train", "speedup": data["user"][0]["speedup"]})
    else:
        data["types"].append(data["types"][0])
        data["capacity"].append(1)
        for table in _running(data):
            table["speedup"] = [*table["speedup"], 1]


def _other_shape(draw: DrawFn, data: Data) -> None:
    chosen = _one(draw, data["types"], data["capacity"], *(table["speedup"] for table in _running(data)))
    if draw(st.booleans()):
        chosen.append("extra" if chosen is data["types"] else 1)
    else:
        chosen.pop()


def _both_or_neither(draw: DrawFn, data: Data) -> None:
    if draw(st.booleans()):
        data["user"][0]["job"] = [{"name": "x", "speedup": list(data["user"][0]["speedup"])}]
    else:
        del data["user"][1]["job"]


def _two_demands(draw: DrawFn, data: Data) -> None:
    data["user"][1]["demand"] = 2
    data["user"][1]["job"][0]["demand"] = 1


def _nested(draw: DrawFn, data: Data) -> None:
    deep: Any = 1
    for _ in range(draw(st.integers(1, 60))):
        deep = [deep]
    data[_one(draw, "schema", "types")] = _one(draw, deep, {"a": deep})


# -- markets as rows of a table -----------------------------------------------------------------------------------
def _table(draw: DrawFn) -> Rows:
    """Draw a table with all columns: user, weight, demand and one to three types."""
    types = ["K80", "P100", "V100"][: draw(st.integers(1, 3))]
    users = [[name, _one(draw, "", "2"), _one(draw, "", "4")] for name in ["A", "B", "C"][: draw(st.integers(2, 3))]]
    rows = [[*start, *(_one(draw, "1", "2", "3.5", "5/4") for _ in types)] for start in [*users, ["capacity", "", ""]]]
    return [["user", "weight", "demand", *types], *rows]


def _wrong_cells(rows: Rows) -> list[Wrong]:
    header, *users, capacity = rows
    numbers = [(row, at) for row in rows[1:] for at in range(1, len(row))]
    return [
        ([(header, 0)], ["User", "name", "", "users", "capacity"]),
        ([(header, 1), (header, 2)], ["WEIGHT", "Weight", "DEMAND", "Demand", "", "  ", "bell\x07"]),
        (numbers, _NO_CELLS),
        ([(row, at) for row, at in numbers if at > 2], [""]),
        ([(row, at) for row in users for at in (1, 2)], ["0", "0.0", "0/5", "-1"]),
        ([(row, 0) for row in users], _NO_TEXTS),
        ([(capacity, 0)], ["Capacity", "total", "capacities"]),
        ([(capacity, 1), (capacity, 2)], ["1", "0", "x"]),
    ]


def _lost_row(draw: DrawFn, rows: Rows) -> None:
    """Drop the header or the capacities."""
    del rows[_one(draw, 0, -1)]


def _two_capacities(draw: DrawFn, rows: Rows) -> None:
    rows.insert(_index(draw, rows, 1), list(rows[-1]))


def _same_column(draw: DrawFn, rows: Rows) -> None:
    column = _index(draw, rows[0])
    for row in rows:
        row.append(row[column])


def _same_user(draw: DrawFn, rows: Rows) -> None:
    rows.insert(_index(draw, rows, 1), list(rows[_index(draw, rows, 1, 1)]))


def _ragged(draw: DrawFn, rows: Rows) -> None:
    row = _one(draw, *rows)
    row[:] = _one(draw, [*row, "1"], row[:-1])


def _zeros(draw: DrawFn, rows: Rows) -> None:
    """Let a user run nowhere, or let there be no GPUs."""
    row = _one(draw, *rows[1:])
    row[3:] = ["0"] * len(row[3:])


def _no_users(draw: DrawFn, rows: Rows) -> None:
    del rows[1:-1]


def _no_types(draw: DrawFn, rows: Rows) -> None:
    for row in rows:
        del row[3:]


# -- breaking the text --------------------------------------------------------------------------------------------
def _toml(value: Any) -> str:
    """Return a value as inline TOML; the break may have put anything anywhere, so no layout is assumed."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def _toml_file(data: Data) -> str:
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in data.items())


def _csv(rows: Rows) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _truncated(draw: DrawFn, text: str, data: Data) -> bytes:
    """Cut JSON anywhere before its last brace, and TOML behind its first bracket."""
    return text[: draw(st.integers(1, len(text) - 1)) if text.startswith("{") else text.index("[") + 1].encode()


def _not_utf8(draw: DrawFn, text: str, data: Any) -> bytes:
    whole, wrong = text.encode(), _one(draw, b"\xff", b"\xfe\xff", b"\xc3(", b"\x80")
    at = draw(st.integers(0, len(whole)))
    return bytes(whole[:at] + wrong + whole[at:])


def _blank(draw: DrawFn, text: str, data: Any) -> bytes:
    return bytes(_one(draw, b"", b"\xef\xbb\xbf") + draw(st.text(" \t\n", max_size=9)).encode())


def _random_bytes(draw: DrawFn, text: str, data: Any) -> bytes:
    """Return noise that starts with a byte with which no UTF-8, TOML, JSON or CSV header does."""
    return bytes(_one(draw, b"\x00", b"\xff", b"=", b"]", b"}") + draw(st.binary(max_size=60)))


def _key_twice(draw: DrawFn, text: str, data: Data) -> bytes:
    key = _one(draw, *sorted(data))
    if text.startswith("{"):
        return f"{{{json.dumps(key)}: {json.dumps(data[key])}, {text[1:]}".encode()
    return f"{json.dumps(key)} = {_toml(data[key])}\n{text}".encode()


def _very_deep(draw: DrawFn, text: str, data: Data) -> bytes:
    deep = "[" * _one(draw, 200, 2_000, 50_000)
    closed = _one(draw, deep, deep + "1" + "]" * len(deep))
    return (f'{{"types": {closed}}}' if text.startswith("{") else f"types = {closed}\n").encode()


def _huge_number(draw: DrawFn, text: str, data: Data) -> bytes:
    number = _one(draw, "9" * 450, "9" * 6_000, "1e400", "1e99999999999999999999", "0." + "1" * 900)
    broken = data | {"capacity": ["@", *data["capacity"][1:]]}
    whole = json.dumps(broken) if text.startswith("{") else _toml_file(broken)
    return whole.replace('"@"', number).encode()


def _quote(draw: DrawFn, text: str, rows: Rows) -> bytes:
    """Open a quote that nobody closes, or go on behind one that is closed."""
    lines = text.split("\n")
    at, quote = _one(draw, *((at, '"') for at in range(len(rows))), *((at, '"quoted"') for at in range(1, len(rows))))
    lines[at] = quote + lines[at]
    return "\n".join(lines).encode()


def _short_table(draw: DrawFn, text: str, rows: Rows) -> bytes:
    """Cut the file before or inside its last row, the capacities, such that a cell is missing."""
    return text[: draw(st.integers(0, text.rindex(",") - 1))].encode()


def _long_cell(draw: DrawFn, text: str, rows: Rows) -> bytes:
    return _csv([rows[0], [_one(draw, "x" * 200_000, "9" * 5_000), *rows[1][1:]], *rows[2:]]).encode()


class _Format(NamedTuple):
    """How a market is drawn and written, and the ways to break it: values, the data, the text."""

    valid: Callable[[DrawFn], Any]
    wrong: Callable[[Any], list[Wrong]]
    breaks: tuple[Callable[[DrawFn, Any], None], ...]
    write: Callable[[Any], str]
    text_breaks: tuple[Callable[[DrawFn, str, Any], bytes], ...]


_JSON = _Format(
    _market,
    _wrong_values,
    (_drop_key, _rename_key, _add_key, _same_names, _other_shape, _both_or_neither, _two_demands, _nested),
    json.dumps,
    (_truncated, _not_utf8, _blank, _random_bytes, _key_twice, _very_deep, _huge_number),
)
_CSV = _Format(
    _table,
    _wrong_cells,
    (_lost_row, _two_capacities, _same_column, _same_user, _ragged, _zeros, _no_users, _no_types),
    _csv,
    (_quote, _not_utf8, _short_table, _blank, _random_bytes, _long_cell),
)
_FORMATS = MappingProxyType({".toml": _JSON._replace(write=_toml_file), ".json": _JSON, ".csv": _CSV})


@st.composite
def malformed_market_texts(draw: DrawFn) -> tuple[str, bytes]:
    """Return a strategy for pairs of a suffix (".toml", ".json", ".csv") and the bytes of a broken market file.

    Every one is malformed by construction: a key dropped, renamed, added or given twice, NaN, infinities, negative and
    huge numbers, text for numbers, other shapes, names that are missing or stand twice, rows and capacities of zeros,
    another version, and files that are empty, cut off, nested too deeply, noise, or not UTF-8. A reader must refuse
    each with a `BadInput` that names the file and a place.

    >>> from hypothesis import given
    >>> @given(malformed_market_texts())
    ... def a_reader_refuses_it(broken):
    ...     suffix, content = broken
    ...     assert suffix in (".toml", ".json", ".csv")
    """
    suffix = _one(draw, *sorted(_FORMATS))
    form = _FORMATS[suffix]
    data = form.valid(draw)
    if not draw(st.integers(0, 3)):
        return suffix, _one(draw, *form.text_breaks)(draw, form.write(data), data)
    if draw(st.integers(0, 2)):
        slots, values = _one(draw, *form.wrong(data))
        holder, key = _one(draw, *slots)
        holder[key] = copy.deepcopy(_one(draw, *values))
    else:
        _one(draw, *form.breaks)(draw, data)
    text = form.write(data)
    if suffix == ".csv":  # such a file may come from a spreadsheet
        text = _one(draw, "", "\ufeff") + text.replace("\n", _one(draw, "\n", "\r\n"))
    return suffix, text.encode()

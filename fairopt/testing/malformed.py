"""Market files that are broken, each in one way that no reader may accept.

Every break gives a malformed file for any draw. The reader is not asked, because the files are there to test it.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fairopt.testing.malformed_csv import malformed_csv

Data = dict[str, Any]
#: Values that are not valid numbers in a market; TOML has no null, so it has a list of its own.
_NO_NUMBERS: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -0.5,
    "text",
    "",
    "1/0",
    "1e999999",
    "nan",
    "0x10",
    "1,5",
    True,
    [],
    [1],
    {},
    10**31,
    10**450,
)
_NO_NAMES: tuple[Any, ...] = (1, 1.5, True, "", "   ", "two\nlines", "bell\x07", "n" * 201, [], ["A"], {})
_NO_LISTS: tuple[Any, ...] = (1, "text", True, {"a": 1}, [])


@st.composite
def _valid(draw: DrawFn) -> Data:
    """Draw the dictionary of a valid market file; the first user always has speedups, the second has jobs."""
    k = draw(st.integers(1, 3))
    rows = st.lists(st.sampled_from([1, 2, 3.5, "5/4"]), min_size=k, max_size=k)
    users: list[Data] = [
        {"name": "A", "speedup": draw(rows), "weight": draw(st.integers(1, 3)), "demand": draw(st.integers(1, 3))},
        {"name": "B", "job": [{"name": "train", "speedup": draw(rows)}, {"name": "tune", "speedup": draw(rows)}]},
    ]
    users += [{"name": f"u{number}", "speedup": draw(rows)} for number in range(draw(st.integers(0, 2)))]
    return {
        "schema": 1,
        "types": ["K80", "P100", "V100"][:k],
        "capacity": draw(st.lists(st.integers(1, 60), min_size=k, max_size=k)),
        "user": users,
    }


# -- breaking the data --------------------------------------------------------------------------------------------
def _tables(data: Data) -> list[Data]:
    return [data, *data["user"], *data["user"][1]["job"]]


def _drop_key(draw: DrawFn, data: Data) -> None:
    table = draw(st.sampled_from(_tables(data)))
    del table[draw(st.sampled_from([key for key in table if key not in ("weight", "demand")]))]


def _rename_key(draw: DrawFn, data: Data) -> None:
    table = draw(st.sampled_from(_tables(data)))
    key = draw(st.sampled_from(sorted(table)))
    table[key + draw(st.sampled_from(["s", "_", "x1"]))] = table.pop(key)


def _add_key(draw: DrawFn, data: Data) -> None:
    table = draw(st.sampled_from(_tables(data)))
    table[draw(st.sampled_from(["gpus", "note", "Name", "speed up", "__class__", "ключ"]))] = draw(
        st.sampled_from([1, "x", [1]])
    )


def _no_number(draw: DrawFn, data: Data) -> None:
    """Put an invalid number in the place of a capacity, a speedup, a weight or a demand."""
    value = copy.deepcopy(draw(st.sampled_from(_NO_NUMBERS)))
    holder = draw(
        st.sampled_from(
            [data["capacity"], *(t["speedup"] for t in _tables(data)[1:] if "speedup" in t), data["user"][0]]
        )
    )
    if isinstance(holder, list):
        holder[draw(st.integers(0, len(holder) - 1))] = value
    else:
        holder[draw(st.sampled_from(["weight", "demand"]))] = value


def _not_positive(draw: DrawFn, data: Data) -> None:
    table = draw(st.sampled_from(_tables(data)[1:]))
    table[draw(st.sampled_from(["weight", "demand"]))] = draw(st.sampled_from([0, 0.0, "0", "0/7", -1, "-1/3"]))


def _no_name(draw: DrawFn, data: Data) -> None:
    value = copy.deepcopy(draw(st.sampled_from(_NO_NAMES)))
    if draw(st.booleans()):
        draw(st.sampled_from(_tables(data)[1:]))["name"] = value
    else:
        data["types"][draw(st.integers(0, len(data["types"]) - 1))] = value


def _same_names(draw: DrawFn, data: Data) -> None:
    names = draw(st.sampled_from(["user", "job", "types", "across"]))
    if names == "user":
        data["user"].append(copy.deepcopy(draw(st.sampled_from(data["user"]))))
        if "job" in data["user"][-1]:  # other rows, so that the users' names alone clash
            data["user"][-1]["job"][0]["name"], data["user"][-1]["job"][1]["name"] = "more", "most"
    elif names == "job":
        data["user"][1]["job"][1]["name"] = data["user"][1]["job"][0]["name"]
    elif names == "across":
        data["user"].append({"name": "B/train", "speedup": data["user"][0]["speedup"]})
    else:
        data["types"].append(data["types"][0])
        data["capacity"].append(1)
        for table in _tables(data)[1:]:
            if "speedup" in table:
                table["speedup"] = [*table["speedup"], 1]


def _other_shape(draw: DrawFn, data: Data) -> None:
    lists = [data["types"], data["capacity"], *(table["speedup"] for table in _tables(data)[1:] if "speedup" in table)]
    chosen = draw(st.sampled_from(lists))
    if draw(st.booleans()):
        chosen.append("extra" if chosen is data["types"] else 1)
    else:
        chosen.pop()


def _no_list(draw: DrawFn, data: Data) -> None:
    value = copy.deepcopy(draw(st.sampled_from(_NO_LISTS)))
    places: list[tuple[Data, str]] = [(data, "types"), (data, "capacity"), (data, "user"), (data["user"][1], "job")]
    places += [(table, "speedup") for table in _tables(data)[1:] if "speedup" in table]
    table, key = draw(st.sampled_from(places))
    table[key] = value


def _no_table(draw: DrawFn, data: Data) -> None:
    tables = draw(st.sampled_from([data["user"], data["user"][1]["job"]]))
    tables[draw(st.integers(0, len(tables) - 1))] = draw(st.sampled_from([1, "A", True, ["A", [1]]]))


def _runs_nowhere(draw: DrawFn, data: Data) -> None:
    table = draw(st.sampled_from([table for table in _tables(data)[1:] if "speedup" in table]))
    table["speedup"] = [draw(st.sampled_from([0, 0.0, "0"])) for _ in table["speedup"]]


def _no_gpus(draw: DrawFn, data: Data) -> None:
    data["capacity"] = [draw(st.sampled_from([0, 0.0, "0"])) for _ in data["capacity"]]


def _no_users(draw: DrawFn, data: Data) -> None:
    data["user"] = []


def _other_version(draw: DrawFn, data: Data) -> None:
    data["schema"] = draw(st.sampled_from([0, 2, 99, -1, 10**30, "1", 1.5, True, [1], {}]))


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
    data[draw(st.sampled_from(["schema", "types"]))] = deep if draw(st.booleans()) else {"a": deep}


_DATA_BREAKS: tuple[Callable[[DrawFn, Data], None], ...] = (
    _drop_key,
    _rename_key,
    _add_key,
    _no_number,
    _not_positive,
    _no_name,
    _same_names,
    _other_shape,
    _no_list,
    _no_table,
    _runs_nowhere,
    _no_gpus,
    _no_users,
    _other_version,
    _both_or_neither,
    _two_demands,
    _nested,
)


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


def _truncated(draw: DrawFn, text: str, data: Data) -> bytes:
    """Cut JSON anywhere before its last brace, and TOML behind one of its first brackets or equal signs."""
    marks = (
        range(1, len(text.rstrip())) if text.startswith("{") else [i + 1 for i, c in enumerate(text) if c == "["][:1]
    )
    return text[: draw(st.sampled_from(list(marks)))].encode()


def _not_utf8(draw: DrawFn, text: str, data: Data) -> bytes:
    data_bytes = text.encode()
    at = draw(st.integers(0, len(data_bytes)))
    return data_bytes[:at] + draw(st.sampled_from([b"\xff", b"\xfe\xff", b"\xc3(", b"\x80"])) + data_bytes[at:]


def _blank(draw: DrawFn, text: str, data: Data) -> bytes:
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + draw(st.text(" \t\n", max_size=9)).encode()


def _random_bytes(draw: DrawFn, text: str, data: Data) -> bytes:
    """Return noise that starts with a byte with which no UTF-8, TOML, JSON or CSV header does."""
    return draw(st.sampled_from([b"\x00", b"\xff", b"=", b"]", b"}"])) + draw(st.binary(max_size=60))


def _key_twice(draw: DrawFn, text: str, data: Data) -> bytes:
    key = draw(st.sampled_from(sorted(data)))
    if text.startswith("{"):
        return f"{{{json.dumps(key)}: {json.dumps(data[key])}, {text[1:]}".encode()
    return f"{json.dumps(key)} = {_toml(data[key])}\n{text}".encode()


def _very_deep(draw: DrawFn, text: str, data: Data) -> bytes:
    deep = "[" * draw(st.sampled_from([200, 2_000, 50_000]))
    closed = deep + "1" + "]" * len(deep) if draw(st.booleans()) else deep
    return (f'{{"types": {closed}}}' if text.startswith("{") else f"types = {closed}\n").encode()


def _huge_number(draw: DrawFn, text: str, data: Data) -> bytes:
    number = draw(st.sampled_from(["9" * 450, "9" * 6_000, "1e400", "1e99999999999999999999", "0." + "1" * 900]))
    broken = copy.deepcopy(data) | {"capacity": ["@", *data["capacity"][1:]]}
    whole = json.dumps(broken) if text.startswith("{") else _toml_file(broken)
    return whole.replace('"@"', number).encode()


_TEXT_BREAKS: tuple[Callable[[DrawFn, str, Data], bytes], ...] = (
    _truncated,
    _not_utf8,
    _blank,
    _random_bytes,
    _key_twice,
    _very_deep,
    _huge_number,
)
_WRITERS: MappingProxyType[str, Callable[[Data], str]] = MappingProxyType({".toml": _toml_file, ".json": json.dumps})


@st.composite
def _toml_or_json(draw: DrawFn) -> tuple[str, bytes]:
    data, suffix = draw(_valid()), draw(st.sampled_from(sorted(_WRITERS)))
    write = _WRITERS[suffix]
    if draw(st.integers(0, 3)):
        draw(st.sampled_from(_DATA_BREAKS))(draw, data)
        return suffix, write(data).encode()
    return suffix, draw(st.sampled_from(_TEXT_BREAKS))(draw, write(data), data)


def malformed_market_texts() -> SearchStrategy[tuple[str, bytes]]:
    """Return a strategy for pairs of a suffix (".toml", ".json", ".csv") and the bytes of a broken market file.

    Every one is malformed by construction: a key dropped, renamed, added or given twice, NaN, infinities, negative and
    huge numbers, text for numbers, other shapes, names that are missing or stand twice, rows and capacities of zeros,
    another version, and files that are empty, cut off, nested too deeply, noise, or not UTF-8. A reader must refuse
    each with a `BadInput` that names the file and a place.
    """
    return _toml_or_json() | malformed_csv()

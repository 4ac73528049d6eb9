"""What a file describes, told by a key that no other type of file has: for commands that take several types."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from types import MappingProxyType

from fairopt.errors import BadInput
from fairopt.problem.files.documents import parse_json, parse_toml
from fairopt.problem.files.storage import AnyPath, naming, read_text, suffix_to_read

MARKET = "market"
#: By key at the top level: the type of file that has it, and who takes such a file. Of several keys the first tells.
TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "user": (MARKET, "`fairopt solve` and `fairopt compare` take it"),
        "host": ("cluster", "`fairopt run` and `fairopt compare` take it by --cluster"),
        "server": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "bandwidth": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "job": ("trace", "`fairopt run` and `fairopt compare` take it"),
    }
)


def check_file_type(data: Mapping[str, object], wanted: str, place: str) -> None:
    """Refuse what is plainly a file of another type than ``wanted``, and say what it is for."""
    for key, (file_type, taker) in TYPES.items():
        if key not in data:
            continue
        if file_type == wanted:
            return
        raise BadInput(f"the key {key!r} is that of a {file_type}", place=place, remedy=f"Give a {wanted}; {taker}")


#: What tells the type of a CSV text: the column that names its rows.
_COLUMNS: Mapping[str, str] = MappingProxyType({"user": MARKET, "job_id": "trace"})
#: What may stand between two cells of a CSV text; of several the one that the header has most.
SEPARATORS = (",", ";", "\t")
_SUFFIXES = dict.fromkeys((".toml", ".json", ".csv", ".csv.gz"))


def file_type(path: AnyPath) -> str:
    """Return what a file describes: "trace", "batch", "cluster", or "market" where nothing tells; else `BadInput`."""
    with naming(path):
        suffix, text = suffix_to_read(path, _SUFFIXES), read_text(path)
        if suffix.startswith(".csv"):
            header = next(csv.reader(text.splitlines()[:1], delimiter=separator(text)), [])
            if (found := next((_COLUMNS[name.strip()] for name in header if name.strip() in _COLUMNS), None)) is None:
                remedy = f"Call the first one {' or '.join(f'{name} (a {kind})' for name, kind in _COLUMNS.items())}"
                raise BadInput("no column says what the rows are", place="line 1", remedy=remedy)
            return found
        possible = {key: TYPES[key][0] for key in TYPES if key in text}
        if set(possible.values()) <= {MARKET}:  # so that a large file is not read twice
            return MARKET
        data = {".toml": parse_toml, ".json": parse_json}[suffix](text)
        return next((possible[key] for key in possible if key in data), MARKET)


def separator(text: str) -> str:
    """Return what stands between the cells of a CSV text: a comma, a semicolon or a tab, as its header says."""
    header = re.sub(r'"[^"]*"', "", next((line for line in text.splitlines() if line.strip()), ""))
    return max(SEPARATORS, key=header.count)

"""Tables, JSON and TOML as texts, with the standard library; numbers are ints, decimals, or strings "p/q"."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any


def number_of(value: Any) -> Fraction:
    return Fraction(str(value))


def written(value: Fraction) -> Any:
    """Return a number as it stands in a file: whole, a decimal where it is one of a few digits, else "p/q"."""
    if value.denominator == 1:
        return int(value)
    in_thousandths = value * 1000
    return Decimal(int(in_thousandths)) / 1000 if in_thousandths.denominator == 1 else str(value)


def csv_text(table: Sequence[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(table)
    return out.getvalue()


def json_text(data: Any) -> str:
    if isinstance(data, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {json_text(value)}" for key, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(map(json_text, data)) + "]"
    return format(data, "f") if isinstance(data, Decimal) else json.dumps(data)


def toml_text(data: Mapping[str, Any], path: str = "") -> str:
    lines, below = [], []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for each in value:
                below.append(f"\n[[{path}{key}]]\n{toml_text(each, f'{path}{key}.')}")
        elif isinstance(value, dict):
            below.append(f"\n[{path}{key}]\n{toml_text(value, f'{path}{key}.')}")
        else:
            lines.append(f"{key} = {json_text(value)}\n")
    return "".join([*lines, *below])

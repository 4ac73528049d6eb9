"""How values of a specification are read: each reader takes what stands there and the place, and returns what is meant.

Errors: `BadInput` with the place, the value and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, TypeVar

from fairopt.errors import BadInput
from fairopt.problem.numbers import shown

T = TypeVar("T")
_ABSENT = object()


def reader(data: Mapping[str, Any], place: str) -> Callable[..., Any]:
    """Return read(key, how, default): the value of a key as ``how`` reads it; of a key that is not there, the default.

    Keys without a default have been checked to be there.
    """
    inside = f"{place}, " if place else ""

    def read(key: str, how: Callable[[Any, str], T], default: Any = _ABSENT) -> Any:
        return default if default is not _ABSENT and key not in data else how(data[key], f"{inside}key {key!r}")

    return read


def text(value: Any, place: str) -> str:
    """Return a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a string")
    return value


def flag(value: Any, place: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give true or false")
    return value


def table(value: Any, place: str) -> Mapping[str, Any]:
    """Return a table of keys and values."""
    if not isinstance(value, Mapping):
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a table, { key = value, ... }")
    return value


def tables(data: Mapping[str, Any], key: str, *, required: bool = True) -> list[tuple[Mapping[str, Any], str]]:
    """Return the tables of an array of them, each with what messages call it."""
    given = data.get(key, [])
    if not isinstance(given, list) or (required and not given):
        raise BadInput(f"got {shown(given)}", place=f"key {key!r}", remedy=f"Give tables [[{key}]]")
    return [(table(each, f"{key} {number}"), f"{key} {number}") for number, each in enumerate(given, start=1)]


def amount(*, above: float) -> Callable[[Any, str], float]:
    """Return a reader of numbers larger than ``above``."""

    def read(value: Any, place: str) -> float:
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if not number or not isfinite(value) or value <= above:
            raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give a number above {above:g}")
        return float(value)

    return read


def whole(*, least: int) -> Callable[[Any, str], int]:
    """Return a reader of whole numbers that are at least ``least``."""

    def read(value: Any, place: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give a whole number, at least {least}")
        return value

    return read

"""Columns of clusters and jobs: one validated value for each row, exact, with messages that name the row."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import listed
from fairopt.problem.numbers import exact, shown
from fairopt.program import INFINITY, Array

#: No gang is larger; a slip of the keyboard is.
MOST_GPUS = 1_000_000


def one_each(values: object, count: int, default: object = None) -> list[object]:
    """Return ``values`` as a list; where nothing is given, ``default`` for each of ``count``."""
    return [default] * count if values is None else listed(values, "values")


def checked_counts(values: object, places: Sequence[str], what: str, kind: str, least: int = 1) -> Array:
    """Return one integer of at least ``least`` for each of ``places``, as int64."""
    given = _sized(values, places, what, kind)
    out = np.empty(len(given), dtype=np.int64)
    for row, (place, value) in enumerate(zip(places, given, strict=True)):
        number = exact(value, f"{place}, {what}")
        if number.denominator != 1 or not least <= number <= MOST_GPUS:
            raise BadInput(
                f"got {shown(value)}",
                place=f"{place}, {what}",
                remedy=f"Give a whole number from {least} to {MOST_GPUS}",
            )
        out[row] = int(number)
    return out


def amounts(values: object, places: Sequence[str], what: str, kind: str = "job", *, above: bool = False) -> Array:
    """Return one Fraction that is not negative (``above``: positive) for each of ``places``."""
    given = _sized(values, places, what, kind)
    out = np.empty(len(given), dtype=object)
    for row, (place, value) in enumerate(zip(places, given, strict=True)):
        out[row] = _amount(value, f"{place}, {what}", above)
    return out


def positive(values: object, places: Sequence[str], what: str, kind: str) -> Array:
    """Return one positive Fraction for each of ``places``; infinity where None or infinity is given."""
    given = _sized(values, places, what, kind)
    out = np.empty(len(given), dtype=object)
    for row, (place, value) in enumerate(zip(places, given, strict=True)):
        free = value is None or (isinstance(value, float) and value == INFINITY)
        out[row] = INFINITY if free else _amount(value, f"{place}, {what}", True)
    return out


def _amount(value: object, place: str, above: bool) -> Fraction:
    number = exact(value, place)
    if number < 0 or (above and number == 0):
        raise BadInput(
            f"got {shown(value)}",
            place=place,
            remedy="Give a positive number" if above else "Give a number that is not negative",
        )
    return number


def _sized(values: object, places: Sequence[str], what: str, kind: str) -> list[object]:
    given = listed(values, what)
    if len(given) != len(places):
        raise BadInput(f"{len(given)} values for {len(places)} {kind}s", place=what, remedy=f"Give one for each {kind}")
    return given

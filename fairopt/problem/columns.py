"""Columns of problems: one validated value for each row, exact, with messages that name the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import listed
from fairopt.problem.numbers import amount, whole
from fairopt.program import INFINITY, Array, Number, objects


class Frozen:
    """A base of dataclasses in columns: nobody can change the arrays in their fields."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


def one_each(values: object, count: int, default: object = None) -> list[object]:
    """Return ``values`` as a list; where nothing is given, ``default`` for each of ``count``."""
    return [default] * count if values is None else listed(values, "values")


def column(
    values: object, places: Sequence[str], what: str, kind: str, read: Callable[..., Any], dtype: Any = None,
    *, blank: object = ...,
) -> Array:  # fmt: skip
    """Return one value for each of ``places``, as ``read`` returns it of a value and its place.

    Where no values are given it is that of ``blank``. Without a ``dtype`` they are objects. ``kind`` is what messages
    call one of the places. What stands in every row, as where a column is left out, is read once.
    """
    given = sized([blank] * len(places) if values is None and blank is not ... else values, places, what, kind)
    if len(given) > 1 and len({id(value) for value in given}) == 1:
        found = [read(given[0], f"{places[0]}, {what}")] * len(given)
    else:
        found = [read(value, f"{place}, {what}") for place, value in zip(places, given, strict=True)]
    return objects(found) if dtype is None else np.array(found, dtype=dtype)


def checked_counts(
    values: object, places: Sequence[str], what: str, kind: str, least: int = 1, *, blank: object = ...
) -> Array:
    """Return one integer of at least ``least`` for each of ``places``, as int64."""
    return column(values, places, what, kind, partial(whole, least=least), np.int64, blank=blank)


def amounts(
    values: object, places: Sequence[str], what: str, kind: str = "job", *, above: bool = False, blank: object = ...
) -> Array:
    """Return one Fraction that is not negative (``above``: positive) for each of ``places``."""
    return column(values, places, what, kind, partial(amount, above=above), blank=blank)


def limits(values: object, places: Sequence[str], what: str, kind: str, *, above: bool = True) -> Array:
    """Return one Fraction for each of ``places``, as `amounts`; infinity where None or infinity is given."""

    def read(value: object, place: str) -> Number:
        unbounded = value is None or (isinstance(value, float) and value == INFINITY)
        return INFINITY if unbounded else amount(value, place, above=above)

    return column(values, places, what, kind, read, blank=None)


def sized(values: object, places: Sequence[str], what: str, kind: str) -> list[object]:
    """Return ``values`` as a list, one for each of ``places``; ``kind`` is what messages call one of these."""
    given = listed(values, what)
    if len(given) != len(places):
        raise BadInput(f"{len(given)} values for {len(places)} {kind}s", place=what, remedy=f"Give one for each {kind}")
    return given

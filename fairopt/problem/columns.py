"""Columns of problems: one validated value for each row, exact, with messages that name the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import listed
from fairopt.problem.numbers import amount, whole
from fairopt.program import INFINITY, Array, objects

T = TypeVar("T")


class Frozen:
    """A base of dataclasses in columns: nobody can change the arrays in their fields."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


def one_each(values: object, count: int, default: object = None) -> list[object]:
    """Return ``values`` as a list; where nothing is given, ``default`` for each of ``count``."""
    return [default] * count if values is None else listed(values, "values")


def checked_counts(values: object, places: Sequence[str], what: str, kind: str, least: int = 1) -> Array:
    """Return one integer of at least ``least`` for each of ``places``, as int64."""
    read = partial(whole, least=least)
    return np.array(_each(read, values, places, what, kind), dtype=np.int64)


def amounts(values: object, places: Sequence[str], what: str, kind: str = "job", *, above: bool = False) -> Array:
    """Return one Fraction that is not negative (``above``: positive) for each of ``places``."""
    return objects(_each(partial(amount, above=above), values, places, what, kind))


def limits(values: object, places: Sequence[str], what: str, kind: str, *, above: bool = True) -> Array:
    """Return one Fraction for each of ``places``, as `amounts`; infinity where None or infinity is given."""
    return objects(
        INFINITY
        if value is None or (isinstance(value, float) and value == INFINITY)
        else amount(value, place, above=above)
        for place, value in _placed(values, places, what, kind)
    )


def _each(read: Callable[[object, str], T], values: object, places: Sequence[str], what: str, kind: str) -> list[T]:
    """Return each value as it is read; one that stands in every row, as where a column is left out, is read once."""
    placed = list(_placed(values, places, what, kind))
    if len({id(value) for _, value in placed}) == 1:
        place, value = placed[0]
        return [read(value, place)] * len(placed)
    return [read(value, place) for place, value in placed]


def _placed(values: object, places: Sequence[str], what: str, kind: str) -> Iterator[tuple[str, object]]:
    return ((f"{place}, {what}", value) for place, value in zip(places, sized(values, places, what, kind), strict=True))


def sized(values: object, places: Sequence[str], what: str, kind: str) -> list[object]:
    """Return ``values`` as a list, one for each of ``places``; ``kind`` is what messages call one of these."""
    given = listed(values, what)
    if len(given) != len(places):
        raise BadInput(f"{len(given)} values for {len(places)} {kind}s", place=what, remedy=f"Give one for each {kind}")
    return given

"""Amounts of GPUs in the lightest exact numbers: integers where they are whole, which is most of the time."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from fairopt.numbers import whole_as_int


def light(amounts: Iterable[Any]) -> list[Any]:
    """Return the same amounts, whole Fractions as ints.

    >>> light([Fraction(2), Fraction(1, 2), 0.5])
    [2, Fraction(1, 2), 0.5]
    """
    return [whole_as_int(each) for each in amounts]


def ratio(part: Any, whole: Any) -> Any:
    """Return ``part`` over ``whole``, exactly for ints and Fractions, in floats for floats.

    >>> ratio(1, 3)
    Fraction(1, 3)
    """
    return Fraction(part, whole) if type(part) is int and type(whole) is int else part / whole

"""How a number that somebody wrote becomes the exact number that was meant."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from fairopt.errors import BadInput

#: Sizes beyond these are slips of the keyboard or attacks on memory, not clusters.
MOST_DIGITS = 400
LARGEST_EXPONENT = 30
_WRITTEN = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?\s*|\s*[+-]?\d+\s*/\s*\d+\s*", re.ASCII)


def exact(value: object, place: str) -> Fraction:
    """Return ``value`` as the Fraction that was meant: the string "0.1" and the float 0.1 are both 1/10.

    Takes ints, Fractions, Decimals, floats (by their shortest decimal form), NumPy numbers, and strings such as
    "3", "2.5", "1e3" or "5/4". Anything else, NaN, infinities and absurd sizes are a `BadInput` that names ``place``.
    """
    number = _meant(value, place)
    if number and not Fraction(1, 10**LARGEST_EXPONENT) <= abs(number) <= 10**LARGEST_EXPONENT:
        raise BadInput(
            f"got {_shown(value)}, which is beyond 1e±{LARGEST_EXPONENT}",
            place=place,
            remedy="Choose units in which the numbers are of ordinary size",
        )
    return number


def _meant(value: object, place: str) -> Fraction:
    if isinstance(value, bool | np.bool_):
        raise BadInput(f"got {value}, a truth value", place=place, remedy="Give a number")
    if isinstance(value, int | Fraction):
        _refuse_long(max(value.numerator.bit_length(), value.denominator.bit_length()) // 3, value, place)
        return Fraction(value)
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise BadInput(f"got {float(value)}", place=place, remedy="Give a finite number")
        return Fraction(str(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise BadInput(f"got {value}", place=place, remedy="Give a finite number")
        value = str(value)
    if isinstance(value, str):
        _refuse_long(len(value), value, place)
        if not _WRITTEN.fullmatch(value):
            raise BadInput(f"got {value!r}, not a number", place=place, remedy='Write 3, 2.5, 1e3 or "5/4"')
        compact = "".join(value.split())
        if "/" in compact and int(compact.split("/")[1]) == 0:
            raise BadInput(f"got {value!r}, a division by zero", place=place, remedy="Give a positive denominator")
        _, _, exponent = compact.lower().partition("e")
        if exponent and abs(int(exponent)) > LARGEST_EXPONENT + MOST_DIGITS:
            raise BadInput(
                f"got {value!r}, which is beyond 1e±{LARGEST_EXPONENT}",
                place=place,
                remedy="Choose units in which the numbers are of ordinary size",
            )
        return Fraction(compact)
    raise BadInput(f"got {_shown(value)} of type {type(value).__name__}", place=place, remedy="Give a number")


def _refuse_long(digits: int, value: object, place: str) -> None:
    if digits > MOST_DIGITS:
        raise BadInput(f"got {_shown(value)}, a number of {digits} digits", place=place, remedy="Round it")


def _shown(value: object) -> str:
    if isinstance(value, int | Fraction):  # printing a huge integer is itself refused by Python
        return (
            f"a number with {value.numerator.bit_length()} bits" if value.numerator.bit_length() > 400 else str(value)
        )
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

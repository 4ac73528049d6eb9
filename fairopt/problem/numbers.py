"""How a number that somebody wrote becomes the exact number that was meant."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from fairopt.errors import BadInput

#: Sizes beyond these are slips of the keyboard or attacks on memory, not clusters.
MOST_DIGITS = 400
LARGEST_EXPONENT = 30
#: Exact allocations are longer: those of partial allocation have 1,600 digits for 200 users.
MOST_DIGITS_SOLVED = 20_000
#: No gang is larger; a slip of the keyboard is.
MOST_GPUS = 1_000_000
#: How a number may be written as a string.
WRITTEN = r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?\s*|\s*[+-]?\d+\s*/\s*\d+\s*"
#: Numbers that are not 0 lie between these, without their sign.
LEAST, MOST = Fraction(1, 10**LARGEST_EXPONENT), Fraction(10**LARGEST_EXPONENT)
#: Numbers whose parts are smaller are within 1e±30.
_ORDINARY = 10**LARGEST_EXPONENT
_WRITTEN = re.compile(WRITTEN, re.ASCII)


def exact(value: object, place: str, *, tiny: bool = False) -> Fraction:
    """Return ``value`` as the Fraction that was meant: the string "0.1" and the float 0.1 are both 1/10.

    Takes ints, Fractions, Decimals, floats (by their shortest decimal form), NumPy numbers, and strings such as
    "3", "2.5", "1e3" or "5/4". Anything else, NaN, infinities and absurd sizes are a `BadInput` that names ``place``;
    with ``tiny`` a number may be as small as it likes, since solvers leave 1e-40 where they mean 0, and long.

    >>> exact(0.1, "here"), exact("5/4", "here")
    (Fraction(1, 10), Fraction(5, 4))
    """
    kind = type(value)  # nearly all are of these kinds, and tables have thousands
    if kind is int:
        if -_ORDINARY < value < _ORDINARY:
            return Fraction(value)  # type: ignore[call-overload, no-any-return]
    elif kind in (float, str, np.float64):
        short = _short(str(value))
        if short is not None:
            return short
    elif kind is Fraction and max(value.numerator, value.denominator, -value.numerator) < _ORDINARY:  # type: ignore[attr-defined]
        return value  # type: ignore[return-value]
    number = _meant(value, place, MOST_DIGITS_SOLVED if tiny else MOST_DIGITS)
    if number and not (0 if tiny else LEAST) <= abs(number) <= MOST:
        raise beyond(value, place)
    return number


@lru_cache(maxsize=2**16)
def _short(text: str) -> Fraction | None:
    """Return what a few digits mean, with or without a point; None for all else that may be a number."""
    top, point, bottom = text.partition(".")
    plain = len(text) <= LARGEST_EXPONENT and text.isascii() and top.isdigit() and (bottom.isdigit() or not point)
    return Fraction(int(top + bottom), 10 ** len(bottom)) if plain else None


def amount(value: object, place: str, *, above: bool = False) -> Fraction:
    """Return a number that is not negative (``above``: positive); errors as `exact`."""
    number = exact(value, place)
    if number.numerator < 0 or (above and not number):
        remedy = "Give a positive number" if above else "Give a number that is not negative"
        raise BadInput(f"got {shown(number)}", place=place, remedy=remedy)
    return number


def whole(value: object, place: str, *, least: int = 1) -> int:
    """Return a whole number from ``least`` to `MOST_GPUS`; errors as `exact`."""
    if type(value) is int and least <= value <= MOST_GPUS:  # nearly all are
        return value
    number = exact(value, place)
    if number.denominator != 1 or not least <= number.numerator <= MOST_GPUS:
        remedy = f"Give a whole number from {least} to {MOST_GPUS}"
        raise BadInput(f"got {shown(value)}", place=place, remedy=remedy)
    return number.numerator


def check_number(
    value: object, place: str, *, least: object = None, above: object = None, most: object = None,
    below: object = None, whole: bool = False, none: bool = False,
) -> None:  # fmt: skip
    """Refuse what is no number within these limits, or no ``whole`` one; ``none``: None is fine. Errors as `exact`.

    >>> check_number(2, "option 'part'", above=0, most=1)
    Traceback (most recent call last):
        ...
    fairopt.errors.BadInput: option 'part': got 2. Give a number above 0 and at most 1
    """
    if value is None and none:
        return
    number = None if whole and not isinstance(value, int | np.integer) else exact(value, place)
    if number is not None:
        low = (least is None or number >= exact(least, place)) and (above is None or number > exact(above, place))
        high = (most is None or number <= exact(most, place)) and (below is None or number < exact(below, place))
        if low and high:
            return
    first = "" if least is above is None else f"from {least}" if above is None else f"above {above}"
    last = "" if most is below is None else f"to {most}" if least is not None and below is None else f"at most {most}"
    last = last if below is None else f"below {below}"
    limits = (" " if last.startswith("to") else " and ").join(filter(None, (first, last)))
    kind = "a whole number" if whole else "a number"
    raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give {kind} {limits}{', or None' if none else ''}")


def within(default: Any, **limits: object) -> Any:
    """Return the field of a dataclass that holds a number within limits, as `check_number` takes them."""
    return field(default=default, metadata={"within": limits})


def check_within(of: Any, place: Callable[[str], str] = str) -> None:
    """Refuse an object in which a field that was made by `within` holds something else; errors as `check_number`.

    Whole is one whose type is int, and None may be one whose default or type it is. ``place``: what a field is called.
    """
    for each in fields(of):
        if (limits := each.metadata.get("within")) is not None:
            said = re.findall(r"\w+", str(each.type))
            kind = {"whole": "int" in said, "none": each.default is None or "None" in said}
            check_number(getattr(of, each.name), place(each.name), **kind, **limits)


def integer(value: object, place: str) -> int:
    """Return an integer of either sign, at most 62 bits; errors as `exact`."""
    if type(value) is int and -(2**62) < value < 2**62:  # nearly all are
        return value
    number = exact(value, place)
    if number.denominator != 1 or abs(number) >= 2**62:
        remedy = "Give a whole number" + ("" if abs(number) < 2**62 else " of at most 18 digits")
        raise BadInput(f"got {shown(value)}", place=place, remedy=remedy)
    return int(number)


def _meant(value: object, place: str, most: int) -> Fraction:
    if isinstance(value, bool | np.bool_):
        raise BadInput(f"got {value}, a truth value", place=place, remedy="Give a number")
    if isinstance(value, int | Fraction):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        _refuse_long(bits * 30103 // 100_000 + 1, place, most)  # log10(2) = 0.30103
        return Fraction(value)
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise BadInput(f"got {float(value)}", place=place, remedy="Give a finite number")
        return Fraction(str(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise BadInput(f"got {value!s:.20}", place=place, remedy="Give a finite number")
        value = str(value)
    if isinstance(value, str):
        _refuse_long(max(len(part) for part in value.split("/")), place, most)
        if not _WRITTEN.fullmatch(value):
            raise BadInput(f"got {shown(value)}, not a number", place=place, remedy='Write 3, 2.5, 1e3 or "5/4"')
        compact = "".join(value.split())
        # Decimals, unlike int(), take more than 4,300 digits
        top, _, bottom = compact.partition("/")
        if bottom and Decimal(bottom) == 0:
            raise BadInput(f"got {shown(value)}, a division by zero", place=place, remedy="Give a positive denominator")
        _, _, exponent = compact.lower().partition("e")
        if exponent and abs(int(exponent)) > LARGEST_EXPONENT + most:
            raise beyond(value, place)
        return Fraction(Decimal(top)) / Fraction(Decimal(bottom)) if bottom else Fraction(Decimal(top))
    raise BadInput(f"got {shown(value)} of type {type(value).__name__}", place=place, remedy="Give a number")


def beyond(value: object, place: str) -> BadInput:
    """Return the refusal of a number that no cluster has, whatever its units."""
    remedy = "Choose units in which the numbers are of ordinary size"
    return BadInput(f"got {shown(value)}, which is beyond 1e±{LARGEST_EXPONENT}", place=place, remedy=remedy)


def _refuse_long(digits: int, place: str, most: int) -> None:
    if digits > most:
        raise BadInput(f"got a number of {digits} digits", place=place, remedy=f"Round it to {most} at most")


def written(value: object, place: str) -> int | float | str:
    """Return a number as a file holds it, such that `exact` reads the same number back; errors as `exact`.

    An int of at most 64 bits (as TOML has), else the float whose shortest form is the number, else a string "p/q".
    """
    number = exact(value, place)
    if number.denominator == 1:
        return int(number) if abs(number) < 2**63 else str(number)
    near = float(number)
    return near if Fraction(repr(near)) == number else str(number)


def told(value: Any) -> Any:
    """Return a value as JSON, as documents have it: exact numbers int or "p/q", infinity null, dataclasses objects."""
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return list(value) if {*map(type, value)} <= _KINDS else [told(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):  # the tests above are faster; to ask for a mapping takes longest
        return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    if isinstance(value, Mapping):
        return {name: told(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        there = value.tolist()
        return there if value.dtype.kind in "biuf" and np.isfinite(value).all() else told(there)
    return told_fields(value)


def told_fields(value: Any, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass as `told` has them, but for those ``without``."""
    return {name: told(getattr(value, name)) for name in value.__dataclass_fields__ if name not in without}


_AS_THEY_ARE = (str, int, type(None))
_KINDS = {*_AS_THEY_ARE, bool}


def shown(value: object) -> str:
    """Return ``value`` for a message: short, on one line, and safe for huge and deeply nested values."""
    if isinstance(value, str) and len(value) <= 60:  # most often: places are named before anything is wrong
        text = repr(value)
    elif isinstance(value, int | Fraction):  # printing a huge integer is itself refused by Python
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        return f"a number with {bits} bits" if bits > 400 else str(value)
    elif isinstance(value, Decimal):
        return f"{value:.9g}"
    else:
        text = _SHORT.repr(value)
    return text if len(text) <= 70 else text[:67] + "..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3

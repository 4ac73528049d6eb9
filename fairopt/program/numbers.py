"""Numbers and arrays of numbers, in floats or in Fractions, for all parts of fairopt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairopt.deadline import left
from fairopt.errors import BadInput

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = int | float | Fraction
#: Anything that NumPy turns into an array of numbers; an `Affine` combines with it.
ArrayLike: TypeAlias = Number | Array | Sequence[Any]

INFINITY = float("inf")
BOUNDLESS = (INFINITY, -INFINITY)
#: The largest relative error of one operation on floats (half a unit in the last place).
ROUNDING = float(np.finfo(float).eps) / 2
#: The most characters of a fraction in text; a longer one is shown as a decimal.
LONGEST_FRACTION = 9
LARGEST_WRITTEN_OUT = 10**12
#: So many numbers are changed at once: sums of fractions of hundreds of digits take a tenth of a second then.
PIECE = 5_000


def numbers(value: ArrayLike) -> Array:
    """Return ``value`` as an array of ints, floats or Fractions, never of anything else."""
    array = np.asarray(value)
    if array.dtype.kind not in "iufOb":
        raise TypeError(f"an affine expression combines with numbers, not with an array of {array.dtype}")
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def objects(values: Iterable[Any]) -> Array:
    """Return a flat array of the given objects themselves; NumPy does not look into them.

    Shapes: (m,) for m objects.

    >>> objects([(1, 2), "a"]).shape
    (2,)
    """
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


def fractions(values: Array | Iterable[Any]) -> Array:
    """Return an array of Fractions in the shape of ``values``; a float becomes its exact value.

    Shapes: any (...,), which is kept.

    >>> print(fractions([0.5, 2]))
    [Fraction(1, 2) Fraction(2, 1)]
    """
    return cast(values if isinstance(values, np.ndarray) else objects(values), Fraction)


def cast(array: Array, number: type) -> Array:
    """Return ``array`` in floats or Fractions; infinities stay float infinities.

    Shapes: any (...,), which is kept.

    >>> print(cast(np.array([0.5, 2]), Fraction))
    [Fraction(1, 2) Fraction(2, 1)]
    """
    if number is float:
        if array.dtype != object:
            return array.astype(float, copy=False)
        return in_pieces(_divided, array)
    if number is not Fraction:
        raise TypeError(f"programs and markets come in float and Fraction, not in {number.__name__}")
    if array.dtype == object and all(type(value) is Fraction or value in BOUNDLESS for value in array.ravel()):
        return array
    return in_pieces(_fractions, array)


def _divided(piece: Array) -> Array:
    # `float` asks a Fraction what it is, which takes longer than the division
    ratios = (value.numerator / value.denominator if type(value) is Fraction else value for value in piece.tolist())
    return np.array(list(ratios), dtype=float)


def _fractions(piece: Array) -> Array:
    # to compare a Fraction with infinity takes longer than all else
    return objects([value if type(value) is Fraction else _fraction(value) for value in piece.tolist()])


def _fraction(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if plain in BOUNDLESS else Fraction(plain)


def look(count: int) -> None:
    """Look at the time limit where the next step is on so many numbers that it may last."""
    if count > PIECE:
        left()


def in_pieces(change: Callable[..., Array], *arrays: Array) -> Array:
    """Return ``change(*arrays)``, entry by entry of arrays of one shape.

    Between the pieces of large ones, of which Fractions take seconds, the time limit is looked at.

    >>> in_pieces(np.add, np.arange(3), np.arange(3))
    array([0, 2, 4])
    """
    if arrays[0].size <= PIECE:
        return change(*(array.ravel() for array in arrays)).reshape(arrays[0].shape)
    pieces, flat = [], [array.ravel() for array in arrays]
    for first in range(0, arrays[0].size, PIECE):
        left()
        pieces.append(change(*(array[first : first + PIECE] for array in flat)))
    return np.concatenate(pieces).reshape(arrays[0].shape)


def at_in_pieces(change: np.ufunc, into: Array, where: Array, values: Array) -> None:
    """Do ``change.at(into, where, values)``; between the pieces of large arrays the time limit is looked at.

    >>> at_in_pieces(np.add, total := np.zeros(2), np.array([0, 1, 1]), np.ones(3))
    >>> total
    array([1., 2.])
    """
    if len(where) <= PIECE:
        change.at(into, where, values)
        return
    for first in range(0, len(where), PIECE):
        left()
        change.at(into, where[first : first + PIECE], values[first : first + PIECE])


@contextmanager
def in_range(program: str) -> Iterator[None]:
    """Refuse a sum, product or quotient of finite numbers that is infinite: as a bound it would look like none.

    >>> with in_range("a"):
    ...     1 / np.array([1e-310])
    Traceback (most recent call last):
        ...
    fairopt.errors.BadInput: program 'a': a number is beyond floats, overflow encountered in divide. Choose other units
    """
    try:
        with np.errstate(over="raise", divide="raise"):
            yield
    except FloatingPointError as error:
        remedy = "Choose other units"
        raise BadInput(f"a number is beyond floats, {error}", place=f"program {program!r}", remedy=remedy) from error


def is_exact(array: Array) -> bool:
    """Whether no number in ``array`` is a float."""
    if array.dtype != object:
        return array.dtype.kind in "iu"
    return all(isinstance(value, int | Fraction) for value in array.ravel())


def number_text(value: Number) -> str:
    """Return a number as a person would write it: ``5/3``, ``4.993``, and six digits of longer numbers.

    >>> [number_text(value) for value in (Fraction(5, 3), Fraction(4993, 1000), Fraction(10**9 + 7, 10**9), 1 / 3)]
    ['5/3', '4.993', '1', '0.333333']
    >>> number_text(Fraction(1, 10**400))
    '1e-400'
    """
    if isinstance(value, float) and not isfinite(value):
        return f"{value:g}"
    if -LARGEST_WRITTEN_OUT < value < LARGEST_WRITTEN_OUT and value == int(value):
        return str(int(value))
    short = _six_digits(value)
    if not isinstance(value, Fraction) or Fraction(short) == value:
        return short
    # Python refuses to write out a number of thousands of digits, as exact runs have
    brief = max(value.numerator.bit_length(), value.denominator.bit_length()) < 4 * LONGEST_FRACTION
    return str(value) if brief and len(str(value)) <= LONGEST_FRACTION else short


def _six_digits(value: Number) -> str:
    """Return six digits of a number, however large or small it is."""
    try:
        near = float(value)
    except OverflowError:
        near = 0.0
    if near or not value:
        return f"{near:.6g}"
    top, bottom = Fraction(value).as_integer_ratio()
    return f"{Decimal(int(top)) / Decimal(int(bottom)):.6g}"


def more_text(value: Number, least: Number) -> str:
    """Return a number that is larger than ``least`` as text; where both read the same, by how much it is larger.

    >>> more_text(2, 1), more_text(Fraction(10**9 + 7, 10**9), 1)
    ('2', '7e-09 more')
    """
    text = number_text(value)
    return f"{number_text(value - least)} more" if text == number_text(least) else text


def short_text(value: Number) -> str:
    """Return a number as `number_text` does, with a mark where digits of a fraction were left out.

    >>> [short_text(value) for value in (Fraction(5, 3), Fraction(10**9 + 7, 10**9), 1 / 3)]
    ['5/3', '≈1', '0.333333']
    """
    text = number_text(value)
    return f"≈{text}" if isinstance(value, Fraction) and Fraction(text) != value else text

"""Numbers and arrays of numbers, in floats or in Fractions: the one place that asks which they are.

There are two kinds of arithmetic, `FLOATS` and `RATIONALS`. A market, a program, a queue carries its own
(``market.arithmetic``); `arithmetic` finds that of an array, a number or a number type. Integers are of neither kind,
and are computed with as floats.

>>> arithmetic(Fraction(1, 3)).tolerance(1e-9), arithmetic(1 / 3).tolerance(1e-9)
(0, 1e-09)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from fairopt.deadline import left
from fairopt.errors import BadInput

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = int | float | Fraction
#: What a number is an instance of; truth values are, too, as everywhere in Python.
NUMBERS = (int, float, Fraction)
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
    return RATIONALS.cast(values if isinstance(values, np.ndarray) else objects(values))


@dataclass(frozen=True, eq=False, repr=False)
class Arithmetic:
    """A kind of arithmetic: ``number`` makes a number of it, ``dtype`` is that of its arrays, ``name`` says which.

    There are two, `FLOATS` and `RATIONALS`.

    >>> RATIONALS, RATIONALS.exact, RATIONALS(0), FLOATS.cast(np.array([Fraction(1, 2)]))
    (exact rationals, True, Fraction(0, 1), array([0.5]))
    """

    name: str
    number: type
    dtype: np.dtype[Any]
    exact: bool

    def __call__(self, value: Any) -> Any:
        """Return a number in this arithmetic; a float becomes its exact value."""
        return self.number(value)

    def tolerance(self, in_floats: float) -> float:
        """Return what two numbers may differ by and count as one: nothing in rationals, in floats as given."""
        return 0 if self.exact else in_floats

    def cast(self, array: Array) -> Array:
        """Return an array in this arithmetic, a float as its exact value; infinities stay float infinities.

        Shapes: any (...,), which is kept.
        """
        if not self.exact:
            return in_pieces(_divided, array) if array.dtype == object else array.astype(float, copy=False)
        if array.dtype == object and all(type(value) is Fraction or value in BOUNDLESS for value in array.ravel()):
            return array
        return in_pieces(_fractions, array)

    def array(self, values: Any) -> Array:
        """Return an array of numbers as they are, of this arithmetic's kind of array; shapes: that of ``values``."""
        return np.array(values, dtype=self.dtype)

    def full(self, shape: int | tuple[int, ...], value: Number) -> Array:
        """Return an array of a shape in which each number is ``value``."""
        return np.full(shape, value if value in BOUNDLESS else self.number(value), dtype=self.dtype)

    def zeros(self, shape: int | tuple[int, ...]) -> Array:
        """Return an array of a shape in which each number is 0."""
        return self.full(shape, 0)

    def __repr__(self) -> str:
        return self.name


FLOATS = Arithmetic("floats", float, np.dtype(float), exact=False)
RATIONALS = Arithmetic("exact rationals", Fraction, np.dtype(object), exact=True)


def arithmetic(of: Any) -> Arithmetic:
    """Return the arithmetic of a number type, an array, a number, or anything that carries one.

    >>> arithmetic(float), arithmetic(np.array([Fraction(1)])), arithmetic(2)
    (floats, exact rationals, floats)
    """
    if isinstance(of, np.ndarray):
        return RATIONALS if of.dtype == object else FLOATS
    if of is float:
        return FLOATS
    if of is Fraction:
        return RATIONALS
    if isinstance(of, Arithmetic):
        return of
    if isinstance(of, (*NUMBERS, np.number)):
        return RATIONALS if isinstance(of, Fraction) else FLOATS
    found = getattr(of, "arithmetic", None)
    if not isinstance(found, Arithmetic):
        raise TypeError(f"programs and markets come in float and Fraction, not in {getattr(of, '__name__', of)}")
    return found


def arithmetic_of_all(values: Iterable[ArrayLike]) -> Arithmetic:
    """Return `RATIONALS` where no number in arrays is a float, integers included; else `FLOATS`.

    >>> arithmetic_of_all([np.array([1, 2]), Fraction(1, 2)]), arithmetic_of_all([1, 0.5])
    (exact rationals, floats)
    """
    return RATIONALS if all(map(_has_no_float, map(np.asarray, values))) else FLOATS


def _has_no_float(array: Array) -> bool:
    if array.dtype != object:
        return array.dtype.kind in "iu"
    return all(isinstance(value, int | Fraction) for value in array.ravel())


def kind_of_numbers(array: Array) -> Arithmetic | None:
    """Return the arithmetic of numbers that somebody gives; None where they are no numbers, or integers alone.

    Integers among Fractions are rationals; what holds a float is in floats, though its entries be objects.

    >>> kind_of_numbers(objects([1, Fraction(1, 2)])), kind_of_numbers(objects([0.5, Fraction(1, 2)]))
    (exact rationals, floats)
    """
    if array.dtype != object:
        return FLOATS if array.dtype.kind == "f" else None
    kinds = set(map(type, array.flat))
    if kinds and kinds <= {int, Fraction}:
        return RATIONALS
    return FLOATS if any(issubclass(each, float | np.floating) for each in kinds) else None


def holds_objects(array: Array) -> bool:
    """Whether the entries of an array are objects: Fractions, or symbols that stand for numbers."""
    return array.dtype == object


def one_over(divisor: Array) -> Array:
    """Return ``1 / divisor``: of integers a Fraction, so that 1/3 stays 1/3; floats stay floats."""
    return 1 / (divisor.astype(object) * Fraction(1) if divisor.dtype.kind in "iu" else divisor)


def has_infinity(array: Array) -> bool:
    """Whether an array of floats has an infinite entry."""
    return array.dtype.kind == "f" and bool(np.isinf(array).any())


def integers_or_floats(array: Array) -> bool:
    """Whether an array holds numbers as NumPy does, not truth values or objects."""
    return array.dtype.kind in "iuf"


def whole_numbers(array: Array) -> bool:
    """Whether an array holds whole numbers, as integers or as floats."""
    return array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))


def is_finite(value: Number) -> bool:
    """Whether a bound of a program in rationals is a number: infinite ones are float infinities."""
    return type(value) is Fraction or value not in BOUNDLESS  # to compare a Fraction with infinity takes longer


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a number of either kind."""
    return isinstance(value, NUMBERS)


def is_rational(value: object) -> TypeGuard[Fraction]:
    """Whether a value is a Fraction; who writes values of all kinds asks it, since a Fraction is written otherwise."""
    return isinstance(value, Fraction)


def whole_as_int(value: Number) -> Number:
    """Return an int where a rational is whole, else the number itself.

    >>> whole_as_int(Fraction(2)), whole_as_int(Fraction(1, 2)), whole_as_int(2.0)
    (2, Fraction(1, 2), 2.0)
    """
    # asking whether an int is a Fraction takes four times as long, since its class is an abstract one's
    return value.numerator if type(value) is Fraction and value.denominator == 1 else value


def cast(array: Array, number: type | Arithmetic) -> Array:
    """Return ``array`` in floats or Fractions, as `Arithmetic.cast` does.

    Shapes: any (...,), which is kept.

    >>> print(cast(np.array([0.5, 2]), Fraction))
    [Fraction(1, 2) Fraction(2, 1)]
    """
    return arithmetic(number).cast(array)


def _divided(piece: Array) -> Array:
    listed = piece.tolist()
    if Fraction in {*map(type, listed)}:  # `float` asks a Fraction what it is, which takes longer than the division
        listed = [value.numerator / value.denominator if type(value) is Fraction else value for value in listed]
    return np.array(listed, dtype=float)


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


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural.

    >>> [counted(1, "type"), counted(2, "type"), counted(0, "policy")]
    ['1 type', '2 types', '0 policies']
    """
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


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


def in_full(number: Fraction | int) -> str:
    """Return an exact number as "p" or "p/q", however many digits; limits are for what comes from outside."""
    top, bottom = Decimal(number.numerator), Decimal(number.denominator)
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def short_text(value: Number) -> str:
    """Return a number as `number_text` does, with a mark where digits of a fraction were left out.

    >>> [short_text(value) for value in (Fraction(5, 3), Fraction(10**9 + 7, 10**9), 1 / 3)]
    ['5/3', '≈1', '0.333333']
    """
    text = number_text(value)
    return f"≈{text}" if isinstance(value, Fraction) and Fraction(text) != value else text


def four_digits(value: Number | None) -> str:
    """Return a number in four digits, an integer whole, "-" for none.

    >>> four_digits(Fraction(2, 3)), four_digits(12345), four_digits(None)
    ('0.6667', '12345', '-')
    """
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{float(value):.4g}"

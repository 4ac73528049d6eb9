"""A program whose numbers are multiples of single entries of an array: written once, it is known for every array.

Most programs of sharing are such: a coefficient is a user's speedup on a type, times a number that no speedup enters.
`Multiple` is such a number. A formulation takes a market with these like any other; where it adds two of them, or
compares them with anything but zero, the program is no such one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.numbers import Array, holds_objects, objects
from fairopt.program.batched import Programs, numbers_of
from fairopt.program.program import Program


class Multiple:
    """``factor``, not zero, times the entry at ``place`` of an array, of which is known only that it is positive."""

    __slots__ = ("factor", "place")
    __array_ufunc__ = None  # so that NumPy's own scalars leave the arithmetic to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, place: int, factor: float) -> None:
        self.place, self.factor = place, factor

    def __add__(self, other: Any) -> Multiple | float:
        if isinstance(other, Multiple):
            if other.place != self.place:
                raise TypeError("two entries in one number")
            return _times(self.place, self.factor + other.factor)
        return self if other == 0 else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Multiple:
        return Multiple(self.place, -self.factor)

    def __sub__(self, other: Any) -> Multiple | float:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Multiple | float:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Multiple | float:
        return NotImplemented if isinstance(other, Multiple) else _times(self.place, self.factor * float(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Multiple | float:
        return NotImplemented if isinstance(other, Multiple) else _times(self.place, self.factor / float(other))

    def _over(self, other: Any) -> float:
        """Return what has the sign of the difference from the other number, which is zero or of the same entry."""
        if isinstance(other, Multiple) and other.place == self.place:
            return self.factor - other.factor
        if isinstance(other, Multiple) or other != 0:
            raise TypeError("which number is larger depends on the entries")
        return self.factor

    def __eq__(self, other: object) -> bool:
        return self._over(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._over(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._over(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._over(other) > 0

    def __ge__(self, other: Any) -> bool:
        return self._over(other) >= 0

    def __repr__(self) -> str:
        return f"{self.factor:g} of entry {self.place}"


def _times(place: int, factor: float) -> Multiple | float:
    return Multiple(place, factor) if factor else 0.0


@dataclass(frozen=True, eq=False)
class Multiples:
    """The program that ``write`` makes of every array with the same zeros as ``of``: ``template`` with other numbers.

    The numbers of arrays (cases, ...) are ``factor`` times the entry at ``place``, of which the last is one; both in
    the order of the fields of `Programs`.
    """

    template: Program
    empty: Array = field(repr=False)
    place: tuple[Array, ...]
    factor: tuple[Array, ...]

    @classmethod
    def written(cls, write: Callable[[Array], Program], of: Array) -> Multiples:
        """Return it. Errors: `TypeError` where the program's numbers are no such multiples."""
        entries = [Multiple(place, 1.0) if number else 0.0 for place, number in enumerate(of.ravel().tolist())]
        program = write(objects(entries).reshape(of.shape))
        split = [_split(part, of.size) for part in numbers_of(program)]
        return cls(program, of == 0, tuple(each[0] for each in split), tuple(each[1] for each in split))

    def fits(self, numbers: Array) -> Array:
        """Return of which arrays (cases, ...) it is the program: (cases,)."""
        same = (numbers == 0) == self.empty
        return np.asarray(same.reshape(len(numbers), -1).all(axis=1))

    def programs(self, numbers: Array, cases: Array) -> Programs:
        """Return the programs of the arrays (cases, ...) at the positions ``cases``."""
        flat = np.hstack([numbers[cases].reshape(len(cases), -1), np.ones((len(cases), 1))])
        parts = (factor * flat[:, place] for place, factor in zip(self.place, self.factor, strict=True))
        return Programs(self.template, cases, *parts)


def _split(array: Array, one: int) -> tuple[Array, Array]:
    """Return the places and factors of numbers; an ordinary number is itself times the entry ``one``."""
    if not holds_objects(array):
        return np.full(len(array), one), array.astype(float)
    pairs = [(each.place, each.factor) if isinstance(each, Multiple) else (one, float(each)) for each in array]
    place, factor = np.array(pairs, dtype=float).reshape(-1, 2).T
    return place.astype(np.int64), factor

"""Fast sums of many fractions: common denominators and whole numbers; no fraction is reduced before it is needed.

Adding fractions one by one takes a greatest common divisor each; the numbers of an exact vertex have hundreds of
digits and one denominator in common, so that a sum of whole numbers does. Terms that are zero are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np

from fairopt.numbers import is_finite
from fairopt.program import Array, Program, objects

ZERO = Fraction(0)


def zeros(count: int) -> Array:
    """Return ``count`` Fractions that are 0."""
    return objects([ZERO] * count)


def as_fractions(values: Iterable[Any]) -> Array:
    """Return flint's rationals as Fractions."""
    return objects(Fraction(int(value.p), int(value.q)) for value in values)


def finite(ends: Array) -> Array:
    """Return which bounds are numbers; the others are float infinities."""
    return np.fromiter((is_finite(end) for end in ends), dtype=bool, count=len(ends))


def signs(values: Array) -> Array:
    """Return the signs of fractions: -1, 0 and 1 (without a comparison of fractions, which is slow)."""
    return signs_of([value.numerator for value in values])


def signs_of(whole_numbers: list[int]) -> Array:
    """Return the signs of whole numbers of any size: -1, 0 and 1."""
    return np.fromiter(((top > 0) - (top < 0) for top in whole_numbers), dtype=np.int8, count=len(whole_numbers))


def nonzero(values: Array) -> Array:
    """Return the positions of the fractions that are not 0."""
    return np.flatnonzero(signs(values))


@dataclass(frozen=True, eq=False)
class UnreducedRatios:
    """Numbers ``top / bottom``, not reduced; each ``bottom`` is positive."""

    top: list[int]
    bottom: list[int]

    @classmethod
    def of(cls, values: Array) -> UnreducedRatios:
        """Return the fractions in this form."""
        return cls([value.numerator for value in values], [value.denominator for value in values])

    def at(self, places: Array) -> UnreducedRatios:
        """Return the numbers at some places."""
        return UnreducedRatios([self.top[place] for place in places], [self.bottom[place] for place in places])

    def dot(self, values: Array) -> Fraction:
        """Return the sum of the products with fractions."""
        common, (tops, bottom) = lcm(*set(self.bottom)), whole(values)
        terms = (top * (common // own) * value for top, own, value in zip(self.top, self.bottom, tops, strict=True))
        return Fraction(sum(terms), common * bottom)

    def excess(self, lower: Array, upper: Array) -> dict[int, Fraction]:
        """Return by how much numbers leave their bounds (Fractions or float infinities), for those that do."""
        found: dict[int, Fraction] = {}
        for place, (top, bottom, low, high) in enumerate(zip(self.top, self.bottom, lower, upper, strict=True)):
            if is_finite(low) and low.numerator * bottom > top * low.denominator:
                found[place] = low - Fraction(top, bottom)
            elif is_finite(high) and high.numerator * bottom < top * high.denominator:
                found[place] = Fraction(top, bottom) - high
        return found

    def distance(self, bound: Array) -> Array:
        """Return ``bound - number`` in floats, each rounded once; infinite bounds stay so."""
        return np.array(
            [
                float_ratio(end.numerator * bottom - top * end.denominator, bottom * end.denominator)
                if is_finite(end)
                else end
                for top, bottom, end in zip(self.top, self.bottom, bound, strict=True)
            ],
            dtype=float,
        )

    def blown(self, power: int) -> Array:
        """Return the numbers times 2 ** power in floats, infinite where they are too large for one."""
        return np.array([float_ratio(top << power, bottom) for top, bottom in zip(self.top, self.bottom, strict=True)])

    def reduced(self) -> Array:
        """Return the numbers as Fractions."""
        return objects([Fraction(*pair) if pair[0] else ZERO for pair in zip(self.top, self.bottom, strict=True)])


def totals(size: int, target: Array, source: Array, value: Array, x: Array) -> UnreducedRatios:
    """Return for each target the sum of ``value[t] * x[source[t]]`` over the triplets t with that target."""
    used = np.zeros(len(x), dtype=bool)
    used[nonzero(x)] = True
    kept = np.flatnonzero(used[source])
    kept = kept[np.argsort(target[kept], kind="stable")]
    weight, common = whole(x)
    top, bottom = [0] * size, [1] * size
    places, columns, factors = target[kept], source[kept].tolist(), value[kept].tolist()
    starts = [*np.flatnonzero(np.diff(places, prepend=-1)).tolist(), len(kept)]
    for first, last in pairwise(starts):
        inside = factors[first:last]
        shared = lcm(*[factor.denominator for factor in inside])
        place = int(places[first])
        bottom[place] = shared * common
        top[place] = sum(
            factor.numerator * (shared // factor.denominator) * weight[column]
            for factor, column in zip(inside, columns[first:last], strict=True)
        )
    return UnreducedRatios(top, bottom)


def whole(values: Array) -> tuple[list[int], int]:
    """Return whole numbers and the denominator that they have in common."""
    common = lcm(*{value.denominator for value in values})
    return [value.numerator * (common // value.denominator) for value in values], common


def dot(left: Array, right: Array) -> Fraction:
    """Return the sum of the products of two arrays of fractions; where the left one is 0 the right one is not read."""
    used = nonzero(left)
    return UnreducedRatios.of(left[used]).dot(right[used])


def activity(program: Program, x: Array) -> UnreducedRatios:
    """Return the value of each row at ``x``."""
    rows = program.rows
    return totals(len(rows), rows.row, rows.column, rows.value, x)


def combined(program: Program, dual: Array) -> UnreducedRatios:
    """Return ``A.T @ dual``."""
    rows = program.rows
    return totals(len(program.cost), rows.column, rows.row, rows.value, dual)


def reduced_cost(program: Program, dual: Array) -> UnreducedRatios:
    """Return ``cost - A.T @ dual``."""
    product, own = combined(program, dual), [(value.numerator, value.denominator) for value in program.cost]
    tops = [top * of - part * under for (top, under), part, of in zip(own, product.top, product.bottom, strict=True)]
    return UnreducedRatios(tops, [under * of for (_, under), of in zip(own, product.bottom, strict=True)])


def excesses(program: Program, x: Array, rows_at_x: UnreducedRatios | None = None) -> dict[int, Fraction]:
    """Return by how much ``x`` breaks bounds (a variable by its number) and rows (row r by variables + r)."""
    found = UnreducedRatios.of(x).excess(program.lower, program.upper)
    rows = (rows_at_x or activity(program, x)).excess(program.rows.lower, program.rows.upper)
    return found | {len(program.cost) + row: amount for row, amount in rows.items()}


def objective(program: Program, x: Array) -> Fraction:
    """Return the objective at ``x``."""
    return dot(x, program.cost) + Fraction(program.offset)


def float_ratio(top: int, bottom: int) -> float:
    """Return ``top / bottom``, rounded once."""
    try:
        return top / bottom
    except OverflowError:  # beyond the largest float
        return float("inf") if top > 0 else -float("inf")

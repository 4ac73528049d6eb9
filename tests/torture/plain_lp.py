"""A linear program decided in whole numbers, by the simplex method of textbooks: it shares nothing with fairopt.

A dictionary of whole numbers over one common divisor (Edmonds; Bareiss), pivots by Bland's rule, so that it ends. An
auxiliary variable finds a first point where 0 is none. What comes out is shown to be right by its own multipliers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

Terms = Mapping[Hashable, Fraction]


class Row(NamedTuple):
    """The sum of ``terms`` is at most ``most``."""

    terms: Terms
    most: Fraction


class Optimum(NamedTuple):
    """The largest value, and a point that has it: of each variable, 0 where it is not named."""

    value: Fraction
    point: dict[Hashable, Fraction]


class NoPoint(Exception):
    """No point keeps all rows."""


class NoEnd(Exception):
    """The value has no largest."""


def exactly(terms: Terms, value: Fraction) -> list[Row]:
    """Return the rows by which the sum of ``terms`` is ``value``."""
    return [Row(terms, value), at_least(terms, value)]


def at_least(terms: Terms, value: Fraction) -> Row:
    """Return the row by which the sum of ``terms`` is at least ``value``."""
    return Row({key: -rate for key, rate in terms.items()}, -value)


def largest(gain: Terms, rows: Sequence[Row]) -> Optimum:
    """Return the largest sum of ``gain`` with all variables at least 0. Errors: `NoPoint`, `NoEnd`."""
    names = sorted({key for terms in (gain, *(row.terms for row in rows)) for key in terms}, key=repr)
    table = _Dictionary(names, rows)
    if min(table.right, default=0) < 0:
        table.find_point()
    scale = table.maximise(gain)
    point = {name: table.value(place) for place, name in enumerate(names)}
    value = sum((rate * point[key] for key, rate in gain.items()), Fraction(0))
    _require_shown(gain, rows, names, point, value, table.multipliers(scale))
    return Optimum(value, point)


def _require_shown(
    gain: Terms,
    rows: Sequence[Row],
    names: list[Hashable],
    point: dict[Hashable, Fraction],
    value: Fraction,
    multiplier: list[Fraction],
) -> None:
    """Require that the point keeps the rows, and that the multipliers prove that no point has more."""
    assert min([*point.values(), *multiplier], default=0) >= 0
    for row in rows:
        assert sum(rate * point[key] for key, rate in row.terms.items()) <= row.most
    for name in names:
        paid = sum(y * row.terms.get(name, 0) for y, row in zip(multiplier, rows, strict=True))
        assert paid >= gain.get(name, 0)
    assert sum(y * row.most for y, row in zip(multiplier, rows, strict=True)) == value


class _Dictionary:
    """Basic variables by others, ``body`` and ``right`` over ``over``; variables first, then the slack of each row."""

    def __init__(self, names: list[Hashable], rows: Sequence[Row]) -> None:
        self.names, self.count = names, len(names)
        self.scale = [
            Fraction(lcm(row.most.denominator, *(rate.denominator for rate in row.terms.values()))) for row in rows
        ]
        self.body = [
            [int(row.terms.get(name, 0) * by) for name in names] for row, by in zip(rows, self.scale, strict=True)
        ]
        self.right = [int(row.most * by) for row, by in zip(rows, self.scale, strict=True)]
        for at, row in enumerate(self.body):
            common = gcd(self.right[at], *row) or 1
            self.body[at], self.right[at] = [entry // common for entry in row], self.right[at] // common
            self.scale[at] /= common
        self.cost, self.over = [0] * len(names), 1
        self.outside = list(range(len(names)))
        self.basic = [len(names) + at for at in range(len(rows))]

    def find_point(self) -> None:
        """Bring an auxiliary variable in that makes room everywhere, and drive it out again."""
        helper = -1  # before all others, so that Bland's rule takes it out as soon as it may go
        for row in self.body:
            row.append(-1)
        self.outside.append(helper)
        self.cost = [0] * (len(self.outside) - 1) + [-1]
        self._pivot(min(range(len(self.right)), key=self.right.__getitem__), len(self.outside) - 1)
        self._climb()
        if helper in self.basic:
            at = self.basic.index(helper)
            if self.right[at] != 0:
                raise NoPoint
            self._pivot(at, next(column for column, entry in enumerate(self.body[at]) if entry != 0))
        column = self.outside.index(helper)
        for row in self.body:
            del row[column]
        del self.outside[column]

    def maximise(self, gain: Terms) -> int:
        """Climb to the largest sum; return by how much gains were scaled to be whole."""
        by = lcm(*(rate.denominator for rate in gain.values()))
        whole = [int(gain.get(name, 0) * by) for name in self.names]
        self.cost = [self.over * whole[key] if key < self.count else 0 for key in self.outside]
        for at, key in enumerate(self.basic):
            if key < self.count and whole[key]:
                self.cost = [c - whole[key] * entry for c, entry in zip(self.cost, self.body[at], strict=True)]
        self._climb()
        return by

    def value(self, variable: int) -> Fraction:
        """Return the value of a variable."""
        return Fraction(self.right[self.basic.index(variable)], self.over) if variable in self.basic else Fraction(0)

    def multipliers(self, by: int) -> list[Fraction]:
        """Return what each row is worth."""
        worth = {key: Fraction(-cost, self.over) for key, cost in zip(self.outside, self.cost, strict=True)}
        return [worth.get(self.count + at, Fraction(0)) * scale / by for at, scale in enumerate(self.scale)]

    def _climb(self) -> None:
        while (entering := self._entering()) is not None:
            rows = [at for at, row in enumerate(self.body) if row[entering] > 0]
            if not rows:
                raise NoEnd
            ratio = {at: Fraction(self.right[at], self.body[at][entering]) for at in rows}
            self._pivot(min(rows, key=lambda at: (ratio[at], self.basic[at])), entering)

    def _entering(self) -> int | None:
        better = [column for column, cost in enumerate(self.cost) if cost > 0]
        return min(better, key=self.outside.__getitem__, default=None)

    def _pivot(self, at: int, column: int) -> None:
        """Exchange a basic variable and another; what is divided has no rest."""
        self.basic[at], self.outside[column] = self.outside[column], self.basic[at]
        pivot, row, right = self.body[at][column], self.body[at], self.right[at]
        for other, entries in enumerate(self.body):
            if other != at:
                rate = entries[column]
                self.right[other] = (self.right[other] * pivot - rate * right) // self.over
                self.body[other] = [(e * pivot - rate * r) // self.over for e, r in zip(entries, row, strict=True)]
                self.body[other][column] = -rate
        rate = self.cost[column]
        self.cost = [(e * pivot - rate * r) // self.over for e, r in zip(self.cost, row, strict=True)]
        self.cost[column] = -rate
        row[column] = self.over
        self.over = pivot
        if pivot < 0:
            self._turn()

    def _turn(self) -> None:
        """Change all signs, so that the divisor is positive."""
        self.over, self.right = -self.over, [-entry for entry in self.right]
        self.body, self.cost = [[-e for e in row] for row in self.body], [-e for e in self.cost]

"""A program in the one-sided form that exact pivots work on, and the way back."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.backends.exact.vertex import settled
from fairopt.backends.solution import Basis, Position
from fairopt.program import INFINITY, Array, Program, Sense, objects

if TYPE_CHECKING:
    from fairopt.backends.exact.pivots import OneSided, PivotResult


class Standard:
    """A program in the one-sided form of `fairopt.backends.exact.pivots`, and the way back.

    Rows of the form: one a row of the program, one more for each row with two different finite sides, and one for each
    variable with two different finite bounds; the added ones hold the upper side. ``above`` maps an entry of the
    program (a variable, or variables + row) to its added slack.
    """

    def __init__(self, program: Program) -> None:
        from flint import fmpq

        from fairopt.backends.exact.pivots import BoundKind, OneSided

        def rational(value: Fraction) -> Any:
            return fmpq(value.numerator, value.denominator)

        self.program = program
        rows = program.rows
        self.variables, self.rows = len(program.cost), len(rows)
        matrix: list[dict[int, Any]] = [{} for _ in range(self.rows)]
        for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value.tolist(), strict=True):
            matrix[r][j] = rational(value)
        kind: list[BoundKind] = []
        bound: list[Any] = []
        tops: list[tuple[int, Any]] = []
        sides = zip([*program.lower, *rows.lower], [*program.upper, *rows.upper], strict=True)
        for entry, (low, high) in enumerate(sides):
            if low == high:
                kind.append(BoundKind.FIXED)
            elif low != -INFINITY:
                kind.append(BoundKind.FROM_BELOW)
                tops += [(entry, rational(high))] if high != INFINITY else []
            else:
                kind.append(BoundKind.FROM_ABOVE if high != INFINITY else BoundKind.FREE)
            held = low if low != -INFINITY else high
            bound.append(fmpq(0) if held == INFINITY else rational(held))
        self.above = {entry: self.variables + self.rows + place for place, (entry, _) in enumerate(tops)}
        for entry, top in tops:
            matrix.append({entry: fmpq(1)} if entry < self.variables else matrix[entry - self.variables])
            kind.append(BoundKind.FROM_ABOVE)
            bound.append(top)
        sign = -1 if program.sense is Sense.MAXIMIZE else 1
        self.form: OneSided = OneSided([sign * rational(value) for value in program.cost], matrix, kind, bound)

    def basic(self, basis: Basis | None) -> set[int]:
        """Return the basic entries of the form that ``basis`` means; of None, the slacks."""
        slacks = set(range(self.variables, self.variables + len(self.form.matrix)))
        if basis is None:
            return slacks
        position = [*basis.columns.tolist(), *basis.rows.tolist()]
        out = {entry for entry, place in enumerate(position) if place == Position.BASIC} | set(self.above.values())
        for entry, top in self.above.items():
            if position[entry] == Position.UPPER:  # held by the added slack; the entry itself is free to be solved for
                out = (out - {top}) | {entry}
        return out

    def basis(self, found: PivotResult) -> Basis:
        """Return the program's basis of where pivoting ended."""
        place = np.full(self.variables + self.rows, Position.LOWER)
        place[[entry for entry in found.basic if entry < len(place)]] = Position.BASIC
        place[[entry for entry, top in self.above.items() if top not in found.basic]] = Position.UPPER
        return settled(self.program, Basis(place[: self.variables], place[self.variables :]))

    def back(self, found: PivotResult) -> tuple[Array, Array]:
        """Return x and the rows' multipliers in Fractions; those of added rows join the row that they came from."""
        x, given = as_fractions(found.x), as_fractions(found.dual)
        multipliers = given[: self.rows].copy()
        for entry, top in self.above.items():
            if entry >= self.variables:
                multipliers[entry - self.variables] += given[top - self.variables]
        return x, multipliers


def as_fractions(values: list[Any]) -> Array:
    """Return flint's rationals as Fractions."""
    return objects([Fraction(int(value.p), int(value.q)) for value in values])

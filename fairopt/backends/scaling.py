"""Scaling: a program is brought to ordinary size before a float solver sees it, and its answer is scaled back.

A float solver's tolerances are absolute: to HiGHS, speedups of 1e-7 are zero. So rows, objective and variables are
divided by powers of two, which is exact. Numbers of ordinary size are left alone, and the tolerance keeps its meaning.
A variable that a row holds at 0, such as a share of a type of which there is none, is in no other row: its coefficients
there would be the measure of all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.backends.solution import Position, Solution
from fairopt.program import Array, Program, Rows, Sense

#: What counts as ordinary size. Rows are left alone if their largest coefficient lies between SMALL and LARGE, the
#: objective if a typical coefficient does, and bounds up to LARGE_BOUND.
SMALL, LARGE, LARGE_BOUND = 2.0**-4, 2.0**10, 2.0**14


@dataclass(frozen=True, eq=False)
class Scaled:
    """A scaled program, and how to scale back: x = ``column`` x', and row r was divided by ``row[r]``.

    ``held`` is the row that holds each variable at 0, -1 for others; None where there is no such variable.
    """

    program: Program
    original: Program
    objective: float
    row: Array
    column: float
    held: Array | None = None

    def back(self, solution: Solution) -> Solution:
        """Return the solution of the original program that corresponds to one of the scaled program."""
        if self.program is self.original:
            return solution
        x = None if solution.x is None else solution.x * self.column
        reduced = solution.reduced_cost
        found = replace(
            solution,
            x=x,
            objective=solution.objective if x is None else self.original.value(x),
            bound=None if solution.bound is None else float(solution.bound) * self.objective,
            dual=None if solution.dual is None else solution.dual * self.objective / self.row,
            reduced_cost=None if reduced is None else reduced * (self.objective / self.column),
        )
        return found if self.held is None else self._held_back(found, self.held)

    def _held_back(self, solution: Solution, held: Array) -> Solution:
        """Return the solution with duals of the rows that hold variables at 0, so high that none of these pays."""
        x, dual, basis, rows = solution.x, solution.dual, solution.basis, self.original.rows
        if x is None or dual is None:
            return solution
        sign = 1 if self.original.sense is Sense.MAXIMIZE else -1
        dual, reduced = dual.copy(), self.original.reduced_cost(x, dual)
        for row in np.unique(held[held >= 0]):
            entries = np.flatnonzero(rows.row == row)
            gain = sign * reduced[rows.column[entries]] / rows.value[entries]
            if gain.max() > 0:
                dual[row] += sign * gain.max()
                if basis is not None and basis.rows[row] == Position.BASIC:
                    basis.rows[row] = Position.UPPER
                    basis.columns[rows.column[entries[gain.argmax()]]] = Position.BASIC
        return replace(solution, dual=dual, reduced_cost=self.original.reduced_cost(x, dual))


def scaled(program: Program) -> Scaled:
    """Return ``program`` (floats) in ordinary size; one with logarithms, or of ordinary size, is not changed."""
    held = None if program.logarithms is not None or program.integer.any() else held_at_zero(program)
    if held is not None:
        rows, away = program.rows, held >= 0
        kept = ~away[rows.column] | (held[rows.column] == rows.row)
        rows = replace(rows, **{name: getattr(rows, name)[kept] for name in ("row", "column", "value")})
        there = replace(program, cost=np.where(away, 0.0, program.cost), rows=rows)
        return replace(in_units(there), original=program, held=held)
    return in_units(program)


def held_at_zero(program: Program) -> Array | None:
    """Return the row that holds each variable at 0, -1 for others; None where no variable is held.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("none there")
    >>> p.constrain("room", p.variable("x", (2,), lower=0).sum() <= 0)
    >>> held_at_zero(p.program().as_(float)).tolist()
    [0, 0]
    """
    rows = program.rows
    holds = rows.upper == 0
    if not holds.any():
        return None
    holds[rows.row[(rows.value < 0) | (program.lower[rows.column] != 0)]] = False
    inside = holds[rows.row]
    if not inside.any():
        return None
    held = np.full(len(program.cost), -1)
    held[rows.column[inside]] = rows.row[inside]
    return held


def in_units(program: Program) -> Scaled:
    """Return ``program`` in ordinary size, with all its coefficients."""
    rows = program.rows
    largest = largest_of(rows)
    column = 1.0 if program.integer.any() else _column(program, largest)
    row = unit_of(largest * column)
    # the mean, not the largest: where users' units differ, the smallest cost must not fall below the tolerance
    objective = float(unit_of(np.array([_typical(program.cost * column)]))[0])
    if program.logarithms is not None or (column == 1 and objective == 1 and (row == 1).all()):
        return Scaled(program, program, 1.0, np.ones(len(rows)), 1.0)
    value = rows.value / row[rows.row] * column
    ordinary = replace(
        program,
        cost=program.cost * (column / objective),
        offset=float(program.offset) / objective,
        lower=program.lower / column,
        upper=program.upper / column,
        rows=replace(rows, value=value, lower=rows.lower / row, upper=rows.upper / row),
    )
    return Scaled(ordinary, program, objective, row, column)


def _column(program: Program, largest: Array) -> float:
    """Return the unit of the variables: the geometric mean of the sizes of their bounds, 1 if that is ordinary."""
    given = [program.rows.lower / largest, program.rows.upper / largest, program.lower, program.upper]
    typical = _typical(np.concatenate(given))
    if SMALL <= typical <= LARGE_BOUND:
        return 1.0
    return float(power_of_two(typical / LARGE if typical > LARGE_BOUND else typical))


def _typical(values: Array) -> float:
    """Return the geometric mean of the sizes of the finite, non-zero values; 1 if there are none."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.exp(np.log(sizes).mean())) if len(sizes) else 1.0


def unit_of(sizes: Array) -> Array:
    """Return the powers of two nearest to ``sizes``, 1 for those of ordinary size."""
    return np.where((sizes >= SMALL) & (sizes <= LARGE), 1.0, power_of_two(sizes))


def power_of_two(sizes: Array | float) -> Array:
    """Return the power of two nearest to each size; division by it is exact."""
    return np.asarray(2.0 ** np.round(np.log2(sizes)))


def largest_of(rows: Rows) -> Array:
    """Return the size of each row's largest coefficient; 1 for a row without any."""
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row, np.abs(rows.value))
    largest[largest == 0] = 1.0
    return largest

"""Units of one's own choice: a program is brought to ordinary size before a float solver sees it, and its answer back.

A float solver's tolerances are absolute (HiGHS: 1e-7), so that speedups of 1e-7 are zero to it and a capacity of 1e-3
is a tolerance wide. Rows, objective and variables are therefore divided by powers of two, which change no digit; what
is of ordinary size is left alone, so that there the tolerance means what it says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.program import Array, Program

#: Rows (their largest coefficient), objective (a typical one) between these are left alone; bounds, up to the last.
SMALL, LARGE, LARGE_BOUND = 2.0**-4, 2.0**10, 2.0**14


@dataclass(frozen=True, eq=False)
class Scaled:
    """A program in ordinary size, and the way back: x = ``column`` x', row r was divided by ``row[r]``."""

    program: Program
    original: Program
    objective: float
    row: Array
    column: float

    def back(self, solution: Solution) -> Solution:
        """Return the solution of the original program that belongs to one of the scaled program."""
        if self.program is self.original:
            return solution
        x = None if solution.x is None else solution.x * self.column
        reduced = solution.reduced_cost
        return replace(
            solution,
            x=x,
            objective=solution.objective if x is None else self.original.value(x),
            bound=None if solution.bound is None else float(solution.bound) * self.objective,
            dual=None if solution.dual is None else solution.dual * (self.objective / self.row),
            reduced_cost=None if reduced is None else reduced * (self.objective / self.column),
        )


def scaled(program: Program) -> Scaled:
    """Return ``program``, in floats, in ordinary size; one with logarithms or of ordinary size comes back itself."""
    rows = program.rows
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row, np.abs(rows.value))
    largest[largest == 0] = 1.0
    column = 1.0 if program.integer.any() else _column(program, largest)
    row = _power(largest * column)
    # the mean, not the largest: where users' units differ, the smallest cost must not fall below the tolerance
    objective = float(_power(np.array([_typical(program.cost * column)]))[0])
    if program.logarithms is not None or (column == 1 and objective == 1 and (row == 1).all()):
        return Scaled(program, program, 1.0, np.ones(len(rows)), 1.0)
    return Scaled(
        replace(
            program,
            cost=program.cost * (column / objective),
            offset=float(program.offset) / objective,
            lower=program.lower / column,
            upper=program.upper / column,
            rows=replace(
                rows, value=rows.value * (column / row)[rows.row], lower=rows.lower / row, upper=rows.upper / row
            ),
        ),
        program,
        objective,
        row,
        column,
    )


def _column(program: Program, largest: Array) -> float:
    """Return the unit of the variables: the geometric mean of the sizes that the bounds give them, if extraordinary."""
    given = [program.rows.lower / largest, program.rows.upper / largest, program.lower, program.upper]
    typical = _typical(np.concatenate(given))
    if typical > LARGE_BOUND:
        return float(2.0 ** np.round(np.log2(typical / LARGE)))
    return float(2.0 ** np.round(np.log2(typical))) if typical < SMALL else 1.0


def _typical(values: Array) -> float:
    """Return the geometric mean of the sizes of what is finite and not zero, 1 where nothing is."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.exp(np.log(sizes).mean())) if len(sizes) else 1.0


def _power(sizes: Array) -> Array:
    """Return the powers of two nearest to ``sizes``, 1 for those of ordinary size."""
    ordinary = (sizes >= SMALL) & (sizes <= LARGE)
    return np.where(ordinary, 1.0, 2.0 ** np.round(np.log2(sizes)))

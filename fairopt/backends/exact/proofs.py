"""Programs whose exact optimum proves that another one has none: the nearest point, and the steepest direction.

Both are feasible and bounded whatever they are made of. The nearest point leaves the smallest possible part of the
errors of a first guess; where that is not 0, its duals prove infeasibility. The steepest direction is the best one
within a box that never leaves the feasible set; if it improves the objective, a program with a point is unbounded.

Source: Farkas, Theorie der einfachen Ungleichungen, 1902; Gleixner, Steffy and Wolter, Iterative refinement for linear
programming, 2016, Sec. 4.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.backends.exact.sums import ZERO, finite, totals, zeros
from fairopt.numbers import is_finite
from fairopt.program import INFINITY, Array, Program, Rows, Sense, objects

ONE = Fraction(1)


def nearest_point(program: Program) -> Program:
    """Return the program that asks which part of a first guess's errors must be left for the rows to hold.

    The guess is a point within the bounds, so that the program has a point. Its variables are those of ``program``,
    then the part that is left, from 0.
    """
    rows = program.rows
    variables = len(program.cost)
    bounds = zip(program.lower, program.upper, strict=True)
    guess = objects([next((end for end in pair if is_finite(end)), ZERO) for pair in bounds])
    values = totals(len(rows), rows.row, rows.column, rows.value, guess)
    errors = values.excess(rows.lower, rows.upper)
    broken = np.array(sorted(errors), dtype=int)
    low = values.excess(rows.lower, objects([INFINITY] * len(rows)))
    repair = objects([errors[row] if row in low else -errors[row] for row in broken.tolist()])
    every_row = np.concatenate([rows.row, broken])
    every_column = np.concatenate([rows.column, np.full(len(broken), variables)])
    order = np.lexsort((every_column, every_row))
    value = np.concatenate([rows.value, repair])[order]
    return replace(
        program,
        sense=Sense.MINIMIZE,
        cost=np.concatenate([zeros(variables), objects([ONE])]),
        offset=ZERO,
        lower=np.concatenate([program.lower, zeros(1)]),
        upper=np.concatenate([program.upper, objects([INFINITY])]),
        integer=np.zeros(variables + 1, dtype=bool),
        rows=replace(rows, row=every_row[order], column=every_column[order], value=value),
    )


def steepest_direction(program: Program) -> Program:
    """Return the program of the most improving direction, with entries up to 1, that no bound or row ever stops."""
    rows, zero, one = program.rows, objects([ZERO]), objects([ONE])
    lower, upper = np.where(finite(program.lower), zero, -one), np.where(finite(program.upper), zero, one)
    least, most = (np.where(finite(sides), zero, sides) for sides in (rows.lower, rows.upper))
    return replace(program, offset=ZERO, lower=lower, upper=upper, rows=replace(rows, lower=least, upper=most))


def any_point(program: Program) -> Program:
    """Return the program without its objective."""
    return replace(program, cost=zeros(len(program.cost)), offset=ZERO)


def part_of(program: Program, kept: Array) -> Program:
    """Return the rows ``kept`` and the variables in them, in that order, as a program without an objective."""
    rows = only(program.rows, kept)
    columns = np.unique(rows.column)
    rows = replace(rows, column=np.searchsorted(columns, rows.column))
    lower, upper, integer = (each[columns] for each in (program.lower, program.upper, program.integer))
    aimless = replace(program, sense=Sense.MINIMIZE, cost=zeros(len(columns)), offset=ZERO)
    return replace(aimless, lower=lower, upper=upper, integer=integer, rows=rows)


def tightened(program: Program, entries: Array, depth: Fraction) -> Program:
    """Return the program with its bounds ``depth`` further in, for ``entries`` (variables, then rows) with room."""
    variables = len(program.cost)
    lower, upper = _moved(program.lower, program.upper, entries[:variables], depth)
    least, most = _moved(program.rows.lower, program.rows.upper, entries[variables:], depth)
    return replace(program, lower=lower, upper=upper, rows=replace(program.rows, lower=least, upper=most))


def only(rows: Rows, kept: Array) -> Rows:
    """Return the rows at the positions ``kept``, in that order."""
    place = np.full(len(rows), -1)
    place[kept] = np.arange(len(kept))
    inside = np.flatnonzero(place[rows.row] >= 0)
    return Rows(place[rows.row[inside]], rows.column[inside], rows.value[inside], rows.lower[kept], rows.upper[kept])


def _moved(lower: Array, upper: Array, entries: Array, depth: Fraction) -> tuple[Array, Array]:
    lower, upper = lower.copy(), upper.copy()
    for place in np.flatnonzero(entries):
        if upper[place] - lower[place] > 4 * depth:
            lower[place], upper[place] = lower[place] + depth, upper[place] - depth
    return lower, upper

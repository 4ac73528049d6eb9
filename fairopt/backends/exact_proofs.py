"""Programs whose exact optimum proves that another one has none: the nearest point, and the steepest direction.

Both are feasible and bounded whatever they are made of, so that the way to an exact optimum is the same as for any
other program. The nearest point minimises by how much the rows are broken; if that is more than nothing, its duals
prove infeasibility. The steepest direction is the best one within a box that never leaves the feasible set; if it
improves the objective, the program is unbounded once it has a point.

Source: Farkas, Theorie der einfachen Ungleichungen, 1902; Gleixner, Steffy and Wolter, Iterative refinement for linear
programming, 2016, Sec. 4.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.backends.exact_sums import ZERO, finite, fractions, zeros
from fairopt.program import INFINITY, Program, Sense
from fairopt.program.affine import Array
from fairopt.program.program import Rows

ONE = Fraction(1)


def nearest_point(program: Program, kept: Array) -> Program:
    """Return the program: break the rows ``kept`` by as little as possible in total; there are no other rows.

    The variables are those of ``program``, then one for each row that may fall short of its lower side, then one for
    each that may exceed its upper side.
    """
    rows = only(program.rows, kept)
    short, over = (np.flatnonzero(finite(side)) for side in (rows.lower, rows.upper))
    variables, extra = len(program.cost), len(short) + len(over)
    every_row = np.concatenate([rows.row, short, over])
    every_column = np.concatenate([rows.column, variables + np.arange(extra)])
    value = np.concatenate([rows.value, fractions([ONE] * len(short) + [-ONE] * len(over))])
    order = np.lexsort((every_column, every_row))
    return replace(
        program,
        sense=Sense.MINIMIZE,
        cost=np.concatenate([zeros(variables), fractions([ONE] * extra)]),
        offset=ZERO,
        lower=np.concatenate([program.lower, zeros(extra)]),
        upper=np.concatenate([program.upper, fractions([INFINITY] * extra)]),
        integer=np.zeros(variables + extra, dtype=bool),
        rows=replace(rows, row=every_row[order], column=every_column[order], value=value[order]),
    )


def steepest_direction(program: Program) -> Program:
    """Return the program: the most improving direction, no entry beyond 1, that no bound or row ever stops."""
    lower, upper = (
        fractions([ZERO if isinstance(end, Fraction) else free for end in ends])
        for ends, free in ((program.lower, -ONE), (program.upper, ONE))
    )
    least, most = (
        fractions([ZERO if isinstance(side, Fraction) else side for side in sides])
        for sides in (program.rows.lower, program.rows.upper)
    )
    rows = replace(program.rows, lower=least, upper=most)
    return replace(program, offset=ZERO, lower=lower, upper=upper, rows=rows)


def any_point(program: Program) -> Program:
    """Return the program without its objective."""
    return replace(program, cost=zeros(len(program.cost)), offset=ZERO)


def tightened(program: Program, entries: Array, depth: Fraction) -> Program:
    """Return the program with bounds and sides moved inwards by ``depth``, of the ``entries`` that have room for it.

    ``entries`` says so for each variable, then for each row.
    """
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

"""Programs that need no solver: a row or variable contradicts itself, or there are no constraints.

The libraries disagree on these: Pyomo raises on lower > upper, several refuse an empty matrix.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.numbers import arithmetic
from fairopt.program import INFINITY, Array, Number, Program

#: What HiGHS forgives by default; rounding may make two equal bounds cross.
FORGIVEN = 1e-7
#: A bound in floats that is this near to a whole number is meant to be one.
ROUNDED = 1e-9


def settle(program: Program, backend: str, forgiven: Number = FORGIVEN) -> Solution | None:
    """Return the answer to ``program`` where it needs no solver; two bounds may cross by ``forgiven``."""
    if conflict := contradiction(program, forgiven):
        raw = f"no solver was asked: {conflict} cannot hold by itself"
        return Solution(Status.INFEASIBLE, raw, backend, conflict=(conflict,))
    rows, variables = program.shape
    free = (program.lower == -INFINITY).all() and (program.upper == INFINITY).all() and not len(program.rows.value)
    if variables and (not free or program.logarithms is not None):
        return None
    if program.cost.any():
        return Solution(Status.UNBOUNDED, "no solver was asked: nothing constrains the variables", backend)
    origin, dual = (np.full(size, type(program.offset)(0), dtype=program.cost.dtype) for size in (variables, rows))
    raw, value = "no solver was asked: no variable is constrained or has a cost", program.value(origin)
    found = Solution(Status.OPTIMAL, raw, backend, objective=value, bound=value, x=origin)
    return found if program.integer.any() else replace(found, dual=dual, reduced_cost=origin)


def contradiction(program: Program, forgiven: Number = FORGIVEN) -> str:
    """Return the name of a row, or of a variable's bounds, that alone cannot hold; empty if there is none."""
    rows = program.rows
    empty = np.diff(rows.start) == 0
    bad = _crossed(rows.lower, rows.upper, forgiven) | empty & ((rows.lower > forgiven) | (rows.upper < -forgiven))
    for row in np.flatnonzero(bad):
        return program.row_name(int(row))
    for column in np.flatnonzero(_crossed(program.lower, program.upper, forgiven)):
        return f"bounds of {program.column_name(int(column))}"
    return ""


def _crossed(lower: Array, upper: Array, forgiven: Number) -> Array:
    # one bound is shifted and the two compared, not subtracted: infinity minus infinity is NaN
    most = upper + forgiven if forgiven else upper
    return np.asarray((lower > most) | (lower == INFINITY) | (upper == -INFINITY), dtype=bool)


def whole_bounds(program: Program) -> Program:
    """Return the program with whole bounds of whole variables: HiGHS has called 1/2 an optimum of x within [1/2, 3].

    In floats a bound may be off by `ROUNDED`.
    """
    columns = np.flatnonzero(program.integer)
    if not len(columns):
        return program
    slack = 0 if program.exact else ROUNDED
    lower, upper = program.lower.copy(), program.upper.copy()
    for column in columns.tolist():
        lower[column], upper[column] = whole_within(lower[column], upper[column], slack)
    return replace(program, lower=lower, upper=upper)


def whole_within(low: Number, high: Number, slack: Number = 0) -> tuple[Number, Number]:
    """Return the least and the largest whole number within bounds, which may be off by ``slack``."""
    least = low if low == -INFINITY else arithmetic(low).number(ceil(low - slack))
    return least, high if high == INFINITY else arithmetic(high).number(floor(high + slack))


def uncrossed(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the bounds; those that cross, by no more than `settle` forgives, are moved to their midpoint."""
    crossed = lower > upper
    middle = (np.where(crossed, lower, 0) + np.where(crossed, upper, 0)) / 2
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)

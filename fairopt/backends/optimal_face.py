"""The optimal solutions of a program, themselves as a program.

The optima of a linear program are its points that are complementary to any one optimal dual solution. So
`cut_to_optima` turns rows with a non-zero dual into equations and fixes variables with a non-zero reduced cost, without
a tolerance on the objective. `with_optimum` adds a row that keeps the objective.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.numbers import arithmetic
from fairopt.program import INFINITY, Array, Block, Program, Rows, Sense

#: A float dual below this part of the largest one counts as zero. HiGHS solves to 1e-7, and a true dual that small
#: would need speedups that differ by the same factor.
ZERO_DUAL = 1e-7
#: The relative amount by which a float objective, or utility, is lowered before it becomes a constraint, so that
#: rounding cannot make it infeasible.
FLOAT_SLACK = 1e-9


def cut_to_optima(program: Program, solution: Solution) -> Program:
    """Return ``program`` restricted to its optimal solutions, given an optimal ``solution`` with duals."""
    dual, reduced, x, rows = solution.dual, solution.reduced_cost, solution.point, program.rows
    assert dual is not None
    assert reduced is not None
    lower, upper = _held(program.lower, program.upper, x, reduced)
    least, most = _held(rows.lower, rows.upper, rows.activity(x), dual)
    name = f"optima of {program.name}"
    return replace(program, name=name, lower=lower, upper=upper, rows=replace(rows, lower=least, upper=most))


def with_optimum(program: Program, solution: Solution) -> Program:
    """Return ``program`` with one more row, "optimum", that keeps its objective at that of ``solution``.

    For an exact solution this is the set of `cut_to_optima`; in floats the objective is lowered by `FLOAT_SLACK`.
    """
    rows, count = program.rows, len(program.rows)
    terms = np.flatnonzero(program.cost != 0)
    value: Any = program.value(solution.point) - program.offset
    kind: Any = object if program.exact else float
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    slack = 0 if program.exact else FLOAT_SLACK * abs(value)
    best, none = np.array([value - sign * slack], dtype=kind), np.array([INFINITY], dtype=kind)
    low, high = (best, none) if sign == 1 else (-none, best)
    row, column = np.append(rows.row, np.full(len(terms), count)), np.append(rows.column, terms)
    value = np.append(rows.value, program.cost[terms])
    held = Rows(row, column, value, np.append(rows.lower, low), np.append(rows.upper, high))
    block = Block("optimum", (), count, 1, equation="objective = its optimum")
    return replace(program, name=f"optima of {program.name}", rows=held, row_blocks=(*program.row_blocks, block))


def _held(lower: Array, upper: Array, value: Array, dual: Array) -> tuple[Array, Array]:
    """Return the bounds, both at the one nearer to ``value`` where the dual is not zero."""
    size = np.abs(dual)
    zero = 0 if arithmetic(dual).exact else ZERO_DUAL * max(1e-3, size.max(initial=0.0))
    held = np.asarray(size > zero, dtype=bool)
    nearer = np.where(np.abs(value - lower) <= np.abs(value - upper), lower, upper)
    return np.where(held, nearer, lower), np.where(held, nearer, upper)

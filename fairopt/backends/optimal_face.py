"""The optimal solutions of a program, themselves as a program.

The optimal solutions of a linear program are its feasible points that are complementary to any one optimal dual
solution. So `cut_to_optima` turns rows with a non-zero dual into equations and fixes variables with a non-zero reduced
cost. It needs no objective row, and no tolerance on the objective. `with_optimum` adds a row that keeps the objective.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.program import INFINITY, Array, Block, Program, Rows, Sense

#: A float dual below this part of the largest one counts as zero. HiGHS solves to 1e-7, and a true dual that small
#: would need speedups that differ by the same factor.
ZERO_DUAL = 1e-7
#: The relative amount by which a float objective, or utility, is lowered before it becomes a constraint, so that
#: rounding cannot make it infeasible.
FLOAT_SLACK = 1e-9


def cut_to_optima(program: Program, solution: Solution) -> Program:
    """Return ``program`` restricted to its optimal solutions, given an optimal ``solution`` with duals."""
    dual, reduced, x = solution.dual, solution.reduced_cost, solution.point
    assert dual is not None
    assert reduced is not None
    activity = program.rows.activity(x)
    held, fixed = _not_zero(dual), _not_zero(reduced)
    rows = program.rows
    row_bound = _nearer(rows.lower, rows.upper, activity)
    bound = _nearer(program.lower, program.upper, x)
    return replace(
        program,
        name=f"optima of {program.name}",
        lower=np.where(fixed, bound, program.lower),
        upper=np.where(fixed, bound, program.upper),
        rows=replace(rows, lower=np.where(held, row_bound, rows.lower), upper=np.where(held, row_bound, rows.upper)),
    )


def with_optimum(program: Program, solution: Solution) -> Program:
    """Return ``program`` with one more row, "optimum", that keeps its objective at that of ``solution``.

    For an exact solution this is the same set as that of `cut_to_optima`, and a reader needs no duals to see it. For a
    solution in floats the objective is lowered by the relative slack `FLOAT_SLACK`.
    """
    rows, count = program.rows, len(program.rows)
    terms = np.flatnonzero(program.cost != 0)
    value: Any = program.value(solution.point) - program.offset
    kind: Any = object if program.exact else float
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    slack = 0 if program.exact else FLOAT_SLACK * abs(value)
    best, none = np.array([value - sign * slack], dtype=kind), np.array([INFINITY], dtype=kind)
    low, high = (best, none) if sign == 1 else (-none, best)
    return replace(
        program,
        name=f"optima of {program.name}",
        rows=Rows(
            row=np.concatenate([rows.row, np.full(len(terms), count)]),
            column=np.concatenate([rows.column, terms]),
            value=np.concatenate([rows.value, program.cost[terms]]),
            lower=np.concatenate([rows.lower, low]),
            upper=np.concatenate([rows.upper, high]),
        ),
        row_blocks=(*program.row_blocks, Block("optimum", (), count, 1, equation="objective = its optimum")),
    )


def _not_zero(dual: Array) -> Array:
    size = np.abs(dual)
    if dual.dtype == object:
        return np.asarray(size > 0, dtype=bool)
    return np.asarray(size > ZERO_DUAL * max(1e-3, size.max(initial=0.0)))


def _nearer(lower: Array, upper: Array, value: Array) -> Array:
    return np.where(np.abs(value - lower) <= np.abs(value - upper), lower, upper)

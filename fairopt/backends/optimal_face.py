"""The optimal solutions of a program, as a program: three ways to write them down.

The optimal solutions of a linear program are its feasible points that are complementary to any one optimal dual
solution. So `cut_to_optima` turns rows with a non-zero dual into equations and fixes variables with a non-zero reduced
cost: no objective row, and no tolerance on the objective. The other two keep the objective, exactly or nearly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.program import INFINITY, Array, Block, Program, Rows, Sense

#: A float dual below this share of the largest one is taken for zero: HiGHS solves to 1e-7, and a true dual this much
#: smaller than the others would need speedups that differ by the same factor.
ZERO_DUAL = 1e-7
#: By which part of itself a float objective, or utility, is lowered before it becomes a constraint, so that rounding
#: cannot make it infeasible.
FLOAT_SLACK = 1e-9


def cut_to_optima(program: Program, solution: Solution) -> Program:
    """Return ``program`` cut down to its optimal solutions, given an optimal ``solution`` with duals."""
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

    Of an exact solution this is the same set as that of `cut_to_optima`, and a reader needs no duals to see it. Of one
    in floats the objective may be less by `FLOAT_SLACK` of itself.
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

"""Rows that contradict each other, found in floats: where an exact proof of infeasibility begins.

Few rows are enough for a contradiction. They are gathered: those that a point breaks most are added, and a next point
is asked for, until there is none. Of few rows HiGHS's simplex has a proof at once. Of all rows it has taken minutes
where this takes milliseconds, and presolve leaves no proof.

Source: Dantzig, Fulkerson and Johnson, Solution of a large-scale traveling-salesman problem, 1954 (rows when they are
broken); Gleeson and Ryan, Identifying minimally infeasible subsystems of inequalities, 1990.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairopt.backends.exact.proofs import only
from fairopt.backends.highs import instance, load
from fairopt.backends.solver import Options
from fairopt.program import INFINITY, Array, Program

if TYPE_CHECKING:
    import highspy

#: Rows that are added at once, and how often at most.
ADDED, ROUNDS = 100, 30
#: What a row may be broken by, in units of the length of its coefficients.
FORGIVEN = 1e-7


def gathered(program: Program, deadline: float = INFINITY) -> Array:
    """Return multipliers (rows,) by which rows of a program in floats contradict each other, 0 where none were found.

    It ends at ``deadline``, on the clock of `time.perf_counter`.
    """
    rows = program.rows
    length = np.sqrt(np.bincount(rows.row, weights=rows.value**2, minlength=len(rows)))
    length[length == 0] = 1.0
    x = np.minimum(np.maximum(0.0, program.lower), program.upper)
    kept = np.zeros(0, dtype=int)
    highs = instance(Options())
    load(highs, replace(program, cost=np.zeros(len(x)), rows=only(rows, kept)))
    highs.setOptionValue("presolve", "off")  # it leaves no proof
    for _ in range(ROUNDS):
        value = rows.activity(x)
        excess = np.maximum(rows.lower - value, value - rows.upper) / length
        excess[kept] = 0.0
        worst = np.argsort(-excess)[:ADDED]
        worst = np.sort(worst[excess[worst] > FORGIVEN])
        left = deadline - time.perf_counter()
        if not len(worst) or left < 0:
            break
        new, kept = only(rows, worst), np.append(kept, worst)
        start = new.start[:-1].astype(np.int32)
        highs.addRows(len(new), new.lower, new.upper, len(new.value), start, new.column.astype(np.int32), new.value)
        highs.setOptionValue("time_limit", highs.getRunTime() + left)
        highs.run()
        if highs.getModelStatus().name != "kOptimal":  # of some it says "unknown", and has a proof
            return ray_of(highs, kept, len(rows))
        x = np.array(highs.getSolution().col_value)
    return np.zeros(len(rows))


def ray_of(highs: highspy.Highs, kept: Array, rows: int) -> Array:
    """Return HiGHS's proof that the rows ``kept``, which it holds, have no point, as multipliers (rows,), 0 if none."""
    _, has, ray = highs.getDualRay()
    multipliers = np.zeros(rows)
    if has:
        multipliers[kept] = ray
    return multipliers

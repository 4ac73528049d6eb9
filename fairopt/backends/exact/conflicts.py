"""Rows that contradict each other, found in floats: an exact proof of infeasibility begins with them.

A contradiction mostly needs few rows, and this finds such rows. It begins with no rows and a point within the bounds of
the variables. Again and again it adds the rows that the point violates most, and asks HiGHS for a point that keeps all
rows added so far. Once there is none, HiGHS's simplex proves it from these few rows. Asked about all rows at once,
HiGHS has taken minutes where this takes milliseconds; and its presolve would leave no proof.

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

#: At most so many rows are added in a round, and at most so many rounds played.
ADDED, ROUNDS = 100, 30
#: A row that is violated by no more than this counts as kept; in units of the length of its coefficients.
FORGIVEN = 1e-7


def gathered(program: Program, deadline: float = INFINITY) -> Array:
    """Return multipliers (rows,) with which rows of a program in floats contradict each other; all 0 if none are found.

    The search stops at ``deadline``, a time of `time.perf_counter`.
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
        if highs.getModelStatus().name != "kOptimal":  # also where it says "unknown": there may be a proof
            return ray_of(highs, kept, len(rows))
        x = np.array(highs.getSolution().col_value)
    return np.zeros(len(rows))


def ray_of(highs: highspy.Highs, kept: Array, rows: int) -> Array:
    """Return HiGHS's proof that no point keeps its rows, ``kept``: multipliers (rows,), all 0 if it has none."""
    _, has, ray = highs.getDualRay()
    multipliers = np.zeros(rows)
    if has:
        multipliers[kept] = ray
    return multipliers

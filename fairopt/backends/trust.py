"""What an answer must show before it is passed on as an optimum; a solver's word alone is not enough.

`well_formed` is asked of every answer: its status, its shapes, its numbers. `trusted` is asked of an optimum: its point
keeps the constraints, and its duals say that no other point is better. In floats both are judged with a tolerance. It
finds a wrong answer, and proves nothing: proofs are exact (`fairopt.certificates`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.errors import NotSolved, require_returned
from fairopt.program import Array, Program, Sense

#: A float answer that breaks a constraint by more than this, relative to the size of its terms, is refused. It is ten
#: times what the loosest back end (SCS with our settings) leaves, and a hundred times what HiGHS leaves.
BROKEN = 1e-5
#: The duals of an optimum in floats leave a gap of at most this, relative to the size of its terms.
UNCONFIRMED = 1e-4
#: A row whose terms are all rounding noise has no size of its own; it may be off by this part of a typical variable.
NOISE = 1e-6


def refuse_broken(program: Program, solution: Solution) -> None:
    """Raise `NotSolved` if a point that a back end calls optimal breaks the constraints."""
    x, rows = solution.point, program.rows
    activity = rows.activity(x)
    excess = np.maximum(rows.lower - activity, activity - rows.upper)
    outside = np.maximum(program.lower - x, x - program.upper)
    if x.dtype != object:
        held = np.abs(x)[np.abs(x) > NOISE * np.abs(x).max(initial=0.0)]
        size = float(np.exp(np.log(held).mean())) if len(held) else 1.0
        terms, largest = np.zeros(len(rows)), np.zeros(len(rows))
        np.add.at(terms, rows.row, np.abs(rows.value * x[rows.column]))
        np.maximum.at(largest, rows.row, np.abs(rows.value))
        sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (rows.lower, rows.upper)]
        excess = excess - BROKEN * (terms + sides[0] + sides[1]) - NOISE * largest * size
        outside = outside - BROKEN * np.abs(x) - NOISE * size
    if (excess > 0).any() or (outside > 0).any():
        broken = program.violations(x)
        name = max(broken, key=lambda name: broken[name])
        raise NotSolved(
            f"{solution.backend} calls a point optimal that breaks {name} by {float(broken[name]):g}",
            replace(solution, status=Status.INACCURATE),
        )


def well_formed(program: Program, solution: Solution, who: str = "solve") -> Solution:
    """Return the solution itself if status, shapes and numbers are those of an answer to ``program``.

    Errors: `NotSolved`; `WrongReturn` where ``who`` returned something else than a `Solution`.

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> well_formed(p.program(), Solution(Status.OPTIMAL, "fine", "some", x=np.array([1.0, 2.0])))
    Traceback (most recent call last):
        ...
    fairopt.errors.NotSolved: some: its x has shape (2,), where the program needs (1,); its answer is not used
    """
    require_returned(isinstance(solution, Solution), solution, who, "a Solution")
    rows, variables = program.shape
    wrong = "" if isinstance(solution.status, Status) else f"its status is {solution.status!r:.100}"
    for name, length in (("x", variables), ("reduced_cost", variables), ("dual", rows)):
        values = getattr(solution, name)
        if values is None or wrong:
            continue
        if not isinstance(values, np.ndarray) or values.shape != (length,):
            shape = getattr(values, "shape", None) or type(values).__name__
            wrong = f"its {name} has shape {shape}, where the program needs {(length,)}"
        elif values.dtype != object and not np.isfinite(values.astype(float)).all():
            wrong = f"its {name} has entries that are no finite numbers"
    if not wrong and solution.status is Status.OPTIMAL and solution.x is None:
        wrong = "it says optimal, and gives no point"
    if wrong:
        raise NotSolved(f"{solution.backend}: {wrong}; its answer is not used")
    return solution


def trusted(program: Program, solution: Solution) -> Solution:
    """Return the solution itself if it is an optimum that its own duals confirm; errors: `NotSolved`.

    A program with integer variables has no duals: there only the constraints are judged.
    """
    well_formed(program, solution.require_optimal())
    refuse_broken(program, solution)
    if solution.dual is not None and not program.integer.any():
        refuse_unconfirmed(program, solution)
    return solution


def refuse_unconfirmed(program: Program, solution: Solution) -> None:
    """Raise `NotSolved` where the duals do not say that the point is optimal.

    A row or variable with a multiplier must be at the bound that the multiplier goes with. What each is away from
    it, times the multiplier, adds up to the distance from an upper bound of the objective (a lower one, if minimised).

    Source: the weak duality of linear programs; with logarithms, of the objective's tangent at the point.
    """
    x, rows = solution.point, program.rows
    dual = np.asarray(solution.dual)
    maximise = program.sense is Sense.MAXIMIZE
    reduced = program.reduced_cost(x, dual)
    activity = rows.activity(x)
    parts = np.abs(rows.value * dual[rows.row])
    pull = np.abs(program.gradient(x)).astype(reduced.dtype)
    np.add.at(pull, rows.column, parts)
    least = 0 if x.dtype == object else UNCONFIRMED
    matters = np.zeros(len(rows), dtype=bool)  # rounding noise has no side
    matters[rows.row[parts > least * pull[rows.column]]] = True
    lacks = [
        _distance(np.where(matters, dual, 0), activity, rows.lower, rows.upper, maximise),
        _distance(np.where(np.abs(reduced) > least * pull, reduced, 0), x, program.lower, program.upper, maximise),
    ]
    gap = sum(each.sum() for each in lacks)
    if not gap <= least * (np.abs(dual * activity).sum() + pull @ np.abs(x)):
        raise NotSolved(
            f"{solution.backend} calls a point optimal that by its duals may be {float(gap):g} from the optimum",
            replace(solution, status=Status.INACCURATE),
        )


def _distance(multiplier: Array, value: Array, lower: Array, upper: Array, maximise: bool) -> Array:
    """Return how much each multiplier, times the distance to the bound that it goes with, adds to a bound's gap."""
    at_upper = (multiplier > 0) == maximise
    there = np.where(multiplier == 0, value, np.where(at_upper, upper, lower))
    distance: Array = np.abs(multiplier * (there - value))
    return distance

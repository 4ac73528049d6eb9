"""What an answer must show before it is passed on as an optimum; a solver's word alone is not enough.

`well_formed` looks at every answer: its status, its shapes, its numbers. `trusted` looks at an optimum: its point
keeps the constraints, and its duals say that no other point is better. In floats both are judged with a tolerance. It
finds a wrong answer, and proves nothing: proofs are exact (`fairopt.certificates`). `refuse_unsure` has the tolerance
of rounding errors: it is for whom there is a better way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.scaling import held_at_zero
from fairopt.backends.solution import Position, Solution, Status
from fairopt.errors import FairoptError, NotSolved, require_returned
from fairopt.numbers import RATIONALS, arithmetic, at_in_pieces, in_pieces, number_text
from fairopt.program import INFINITY, ROUNDING, Array, Program, Sense

#: A float answer that breaks a constraint by more than this, relative to the size of its terms, is refused. It is ten
#: times what the loosest backend (SCS with our settings) leaves, and a hundred times what HiGHS leaves.
BROKEN = 1e-5
#: So near to a whole number is an integer variable in floats; HiGHS leaves a tenth.
INTEGRAL = 1e-5
#: The duals of an optimum in floats leave a gap of at most this, relative to the size of its terms; of a tangent more.
UNCONFIRMED, BY_TANGENT = 1e-4, 1e-3
#: A row whose terms are all rounding noise has no size of its own; it may be off by this part of a typical variable.
NOISE = 1e-6
#: What is surely right breaks no row by more than this part of its terms, and may gain at most this part of what its
#: duals add up to. HiGHS leaves less than a thousandth of both, but for numbers that are noise to it.
SURE, SURE_GAIN = 1e-10, 1e-8
#: A basic variable or row this near to its bound may be beyond it: by this part of the row's terms, or of the largest
#: variable. That is asked of programs of so many non-zeros, where rationals take milliseconds.
AT_BOUND, MOST_DEGENERATE = 1e-9, 400
#: The gap that a method may leave, as a part of the optimum.
WIDE = 1e-7


def refuse_broken(program: Program, solution: Solution) -> Array:
    """Raise `NotSolved` if a point that a backend calls optimal breaks the constraints, or is not whole.

    Returns what the point makes of each row, which takes long in rationals.
    """
    x, rows = solution.point, program.rows
    parts = np.abs(x - np.rint(x.astype(float)))
    if (torn := program.integer & (parts > INTEGRAL)).any():
        place = int(np.argmax(torn))
        says = f"{solution.backend} calls a point optimal where {program.column_name(place)} is {float(x[place]):g}"
        raise NotSolved(says, replace(solution, status=Status.INACCURATE))
    activity = rows.activity(x)
    excess = np.maximum(rows.lower - activity, activity - rows.upper)
    outside = np.maximum(program.lower - x, x - program.upper)
    if not arithmetic(x).exact:
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
    return activity


def well_formed(program: Program, solution: Solution, method: str = "solve") -> Solution:
    """Return the solution itself if status, shapes and numbers are those of an answer to ``program``.

    Errors: `NotSolved`; `WrongReturn` where ``method`` returned something else than a `Solution`.

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> well_formed(p.program(), Solution(Status.OPTIMAL, "fine", "some", x=np.array([1.0, 2.0])))
    Traceback (most recent call last):
        ...
    fairopt.errors.NotSolved: some: its x has shape (2,), where the program needs (1,); its answer is not used
    """
    require_returned(isinstance(solution, Solution), solution, method, "a Solution")
    rows, variables = program.shape
    wrong = "" if isinstance(solution.status, Status) else f"its status is {solution.status!r:.100}"
    for name, length in (("x", variables), ("reduced_cost", variables), ("dual", rows)):
        values = getattr(solution, name)
        if values is None or wrong:
            continue
        if not isinstance(values, np.ndarray) or values.shape != (length,):
            shape = getattr(values, "shape", None) or type(values).__name__
            wrong = f"its {name} has shape {shape}, where the program needs {(length,)}"
        elif not arithmetic(values).exact and not np.isfinite(values.astype(float)).all():
            wrong = f"its {name} has entries that are no finite numbers"
    if not wrong and solution.status is Status.OPTIMAL and solution.x is None:
        wrong = "it says optimal, and gives no point"
    if wrong:
        raise NotSolved(f"{solution.backend}: {wrong}; its answer is not used")
    return solution


def asked(solve: Callable[[Program], Solution], program: Program, who: str) -> Solution:
    """Return what ``solve`` of backend ``who`` answers, if it is `well_formed`.

    Errors: those of fairopt as they are; `NotSolved` for whatever else the solver breaks off with.
    """
    try:
        return well_formed(program, solve(program), f"{who}.solve")
    except FairoptError:
        raise
    except Exception as error:
        raise NotSolved(f"{who} broke off: {type(error).__name__}: {error}") from error


def trusted(program: Program, solution: Solution) -> Solution:
    """Return the solution itself if it is an optimum that its own duals confirm; errors: `NotSolved`, `OutOfTime`.

    A program with integer variables has no duals: there only the constraints are judged. Nor are multipliers that
    prove nothing passed on as a proof that there is no point.
    """
    if solution.status is Status.INFEASIBLE and solution.farkas is not None:
        proved = _contradict(program, solution.farkas)
        solution = solution if proved else replace(solution, farkas=None, conflict=())
    solution.require_optimal()
    if _proved(program, solution):
        return solution
    activity = refuse_broken(program, solution)
    if solution.dual is not None and not program.integer.any():
        refuse_unconfirmed(program, solution, activity)
    return solution


def _proved(program: Program, solution: Solution) -> bool:
    """Whether point and duals are rationals that prove each other optimal; what else they are is found by others."""
    x, dual = solution.point, solution.dual
    if dual is None or program.integer.any() or program.logarithms is not None or not program.exact:
        return False
    if not (arithmetic(x).exact and arithmetic(dual).exact):
        return False
    # here, since floats settle most programs; in whole numbers it is many times as fast as by fractions
    from fairopt.backends.exact.checks import dual_bound
    from fairopt.backends.exact.sums import excesses, objective

    program, x, dual = program.as_(RATIONALS), RATIONALS.cast(x), RATIONALS.cast(dual)  # no whole numbers of NumPy
    return not excesses(program, x) and dual_bound(program, dual) == objective(program, x)


def _contradict(program: Program, multipliers: Array) -> bool:
    """Whether the rows ask for more, added up by multipliers, than the variables' bounds allow, beyond rounding."""
    if multipliers.shape != (len(program.rows),):
        return False
    rows, product = program.rows, np.zeros(len(program.cost), dtype=multipliers.dtype)
    at_in_pieces(np.add, product, rows.column, in_pieces(np.multiply, multipliers[rows.row], rows.value))
    asked_for = _at_bounds(multipliers, rows.lower, rows.upper)
    allowed = _at_bounds(product, program.upper, program.lower)
    if (np.abs(np.concatenate([asked_for, allowed])) == INFINITY).any():
        return False
    return bool(asked_for.sum() - allowed.sum() > SURE * (abs(asked_for).sum() + abs(allowed).sum()))


def _at_bounds(rate: Array, above: Array, below: Array) -> Array:
    """Return each rate that is not 0 times the bound that goes with its sign; a single infinity where one has none."""
    used = np.flatnonzero(rate)
    bound = _toward(rate[used] > 0, above[used], below[used], exact=arithmetic(rate).exact)
    if (np.abs(bound) == INFINITY).any():
        return np.array([INFINITY])
    return np.asarray(rate[used] * bound)


def _toward(up: Array, upper: Array, lower: Array, *, exact: bool) -> Array:
    """Return the ``upper`` bound where ``up``, else the ``lower`` one; ``exact`` ones do not become floats."""
    if exact:
        upper, lower = upper.astype(object), lower.astype(object)
    return np.where(up, upper, lower)


def refuse_unconfirmed(program: Program, solution: Solution, activity: Array) -> None:
    """Raise `NotSolved` where the duals do not say that the point, of this ``activity``, is optimal.

    A row or variable with a multiplier must be at the bound that the multiplier goes with. What each is away from it,
    times the multiplier, adds up to the distance from an upper bound of the objective (a lower one, if minimised).
    Floats have noise in multipliers whose bound is infinite: these are judged in a box around the point, of its size.

    Source: the weak duality of linear programs; with logarithms, of the objective's tangent at the point.
    """
    x = solution.point
    gap, size = _gap(program, x, np.asarray(solution.dual), activity)
    part = 0 if arithmetic(x).exact else UNCONFIRMED if program.logarithms is None else BY_TANGENT
    if not gap <= part * size:
        linear = program.logarithms is None
        remedy = "decide with the exact backend" if linear else "give weights and speedups that are less far apart"
        says = f"{solution.backend} calls a point optimal that by its duals may be {number_text(gap)} from the optimum"
        raise NotSolved(
            f"{says}; {remedy}",
            replace(solution, status=Status.INACCURATE),
        )


def refuse_unsure(program: Program, solution: Solution) -> None:
    """Raise `NotSolved` where an optimum in floats is not right but for rounding: its numbers are too far apart.

    Rows are judged by their own terms alone, and what the duals make of the rounding of these terms counts as a gap.
    Where users are alike but for the last digit, a vertex that breaks a row by that digit may be far from all that
    break none. So a small program's vertex must be clear of all bounds but those that determine it. Programs with
    integers or logarithms are not judged, nor are answers in rationals.

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation("tiny")
    >>> p.maximize(x := p.variable("x", lower=0))
    >>> p.constrain("room", x <= 1e-9)
    >>> refuse_unsure(p.program().as_(float), Solution(Status.OPTIMAL, "fine", "some", x=np.array([2e-9])))
    Traceback (most recent call last):
        ...
    fairopt.errors.NotSolved: numerically out of range for some: its point breaks room by 1e-09
    """
    if program.exact or program.logarithms is not None or program.integer.any():
        return
    x, rows = np.clip(solution.point, program.lower, program.upper), program.rows
    activity, terms = rows.activity(x), np.zeros(len(rows))
    np.add.at(terms, rows.row, np.abs(rows.value * x[rows.column]))
    excess = np.maximum(rows.lower - activity, activity - rows.upper)
    unsure = ""
    if (beyond := excess - SURE * terms).max(initial=0.0) > 0:
        worst = int(np.argmax(beyond))
        unsure = f"its point breaks {program.row_name(worst)} by {excess[worst]:g}"
    elif solution.dual is not None:
        gap, size = _gap(program, x, solution.dual, activity)
        gap += 2 * ROUNDING * float(np.abs(solution.dual) @ terms)
        unsure = "" if gap <= SURE_GAIN * size else f"by its duals the optimum may be {gap:g} away"
    if not unsure and len(rows.value) <= MOST_DEGENERATE and _degenerate(program, solution, activity, terms):
        unsure = "rounding may have moved its vertex beyond a bound"
    if unsure:
        raise NotSolved(
            f"numerically out of range for {solution.backend}: {unsure}", replace(solution, status=Status.INACCURATE)
        )


def _degenerate(program: Program, solution: Solution, activity: Array, terms: Array) -> bool:
    """Whether a basic row or variable is at a bound, as far as rounding lets one say."""
    basis, x, rows = solution.basis, solution.point, program.rows
    if basis is None:
        return False
    spare = np.minimum(np.abs(activity - rows.lower), np.abs(rows.upper - activity))
    apart = np.minimum(np.abs(x - program.lower), np.abs(program.upper - x))
    at_row = (basis.rows == Position.BASIC) & (spare <= AT_BOUND * terms) & (terms > 0)
    at_bound = (basis.columns == Position.BASIC) & (apart <= AT_BOUND * np.abs(x).max(initial=0.0))
    if (held := held_at_zero(program)) is not None:
        at_bound &= held < 0
    return bool(at_row.any() or at_bound.any())


def refuse_wide(solution: Solution) -> None:
    """Raise `NotSolved` where a method's proven bounds of the optimum are more than the part `WIDE` apart."""
    if solution.lower is None or solution.upper is None:
        return
    lower, upper = float(solution.lower), float(solution.upper)
    if not upper - lower <= WIDE * abs(lower):
        between = f"the optimum is between {lower:g} and {upper:g}"
        raise NotSolved(f"numerically out of range for floats: {between}", replace(solution, status=Status.INACCURATE))


def _gap(program: Program, x: Array, dual: Array, activity: Array) -> tuple[Any, Any]:
    """Return by how much the optimum may be better by ``dual``, and the sum of what the duals are worth at ``x``."""
    rows, maximise = program.rows, program.sense is Sense.MAXIMIZE
    reduced = program.reduced_cost(x, dual)
    reach: Any = INFINITY
    wide = np.full(len(rows), INFINITY)
    if not arithmetic(x).exact:
        reach = _size(program, x)
        wide = np.zeros(len(rows))
        np.add.at(wide, rows.row, np.abs(rows.value) * reach)
    gap = _distance(dual, activity, rows.lower, rows.upper, wide, maximise)
    gap += _distance(reduced, x, program.lower, program.upper, reach, maximise)
    size = np.abs(dual * activity).sum() + np.abs(program.gradient(x) * x).sum()
    return gap, size


def _distance(multiplier: Array, value: Array, lower: Array, upper: Array, reach: Any, maximise: bool) -> Any:
    """Return what multipliers, times the distances to the bounds that they go with, add to a bound of the objective."""
    exact = arithmetic(value).exact
    bound = _toward((multiplier > 0) == maximise, upper, lower, exact=exact)
    bound = np.where(multiplier == 0, value, bound)
    far = np.abs(bound) == INFINITY
    if exact and far.any():
        return INFINITY
    return np.abs(multiplier * np.where(far, reach, bound - value)).sum()


def _size(program: Program, x: Array) -> float:
    """Return the largest entry of a point in floats, or the largest that a bound or a row's side stands for."""
    rows = program.rows
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row, np.abs(rows.value))
    sides = [side / np.where(largest > 0, largest, 1.0) for side in (rows.lower, rows.upper)]
    numbers = np.abs(np.concatenate([x, program.lower, program.upper, *sides]).astype(float))
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))

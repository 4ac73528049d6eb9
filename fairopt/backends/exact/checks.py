"""The last step of the exact backend: checks of a finished proof against the program as it was given.

They know nothing of bases or of how an answer was found, and have no tolerance. A check that fails shows a defect.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact.sums import (
    UnreducedRatios,
    activity,
    combined,
    dot,
    excesses,
    finite,
    nonzero,
    objective,
    reduced_cost,
    signs_of,
)
from fairopt.errors import FairoptError
from fairopt.numbers import is_finite
from fairopt.program import Array, Program, Sense


def require_optimum(program: Program, x: Array, dual: Array) -> Array:
    """Return the reduced costs, after checking exactly that ``x`` and ``dual`` prove each other optimal.

    Checked are rows, bounds, the signs of duals and reduced costs, and that both objectives are the same number, which
    is complementarity. Errors: `FairoptError`, a defect of this backend.
    """
    _require(not excesses(program, x), "x breaks a constraint")
    reduced = reduced_cost(program, dual)
    bound = dual_bound(program, dual, reduced)
    _require(bound is not None, "a dual has the sign of a bound that does not exist")
    _require(bound == objective(program, x), "primal and dual objective differ")
    return reduced.reduced()


def dual_bound(program: Program, dual: Array, reduced: UnreducedRatios | None = None) -> Fraction | None:
    """Return the bound on the objective that row multipliers prove, None where they prove none.

    No feasible point is better: each row's multiplier is set against the side that its sign asks for, and so is each
    reduced cost against its variable's bound. ``reduced`` are the reduced costs, if they are known.

    Source: weak duality; Neumaier and Shcherbina, Safe bounds in linear and mixed-integer programming, 2004.
    """
    reduced = reduced_cost(program, dual) if reduced is None else reduced
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    rows = worst(UnreducedRatios.of(dual), program.rows.lower, program.rows.upper, sign)
    columns = worst(reduced, program.lower, program.upper, sign)
    return None if rows is None or columns is None else rows + columns + Fraction(program.offset)


def worst(weight: UnreducedRatios, lower: Array, upper: Array, sign: int) -> Fraction | None:
    """Return the largest (sign 1) or least (-1) of ``weight @ value`` between the bounds, None where it is infinite."""
    direction = sign * signs_of(weight.top)
    ends = np.where(direction > 0, upper, lower)
    used = np.flatnonzero(direction)
    return weight.at(used).dot(ends[used]) if finite(ends[used]).all() else None


def refuted(program: Program, multipliers: Array) -> tuple[str, ...]:
    """Return the names of the constraints in a proof of infeasibility, after checking the proof exactly.

    With y the multipliers, the rows demand that ``y @ A @ x`` be at least some number, while all points within
    the bounds have less; signs are as in ``farkas`` of `fairopt.backends.solution.Solution`. Errors: `FairoptError`.
    """
    product = combined(program, multipliers)
    _require(_beyond(program, multipliers, product), "the multipliers do not contradict the constraints")
    names = [program.row_name(int(row)) for row in nonzero(multipliers)]
    return (
        *names,
        *(f"bounds of {program.column_name(int(column))}" for column in np.flatnonzero(signs_of(product.top))),
    )


def contradict(program: Program, multipliers: Array) -> bool:
    """Return whether multipliers prove that the program has no point."""
    return _beyond(program, multipliers, combined(program, multipliers))


def _beyond(program: Program, multipliers: Array, product: UnreducedRatios) -> bool:
    """Return whether the rows demand more of ``product``, their sum by multipliers, than the bounds allow."""
    demanded = worst(UnreducedRatios.of(multipliers), program.rows.lower, program.rows.upper, -1)
    most = worst(product, program.lower, program.upper, 1)
    return demanded is not None and most is not None and most < demanded


def require_endless(program: Program, x: Array, ray: Array) -> None:
    """Check exactly that ``x`` is feasible and that going along ``ray`` improves the objective for ever."""
    _require(not excesses(program, x), "the start of the ray breaks a constraint")
    gain = dot(ray, program.cost)
    _require(gain > 0 if program.sense is Sense.MAXIMIZE else gain < 0, "the ray does not improve the objective")
    for step, lower, upper in (
        ([value.numerator for value in ray], program.lower, program.upper),
        (activity(program, ray).top, program.rows.lower, program.rows.upper),
    ):
        for value, low, high in zip(step, lower, upper, strict=True):
            _require(value >= 0 or not is_finite(low), "the ray runs into a lower bound")
            _require(value <= 0 or not is_finite(high), "the ray runs into an upper bound")


def _require(holds: Any, otherwise: str) -> None:
    if not holds:
        raise FairoptError(f"the exact backend contradicts itself: {otherwise}; please report the program")

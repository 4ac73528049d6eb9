"""The exact point and multipliers that belong to a simplex basis, and by how much they are wrong.

With J the basic variables and R the rows that are not basic, only the square matrix A[R, J] is solved
(`fairopt.backends.exact.kernel`): basic slacks drop out.

Source: Applegate, Cook, Dash and Espinoza, Exact solutions to linear programming problems, 2007.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.backends.exact.sums import (
    ZERO,
    UnreducedRatios,
    activity,
    excesses,
    finite,
    nonzero,
    reduced_cost,
    signs_of,
    zeros,
)
from fairopt.backends.solution import Basis, Position
from fairopt.program import Array, Program, Sense

#: Seconds that flint takes to solve a dense system of n equations, over n cubed (2.4 s for 800, 19 s for 1,600).
SECONDS_PER_CUBE = 5e-9
#: What takes fewer seconds than this is done even after the deadline: some answer is better than none.
NO_TIME = 0.1
#: Nuclei with more rows than this are out of reach (about two minutes for each of point and multipliers).
LARGEST_NUCLEUS = 3000


class ExactSolveTooLong(Exception):
    """Solving a basis exactly would take longer than there is time; the text says what and how long."""


@dataclass(frozen=True, eq=False)
class Vertex:
    """What belongs to a basis: the point, the row duals, and the largest exact error of each.

    ``activity`` and ``reduced`` are those of ``x`` and ``dual``. ``infeasible`` is the most by which ``x`` leaves a
    bound or row, ``improving`` the largest reduced cost (or dual) with the wrong sign for where the basis puts it.
    """

    basis: Basis
    x: Array
    dual: Array
    activity: UnreducedRatios
    reduced: UnreducedRatios
    infeasible: Fraction
    improving: Fraction

    @property
    def optimal(self) -> bool:
        """Whether neither is wrong."""
        return not self.infeasible and not self.improving


def vertex_of(program: Program, basis: Basis, deadline: float = float("inf")) -> Vertex | None:
    """Return what belongs to ``basis``, None where it is no basis (singular, or of the wrong size).

    Errors: `ExactSolveTooLong` where solving it would run past ``deadline`` or is larger than `LARGEST_NUCLEUS`.
    """
    from fairopt.backends.exact.kernel import Kernel  # flint takes longer to import than all of fairopt

    basis = settled(program, basis)
    inner, tight = np.flatnonzero(basis.columns == Position.BASIC), np.flatnonzero(basis.rows != Position.BASIC)
    if len(inner) != len(tight):
        return None
    kernel = Kernel.of(program, tight, inner)
    if kernel is None:
        return None
    _require_reach(len(kernel.left_rows), deadline)
    x = zeros(len(program.cost))
    outer = np.flatnonzero(basis.columns != Position.BASIC)
    x[outer] = _held(basis.columns[outer], program.lower[outer], program.upper[outer])
    side = _held(basis.rows[tight], program.rows.lower[tight], program.rows.upper[tight])
    if len(nonzero(x)):
        side = side - activity(program, x).reduced()[tight]
    dual = zeros(len(program.rows))
    try:
        x[inner], dual[tight] = kernel.solve(side), kernel.solve_transposed(program.cost[inner])
    except ZeroDivisionError:  # flint's error for a singular matrix
        return None
    reduced = reduced_cost(program, dual)
    values = activity(program, x)
    infeasible = max(excesses(program, x, values).values(), default=ZERO)
    return Vertex(
        basis, x, dual, values, reduced, infeasible, _improving(program, basis, UnreducedRatios.of(dual), reduced)
    )


def _require_reach(size: int, deadline: float) -> None:
    seconds = 2 * SECONDS_PER_CUBE * size**3
    late = seconds > NO_TIME and time.perf_counter() + seconds > deadline
    if size > LARGEST_NUCLEUS or late:
        raise ExactSolveTooLong(f"a nucleus of {size} equations, about {seconds:.1f} s")


def settled(program: Program, basis: Basis) -> Basis:
    """Return ``basis`` with every variable and row that is not basic put at a bound that it has."""
    columns = _settled(basis.columns, program.lower, program.upper)
    return Basis(columns, _settled(basis.rows, program.rows.lower, program.rows.upper))


def slacks(program: Program) -> Basis:
    """Return the basis in which all rows are basic."""
    rows, variables = program.shape
    columns = np.full(variables, Position.LOWER, dtype=np.int8)
    return settled(program, Basis(columns, np.full(rows, Position.BASIC, dtype=np.int8)))


def _settled(position: Array, lower: Array, upper: Array) -> Array:
    below, above = finite(lower), finite(upper)
    anywhere = np.where(below, Position.LOWER, np.where(above, Position.UPPER, Position.ZERO))
    kept = (position == Position.BASIC) | below & (position == Position.LOWER) | above & (position == Position.UPPER)
    return np.where(kept, position, anywhere).astype(np.int8)


def _held(position: Array, lower: Array, upper: Array) -> Array:
    held = zeros(len(position))
    for place, ends in ((Position.LOWER, lower), (Position.UPPER, upper)):
        held[position == place] = ends[position == place]
    return held


def _improving(program: Program, basis: Basis, dual: UnreducedRatios, reduced: UnreducedRatios) -> Fraction:
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    most = ZERO
    for rate, position, lower, upper in (
        (dual, basis.rows, program.rows.lower, program.rows.upper),
        (reduced, basis.columns, program.lower, program.upper),
    ):
        force = sign * signs_of(rate.top)
        wrong = (force != 0) & ((position == Position.ZERO) | ((force < 0) == (position == Position.UPPER)))
        places = [place for place in np.flatnonzero(wrong) if lower[place] != upper[place]]
        most = max([most, *(Fraction(abs(rate.top[place]), rate.bottom[place]) for place in places)])
    return most

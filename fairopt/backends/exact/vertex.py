"""The exact point and multipliers that belong to a simplex basis, and by how much they are wrong.

With J the basic variables and R the rows that are not basic, only the square matrix A[R, J] is solved: basic slacks
drop out. Rows with one variable left and variables with one row left are solved by substitution, in flint's rationals;
what remains, the nucleus, is scaled to whole numbers and solved by flint (p-adic lifting).

Source: Applegate, Cook, Dash and Espinoza, Exact solutions to linear programming problems, 2007; Dixon, Exact solution
of linear equations using p-adic expansions, 1982.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact.sums import ZERO, UnreducedRatios, activity, excesses, finite, nonzero, reduced_cost, zeros
from fairopt.backends.solution import Basis, Position
from fairopt.program import Array, Program, Sense, objects

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
    reduced: Array
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
    basis = settled(program, basis)
    inner, tight = np.flatnonzero(basis.columns == Position.BASIC), np.flatnonzero(basis.rows != Position.BASIC)
    if len(inner) != len(tight):
        return None
    kernel = _Kernel.of(program, tight, inner)
    if kernel is None:
        return None
    kernel.require_reach(deadline)
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
    return Vertex(basis, x, dual, values, reduced, infeasible, _improving(program, basis, dual, reduced))


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


def _improving(program: Program, basis: Basis, dual: Array, reduced: Array) -> Fraction:
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    most = ZERO
    for rate, position, lower, upper in (
        (dual, basis.rows, program.rows.lower, program.rows.upper),
        (reduced, basis.columns, program.lower, program.upper),
    ):
        for place in nonzero(rate):
            force = sign * rate[place]
            wrong = position[place] == Position.ZERO or (force < 0) == (position[place] == Position.UPPER)
            if wrong and lower[place] != upper[place]:
                most = max(most, abs(force))
    return most


@dataclass(frozen=True, eq=False)
class _Kernel:
    """A square sparse matrix, peeled: which equations are solved by substitution, and which are left over.

    ``rows`` and ``columns`` hold the entries {other index: value} in flint's rationals. ``by_row`` are the pivots
    (row, column) whose row had one column left when they were taken, ``by_column`` those whose column had one row
    left, both in the order in which they were taken.
    """

    rows: list[dict[int, Any]]
    columns: list[dict[int, Any]]
    by_row: list[tuple[int, int]]
    by_column: list[tuple[int, int]]
    left_rows: list[int]
    left_columns: list[int]

    @classmethod
    def of(cls, program: Program, tight: Array, inner: Array) -> _Kernel | None:
        """Return A[tight, inner], peeled; None where it is singular for the places of its entries alone."""
        from flint import fmpq

        row_place, column_place = np.full(len(program.rows), -1), np.full(len(program.cost), -1)
        row_place[tight], column_place[inner] = np.arange(len(tight)), np.arange(len(inner))
        given = program.rows
        kept = np.flatnonzero((row_place[given.row] >= 0) & (column_place[given.column] >= 0))
        rows: list[dict[int, Any]] = [{} for _ in tight]
        columns: list[dict[int, Any]] = [{} for _ in inner]
        places = row_place[given.row[kept]].tolist(), column_place[given.column[kept]].tolist()
        for r, j, value in zip(*places, given.value[kept], strict=True):
            rows[r][j] = columns[j][r] = fmpq(value.numerator, value.denominator)
        if not all(rows) or not all(columns):
            return None
        by_row, by_column = _peeled(rows, columns)
        gone = by_row + by_column
        left_rows = sorted(set(range(len(rows))) - {r for r, _ in gone})
        left_columns = sorted(set(range(len(columns))) - {j for _, j in gone})
        return cls(rows, columns, by_row, by_column, left_rows, left_columns)

    def require_reach(self, deadline: float) -> None:
        """Raise `ExactSolveTooLong` where the nucleus is too large for the time that is left."""
        size = len(self.left_rows)
        seconds = 2 * SECONDS_PER_CUBE * size**3
        late = seconds > NO_TIME and time.perf_counter() + seconds > deadline
        if size > LARGEST_NUCLEUS or late:
            raise ExactSolveTooLong(f"a nucleus of {size} equations, about {seconds:.1f} s")

    def solve(self, side: Array) -> Array:
        """Return z with A z = side; errors: `ZeroDivisionError` where A is singular."""
        return _substituted(self.rows, side, self.by_row, (self.left_rows, self.left_columns), self.by_column)

    def solve_transposed(self, side: Array) -> Array:
        """Return y with A.T y = side; errors: `ZeroDivisionError` where A is singular."""
        first, last = [[(j, r) for r, j in pivots] for pivots in (self.by_column, self.by_row)]
        return _substituted(self.columns, side, first, (self.left_columns, self.left_rows), last)


def _peeled(rows: list[dict[int, Any]], columns: list[dict[int, Any]]) -> tuple[list[Any], list[Any]]:
    """Return the pivots (row, column) with one column left in the row, and those with one row left in the column."""
    row_left, column_left = [set(row) for row in rows], [set(column) for column in columns]
    by_row: list[tuple[int, int]] = []
    by_column: list[tuple[int, int]] = []
    queue = [(True, r) for r, left in enumerate(row_left) if len(left) == 1]
    queue += [(False, j) for j, left in enumerate(column_left) if len(left) == 1]
    for of_row, index in queue:  # it grows meanwhile
        left = row_left[index] if of_row else column_left[index]
        if len(left) != 1:
            continue  # taken meanwhile, with another pivot
        (other,) = left
        r, j = (index, other) if of_row else (other, index)
        (by_row if of_row else by_column).append((r, j))
        for column in row_left[r]:
            column_left[column].discard(r)
            if column != j and len(column_left[column]) == 1:
                queue.append((False, column))
        for row in column_left[j]:
            row_left[row].discard(j)
            if len(row_left[row]) == 1:
                queue.append((True, row))
        row_left[r].clear()
        column_left[j].clear()
    return by_row, by_column


def _substituted(
    equations: list[dict[int, Any]],
    side: Array,
    first: list[tuple[int, int]],
    nucleus: tuple[list[int], list[int]],
    last: list[tuple[int, int]],
) -> Array:
    """Solve the equations in an order in which each pivot needs known values only; return Fractions."""
    from flint import fmpq, fmpq_mat

    known: dict[int, Any] = {}

    def rest(equation: int) -> Any:
        total = fmpq(side[equation].numerator, side[equation].denominator)
        for unknown, value in equations[equation].items():
            if unknown in known and known[unknown] != 0:
                total -= value * known[unknown]
        return total

    for equation, unknown in first:
        known[unknown] = rest(equation) / equations[equation][unknown]
    chosen, unknowns = nucleus
    if chosen:
        zero = fmpq(0)
        matrix = fmpq_mat(len(chosen), len(chosen), [equations[e].get(u, zero) for e in chosen for u in unknowns])
        right = fmpq_mat(len(chosen), 1, [rest(equation) for equation in chosen])
        known |= dict(zip(unknowns, matrix.solve(right).entries(), strict=True))
    for equation, unknown in reversed(last):
        known[unknown] = rest(equation) / equations[equation][unknown]
    return objects([Fraction(int(known[place].p), int(known[place].q)) for place in range(len(equations))])

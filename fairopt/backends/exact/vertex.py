"""The exact point and multipliers that belong to a simplex basis, and by how much they are wrong.

With J the basic variables and R the rows that are not basic, only the square matrix A[R, J], the `Kernel`, is solved:
basic slacks drop out. Its rows and columns with at most two entries are eliminated one after the other, in rational
numbers of flint. This never makes the matrix denser, and it eliminates nearly all of the matrices that sharing programs
have. What is left is called the nucleus: flint scales it to whole numbers and solves it by p-adic lifting.

Source: Applegate, Cook, Dash and Espinoza, Exact solutions to linear programming problems, 2007; Markowitz, The
elimination form of the inverse and its application to linear programming, 1957; Dixon, Exact solution of linear
equations using p-adic expansions, 1982.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from fairopt.backends.exact.sums import (
    ZERO,
    UnreducedRatios,
    activity,
    as_fractions,
    excesses,
    finite,
    nonzero,
    reduced_cost,
    signs_of,
    zeros,
)
from fairopt.backends.solution import Basis, Position
from fairopt.errors import NotCapable
from fairopt.program import Array, Program, Sense

#: Seconds that flint takes to solve a dense system of n equations, over n cubed (2.4 s for 800, 19 s for 1,600).
SECONDS_PER_CUBE = 5e-9
#: What takes fewer seconds than this is done even after the deadline: some answer is better than none.
NO_TIME = 0.1
#: Nuclei with more rows than this are out of reach (about two minutes for each of point and multipliers).
LARGEST_NUCLEUS = 3000
NOTHING = fmpq(0)


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

    Errors: `NotCapable` where solving it would run past ``deadline`` or is larger than `LARGEST_NUCLEUS`.
    """
    basis = settled(program, basis)
    inner, tight = np.flatnonzero(basis.columns == Position.BASIC), np.flatnonzero(basis.rows != Position.BASIC)
    if len(inner) != len(tight):
        return None
    kernel = _Kernel.of(program, tight, inner)
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
        raise NotCapable(f"a nucleus of {size} equations, about {seconds:.1f} s")


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


# -- the square matrix of a basis, factored ----------------------------------------------------------------------------
@dataclass(frozen=True)
class _Pivot:
    """One step of the elimination: the equation ``row`` gives the unknown ``column``, whose entry in it is ``value``.

    ``right``: the other unknowns of the equation, each with its entry. ``below``: the other equations that had the
    unknown, each with the multiple of this equation that was subtracted from it.
    """

    row: int
    column: int
    value: Any
    right: list[tuple[int, Any]]
    below: list[tuple[int, Any]]


@dataclass(frozen=True, eq=False)
class _Kernel:
    """A square sparse matrix, factored: ``pivots`` in the order in which they were taken, and the nucleus that is left.

    ``rows``: the entries by column that are left in each row. ``left_rows`` and ``left_columns``: those of the nucleus.
    """

    pivots: list[_Pivot]
    rows: list[dict[int, Any]]
    left_rows: list[int]
    left_columns: list[int]

    @classmethod
    def of(cls, program: Program, tight: Array, inner: Array) -> _Kernel | None:
        """Return the rows ``tight`` and columns ``inner`` of the program's matrix, factored.

        None where the elimination shows that they are singular; where the nucleus is, `solve` says so.
        """
        row_place, column_place = np.full(len(program.rows), -1), np.full(len(program.cost), -1)
        row_place[tight], column_place[inner] = np.arange(len(tight)), np.arange(len(inner))
        given = program.rows
        kept = np.flatnonzero((row_place[given.row] >= 0) & (column_place[given.column] >= 0))
        rows: list[dict[int, Any]] = [{} for _ in tight]
        columns: list[set[int]] = [set() for _ in inner]
        places = row_place[given.row[kept]].tolist(), column_place[given.column[kept]].tolist()
        for r, j, value in zip(*places, given.value[kept], strict=True):
            rows[r][j] = fmpq(value.numerator, value.denominator)
            columns[j].add(r)
        pivots = _eliminated(rows, columns)
        left_rows = [r for r, row in enumerate(rows) if row]
        left_columns = [j for j, column in enumerate(columns) if column]
        regular = len(left_rows) == len(left_columns) == len(tight) - len(pivots)
        return cls(pivots, rows, left_rows, left_columns) if regular else None

    @cached_property
    def nucleus(self) -> Any:
        """What the pivots leave, as a dense matrix of flint's."""
        entries = [self.rows[r].get(j, NOTHING) for r in self.left_rows for j in self.left_columns]
        return fmpq_mat(len(self.left_rows), len(self.left_columns), entries)

    def solve(self, side: Array) -> Array:
        """Return z with A z = side; errors: `ZeroDivisionError` where A is singular."""
        rest, known = _flint(side), [NOTHING] * len(side)
        for pivot in self.pivots:
            if (value := rest[pivot.row]) != 0:
                for row, part in pivot.below:
                    rest[row] -= part * value
        self._solve_nucleus(self.nucleus, rest, self.left_rows, known, self.left_columns)
        for pivot in reversed(self.pivots):
            total = rest[pivot.row]
            for column, value in pivot.right:
                total -= value * known[column]
            known[pivot.column] = total / pivot.value
        return as_fractions(known)

    def solve_transposed(self, side: Array) -> Array:
        """Return y with A.T y = side; errors: `ZeroDivisionError` where A is singular."""
        rest, known = _flint(side), [NOTHING] * len(side)
        for pivot in self.pivots:
            known[pivot.row] = factor = rest[pivot.column] / pivot.value
            if factor != 0:
                for column, value in pivot.right:
                    rest[column] -= value * factor
        self._solve_nucleus(self.nucleus.transpose(), rest, self.left_columns, known, self.left_rows)
        for pivot in reversed(self.pivots):
            for row, part in pivot.below:
                known[pivot.row] -= part * known[row]
        return as_fractions(known)

    @staticmethod
    def _solve_nucleus(
        matrix: Any, rest: list[Any], equations: list[int], known: list[Any], unknowns: list[int]
    ) -> None:
        if equations:
            found = matrix.solve(fmpq_mat(len(equations), 1, [rest[place] for place in equations])).entries()
            for place, value in zip(unknowns, found, strict=True):
                known[place] = value


def _flint(values: Array) -> list[Any]:
    return [fmpq(value.numerator, value.denominator) for value in values]


def _eliminated(rows: list[dict[int, Any]], columns: list[set[int]]) -> list[_Pivot]:
    """Eliminate rows and columns with at most two entries, and return the pivots; ``rows`` and ``columns`` change.

    The pivot that changes the fewest other entries is taken first.
    """
    pivots: list[_Pivot] = []
    queue: list[tuple[int, bool, int]] = []

    def cheapest(of_row: bool, index: int) -> tuple[int, int, int] | None:
        """Return the row and column of a line's cheapest pivot, after the number of other entries that it changes.

        A line is a row or a column. None where it has more than two entries, or none any more.
        """
        if of_row:
            row = rows[index]
            return min(((len(columns[j]) - 1) * (len(row) - 1), index, j) for j in row) if 0 < len(row) < 3 else None
        column = columns[index]
        return min(((len(rows[r]) - 1) * (len(column) - 1), r, index) for r in column) if 0 < len(column) < 3 else None

    def enqueue(of_row: bool, index: int) -> None:
        if (best := cheapest(of_row, index)) is not None:
            heapq.heappush(queue, (best[0], of_row, index))

    for of_row, lines in ((True, rows), (False, columns)):
        for index in range(len(lines)):
            enqueue(of_row, index)
    while queue:
        cost, of_row, index = heapq.heappop(queue)
        best = cheapest(of_row, index)
        if best is None:
            continue  # it was eliminated with another line, or has more than two entries now
        if best[0] > cost:
            heapq.heappush(queue, (best[0], of_row, index))
            continue
        _, r, j = best
        row, below = rows[r], []
        value = row.pop(j)
        rows[r] = {}
        for column in row:
            columns[column].discard(r)
        columns[j].discard(r)
        for other in columns[j]:
            line = rows[other]
            part = line.pop(j) / value
            below.append((other, part))
            for column, entry in row.items():
                changed = line.get(column, NOTHING) - part * entry
                if changed == 0:
                    del line[column]
                    columns[column].discard(other)
                else:
                    line[column] = changed
                    columns[column].add(other)
            enqueue(True, other)
        columns[j] = set()
        for column in row:
            enqueue(False, column)
        pivots.append(_Pivot(r, j, value, list(row.items()), below))
    return pivots

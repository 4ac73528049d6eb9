"""The square matrix of a simplex basis, factored exactly; it solves A z = b and A.T y = c.

Rows and columns with at most two entries are eliminated one after the other, in rational numbers of flint. This never
makes the matrix denser, and it eliminates nearly all of the matrices that sharing programs have. What is left is called
the nucleus: flint scales it to whole numbers and solves it by p-adic lifting.

Source: Markowitz, The elimination form of the inverse and its application to linear programming, 1957; Dixon, Exact
solution of linear equations using p-adic expansions, 1982.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from fairopt.backends.exact.sums import as_fractions
from fairopt.program import Array, Program

NOTHING = fmpq(0)


@dataclass(frozen=True)
class Pivot:
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
class Kernel:
    """A square sparse matrix, factored: ``pivots`` in the order in which they were taken, and the nucleus that is left.

    ``rows``: the entries by column that are left in each row. ``left_rows`` and ``left_columns``: those of the nucleus.
    """

    pivots: list[Pivot]
    rows: list[dict[int, Any]]
    left_rows: list[int]
    left_columns: list[int]

    @classmethod
    def of(cls, program: Program, tight: Array, inner: Array) -> Kernel | None:
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


def _eliminated(rows: list[dict[int, Any]], columns: list[set[int]]) -> list[Pivot]:
    """Eliminate rows and columns with at most two entries, and return the pivots; ``rows`` and ``columns`` change.

    The pivot that changes the fewest other entries is taken first.
    """
    pivots: list[Pivot] = []
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
        pivots.append(Pivot(r, j, value, list(row.items()), below))
    return pivots

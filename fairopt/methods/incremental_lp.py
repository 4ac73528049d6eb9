"""A linear program that grows: rows and columns are added to a loaded HiGHS, which goes on from its last basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.errors import NotSolved
from fairopt.program import INFINITY, Array

if TYPE_CHECKING:
    import highspy

#: Feasibility and optimality tolerances. At HiGHS's least, `FINE`, it can end without a status after many seconds where
#: numbers are far apart. What they leave, the proofs count.
TOLERANCE, FINE = 1e-9, 1e-10
#: So often what is left of a basis' equations is solved again; a vertex further than this from HiGHS's is not taken.
REFINED, NEAR = 2, 1e-6
#: HiGHS's numbers for the primal simplex and for its own choice.
PRIMAL, CHOOSE = 4, 0


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows (or columns) of a matrix one after another: where each starts, and the places and values of its entries."""

    start: Array
    index: Array
    value: Array

    @classmethod
    def of(cls, index: Array, value: Array) -> Sparse:
        """Return the rows of a table (q, e) of places and values; a place of -1 or a value of 0 is no entry."""
        there = (index >= 0) & (value != 0)
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1))[:-1]]) if len(index) else np.zeros(0)
        return cls(start.astype(np.int32), index[there].astype(np.int32), value[there].astype(float))

    @classmethod
    def joined(cls, parts: Sequence[Sparse]) -> Sparse:
        """Return the rows of all parts, one part after another."""
        shift = np.cumsum([0, *(len(part.index) for part in parts)])
        start = np.concatenate([part.start + by for part, by in zip(parts, shift, strict=False)])
        index, value = (np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "value"))
        return cls(start.astype(np.int32), index.astype(np.int32), value)

    def __len__(self) -> int:
        return len(self.start)


class GrowingProgram:
    """Maximise cost . x over x >= 0 subject to rows with bounds; both can be added to.

    ``primal`` asks for the primal simplex, which is right where columns are what is added.
    """

    def __init__(self, cost: Array, lower: Array, upper: Array, rows: Sparse, *, primal: bool = False) -> None:
        import highspy

        self._highs: highspy.Highs = highspy.Highs()
        # small and started from a basis most of the time: presolve would cost more than it saves
        for name, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("simplex_strategy", PRIMAL if primal else CHOOSE),
            ("primal_feasibility_tolerance", TOLERANCE if primal else FINE),
            ("dual_feasibility_tolerance", TOLERANCE if primal else FINE),
        ):
            self._highs.setOptionValue(name, value)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(cost), len(rows)
        program.sense_ = highspy.ObjSense.kMaximize
        program.col_cost_, program.col_lower_ = cost, np.zeros(len(cost))
        program.col_upper_ = np.full(len(cost), INFINITY)
        program.row_lower_, program.row_upper_ = lower, upper
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.append(rows.start, len(rows.index)).astype(np.int32)
        program.a_matrix_.index_, program.a_matrix_.value_ = rows.index, rows.value
        self._highs.passModel(program)
        self._rows, self._bounds = [rows], [(lower, upper)]
        self.iterations = 0

    def add_rows(self, lower: Array, upper: Array, rows: Sparse) -> None:
        """Add rows; each is basic, so that the last basis stays one."""
        self._rows.append(rows)
        self._bounds.append((lower, upper))
        self._highs.addRows(len(rows), lower, upper, len(rows.index), rows.start, rows.index, rows.value)

    def add_columns(self, cost: Array, columns: Sparse) -> None:
        """Add variables that are not negative; each is at zero, so that the last basis stays one."""
        count = len(columns)
        none, free = np.zeros(count), np.full(count, INFINITY)
        self._highs.addCols(count, cost, none, free, len(columns.index), columns.start, columns.index, columns.value)

    def start(self, columns: Array, rows: Array) -> None:
        """Start from a basis: positions as in `Basis`, by HiGHS's own numbers (0 lower, 1 basic, 2 upper)."""
        import highspy

        kinds = (highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kBasic, highspy.HighsBasisStatus.kUpper)
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status = [kinds[i] for i in columns], [kinds[i] for i in rows]
        basis.valid = True
        self._highs.setBasis(basis)

    def basis(self) -> tuple[Array, Array]:
        """Return the last basis in the form that `start` takes."""
        basis = self._highs.getBasis()
        columns, rows = (
            np.array([int(status) for status in statuses], dtype=np.int8)
            for statuses in (basis.col_status, basis.row_status)
        )
        return columns, rows

    def polished(self, x: Array) -> Array:
        """Return the vertex of the last basis to the last digits, where it can be had near ``x``; else ``x``.

        Only rows may have been added. What HiGHS leaves of a vertex is 1e-10; solving the basis' equations, and once
        more for what is left of them in longer numbers, leaves 1e-16.
        """
        columns, positions = self.basis()
        basic, tight = np.flatnonzero(columns == 1), np.flatnonzero(positions != 1)
        if len(basic) != len(tight) or not len(basic):
            return x
        rows = Sparse.joined(self._rows)
        lower, upper = (np.concatenate(side) for side in zip(*self._bounds, strict=True))
        side = np.where(positions == 2, upper, lower)[tight]
        place = np.full(len(columns), -1)
        place[basic] = np.arange(len(basic))
        ends = np.append(rows.start[1:], len(rows.index))
        counts = (ends - rows.start)[tight]
        entry = np.repeat(rows.start[tight] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        entry += np.arange(len(entry))
        row, column = np.repeat(np.arange(len(tight)), counts), place[rows.index[entry]]
        held = column >= 0
        row, column, value = row[held], column[held], rows.value[entry][held]
        matrix = np.zeros((len(tight), len(basic)))
        matrix[row, column] = value
        try:
            found = np.linalg.solve(matrix, side)
            exactly = value.astype(np.longdouble)
            for _ in range(REFINED):
                left = side.astype(np.longdouble)
                np.subtract.at(left, row, exactly * found[column])
                found = found + np.linalg.solve(matrix, left.astype(float))
        except np.linalg.LinAlgError:
            return x
        near = np.abs(found - x[basic]) <= NEAR * max(1.0, float(x.max(initial=0.0)))
        if not (np.isfinite(found).all() and near.all()):
            return x
        polished = np.zeros_like(x)
        polished[basic] = np.maximum(found, 0.0)
        return polished

    def solve(self) -> tuple[Array, Array]:
        """Return the optimal x and the duals of the rows, d objective / d bound; `NotSolved` where there is none."""
        import highspy

        self._highs.run()
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            # a basis from before can mislead: once more from nothing
            self._highs.setOptionValue("presolve", "on")
            self._highs.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
            self._highs.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
            self._highs.clearSolver()
            self._highs.run()
            status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raw = self._highs.modelStatusToString(status)
            solution = Solution(status=Status.FAILED, raw_status=raw, backend="highs")
            raise NotSolved(f"HiGHS ended a part of the program with {raw}", solution)
        self.iterations += max(0, int(self._highs.getInfo().simplex_iteration_count))
        solution_ = self._highs.getSolution()
        return np.maximum(solution_.col_value, 0.0), np.array(solution_.row_dual)

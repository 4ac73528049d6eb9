"""Linear programs that the methods build block by block, load into HiGHS once, and solve again after adding to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fairopt.backends.bases import basis_of, set_basis
from fairopt.backends.highs import instance, load
from fairopt.backends.solution import Basis, Position, Solution, Status
from fairopt.backends.solver import Options
from fairopt.deadline import left
from fairopt.errors import NotSolved
from fairopt.program import INFINITY, Array, Program, Sense
from fairopt.program.program import Block, Rows

if TYPE_CHECKING:
    import highspy

#: The least feasibility and optimality tolerance of HiGHS, and the one for a second attempt: with the first HiGHS can
#: end without a status where numbers are far apart. What either leaves, the proofs count.
FINE, TOLERANCE = 1e-10, 1e-9
#: How often the equations of a basis are solved again for what is left of them. A vertex that then differs from
#: HiGHS's by more than `NEAR` is not taken.
REFINED, NEAR = 2, 1e-6
#: Positions in a basis as plain integers, which NumPy compares with faster.
LOWER, BASIC, UPPER, ZERO = (int(position) for position in Position)
#: HiGHS's numbers for the ways of its simplex: its own choice, the dual, which is its default, and the primal.
CHOOSE, DUAL, PRIMAL = 0, 1, 4
#: HiGHS's number for rows and columns that are divided by their largest entries.
BY_LARGEST = 4
#: How many times the non-zeros of the first program those of the last one may be.
GROWS = 4


#: Entries of a matrix: rows, columns and values. Those of a table (q, e) stand line by line.
Entries = tuple[Array, Array, Array]


def entries_of(place: Array, value: Array) -> Entries:
    """Return the line, the place and the value of each entry of a table (q, e) of places, where -1 is none."""
    there = (place >= 0) & (value != 0)
    return np.nonzero(there)[0], place[there], value[there]


class Blocks:
    """A program in the making: `columns` and `rows` return their numbers, which `entries` and a solution go by."""

    def __init__(self) -> None:
        self._columns: list[tuple[Array, ...]] = []
        self._rows: list[tuple[Array, ...]] = []
        self._entries: list[tuple[Array, Array, Array]] = []
        self._count = {"columns": 0, "rows": 0}

    def columns(
        self, gain: Array, lower: Array | float = 0.0, upper: Array | float = INFINITY, *, integer: bool = False
    ) -> Array:
        """Add a variable for each ``gain``, its coefficient in the objective, and return their numbers."""
        size = len(gain)
        self._columns.append((gain, *(_filled(each, size) for each in (lower, upper)), np.full(size, integer)))
        return self._numbered("columns", size)

    def rows(self, lower: Array | float, upper: Array | float, size: int) -> Array:
        """Add ``size`` rows between bounds, without entries as yet, and return their numbers."""
        self._rows.append((_filled(lower, size), _filled(upper, size)))
        return self._numbered("rows", size)

    def entries(self, row: Array, column: Array, value: Array) -> None:
        """Set the coefficients of ``column`` in ``row``, each pair once; zeros are left out."""
        self._entries.append((row, column, value))

    def program(self, name: str, sense: Sense = Sense.MAXIMIZE) -> Program:
        """Return the program."""
        gain, lower, upper, integer = (np.concatenate(part) for part in zip(*self._columns, strict=True))
        least, most = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        row, column, value = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        order = np.argsort(row * len(gain) + column)
        order = order[value[order] != 0]
        rows = Rows(row[order], column[order], value[order], least, most)
        objective = Block("objective", (), 0, 0)
        return Program(name, sense, gain.astype(float), 0.0, lower, upper, integer, rows, (), (), objective)

    def _numbered(self, what: str, size: int) -> Array:
        first = self._count[what]
        self._count[what] += size
        return np.arange(first, first + size)


def _filled(value: Array | float, size: int) -> Array:
    return value.astype(float) if isinstance(value, np.ndarray) else np.full(size, float(value))


class IncrementalLP:
    """A linear program in HiGHS to which rows and columns can be added; each solve goes on from the last basis.

    ``strategy``: of the simplex; `PRIMAL` is right where columns are added. ``tolerance``: of the first attempt; a
    second one, from nothing and with presolve, has ``second``, and a third one scales the numbers another way.
    ``presolve`` costs more than it saves where a program is small or starts from a basis. After each solve ``x`` are
    the variables, ``dual`` the rows' duals (d objective / d bound), and ``reduced`` the reduced costs.
    """

    def __init__(
        self,
        program: Program,
        *,
        strategy: int = DUAL,
        presolve: bool = False,
        tolerance: float = FINE,
        second: float = TOLERANCE,
    ) -> None:
        self._highs: highspy.Highs = instance(Options(tolerance=tolerance), GROWS * len(program.rows.value))
        self._highs.setOptionValue("presolve", "choose" if presolve else "off")
        self._highs.setOptionValue("simplex_strategy", strategy)
        load(self._highs, program)
        self._program = program
        # a basis from before can mislead, and tolerances can be too small for the numbers: once more from nothing
        coarser = {"primal_feasibility_tolerance": second, "dual_feasibility_tolerance": second}
        scaled = {"simplex_strategy": DUAL, "simplex_scale_strategy": BY_LARGEST}
        self._others = {"presolve": "on", **coarser}, scaled
        #: Rows that were added: entries, and bounds.
        self._added: list[tuple[Entries, Array, Array]] = []
        self.iterations = 0
        self.x: Array = np.zeros(0)
        self.dual: Array = self.x
        self.reduced: Array = self.x

    def add_rows(self, lower: Array, upper: Array, entries: Entries) -> None:
        """Add rows; each is basic, so that the last basis stays one. Errors: `NotSolved` where they are no numbers.

        ``entries`` say by rising numbers, from 0, in which of the new rows they are.
        """
        self._added.append((entries, lower, upper))
        self._require(self._highs.addRows(len(lower), lower, upper, *_packed(len(lower), entries)))

    def add_columns(self, gain: Array, entries: Entries) -> None:
        """Add variables that are not negative; each is at zero, so that the last basis stays one. Errors: as above.

        ``entries`` begin with the numbers of the new columns, from 0 and rising, and go on with their rows.
        """
        none, free = np.zeros(len(gain)), np.full(len(gain), INFINITY)
        self._require(self._highs.addCols(len(gain), gain, none, free, *_packed(len(gain), entries)))

    def change_gains(self, columns: Array, gain: Array) -> None:
        """Change what variables count in the objective; the last basis stays one. Errors: as above."""
        self._require(self._highs.changeColsCost(len(columns), columns.astype(np.int32), gain))

    def _require(self, status: highspy.HighsStatus) -> None:
        """Refuse what HiGHS did not take: what is built on a wrong answer may be no number."""
        import highspy

        if status == highspy.HighsStatus.kError:
            raise NotSolved(f"HiGHS did not take what was added to {self._program.name}")

    def start(self, columns: Array, rows: Array) -> None:
        """Start from a basis: a `Position` for each column and each row."""
        set_basis(self._highs, Basis(columns, rows))

    def basis(self) -> tuple[Array, Array]:
        """Return the last basis in the form that `start` takes."""
        basis = basis_of(self._highs)
        assert basis is not None  # it was solved
        return basis.columns, basis.rows

    def solve(self) -> None:
        """Go to an optimal vertex. Errors: `NotSolved` where three attempts come to none, `OutOfTime`."""
        found = self._run()
        for attempt in self._others:
            if found is not None:
                break
            for name, value in attempt.items():
                self._highs.setOptionValue(name, value)
            self._highs.clearSolver()
            found = self._run()
        if found is None:
            word = self._highs.modelStatusToString(self._highs.getModelStatus())
            failed = Solution(status=Status.FAILED, raw_status=word, backend="highs")
            raise NotSolved(f"HiGHS ended {self._program.name} with {word}", failed)
        self.iterations += max(0, self._highs.getInfoValue("simplex_iteration_count")[1])
        self.x, self.dual, self.reduced = found

    def _run(self) -> tuple[Array, Array, Array] | None:
        """Return variables, duals and reduced costs of an optimal vertex; None where HiGHS comes to none."""
        import highspy

        if (seconds := left()) is not None:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + seconds)
        self._highs.run()
        left()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found = self._highs.getSolution()
        if not found.value_valid or not found.dual_valid:
            return None
        return np.array(found.col_value), np.array(found.row_dual), np.array(found.col_dual)

    @property
    def total(self) -> float:
        """The objective at the vertex."""
        return float(self._program.cost @ self.x)

    def polish(self, most: int | None = None) -> None:
        """Take the vertex of the last basis to the last digits where it can be had near the one that HiGHS returned.

        Only rows may have been added. HiGHS leaves errors of the size of its tolerances. Solving the equations of the
        basis by its factors, and solving again for what is left of them in longer numbers, leaves about 1e-16. Bases
        with more than ``most`` rows are left as they are.
        """
        columns, positions = self.basis()
        basic, tight = columns == BASIC, positions != BASIC
        if basic.sum() != tight.sum() or not basic.any() or (most is not None and len(positions) > most):
            return
        row, column, value, sides = self._table()
        at_side = np.where(columns == UPPER, self._program.upper, self._program.lower)
        fixed = np.where(basic | (columns == ZERO), 0.0, at_side)
        held_fixed = np.bincount(row, value * fixed[column], minlength=len(positions))
        side = np.where(positions == UPPER, sides[1], sides[0]) - held_fixed
        inside = tight[row] & basic[column]
        r, c, entry = row[inside], column[inside], value[inside].astype(np.longdouble)
        gain = self._program.cost
        order = self._highs.getBasicVariables()[1]
        held, slots = order >= 0, np.maximum(order, 0)
        point, multipliers = np.zeros(len(columns)), np.zeros(len(positions))
        for refined in range(1 + REFINED):
            left, short = np.where(tight, side, 0.0).astype(np.longdouble), gain.astype(np.longdouble)
            if refined:
                np.subtract.at(left, r, entry * point[c])
                np.subtract.at(short, c, entry * multipliers[r])
            point[order[held]] += _solved(self._highs.getBasisSolve, left)[held]
            more = _solved(self._highs.getBasisTransposeSolve, np.where(held, short[slots], 0.0))
            multipliers += np.where(tight, more, 0.0)
        near = np.abs(point - self.x)[basic] <= NEAR * max(1.0, float(np.abs(self.x).max()))
        if not (np.isfinite(multipliers).all() and near.all()):
            return
        reduced = gain - np.bincount(column, value * multipliers[row], minlength=len(gain))
        self.x, self.dual, self.reduced = np.where(basic, point, fixed), multipliers, reduced

    def _table(self) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """Return row, column and value of all entries, added rows included, and the rows' bounds."""
        rows = self._program.rows
        if not self._added:
            return rows.row, rows.column, rows.value, (rows.lower, rows.upper)
        parts, first = [(rows.row, rows.column, rows.value, rows.lower, rows.upper)], len(rows)
        for (line, place, entry), lower, upper in self._added:
            parts.append((line + first, place, entry, lower, upper))
            first += len(lower)
        row, column, value, lower, upper = (np.concatenate(part) for part in zip(*parts, strict=True))
        return row, column, value, (lower, upper)


def _packed(count: int, entries: Entries) -> tuple[int, Array, Array, Array]:
    """Return how many entries there are, where each of ``count`` lines begins, their places, and their values."""
    line, place, value = entries
    start = np.searchsorted(line, np.arange(count)).astype(np.int32)
    return len(line), start, place.astype(np.int32), value.astype(float)


def places(size: int, which: Array) -> Array:
    """Return for each of ``size`` things its place among ``which``, -1 where it is not there."""
    place = np.full(size, -1)
    place[which] = np.arange(len(which))
    return place


def _solved(solve: Callable[[Array], tuple[highspy.HighsStatus, Array]], side: Array) -> Array:
    """Return what HiGHS's factors make of a right side; no numbers where they fail."""
    import highspy

    # HiGHS drops what is tiny, so that a small side is solved for in units of its own
    unit = float(np.abs(side).max())
    status, found = solve((side / unit).astype(float) if unit else side.astype(float))
    return np.full(len(found), np.nan) if status == highspy.HighsStatus.kError else unit * found

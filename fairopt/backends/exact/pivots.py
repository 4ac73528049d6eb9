"""Exact simplex bases: solve one in rationals, judge it without tolerance, and pivot until it is right.

The form worked on: minimise ``cost @ x`` with ``A x - s = 0``, where each entry of (x, s) has one bound, which it may
leave one way, no bound, or a fixed value. Where there are two bounds, the upper one has a row of its own, so that rules
that are proven finite for one-sided bounds apply as they are. With J the basic variables and R the rows whose slack is
not basic, only the square matrix A[R, J] is ever solved: basic slacks drop out.

Source: Terlaky, A convergent criss-cross method, 1985; Fukuda and Terlaky, Criss-cross methods: a fresh view on pivot
algorithms, 1997; Zhang, New variants of finite criss-cross pivot algorithms for linear programming, 1999 (the order of
the entries: those that moved last come first).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from fairopt.backends.exact.sums import as_fractions
from fairopt.backends.exact.vertex import settled
from fairopt.backends.solution import Basis, Position, Solution, Status
from fairopt.program import INFINITY, Program, Sense

ZERO = fmpq(0)


class _OneSided:
    """A program in the form worked on, and the way back; numbers are flint's rationals.

    ``matrix`` holds {column: value} row by row: a row for each of the program, and one that holds the upper side for
    each row and each variable with two different finite sides. ``above`` maps such an entry of the program (a variable,
    or variables + row) to the added slack. ``bound`` and ``way``: one entry a variable, then one a row (its slack); the
    way is how it may leave its bound: 1 up, -1 down, 0 both ways since it has none, None no way since it is fixed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        rows = program.rows
        self.rows, self.variables = program.shape
        self.matrix: list[dict[int, Any]] = [{} for _ in range(self.rows)]
        for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value.tolist(), strict=True):
            self.matrix[r][j] = _flint(value)
        self.way: list[int | None] = []
        self.bound: list[Any] = []
        tops: list[tuple[int, Any]] = []
        sides = zip([*program.lower, *rows.lower], [*program.upper, *rows.upper], strict=True)
        for entry, (low, high) in enumerate(sides):
            if low == high:
                self.way.append(None)
            elif low != -INFINITY:
                self.way.append(1)
                tops += [(entry, _flint(high))] if high != INFINITY else []
            else:
                self.way.append(-1 if high != INFINITY else 0)
            held = low if low != -INFINITY else high
            self.bound.append(ZERO if held == INFINITY else _flint(held))
        self.above = {entry: self.variables + self.rows + place for place, (entry, _) in enumerate(tops)}
        for entry, top in tops:
            self.matrix.append({entry: fmpq(1)} if entry < self.variables else self.matrix[entry - self.variables])
            self.way.append(-1)
            self.bound.append(top)
        sign = -1 if program.sense is Sense.MAXIMIZE else 1
        self.cost = [sign * _flint(value) for value in program.cost]

    def basic(self, basis: Basis | None) -> set[int]:
        """Return the basic entries of the form that ``basis`` means; of None, the slacks."""
        slacks = set(range(self.variables, self.variables + len(self.matrix)))
        if basis is None:
            return slacks
        position = [*basis.columns.tolist(), *basis.rows.tolist()]
        out = {entry for entry, place in enumerate(position) if place == Position.BASIC} | set(self.above.values())
        for entry, top in self.above.items():
            if position[entry] == Position.UPPER:  # held by the added slack; the entry itself is free to be solved for
                out = (out - {top}) | {entry}
        return out

    def answer(self, end: Status, state: _Tableau, pivots: int, ray: Sequence[Any] = ()) -> Solution:
        """Return where pivoting ended, in terms of the program and in Fractions."""
        place = np.full(self.variables + self.rows, Position.LOWER)
        place[[entry for entry in state.basic if entry < len(place)]] = Position.BASIC
        place[[entry for entry, top in self.above.items() if top not in state.basic]] = Position.UPPER
        given = as_fractions(state.proof if end is Status.INFEASIBLE else state.dual)
        multipliers = given[: self.rows].copy()
        for entry, top in self.above.items():  # those of added rows join the row that they came from
            if entry >= self.variables:
                multipliers[entry - self.variables] += given[top - self.variables]
        return Solution(
            end,
            end.value,
            "exact pivots",
            x=as_fractions(state.x),
            dual=multipliers,
            ray=as_fractions(ray),
            basis=settled(self.program, Basis(place[: self.variables], place[self.variables :])),
            effort={"pivots": pivots},
        )


def pivoted(program: Program, basis: Basis | None, deadline: float = float("inf"), most: int | None = None) -> Solution:
    """Go from a basis to the end, by the last-in-first-out criss-cross method: OPTIMAL, INFEASIBLE, UNBOUNDED or LIMIT.

    It needs neither feasibility nor a phase one, and no basis comes twice. What is not a basis is repaired first. It
    ends with LIMIT at ``deadline`` (on the clock of `time.perf_counter`) and after ``most`` pivots. ``x`` belongs to
    the last basis; ``dual`` are the row duals of a minimisation, and multipliers that prove it where it is INFEASIBLE;
    ``ray`` is a direction without end where it is UNBOUNDED.
    """
    form = _OneSided(program)
    end, state, pivots = _to_the_end(form, form.basic(basis), deadline, most)
    if end is not Status.UNBOUNDED:
        return form.answer(end, state, pivots)
    # an infeasible dual leaves open whether the primal has a point: ask for any point, with all costs 0
    free = copy(form)
    free.cost = [ZERO] * form.variables
    found, point, more = _to_the_end(free, state.basic, deadline, most)
    return form.answer(Status.UNBOUNDED if found is Status.OPTIMAL else found, point, pivots + more, state.ray)


def _to_the_end(
    form: _OneSided, basic: Iterable[int], deadline: float, most: int | None
) -> tuple[Status, _Tableau, int]:
    """Return how pivoting from basic entries ended, the last basis, and how many pivots that took."""
    order = list(range(len(form.way)))
    state = _Tableau(form, _repaired(form, set(basic)), order)
    pivots = 0
    while not isinstance(step := state.next_pivot(), Status):
        if time.perf_counter() > deadline or pivots == most:
            return Status.LIMIT, state, pivots
        leaving, entering = step
        for moved in step:
            order.remove(moved)
            order.insert(0, moved)
        state = _Tableau(form, (state.basic - {leaving}) | {entering}, order)
        pivots += 1
    return step, state, pivots


class _Tableau:
    """One basis, with its primal and dual values; a row or column of the tableau is solved for when asked.

    ``order``: all entries; of two that would do, the one that stands first is taken.
    """

    def __init__(self, form: _OneSided, basic: frozenset[int], order: list[int]) -> None:
        self.form, self.basic, self.order = form, basic, order
        first = form.variables
        self.inner = sorted(j for j in basic if j < first)  # J
        self.tight = [r for r in range(len(form.matrix)) if first + r not in basic]  # R
        self._kernel = _matrix(form, self.tight, self.inner)
        self._turned = self._kernel.transpose()
        self.x = self._primal()
        self.activity = [_dot(row, self.x) for row in form.matrix]
        self.dual = self._multipliers([form.cost[j] for j in self.inner])
        self.rate = self._rates(form.cost, self.dual)
        self.ray: list[Any] = []
        self.proof: list[Any] = []

    def next_pivot(self) -> Status | tuple[int, int]:
        """Return (leaving, entering), or how it ended: the first entry that is wrong, with the first that helps."""
        for index in self.order:
            wrong = self._infeasible(index) if index in self.basic else self._improving(index)
            if wrong:
                return self._leave(index, wrong) if index in self.basic else self._enter(index, wrong)
        return Status.OPTIMAL

    def _infeasible(self, index: int) -> int:
        """Return the direction (1 or -1) in which a basic entry must move to hold its bound, 0 if it does."""
        way = self.form.way[index]
        if way == 0:
            return 0
        short = self.form.bound[index] - self._value(index)
        if way is None:
            return int(short > 0) - int(short < 0)
        return way if short * way > 0 else 0

    def _improving(self, index: int) -> int:
        """Return the direction in which moving a non-basic entry would lower the cost, 0 if there is none."""
        way, rate = self.form.way[index], self.rate[index]
        if way is None or rate == 0:
            return 0
        down = -1 if rate > 0 else 1
        return down if way in (0, down) else 0

    def _leave(self, leaving: int, direction: int) -> Status | tuple[int, int]:
        form, first = self.form, self.form.variables
        own = {leaving: fmpq(1)} if leaving < first else form.matrix[leaving - first]
        multipliers = self._multipliers([own.get(j, ZERO) for j in self.inner])
        effect = self._rates([own.get(j, ZERO) for j in range(first)], multipliers)
        for entering in self.order:
            change, way = effect[entering], form.way[entering]
            if entering in self.basic or change == 0 or way is None:
                continue
            if way == 0 or change * way * direction > 0:
                return leaving, entering
        # no entry can move it on: with the row's own weight, the multipliers contradict the bounds
        self.proof = [-value for value in multipliers]
        if leaving >= first:
            self.proof[leaving - first] = fmpq(1)
        return Status.INFEASIBLE

    def _enter(self, entering: int, direction: int) -> Status | tuple[int, int]:
        form, first = self.form, self.form.variables
        ray = [ZERO] * first
        if entering < first:
            ray[entering] = fmpq(direction)
            side = [-form.matrix[r].get(entering, ZERO) * direction for r in self.tight]
        else:
            side = [fmpq(direction) if first + r == entering else ZERO for r in self.tight]
        for j, change in zip(self.inner, _solved(self._kernel, side), strict=True):
            ray[j] = change
        for leaving in self.order:
            if leaving not in self.basic:
                continue
            way = form.way[leaving]
            change = ray[leaving] if leaving < first else _dot(form.matrix[leaving - first], ray)
            if way == 0 or change == 0:
                continue
            if way is None or change * way < 0:
                return leaving, entering
        self.ray = ray
        return Status.UNBOUNDED

    def _value(self, index: int) -> Any:
        first = self.form.variables
        return self.x[index] if index < first else self.activity[index - first]

    def _primal(self) -> list[Any]:
        form, first = self.form, self.form.variables
        x = [ZERO if j in self.basic else form.bound[j] for j in range(first)]
        solved = _solved(self._kernel, [form.bound[first + r] - _dot(form.matrix[r], x) for r in self.tight])
        for j, value in zip(self.inner, solved, strict=True):
            x[j] = value
        return x

    def _multipliers(self, weight: list[Any]) -> list[Any]:
        """Return y, 0 off the tight rows, with ``A[:, J].T @ y == weight``."""
        out = [ZERO] * len(self.form.matrix)
        for r, value in zip(self.tight, _solved(self._turned, weight), strict=True):
            out[r] = value
        return out

    def _rates(self, weight: list[Any], multipliers: list[Any]) -> list[Any]:
        """Return how ``weight @ x`` changes with each non-basic variable and slack."""
        rate = list(weight)
        for r in self.tight:
            factor = multipliers[r]
            if factor != 0:
                for j, value in self.form.matrix[r].items():
                    rate[j] -= factor * value
        return rate + multipliers


def _flint(value: Fraction) -> Any:
    return fmpq(value.numerator, value.denominator)


def _solved(matrix: Any, side: list[Any]) -> list[Any]:
    if not side:
        return []
    return list(matrix.solve(fmpq_mat(len(side), 1, side)).entries())


def _matrix(form: _OneSided, rows: list[int], columns: list[int]) -> Any:
    return fmpq_mat(len(rows), len(columns), [form.matrix[r].get(j, ZERO) for r in rows for j in columns])


def _dot(row: dict[int, Any], x: list[Any]) -> Any:
    total = ZERO
    for j, value in row.items():
        if x[j] != 0:
            total += value * x[j]
    return total


def _repaired(form: _OneSided, basic: set[int]) -> frozenset[int]:
    """Return a basis: the given one if it is, else one made of the largest regular part of its matrix."""
    first = form.variables
    inner = sorted(j for j in basic if j < first)
    tight = [r for r in range(len(form.matrix)) if first + r not in basic]
    if inner or tight:
        kept = _independent(_matrix(form, tight, inner))
        inner = [inner[place] for place in kept]
        tight = [tight[place] for place in _independent(_matrix(form, tight, inner).transpose())]
    slacks = set(range(first, first + len(form.matrix))) - {first + r for r in tight}
    return frozenset(slacks | set(inner))


def _independent(matrix: Any) -> list[int]:
    """Return the places of columns that are independent and span the rest."""
    reduced, rank = matrix.rref()
    return [next(place for place, entry in enumerate(row) if entry != 0) for row in reduced.tolist()[:rank]]

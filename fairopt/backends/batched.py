"""Solves thousands of linear programs that differ only in their numbers, side by side, from one basis.

All share their variables and rows, and the optimal basis of one is known. A step of the simplex method is one NumPy
call for all that are not finished: first of the dual method, with costs shifted so that the start is dual feasible,
then of the primal one with the true costs. An answer needs a proof: the point keeps every bound, and a dual solution,
computed afresh, bounds the objective at the same value. Other programs are left to a solver that takes them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.backends.scaling import Scaled, in_units
from fairopt.backends.solution import Basis, Position
from fairopt.program import INFINITY, Array, Program, Sense
from fairopt.program.batched import Programs

#: Tolerances for programs of ordinary size: while pivoting, and in the proof at the end.
TOLERANCE, PROVED = 1e-9, 1e-8
#: What the parts of a contradiction must differ by.
REFUTED = 1e-7
#: A smaller pivot is treated as a rounding error.
SMALLEST_PIVOT = 1e-8
#: The most bytes of dictionaries that are solved together; more do not fit the processor's cache.
BLOCK = 2**21
#: The most steps, in multiples of rows plus variables; a program that takes more is taken to cycle.
PATIENCE = 3


def solve_many(programs: Programs, like: Program, basis: Basis) -> Array:
    """Return an optimal point of each program, (cases, variables); NaN where none was proved optimal.

    See `points_and_duals`.
    """
    points = points_and_duals(programs, like, basis)[0]
    return np.where(np.isinf(points), np.nan, points)


def points_and_duals(programs: Programs, like: Program, basis: Basis) -> tuple[Array, Array]:
    """Return an optimal point of each program (cases, variables), and the sizes of the rows' duals (cases, rows).

    Both are NaN where none was proved optimal. Where no point keeps all bounds, for sure, a point is infinity.

    ``like`` is a program of the same structure in floats, whose optimal ``basis`` is the start. Where a program has
    several optima, the point is one of them.

    Source: Chvatal, Linear Programming, 1983, ch. 2, 8 and 10 (dictionaries, bounded variables, dual simplex).
    """
    size = in_units(like)
    rows, variables = like.shape
    points, duals = (np.full((len(programs.cost), count), np.nan) for count in (variables, rows))
    block = max(1, BLOCK // (8 * (rows + 2) * variables))
    for first in range(0, len(points), block):
        here = slice(first, first + block)
        point, dual = _Block(programs, here, size).solved(basis)
        points[here], duals[here] = point * size.column, np.abs(dual) * (size.objective / size.row)
    return points, duals


class _Block:
    """Programs min cost @ x in ordinary size: ``cost`` (cases, n), ``matrix`` (cases, m, n), bounds (cases, n + m).

    Entries 0..n-1 of the bounds are variables, n..n+m-1 row activities.
    """

    def __init__(self, programs: Programs, here: slice, size: Scaled) -> None:
        template, rows = programs.template, programs.template.rows
        sign = -1.0 if template.sense is Sense.MAXIMIZE else 1.0
        value = programs.value[here]
        self.cost = programs.cost[here] * (sign * size.column / size.objective)
        self.matrix = np.zeros((len(value), *template.shape))
        self.matrix[:, rows.row, rows.column] = value * (size.column / size.row)[rows.row]
        self.lower = np.hstack([programs.lower[here] / size.column, programs.row_lower[here] / size.row])
        self.upper = np.hstack([programs.upper[here] / size.column, programs.row_upper[here] / size.row])

    def solved(self, basis: Basis) -> tuple[Array, Array]:
        """Return optimal points (cases, n) and the rows' multipliers (cases, m), NaN where none was proved."""
        cases, m, n = self.matrix.shape
        point, multiplier = np.full((cases, n), np.nan), np.full((cases, m), np.nan)
        for work in _started(self, basis):
            while len(work.case):
                done = work.step()
                if done.any():
                    x, dual = work.answer(done)
                    mine = work.case[done]
                    sure = self.proved(mine, x, dual)[:, None]
                    point[mine], multiplier[mine] = np.where(sure, x, np.nan), np.where(sure, dual, np.nan)
                    if len(place := np.flatnonzero(done & (work.stuck >= 0))):
                        none = self.refuted(work.case[place], work.ray(place))
                        point[work.case[place[none]]] = INFINITY
                    work.keep(~done)
        return point, multiplier

    def proved(self, case: Array, x: Array, dual: Array) -> Array:
        """Return whether each point is feasible and, by weak duality with the rows' multipliers, optimal."""
        lower, upper, cost = self.lower[case], self.upper[case], self.cost[case]
        matrix = self.matrix[case]
        full = np.hstack([x, np.einsum("bmn,bn->bm", matrix, x)])
        price = np.hstack([cost - np.einsum("bm,bmn->bn", dual, matrix), dual])
        return proved(lower, upper, full, price, np.einsum("bn,bn->b", cost, x))

    def refuted(self, case: Array, ray: Array) -> Array:
        """Return where the rows, each so many times (cases, m), add up to what no point within all bounds gives."""
        price = np.hstack([-np.einsum("bm,bmn->bn", ray, self.matrix[case]), ray])
        return refuted(self.lower[case], self.upper[case], price)


def proved(lower: Array, upper: Array, full: Array, price: Array, value: Array) -> Array:
    """Return whether each point is feasible and, by weak duality, optimal.

    ``full`` has what its variables and rows come to, ``price`` what each of them costs, all (cases, variables + rows);
    ``value`` (cases,) is the objective there.
    """
    allowed = PROVED * (1 + np.abs(full))
    within = np.isfinite(full + price) & (full >= lower - allowed) & (full <= upper + allowed)
    feasible = within.all(axis=1)
    held = np.where(price > 0, lower, upper)
    endless = np.isinf(held)
    signs = (np.abs(np.where(endless, price, 0.0)) <= PROVED).all(axis=1)
    with np.errstate(invalid="ignore"):  # infinity times 0, of what is not finite
        bound = (price * np.where(endless, 0.0, held)).sum(axis=1)
    return np.asarray(feasible & signs & (value - bound <= PROVED * (1 + np.abs(value))))


def refuted(lower: Array, upper: Array, price: Array) -> Array:
    """Return where no point keeps the bounds, for sure: at each the variables and rows, times ``price``, add up to 0.

    Within their bounds they add up to more. Shapes: as in `proved`.
    """
    held = np.where(price > 0, lower, upper)
    endless = np.isinf(held)
    signs = (np.abs(np.where(endless, price, 0.0)) <= PROVED).all(axis=1)
    parts = price * np.where(endless, 0.0, held)
    return np.asarray(signs & (parts.sum(axis=1) > REFUTED * (1 + np.abs(parts).sum(axis=1))))


def starting(low: Array, high: Array, rate: Array, at_upper: Array) -> Array:
    """Return the bound at which each entry of a dictionary begins: where it is dual feasible, if it has two."""
    boxed = np.isfinite(low) & np.isfinite(high)
    upper = np.where(boxed & (np.abs(rate) > TOLERANCE), rate < 0, at_upper)
    start = np.where(upper, high, low)
    start = np.where(np.isfinite(start), start, np.where(upper, low, high))
    return np.where(np.isfinite(start), start, 0.0)


def improving(rate: Array, at: Array, low: Array, high: Array) -> Array:
    """Return how fast the objective falls as each non-basic entry moves off its bound, 0 where it may not move."""
    gain = np.maximum(np.where(at < high, -rate, 0.0), np.where(at > low, rate, 0.0))
    return np.where(gain > TOLERANCE, gain, 0.0)


def first_to_turn(toward: Array, at: Array, low: Array, high: Array, rate: Array) -> tuple[Array, Array]:
    """Return which entries replace infeasible ones: those whose costs change sign first; and where there is one.

    ``toward`` (cases, n) is how fast the infeasible entry comes to its bound with each of the others.
    """
    able = ((toward > SMALLEST_PIVOT) & (at < high)) | ((toward < -SMALLEST_PIVOT) & (at > low))
    size, cost = np.where(able, np.abs(toward), 1.0), np.abs(rate)
    least = np.where(able, (cost + TOLERANCE) / size, INFINITY).min(axis=1)
    column = np.where(able & (cost / size <= least[:, None]), size, 0.0).argmax(axis=1)
    return column, np.isfinite(least)


def _started(block: _Block, basis: Basis) -> Iterator[_Dictionaries]:
    """Yield the dictionaries of a basis, for the programs in which its matrix is regular."""
    cases, n = block.cost.shape
    m = block.matrix.shape[1]
    basic = np.concatenate([basis.columns, basis.rows]) == Position.BASIC
    inside, outside = np.flatnonzero(basic[:n]), np.flatnonzero(~basic[:n])
    loose, tight = np.flatnonzero(basic[n:]), np.flatnonzero(~basic[n:])
    if len(inside) != len(tight):
        return
    # x_inside = inverse @ (s_tight - A x_outside), and the loose rows follow
    kernel = block.matrix[:, tight[:, None], inside]
    sound = np.arange(cases)
    try:
        inverse = np.linalg.inv(kernel)
    except np.linalg.LinAlgError:  # one is singular; the others are solved, and this one is left out
        sound = np.flatnonzero(np.linalg.slogdet(kernel)[0])
        inverse = np.linalg.inv(kernel[sound])
    matrix = block.matrix[sound]
    upper_left = -inverse @ matrix[:, tight[:, None], outside]
    lower_rows = matrix[:, loose[:, None], inside]
    table = np.empty((len(sound), m + 2, n))
    s, o = len(inside), len(outside)
    table[:, :s, :o], table[:, :s, o:] = upper_left, inverse
    table[:, s:m, :o] = matrix[:, loose[:, None], outside] + lower_rows @ upper_left
    table[:, s:m, o:] = lower_rows @ inverse
    cost = block.cost[sound]
    table[:, m, :o] = cost[:, outside] + np.einsum("bs,bso->bo", cost[:, inside], upper_left)
    table[:, m, o:] = np.einsum("bs,bst->bt", cost[:, inside], inverse)
    names = np.concatenate([inside, n + loose]), np.concatenate([outside, n + tight])
    at_upper = np.concatenate([basis.columns, basis.rows])[names[1]] == Position.UPPER
    yield _Dictionaries(sound, table, names, at_upper, block.lower[sound], block.upper[sound])


class _Dictionaries:
    """x_basic = table @ x_nonbasic for each program; the last two lines of ``table`` are the shifted and true costs."""

    def __init__(
        self, case: Array, table: Array, names: tuple[Array, Array], at_upper: Array, lower: Array, upper: Array
    ) -> None:
        count, self.m, self.n = len(case), table.shape[1] - 2, table.shape[2]
        self.case, self.table = case, table
        self.basic, self.other = (np.tile(entries, (count, 1)) for entries in names)
        self.low, self.high = lower[:, names[0]], upper[:, names[0]]
        self.other_low, self.other_high = lower[:, names[1]], upper[:, names[1]]
        rate = table[:, self.m]
        self.at = starting(self.other_low, self.other_high, rate, at_upper)
        self.x = np.einsum("bmn,bn->bm", table[:, : self.m], self.at)
        table[:, self.m + 1] = rate
        wrong = improving(rate, self.at, self.other_low, self.other_high) > 0
        self.shifted: Array = np.any(wrong, axis=1)
        rate[wrong] = 0.0
        self.left = np.full(count, PATIENCE * (self.m + self.n))
        #: The line of a violated entry that nothing can mend, -1 for none.
        self.stuck = np.full(count, -1)

    def keep(self, which: Array) -> None:
        """Go on with some of the programs only."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, values[which])

    def answer(self, which: Array) -> tuple[Array, Array]:
        """Return the variables (cases, n) and the rows' multipliers (cases, m) of some of the programs."""
        count = int(which.sum())
        line = np.arange(count)[:, None]
        full, price = np.empty((count, self.n + self.m)), np.zeros((count, self.n + self.m))
        full[line, self.basic[which]], full[line, self.other[which]] = self.x[which], self.at[which]
        price[line, self.other[which]] = self.table[which, self.m + 1]
        return full[:, : self.n], price[:, self.n :]

    def ray(self, place: Array) -> Array:
        """Return the rows' multipliers (cases, m) by which the lines of stuck entries contradict the bounds."""
        line, row = np.arange(len(place))[:, None], self.stuck[place]
        sign = np.where(self.x[place, row] < self.low[place, row], 1.0, -1.0)
        price = np.zeros((len(place), self.n + self.m))
        price[line, self.other[place]] = -self.table[place, row] * sign[:, None]
        price[line[:, 0], self.basic[place, row]] = sign
        return price[:, self.n :]

    def step(self) -> Array:
        """Take one step in each program; return which of them are finished, solved or not."""
        short, over = self.low - self.x, self.x - self.high
        miss = np.maximum(short, over)
        missed = miss > TOLERANCE * (1 + np.abs(self.x))
        # the steepest edge, not the largest violation: a third fewer steps for cooperative OEF
        slope = np.einsum("bmn,bmn->bm", self.table[:, : self.m], self.table[:, : self.m])
        row = np.where(missed, miss * miss / (1 + slope), 0.0).argmax(axis=1)
        line = np.arange(len(row))
        dual = missed.any(axis=1)
        # once primal feasible, the true costs take the place of the shifted ones, for good
        unveil = ~dual & self.shifted
        self.table[unveil, self.m] = self.table[unveil, self.m + 1]
        self.shifted &= dual
        gain = improving(self.table[:, self.m], self.at, self.other_low, self.other_high)
        column = gain.argmax(axis=1)
        primal = ~dual & (gain[line, column] > 0)
        done = ~dual & ~primal
        to = np.zeros(len(row))  # the value that the leaving entry is brought to
        if dual.any():
            column[dual], found = self._dual_column(line[dual], row[dual], short[line, row][dual] > 0)
            lost = line[dual][~found]
            done[lost], self.stuck[lost] = True, row[lost]
            to[dual] = np.where(short[line, row] > 0, self.low[line, row], self.high[line, row])[dual]
        flip = np.zeros(len(row), dtype=bool)
        if primal.any():
            row[primal], to[primal], flip[primal], found = self._primal_row(line[primal], column[primal])
            done[line[primal][~found]] = True
        self.left -= 1
        done |= self.left < 0
        self._pivot(line, row, column, to, ~done & ~flip)
        self._flip(line[flip & ~done], column[flip & ~done])
        return np.asarray(done)

    def _dual_column(self, case: Array, row: Array, rising: Array) -> tuple[Array, Array]:
        """Return the entries that replace infeasible ones in the basis: those whose costs change sign first."""
        toward = self.table[case, row] * np.where(rising, 1.0, -1.0)[:, None]
        bounds = self.at[case], self.other_low[case], self.other_high[case]
        return first_to_turn(toward, *bounds, self.table[case, self.m])

    def _primal_row(self, case: Array, column: Array) -> tuple[Array, Array, Array, Array]:
        """Return which basic entries stop the entering ones, at which bound, and where a bound flip comes first."""
        rate = self.table[case, self.m, column]
        direction = np.where(rate < 0, 1.0, -1.0)
        moving = self.table[case, : self.m, column] * direction[:, None]
        x, low, high = self.x[case], self.low[case], self.high[case]
        bound = np.where(moving > 0, high, low)
        able = (np.abs(moving) > SMALLEST_PIVOT) & np.isfinite(bound)
        speed = np.where(able, np.abs(moving), 1.0)
        # an entry past its bound by a rounding error has no room
        room = np.maximum(np.where(moving > 0, bound - x, x - bound), 0.0, where=able, out=np.zeros_like(x))
        least = np.where(able, (room + TOLERANCE) / speed, INFINITY).min(axis=1)
        first = able & (room / speed <= least[:, None])
        row = np.where(first, speed, 0.0).argmax(axis=1)
        line = np.arange(len(case))
        span = self.other_high[case, column] - self.other_low[case, column]
        flip = span <= np.where(np.isfinite(least), room[line, row] / speed[line, row], INFINITY)
        flip &= np.isfinite(span)
        return row, bound[line, row], flip, np.isfinite(least) | flip

    def _pivot(self, line: Array, row: Array, column: Array, to: Array, which: Array) -> None:
        """Exchange a basic entry, moved ``to`` a bound, with a non-basic one, in the programs of ``which``."""
        table = self.table
        pivot = np.where(which, table[line, row, column], 1.0)
        down = np.where(which[:, None], table[line, :, column], 0.0)
        across = np.where(which[:, None], table[line, row], 0.0) / -pivot[:, None]
        across[line, column] = np.where(which, 1 / pivot, 0.0)
        step = np.where(which, (to - self.x[line, row]) / pivot, 0.0)
        self.x += down[:, : self.m] * step[:, None]
        sel = line[which]
        r, c = row[which], column[which]
        table[sel, :, c] = 0.0
        table[sel, r] = 0.0
        down[sel, r] = 1.0
        table += down[:, :, None] * across[:, None, :]
        self.x[sel, r] = self.at[sel, c] + step[which]
        self.at[sel, c] = to[which]
        for inner, outer in ((self.basic, self.other), (self.low, self.other_low), (self.high, self.other_high)):
            kept = inner[sel, r].copy()
            inner[sel, r], outer[sel, c] = outer[sel, c], kept

    def _flip(self, case: Array, column: Array) -> None:
        """Bring non-basic entries to their other bound."""
        low, high, at = self.other_low[case, column], self.other_high[case, column], self.at[case, column]
        to = np.where(at == low, high, low)
        self.x[case] += self.table[case, : self.m, column] * (to - at)[:, None]
        self.at[case, column] = to

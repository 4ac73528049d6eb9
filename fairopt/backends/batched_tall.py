"""Solves many linear programs with more rows than variables side by side, each from the vertex of one like it.

`fairopt.backends.batched` keeps a dictionary with all rows for each program, which is large here. This keeps the
inverse of the constraints that hold the vertex, one for each variable. What the other rows come to is computed from the
point: by one matrix for all programs, and a correction for the few coefficients in which each differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from fairopt.backends.batched import PATIENCE, SMALLEST_PIVOT, TOLERANCE, first_to_turn, improving, proved, starting
from fairopt.backends.scaling import Scaled, in_units
from fairopt.backends.solution import Basis, Position
from fairopt.program import INFINITY, Array, Program, Sense
from fairopt.program.batched import Programs

#: So many programs are in work at once; others begin when so many have ended.
PLACES, FREE = 128, 16
#: Of so many violated constraints, the furthest off for their size, the one with the steepest edge leaves.
CANDIDATES = 8


def solve_nearby(
    programs: Programs, like: Program, basis: Basis, parent: Array, start: Mapping[int, Basis]
) -> tuple[Array, dict[int, Basis]]:
    """Return an optimal point of each program (cases, n), NaN where none was proved, and the bases found.

    They differ from ``like`` (in floats), with an optimal ``basis``, in few coefficients. A program begins at the basis
    of the program ``parent`` (cases,), which is like it; one without (-1) at that in ``start``, or else at ``basis``.

    Source: Chvatal, Linear Programming, 1983, ch. 7 (revised simplex method), 8 and 10.
    """
    size = in_units(like)
    work = _Work(_Block.of(programs, size, _constraints(size.program)), parent, {-1: basis, **start})
    work.run()
    return work.point * size.column, work.found


def _constraints(program: Program) -> Array:
    """Return the coefficients of variables and rows (n + m, n)."""
    n, rows = len(program.cost), program.rows
    out = np.vstack([np.eye(n), np.zeros((len(rows), n))])
    out[n + rows.row, rows.column] = rows.value
    return out


@dataclass(frozen=True, eq=False)
class _Block:
    """Programs min cost @ x in ordinary size: bounds of variables and rows, and where coefficients differ.

    Shapes: ``cost`` (cases, n), ``lower`` and ``upper`` (cases, n + m); ``entry``, ``column`` and ``other`` (cases, d):
    the place of a coefficient, and what is added to it there. ``base`` (n + m, n) is for all.
    """

    base: Array
    cost: Array
    lower: Array
    upper: Array
    entry: Array
    column: Array
    other: Array

    @classmethod
    def of(cls, programs: Programs, size: Scaled, base: Array) -> _Block:
        rows, n = size.program.rows, programs.cost.shape[1]
        sign = -1.0 if programs.template.sense is Sense.MAXIMIZE else 1.0
        more = programs.value * (size.column / size.row)[rows.row] - rows.value
        case, place = np.nonzero(more)
        first = np.searchsorted(case, np.arange(len(more)))
        rank = np.arange(len(case)) - first[case]
        entry, column = np.zeros((2, len(more), int(rank.max(initial=-1)) + 1), dtype=np.int64)
        other = np.zeros(entry.shape)
        entry[case, rank], column[case, rank] = n + rows.row[place], rows.column[place]
        other[case, rank] = more[case, place]
        return cls(
            base,
            programs.cost * (sign * size.column / size.objective),
            np.hstack([programs.lower / size.column, programs.row_lower / size.row]),
            np.hstack([programs.upper / size.column, programs.row_upper / size.row]),
            entry, column, other,
        )  # fmt: skip

    def rows(self, case: Array, entry: Array) -> Array:
        """Return constraints (cases, some, n) of programs, by their places ``entry`` (cases, some)."""
        out: Array = self.base[entry]
        place = np.full((len(case), len(self.base)), -1)
        lines = np.arange(len(case))[:, None]
        place[lines, entry] = np.arange(entry.shape[1])
        at = place[lines, self.entry[case]]
        where = np.nonzero((at >= 0) & (self.other[case] != 0))
        out[where[0], at[where], self.column[case][where]] += self.other[case][where]
        return out

    def activity(self, case: Array, x: Array) -> Array:
        """Return what every constraint (cases, n + m) comes to at points, or along directions, x (cases, n)."""
        lines, count = np.arange(len(case))[:, None], len(self.base)
        moved = self.other[case] * x[lines, self.column[case]]
        place = (self.entry[case] + lines * count).ravel()
        out: Array = x @ self.base.T + np.bincount(place, moved.ravel(), len(case) * count).reshape(-1, count)
        return out


class _Work:
    """Programs in work, each in a place of its own: where one has ended, another begins."""

    def __init__(self, block: _Block, parent: Array, start: dict[int, Basis]) -> None:
        self.block, self.start = block, start
        self.point = np.full(block.cost.shape, np.nan)
        self.found: dict[int, Basis] = {}
        self._inverse: dict[int, Array] = {}
        self._children: dict[int, list[int]] = {}
        for case, other in enumerate(parent.tolist()):
            self._children.setdefault(other, []).append(case)
        self._ready = [(case, -1) for case in self._children.pop(-1, [])]
        self._most = PATIENCE * sum(block.base.shape)

    def run(self) -> None:
        """Solve them all."""
        nobody, n = np.zeros(0, dtype=np.int64), self.block.cost.shape[1]
        none = np.zeros((0, n), dtype=np.int64)
        now = _Simplex.start(self.block, nobody, none, none, np.zeros((0, n, n)))
        while self._ready or len(now.case):
            if self._ready and len(now.case) <= PLACES - FREE:
                begun, self._ready = self._ready[: PLACES - len(now.case)], self._ready[PLACES - len(now.case) :]
                now = now.joined(list(self._begun(begun)))
            done = now.step() | (now.steps > self._most)
            if done.sum() >= min(FREE, len(done) // 4 + 1) or done.all():
                self._end(now.kept(done))
                now = now.kept(~done)

    def _end(self, ended: _Simplex) -> None:
        """Keep the points that are proved, and let those begin that are like them."""
        x, sure = ended.answer()
        self.point[ended.case] = np.where(sure[:, None], x, np.nan)
        at_upper = (ended.at == ended.high) & (ended.at != ended.low)
        for place, case in enumerate(ended.case.tolist()):
            children = self._children.pop(case, [])
            self._ready += [(child, case if sure[place] else -1) for child in children]
            if sure[place]:
                self.found[case] = self._basis(ended.tight[place], at_upper[place])
                if children:  # by the order in which a basis has the constraints
                    self._inverse[case] = ended.inverse[place][:, np.argsort(ended.tight[place])]

    def _basis(self, tight: Array, at_upper: Array) -> Basis:
        """Return the basis in which variables and rows are tight (n,), and those from above that are ``at_upper``."""
        count, n = self.block.base.shape
        position = np.full(count, Position.BASIC)
        position[tight] = np.where(at_upper, Position.UPPER, Position.LOWER)
        return Basis(position[:n], position[n:])

    def _begun(self, ready: list[tuple[int, int]]) -> Iterator[_Simplex]:
        """Yield programs at their first vertices: of their parents, with what differs corrected, or given ones."""
        for near in (False, True):
            pairs = np.array([pair for pair in ready if (pair[1] >= 0) is near]).reshape(-1, 2)
            case, parent = pairs.T
            if not len(case):
                continue
            held = self.found if near else self.start
            first = [held.get(each, self.start[-1]) for each in (parent if near else case).tolist()]
            position = np.array([np.concatenate([each.columns, each.rows]) for each in first])
            tight = np.nonzero(position != Position.BASIC)[1].reshape(len(first), -1)
            upper = np.take_along_axis(position, tight, axis=1) == Position.UPPER
            if near:
                inverse = np.array([self._inverse[each] for each in parent.tolist()])
                inverse, regular = _corrected(self.block, case, parent, tight, inverse)
            else:
                inverse, regular = _inverses(self.block.rows(case, tight))
            # where the constraints hold no vertex, the program is left to others, and those like it begin anew
            for lost in case[~regular].tolist():
                self._ready += [(child, -1) for child in self._children.pop(lost, [])]
            yield _Simplex.start(self.block, case[regular], tight[regular], upper[regular], inverse)


def _inverses(matrices: Array) -> tuple[Array, Array]:
    """Return the inverses of those (cases, q, q) that have one, and which have."""
    try:
        return np.linalg.inv(matrices), np.ones(len(matrices), dtype=bool)
    except np.linalg.LinAlgError:
        regular = np.linalg.slogdet(matrices)[0] != 0
        return np.linalg.inv(matrices[regular]), regular


def _corrected(block: _Block, case: Array, parent: Array, tight: Array, inverse: Array) -> tuple[Array, Array]:
    """Return the inverses of tight constraints (cases, n, n) from those of programs like these, and which have one."""
    count, n = tight.shape
    lines = np.arange(count)[:, None]
    place = np.full((count, len(block.base)), -1)
    place[lines, tight] = np.arange(n)
    moved = np.zeros((count, n), dtype=bool)
    for each in (case, parent):
        at = place[lines, block.entry[each]]
        which = np.nonzero((at >= 0) & (block.other[each] != 0))
        moved[which[0], at[which]] = True
    # M + E D for the rows that have changed; those that fill up have not
    most = int(moved.sum(axis=1).max(initial=0))
    rows = np.argsort(~moved, axis=1, kind="stable")[:, :most]
    held = tight[lines, rows]
    across = (block.rows(case, held) - block.rows(parent, held)) @ inverse
    small, regular = _inverses(np.eye(most) + np.take_along_axis(across, rows[:, None, :], axis=2))
    left = np.take_along_axis(inverse, rows[:, None, :], axis=2)[regular]
    return inverse[regular] - left @ (small @ across[regular]), regular


@dataclass(eq=False)
class _Simplex:
    """Vertices of programs (cases, ...): the constraints ``tight`` (cases, n) are ``at`` (cases, n), x = inverse @ at.

    ``true`` is how fast the objective grows with each of ``at``, ``rate`` the same of costs that were shifted so that
    the first vertex was dual feasible; ``shifted`` says where. ``low`` and ``high`` are the bounds of what is tight,
    ``full`` (cases, n + m) is what every constraint comes to.
    """

    block: _Block
    case: Array
    inverse: Array
    tight: Array
    at: Array
    x: Array
    full: Array
    rate: Array
    true: Array
    shifted: Array
    low: Array
    high: Array
    steps: Array

    @classmethod
    def start(cls, block: _Block, case: Array, tight: Array, at_upper: Array, inverse: Array) -> _Simplex:
        """Return programs at vertices, with costs shifted where these are not dual feasible."""
        lines = case[:, None]
        low, high = block.lower[lines, tight], block.upper[lines, tight]
        true = (block.cost[case][:, None, :] @ inverse)[:, 0]
        at = starting(low, high, true, at_upper)
        x = (inverse @ at[:, :, None])[:, :, 0]
        wrong = improving(true, at, low, high) > 0
        shifted: Array = np.any(wrong, axis=1)
        rate, steps = np.where(wrong, 0.0, true), np.zeros(len(case))
        full = block.activity(case, x)
        return cls(block, case, inverse, tight, at, x, full, rate, true, shifted, low, high, steps)

    def arrays(self) -> list[str]:
        """Return the names of what each program has."""
        return [each.name for each in fields(self) if each.name != "block"]

    def joined(self, others: Sequence[_Simplex]) -> _Simplex:
        """Return these programs and more."""
        parts = [self, *others]
        return _Simplex(self.block, *(np.concatenate([getattr(p, name) for p in parts]) for name in self.arrays()))

    def kept(self, which: Array) -> _Simplex:
        """Return some of the programs."""
        return _Simplex(self.block, *(getattr(self, name)[which] for name in self.arrays()))

    def step(self) -> Array:
        """Take one step in each program; return which of them are finished, solved or not."""
        below = self.block.lower[self.case] - self.full
        miss = np.maximum(below, self.full - self.block.upper[self.case])
        missed = miss > TOLERANCE * (1 + np.abs(self.full))
        dual = missed.any(axis=1)
        # once primal feasible, the true costs take the place of the shifted ones, for good
        unveil = ~dual & self.shifted
        self.rate[unveil] = self.true[unveil]
        self.shifted &= dual
        gain = improving(self.rate, self.at, self.low, self.high)
        primal = ~dual & (gain > 0).any(axis=1)
        done = ~dual & ~primal
        if dual.any():
            at = np.flatnonzero(dual)
            done[at] = ~self._dual_step(at, np.where(missed[at], miss[at], 0.0), below[at] > 0)
        if primal.any():
            at = np.flatnonzero(primal)
            done[at] = ~self._primal_step(at, gain[at])
        self.steps += ~done
        return np.asarray(done)

    def _across(self, place: Array, rows: Array) -> Array:
        """Return how fast constraints (cases, some, n) of some of the programs grow with each of ``at``."""
        if len(place) == len(self.inverse):
            return np.asarray(rows @ self.inverse)
        # one by one, as a copy of the inverses takes longer
        return np.array([row @ self.inverse[one] for one, row in zip(place.tolist(), rows, strict=True)])

    def _dual_step(self, place: Array, miss: Array, rising: Array) -> Array:
        """Bring a violated constraint of each program to its bound; return where that was possible."""
        line, case = np.arange(len(place)), self.case[place]
        far = np.argpartition(-miss, min(CANDIDATES, miss.shape[1] - 1), axis=1)[:, :CANDIDATES]
        across = self._across(place, self.block.rows(case, far))
        best = (miss[line[:, None], far] ** 2 / (1 + (across**2).sum(axis=2))).argmax(axis=1)
        entry, across = far[line, best], across[line, best]
        rising = rising[line, entry]
        toward = across * np.where(rising, 1.0, -1.0)[:, None]
        column, found = first_to_turn(toward, self.at[place], self.low[place], self.high[place], self.rate[place])
        to = np.where(rising, self.block.lower[case, entry], self.block.upper[case, entry])
        moving = self.block.activity(case, self.inverse[place, :, column])
        self._pivot(place[found], *(each[found] for each in (entry, column, to, across, moving)))
        return np.asarray(found)

    def _primal_step(self, place: Array, gain: Array) -> Array:
        """Move a tight constraint of each program off its bound; return where something stops it."""
        line, case = np.arange(len(place)), self.case[place]
        # of the largest gains the steepest edge, as in the dual step
        most = np.argpartition(-gain, min(CANDIDATES, gain.shape[1] - 1), axis=1)[:, :CANDIDATES]
        edges = self.inverse[place[:, None], :, most]
        gains = gain[line[:, None], most]
        column = most[line, (gains**2 / (1 + (edges**2).sum(axis=2))).argmax(axis=1)]
        sign = np.where(self.rate[place, column] < 0, 1.0, -1.0)
        moving = self.block.activity(case, self.inverse[place, :, column])
        toward, full = moving * sign[:, None], self.full[place]
        toward[line[:, None], self.tight[place]] = 0.0
        room = np.where(toward > 0, self.block.upper[case] - full, full - self.block.lower[case])
        np.maximum(room, 0.0, out=room)  # a constraint past its bound by a rounding error has no room
        speed = np.abs(toward)
        still = speed <= SMALLEST_PIVOT
        room[still], speed[still] = INFINITY, 1.0
        least = ((room + TOLERANCE) / speed).min(axis=1)
        entry = np.where(room <= least[:, None] * speed, speed, 0.0).argmax(axis=1)
        stopped = np.isfinite(least)
        span = self.high[place, column] - self.low[place, column]
        flip = np.isfinite(span) & (span * speed[line, entry] <= room[line, entry])
        to = np.where(toward[line, entry] > 0, self.block.upper[case, entry], self.block.lower[case, entry])
        across = self._across(place, self.block.rows(case, entry[:, None]))[:, 0]
        at, c, step = place[flip], column[flip], (span * sign)[flip]
        self.x[at] += self.inverse[at, :, c] * step[:, None]
        self.full[at] += moving[flip] * step[:, None]
        self.at[at, c] += step
        turned = stopped & ~flip
        self._pivot(place[turned], *(each[turned] for each in (entry, column, to, across, moving)))
        return np.asarray(stopped | flip)

    def _pivot(self, at: Array, entry: Array, column: Array, to: Array, across: Array, moving: Array) -> None:
        """Put constraints, moved ``to`` a bound, in the place of tight ones."""
        line = np.arange(len(at))
        pivot = across[line, column]
        across /= -pivot[:, None]
        across[line, column] = 1 / pivot
        step = ((to - self.full[at, entry]) / pivot)[:, None]
        down = self.inverse[at, :, column]
        self.x[at] += down * step
        self.full[at] += moving * step
        self.inverse[at, :, column] = 0.0
        for one, d, a in zip(at.tolist(), down, across, strict=True):  # each stays in the processor's cache
            self.inverse[one] += np.multiply.outer(d, a)
        for rate in (self.rate, self.true):
            own = rate[at, column]
            rate[at, column] = 0.0
            rate[at] += own[:, None] * across
        case = self.case[at]
        self.at[at, column], self.tight[at, column] = to, entry
        self.low[at, column], self.high[at, column] = self.block.lower[case, entry], self.block.upper[case, entry]

    def answer(self) -> tuple[Array, Array]:
        """Return the points (cases, n), and whether each is proved optimal."""
        block, case, x = self.block, self.case, self.x
        full, lines = block.activity(case, x), np.arange(len(case))[:, None]
        price = np.zeros_like(full)
        price[lines, self.tight] = self.true
        # what the tight constraints leave of the cost, by the coefficients themselves and not by the inverse
        paid, n = price @ block.base, x.shape[1]
        place = (block.column[case] + lines * n).ravel()
        more = block.other[case] * price[lines, block.entry[case]]
        paid += np.bincount(place, more.ravel(), paid.size).reshape(paid.shape)
        price[:, :n] += block.cost[case] - paid
        value = (block.cost[case] * x).sum(axis=1)
        return x, proved(block.lower[case], block.upper[case], full, price, value)

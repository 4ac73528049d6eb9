"""Exact bounds on an objective from multipliers of any origin, and exactly feasible points from nearly feasible ones.

They serve where no exact optimum can be had, and for integer programs. The multipliers of a float solver are almost
right: each is taken for the fraction that it is and set to 0 where its row has no side of that sign; reduced costs that
ask for a bound which a variable does not have are brought to 0 by raising the multiplier of a row that limits the
variable. The result proves its bound by weak duality alone, whatever it was made from.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact.checks import contradict, dual_bound
from fairopt.backends.exact.proofs import tightened
from fairopt.backends.exact.refinement import FloatProgram
from fairopt.backends.exact.sums import ZERO, excesses, finite, reduced_cost
from fairopt.backends.exact.vertex import Vertex, vertex_of
from fairopt.errors import NotCapable
from fairopt.numbers import is_finite
from fairopt.program import INFINITY, Array, Program, Sense, fractions, objects

#: By how much bounds are moved inwards to find a point that breaks none: one is tried after the other.
DEPTHS = tuple(Fraction(1, 2**power) for power in (30, 22, 14, 8))
#: Mending one variable can break another that has no bound; after so many rounds no bound is proved.
ROUNDS = 3
#: The largest denominator of a multiplier that is taken for what a float solver meant.
SHORT = 10**6


def exact_bound(program: Program, dual: Array | None = None) -> tuple[Fraction, Array] | None:
    """Return a bound that no feasible point of a linear or mixed-integer program beats, and multipliers that prove it.

    They are made of ``dual``, one entry a row, floats or Fractions (a float is the fraction that it is), with signs as
    in `fairopt.backends.solution`. Without them HiGHS is asked for those of the program without integrality. None where
    they could not be made to prove any. Logarithms are not looked at.

    Source: Neumaier and Shcherbina, Safe bounds in linear and mixed-integer programming, 2004.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("knapsack")
    >>> take = p.variable("take", (2,), lower=0, upper=1, integer=True)
    >>> p.maximize(5 * take[0] + 4 * take[1])
    >>> p.constrain("room", 3 * take[0] + 2 * take[1] <= 4)
    >>> bound, multipliers = exact_bound(p.program(), np.array([5 / 3]))
    >>> float(round(bound, 6))
    7.333333
    """
    program = program.as_(Fraction)
    if dual is None:
        dual = FloatProgram(replace(program, integer=np.zeros(len(program.cost), dtype=bool))).solve().dual
    return None if dual is None else best_bound(program, [dual])


def safe_dual(program: Program, dual: Array) -> Array | None:
    """Return multipliers near ``dual`` that prove a finite bound on a program in Fractions, None if none were found."""
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    repair = _Repair(program, sign * _clipped(program, fractions(dual), sign), sign)
    for _ in range(ROUNDS):
        if repair.once():
            return np.asarray(sign * repair.multipliers)
    return None


def refutation(program: Program, guess: Array) -> Array | None:
    """Return multipliers near ``guess``, of a float solver, that prove that a program in Fractions has no point.

    None where neither the nearest short fractions nor their repair prove it. The program has no objective.
    """
    short = objects(Fraction(value).limit_denominator(SHORT) for value in (guess / np.abs(guess).max()).tolist())
    if contradict(program, short):
        return short
    repaired = safe_dual(program, short)
    return repaired if repaired is not None and contradict(program, repaired) else None


def _clipped(program: Program, dual: Array, sign: int) -> Array:
    """Return the multipliers with 0 for those that ask for a side which their row does not have."""
    rises, falls = (finite(side) for side in (program.rows.upper, program.rows.lower)[::sign])
    clipped = dual.copy()
    clipped[~rises & (dual > 0) | ~falls & (dual < 0)] = ZERO
    return clipped


class _Repair:
    """Multipliers of a maximisation (of a minimisation, with all signs turned) and what they leave to the bounds."""

    def __init__(self, program: Program, multipliers: Array, sign: int) -> None:
        self.multipliers = multipliers
        self._rows = program.rows
        self._rate: Array = sign * reduced_cost(program, np.asarray(sign * multipliers)).reduced()
        self._lower, self._upper = finite(program.lower), finite(program.upper)
        positive = np.fromiter((value.numerator > 0 for value in self._rows.value), dtype=bool)
        column = self._rows.column
        # raising a row's multiplier lowers the rates of its positive entries; safe where all have the bound for it
        fits = np.where(positive, self._lower[column], self._upper[column])
        unfit = np.where(positive, self._upper[column], self._lower[column])
        self._safe_up, self._safe_down = finite(program.rows.upper), finite(program.rows.lower)
        self._safe_up[self._rows.row[~fits]] = False
        self._safe_down[self._rows.row[~unfit]] = False
        self._by_column = np.argsort(column, kind="stable")
        self._starts = np.searchsorted(column[self._by_column], np.arange(len(program.cost) + 1))

    def once(self) -> bool:
        """Bring rates to 0 that ask for a bound which does not exist, where possible; return whether none is left."""
        # free variables first: mending one may break others, which have a bound to fall back on
        for column in sorted(np.flatnonzero(self._wrong()), key=lambda j: bool(self._upper[j] or self._lower[j])):
            self._mend(int(column))
        return not self._wrong().any()

    def _wrong(self) -> Array:
        return np.asarray((self._rate > 0) & ~self._upper | (self._rate < 0) & ~self._lower)

    def _mend(self, column: int) -> None:
        rate = self._rate[column]
        if not rate or (self._upper[column] if rate > 0 else self._lower[column]):
            return  # another repair has mended it
        best: tuple[Any, int, Fraction] | None = None
        for entry in self._by_column[self._starts[column] : self._starts[column + 1]].tolist():
            row = int(self._rows.row[entry])
            step = rate / self._rows.value[entry]
            after = self.multipliers[row] + step
            side = self._rows.upper[row] if after > 0 else self._rows.lower[row]
            if after and not is_finite(side):
                continue
            safe = bool(self._safe_up[row] if step > 0 else self._safe_down[row])
            price = float(abs(step)) * (abs(float(side)) if after else 0.0)
            # among unsafe rows one with a large multiplier is best: a free variable's rows must balance
            worth = (not safe, price if safe else -abs(float(self.multipliers[row])))
            if best is None or worth < best[0]:
                best = worth, row, step
        if best is None:
            return
        _, row, step = best
        self.multipliers[row] += step
        inside = slice(*np.searchsorted(self._rows.row, [row, row + 1]))
        self._rate[self._rows.column[inside]] -= step * self._rows.value[inside]


def best_bound(program: Program, candidates: list[Array]) -> tuple[Fraction, Array] | None:
    """Return the tightest bound that the candidates' multipliers can be made to prove, and those that prove it."""
    duals = [dual for each in candidates if (dual := safe_dual(program, each)) is not None]
    proved = [(bound, dual) for dual in duals if (bound := dual_bound(program, dual)) is not None]
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    return min(proved, key=lambda pair: sign * pair[0], default=None)


def feasible_point(program: Program, vertex: Vertex | None, deadline: float = INFINITY) -> Array | None:
    """Return an exactly feasible point near the optimum, None where none was found before ``deadline``.

    The bounds that the vertex breaks are moved inwards a little and HiGHS is asked again; those that its answer breaks
    are moved inwards next time.
    """
    if vertex is not None and not vertex.infeasible:
        return vertex.x
    variables, rows = len(program.cost), len(program.rows)
    broken = np.full(variables + rows, vertex is None)
    if vertex is not None:
        broken[list(excesses(program, vertex.x))] = True
    for depth in DEPTHS:
        if time.perf_counter() > deadline:
            return None
        inner = tightened(program, broken, depth)
        proposed = FloatProgram(inner, deadline).solve()
        if proposed.x is None:
            continue
        for point in _points(inner, proposed.x, proposed.basis, deadline):
            found = excesses(program, point)
            if not found:
                return point
            broken[list(found)] = True
    return None


def _points(program: Program, x: Array, basis: Any, deadline: float) -> list[Array]:
    """Return exact points near a float answer: that of its basis, and itself moved within the bounds."""
    within = np.minimum(np.maximum(fractions(x), program.lower), program.upper)
    try:
        vertex = None if basis is None else vertex_of(program, basis, deadline)
    except NotCapable:
        vertex = None  # the float point is the only one
    return [within] if vertex is None else [vertex.x, within]

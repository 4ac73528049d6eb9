"""Linear programs in exact rationals: HiGHS proposes a basis, rational arithmetic decides.

HiGHS's optimal basis is solved in rationals and judged without any tolerance. Where it is not exactly optimal, or HiGHS
found none, exact pivots go on from there (`fairopt.backends.exact_pivots`). Nothing is returned that was not checked
against the program as it was given: an optimum by weak duality, infeasibility by its multipliers, unboundedness by its
ray.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairopt.backends.base import Backend, Capability, Options
from fairopt.backends.highs import Highs
from fairopt.backends.trivial import settle
from fairopt.errors import FairoptError
from fairopt.program import INFINITY, Program, Sense
from fairopt.program.affine import Array
from fairopt.solution import Basis, Position, Solution, Status

if TYPE_CHECKING:
    from fairopt.backends.exact_pivots import Found, OneSided


class Exact(Backend):
    """Exact optima of linear programs, in Fractions; also exactly infeasible or unbounded.

    ``conflict`` of an infeasible program names the constraints in a proof of it; some of them may be superfluous. At
    a time limit the point is kept if it breaks nothing.

    Source: Dhiflaoui et al., Certifying and repairing solutions to large LPs: how good are LP-solvers?, 2003;
    Applegate, Cook, Dash and Espinoza, Exact solutions to linear programming problems, 2007.
    """

    name = "exact"
    modules: ClassVar[tuple[str, ...]] = ("highspy", "flint")
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.DUALS, Capability.BASIS, Capability.TIME_LIMIT}
    )
    number: ClassVar[type] = Fraction

    def _solve(self, program: Program, options: Options) -> Solution:
        began = time.perf_counter()
        if trivial := settle(program, self.name, forgiven=0):
            return trivial
        proposed = Highs().solve(program, time_limit=options.time_limit)
        deadline = INFINITY if options.time_limit is None else began + options.time_limit
        return self.from_basis(program, proposed.basis, deadline=deadline, origin=proposed.raw_status, began=began)

    def from_basis(
        self,
        program: Program,
        basis: Basis | None,
        *,
        deadline: float = INFINITY,
        origin: str = "none asked",
        began: float | None = None,
    ) -> Solution:
        """Solve a program from a basis, of whatever quality; None starts from the slacks.

        ``deadline`` is on the clock of `time.perf_counter`; ``origin`` says where the basis comes from.
        """
        from fairopt.backends.exact_pivots import End, pivot

        start = time.perf_counter() if began is None else began
        program = program.as_(self.number)
        standard = _Standard(program)
        found = pivot(standard.form, standard.basic(basis), deadline)
        x, multipliers = standard.back(found)
        raw = f"{found.end.value} after {found.pivots} exact pivots; HiGHS: {origin}"
        seconds = time.perf_counter() - start
        if found.end is End.INFEASIBLE:
            conflict = refuted(program, multipliers)
            return Solution(Status.INFEASIBLE, raw, self.name, conflict=conflict, seconds=seconds)
        feasible = not program.violations(x)
        point = x if feasible else None
        objective = program.value(x) if feasible else None
        if found.end is End.LIMIT:
            return Solution(Status.LIMIT, raw, self.name, objective=objective, x=point, seconds=seconds)
        if found.end is End.UNBOUNDED:
            require_endless(program, x, _fractions(found.ray))
            return Solution(Status.UNBOUNDED, raw, self.name, objective=objective, x=point, seconds=seconds)
        dual = -multipliers if program.sense is Sense.MAXIMIZE else multipliers
        reduced = require_optimum(program, x, dual)
        return Solution(
            status=Status.OPTIMAL,
            raw_status=raw,
            backend=self.name,
            objective=objective,
            bound=objective,
            x=x,
            dual=dual,
            reduced_cost=reduced,
            basis=standard.basis(found),
            seconds=time.perf_counter() - start,
        )


class _Standard:
    """A program in the one-sided form of `exact_pivots`, and the way back.

    Rows of the form: one a row of the program, one more for each row with two different finite sides, and one for each
    variable with two different finite bounds; the added ones hold the upper side. ``above`` maps an entry of the
    program (a variable, or variables + row) to its added slack.
    """

    def __init__(self, program: Program) -> None:
        from flint import fmpq

        from fairopt.backends.exact_pivots import Kind, OneSided

        def rational(value: Fraction) -> Any:
            return fmpq(value.numerator, value.denominator)

        self.program = program
        rows = program.rows
        self.variables, self.rows = len(program.cost), len(rows)
        matrix: list[dict[int, Any]] = [{} for _ in range(self.rows)]
        for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value.tolist(), strict=True):
            matrix[r][j] = rational(value)
        kind: list[Kind] = []
        bound: list[Any] = []
        tops: list[tuple[int, Any]] = []
        sides = zip([*program.lower, *rows.lower], [*program.upper, *rows.upper], strict=True)
        for entry, (low, high) in enumerate(sides):
            if low == high:
                kind.append(Kind.FIXED)
            elif low != -INFINITY:
                kind.append(Kind.FROM_BELOW)
                tops += [(entry, rational(high))] if high != INFINITY else []
            else:
                kind.append(Kind.FROM_ABOVE if high != INFINITY else Kind.FREE)
            held = low if low != -INFINITY else high
            bound.append(fmpq(0) if held == INFINITY else rational(held))
        self.above: dict[int, int] = {}
        for entry, top in tops:
            self.above[entry] = self.variables + len(matrix)
            matrix.append({entry: fmpq(1)} if entry < self.variables else matrix[entry - self.variables])
            kind.append(Kind.FROM_ABOVE)
            bound.append(top)
        sign = -1 if program.sense is Sense.MAXIMIZE else 1
        self.form: OneSided = OneSided([sign * rational(value) for value in program.cost], matrix, kind, bound)

    def basic(self, basis: Basis | None) -> set[int]:
        """Return the basic entries of the form that ``basis`` means; of None, the slacks."""
        slacks = set(range(self.variables, self.variables + len(self.form.matrix)))
        if basis is None:
            return slacks
        position = [*basis.columns.tolist(), *basis.rows.tolist()]
        out = {entry for entry, place in enumerate(position) if place == Position.BASIC} | set(self.above.values())
        for entry, top in self.above.items():
            if position[entry] == Position.UPPER:  # held by the added slack; the entry itself is free to be solved for
                out = (out - {top}) | {entry}
        return out

    def basis(self, found: Found) -> Basis:
        """Return the program's basis of where pivoting ended."""
        lows = [*self.program.lower, *self.program.rows.lower]
        highs = [*self.program.upper, *self.program.rows.upper]
        place = []
        for entry, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if entry in self.above and self.above[entry] not in found.basic:
                place.append(Position.UPPER)
            elif entry in found.basic:
                place.append(Position.BASIC)
            elif low != -INFINITY:
                place.append(Position.LOWER)
            else:
                place.append(Position.UPPER if high != INFINITY else Position.ZERO)
        positions = np.array(place, dtype=np.int8)
        return Basis(positions[: self.variables], positions[self.variables :])

    def back(self, found: Found) -> tuple[Array, Array]:
        """Return x and the rows' multipliers in Fractions; those of added rows join the row that they came from."""
        x, given = _fractions(found.x), _fractions(found.dual)
        multipliers = given[: self.rows].copy()
        for entry, top in self.above.items():
            if entry >= self.variables:
                multipliers[entry - self.variables] += given[top - self.variables]
        return x, multipliers


def require_optimum(program: Program, x: Array, dual: Array) -> Array:
    """Return the reduced costs, after checking exactly that ``x`` and ``dual`` prove each other optimal.

    Checked are rows, bounds, the signs of duals and reduced costs, and that both objectives are the same number, which
    is complementarity. Errors: `FairoptError`, a defect of this back end.
    """
    reduced = program.reduced_cost(x, dual)
    _require(not program.violations(x), "x breaks a constraint")
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    total: Fraction = Fraction(program.offset)
    for rate, lower, upper in ((dual, program.rows.lower, program.rows.upper), (reduced, program.lower, program.upper)):
        for value, low, high in zip(rate, lower, upper, strict=True):
            if value != 0:
                side = high if sign * value > 0 else low
                _require(abs(side) != INFINITY, "a dual has the sign of a bound that does not exist")
                total += value * side
    _require(total == program.value(x), "primal and dual objective differ")
    return reduced


def refuted(program: Program, multipliers: Array) -> tuple[str, ...]:
    """Return the names of the constraints in a proof of infeasibility, after checking the proof exactly.

    With y the multipliers, every point within the bounds has ``y @ A @ x`` in one interval and every choice of row
    values within the rows' sides has it in another; the proof is that these two do not meet. Errors: `FairoptError`.
    """
    still = Program.reduced_cost(_without_cost(program), program.lower, multipliers)
    columns = _interval(-still, program.lower, program.upper)
    rows = _interval(multipliers, program.rows.lower, program.rows.upper)
    _require(columns[1] < rows[0] or rows[1] < columns[0], "the multipliers do not contradict the constraints")
    names = [program.row_name(int(row)) for row in np.flatnonzero(multipliers != 0)]
    return (*names, *(f"bounds of {program.column_name(int(column))}" for column in np.flatnonzero(still != 0)))


def require_endless(program: Program, x: Array, ray: Array) -> None:
    """Check exactly that ``x`` is feasible and that going along ``ray`` improves the objective for ever."""
    _require(not program.violations(x), "the start of the ray breaks a constraint")
    gain = (program.cost * ray).sum()
    _require(gain > 0 if program.sense is Sense.MAXIMIZE else gain < 0, "the ray does not improve the objective")
    for step, lower, upper in (
        (ray, program.lower, program.upper),
        (program.rows.activity(ray), program.rows.lower, program.rows.upper),
    ):
        for value, low, high in zip(step, lower, upper, strict=True):
            _require(value >= 0 or low == -INFINITY, "the ray runs into a lower bound")
            _require(value <= 0 or high == INFINITY, "the ray runs into an upper bound")


def _without_cost(program: Program) -> Program:
    return replace(program, cost=np.full(len(program.cost), Fraction(0), dtype=object))


def _interval(weight: Array, lower: Array, upper: Array) -> tuple[Any, Any]:
    """Return the least and the largest of ``weight @ value`` over all values between the bounds."""
    least: Any = Fraction(0)
    most: Any = Fraction(0)
    for factor, low, high in zip(weight, lower, upper, strict=True):
        if factor != 0:
            ends = (low, high) if factor > 0 else (high, low)
            least, most = least + _times(factor, ends[0]), most + _times(factor, ends[1])
    return least, most


def _times(factor: Fraction, end: Any) -> Any:
    if abs(end) != INFINITY:
        return factor * end
    return end if factor > 0 else -end


def _fractions(values: list[Any]) -> Array:
    out = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        out[place] = Fraction(int(value.p), int(value.q))
    return out


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FairoptError(f"the exact back end contradicts itself: {otherwise}; please report the program")

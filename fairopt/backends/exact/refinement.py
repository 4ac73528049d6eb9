"""What HiGHS says of an exact program: bases, refined until they are exactly optimal, and rows that contradict.

A basis that HiGHS calls optimal may be so within its tolerance only. Its exact errors are then blown up to the size of
1, and HiGHS is asked for the best correction, starting from that basis; its basis is the next one to be judged, with
smaller errors. A basis is optimal when its exact point and multipliers are (`fairopt.backends.exact.vertex`).

A contradiction mostly needs few rows. `gathered` begins with none, and a point within the bounds of the variables.
Again and again it adds the rows that the point violates most, and asks HiGHS for a point that keeps all rows added so
far. Once there is none, HiGHS's simplex proves it from these few rows. Asked about all rows at once, HiGHS has taken
minutes where this takes milliseconds; and its presolve would leave no proof.

Source: Gleixner, Steffy and Wolter, Iterative refinement for linear programming, 2016; Gleixner and Steffy, Linear
programming using limited-precision oracles, 2020; of contradictions: Dantzig, Fulkerson and Johnson, Solution of a
large-scale traveling-salesman problem, 1954 (rows when they are broken); Gleeson and Ryan, Identifying minimally
infeasible subsystems of inequalities, 1990.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fairopt.backends.bases import basis_of, begin_at, set_basis
from fairopt.backends.exact.proofs import only
from fairopt.backends.exact.sums import UnreducedRatios, nonzero
from fairopt.backends.exact.vertex import Vertex, settled, vertex_of
from fairopt.backends.highs import PRESOLVE_FROM, Highs, instance, load, outcome_of, run
from fairopt.backends.scaling import scaled
from fairopt.backends.solution import Basis, Position, Solution, Status
from fairopt.backends.solver import Options
from fairopt.errors import NotCapable, NotSolved
from fairopt.program import INFINITY, Array, Program

if TYPE_CHECKING:
    import highspy

_log = logging.getLogger(__name__)

#: Refinement is given up after so many rounds; where it helps, two or three are enough.
MOST_ROUNDS = 20
#: An error is blown up by no more than this at once: HiGHS fails where numbers are very far apart.
LARGEST_STEP = 40  # as a power of two
#: At most so many rows are added in a round, and at most so many rounds played.
ADDED, MOST_ADDITIONS = 100, 30
#: A row that is violated by no more than this counts as kept; in units of the length of its coefficients.
FORGIVEN = 1e-7


class FloatProgram:
    """An exact program as HiGHS sees it, loaded once; corrections of it are solved from a basis.

    ``in_range`` says whether HiGHS takes its numbers; where it does not, its answers have no point and no basis.
    """

    def __init__(self, program: Program, deadline: float = INFINITY) -> None:
        self.exact, self.deadline = program, deadline
        self._scaled = scaled(program.as_(float))
        self._highs: highspy.Highs = instance(Options())
        self.in_range, self.rounds = True, 0
        try:
            load(self._highs, self._scaled.program)
        except NotSolved as refused:
            self.in_range = False
            _log.info("%s", refused)

    def solve(self, interior: bool = False, near: Basis | None = None) -> Solution:
        """Return HiGHS's answer to the program itself, by its simplex or its interior-point method with a crossover.

        The simplex begins at the basis ``near``, if there is one.
        """
        if not self.in_range:
            return Solution(Status.FAILED, "numerically out of range", Highs.name)
        if near is not None:
            begin_at(self._highs, self.exact, near)
        self._highs.setOptionValue("solver", "ipm" if interior else "choose")
        left = None if self.deadline == INFINITY else max(0.0, self.deadline - time.perf_counter())
        return self._scaled.back(run(self._highs, self._scaled.program, left, thorough=False))

    def refutation(self) -> Array:
        """Return multipliers (rows,) by which the rows seem to contradict each other, 0 where none were found."""
        program, rows = self._scaled.program, np.arange(len(self.exact.rows))
        # presolve leaves no proof, and HiGHS would look for one without end
        asked = len(program.rows.value) <= PRESOLVE_FROM
        ray = ray_of(self._highs, rows, len(rows)) if asked else np.zeros(len(rows))
        return (ray if ray.any() else gathered(program, self.deadline)) / self._scaled.row

    def refined(self, proposed: Solution) -> tuple[Vertex | None, Solution]:
        """Correct the proposed basis until it is exactly optimal or no correction helps; ``rounds`` counts corrections.

        Return the last vertex, None where no regular basis was found, and what HiGHS said last. Errors:
        `NotCapable`.
        """
        vertex: Vertex | None = None
        powers = (0, 0)
        seen = set[bytes]()
        most = self.rounds + MOST_ROUNDS
        while proposed.basis is not None:
            basis = settled(self.exact, proposed.basis)
            key = basis.columns.tobytes() + basis.rows.tobytes()
            try:
                found = None if key in seen else vertex_of(self.exact, basis, self.deadline)
            except NotCapable:
                if vertex is None:
                    raise
                found = None  # the last vertex is the result
            if found is None:
                break
            seen.add(key)
            vertex = found
            if vertex.optimal or self.rounds == most or time.perf_counter() > self.deadline:
                break
            powers = (_power(vertex.infeasible, powers[0]), _power(vertex.improving, powers[1]))
            proposed = self.corrected(vertex, *powers)
            self.rounds += 1
        return vertex, proposed

    def corrected(self, vertex: Vertex, primal: int, dual: int) -> Solution:
        """Return HiGHS's answer to the correction of ``vertex``, point and multipliers blown up by 2 ** the powers.

        Only status and basis of it mean something. A row with a dual is priced: it becomes an equation with a variable
        for its value, which has the bounds of the row and the dual as its cost.
        """
        exact, into = self.exact, self._scaled
        rows, variables = exact.shape
        priced = nonzero(vertex.dual)
        cost = vertex.reduced.blown(dual) * (into.column / into.objective)
        values = UnreducedRatios.of(vertex.x)
        bounds = [np.ldexp(values.distance(bound), primal) / into.column for bound in (exact.lower, exact.upper)]
        sides = [
            np.ldexp(vertex.activity.distance(side), primal) / into.row for side in (exact.rows.lower, exact.rows.upper)
        ]
        highs, before = self._highs, self._highs.getNumCol()
        if before > variables:  # the prices of an earlier correction
            highs.deleteCols(before - variables, np.arange(variables, before, dtype=np.int32))
        highs.changeColsCost(variables, np.arange(variables, dtype=np.int32), cost)
        highs.changeColsBounds(variables, np.arange(variables, dtype=np.int32), *bounds)
        prices = UnreducedRatios.of(vertex.dual[priced]).blown(dual) * (into.row[priced] / into.objective)
        place, entry = np.arange(len(priced), dtype=np.int32), np.full(len(priced), -1.0)
        highs.addCols(
            len(priced), prices, sides[0][priced], sides[1][priced],
            len(priced), place, priced.astype(np.int32), entry,
        )  # fmt: skip
        for side in sides:
            side[priced] = 0.0
        highs.changeRowsBounds(rows, np.arange(rows, dtype=np.int32), *sides)
        start = vertex.basis.rows.copy()
        start[priced] = Position.LOWER
        set_basis(highs, Basis(np.concatenate([vertex.basis.columns, vertex.basis.rows[priced]]), start))
        highs.setOptionValue("solver", "choose")
        if self.deadline != INFINITY:
            highs.setOptionValue("time_limit", highs.getRunTime() + max(0.0, self.deadline - time.perf_counter()))
        highs.run()
        word = highs.getModelStatus()
        basis = basis_of(highs)
        if basis is not None:
            # a row whose equation does not determine its value is as free to move as one whose value is basic
            moved = np.where(basis.rows[priced] == Position.BASIC, Position.BASIC, basis.columns[variables:])
            basis.rows[priced] = moved
            basis = Basis(basis.columns[:variables], basis.rows)
        return Solution(outcome_of(word.name, False), highs.modelStatusToString(word), Highs.name, basis=basis)


def _power(error: Fraction, last: int) -> int:
    """Return the power of two that blows the error up to 1, at most `LARGEST_STEP` more than the last one."""
    if not error:
        return last
    wanted = error.denominator.bit_length() - error.numerator.bit_length()
    return max(0, min(wanted, last + LARGEST_STEP))


def gathered(program: Program, deadline: float = INFINITY) -> Array:
    """Return multipliers (rows,) with which rows of a program in floats contradict each other; all 0 if none are found.

    The search stops at ``deadline``, a time of `time.perf_counter`.
    """
    rows = program.rows
    length = np.sqrt(np.bincount(rows.row, weights=rows.value**2, minlength=len(rows)))
    length[length == 0] = 1.0
    x = np.minimum(np.maximum(0.0, program.lower), program.upper)
    kept = np.zeros(0, dtype=int)
    highs = instance(Options())
    load(highs, replace(program, cost=np.zeros(len(x)), rows=only(rows, kept)))
    highs.setOptionValue("presolve", "off")  # it leaves no proof
    for _ in range(MOST_ADDITIONS):
        value = rows.activity(x)
        excess = np.maximum(rows.lower - value, value - rows.upper) / length
        excess[kept] = 0.0
        worst = np.argsort(-excess)[:ADDED]
        worst = np.sort(worst[excess[worst] > FORGIVEN])
        left = deadline - time.perf_counter()
        if not len(worst) or left < 0:
            break
        new, kept = only(rows, worst), np.append(kept, worst)
        start = new.start[:-1].astype(np.int32)
        highs.addRows(len(new), new.lower, new.upper, len(new.value), start, new.column.astype(np.int32), new.value)
        highs.setOptionValue("time_limit", highs.getRunTime() + left)
        highs.run()
        if highs.getModelStatus().name != "kOptimal":  # also where it says "unknown": there may be a proof
            return ray_of(highs, kept, len(rows))
        x = np.array(highs.getSolution().col_value)
    return np.zeros(len(rows))


def ray_of(highs: highspy.Highs, kept: Array, rows: int) -> Array:
    """Return HiGHS's proof that no point keeps its rows, ``kept``: multipliers (rows,), all 0 if it has none."""
    _, has, ray = highs.getDualRay()
    multipliers = np.zeros(rows)
    if has:
        multipliers[kept] = ray
    return multipliers

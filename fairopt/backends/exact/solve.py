"""Linear programs in exact rationals: HiGHS proposes a basis, rational arithmetic decides.

The way to an answer, each step taken only where the one before was not enough:

1. The basis that HiGHS calls optimal is solved in rationals and judged without any tolerance.
2. Where it is optimal within HiGHS's tolerance only, its exact errors are blown up and HiGHS corrects them
   (`fairopt.backends.exact.refinement`), until a basis is exactly optimal.
3. Where HiGHS finds a program infeasible, or a refinement does, its multipliers of few rows
   (`fairopt.backends.exact.refinement`) are rounded to short fractions and mended until they prove it. Where they do
   not, or for unboundedness, another program is solved in the same way whose exact optimum is the proof
   (`fairopt.backends.exact.proofs`).
4. Exact pivots go on from the last basis (`fairopt.backends.exact.pivots`): finite whatever the numbers, but slow.
5. Where time or size does not allow that: `Status.LIMIT` with an exactly feasible point, if one was found, and an
   exact bound that no point beats, if multipliers prove one (`fairopt.backends.exact.bound`); these are ``dual``.

``raw_status`` says how far it went. Everything is checked at the end against the program as it was given
(`fairopt.backends.exact.checks`): an optimum by weak duality, infeasibility by multipliers, unboundedness by a ray.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.backends.apart import heard, tell
from fairopt.backends.exact.bound import best_bound, feasible_point, refutation
from fairopt.backends.exact.checks import contradict, refuted, require_endless, require_optimum
from fairopt.backends.exact.proofs import any_point, nearest_point, part_of, steepest_direction
from fairopt.backends.exact.refinement import FloatProgram
from fairopt.backends.exact.sums import excesses, objective, zeros
from fairopt.backends.exact.vertex import Vertex, slacks, vertex_of
from fairopt.backends.highs import PRESOLVE_FROM
from fairopt.backends.solution import Basis, Solution, Status
from fairopt.backends.trivial import settle
from fairopt.errors import NotCapable
from fairopt.program import INFINITY, Array, Program, Sense, fractions

_log = logging.getLogger(__name__)
#: Whose answers they are: the name of `fairopt.backends.exact.Exact`.
NAME = "exact"
#: Programs with more non-zeros are not pivoted on: one pivot takes seconds.
LARGEST_PIVOTED = 50_000
#: From so many non-zeros on, infeasibility is proved by the interior-point method: there HiGHS's simplex has taken
#: minutes where that took seconds (cooperative OEF with 100 users, one of whom is promised too much).
INTERIOR_FROM = PRESOLVE_FROM
#: Without a time limit, exact pivots stop when their number times the non-zeros exceeds this: about a minute.
MOST_WORK = 1_000_000
#: Rows whose multipliers are smaller, as a part of the largest, are taken for rounding in a float proof.
NEGLIGIBLE = 1e-9


def searched(program: Program, deadline: float, near: Basis | None = None) -> Solution:
    """Return the answer to a program in rationals; ``deadline`` is on the clock of `time.perf_counter`.

    HiGHS begins at the basis ``near``, if it is one of such a program.
    """
    if trivial := settle(program, NAME, forgiven=0):
        return _with_ray(program, trivial)
    search = _Search(program, deadline)
    search.ask(near=near)
    search.tell()
    return search.answer()


class _Search:
    """The way to the answer of one program, step by step; the steps are those of the module's docstring."""

    def __init__(self, program: Program, deadline: float) -> None:
        self.program, self.deadline, self._began = program, deadline, time.perf_counter()
        self.proposed = Solution(Status.FAILED, "not asked", NAME)
        self._floats: FloatProgram | None = None
        self._vertex: Vertex | None = None
        self._point: Array | None = None
        self._pivots = 0
        self._said = ""

    def ask(self, interior: bool = False, near: Basis | None = None) -> None:
        """Let HiGHS propose a basis, by its simplex, from one that is ``near``, or its interior-point method."""
        self._floats = self._floats or FloatProgram(self.program, self.deadline)
        self.proposed = self._floats.solve(interior, near)
        self._said = self._said or self.proposed.raw_status

    def tell(self) -> None:
        """Tell what the first answer of HiGHS proves, for where the process is ended before there is more."""
        if heard() and (proved := best_bound(self.program, self._multipliers())) is not None:
            x = self.proposed.x
            within = None if x is None else np.minimum(np.maximum(fractions(x), self.program.lower), self.program.upper)
            point = self._at_bounds() if within is None or excesses(self.program, within) else within
            bound, dual = proved
            tell(self._ended(Status.LIMIT, point, "; ended at its limit", bound=bound, dual=dual))

    def answer(self, refinement: bool = True) -> Solution:
        """Return the answer, whatever it takes to get it within the deadline."""
        try:
            if refinement and not (self._floats and not self._floats.in_range):
                if (vertex := self._refined()) is not None:
                    return self._optimal(vertex.x, vertex.dual, vertex.basis)
                if (proved := self._proved()) is not None:
                    return proved
            _log.info("%s: refinement of floats proves nothing; now by exact pivots", self.program.name)
            return self._after_pivots()
        except NotCapable as reason:
            return self._limit(str(reason))

    def optimum(self, interior: bool = False) -> tuple[Array, Array] | None:
        """Return point and duals of a program that has an optimum, None where pivots do not reach it."""
        self.ask(interior)
        if (vertex := self._refined()) is not None:
            return vertex.x, vertex.dual
        found, multipliers = self._pivoted()
        return (found.point, self._dual(multipliers)) if found.status is Status.OPTIMAL else None

    # -- steps 1 and 2 -----------------------------------------------------------------------------------------------
    def _refined(self) -> Vertex | None:
        """Return an exactly optimal vertex, None where refinement does not come to one."""
        floats = self._floats = self._floats or FloatProgram(self.program, self.deadline)
        vertex, self.proposed = floats.refined(self.proposed)
        if vertex is None and not self._said:  # the caller's basis is singular, and HiGHS has not been asked
            self.ask()
            vertex, self.proposed = floats.refined(self.proposed)
        self._vertex = vertex
        self._said = self._said or self.proposed.raw_status
        return vertex if vertex is not None and vertex.optimal else None

    # -- step 3 ------------------------------------------------------------------------------------------------------
    def _proved(self) -> Solution | None:
        """Return a proof that there is no optimum, where HiGHS suspects so and it can be proved."""
        status = self.proposed.status
        unclear = status in (Status.INFEASIBLE_OR_UNBOUNDED, Status.INACCURATE, Status.FAILED)
        proved = self._infeasible() if unclear or status is Status.INFEASIBLE else None
        return self._unbounded() if proved is None and (unclear or status is Status.UNBOUNDED) else proved

    def _infeasible(self) -> Solution | None:
        rows = np.arange(len(self.program.rows))
        guess = self._floats.refutation() if self._floats else np.zeros(len(rows))
        suspects = np.flatnonzero(np.abs(guess) > NEGLIGIBLE * np.abs(guess).max(initial=0))
        for kept in (suspects, rows) if len(suspects) else (rows,):
            part, multipliers = part_of(self.program, kept), zeros(len(rows))
            if kept is suspects and (proof := refutation(part, guess[kept])) is not None:
                multipliers[kept] = proof
                return self._refuted(multipliers)
            nearest = nearest_point(part)
            found = _Search(nearest, self.deadline).optimum(len(nearest.rows.value) > INTERIOR_FROM)
            if found is not None and objective(nearest, found[0]) > 0:
                multipliers[kept] = found[1]
                return self._refuted(multipliers)
        return None

    def _unbounded(self) -> Solution | None:
        start = _Search(any_point(self.program), self.deadline).optimum()
        if start is None:
            return None
        self._point = start[0]
        direction = steepest_direction(self.program)
        found = _Search(direction, self.deadline).optimum()
        if found is None or not objective(direction, found[0]):
            return None
        return self._endless(start[0], found[0])

    # -- step 4 ------------------------------------------------------------------------------------------------------
    def _after_pivots(self) -> Solution:
        found, multipliers = self._pivoted()
        if found.status is Status.INFEASIBLE:
            return self._refuted(multipliers if contradict(self.program, multipliers) else -multipliers)
        if found.status is Status.UNBOUNDED and found.ray is not None:
            return self._endless(found.point, found.ray)
        if found.status is Status.OPTIMAL and found.basis is not None:
            return self._optimal(found.point, self._dual(multipliers), found.basis)
        self._point = None if excesses(self.program, found.point) else found.point
        return self._limit("exact pivots took too long", self._dual(multipliers))

    def _pivoted(self) -> tuple[Solution, Array]:
        """Return where exact pivots end, and the multipliers of the rows there."""
        from fairopt.backends.exact.pivots import pivoted

        nonzeros = len(self.program.rows.value)
        if nonzeros > LARGEST_PIVOTED:
            raise NotCapable(f"exact pivots on {nonzeros} non-zeros")
        most = MOST_WORK // (1 + nonzeros) if self.deadline == INFINITY else None
        basis = self.proposed.basis if self._vertex is None else self._vertex.basis
        found = pivoted(self.program, basis, self.deadline, most)
        self._pivots += int(found.effort["pivots"])
        assert found.dual is not None
        return found, found.dual

    def _dual(self, multipliers: Array) -> Array:
        """Return the duals that belong to multipliers of a minimisation."""
        return np.asarray(-multipliers if self.program.sense is Sense.MAXIMIZE else multipliers)

    # -- answers, each checked against the program -------------------------------------------------------------------
    def _ended(self, status: Status, x: Array | None = None, more: str = "", **found: Any) -> Solution:
        rounds = self._floats.rounds if self._floats else 0
        done = f"{rounds} refinements and {self._pivots} exact pivots"
        raw = f"{status.value} after {done}; HiGHS: {self._said or 'not asked'}{more}"
        value = None if x is None else objective(self.program, x)
        seconds = time.perf_counter() - self._began
        return Solution(status, raw, NAME, objective=value, x=x, seconds=seconds, **found)

    def _optimal(self, x: Array, dual: Array, basis: Basis) -> Solution:
        reduced = require_optimum(self.program, x, dual)
        found = self._ended(Status.OPTIMAL, x, dual=dual, reduced_cost=reduced, basis=basis)
        return replace(found, bound=found.objective)

    def _refuted(self, multipliers: Array) -> Solution:
        conflict = refuted(self.program, multipliers)
        return self._ended(Status.INFEASIBLE, conflict=conflict, farkas=multipliers)

    def _endless(self, x: Array, ray: Array) -> Solution:
        require_endless(self.program, x, ray)
        return self._ended(Status.UNBOUNDED, x, ray=ray)

    def _multipliers(self, dual: Array | None = None) -> list[Array]:
        candidates = [self.proposed.dual, dual, self._vertex.dual if self._vertex else None]
        return [each for each in candidates if each is not None] or [zeros(len(self.program.rows))]

    def _limit(self, reason: str, dual: Array | None = None) -> Solution:
        bound, proof = best_bound(self.program, self._multipliers(dual)) or (None, None)
        point = self._point
        if point is None:
            point = feasible_point(self.program, self._vertex, self.deadline)
        point = self._at_bounds() if point is None else point
        return self._ended(Status.LIMIT, point, f"; out of reach: {reason}", bound=bound, dual=proof)

    def _at_bounds(self) -> Array | None:
        """Return the point with all variables at a bound, for which nothing need be solved; it may be a poor one."""
        start = vertex_of(self.program, slacks(self.program))
        return None if start is None or start.infeasible else start.x


def _with_ray(program: Program, trivial: Solution) -> Solution:
    """Return the answer with what proves it: where nothing constrains the variables, the cost is a ray."""
    if trivial.status is not Status.UNBOUNDED:
        return trivial
    origin = zeros(len(program.cost))
    ray = program.cost if program.sense is Sense.MAXIMIZE else -program.cost
    require_endless(program, origin, ray)
    return replace(trivial, x=origin, objective=objective(program, origin), ray=ray)

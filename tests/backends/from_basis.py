"""The exact back end's search from a basis of whatever quality, which HiGHS was not asked for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from fairopt.backends.exact.solve import NAME, _Search, settle
from fairopt.backends.exact.vertex import slacks
from fairopt.backends.solution import Basis, Solution, Status
from fairopt.program import INFINITY, Program


def from_basis(
    program: Program, basis: Basis | None, *, deadline: float = INFINITY, refinement: bool = True
) -> Solution:
    """Solve a program from a basis; None starts from the slacks.

    ``deadline`` is on the clock of `time.perf_counter`. Without ``refinement`` exact pivots start from the basis at
    once, and HiGHS is never asked.
    """
    program = program.as_(Fraction)
    trivial = settle(program, NAME, forgiven=0)
    if trivial and trivial.status is Status.INFEASIBLE:
        return trivial
    search = _Search(program, deadline)
    search.proposed = replace(search.proposed, basis=slacks(program) if basis is None else basis)
    return search.answer(refinement)

"""Linear programs in exact rationals: `Exact`, and `optimum_of`, which asks floats first.

How an answer is found is in `fairopt.backends.exact.solve`, which is loaded when the first program is solved.
"""

from __future__ import annotations

import time
from copy import copy
from fractions import Fraction
from typing import ClassVar, Self

from fairopt.backends.highs import Highs
from fairopt.backends.solution import Basis, Solution
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.errors import NotSolved
from fairopt.program import INFINITY, Program

__all__ = ["MOST_EXACT", "Exact", "optimum_of"]

#: The most shares, or variables, that are decided in rationals where floats failed: seconds, not hours.
MOST_EXACT = 1_000


class Exact(Backend):
    """Exact optima of linear programs, in Fractions; also exactly infeasible or unbounded.

    ``conflict`` of an infeasible program names the constraints in a proof of it; some of them may be superfluous. The
    proofs themselves are ``farkas`` and ``ray``; a single row or bound that contradicts itself needs none.

    Source: Dhiflaoui et al., Certifying and repairing solutions to large LPs: how good are LP-solvers?, 2003;
    Applegate, Cook, Dash and Espinoza, Exact solutions to linear programming problems, 2007; Gleixner, Steffy and
    Wolter, Iterative refinement for linear programming, 2016.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("thirds")
    >>> x = p.variable("x", (2,), lower=0)
    >>> p.constrain("scarce", 3 * x.sum() <= 1)
    >>> p.maximize(x[0] + x[1])
    >>> Exact().solve(p.program()).objective
    Fraction(1, 3)
    """

    name = "exact"
    modules = ("highspy", "flint")
    capabilities = frozenset({Capability.DUALS, Capability.BASIS, Capability.TIME_LIMIT})
    number: ClassVar[type] = Fraction
    endable = 10
    #: Where HiGHS begins, which proposes the basis.
    begin: Basis | None = None

    def near(self, basis: Basis) -> Self:
        """Return an `Exact` whose first proposal is looked for near a basis."""
        here = copy(self)
        here.begin = basis
        return here

    def _solve(self, program: Program, options: Options) -> Solution:
        from fairopt.backends.exact.solve import searched  # here and below, since floats settle most programs

        deadline = INFINITY if options.time_limit is None else time.perf_counter() + options.time_limit
        return searched(program, deadline, self.begin)


def optimum_of(program: Program) -> Solution:
    """Return the optimum of a linear program: in rationals where all its numbers are, else in floats.

    What floats cannot settle is decided in rationals up to `MOST_EXACT` variables. Errors: `NotSolved`.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("far apart")
    >>> share = p.variable("share", (2,), lower=0)
    >>> p.maximize(1e-12 * share[0] + 1e12 * share[1])
    >>> p.constrain("capacity", 1e-9 * share[0] + 1e9 * share[1] <= 1)
    >>> round(optimum_of(p.program()).objective, 6)
    1000.0
    """
    if program.exact:
        return Exact().optimum(program)
    try:
        return Highs().optimum(program)
    except NotSolved:
        if len(program.cost) > MOST_EXACT or program.integer.any() or program.logarithms is not None:
            raise
        return Exact().optimum(program.as_(Fraction))

"""The optimum of a program, by floats where they settle it."""

from __future__ import annotations

from fractions import Fraction

from fairopt.backends.exact.solve import Exact
from fairopt.backends.highs import Highs
from fairopt.backends.solution import Solution
from fairopt.errors import NotSolved
from fairopt.program import Program

#: The most shares, or variables, that are decided in rationals where floats failed: seconds, not hours.
MOST_EXACT = 1_000


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

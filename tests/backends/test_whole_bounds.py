"""Whole variables within bounds that are no whole numbers: HiGHS has called 1/2 an optimum of x within [1/2, 3]."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from fairopt.backends import Backend, Highs
from fairopt.backends.network import Network
from fairopt.backends.pyomo import Pyomo
from fairopt.backends.solution import Status
from fairopt.program import Formulation, Program

BACKENDS = [Highs(), Pyomo(), Network()]


def within(low: F, high: F) -> Program:
    p = Formulation("whole")
    p.minimize(p.variable("x", (1,), lower=low, upper=high, integer=True)[0])
    return p.program()


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
def test_bounds_of_whole_variables_are_rounded_inwards(backend: Backend) -> None:
    assert backend.solve(within(F(-1, 2), F(7, 2))).objective == 0
    assert backend.solve(within(F(1, 2), F(3))).objective == 1
    assert backend.opened()(within(F(1, 2), F(3))).objective == 1
    assert backend.solve(within(F(1, 3), F(2, 3))).status is Status.INFEASIBLE

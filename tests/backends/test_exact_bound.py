"""Exact bounds from multipliers of any origin, and exactly feasible points from nearly feasible ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.exact.bound import exact_bound, feasible_point
from fairopt.backends.exact.checks import dual_bound
from fairopt.backends.exact.vertex import slacks, vertex_of
from fairopt.models import CooperativeOEF, MaxMin, NonCooperativeOEF
from fairopt.program import Formulation, Program, fractions
from fairopt.testing.backend_suite import CASES
from fairopt.testing.samples import sample_markets

MARKETS = list(sample_markets(12, seed=5, users=(2, 6), types=(2, 4), zeros=False))
POLICIES = (CooperativeOEF(), NonCooperativeOEF(), MaxMin())


def programs() -> list[Program]:
    return [policy.formulate(market, policy.start(market)).as_(Fraction) for policy in POLICIES for market in MARKETS]


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
@pytest.mark.parametrize("noise", [0, 1e-9, 1e-2])
def test_any_multipliers_bound_the_optimum(program, noise):
    rough, optimum = Highs().solve(program), Exact().solve(program)
    random = np.random.default_rng(3)
    dual = rough.dual + noise * random.standard_normal(len(rough.dual))
    bound, multipliers = exact_bound(program, dual)
    assert bound >= optimum.objective  # these are all maximisations
    assert bound == dual_bound(program, multipliers)
    assert float(bound - optimum.objective) <= (1e-6 + 100 * noise) * (1 + float(optimum.objective))


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_a_feasible_point_is_found_near_the_optimum(program):
    optimum = Exact().solve(program)
    point = feasible_point(program, None)
    # where users are alike, no point is inside all sides; then a vertex that breaks little shows the way
    vertex = vertex_of(program, Highs().solve(program).basis)
    better = feasible_point(program, vertex)
    for found in (point, better) if point is not None else (better,):
        assert program.violations(found) == {}
    assert float(program.value(better)) == pytest.approx(float(optimum.objective), rel=1e-4)


def test_a_vertex_that_breaks_a_side_is_moved_inside():
    p = Formulation("slanted")
    x = p.variable("x", (2,), lower=0)
    p.maximize(2 * x[0] + x[1])
    p.constrain("first", 3 * x[0] + x[1] <= 1)
    p.constrain("second", x[0] + 3 * x[1] <= 1)
    p.constrain("all", x[0] + x[1] <= Fraction(1, 2) - Fraction(1, 10**9))
    program = p.program().as_(Fraction)
    basis = slacks(program)
    basis.columns[:] = 1
    basis.rows[:2] = 2
    vertex = vertex_of(program, basis)
    assert vertex.infeasible == Fraction(1, 10**9)
    point = feasible_point(program, vertex)
    assert program.violations(point) == {}
    assert float(program.value(point)) == pytest.approx(0.75, abs=1e-6)


WHOLE = [case for case in CASES if case.program().integer.any() and case.optimum is not None]


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_integer_programs_are_bounded_by_their_relaxation(case):
    program = case.program()
    found = Highs().solve(program)
    point = fractions(np.where(program.integer, found.x.round(), found.x))
    assert program.as_(Fraction).violations(point) == {}
    assert program.as_(Fraction).value(point) == case.optimum
    bound, _ = exact_bound(program)
    sign = 1 if program.sense.value == "maximize" else -1
    assert sign * (bound - case.optimum) >= 0


def test_violations_are_exact_and_named():
    p = Formulation("whole")
    x = p.variable("x", (2,), lower=0, upper=3, integer=True)
    p.maximize(x.sum())
    p.constrain("sum", x.sum() <= 4)
    half, program = Fraction(1, 2), p.program().as_(Fraction)
    assert program.violations(fractions(np.array([3.5, 1.0]))) == {"sum": half, "x[0]": half, "x[0] integral": half}
    assert exact_bound(program, np.array([1.0]))[0] == 4


def test_a_program_without_a_bound_has_none():
    p = Formulation("endless")
    x = p.variable("x", (2,), lower=0)
    p.maximize(x.sum())
    p.constrain("difference", x[0] - x[1] <= 1)
    assert exact_bound(p.program(), np.array([1.0])) is None

"""Exact optima: the basis proposed by HiGHS, the pivots from a bad one, and the proofs."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from from_basis import from_basis
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.exact.checks import refuted, require_endless, require_optimum
from fairopt.backends.solution import Basis, Position, Status
from fairopt.errors import FairoptError, NotCapable
from fairopt.program import INFINITY, Formulation, Program, between
from fairopt.testing.backend_suite import CASES, check_optimality


def fractions(*values) -> np.ndarray:
    return np.array([Fraction(value) for value in values], dtype=object)


@st.composite
def linear_programs(draw, size: int = 4) -> Program:
    """Small programs of every kind: degenerate, infeasible, unbounded, with free, fixed and boxed entries."""
    columns, rows = draw(st.integers(1, size)), draw(st.integers(0, size + 1))
    entries = st.integers(-3, 3)
    p = Formulation("drawn")
    kinds = st.sampled_from([(0, None), (None, None), (None, 2), (-1, 3), (0, 1), (1, 1), (None, 0)])
    bounds = [draw(kinds) for _ in range(columns)]
    low = np.array([-INFINITY if low is None else low for low, _ in bounds])
    high = np.array([INFINITY if high is None else high for _, high in bounds])
    x = p.variable("x", (columns,), lower=low, upper=high)
    goal = (np.array(draw(st.lists(entries, min_size=columns, max_size=columns))) * x).sum()
    (p.maximize if draw(st.booleans()) else p.minimize)(goal + draw(entries))
    sides = st.sampled_from([(-INFINITY, 0), (-INFINITY, 4), (-1, INFINITY), (2, INFINITY), (1, 1), (0, 0), (-2, 3)])
    matrix = np.array(
        draw(st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    ).reshape(rows, columns)
    chosen = [draw(sides) for _ in range(rows)]
    p.constrain("row", between([low for low, _ in chosen], matrix @ x, [high for _, high in chosen]))
    return p.program()


def random_basis(program: Program, seed: int) -> Basis:
    """A basis of nobody's choosing, seldom regular, seldom of the right size."""
    rng = np.random.default_rng(seed)
    rows, columns = program.shape
    return Basis(rng.integers(0, 4, columns).astype(np.int8), rng.integers(0, 4, rows).astype(np.int8))


@given(linear_programs())
def test_agrees_with_highs_and_is_exact(program):
    agrees_with_highs(program)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(linear_programs())
def test_many_agree_with_highs_and_are_exact(program):
    agrees_with_highs(program)


def agrees_with_highs(program):
    exact, rough = Exact().solve(program), Highs().solve(program)
    if rough.status not in (Status.INACCURATE, Status.FAILED):  # HiGHS gives up on some unbounded programs
        assert exact.status is rough.status
    if rough.status is Status.OPTIMAL:
        assert float(exact.objective) == pytest.approx(rough.objective, abs=1e-6)
        assert exact.bound == exact.objective
        check_optimality(program, exact, accuracy=0)


@given(linear_programs(), st.integers(0, 10**6))
def test_any_basis_to_start_from_gives_the_same_answer(program, seed):
    any_basis_will_do(program, seed)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(linear_programs(), st.integers(0, 10**6))
def test_any_of_many_bases_to_start_from_gives_the_same_answer(program, seed):
    any_basis_will_do(program, seed)


def any_basis_will_do(program, seed):
    program = program.as_(Fraction)
    wanted = Exact().solve(program)
    for basis in (None, random_basis(program, seed)):
        found = from_basis(program, basis)
        assert (found.status, found.objective if wanted.status is Status.OPTIMAL else None) == (
            wanted.status,
            wanted.objective if wanted.status is Status.OPTIMAL else None,
        )
        if found.status is Status.OPTIMAL:
            again = from_basis(program, found.basis)
            assert "after 0 refinements and 0 exact pivots" in again.raw_status  # the basis returned is the optimal one
            assert again.objective == found.objective


def envy_free(users: int, types: int, seed: int) -> Program:
    rng = np.random.default_rng(seed)
    speedup = np.sort(rng.integers(10, 60, (users, types)), axis=1) * Fraction(1, 10)
    p = Formulation("envy-free efficiency")
    x = p.variable("share", (users, types), lower=0)
    own = (speedup * x).sum(axis=1)
    others = (speedup[:, None, :] * x[None, :, :]).sum(axis=2)
    p.maximize(own.sum())
    p.constrain("capacity", x.sum(axis=0) <= rng.integers(1, 9, types))
    p.constrain("envy_free", (own[:, None] >= others).where(~np.eye(users, dtype=bool)))
    return p.program()


@pytest.mark.parametrize("seed", range(5))
def test_cooperative_oef_is_exact_without_pivots(seed):
    program = envy_free(20, 4, seed)
    solution = Exact().solve(program)
    assert program.violations(solution.x) == {}
    assert float(solution.objective) == pytest.approx(Highs().solve(program).objective)
    assert "after 0 refinements and 0 exact pivots" in solution.raw_status


def test_pivots_from_the_slacks_reach_the_optimum_of_highs():
    program = envy_free(5, 3, 1)
    solution = from_basis(program, None)
    assert "after 0 " not in solution.raw_status
    assert solution.objective == Exact().solve(program).objective


def test_a_float_optimum_that_is_none_is_corrected():
    # 1e-9 is below HiGHS's tolerance: it calls x = 1 optimal although y gains a little more per unit
    p = Formulation("nearly tied")
    x = p.variable("x", (2,), lower=0)
    gain = Fraction(1, 10**9)
    p.maximize(x[0] + (1 + gain) * x[1])
    p.constrain("sum", x.sum() <= 1)
    program = p.program()
    first = Basis(np.array([Position.BASIC, Position.LOWER]), np.array([Position.UPPER]))
    solution = from_basis(program, first)
    assert solution.objective == 1 + gain
    assert "after 1 refinements and 0 exact pivots" in solution.raw_status
    assert Exact().solve(program).objective == 1 + gain


def test_a_feasibility_within_tolerance_is_none():
    p = Formulation("nearly feasible")
    x = p.variable("x", lower=0)
    p.maximize(x)
    p.constrain("most", x <= 1)
    p.constrain("least", x >= 1 + Fraction(1, 10**9))
    assert Highs().solve(p.program()).status is Status.OPTIMAL
    solution = Exact().solve(p.program())
    assert solution.status is Status.INFEASIBLE
    assert set(solution.conflict) == {"most", "least"}


def test_decimals_stay_exact():
    p = Formulation("thirds")
    x = p.variable("x", (2,), lower=0)
    p.maximize(x.sum())
    p.constrain("first", 3 * x[0] + x[1] <= 1)
    p.constrain("second", x[0] + 3 * x[1] <= 1)
    solution = Exact().solve(p.program())
    assert solution.x.tolist() == [Fraction(1, 4), Fraction(1, 4)]
    assert solution.dual.tolist() == [Fraction(1, 4), Fraction(1, 4)]
    assert solution.objective == Fraction(1, 2)


INFEASIBLE = [case for case in CASES if case.status is Status.INFEASIBLE and not case.program().integer.any()]


@pytest.mark.parametrize("case", INFEASIBLE, ids=lambda case: case.name)
def test_a_conflict_is_one(case):
    program = case.program()
    conflict = Exact().solve(program).conflict
    assert conflict
    kept = np.array([program.row_name(row) in conflict for row in range(len(program.rows))])
    bounds = np.array([f"bounds of {program.column_name(column)}" in conflict for column in range(len(program.cost))])
    rows = replace(
        program.rows,
        lower=np.where(kept, program.rows.lower, -INFINITY),
        upper=np.where(kept, program.rows.upper, INFINITY),
    )
    lower, upper = np.where(bounds, program.lower, -INFINITY), np.where(bounds, program.upper, INFINITY)
    assert Highs().solve(replace(program, rows=rows, lower=lower, upper=upper)).status is Status.INFEASIBLE


def test_the_time_limit_stops_the_pivots():
    program = envy_free(8, 4, 2)
    solution = from_basis(program, None, deadline=time.perf_counter())
    assert solution.status is Status.LIMIT
    assert program.violations(solution.x) == {}


def test_integers_and_tolerances_are_refused():
    p = Formulation("whole")
    p.maximize(p.variable("x", upper=1, integer=True))
    with pytest.raises(NotCapable, match="integer variables"):
        Exact().solve(p.program())
    with pytest.raises(NotCapable, match="tolerance"):
        Exact().solve(envy_free(2, 2, 0), tolerance=1e-9)


def test_wrong_proofs_are_refused():
    program = envy_free(2, 2, 0).as_(Fraction)
    solution = Exact().solve(program)
    require_optimum(program, solution.x, solution.dual)
    with pytest.raises(FairoptError, match="breaks a constraint"):
        require_optimum(program, solution.x + 1, solution.dual)
    with pytest.raises(FairoptError, match=r"objective differ|sign of a bound"):
        require_optimum(program, solution.x, solution.dual + 1)
    with pytest.raises(FairoptError, match="sign of a bound"):
        require_optimum(program, solution.x, -solution.dual)
    with pytest.raises(FairoptError, match="do not contradict"):
        refuted(program, solution.dual)
    with pytest.raises(FairoptError, match=r"upper bound|improve"):
        require_endless(program, solution.x, solution.x)
    p = Formulation("endless")
    x = p.variable("x", (2,), lower=0)
    p.maximize(x[0] + x[1])
    p.constrain("difference", x[0] - x[1] <= 1)
    endless = p.program().as_(Fraction)
    require_endless(endless, fractions(0, 0), fractions(1, 1))
    with pytest.raises(FairoptError, match="upper bound"):
        require_endless(endless, fractions(0, 0), fractions(1, 0))
    with pytest.raises(FairoptError, match="improve"):
        require_endless(endless, fractions(0, 0), fractions(0, 0))

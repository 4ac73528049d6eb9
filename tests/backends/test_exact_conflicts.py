"""The factored matrix of a basis, and proofs of infeasibility that begin in floats."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from fairopt.backends.exact import Exact
from fairopt.backends.exact import solve as stages
from fairopt.backends.exact.bound import refutation
from fairopt.backends.exact.checks import contradict
from fairopt.backends.exact.refinement import gathered
from fairopt.backends.exact.vertex import _Kernel
from fairopt.backends.solution import Status
from fairopt.benchmarks.exact import promised
from fairopt.models import NonCooperativeOEF
from fairopt.problem import Market
from fairopt.program import Formulation, Program


def square(seed: int, size: int) -> Program:
    """A program with ``size`` rows of one to four entries in as many variables, some of them dependent."""
    random, p = np.random.default_rng([seed, size]), Formulation("square")
    matrix = np.full((size, size), Fraction(0))
    for row in matrix:
        places = random.choice(size, min(size, int(random.integers(1, 5))), replace=False)
        row[places] = [Fraction(int(top), int(under)) for top, under in random.integers(1, 9, (len(places), 2))]
    p.constrain("row", matrix @ p.variable("x", (size,)) == 1)
    return p.program()


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_the_kernel_solves_what_a_dense_matrix_solves(size):
    regular = 0
    for seed in range(60):
        program, every = square(seed, size), np.arange(size)
        entries = [[fmpq(0)] * size for _ in every]
        for r, j, value in zip(program.rows.row, program.rows.column, program.rows.value, strict=True):
            entries[r][j] = fmpq(value.numerator, value.denominator)
        dense, side = fmpq_mat(entries), [Fraction(place + 1, 3) for place in range(size)]
        kernel = _Kernel.of(program, every, every)
        if not dense.det():
            if kernel is not None:
                with pytest.raises(ZeroDivisionError):
                    kernel.solve(np.array(side))
            continue
        regular += 1
        right = fmpq_mat(size, 1, [fmpq(value.numerator, value.denominator) for value in side])
        for matrix, solve in ((dense, kernel.solve), (dense.transpose(), kernel.solve_transposed)):
            wanted = [Fraction(int(value.p), int(value.q)) for value in matrix.solve(right).entries()]
            assert solve(np.array(side)).tolist() == wanted
    assert regular > 3


def test_equal_throughputs_leave_no_nucleus():
    """Each user's row and shares have two entries, so that nothing dense is left to solve."""
    market = Market.of([[1, Fraction(7 + user, 7)] for user in range(40)], [9, 11])
    program = NonCooperativeOEF().formulate(market, None).as_(Fraction)
    basis = Exact().solve(program).basis
    kernel = _Kernel.of(program, np.flatnonzero(basis.rows != 1), np.flatnonzero(basis.columns == 1))
    assert kernel.left_rows == []


@pytest.mark.parametrize("users", [12, 40])  # the second is so large that HiGHS presolves it, and leaves no proof
def test_a_promise_that_others_envy_is_refuted_without_a_second_program(users, monkeypatch):
    monkeypatch.setattr(stages, "nearest_point", lambda part: pytest.fail("solved exactly"))
    program = promised(users, 10)
    found = Exact().solve(program)
    assert found.status is Status.INFEASIBLE
    assert contradict(program.as_(Fraction), found.farkas)


def test_what_floats_gather_wrongly_is_decided_exactly(monkeypatch):
    program = promised(12, 4)
    monkeypatch.setattr(stages.FloatProgram, "refutation", lambda self: np.ones(len(program.rows)))
    found = Exact().solve(program)
    assert found.status is Status.INFEASIBLE
    assert contradict(program.as_(Fraction), found.farkas)


def test_feasible_rows_contradict_nothing():
    program = promised(12, 4)
    free = replace(program, lower=np.zeros_like(program.lower))
    assert not gathered(free.as_(float)).any()
    assert gathered(program.as_(float)).any()
    assert refutation(free.as_(Fraction), gathered(program.as_(float))) is None

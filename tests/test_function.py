"""Plain functions as policies, in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy
import numpy as np
import pytest

from fairopt import Market, NotCapable, allocate, compare
from fairopt.backends import Highs
from fairopt.backends.cvxpy import read_problem
from fairopt.backends.exact import Exact
from fairopt.policy.function import Function
from fairopt.proofs.verify import verify

MARKET = Market.of([[1, 2], [1, 5]], capacity=[1, 1], weight=[1, 3])


def by_weight(market: Market) -> Any:
    return np.outer(market.weight / market.weight.sum(), market.capacity)


def largest(market: Market) -> Any:
    share = cvxpy.Variable(market.speedup.shape, nonneg=True)
    total = cvxpy.sum(cvxpy.multiply(market.speedup, share))
    return cvxpy.Problem(cvxpy.Maximize(total + 1), [cvxpy.sum(share, axis=0) <= market.capacity])


def test_allocate_and_compare_take_functions() -> None:
    decision = allocate(by_weight, MARKET)
    assert decision.exact
    assert [str(each) for each in decision.utilities] == ["3/4", "9/2"]
    rows = list(compare(MARKET, [by_weight, largest, "max-min"], ["envy_freeness", "pareto_efficiency"]))
    assert [row.policy.name for row in rows] == ["by_weight", "largest", "max-min"]
    assert all(verdict.exact for row in rows for verdict in row.verdicts.values())
    assert next(iter(compare(MARKET, by_weight, "envy_freeness"))).verdicts["envy_freeness"].holds
    assert allocate(lambda market: by_weight(market), MARKET).policy == "function"


def test_a_market_in_floats_is_decided_in_floats() -> None:
    decision = allocate(by_weight, MARKET.as_(float))
    assert decision.shares.dtype == float
    with pytest.raises(NotCapable, match="no exact allocation of function"):
        allocate(lambda market: by_weight(market) / np.sqrt(2), MARKET, exact=True)


def test_a_certificate_is_of_the_program_that_was_written() -> None:
    decision = allocate(largest, MARKET, exact=True)
    assert decision.objective == 7
    assert "objective 7" in str(verify(Function(largest).certify(decision).to_json()))
    with pytest.raises(NotCapable, match="nothing shows why"):
        Function(by_weight).certify(allocate(by_weight, MARKET))


@pytest.mark.parametrize(
    "attributes", [{}, {"nonneg": True}, {"nonpos": True}, {"integer": True}, {"bounds": [0, 1]}, {"boolean": True}]
)
@pytest.mark.parametrize("maximize", [True, False])
def test_a_problem_read_has_cvxpys_own_optimum(attributes: dict[str, bool], maximize: bool) -> None:
    random = np.random.default_rng(0)
    cost = random.integers(-3, 4, (3, 2))
    share = cvxpy.Variable((3, 2), **attributes)
    other = cvxpy.Variable(2, nonneg=True)
    goal = cvxpy.sum(cvxpy.multiply(cost, share)) + (-1 if maximize else 1) * (cvxpy.sum(other) + cvxpy.max(share)) + 2
    rows = [share <= 2, share >= -2, cvxpy.sum(share, axis=0) == other - 1, cvxpy.abs(share[0, 1]) <= 1.5]
    problem = cvxpy.Problem(cvxpy.Maximize(goal) if maximize else cvxpy.Minimize(goal), rows)
    program = read_problem(problem, share, "asked")
    assert program is not None
    problem.solve(solver=cvxpy.HIGHS)
    solution = (Highs() if program.integer.any() else Exact()).solve(program)
    if problem.status == "infeasible":
        assert solution.x is None
        return
    assert float(solution.objective) == pytest.approx(problem.value)
    assert program.violations(program_point(program, share, other), tolerance=1e-6).keys() <= set()


def program_point(program: Any, share: Any, other: Any) -> Any:
    """Return the optimum of the program with cvxpy's shares fixed."""
    lower, upper = program.lower.copy(), program.upper.copy()
    span = program.variable_block("share").span
    lower[span] = upper[span] = np.round(share.value, 9).ravel()
    slack = replace(program, lower=lower, upper=upper)
    return Highs().solve(slack).point


def test_what_is_not_linear_is_none() -> None:
    share = cvxpy.Variable((2, 2))
    for goal, rows in (
        (cvxpy.Minimize(cvxpy.sum_squares(share)), [share >= 1]),
        (cvxpy.Maximize(cvxpy.sum(cvxpy.log(share))), [share <= 1]),
        (cvxpy.Maximize(cvxpy.sum(share)), [cvxpy.norm(share) <= 1]),
    ):
        assert read_problem(cvxpy.Problem(goal, rows), share, "asked") is None

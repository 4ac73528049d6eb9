"""What misreports gain, one at a time and many at once: against decisions that are known."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np
import pytest

from fairopt.backends import Highs, Method, highs
from fairopt.backends.exact import Exact, refinement
from fairopt.backends.solution import Status
from fairopt.benchmarks.misreports import random_market
from fairopt.deadline import remaining
from fairopt.errors import NotSolved, WrongReturn
from fairopt.models import CooperativeOEF, HierarchicalWaterFilling, MaxEfficiency, MaxMin, NonCooperativeOEF
from fairopt.policy import Computed, Policy, decide
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import Answer, Effort, StrategyProofness
from fairopt.properties.misreports.reports import Reports

MARKET = Market.of([[1, 2], [3, 5]], capacity=[4, 2])
LIMITED = Market.of([[1, 2], [3, 5]], capacity=[4, 2], demand=[3, None])


class Loudest(Computed):
    """All goes to who reports the most on the first type."""

    name = "loudest"
    source = "these tests"

    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        if (problem.speedup[:, 0] > 100).any():
            raise NotSolved("too loud")
        shares = np.zeros(problem.shape)
        shares[int(np.argmax(problem.speedup[:, 0]))] = problem.capacity
        return shares, None


class Flat(Loudest):
    """Returns what a user gets as one number."""

    def bundle(self, *given: Any) -> Any:
        return np.array([1.0])


class Long(Loudest):
    """Returns what a user gets with a type too many."""

    def bundle(self, *given: Any) -> Any:
        return np.array([1.0, 2.0, 3.0])


class Listed(Loudest):
    """Returns what a user gets as a list."""

    def bundle(self, *given: Any) -> Any:
        return [1.0, 2.0]


@pytest.mark.parametrize(("market", "all_of_it"), [(MARKET, 8.0), (LIMITED, 5.0)])
def test_gains_are_of_the_true_speedups_up_to_the_demand(market: Market, all_of_it: float) -> None:
    asked = Reports(Loudest(), market)
    assert asked.own.tolist() == [0, 22]
    assert asked.fair.tolist() == [4, 11]
    assert asked.market.speedup.dtype == float
    users = np.array([0, 1, 1, 0, 0])
    reports = np.array([[9.0, 1], [1.5, 9], [0.5, 9], [101, 1], [2, 2]])
    gains = asked.gains(users, reports)
    assert gains[[0, 1, 2, 4]].tolist() == [all_of_it, 0, -22, 0]
    assert np.isnan(gains[3])
    assert asked.gain(0, reports[0]) == all_of_it
    assert isinstance(asked.gain(1, reports[2]), float)
    assert asked.gain(1, reports[2]) == -22
    assert asked.misreported(0, reports[0]).shares.tolist() == [[4, 2], [0, 0]]


def test_where_many_can_be_decided_at_once_they_are() -> None:
    asked, given = Reports(Loudest(), MARKET), []

    def together(users: Array, reports: Array) -> Array:
        given.append((users.tolist(), reports.tolist()))
        return np.array([[4.0, 0], [1, 2]])

    asked._together = together  # type: ignore[assignment]
    assert asked.gains(np.array([0, 1]), np.array([[2.0, 1], [1, 9]])).tolist() == [4, 3 + 10 - 22]
    assert given == [([0, 1], [[2, 1], [1, 9]])]


@pytest.mark.parametrize(("most", "at_once"), [(12, 3), (4, 1), (3, 1)])
def test_no_more_are_decided_at_once_than_fit_in_so_many_speedups(
    most: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairopt.properties.misreports.reports.MOST_AT_ONCE", most)
    asked, given, times = Reports(Loudest(), MARKET), list[int](), list[float]()

    def together(users: Array, reports: Array) -> Array:
        given.append(len(users))
        times.append(remaining())
        return np.array([[4.0, 0]] * len(users))

    asked._together = together  # type: ignore[assignment]
    users, reports = np.array([0, 1, 0, 1]), np.ones((4, 2))
    assert asked.gains(users, reports).tolist() == [4, -10, 4, -10]
    assert given == [at_once] * (4 // at_once) + [4 % at_once] * (4 % at_once > 0)
    assert times == [float("inf")] * len(given)
    answers = iter([False, True])
    assert asked.gains(users, reports, lambda: next(answers)).tolist() == [4, -10, 4, -10][:at_once]
    del times[:]
    asked.gains(users, reports, ends=monotonic() + 1000)
    asked.gains(users, reports, ends=monotonic() - 1000)
    assert max(times[: len(times) // 2]) <= 1000
    assert max(times[len(times) // 2 :]) <= 0


def test_no_more_are_decided_when_it_is_over() -> None:
    users, reports = np.array([0, 1, 0]), np.array([[9.0, 1], [0.5, 9], [8.0, 8]])
    for most in range(4):
        left = iter([False] * most + [True] * 9)
        found = Reports(Loudest(), MARKET).gains(users, reports, lambda left=left: next(left))
        assert found.tolist() == [8.0, -22, 8][:most]


@pytest.mark.parametrize("policy", [Flat(), Long(), Listed()], ids=lambda each: type(each).__name__)
def test_a_bundle_of_another_shape_is_refused_by_the_name_of_its_method(policy: Any) -> None:
    with pytest.raises(WrongReturn, match=r"(Flat|Long|Listed)\.bundle.*GPUs of each type"):
        Reports(policy, MARKET).gains(np.array([0]), np.array([[9.0, 1]]))


def test_who_decides_one_by_one_is_asked_for_few_at_once() -> None:
    one_by_one, many = Reports(Loudest(), MARKET), Reports(MaxEfficiency(), MARKET)
    assert (one_by_one.chunk, one_by_one.screened) == (16, False)
    assert many.chunk > 16
    assert many.screened


def test_the_solver_of_the_truth_decides_what_follows() -> None:
    """HiGHS, asked by name, decides many at once as the policy's own does; a method on programs alone does not."""
    by_name = decide(NonCooperativeOEF(), MARKET.as_(float), Highs())
    asked = Reports(NonCooperativeOEF(), MARKET, by_name)
    assert asked.truth is by_name
    assert asked.chunk > 16
    assert asked.misreported(0, np.array([1.0, 3.0])).solver == by_name.solver
    own = decide(NonCooperativeOEF(), MARKET.as_(float))
    assert isinstance(own.solver, Method)
    assert own.solver.solves_programs
    assert Reports(NonCooperativeOEF(), MARKET, own).screened
    assert Reports(NonCooperativeOEF(), MARKET, own).chunk > 16
    exact = decide(NonCooperativeOEF(), MARKET, Exact())
    assert Reports(NonCooperativeOEF(), MARKET, exact).chunk == 16


def test_where_nobody_asked_for_a_solver_a_misreport_is_decided_as_if_it_were_the_truth() -> None:
    """Rationals decide the truth, as floats cannot tell; on the lie they can, and choose another optimum than these."""
    policy, lie = HierarchicalWaterFilling(), np.array([1.0, 1])
    market = Market.of([[0, 1], [3, 3], [0, 2]], capacity=[4, 1], demand=[4, 4, 2]).as_(float)
    alone = decide(policy, market.misreport(0, lie))
    asked = Reports(policy, market, decide(policy, market))
    assert (asked.truth.backend, alone.backend) == ("exact", "highs")
    assert asked.misreported(0, lie).shares.tolist() == alone.shares.tolist()
    by_name = Reports(policy, market, decide(policy, market, Exact())).misreported(0, lie)
    assert by_name.backend == "exact"
    assert market.utility(by_name.shares.astype(float))[0] > market.utility(alone.shares)[0] + 0.5


@pytest.mark.parametrize("market", [MARKET, LIMITED])
def test_many_at_once_gain_what_each_gains(market: Market) -> None:
    """Maximum efficiency gives a type to who says most, as far as it wants any."""
    asked = Reports(MaxEfficiency(), market)
    users, reports = np.array([0, 1, 0]), np.array([[9.0, 18], [0.5, 0.5], [9.0, 1.0]])
    for user, report, gain in zip(users.tolist(), reports, asked.gains(users, reports), strict=True):
        assert gain == pytest.approx(asked.gain(user, report))
    both = 8 if market is MARKET else 5
    assert asked.gains(users, reports)[0] == pytest.approx(both)
    assert asked.gains(users[:0], reports[:0]).tolist() == []


@pytest.mark.parametrize("policy", [Loudest(), MaxMin()])
def test_numbers_that_no_market_takes_are_reported_by_nobody(policy: Policy) -> None:
    asked = Reports(policy, MARKET)
    users, reports = np.array([0, 0, 1, 1]), np.array([[2.0, 2.0], [1e300, 2.0], [3.0, 1e-40], [4.0, 0.0]])
    gains = asked.gains(users, reports)
    assert np.isnan(gains).tolist() == [False, True, True, False]
    assert gains[[0, 3]].tolist() == asked.gains(users[[0, 3]], reports[[0, 3]]).tolist()
    assert len(asked.gains(users, reports, over=lambda: True)) == 0


@pytest.mark.parametrize("row", [[1e29, 2e29], [1e31, 1e31]])
def test_a_search_near_the_largest_numbers_ends(row: list[float]) -> None:
    """In the second market, whose numbers are beyond those that can be told, there is nothing to be reported."""
    market = replace(MARKET.as_(float), speedup=np.array([row, [3.0, 5.0]]))
    verdict = StrategyProofness().search(MaxMin(), market, effort=Effort(evaluations=40))
    assert verdict.answer is not Answer.HOLDS


# -- beginning near the truth ----------------------------------------------------------------------------------------
def moved(market: Market) -> Market:
    """The market after a report of one user, in its numbers."""
    return market.misreport("u3", [*market.speedup[2, :-1], market.speedup[2, -1] * 2])


@pytest.mark.parametrize("backend", [Highs(), Exact()], ids=lambda each: each.name)
def test_a_backend_that_begins_near_comes_to_the_same_optimum_in_fewer_steps(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = random_market(30, 9, 1).as_(backend.number)
    first, steps, run = decide(CooperativeOEF(), market, backend), list[int](), highs.run

    def counted(running: Any, *given: Any, **how: Any) -> Any:
        found = run(running, *given, **how)
        steps.append(running.getInfo().simplex_iteration_count)
        return found

    monkeypatch.setattr(highs, "run", counted)
    monkeypatch.setattr(refinement, "run", counted)
    program = CooperativeOEF().formulate(moved(market), None)
    cold, near = (each.solve(program) for each in (backend, backend.near(first.solution.basis)))
    assert float(near.objective) == pytest.approx(float(cold.objective), rel=1e-9)
    assert steps[1] < steps[0] / 2
    of_another = MaxMin().formulate(market, None)  # what does not fit is left out
    assert backend.near(first.solution.basis).solve(of_another).status is Status.OPTIMAL


class OneByOne(NonCooperativeOEF):
    """Decides on one report after another."""

    def many_bundles(self, *given: Any) -> None:
        return None


def test_reports_on_a_large_market_begin_near_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 users and 10 types that is three times as fast; on a small market nothing changes."""
    began: list[Any] = []
    monkeypatch.setattr(Highs, "near", lambda self, basis: began.append(basis) or self)
    for users, times in ((20, 0), (30, 1)):
        market = random_market(users, 10, 0).as_(float)
        asked = Reports(OneByOne(), market, decide(OneByOne(), market, Highs()))
        assert asked.screened == bool(times)
        asked.gains(np.array([2]), moved(market).speedup[[2]])
        assert len(began) == times

"""Curves of trade-offs: exact where they say so, bounded where not, and found again by other ways."""

from __future__ import annotations

import json
from fractions import Fraction as F
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt import BadInput, Market, NotCapable, allocate, frontier
from fairopt.backends.exact import Exact
from fairopt.datasets import gavel_example, oef_example
from fairopt.frontier import (
    GOALS,
    RELAXED,
    Curve,
    Relaxed,
    Welfare,
)
from fairopt.frontier.goals import LEAST_GAIN, NASH, TOTAL, fixed
from fairopt.frontier.relaxed import THROUGHPUT
from fairopt.frontier.tracing import face_of
from fairopt.models import MaxMin, NashWelfare
from fairopt.models.oef.cooperative import NOT_PARETO_EFFICIENT
from fairopt.problem import Entitlements
from fairopt.proofs.verify import Rejected, verify
from fairopt.properties import Answer, ParetoEfficiency
from fairopt.testing.samples import sample_markets

LINEAR = [each for each in GOALS if not each.near]
#: Users with weights and demands too.
MARKETS = [oef_example(), *sample_markets(2, seed=1, users=(2, 3), types=(2, 3), demands=True)]


def curve_of(market: Market, goal: Welfare, relaxed: Relaxed) -> Curve:
    return frontier(market, goal, relaxed, policies=[]).curves[0]


def by_hand(market: Market, goal: str, name: str, epsilon: float) -> float:
    """Return the optimum of a program that is written down again, by SciPy's linprog."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    market = market.as_(float)
    (n, k), speed, weight, fair = market.shape, market.speedup, market.weight, market.fair_utility()
    own = np.zeros((n, n * k + 2))  # shares, the level, the least gain
    for i in range(n):
        own[i, i * k : (i + 1) * k] = speed[i]
    level, least = np.eye(n * k + 2)[-2:]
    rows = [(np.append(np.tile(np.eye(k)[j], n), [0, 0]), market.capacity[j]) for j in range(k)]
    rows += [(np.append(np.repeat(np.eye(n)[i], k), [0, 0]), m) for i, m in enumerate(market.limit) if np.isfinite(m)]
    for i in range(n):
        if name == "sharing_incentive":
            rows.append((-own[i], -(1 - epsilon) * fair[i]))
        if name == "equal_throughput":
            over = own[i] - weight[i] * level
            rows += [(-over, 0.0), (over, epsilon * weight[i] * fair.sum() / weight.sum())]
        for other in range(n) if name == "envy_freeness" else ():
            theirs = np.zeros_like(level)
            theirs[other * k : (other + 1) * k] = speed[i] * weight[i] / weight[other]
            rows += [(theirs - own[i], epsilon * fair[i])] if other != i else []
        rows += [(fair[i] * least - own[i], 0.0)] if goal == "least_gain" else []
    bounds = [(0, None if speed[i, j] else 0) for i in range(n) for j in range(k)] + [(None, None)] * 2
    aim = least if goal == "least_gain" else own.sum(axis=0)
    free = [(0, 0)] if goal != "least_gain" else [(None, None)]
    found = linprog(-aim, A_ub=[row for row, _ in rows], b_ub=[side for _, side in rows], bounds=bounds[:-1] + free)
    return float(-found.fun)


@pytest.mark.parametrize("relaxed", RELAXED[:3], ids=lambda each: each.name)
@pytest.mark.parametrize("goal", LINEAR, ids=lambda each: each.name)
def test_a_linear_curve_is_found_again_by_another_program_and_exactly_at_any_epsilon(
    goal: Welfare, relaxed: Relaxed
) -> None:
    random = Random(0)
    for market in MARKETS:
        curve = curve_of(market, goal, relaxed)
        assert curve.exact
        last = curve.points[-1].epsilon or F(1)
        program: Any = goal.oracle(market, relaxed, None).program
        for epsilon in (F(random.randint(0, 10**6), 10**6) * last * F(11, 10) for _ in range(3)):
            value = curve.at(epsilon)
            assert value == curve.below(epsilon) == Exact().solve(fixed(program, epsilon)).objective
            assert float(value) == pytest.approx(by_hand(market, goal.name, relaxed.name, float(epsilon)), rel=1e-7)


@pytest.mark.parametrize("relaxed", RELAXED, ids=lambda each: each.name)
def test_no_allocation_of_a_grid_is_above_a_curve_and_breakpoints_are_reached(relaxed: Relaxed) -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1], weight=[2, 1])
    curves = {goal.name: curve_of(market, goal, relaxed) for goal in GOALS}
    steps = 3 if relaxed.efficient else 6  # efficiency takes a program for each allocation
    parts = [F(part, steps) for part in range(steps + 1)]
    for a, b in product(parts, parts):
        shares = np.array([[a, b], [1 - a, 1 - b]], dtype=object)
        for goal in GOALS:
            value = goal.value(market, market.utility(shares))
            assert value <= curves[goal.name].below(relaxed.epsilon(market, shares))
    for goal in LINEAR:
        for point in curves[goal.name].points:
            assert goal.value(market, market.utility(point.allocation)) == point.value
            assert relaxed.efficient or relaxed.epsilon(market, point.allocation) <= point.epsilon
            assert (point.allocation.sum(axis=0) <= market.capacity).all()


def test_the_breakpoints_of_a_curve_by_hand() -> None:
    # OEF Eq. (6): A gives a part of the second type to B, who makes 5 of it instead of 2
    curve = curve_of(Market.of([[1, 2], [1, 5]], [1, 1]), TOTAL, RELAXED[1])
    assert [(point.epsilon, point.value) for point in curve.points] == [(0, F(21, 4)), (F(1, 3), 6)]
    assert [(line.constant, line.slope) for line in curve.lines] == [(F(21, 4), F(9, 4)), (6, 0)]


def test_curves_begin_and_end_where_policies_are_that_optimise_there() -> None:
    for market in MARKETS:
        at_0 = {"envy_freeness": "oef-cooperative", "equal_throughput": "oef-noncooperative"}
        for relaxed in RELAXED[:3]:
            curve = curve_of(market, TOTAL, relaxed)
            if (name := at_0.get(relaxed.name)) is not None:
                assert curve.at(0) == allocate(name, market, exact=True).objective
            assert curve.points[-1].value == allocate("max-efficiency", market, exact=True).objective
            most = allocate("max-min", market, exact=True).objective
            assert curve_of(market, LEAST_GAIN, relaxed).points[-1].value == most


def test_nash_welfare_is_between_its_bounds() -> None:
    for market in [oef_example(), *sample_markets(1, seed=5, users=(2, 3), types=(2, 3))]:
        best = NASH.value(market, allocate("nash-welfare", market, exact=True).utilities)
        for relaxed in RELAXED[:2]:  # which its optimum has
            curve = curve_of(market, NASH, relaxed)
            assert curve.at(0) <= best + F(1, 10**11) <= curve.below(0) + F(1, 10**11)
            assert curve.gap <= curve.at(0) / 1000
        equal = allocate("oef-noncooperative", market, exact=True)
        curve = curve_of(market, NASH, THROUGHPUT)
        assert curve.at(0) <= NASH.value(market, equal.utilities) + F(1, 10**11)
        assert curve.below(0) >= NASH.value(market, equal.utilities)
        assert curve.gap <= 2 * curve.below(99) / 1000


def test_pareto_efficient_allocations_bound_the_curve_from_below() -> None:
    # cooperative OEF's only optimum is not Pareto-efficient here, so that both together cost more than envy-freeness
    curve = frontier(NOT_PARETO_EFFICIENT, "total_efficiency", "envy_freeness").curves[0]
    reached = curve.efficient_at(0)
    assert reached is not None
    assert 0 < reached < curve.at(0)
    assert not curve.settled
    for points in curve.efficient.values():
        for point in points:
            assert ParetoEfficiency().check(NOT_PARETO_EFFICIENT, point.allocation).answer is Answer.HOLDS
            assert RELAXED[0].epsilon(NOT_PARETO_EFFICIENT, point.allocation) <= point.epsilon
            assert point.value <= curve.at(point.epsilon)


def test_policies_are_on_or_below_every_curve() -> None:
    for market in (oef_example(), MARKETS[1]):
        found = frontier(market, ["total_efficiency", "least_gain"])
        assert len(found.policies) > 8
        for each in found.policies:
            assert each.error is None
            assert min(each.distances.values()) >= 0, each.policy
    placed = {each.policy: each for each in frontier(oef_example(), "total_efficiency", "envy_freeness").policies}
    key = "total_efficiency", "envy_freeness"
    assert placed["oef-cooperative"].distances[key] == placed["oef-cooperative"].epsilons["envy_freeness"] == 0
    assert placed["max-efficiency"].distances[key] == 0
    assert placed["max-min"].epsilons["envy_freeness"] == F(18, 245)


def test_a_decision_in_floats_has_its_place_too() -> None:
    # where a demand binds, the optimum of Nash welfare is irrational in general, and with no digits it is in floats
    market = Market.of([[1, 2, 3], [1, 4, 7], [2, 3, 4]], [2, 1, 1], demand=[1, 1, 1])
    [placed] = frontier(market, "nash_welfare", "pareto_efficiency", policies=[NashWelfare(digits=0)]).policies
    assert not placed.exact
    assert placed.reasons == {}
    assert 0 <= placed.epsilons["pareto_efficiency"] < 1e-5
    assert placed.distances["nash_welfare", "pareto_efficiency"] < 1e-5
    pair = Market.of([[1, 2], [1, 5]], [1, 1]).as_(float)
    over = pair.equal_split() * (1 + 1e-9)  # by as much as rounding leaves
    assert RELAXED[3].epsilon(pair, over) == pytest.approx(0.25)


class Refusing(MaxMin):
    """A policy that decides nothing."""

    name = "refusing"

    def formulate(self, problem: Market, state: Any) -> Any:
        """Refuse."""
        raise NotCapable("it does not like this market")


def test_a_policy_that_fails_has_its_own_row_with_the_reason() -> None:
    found = frontier(oef_example(), "least_gain", "envy_freeness", policies=[Refusing(), "max-min"])
    refused, other = found.policies
    assert str(refused.error) == "it does not like this market"
    assert refused.values == {}
    assert other.distances["least_gain", "envy_freeness"] == 0
    assert found.to_json()["policies"][0]["error"] == "it does not like this market"


def test_who_is_left_out_is_told_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    asked = ("total_efficiency", "sharing_incentive")
    monkeypatch.setattr("fairopt.models.oef.efficient.ASKED_UP_TO", 3)
    found = frontier(market, *asked)
    assert "oef-efficient" not in {each.policy for each in found.policies}
    assert found.to_json()["left_out"] == dict(found.left_out)
    assert "may take minutes" in found.left_out["oef-efficient"]
    assert repr(found).endswith("; left out: oef-efficient>")
    named = frontier(market, *asked, policies=["max-min"])
    assert (dict(named.left_out), "left_out" in named.to_json()) == ({}, False)
    assert repr(named) == "<Frontier on 2 users: 1 curve, 1 policy>"


def test_every_curve_is_certified_and_forged_certificates_are_refused() -> None:
    found = frontier(MARKETS[2])
    names = []
    for item in found.certificates():
        assert item.certificate is not None
        told = json.loads(json.dumps(item.certificate.to_json()))
        assert verify(told)
        names.append(item.name)
        for forged in (
            told | {"gap": "-1"},
            told | {"points": [*told["points"][:-1], told["points"][-1] | {"value": "1000000"}]},
            told
            | {
                "lines": [
                    *told["lines"][:-1],
                    told["lines"][-1] | {"constant": told["points"][0]["value"], "slope": "-1"},
                ]
            },
            told | {"points": [each | {"epsilon": "-1"} for each in told["points"]]},
        ):
            with pytest.raises(Rejected):
                verify(forged)
    assert {name.split("-efficient")[0] for name in names} == {f"{g.name}/{r.name}" for g in GOALS for r in RELAXED}


def test_efficient_allocations_hold_no_gpus_that_their_holder_cannot_use() -> None:
    market = Market.of([[1, 0], [1, 0]], [2, 1])
    shares, face = face_of(market, market.equal_split())
    assert shares.tolist() == [[1, 0], [1, 0]]
    assert face.worth(market) == (face.weights * market.utility(shares)).sum()


def test_what_time_does_not_allow_is_left_open_with_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairopt.errors import OutOfTime
    from fairopt.frontier import tracing

    def cut(*asked: Any) -> Any:
        yield next(iter(sandwich(*asked)))
        raise OutOfTime("the time limit of 1 s is over")

    sandwich = tracing.sandwich
    monkeypatch.setattr(tracing, "sandwich", cut)
    found = frontier(gavel_example(), "total_efficiency", "equal_throughput", policies=[])
    curve = found.curves[0]
    assert curve.stopped.startswith("the time limit of 1 s is over")
    assert not curve.exact
    assert 0 < curve.gap < curve.below(99)
    for item in found.certificates():
        assert item.certificate is not None
        assert "more" in verify(item.certificate.to_json())
    none = frontier(oef_example(), "total_efficiency", policies=[], limit=0)
    assert not none.curves
    assert len(none.failed) == 4


def test_what_it_does_not_take_is_refused_by_name() -> None:
    owed = Entitlements.of(["A", "B"], ["T1"], guarantee={"A": [1]})
    market = Market.of([[1], [1]], [2], users=["A", "B"], types=["T1"], entitlements=owed)
    with pytest.raises(NotCapable, match=r"guarantees.*Market\.plain"):
        frontier(market)
    with pytest.raises(NotCapable, match=r"speedups.*of A"):
        frontier(Market.of([[1], [1]], [2], users=["A", "B"], least=[[1], [1]], most=[[2], [1]]))
    with pytest.raises(BadInput, match=r"envy_freness.*envy_freeness"):
        frontier(oef_example(), properties="envy_freness")
    heavy = Market.of([[1, 2], [1, 3]], [1, 1], weight=[1, "1.37"])
    found = frontier(heavy, policies=[], properties="sharing_incentive")
    fine = frontier(oef_example(), policies=[], properties="sharing_incentive", gap="1/1000000")
    assert "up to 1/100000 of" in str(fine.failed["nash_welfare", "sharing_incentive"])
    assert len(fine.curves) == 2
    assert "above 64" in str(found.failed["nash_welfare", "sharing_incentive"])
    assert len(found.curves) == 2


#: One user, one type, users alike, types that nobody uses, numbers far apart, weights and demands that bind.
ODD = {
    "one user": Market.of([[1, 2]], [1, 1]),
    "one type": Market.of([[1], [2], [3]], [2]),
    "one of each": Market.of([[3]], [1]),
    "one user who demands less": Market.of([[1]], [5], demand=[2]),
    "users alike": Market.of([[1, 2, 3]] * 3, [1, 2, 1]),
    "alike but for units": Market.of([[1, 2], [2, 4], [3, 6]], [1, 1]),
    "far apart": Market.of([[1, 10**6], [10**6, 1]], [1, 1]),
    "far apart in units": Market.of([["1e-6", 1], [1, 3]], [1, 1]),
    "nobody runs on all": Market.of([[0, 1], [1, 0]], [1, 1]),
    "a type that nobody uses": Market.of([[0, 1], [0, 2]], [3, 1]),
    "a type without GPUs": Market.of([[1, 2], [2, 1]], [0, 1]),
    "weights": Market.of([[1, 2], [1, 5]], [1, 1], weight=[1, 7]),
    "small demands": Market.of([[1, 2], [1, 5]], [1, 1], demand=["1/10", "1/10"]),
    "all at once": Market.of([[0, 2], [1, 5], [1, 1]], [2, 1], demand=[1, "1/3", None], weight=[1, 2, 3]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_markets_have_curves_that_are_right_and_certified(name: str) -> None:
    market = ODD[name]
    found = frontier(market, LINEAR, policies=["max-min", "oef-cooperative"])
    assert not found.failed
    for curve in found.curves:
        assert curve.exact
        for point in curve.points[:2] if curve.against != "pareto_efficiency" else ():
            by_scipy = by_hand(market, curve.goal, curve.against, float(point.epsilon))
            assert float(point.value) == pytest.approx(by_scipy, rel=1e-6)
    for each in found.policies:
        assert each.error is None
        assert all(distance >= 0 for distance in each.distances.values())
    for item in found.certificates():
        assert item.certificate is not None
        assert verify(json.loads(json.dumps(item.certificate.to_json())))

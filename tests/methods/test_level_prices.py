"""Raising a common level by prices: equal to the exact optimum on all sorts of markets, with bounds that hold."""

from __future__ import annotations

import random
from fractions import Fraction
from time import process_time

import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.errors import BadInput
from fairopt.methods.level import solve as level_prices
from fairopt.methods.level.solve import raise_level
from fairopt.models import MaxMin, NonCooperativeOEF
from fairopt.policy import Policy, allocate
from fairopt.problem import Market
from fairopt.proofs.verify import verify
from fairopt.uniqueness import uniqueness

INFINITY = float("inf")
POLICIES = (NonCooperativeOEF(), MaxMin())


def odd_market(seed: int) -> Market:
    """Return a small market of some odd kind: ties, zeros, weights, demands, copies, far-off units, empty types."""
    draw = random.Random(seed)
    n, k = draw.randint(1, 12), draw.randint(1, 5)
    speed = (
        lambda: draw.choice([0, 1, 2, 3]),
        lambda: draw.choice([1, 2]),
        lambda: draw.uniform(0.1, 1),
        lambda: draw.choice([0, draw.uniform(0.5, 9)]),
        lambda: 10.0 ** draw.randint(-6, 6),
        lambda: draw.randint(1, 40) / 8,
    )[draw.randrange(6)]
    rows = [[float(speed()) for _ in range(k)] for _ in range(n)]
    capacity = [draw.choice([0, 1, 1, 2, 5, draw.uniform(0.5, 8)]) for _ in range(k)]
    if not any(capacity):
        capacity[0] = 3
    there = [j for j in range(k) if capacity[j]]
    for row in rows:
        if not any(row[j] for j in there):
            row[draw.choice(there)] = 1.0
    if draw.random() < 0.4:
        rows[n // 2 :] = [list(rows[0]) for _ in rows[n // 2 :]]
    if draw.random() < 0.2:
        units = [10.0 ** draw.randint(-6, 6) for _ in rows]
        rows = [[unit * each for each in row] for unit, row in zip(units, rows, strict=True)]
    weight = [draw.choice([1, 2, 0.5, draw.uniform(0.1, 5)]) for _ in range(n)] if draw.random() < 0.5 else [1] * n
    if draw.random() < 0.1:
        weight = [10.0 ** draw.randint(-6, 6) for _ in range(n)]
    limits = [draw.choice([INFINITY, 1, 2, draw.uniform(0.05, 4)]) for _ in range(n)]
    return Market.of_arrays(rows, capacity, weight=weight, demand=limits if draw.random() < 0.5 else None)


def check_against_exact(policy: Policy, market: Market) -> None:
    decision = allocate(policy, market)
    best = Fraction(allocate(policy, market, Exact()).objective)
    proven = decision.evidence
    # own partitions are rounded in the program of max-min, and the exact one rounds nothing
    off = Fraction(1, 10**13) if policy.name == "max-min" else Fraction(0)
    assert Fraction(proven.lower) <= best * (1 + off)
    assert best * (1 - off) <= Fraction(proven.upper)
    assert proven.gap <= 1e-9
    close = 1e-12
    shares = decision.shares
    assert (shares >= 0).all()
    assert (shares[market.speedup == 0] == 0).all()
    assert (shares.sum(axis=0) <= market.capacity * (1 + close)).all()
    assert (shares.sum(axis=1) <= market.limit * (1 + close)).all()
    rate = market.weight if policy.name != "max-min" else market.fair_utility()
    reached = (shares * market.speedup).sum(axis=1) / rate
    assert np.allclose(reached, reached[0], rtol=close, atol=0)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("whole", [True, False])
def test_small_odd_markets_against_the_exact_optimum(
    policy: Policy, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:  # small markets by boxes, as large ones are
        monkeypatch.setattr(level_prices, "WHOLE", 0)
    for seed in range(60):
        check_against_exact(policy, odd_market(seed))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("whole", [True, False])
def test_five_hundred_odd_markets_against_the_exact_optimum(
    policy: Policy, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:
        monkeypatch.setattr(level_prices, "WHOLE", 0)
    for seed in range(60, 560):
        check_against_exact(policy, odd_market(seed))


def large(kind: str, n: int, k: int = 10) -> Market:
    """Return a market of n users in floats: even, growing speeds, few distinct speeds, zeros, with demands."""
    random_ = np.random.default_rng([n, k])
    capacity = random_.integers(8, 65, k)
    speedup, weight, demand = random_.uniform(0.1, 1, (n, k)), np.ones(n), None
    if kind == "growing":
        growth = np.cumsum(random_.uniform(0, 1, (n, k)), axis=1)
        speedup = np.round(1 + growth - growth[:, :1], 2)
    if kind == "few":
        speedup = random_.choice(random_.uniform(0.1, 1, (50, k)), n)
    if kind == "zeros":
        speedup[random_.random((n, k)) < 0.4] = 0
        speedup[np.arange(n), random_.integers(0, k, n)] = 1
    if kind == "demands":
        weight = random_.uniform(0.1, 4, n)
        demand = random_.uniform(1, 3, n) * capacity.sum() / n * weight
    return Market.of_arrays(speedup, capacity, weight=weight, demand=demand)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("kind", ["even", "growing", "few", "zeros", "demands"])
def test_middling_markets_against_highs(policy: Policy, kind: str) -> None:
    market = large(kind, 400, 6)
    decision = allocate(policy, market)
    plain = allocate(policy, market, Highs())
    assert decision.backend == "auto"
    assert decision.evidence.gap <= 1e-9
    assert float(plain.objective) == pytest.approx(decision.evidence.upper, rel=1e-6)


def test_a_hundred_thousand_users() -> None:
    market = large("even", 100_000)
    raised = raise_level(market.speedup, market.capacity, market.weight)
    assert raised.gap <= 1e-9


@pytest.mark.slow
def test_a_million_users() -> None:
    market = large("even", 1_000_000)
    began = process_time()
    raised = raise_level(market.speedup, market.capacity, market.weight)
    seconds = process_time() - began
    assert raised.gap <= 1e-9
    assert seconds < 60  # for a machine much slower than ours; figures are the benchmark's


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("seed", range(8))
def test_the_verifier_accepts_the_exact_bound(policy: Policy, seed: int) -> None:
    decision = allocate(policy, odd_market(seed))
    certificate = policy.certify(decision)
    assert "has objective" in verify(certificate.to_json())
    assert 0 <= certificate.gap <= Fraction(1, 10**9) * certificate.bound  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("seed", range(30))
def test_the_optima_are_those_of_the_plain_program(policy: Policy, seed: int) -> None:
    draw = random.Random(seed)
    market = Market.of(
        [[draw.randint(1, 4) for _ in range(3)] for _ in range(4)], [draw.randint(1, 3) for _ in range(3)]
    )
    ours, plain = (uniqueness(policy, allocate(policy, market, *backend)) for backend in ((), (Highs(),)))
    assert ours == plain


def test_floors_are_kept_and_the_rest_is_raised() -> None:
    speedup, capacity = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]]), np.array([2.0, 3.0])
    raised = raise_level(speedup, capacity, np.array([0.0, 1.0, 1.0]), floor=np.array([1.5, 0.0, 0.5]))
    reached = (raised.shares * speedup).sum(axis=1)
    assert reached == pytest.approx([1.5, raised.level, 0.5 + raised.level])
    assert raised.gap <= 1e-12
    assert (raised.shares.sum(axis=0) <= capacity * (1 + 1e-12)).all()


def test_a_start_nearby_saves_the_interior_point() -> None:
    market = large("even", 2000)
    first = raise_level(market.speedup, market.capacity, market.weight)
    speedup = market.speedup.copy()
    speedup[7] = speedup[8]
    again = raise_level(speedup, market.capacity, market.weight, start=first)
    assert again.effort["steps"] == 0
    assert again.gap <= 1e-9
    assert again.upper == pytest.approx(raise_level(speedup, market.capacity, market.weight).upper, rel=1e-9)


def test_who_cannot_run_is_refused() -> None:
    with pytest.raises(BadInput, match="nobody can be raised"):
        raise_level(np.array([[0.0, 1.0]]), np.array([1.0, 0.0]), np.array([1.0]))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("kind", ["even", "demands"])
def test_following_decides_as_anew_while_users_change_come_and_go(policy: Policy, kind: str) -> None:
    market = large(kind, 330, 6)
    decide = policy.follow()
    for step in range(6):
        users = np.arange(300 + step % 3)
        users[step] = 320 + step
        demand = None if market.demand is None else market.demand[users]
        nearby = Market.of_arrays(market.speedup[users], market.capacity, weight=market.weight[users], demand=demand)
        ours, anew = decide(nearby), allocate(policy, nearby)
        assert ours.evidence.gap <= 1e-9
        assert float(ours.objective) == pytest.approx(float(anew.objective), rel=1e-9)


def test_one_demand_that_limits_all_is_seen_at_once() -> None:
    market = large("even", 4000)
    demand = np.random.default_rng(1).uniform(0.9, 3, 4000) * market.capacity.sum() / 4000
    raised = raise_level(market.speedup, market.capacity, market.weight, demand=demand)
    assert raised.gap <= 1e-12
    assert raised.effort["boxes"] == 0

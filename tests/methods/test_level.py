"""Raising a common level by prices: equal to the exact optimum on all sorts of markets, with bounds that hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import counts, seeds

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.benchmarks.float_samples import Speedups, even, few, large_market, odd_market, rising, sparse
from fairopt.errors import BadInput
from fairopt.methods.level import raise_level
from fairopt.methods.level import solve as level_prices
from fairopt.models import MaxMin, NonCooperativeOEF
from fairopt.policy import Policy, follow, uniqueness
from fairopt.problem import Market
from fairopt.proofs.verify import verify
from fairopt.testing.samples import sample_markets

POLICIES = (NonCooperativeOEF(), MaxMin())
#: By steps in prices, as one program, or by boxes, as large markets are.
WAYS = ("steps", "program", "boxes")


def only(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "steps":
        monkeypatch.setattr(level_prices, "STEPPED", 0)
    if way == "boxes":
        monkeypatch.setattr(level_prices, "WHOLE", 0)


def check_against_exact(policy: Policy, market: Market) -> None:
    decision = allocate(policy, market)
    best = Fraction(allocate(policy, market, Exact()).objective)
    proven = decision.solution
    if decision.exact:  # prices failed in floats, and rationals decided
        assert decision.objective == best
        return
    # own partitions are rounded in the program of max-min, and the exact one rounds nothing
    off = Fraction(1, 10**13) if policy.name == "max-min" else Fraction(0)
    assert Fraction(proven.lower) <= best * (1 + off)
    assert best * (1 - off) <= Fraction(proven.upper)
    assert proven.gap <= 1e-8  # 4e-9 on one market whose weights lie ten orders of magnitude apart, else 1e-9
    close = 1e-12
    shares = decision.shares
    assert (shares >= 0).all()
    assert (shares[market.speedup == 0] == 0).all()
    assert (shares.sum(axis=0) <= market.capacity * (1 + close)).all()
    assert (shares.sum(axis=1) <= market.limit * (1 + close)).all()
    rate = market.weight if policy.name != "max-min" else market.fair_utility()
    reached = (shares * market.speedup).sum(axis=1) / rate
    assert np.allclose(reached, reached[0], rtol=close, atol=0)


@pytest.mark.parametrize("count", counts(12, 30))
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("way", WAYS)
def test_small_odd_markets_against_the_exact_optimum(
    policy: Policy, way: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    only(way, monkeypatch)
    for seed in range(count):
        check_against_exact(policy, odd_market(seed, users=(1, 12)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("way", WAYS)
def test_five_hundred_odd_markets_against_the_exact_optimum(
    policy: Policy, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(way, monkeypatch)
    for seed in range(60, 560):
        check_against_exact(policy, odd_market(seed, users=(1, 12)))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("demands", [False, True])
@pytest.mark.parametrize("speedups", [even, rising, few, sparse], ids=lambda kind: kind.__name__)
def test_middling_markets_against_highs(policy: Policy, speedups: Speedups, demands: bool) -> None:
    market = large_market(400, 6, speedups, weights=demands, demands=demands)
    decision = allocate(policy, market)
    plain = allocate(policy, market, Highs())
    assert decision.backend == "auto"
    assert decision.solution.gap <= 1e-9
    assert float(plain.objective) == pytest.approx(decision.solution.upper, rel=1e-6)


def test_a_hundred_thousand_users() -> None:
    market = large_market(100_000, 10, even)
    raised = raise_level(market.speedup, market.capacity, market.weight)
    assert raised.gap <= 1e-9


@pytest.mark.slow
def test_a_million_users() -> None:
    market = large_market(1_000_000, 10, even)
    raised = raise_level(market.speedup, market.capacity, market.weight)
    assert raised.gap <= 1e-9


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("seed", seeds(3, 8))
def test_the_verifier_accepts_the_exact_bound(policy: Policy, seed: int) -> None:
    decision = allocate(policy, odd_market(seed))
    certificate = policy.certify(decision)
    assert "has objective" in verify(certificate.to_json())
    assert 0 <= certificate.gap <= Fraction(1, 10**9) * certificate.bound  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("seed", seeds(10, 30))
def test_the_optima_are_those_of_the_plain_program(policy: Policy, seed: int) -> None:
    market = next(sample_markets(1, seed=seed, users=(4, 4), types=(3, 3), most=4, weights=False, zeros=False))
    ours, plain = (uniqueness(policy, allocate(policy, market, *backend)) for backend in ((), (Highs(),)))
    assert ours == plain


def test_floors_are_kept_and_the_rest_is_raised() -> None:
    speedup, capacity = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]]), np.array([2.0, 3.0])
    raised = raise_level(speedup, capacity, np.array([0.0, 1.0, 1.0]), floor=np.array([1.5, 0.0, 0.5]))
    reached = (raised.values["share"] * speedup).sum(axis=1)
    assert reached == pytest.approx([1.5, raised.lower, 0.5 + raised.lower])
    assert raised.gap <= 1e-12
    assert (raised.values["share"].sum(axis=0) <= capacity * (1 + 1e-12)).all()


def test_a_start_nearby_gives_the_same_level() -> None:
    market = large_market(2000, 10, even)
    first = raise_level(market.speedup, market.capacity, market.weight)
    speedup = market.speedup.copy()
    speedup[7] = speedup[8]
    again = raise_level(speedup, market.capacity, market.weight, start=first.warm_start)
    assert again.gap <= 1e-9
    assert again.upper == pytest.approx(raise_level(speedup, market.capacity, market.weight).upper, rel=1e-9)


@pytest.mark.parametrize("factor", [0.0, 1e-9, 1e9, np.nan, np.inf])
def test_a_start_that_is_far_off_does_no_harm(factor: float) -> None:
    market = large_market(400, 6, even)
    first = raise_level(market.speedup, market.capacity, market.weight)
    for start in (
        (first.duals["capacity"] * np.arange(1, 7) * factor, first.lower * factor),
        (first.duals["capacity"][:3], first.lower),
    ):
        with np.errstate(all="ignore"):
            again = raise_level(market.speedup, market.capacity, market.weight, start=start)
        assert again.gap <= 1e-9
        assert again.upper == pytest.approx(first.upper, rel=1e-9)


def test_who_cannot_run_is_refused() -> None:
    with pytest.raises(BadInput, match="no user can get more"):
        raise_level(np.array([[0.0, 1.0]]), np.array([1.0, 0.0]), np.array([1.0]))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("demands", [False, True])
def test_following_decides_as_anew_while_users_change_come_and_go(policy: Policy, demands: bool) -> None:
    market = large_market(330, 6, even, weights=demands, demands=demands)
    decide = follow(policy)
    for step in range(6):
        users = np.arange(300 + step % 3)
        users[step] = 320 + step
        demand = None if market.demand is None else market.demand[users]
        nearby = Market.of_arrays(market.speedup[users], market.capacity, weight=market.weight[users], demand=demand)
        ours, anew = decide(nearby), allocate(policy, nearby)
        assert ours.solution.gap <= 1e-9
        assert float(ours.objective) == pytest.approx(float(anew.objective), rel=1e-9)


def test_one_demand_that_limits_all_is_seen_at_once() -> None:
    market = large_market(4000, 10, even)
    demand = np.random.default_rng(1).uniform(0.9, 3, 4000) * market.capacity.sum() / 4000
    raised = raise_level(market.speedup, market.capacity, market.weight, demand=demand)
    assert raised.gap <= 1e-12
    assert np.count_nonzero(raised.duals["demand"]) == 1


@pytest.mark.parametrize(("users", "part"), [(4000, 0.97), (2000, 0.01)])
def test_what_one_demand_allows_is_reached_without_a_program(users: int, part: float, monkeypatch) -> None:
    """``part`` of the highest level is allowed; all have it on types any of which alone is fast enough."""
    market = large_market(users, 10, even)
    free = raise_level(market.speedup, market.capacity, market.weight)
    demand = np.full(users, np.inf)
    demand[0] = part * free.lower * market.weight[0] / market.speedup[0].max()
    monkeypatch.setattr(level_prices, "Box", None)
    raised = raise_level(market.speedup, market.capacity, market.weight, demand=demand)
    assert raised.gap <= 1e-12
    assert raised.lower == pytest.approx(part * free.lower)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_equal_users_are_one(policy: Policy) -> None:
    """Users whose numbers are the same up to their weights get the same by weight, from a program of as many rows."""
    few = large_market(12, 4, even, weights=True, demands=True)
    of, times = np.arange(3000) % 12, 2.0 ** np.random.default_rng(2).integers(-1, 2, 3000)
    demand = None if few.demand is None else few.demand[of] * times
    many = Market.of_arrays(few.speedup[of], few.capacity * 250, weight=few.weight[of] * times, demand=demand)
    found = allocate(policy, many)
    assert found.solution.gap <= 1e-12
    assert found.solution.effort["largest"] <= 12
    by_weight = found.shares / many.weight[:, None]
    assert np.allclose(by_weight, by_weight[:12][of], rtol=1e-12, atol=0)

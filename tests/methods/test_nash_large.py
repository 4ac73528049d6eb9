"""Nash welfare of large markets and of awkward ones: proven gaps, exact equilibria, and Newton steps that arrive."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt.errors import BadInput, NotSolved
from fairopt.methods.eisenberg_gale.bounds import nash_bound
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium
from fairopt.methods.eisenberg_gale.forests import edges_of, forest_prices
from fairopt.models import NashWelfare
from fairopt.models.nash.nash_welfare import GAP_PER_WEIGHT
from fairopt.policy import allocate
from fairopt.problem import Market
from fairopt.testing.samples import sample_markets


def awkward_market(seed, users):
    """Return a market in floats: units, capacities and weights far apart, zeros, ties, demands; None if it is none."""
    random = np.random.default_rng(seed)
    n, k, style = int(random.choice(users)), int(random.integers(1, 12)), seed % 5
    speedup = random.uniform(1, 8, (n, k))
    if style == 1:
        speedup = random.integers(1, 4, (n, k)).astype(float)
    if style == 2:
        speedup = speedup * 10.0 ** random.uniform(-6, 6, (n, 1))
    if style == 3:
        speedup = 10.0 ** random.uniform(-6, 6, (n, k))
    if style == 4:
        speedup = speedup[np.arange(n) % max(1, n // 5)] * 10.0 ** random.integers(-6, 7, (n, 1))
    speedup[random.random((n, k)) < (0, 0.3, 0.7)[seed % 3]] = 0
    speedup[np.arange(n), random.integers(0, k, n)] += 0.1 + random.random()
    capacity = 10.0 ** random.uniform(-6, 6, k) if seed % 4 == 3 else random.integers(1, 30, k).astype(float)
    capacity[1:][random.random(k - 1) < 0.15] = 0
    weight = 10.0 ** random.uniform(-3, 3, n) if seed % 4 == 1 else random.integers(1, 4, n).astype(float)
    demand = None
    if seed % 2:
        demand = capacity.sum() / n * random.choice([0.1, 0.5, 1, 2, 10, np.inf], n)
        if seed % 6 == 1:  # demands that use everything up exactly
            demand = capacity.sum() * weight / weight.sum()
    try:
        return Market.of_arrays(speedup, capacity, weight=weight, demand=demand)
    except BadInput:  # somebody runs on types only of which there are none
        return None


def large_market(n, k, seed, *, demands=False, integers=False):
    random = np.random.default_rng(seed)
    speedup = random.integers(1, 9, (n, k)) if integers else random.uniform(1, 8, (n, k))
    capacity = random.integers(n // 10 + 1, n, k)
    demand = np.where(random.random(n) < 0.5, random.integers(1, 8, n) * capacity.sum() / n / 4, np.inf)
    weight = random.integers(1, 5, n)
    return Market.of_arrays(speedup, capacity, weight=weight, demand=demand if demands else None)


def gap_of(decision):
    return decision.evidence.proven.effort[GAP_PER_WEIGHT]


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_awkward_markets_are_solved_and_proved(first):
    solved = 0
    for seed in range(first, first + 50):
        market = awkward_market(1000 + seed, [5, 8, 13, 25, 50, 100, 300])
        if market is None:
            continue
        decision = allocate(NashWelfare(), market)
        assert gap_of(decision) <= 1e-8, seed
        solved += 1
    assert solved > 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 1000, 200))
def test_more_awkward_markets_are_solved_and_proved(first):
    refused = []
    for seed in range(first, first + 200):
        market = awkward_market(1000 + seed, [2, 3, 5, 20, 100])
        try:
            assert market is None or gap_of(allocate(NashWelfare(), market)) <= 1e-8, seed
        except NotSolved:  # 3 of 749, with numbers a million times a million apart: 335, 675 and 793
            refused.append(seed)
    assert len(refused) <= 2


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("demands", [False, True])
def test_a_thousand_users(demands, integers):
    market = large_market(1000, 10, 1, demands=demands, integers=integers)
    decision = allocate(NashWelfare(), market)
    assert gap_of(decision) <= 1e-9
    assert decision.evidence.violations(market, decision.shares, 1e-7) == []
    if not demands:  # the exact equilibrium is found, and rounded
        assert gap_of(decision) <= 1e-13
        assert exact_equilibrium(market, decision.shares) is not None


@pytest.mark.slow
@pytest.mark.parametrize("demands", [False, True])
def test_ten_thousand_users(demands):
    assert gap_of(allocate(NashWelfare(), large_market(10_000, 10, 1, demands=demands))) <= 1e-9


def test_a_large_exact_market_is_exact():
    floats = large_market(400, 6, 2)
    market = Market.of(floats.speedup.round(3).tolist(), floats.capacity.astype(int).tolist())
    decision = allocate(NashWelfare(), market)
    assert decision.exact
    assert decision.evidence.proven is None
    assert decision.evidence.violations(market, decision.shares) == []


def test_the_exact_optimum_is_between_the_bounds():
    for market in sample_markets(40, seed=21):
        exact = allocate(NashWelfare(), market)
        proven = allocate(NashWelfare(), market.as_(float)).evidence.proven
        assert proven.lower <= exact.objective + 1e-12
        assert proven.upper >= exact.objective - 1e-12
        assert proven.gap <= 1e-11


def test_any_prices_bound_any_shares():
    # brute force: shares and prices at random, against the optimum in fractions
    random = np.random.default_rng(22)
    for market in sample_markets(60, seed=22, demands=True):
        floats = market.as_(float)
        best = allocate(NashWelfare(), market).objective
        n, k = market.shape
        parts = random.dirichlet(np.ones(n), k).T * floats.capacity
        rents = random.exponential(1, n) if random.random() < 0.5 else None
        bound = nash_bound(
            floats.speedup, floats.capacity, floats.weight, floats.limit, parts, random.exponential(1, k), rents
        )
        assert bound.lower <= best + 1e-9
        assert bound.upper >= best - 1e-9
        assert bound.gap >= (best - bound.lower) / floats.weight.sum() - 1e-9


def test_overbooked_shares_are_scaled_into_the_capacities():
    market = large_market(30, 4, 3)
    decision = allocate(NashWelfare(), market)
    shares, prices = decision.shares * 1.25, decision.evidence.prices
    bound = nash_bound(market.speedup, market.capacity, market.weight, market.limit, shares, prices, None)
    assert bound.lower == pytest.approx(decision.objective, rel=1e-12)
    assert bound.gap <= 1e-12


def test_a_bound_says_when_it_has_none():
    market = large_market(5, 2, 4)
    nothing = np.zeros(market.shape)
    arrays = (market.speedup, market.capacity, market.weight, market.limit)
    assert nash_bound(*arrays, nothing, np.ones(2), None).gap == math.inf
    assert nash_bound(*arrays, market.equal_split(), np.zeros(2), None).gap == math.inf


def test_the_gap_does_not_depend_on_units():
    market = large_market(20, 3, 5, demands=True)
    scaled = replace(market, speedup=market.speedup * 2.0 ** np.arange(-10, 10)[:, None])
    one, other = allocate(NashWelfare(), market), allocate(NashWelfare(), scaled)
    assert gap_of(one) == pytest.approx(gap_of(other), rel=1e-6, abs=1e-13)


def test_forests_price_trees_in_fractions_and_floats_alike():
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    shares = allocate(NashWelfare(), market).shares
    forest = next(edges_of(market.as_(float), shares))
    assert sorted(map(tuple, forest.tolist())) == [(0, 0), (0, 1), (1, 1)]
    assert forest_prices(market, forest, Fraction).tolist() == [Fraction(2, 3), Fraction(4, 3)]
    assert forest_prices(market.as_(float), forest, float) == pytest.approx([2 / 3, 4 / 3])

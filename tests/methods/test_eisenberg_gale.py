"""Nash welfare of large markets and of awkward ones: proven gaps, exact equilibria, and Newton steps that arrive."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.benchmarks.float_samples import even, large_market, odd_market, whole
from fairopt.errors import NotSolved
from fairopt.methods.eisenberg_gale.bounds import GAP_PER_WEIGHT, nash_bound
from fairopt.methods.eisenberg_gale.exact import edges_of, exact_equilibrium, forest_prices
from fairopt.models import NashWelfare
from fairopt.models.nash import nash_welfare
from fairopt.numbers import FLOATS, RATIONALS
from fairopt.problem import Market
from fairopt.testing.samples import sample_markets

#: What may lie six orders of magnitude apart; where capacities or weights do, not every market with demands is solved.
MILLIONS = ("speedups", "units", "demands")


def gap_of(decision):
    return decision.solution.effort[GAP_PER_WEIGHT]


@pytest.mark.parametrize("count", counts(8, 25))
@pytest.mark.parametrize("users", [(1, 10), (5, 25), (25, 50), (100, 300)])
def test_odd_markets_are_solved_and_proved(users, count):
    for seed in range(count):
        market = odd_market(seed, users=users, types=(1, 12), apart=MILLIONS)
        assert gap_of(allocate(NashWelfare(), market)) <= 1e-8, seed
        market = odd_market(seed, users=users, types=(1, 12), apart=("capacities", "weights"), orders=2)
        assert gap_of(allocate(NashWelfare(), market)) <= 1e-8, seed


@pytest.mark.parametrize("seed", [214, 222])
def test_users_who_want_next_to_nothing_are_left_to_no_linear_programs(seed, monkeypatch):
    """Shares of 1e-11 GPUs became 0, or counted as if they were, and programs in rationals went on for minutes."""
    monkeypatch.setattr(nash_welfare, "by_chords", lambda market: iter(()))
    decision = allocate(NashWelfare(), odd_market(seed, users=(1, 50), types=(1, 12)))
    assert decision.evidence.violations(decision.market, decision.shares, 1e-7) == []
    assert gap_of(decision) <= 1e-13


@pytest.mark.parametrize("seed", [121, 263, 277])
def test_a_poor_draft_is_not_asked_what_is_tight(seed, monkeypatch):
    """It does not know, and equations from it went on for minutes: linear programs in rationals lead there first."""
    asked = []
    near = nash_welfare.near_equilibrium
    monkeypatch.setattr(nash_welfare, "near_equilibrium", lambda *given: asked.append(1) or near(*given))
    decision = allocate(NashWelfare(), odd_market(seed, users=(1, 50), types=(1, 12)))
    assert decision.evidence.violations(decision.market, decision.shares, 1e-7) == []
    assert gap_of(decision) <= 1e-13
    assert len(asked) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 900, 200))
def test_more_odd_markets_are_solved_and_proved(first):
    refused = []
    for seed in range(first, first + 200):
        try:
            assert gap_of(allocate(NashWelfare(), odd_market(seed, users=(1, 50), types=(1, 12)))) <= 1e-8, seed
        except NotSolved:  # where capacities or weights are a million times a million apart
            refused.append(seed)
    assert len(refused) <= 10


@pytest.mark.parametrize("speedups", [even, whole], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("demands", [False, True])
def test_a_thousand_users(demands, speedups):
    market = large_market(1000, 10, speedups, weights=True, demands=demands)
    decision = allocate(NashWelfare(), market)
    assert gap_of(decision) <= 1e-9
    assert decision.evidence.violations(market, decision.shares, 1e-7) == []
    if not demands:  # the exact equilibrium is found, and rounded
        assert gap_of(decision) <= 1e-13
        assert exact_equilibrium(market, decision.shares) is not None


@pytest.mark.slow
@pytest.mark.parametrize("demands", [False, True])
def test_ten_thousand_users(demands):
    assert gap_of(allocate(NashWelfare(), large_market(10_000, 10, even, weights=True, demands=demands))) <= 1e-9


def test_a_large_exact_market_is_exact():
    floats = large_market(400, 6, even)
    market = Market.of(floats.speedup.round(3).tolist(), floats.capacity.astype(int).tolist())
    decision = allocate(NashWelfare(), market)
    assert decision.exact
    assert decision.solution.lower is None
    assert decision.evidence.violations(market, decision.shares) == []


@pytest.mark.parametrize("count", counts(15, 40))
def test_the_exact_optimum_is_between_the_bounds(count):
    for market in sample_markets(count, seed=21):
        exact = allocate(NashWelfare(), market)
        proven = allocate(NashWelfare(), market.as_(float)).solution
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
        demand_duals = random.exponential(1, n) if random.random() < 0.5 else None
        bound = nash_bound(
            floats.speedup, floats.capacity, floats.weight, floats.limit, parts, random.exponential(1, k), demand_duals
        )
        assert bound.lower <= best + 1e-9
        assert bound.upper >= best - 1e-9
        assert bound.effort[GAP_PER_WEIGHT] >= (best - bound.lower) / floats.weight.sum() - 1e-9


def test_overbooked_shares_are_scaled_into_the_capacities():
    market = large_market(30, 4, even, weights=True)
    decision = allocate(NashWelfare(), market)
    shares, prices = decision.shares * 1.25, decision.evidence.prices
    bound = nash_bound(market.speedup, market.capacity, market.weight, market.limit, shares, prices, None)
    assert bound.lower == pytest.approx(decision.objective, rel=1e-12)
    assert bound.effort[GAP_PER_WEIGHT] <= 1e-12


def test_a_bound_says_when_it_has_none():
    market = large_market(5, 2, even, weights=True)
    nothing = np.zeros(market.shape)
    arrays = (market.speedup, market.capacity, market.weight, market.limit)
    assert nash_bound(*arrays, nothing, np.ones(2), None).effort[GAP_PER_WEIGHT] == math.inf
    assert nash_bound(*arrays, market.equal_split(), np.zeros(2), None).effort[GAP_PER_WEIGHT] == math.inf


def test_the_gap_does_not_depend_on_units():
    market = large_market(20, 3, even, weights=True, demands=True)
    scaled = replace(market, speedup=market.speedup * 2.0 ** np.arange(-10, 10)[:, None])
    one, other = allocate(NashWelfare(), market), allocate(NashWelfare(), scaled)
    assert gap_of(one) == pytest.approx(gap_of(other), rel=1e-6, abs=1e-13)


def test_forests_price_trees_in_fractions_and_floats_alike():
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    shares = allocate(NashWelfare(), market).shares
    forest = next(edges_of(market.as_(float), shares))
    assert sorted(map(tuple, forest.tolist())) == [(0, 0), (0, 1), (1, 1)]
    assert forest_prices(market, forest, RATIONALS).tolist() == [Fraction(2, 3), Fraction(4, 3)]
    assert forest_prices(market.as_(float), forest, FLOATS) == pytest.approx([2 / 3, 4 / 3])

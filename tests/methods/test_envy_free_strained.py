"""Cooperative OEF where floats are strained: weights far apart, users almost alike; and its exact certificate."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.benchmarks.float_samples import odd_market
from fairopt.errors import NotCapable
from fairopt.methods.envy_free.bounds import lower_bound
from fairopt.methods.envy_free.problem import MergedUsers
from fairopt.methods.grouping import shared_out, sums
from fairopt.models import CooperativeOEF
from fairopt.models.oef.cooperative import MOST_USERS
from fairopt.problem import Market
from fairopt.proofs.verify import verify


@pytest.mark.parametrize("part", seeds(2, 4))
def test_the_bounds_hold_where_floats_are_strained(part):
    for seed in range(part, 120, 4):
        market = odd_market(seed, users=(1, 7), orders=5, near=True)
        proven = allocate(CooperativeOEF(), market, CooperativeOEF.methods[0]).solution
        exact = allocate(CooperativeOEF(), market.as_(Fraction), Exact()).objective
        assert Fraction(proven.lower) <= exact <= Fraction(proven.upper), seed


def test_tiny_weights_and_demands_do_not_spoil_the_upper_bound():
    speedup = [[0.7, 1.7, 1.7], [1.1, 1.5, 0.9], [1.0, 0.6, 1.9], [1.4, 1.7, 0.8]]
    weight, demand = [419.98, 1.4e-4, 7421.9, 2.4e-5], [1797.8, np.inf, 1.44e-5, 0.24]
    market = Market.of_arrays(speedup, [2, 4315.66, 0.0098], weight=weight, demand=demand)
    assert allocate(CooperativeOEF(), market).solution.gap <= 1e-7


@pytest.mark.parametrize("seed", [7, 198, 287])
def test_where_one_simplex_method_proves_little_the_other_is_asked(seed):
    market = odd_market(seed, users=(2, 12), orders=3, near=True)
    assert allocate(CooperativeOEF(), market).solution.gap <= 1e-7


def test_numbers_too_far_apart_for_floats_are_refused():
    market = Market.of_arrays([[1e-20, 1, 1e20], [2e26, 1e-28, 1], [1e-20, 1, 1e-20]], [1, 1, 1])
    with pytest.raises(NotCapable, match="exact backend"):
        allocate(CooperativeOEF(), market, CooperativeOEF.methods[0])
    assert allocate(CooperativeOEF(), market).exact  # where nobody named the method, rationals decide


def test_users_almost_in_proportion_with_other_demands_have_a_lower_bound():
    market = Market.of_arrays([[0.1, 0.3], [1, 3], [3, 1]], [2, 2], demand=[0.5, np.inf, np.inf])
    assert allocate(CooperativeOEF(), market).solution.lower > 0


def test_users_almost_alike_who_hold_almost_the_same_lose_almost_nothing():
    speedup = np.array([[1, 0.5], [1, 0.5 + 1e-5], [1, 4]])
    users = MergedUsers.of("abc", speedup, np.array([2.0, 1.0]), np.ones(3), None)
    bundle = np.array([[1 - 2e-12, 4e-12], [1, 0], [0, 1]])
    lower, mixed, held = lower_bound(users, bundle, np.arange(3))
    assert 6 * (1 - 1e-10) <= lower <= 6
    assert mixed <= 1e-10
    assert np.array_equal(held[0], held[1])


def plain(seed: int) -> Market:
    random = np.random.default_rng([seed, 5])
    n, k = int(random.integers(1, 13)), int(random.integers(1, 5))
    speedup = random.integers(0, 4, (n, k)) if seed % 2 else np.round(random.uniform(0.1, 3, (n, k)), 2)
    speedup = speedup.astype(float)
    speedup[:, 0] = np.maximum(speedup[:, 0], 1)
    if n > 2:
        speedup[1] = 2 * speedup[0]
    capacity = random.integers(0, 6, k)
    capacity[0] = 3
    demand = np.where(random.random(n) < 0.5, random.integers(1, 5, n), np.inf) if seed % 3 == 0 else None
    return Market.of_arrays(speedup, capacity, weight=random.integers(1, 4, n), demand=demand)


@pytest.mark.parametrize("seed", seeds(8, 24))
def test_the_verifier_accepts_the_certificate_of_a_decision_in_floats(seed):
    market = plain(seed)
    decision = allocate(CooperativeOEF(), market)
    certificate = CooperativeOEF().certify(decision)
    assert "feasible point" in verify(json.loads(json.dumps(certificate.to_json())))
    exact = allocate(CooperativeOEF(), market.as_(Fraction), Exact()).objective
    assert certificate.value <= exact <= certificate.bound
    assert certificate.gap <= certificate.bound * Fraction(1, 10**7)


def test_a_certificate_of_an_exact_market_is_of_its_own_numbers():
    market = Market.of([["1/3", "2/3"], ["1/10", "3/10"], [1, 5]], [1, 2])
    certificate = CooperativeOEF().certify(allocate(CooperativeOEF(), market))
    assert "feasible point" in verify(json.loads(json.dumps(certificate.to_json())))
    assert 0 <= certificate.gap < Fraction(1, 10**9)


def test_many_users_are_not_compared_in_fractions():
    speedup = 1 + np.random.default_rng(0).random((MOST_USERS + 1, 2))
    policy = CooperativeOEF()
    with pytest.raises(NotCapable, match="bounds in floats"):
        policy.certify(allocate(policy, Market.of_arrays(speedup, [1, 1])))


def test_sums_of_groups_are_rounded_once():
    group, amount = np.array([0, 1, 0, 1, 0]), np.array([1e16, 2.0, 1.0, 3.0, 1.0])
    assert sums(group, amount).tolist() == [1e16 + 2, 5.0]


def test_small_parts_keep_their_digits_where_amounts_are_shared_out():
    part = np.array([1.0, 1e-12, 3e-12])
    giver, _, amount = shared_out(np.array([0, 0, 0, 1]), np.append(part / part.sum(), 1.0), *np.array([[0], [1], [7]]))
    np.testing.assert_allclose(np.bincount(giver, amount, minlength=3), 7 * part, rtol=1e-11)


@pytest.mark.parametrize("noise", [1e-5, 1e-6, 1e-8])
def test_users_who_are_nearly_in_proportion_are_decided_by_way_of_users_who_differ_more(noise):
    random = np.random.default_rng(5)
    rows = np.outer(random.lognormal(0, 1, 60), random.lognormal(0, 0.5, 4))
    rows *= random.uniform(1 - noise, 1 + noise, rows.shape)
    market = Market.of_arrays(rows, capacity=random.integers(5, 50, 4).astype(float))
    solution = allocate(CooperativeOEF(), market).solution
    assert solution.gap <= 1e-7

"""Types that are worth the same to everybody but for a factor are one type to the envy-free method."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairopt import allocate
from fairopt.methods.envy_free.problem import kinds_of
from fairopt.models import CooperativeOEF
from fairopt.policy import follow
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.verify import verify

USERS = 58


def market_of(seed: int, **more: Array) -> tuple[Market, Market]:
    """Return a market of two types, and the same one in which the second stands as three, counted otherwise."""
    random = np.random.default_rng(seed)
    speedup = random.uniform(1, 3, (USERS, 2))
    factor, capacity = np.array([1.0, 0.7, 1.9]), random.integers(1, 50, 4).astype(float)
    apart = np.column_stack([speedup[:, 0], speedup[:, 1:] * factor])
    together = np.array([capacity[0], factor @ capacity[1:]])
    return Market.of_arrays(speedup, together, **more), Market.of_arrays(apart, capacity, **more)


@pytest.mark.parametrize("seed", range(3))
def test_what_types_are_called_and_how_they_are_counted_does_not_matter(seed: int) -> None:
    """In floats four of five such types had no end, as the simplex method goes from one optimum to the next."""
    one, apart = (allocate("oef-cooperative", market) for market in market_of(seed))
    assert one.solution is not None
    assert apart.solution is not None
    assert apart.solution.gap <= 1e-9
    assert apart.objective == pytest.approx(one.objective, rel=1e-9)
    # everybody has the same part of all that are alike
    parts = apart.shares[:, 1:] / apart.market.capacity[1:]
    np.testing.assert_allclose(parts, parts[:, :1] + 0 * parts, rtol=1e-9, atol=1e-12)
    assert verify(json.loads(json.dumps(CooperativeOEF().certify(apart).to_json())))


@pytest.mark.parametrize("seed", range(3))
def test_demands_count_gpus_so_that_only_types_of_the_same_speedups_are_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    speedup = random.uniform(1, 3, (24, 2))[:, [0, 1, 1, 0]] * [1, 1, 1, 2]
    market = Market.of_arrays(
        speedup, random.integers(1, 9, 4).astype(float), demand=random.choice([0.3, 1, np.inf], 24)
    )
    assert allocate("oef-cooperative", market).objective == pytest.approx(
        allocate("oef-cooperative", market, "highs").objective, rel=1e-8
    )


def test_who_comes_later_starts_from_kinds_of_types() -> None:
    decide_next = follow(CooperativeOEF())
    market = market_of(0)[1]
    for users in (USERS, USERS - 4, USERS):
        some = Market.of_arrays(market.speedup[:users], market.capacity)
        found = decide_next(some)
        assert found.objective == pytest.approx(allocate("oef-cooperative", some).objective, rel=1e-9)


def test_types_are_alike_for_all_users_or_not_at_all() -> None:
    speedup = np.array([[1.0, 2.0, 0.0, 1e-12, 4.0], [2.0, 4.0, 1.0, 3e-12, 8.0], [3.0, 6.0, 1.0, 3e-12, 12 + 1e-9]])
    _, kind, worth, _ = kinds_of(speedup, np.ones(5), by_worth=True)
    assert kind.tolist() == [0, 0, 1, 2, 3]
    assert np.bincount(kind, worth).tolist() == [3, 1, 1, 1]
    assert kinds_of(speedup, np.ones(5), by_worth=False)[1].tolist() == [0, 1, 2, 3, 4]
    assert kinds_of(speedup[:, [0, 0]], np.ones(2), by_worth=False)[1].tolist() == [0, 0]

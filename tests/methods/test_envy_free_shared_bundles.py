"""Bundles that many users share: the best for groups of users who hold nearly the same, and exactly free of envy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.errors import NotSolved
from fairopt.methods.envy_free import shared_bundles as shared_bundles_module
from fairopt.methods.envy_free.bounds import lower_bound
from fairopt.methods.envy_free.problem import MergedUsers
from fairopt.methods.envy_free.shared_bundles import shared_bundles
from fairopt.methods.incremental_lp import IncrementalLP

#: Eight users that one number orders, some 1e-9 apart; the first four should hold the slow type, the others the fast.
SPEEDUP = 2 ** np.array([[0.0, b] for b in (0.3, 0.3 + 1e-9, 0.4, 0.5, 1.6, 1.6 + 1e-9, 1.8, 1.9)])


def users_of(demand: np.ndarray | None = None) -> MergedUsers:
    return MergedUsers.of("abcdefgh", SPEEDUP, np.array([6.0, 3.0]), np.ones(8), demand)


def nearly() -> np.ndarray:
    bundle = np.repeat([[1.5, 0.0], [0.0, 0.75]], 4, axis=0)
    return bundle + 1e-9 * np.random.default_rng(0).uniform(0, 1, (8, 2))


def test_nobody_envies_where_bundles_are_shared():
    demand = np.array([9, 9, 1.45, 9, 9, 9, 0.7, 9])
    bundle, holds = shared_bundles(users_of(demand), nearly(), np.arange(8), 1e-6)
    assert len(bundle) == 2
    assert holds.tolist() == [0] * 4 + [1] * 4
    exact = [[Fraction(each) for each in row] for row in bundle.tolist()]
    for row, own in zip(SPEEDUP.tolist(), holds.tolist(), strict=True):
        worth = [sum(Fraction(v) * each for v, each in zip(row, held, strict=True)) for held in exact]
        assert worth[own] >= max(worth)
    shares = bundle[holds]
    assert (shares.sum(axis=0) <= np.array([6.0, 3.0]) * (1 + 1e-12)).all()
    assert (shares.sum(axis=1) <= demand * (1 + 1e-12)).all()


def test_what_rounding_left_is_mended_at_next_to_no_cost():
    """Of strictly envy-free bundles a large part would be needed: users 1e-9 apart spare 1e-19 there."""
    users = users_of()
    best = shared_bundles(users, nearly(), np.arange(8), 1e-6)
    total = float((SPEEDUP * best[0][best[1]]).sum())
    lower, mixed, held = lower_bound(users, nearly(), np.arange(8))
    assert mixed == 0
    assert total * (1 - 1e-9) <= lower <= total * (1 + 1e-9)
    assert len(np.unique(held, axis=0)) == 2


def test_users_in_proportion_who_hold_different_bundles_are_left_alone():
    demand = np.array([1.0, 3.0, 9.0])
    users = MergedUsers.of("abc", np.array([[1.0, 2], [1, 2], [1, 5]]), np.ones(2), np.ones(3), demand)
    assert shared_bundles(users, np.array([[1.0, 0], [0, 0.5], [0, 0.5]]), np.arange(3), 1e-6) is None


@pytest.mark.parametrize("limit", [("MOST_GROUPS", 1), ("MOST_PAIRS", 63)])
def test_too_many_bundles_or_groups_are_left_alone(monkeypatch, limit):
    monkeypatch.setattr(shared_bundles_module, *limit)
    assert shared_bundles(users_of(), nearly(), np.arange(8), 1e-6) is None


def test_what_is_known_stands_where_the_program_fails(monkeypatch):
    def fails(self):
        raise NotSolved("no end")

    without = lower_bound(users_of(), nearly(), np.arange(8))
    monkeypatch.setattr(IncrementalLP, "solve", fails)
    assert shared_bundles(users_of(), nearly(), np.arange(8), 1e-6) is None
    assert 0 < lower_bound(users_of(), nearly(), np.arange(8))[0] <= without[0]

"""Cooperative OEF near rank one: from a point inside, and what it is worth as a start."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt import allocate
from fairopt.methods.envy_free import interior_start
from fairopt.methods.envy_free import solve as envy_free_solve
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.testing.float_samples import even, large_market, rising

GAP = 1e-7


@pytest.fixture
def market(monkeypatch) -> Market:
    """A market of few users who could as well buy any type, of whom the method takes as many as there are."""
    monkeypatch.setattr(interior_start, "FEWEST", 41)
    random = np.random.default_rng(0)
    rows = np.outer(random.lognormal(0, 1, 50), random.lognormal(0, 0.5, 9))
    return Market.of_arrays(rows * random.uniform(0.95, 1.05, rows.shape), random.integers(1, 20, 9))


def test_most_rows_that_bind_in_the_end_are_told(monkeypatch, market):
    begun = []

    def begin(users):
        begun.append(interior_start.interior_start(users))
        return begun[-1]

    monkeypatch.setattr(envy_free_solve, "interior_start", begin)
    found = allocate(CooperativeOEF(), market).solution
    monkeypatch.setattr(interior_start, "FEWEST", 1000)
    plain = allocate(CooperativeOEF(), market).solution
    (at,), end = begun, found.warm_start.at
    told, bind = (set(zip(*(each.tolist() for each in rows[:2]), strict=True)) for rows in (at.rows, end.rows))
    assert len(told & bind) >= 0.6 * len(bind)
    assert found.effort["iterations"] < plain.effort["iterations"]
    assert found.gap <= GAP
    assert found.lower == pytest.approx(plain.lower, rel=GAP)


def test_numbers_that_are_none_are_no_start(monkeypatch, market):
    def stepped(step, gap):
        return step.point._replace(bundle=step.point.bundle * np.nan)

    monkeypatch.setattr(interior_start, "MOST_STEPS", 1)
    monkeypatch.setattr(interior_start.NewtonStep, "stepped", stepped)
    assert allocate(CooperativeOEF(), market).solution.gap <= GAP


@pytest.mark.parametrize("speedups", [even, rising])
def test_users_who_clearly_want_one_type_begin_without(monkeypatch, speedups):
    monkeypatch.setattr(interior_start, "FEWEST", 41)
    monkeypatch.setattr(envy_free_solve, "interior_start", None)
    assert allocate(CooperativeOEF(), large_market(50, 9, speedups)).solution.gap <= GAP

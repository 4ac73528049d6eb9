"""The simplex method in prices: the optimum of small markets without a program, and no answer where it finds none."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.benchmarks.float_samples import Speedups, even, few, rising, sparse
from fairopt.methods.level import price_simplex, raise_level
from fairopt.methods.level import solve as level_prices
from fairopt.methods.level.price_simplex import bound, price_vertex
from fairopt.methods.level.problem import AskedLevel, LevelProblem
from fairopt.methods.level.smoothing import smoothed_prices


def drawn(seed: int, speedups: Speedups, *, floors: bool = False) -> tuple[AskedLevel, LevelProblem]:
    random = np.random.default_rng(seed)
    users, types = int(random.integers(1, 60)), int(random.integers(1, 9))
    speed = speedups(random, users, types)
    capacity = random.integers(1, 21, types).astype(float)
    floor = speed.max(axis=1) * (random.random(users) < 0.5) * 0.3 / users if floors else None
    asked = AskedLevel(speed, capacity, random.uniform(0.5, 2, users), floor, None)
    return asked, asked.problem


@pytest.mark.parametrize("floors", [False, True])
@pytest.mark.parametrize("speedups", [even, rising, few, sparse], ids=lambda kind: kind.__name__)
def test_the_vertex_is_that_of_the_whole_program(speedups: Speedups, floors: bool, monkeypatch) -> None:
    found = 0
    for seed in range(25):
        asked, problem = drawn(seed, speedups, floors=floors)
        with np.errstate(all="ignore"):
            at = price_vertex(problem, smoothed_prices(problem))
        with monkeypatch.context() as patched:
            patched.setattr(level_prices, "STEPPED", 0)
            patched.setattr(level_prices, "WHOLE", 10**9)
            level = raise_level(asked.speedup, asked.capacity, asked.rate, floor=asked.floor)
        stepped = raise_level(asked.speedup, asked.capacity, asked.rate, floor=asked.floor)
        assert stepped.lower == pytest.approx(level.lower, rel=1e-12)
        if at is not None and at.only:
            found += 1
            assert (at.shares >= 0).all()
            assert (at.shares.sum(axis=1) <= problem.capacity * (1 + 1e-9)).all()
            reached = (at.shares / problem.need).sum(axis=0)
            assert np.allclose(reached, problem.floor + problem.rate * at.level, rtol=1e-9)
            assert bound(problem, np.maximum(at.prices, 1e-300)) == pytest.approx(at.level, rel=1e-9)
    assert found >= 20 or speedups in (few, sparse)  # of 25; where there are several optima, HiGHS chooses


def test_users_who_all_tie_are_decided_too() -> None:
    random = np.random.default_rng(1)
    speedup = random.integers(1, 3, (60, 6)).astype(float)
    capacity = random.integers(1, 3, 6).astype(float)
    result = raise_level(speedup, capacity, np.ones(60))
    assert result.gap <= 1e-12


def test_a_type_that_is_left_over_has_no_price() -> None:
    # nobody but the second user runs on the second type, and it has more of it than it can use at the common level
    result = raise_level(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 5.0]), np.ones(2))
    assert result.lower == pytest.approx(1.0)
    assert result.duals["capacity"][0] == pytest.approx(1.0)
    assert result.duals["capacity"][1] == pytest.approx(0.0, abs=1e-12)


def test_demands_that_do_not_matter_cost_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level_prices, "_solve", None)
    speedup, capacity = np.array([[1.0, 2.0], [1.0, 5.0]]), np.ones(2)
    free = raise_level(speedup, capacity, np.ones(2))
    limited = raise_level(speedup, capacity, np.ones(2), demand=np.array([2.0, 2.0]))
    assert limited.lower == free.lower
    assert limited.duals["demand"].tolist() == [0.0, 0.0]


def test_vertices_are_refused_whose_bounds_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    speedup, capacity = np.array([[1.0, 2.0], [1.0, 5.0]]), np.ones(2)
    right = raise_level(speedup, capacity, np.ones(2))
    monkeypatch.setattr(price_simplex, "price_vertex", _halved)
    result = raise_level(speedup, capacity, np.ones(2))
    assert result.lower == pytest.approx(right.lower, rel=1e-12)
    assert result.effort["boxes"] > 0


def _halved(problem: LevelProblem, *near: np.ndarray) -> object:
    at = price_vertex(problem, *near)
    assert at is not None
    at.shares[0] /= 2
    at.shares[1, 0] += 1e-3
    return at


def test_one_type_has_no_pair_to_mend() -> None:
    """Guards against looking for a column besides the level's; numbers beyond floats had led there."""
    one = np.ones(1)
    at = price_vertex(LevelProblem(one[:, None], one, one * np.nan, 0 * one, None), one * np.nan)
    assert at is None or np.isnan(at.level)

"""Many users by those near a tie: the optimum of the whole program, or prices near it, and what time leaves of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.backends.solution import Solution, Status
from fairopt.benchmarks.float_samples import Speedups, even
from fairopt.deadline import time_limit
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.level import price_simplex, raise_level
from fairopt.methods.level import solve as level_prices
from fairopt.methods.level.bounds import lower_bound
from fairopt.methods.level.price_simplex import FEW, NEAREST, bound, near_prices, price_vertex, sifted
from fairopt.methods.level.problem import AskedLevel, LevelProblem
from fairopt.methods.level.smoothing import smoothed_prices
from fairopt.methods.result import summed
from fairopt.program import ROUNDING, Array


def growing(random: np.random.Generator, users: int, types: int) -> Array:
    """Speedups that grow from type to type, of which no two tie."""
    return np.cumsum(random.uniform(0.1, 1, (users, types)), axis=1)


def asked_of(users: int, types: int, speedups: Speedups, seed: int = 0) -> AskedLevel:
    random = np.random.default_rng([seed, users, types])
    capacity = random.integers(8, 65, types).astype(float)
    return AskedLevel(speedups(random, users, types), capacity, random.uniform(0.5, 2, users), None, None)


def problem_of(users: int, types: int, speedups: Speedups, seed: int = 0) -> LevelProblem:
    return asked_of(users, types, speedups, seed).problem


@pytest.mark.parametrize("speedups", [even, growing], ids=lambda kind: kind.__name__)
def test_many_users_get_what_boxes_of_prices_give_them(speedups: Speedups, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_of(FEW + 100, 5, speedups)
    found = raise_level(asked.speedup, asked.capacity, asked.rate)
    assert found.effort["boxes"] == 0
    monkeypatch.setattr(level_prices, "STEPPED", 0)
    by_boxes = raise_level(asked.speedup, asked.capacity, asked.rate)
    assert by_boxes.effort["boxes"] > 0
    assert found.lower == pytest.approx(by_boxes.lower, rel=1e-13)
    assert np.allclose(found.values["share"], by_boxes.values["share"], rtol=0, atol=1e-9)
    assert found.gap <= 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_prices_that_mislead_give_the_optimum_or_nothing(seed: int) -> None:
    problem = problem_of(300, 4, even, seed)
    assert len(problem.rate) > 4 * NEAREST  # so that most users are asked at the end only
    right = sifted(problem, near_prices(problem))
    assert right is not None
    assert right.only
    with np.errstate(all="ignore"):
        misled = sifted(problem, 1 / problem.capacity * np.arange(1, 5))
    if misled is not None:
        assert bound(problem, misled.prices) <= right.level * (1 + 1e-2)
        assert not misled.only or misled.level == pytest.approx(right.level, rel=1e-12)


def test_pairs_of_a_guess_are_changed_where_users_choose_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [problem_of(100, 6, growing, seed) for seed in range(8)]
    mended = [price_vertex(problem, smoothed_prices(problem)) for problem in problems]
    monkeypatch.setattr(price_simplex, "MENDED", 0)
    anew = [price_vertex(problem, smoothed_prices(problem)) for problem in problems]
    for ours, theirs in zip(mended, anew, strict=True):
        assert ours is not None
        assert theirs is not None
        assert ours.level == pytest.approx(theirs.level, rel=1e-12)
        assert np.allclose(ours.shares, theirs.shares, rtol=0, atol=1e-9)
    assert sum(at.steps for at in mended if at) < sum(at.steps for at in anew if at) / 2


def test_when_time_is_over_the_prices_so_far_prove_bounds() -> None:
    asked = asked_of(FEW + 100, 4, even)
    best = raise_level(asked.speedup, asked.capacity, asked.rate)
    with pytest.raises(OutOfTime) as over, time_limit(0):
        raise_level(asked.speedup, asked.capacity, asked.rate)
    known = over.value.solution
    assert isinstance(known, Solution)
    assert known.status is Status.LIMIT
    assert known.lower <= best.upper
    assert best.lower <= known.upper
    assert known.gap < 0.5


@pytest.mark.parametrize("count", [0, 1, 2, 8, 9, 17, 1000])
def test_sums_are_off_by_no_more_roundings_than_they_say(count: int) -> None:
    numbers: Array = 10.0 ** np.random.default_rng(count).uniform(-9, 9, (count, 3))
    exact = [sum(map(Fraction, column), Fraction(0)) for column in numbers.T.tolist()]
    totals, roundings = summed(numbers)
    assert totals.shape == (3,)
    for total, true in zip(totals.tolist(), exact, strict=True):
        assert abs(Fraction(total) - true) <= true * Fraction(ROUNDING) * roundings


def test_shares_too_small_for_floats_are_refused() -> None:
    asked = AskedLevel(np.ones((2, 2)), np.ones(2), np.full(2, 1e300), None, None)
    with np.errstate(all="ignore"), pytest.raises(NotSolved, match="out of range"):
        lower_bound(asked, np.array([[1e-310, 0.0], [0.0, 1.0]]))

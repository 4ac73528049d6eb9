"""Time limits are kept, whatever is asked, and what was asked for says so."""

from __future__ import annotations

import os
from importlib import import_module

import pytest
from overruns import Question, measured

import fairopt
from fairopt.backends.solution import Status
from fairopt.deadline import left, time_limit
from fairopt.errors import NotSolved, OutOfTime
from fairopt.problem import Market

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="a solver's process is ended on POSIX only")


def wrong(seed: int) -> str:
    """Return how a question with a limit ended, "" where as it should; how late, `overruns` measures."""
    for library in ("fairopt.models", "cvxpy", "pyomo.environ", "flint", "highspy"):
        import_module(library)  # which takes seconds; a limit is for what comes after
    _, ended, _ = measured(Question.draw(seed), most=600)
    return ended if ended == "DIED" or ended.startswith(("TRACEBACK", "ended after")) else ""


@pytest.mark.parametrize("seed", [5, 104, 174])  # Pyomo; rationals; a verdict. They took 14, 16 and 3 s too long
def test_a_limit_is_kept(seed: int) -> None:
    assert not wrong(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_two_hundred_limits_are_kept(first: int) -> None:
    assert {seed: ended for seed in range(first, first + 20) if (ended := wrong(seed))} == {}


@pytest.mark.parametrize("policy", ["max-min", "oef-cooperative", "max-efficiency", "water-filling"])
@pytest.mark.parametrize("exact", [True, False])
def test_without_time_nothing_is_decided_and_the_error_says_why(policy: str, exact: bool) -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    with pytest.raises(NotSolved, match="time limit of 0 s is over") as caught:
        fairopt.allocate(policy, market, exact=exact, time_limit=0)
    assert caught.value.solution.status is Status.LIMIT
    assert fairopt.allocate(policy, market, exact=exact, time_limit=60).shares.shape == (2, 2)


def test_a_limit_around_a_limit_is_the_earlier_one() -> None:
    with time_limit(0.0), pytest.raises(OutOfTime, match="0 s is over"):
        fairopt.allocate("max-min", Market.of([[1, 2], [1, 5]], [1, 1]), time_limit=60)
    with time_limit(60):
        with pytest.raises(NotSolved):
            fairopt.allocate("max-min", Market.of([[1, 2], [1, 5]], [1, 1]), time_limit=0)
        assert (left() or 0) > 30

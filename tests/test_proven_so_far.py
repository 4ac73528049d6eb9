"""Who is stopped by a time limit tells the best that was found by then, what no point is better than, and the gap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt import allocate
from fairopt.backends.solution import Status
from fairopt.deadline import time_limit
from fairopt.discovery import BACKENDS, load, names
from fairopt.errors import NotSolved, OutOfTime
from fairopt.evidence import certify_bound
from fairopt.models import MaxMin, WaterFilling
from fairopt.policy import decide
from fairopt.problem import Market, write_market
from fairopt.proofs.verify import verify
from fairopt.properties import Answer, EnvyFreeness, Feasibility

#: Two levels, each with its own users: u1 runs on the first type only, and reaches 3 times its own partition.
TWO_LEVELS = Market.of([[1, 0], [0, 1], [0, 1]], capacity=[1, 8])


@contextmanager
def a_second_for_each_look() -> Iterator[None]:
    """Have each look at the clock take a second, so that limits stop the same things everywhere.

    The simplex method in prices is not asked: it takes milliseconds, and looks at no clock; no more do prices of few
    users.
    """
    ticks = count()
    with (
        patch("fairopt.deadline.monotonic", lambda: float(next(ticks))),
        patch("fairopt.methods.level.solve.STEPPED", 0),
        patch("fairopt.methods.level.price_simplex.FEW", 0),
    ):
        yield


def stopped(policy: Any, market: Market, limit: int, **how: Any) -> Any:
    """Return the solution that was known after so many looks at the clock; None where a decision was made by then."""
    try:
        with a_second_for_each_look():
            allocate(policy, market, time_limit=limit, **how)
    except NotSolved as over:
        return over.solution
    return None


def market_of(users: int, types: int, *, demands: bool) -> Market:
    rng = np.random.default_rng(1)
    speedup = np.sort(np.exp(rng.normal(0, 1, (users, types))), axis=1)
    demand = rng.uniform(0.5, 8, users) if demands else None
    return Market.of_arrays(speedup, np.full(types, float(users)), demand=demand)


@pytest.mark.parametrize("step", counts(3, 1))
@pytest.mark.parametrize("demands", [False, True], ids=["free", "demands"])
@pytest.mark.parametrize(
    ("policy", "users"),
    [
        ("max-min", 300),
        ("oef-noncooperative", 300),
        ("water-filling", 300),
        ("nash-welfare", 60),
        ("oef-cooperative", 60),
    ],
)
def test_the_optimum_is_between_what_was_found_and_what_was_proven(
    policy: str, users: int, demands: bool, step: int
) -> None:
    market = market_of(users, 4, demands=demands)
    best, gaps = allocate(policy, market).objective, []
    for limit in [*range(20), *range(20, 100, 5), *range(100, 400, 20)][::step]:
        found = stopped(policy, market, limit)
        if found is None:
            break
        assert found.status is Status.LIMIT
        if found.lower is None:
            assert found.objective is None
            continue
        assert found.lower <= best * (1 + 1e-9)
        assert found.upper is None or best <= found.upper * (1 + 1e-9)
        assert found.objective == pytest.approx(found.lower, rel=1e-6)
        shares = found.values["share"]
        assert Feasibility().check(market, shares, tolerance=Fraction(1, 10**6)).answer is not Answer.FAILS
        if policy == "oef-cooperative":
            assert EnvyFreeness().check(market, shares, tolerance=Fraction(1, 10**6)).answer is not Answer.FAILS
        gaps.append(found.gap)
    assert found is None, "it is never done"
    if (policy, demands) == (
        "water-filling",
        True,
    ):  # of a first round in which some are at their caps, no bound is known
        assert set(gaps) == {None}
        return
    if (policy, demands) == ("oef-noncooperative", True):  # decided in the first looks: nothing lies between
        assert limit < 10
        return
    assert len(gaps) > 1
    assert all(later <= earlier * (1 + 1e-6) or later < 0.2 for earlier, later in pairwise(gaps))


def test_what_floats_have_proven_is_told_where_rationals_come_to_no_end_in_time() -> None:
    """A gap of floats that is too wide is a reason to decide in rationals; the time limit ends these."""
    market = market_of(60, 4, demands=False)
    best = allocate("oef-cooperative", market).objective
    with patch("fairopt.backends.trust.WIDE", -1.0):
        found = (stopped("oef-cooperative", market, limit) for limit in range(60, 200, 5))
        late = next(each for each in found if each is None or "in rationals" in each.raw_status)
    assert late.status is Status.LIMIT
    assert late.lower <= best * (1 + 1e-9)
    assert late.gap < 1e-6


@pytest.mark.parametrize("backend", ["highs", "exact"])
def test_the_first_level_of_water_filling_is_told_with_shares_of_the_last_round(backend: str) -> None:
    seen = [found for limit in range(40) if (found := stopped(WaterFilling(), TWO_LEVELS, limit, backend=backend))]
    told = [found for found in seen if found.x is not None]
    assert told
    for found in told:
        assert float(found.objective) == pytest.approx(1.5)
        assert found.gap == pytest.approx(0, abs=1e-9)
        if backend == "exact":
            proof = certify_bound(WaterFilling(), TWO_LEVELS, found)
            assert proof.gap == 0
            verify(json.loads(json.dumps(proof.to_json())))


@pytest.mark.parametrize("demands", [False, True], ids=["free", "demands"])
def test_nobody_keeps_less_than_partial_allocation_tells_when_time_is_over(demands: bool) -> None:
    """Before the equilibrium of all users is known, then with those without each."""
    market = market_of(6, 3, demands=demands)
    weighted = Market.of_arrays(market.speedup, market.capacity, weight=np.arange(1.0, 7) / 2, demand=market.demand)
    best, told = allocate("partial-allocation", weighted), []
    for limit in (*range(12), *range(12, 300, 24)):
        found = stopped("partial-allocation", weighted, limit)
        if found is None:
            break
        if found.lower is None:
            continue
        assert found.status is Status.LIMIT
        assert found.lower <= best.objective <= found.upper
        shares = found.values["share"]
        assert (weighted.utility(shares) <= best.utilities).all()
        assert found.objective == pytest.approx(weighted.weight @ np.log(weighted.utility(shares)), rel=1e-6, abs=1e-6)
        assert Feasibility().check(weighted, shares).answer is not Answer.FAILS
        told.append(found.objective)
    assert found is None, "it is never done"
    assert told[0] < told[-1] == pytest.approx(best.objective, abs=weighted.weight.sum())


@pytest.mark.parametrize("number", [Fraction, float])
def test_nobody_ends_trading_with_less_than_it_had_when_time_was_over(number: type) -> None:
    market = market_of(12, 4, demands=True).as_(number)
    best, totals = allocate("second-price-trading", market), []
    for limit in (*range(20), *range(20, 400, 20)):
        found = stopped("second-price-trading", market, limit)
        if found is None:
            break
        if found.lower is None:  # before the first trade
            continue
        assert found.status is Status.LIMIT
        assert found.lower <= best.objective <= found.upper
        slack = 0 if market.exact else 1e-9
        assert (market.utility(found.values["share"]) <= best.utilities * (1 + slack)).all()
        assert Feasibility().check(market, found.values["share"]).answer is not Answer.FAILS
        totals.append(found.objective)
    assert found is None, "it is never done"
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


def test_what_is_known_of_a_part_is_no_answer() -> None:
    market = Market.of([[1, 2, 5], [1, 5, 7], [3, 2, 4]], capacity=[1, 1, 2])
    for policy, how in (("partial-allocation", {}), ("max-efficiency", {"canonical": True}), ("oef-efficient", {})):
        seen = [found for limit in range(3, 40) if (found := stopped(policy, market, limit, **how))]
        assert seen
        assert all(found.objective is None for found in seen[len(seen) // 2 :] if found.backend == policy)
        assert stopped(policy, market, 4000, **how) is None


def test_the_canonical_choice_is_part_of_what_is_limited() -> None:
    market = Market.of([[1, 2], [1, 2]], capacity=[1, 1])
    limit = next(limit for limit in count() if stopped("max-efficiency", market, limit) is None)
    assert stopped("max-efficiency", market, limit, canonical=True) is not None


def test_the_end_of_a_block_carries_it_too() -> None:
    market = market_of(300, 4, demands=False)
    with a_second_for_each_look(), time_limit(9), pytest.raises(OutOfTime) as over:
        decide(MaxMin(), market)
    assert over.value.solution.gap < 1


@pytest.mark.parametrize("policy", ["nash-welfare", "second-price-trading", "water-filling", "equal-split"])
def test_every_policy_takes_a_limit_at_the_command_line(policy: str, fairopt: Callable[..., Any]) -> None:
    free = fairopt("solve", "@oef-example", "--policy", policy, "--json")
    limited = fairopt("solve", "@oef-example", "--policy", policy, "--json", "--time-limit", 60)
    assert limited.status == 0
    assert limited.data | {"seconds": 0} == free.data | {"seconds": 0}


def test_json_tells_point_bound_and_gap(fairopt: Callable[..., Any], tmp_path: Path) -> None:
    write_market(market_of(300, 4, demands=False), tmp_path / "market.json")
    with a_second_for_each_look():
        ran = fairopt("solve", tmp_path / "market.json", "--policy", "max-min", "--time-limit", 12, "--json")
    assert ran.status == 3
    assert ran.data["status"] == "limit"
    assert np.shape(ran.data["incumbent"]) == (300, 4)
    assert ran.data["objective"] <= ran.data["bound"]
    assert 0 < ran.data["gap"] < 1
    assert ran.data["proven"]["upper"] >= ran.data["proven"]["lower"]
    assert "the best point so far has objective" in ran.err
    assert "none is better than" in ran.err


@pytest.mark.parametrize("backend", names(BACKENDS))
def test_every_back_end_takes_a_limit(backend: str) -> None:
    if not load(BACKENDS, backend).available():
        pytest.skip("not installed")
    free = allocate("max-efficiency", TWO_LEVELS, backend)
    assert allocate("max-efficiency", TWO_LEVELS, backend, time_limit=600).objective == free.objective
    with pytest.raises(NotSolved, match="time limit of 0 s is over"):
        allocate("max-efficiency", TWO_LEVELS, backend, time_limit=0)

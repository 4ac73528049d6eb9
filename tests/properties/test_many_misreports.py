"""The search for misreports among many users: thousands are decided together, and time ends that in between."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.deadline import time_limit
from fairopt.errors import OutOfTime
from fairopt.models import SecondPriceTrading
from fairopt.models.gandiva_fair.many_trades import bundles_after_trades
from fairopt.problem import Market
from fairopt.properties import Answer, Effort, StrategyProofness
from fairopt.properties.misreports.reports import Reports

MARKET = Market.of_arrays(np.random.default_rng(7).uniform(1, 4, (6, 3)), np.array([2.0, 3, 1]))


def lies(count: int) -> tuple[np.ndarray, np.ndarray]:
    users = np.arange(count) % len(MARKET.users)
    return users, MARKET.speedup[users] * np.random.default_rng(8).uniform(1, 2, (count, 3))


def test_gains_do_not_depend_on_how_many_are_decided_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, told = Reports(SecondPriceTrading(), MARKET), lies(40)
    whole = asked.gains(*told)
    monkeypatch.setattr("fairopt.properties.misreports.reports.MOST_AT_ONCE", 7 * MARKET.speedup.size)
    assert np.array_equal(asked.gains(*told), whole, equal_nan=True)
    looks = iter([False, False, True])
    assert np.array_equal(asked.gains(*told, lambda: next(looks)), whole[:14], equal_nan=True)


def test_trades_end_with_the_time() -> None:
    """Those of 1,000 users, under 1,024 misreports, took 17 s."""
    with pytest.raises(OutOfTime), time_limit(0):
        bundles_after_trades(MARKET, MARKET.equal_split(), *lies(5))


def test_a_search_that_has_no_time_says_so_and_one_within_a_limit_ends_with_it() -> None:
    ask = StrategyProofness()
    verdict = ask.search(SecondPriceTrading(), MARKET, effort=Effort(seconds=1e-9))
    assert verdict.answer is Answer.UNDECIDED
    assert "time" in str(verdict.effort)
    with pytest.raises(OutOfTime), time_limit(0):
        ask.search(SecondPriceTrading(), MARKET, effort=Effort(evaluations=50))

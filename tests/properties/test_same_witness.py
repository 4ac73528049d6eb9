"""The witness of a search is the same on every processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import Effort, StrategyProofness
from fairopt.properties.misreports.reports import Reports

THREE = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])


def disturbed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Change the last digits of all gains, as another processor does."""
    gains, random = Reports.gains, np.random.default_rng(seed)

    def elsewhere(self: Reports, users: Array, reports: Array, *rest: Any) -> Array:
        found = gains(self, users, reports, *rest)
        return found + self.fair[users[: len(found)]] * random.integers(-4, 5, len(found)) * 2.0**-52

    monkeypatch.setattr(Reports, "gains", elsewhere)


def lies(policy: Policy, market: Market) -> list[str]:
    found = StrategyProofness().search(policy, market, effort=Effort(evaluations=90)).by_misreport.values()
    return [f"{each.margin}: {each.witness}" for each in found]


@pytest.mark.parametrize("policy", [MaxMin(), MaxEfficiency(), CooperativeOEF()], ids=lambda policy: policy.name)
@pytest.mark.parametrize("count", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_no_witness_depends_on_the_last_digits_of_gains(
    policy: Policy, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In small markets of small numbers, where many lies gain the same."""
    random = np.random.default_rng(count)
    for seed in range(count):
        users, types = int(random.integers(2, 5)), int(random.integers(2, 4))
        speedups = np.hstack([np.ones((users, 1), dtype=int), random.integers(1, 5, (users, types - 1))])
        market = THREE if seed == 0 else Market.of(speedups.tolist(), capacity=random.integers(1, 3, types).tolist())
        expected = lies(policy, market)
        with monkeypatch.context() as patch:
            disturbed(patch, seed)
            assert lies(policy, market) == expected, market


def test_of_lies_that_gain_the_same_the_first_is_shown_on_every_processor() -> None:
    """u1 gets 11/9 by other reports too; with a kernel of the BLAS for another processor one of them was shown."""
    witness = StrategyProofness().search(CooperativeOEF(), THREE).witness
    assert str(witness) == "u1 has speedups 1, 2, reports 2, 4, and gets 11/9 instead of 1"

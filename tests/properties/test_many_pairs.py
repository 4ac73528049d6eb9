"""Envy among many users is looked at pair by pair, in pieces between which the time limit is kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.deadline import time_limit
from fairopt.errors import OutOfTime
from fairopt.problem import Market
from fairopt.properties import EnvyFreeness, Verdict
from fairopt.testing.samples import sample_markets


def checked(market: Market, shares: object) -> Verdict:
    return EnvyFreeness().check(market, shares, tolerance=0)


@pytest.mark.parametrize("number", ["rationals", "floats"])
def test_pieces_say_what_all_pairs_say(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    for market in sample_markets(12, seed=5, users=(1, 5), demands=True):
        asked = market if number == "rationals" else market.as_(float)
        shares = asked.equal_split()
        for moved in (shares, shares[draw.permutation(len(shares))]):  # many tie; some envy
            whole = checked(asked, moved)
            with monkeypatch.context() as patch:
                patch.setattr("fairopt.properties.shares.envy_freeness.PAIRS", 3)
                pieces = checked(asked, moved)
            assert (whole.answer, whole.margin, whole.witness) == (pieces.answer, pieces.margin, pieces.witness)


def test_pairs_that_all_tie_are_not_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 users who hold as much as each other took 26 s in rationals, whatever the limit."""
    market = Market.of([[1, 2]] * 20, [40, 20])
    tie = [[Fraction(2 * i, 20), 1 - Fraction(i, 20)] for i in range(20)]  # as good for everybody, and not the same
    looked: list[int] = []
    monkeypatch.setattr("fairopt.properties.shares.envy_freeness.PAIRS", 50)
    monkeypatch.setattr("fairopt.properties.shares.envy_freeness.left", lambda: looked.append(1))
    checked(market, tie)
    assert len(looked) >= 2 * 20 * 19 / 50
    looked.clear()
    checked(market, market.equal_split())  # the same bundles are compared once
    assert len(looked) < 20 * 19 / 50 + 5
    monkeypatch.undo()
    with pytest.raises(OutOfTime), time_limit(0):
        checked(market, tie)

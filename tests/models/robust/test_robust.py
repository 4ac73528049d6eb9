"""Robust policies: what they promise holds for all speedups in the ranges, and without ranges they are the others."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt import allocate, compare
from fairopt.errors import NotCapable
from fairopt.models import CooperativeOEF, MaxMin, RobustCooperativeOEF, RobustMaxMin
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import INFINITY
from fairopt.properties import Answer, EnvyFreeness, SharingIncentive
from fairopt.testing.samples import sample_markets

PAIRS = [(RobustCooperativeOEF(), CooperativeOEF()), (RobustMaxMin(), MaxMin())]


@pytest.mark.parametrize(("robust", "ordinary"), PAIRS, ids=lambda each: each.name)
def test_without_ranges_it_is_the_ordinary_policy(robust: Policy, ordinary: Policy) -> None:
    for market in sample_markets(8, seed=1, demands=False):
        for same in (market, with_error(market, 0)):
            assert allocate(robust, same, exact=True).objective == allocate(ordinary, market, exact=True).objective


@pytest.mark.parametrize("robust", [RobustCooperativeOEF(), RobustMaxMin()], ids=lambda each: each.name)
def test_what_it_promises_holds_for_all_speedups_in_the_ranges(robust: Policy) -> None:
    asked = [SharingIncentive()] if isinstance(robust, RobustMaxMin) else [SharingIncentive(), EnvyFreeness()]
    for number, market in enumerate(sample_markets(8, seed=2, demands=False)):
        ranged = with_error(market, Fraction(number + 1, 10))
        if number == 3:  # of one speedup only the least is known
            most = ranged.ends[1].copy()
            most[0, np.argmax(market.speedup[0])] = INFINITY
            ranged = replace(ranged, most=most)
        shares = allocate(robust, ranged, exact=True).shares
        for each in asked:
            assert each.check(ranged, shares).answer is Answer.HOLDS, (each.name, number)


def test_the_worst_total_is_the_most_that_can_be_promised_without_envy() -> None:
    """By hand: user 1 gives up to 31/44 of the second type at 1.8 to 2.2; at 10% more of it, it envies."""
    ranged = with_error(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), "10%")
    decision = allocate(RobustCooperativeOEF(), ranged, exact=True)
    assert decision.shares.tolist() == [[1, Fraction(13, 44)], [0, Fraction(31, 44)]]
    verdict = EnvyFreeness().check(ranged, decision.shares)
    assert (verdict.answer, verdict.margin) == (Answer.HOLDS, 0)
    more = decision.shares + np.array([[0, -1], [0, 1]]) * Fraction(1, 10**6)
    assert EnvyFreeness().check(ranged, more).answer is Answer.DEPENDS


def test_it_is_compared_where_there_are_ranges() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    names = {"oef-cooperative-robust", "max-min-robust"}
    assert not names & {row.policy.name for row in compare(market, properties="feasibility")}
    assert names <= {row.policy.name for row in compare(market, properties="feasibility", error="5%")}


def test_an_equal_share_whose_use_depends_on_speedups_is_refused() -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], demand=["1/2", 2])
    market = replace(market, least=market.speedup / [[1, 4], [1, 1]], most=market.speedup)
    with pytest.raises(NotCapable, match="which GPUs u1 would use of its equal share depends on its speedups"):
        allocate(RobustMaxMin(), market)
    order_known = with_error(replace(market, least=None, most=None), "10%")
    assert allocate(RobustMaxMin(), order_known, exact=True).objective >= 1

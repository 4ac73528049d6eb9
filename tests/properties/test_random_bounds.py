"""Speedups within bounds, on random small markets: margins and boundaries against the corners of the bounds.

At known speedups checkers are held against their definitions elsewhere; here only those verdicts are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts, seeds

from fairopt.problem import Market
from fairopt.problem.ranges import shrunk, with_error
from fairopt.program import INFINITY
from fairopt.properties import AllocationProperty, Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.entitlements.envy_within_peers import EnvyWithinPeers
from fairopt.properties.entitlements.guarantee_incentive import GuaranteeIncentive
from fairopt.testing.samples import entitled_markets, sample_markets

F = Fraction
#: A speedup without an end is tried here; one that is open at 0, a thousandth of what is stated.
FAR, NEAR = 10**4, F(1, 1000)


def bounded(market: Market, random: np.random.Generator) -> Market:
    """Return a market with some speedups known within bounds: narrow, wide, open at 0, or without an end."""
    least, most = market.speedup.copy(), market.speedup.copy()
    for at in map(tuple, np.argwhere((random.random(market.shape) < 0.6) & (market.speedup > 0))):
        least[at] *= random.choice([F(0), F(1, 2), F(4, 5), F(9, 10), F(1)])
        most[at] *= random.choice([F(1), F(11, 10), F(3, 2), F(3)])
        if random.random() < 0.1:
            most[at] = INFINITY
    return replace(market, least=least, most=most)


def drawn(asked: AllocationProperty, count: int, seed: int) -> Iterator[tuple[Market, Any]]:
    random = np.random.default_rng(seed)
    entitled = isinstance(asked, EnvyWithinPeers | GuaranteeIncentive)
    plain = sample_markets(count, seed=seed, users=(2, 3), types=(2, 2), demands=True)
    for market in entitled_markets(2 * count, seed=seed) if entitled else plain:
        if market.shape[0] * market.shape[1] > 6 or not asked.asked_of(market):
            continue
        owed, shares = market.entitlements, market.equal_split()
        if owed is not None and random.random() < (0.6 if isinstance(asked, GuaranteeIncentive) else 0.2):
            rows = np.s_[: market.shape[0], : market.shape[1]]
            shares = np.minimum(owed.held[rows] if random.random() < 0.4 else owed.guarantee[rows], market.capacity)
        if market.shape[1] > 1 and random.random() < 0.8:  # the first two trade some of what they have
            for j, (gives, takes) in enumerate(random.permutation([(0, 1), (1, 0)]).tolist()):
                amount = shares[gives, j] * random.choice([F(1, 4), F(1, 2), F(1)])
                shares[gives, j], shares[takes, j] = shares[gives, j] - amount, shares[takes, j] + amount
        yield bounded(market, random), shares


def corners(market: Market) -> list[Market]:
    low, high = market.ends
    ends = (
        sorted({a or here * NEAR, here * FAR if b == INFINITY else b})
        for a, b, here in zip(low.ravel(), high.ravel(), market.speedup.ravel(), strict=True)
    )
    known = replace(market, least=None, most=None)
    return [replace(known, speedup=np.array(row, dtype=object).reshape(market.shape)) for row in product(*ends)]


@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize(
    "asked",
    [SharingIncentive(), EnvyFreeness(), EnvyWithinPeers(), GuaranteeIncentive()],
    ids=lambda each: each.name,
)
def test_a_verdict_in_bounds_is_that_at_their_corners(asked: AllocationProperty, seed: int) -> None:
    seen = Counter[Answer]()
    for market, shares in drawn(asked, 40, seed):
        verdict = asked.check(market, shares)
        seen[verdict.answer] += 1
        there = corners(market)
        found = [asked.check(each, shares) for each in there]
        if verdict.holds is not None:
            assert {each.answer for each in found} == {verdict.answer}, (market.ends, shares)
        if verdict.answer is Answer.HOLDS and verdict.effort.startswith("all speedups"):
            assert verdict.exact
            closed = (market.ends[0] > 0).all() and (market.ends[1] < INFINITY).all()
            least = min(each.margin or 0 for each in found)
            assert verdict.margin is not None
            assert not closed or verdict.margin <= least
        if verdict.answer is Answer.DEPENDS:
            _changes_there(asked, market, shares, verdict)
        if verdict.answer is Answer.UNDECIDED:
            assert "speedups" in verdict.reason
    assert {Answer.HOLDS, Answer.FAILS, Answer.DEPENDS} <= set(seen)


def _changes_there(asked: AllocationProperty, market: Market, shares: Any, verdict: Any) -> None:
    boundary, known = verdict.boundary, replace(market, least=None, most=None)
    assert asked.check(replace(known, speedup=verdict.boundary.ends["holds"].speedup), shares).answer is Answer.HOLDS
    low, high = market.ends
    for end, given in boundary.ends.items():
        assert asked.check(given, shares).answer.value == end.upper(), (end, market.ends, shares)
        assert ((given.ends[0] >= low) & (given.ends[1] <= high)).all()
    i = market.index(boundary.shown["user"])
    row = np.array([speed for _, speed in boundary.shown["speedups"]], dtype=object)
    if (row > 0).all():
        at = verdict.boundary.ends["holds"].speedup.copy()
        at[i] = row
        assert asked.check(replace(known, speedup=at), shares).answer is Answer.HOLDS
    if boundary.part is not None:
        inside = shrunk(market, boundary.part) if boundary.part else known
        assert asked.check(inside, shares).answer is Answer.HOLDS
        assert asked.check(shrunk(market, boundary.part + (1 - boundary.part) / 1000), shares).holds is not True
    else:
        assert asked.check(known, shares).answer is Answer.FAILS


def test_an_error_up_to_which_it_holds_is_exact() -> None:
    """At the error itself all hold; a millionth further, not all do."""
    seen = 0
    for asked in (SharingIncentive(), EnvyFreeness(), ParetoEfficiency()):
        for market, shares in drawn(asked, 50, seed=4):
            known = replace(market, least=None, most=None)
            verdict = asked.check(with_error(known, "50%"), shares)
            if verdict.answer is Answer.DEPENDS and verdict.boundary.error:
                seen += 1
                error = verdict.boundary.error
                assert asked.check(with_error(known, error), shares).answer is Answer.HOLDS
                assert asked.check(with_error(known, error + F(1, 10**6)), shares).holds is not True
    assert seen >= 5


@pytest.mark.parametrize("count", counts(60, 120))
def test_efficiency_in_bounds_is_that_at_their_corners(count: int) -> None:
    seen, asked = Counter[Answer](), ParetoEfficiency()
    for market, shares in drawn(asked, count, seed=3):
        verdict = asked.check(market, shares)
        seen[verdict.answer] += 1
        if verdict.holds is not None:
            assert {asked.check(each, shares).answer for each in corners(market)} == {verdict.answer}, market.ends
        if verdict.answer is Answer.DEPENDS:
            for end, given in verdict.boundary.ends.items():
                assert asked.check(given, shares).answer.value == end.upper()
    assert {Answer.HOLDS, Answer.FAILS, Answer.DEPENDS} <= set(seen)


def test_floats_within_bounds_are_judged_as_fractions_are_away_from_where_it_changes() -> None:
    seen = Counter[Answer]()
    for asked in (SharingIncentive(), EnvyFreeness()):
        for market, shares in drawn(asked, 30, seed=6):
            verdict, rounded = asked.check(market, shares), asked.check(market, shares.astype(float))
            assert not rounded.exact
            seen[rounded.answer] += 1
            if verdict.answer in (Answer.FAILS, Answer.DEPENDS) and verdict.margin and abs(verdict.margin) > F(1, 100):
                assert rounded.answer is verdict.answer
    assert seen[Answer.DEPENDS]

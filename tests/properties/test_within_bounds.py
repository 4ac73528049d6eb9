"""Speedups known within bounds: HOLDS for all, FAILS for all, or DEPENDS, against speedups tried one by one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from fairopt import discovery, verify
from fairopt.errors import NotCapable
from fairopt.problem import Market
from fairopt.program import INFINITY
from fairopt.proofs.verify import verify as proved
from fairopt.properties import Answer, EnvyFreeness, SharingIncentive, WorkConservation
from fairopt.properties.property import AllocationProperty
from fairopt.testing.property_suite import cases
from fairopt.testing.samples import entitled_markets, sample_markets

BOUNDED = Market.of([[1, 2], [1, 3]], [1, 1], users=["A", "B"], least=[[1, 1], [1, 3]], most=[[1, 4], [1, 3]])
QUARTER = [[1, "1/4"], [0, "3/4"]]


def within(market: Market, random: np.random.Generator) -> Market:
    """Return a market with the speedups of some users known within bounds only, or not at all."""
    least, most = market.speedup.copy(), market.speedup.copy()
    for i, j in np.argwhere(random.random(market.shape) < 0.4):
        if market.speedup[i, j] > 0:
            least[i, j] = random.choice([0, least[i, j] * Fraction(1, 2), least[i, j]])
            most[i, j] = random.choice([INFINITY, most[i, j] * 2, most[i, j]])
    return replace(market, least=least, most=most)


def tried(market: Market) -> list[Market]:
    """Return the market at the corners of the bounds, or near them where they are open, and in the middle."""
    ends = zip(*(each.ravel() for each in market.ends), market.speedup.ravel(), strict=True)
    each = [sorted({low or here / 1000, here, here * 1000 if high == INFINITY else high}) for low, high, here in ends]
    count = int(np.prod([len(one) for one in each]))
    chosen = product(*each) if count <= 300 else ([one[-1 if at % 2 else 0] for one in each] for at in range(2))
    known = replace(market, least=None, most=None)
    return [replace(known, speedup=np.array(row, dtype=object).reshape(market.shape)) for row in chosen]


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2))])
def test_what_holds_for_all_speedups_holds_for_those_that_are_tried(seed: int) -> None:
    random, seen = np.random.default_rng(seed), Counter[tuple[str, Answer]]()
    plain = sample_markets(15, seed=seed, users=(2, 3), types=(2, 2), demands=True)
    for at, market in enumerate((*plain, *entitled_markets(12, seed=seed))):
        bounded, parts = within(market, random), np.array(random.integers(0, 4, market.shape), dtype=object)
        shares = market.equal_split() if at % 3 == 0 else market.capacity * parts * Fraction(1, 6)
        if at % 3 == 1 and len(market.types) > 1:  # the first two trade a half of what they have
            shares = market.equal_split()
            for j, (gives, takes) in enumerate(((0, 1), (1, 0))):
                half = shares[gives, j] / 2
                shares[gives, j], shares[takes, j] = half, shares[takes, j] + half
        for name, verdict in verify(bounded, shares).items():
            asked = _of(name)
            seen[name, verdict.answer] += 1
            answers = {asked.check(each, shares).answer for each in tried(bounded)}
            if verdict.holds is not None:
                assert answers == {verdict.answer}, (name, bounded.ends, shares)
            if verdict.answer is Answer.DEPENDS:
                known = replace(bounded, least=None, most=None)
                assert asked.check(replace(known, speedup=verdict.boundary.ends["holds"].speedup), shares).holds
                assert Answer.FAILS in answers or any(Fraction(0) in row for row in bounded.ends[0])
            if verdict.exact:
                try:
                    certificate = asked.certify(bounded, shares, verdict)
                except NotCapable:
                    continue
                assert proved(json.loads(json.dumps(certificate.to_json())))
    for name in ("sharing_incentive", "envy_freeness"):
        assert {seen[name, each] > 0 for each in (Answer.HOLDS, Answer.FAILS, Answer.DEPENDS)} == {True}


def _of(name: str) -> AllocationProperty:
    found = discovery.property_(name)
    assert isinstance(found, AllocationProperty)
    return found


@pytest.mark.parametrize("asked", [SharingIncentive(), EnvyFreeness()], ids=lambda each: each.name)
def test_the_boundary_is_a_row_of_speedups_where_the_answer_changes(asked: AllocationProperty) -> None:
    verdict = asked.check(BOUNDED, QUARTER)
    assert verdict.answer is Answer.DEPENDS
    assert str(verdict.boundary) == "any error may break it; it changes where A runs at 1 on T1 and 2 on T2"
    row = np.array([speed for _, speed in verdict.boundary.shown["speedups"]], dtype=object)
    for beyond, answer in ((0, Answer.HOLDS), (Fraction(1, 10**9), Answer.FAILS)):
        speedup = np.array([[row[0], row[1] + beyond], [Fraction(1), Fraction(3)]], dtype=object)
        known = replace(BOUNDED, speedup=speedup, least=None, most=None)
        assert asked.check(known, QUARTER).answer is answer


def test_nothing_is_decided_by_speedups_of_which_nothing_is_known() -> None:
    unknown = replace(BOUNDED, least=BOUNDED.speedup * [[0], [1]], most=BOUNDED.speedup * [[INFINITY], [1]])
    reason = "not asked: the speedups of A are not known"
    assert {verify(unknown, QUARTER)[name].reason for name in ("pareto_efficiency", "sharing_incentive")} == {reason}
    assert verify(unknown, unknown.equal_split())["sharing_incentive"].answer is Answer.HOLDS


def test_where_a_demand_binds_the_speedups_decide_which_gpus_are_used() -> None:
    limited = replace(BOUNDED, demand=np.array([Fraction(1), Fraction(2)], dtype=object))
    slower = replace(limited, least=limited.ends[0] * Fraction(1, 2))  # the second type may be the slower one
    for asked in (SharingIncentive(), WorkConservation()):
        assert asked.check(slower, [[1, 1], [0, 0]]).answer in (Answer.FAILS, Answer.UNDECIDED)
        assert asked.check(slower, QUARTER).answer is Answer.UNDECIDED
        assert asked.check(limited, QUARTER).answer is not Answer.UNDECIDED


def test_markets_whose_speedups_are_known_are_judged_as_ever() -> None:
    for market, shares in list(cases())[:20]:
        same = replace(market, least=market.speedup, most=market.speedup)
        for asked in (SharingIncentive(), EnvyFreeness(), WorkConservation()):
            assert repr(asked.check(market, shares)) == repr(asked.check(same, shares))

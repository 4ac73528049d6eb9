"""Nash welfare within guarantees, caps and groups: digits, drafts that fall short, and who can hold nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.by_name import allocate
from fairopt.errors import NotSolved
from fairopt.models import NashWelfare
from fairopt.policy import decide
from fairopt.problem import Entitlements, Market
from fairopt.proofs.verify import verify


def two(**more: Any) -> Market:
    """Return two users with 8 GPUs of one type and 4 of another."""
    owed = Entitlements.of(["A", "B"], ["H100", "A100"], **more)
    return Market.of([[3, 1], [2, 1]], [8, 4], users=["A", "B"], types=["H100", "A100"], entitlements=owed)


def test_nash_welfare_that_is_irrational_is_known_to_as_many_digits_as_asked() -> None:
    plain = Market.of([[2, 3], [1, 2], [2, 3]], [2, 1], demand=[1, 1, None], users=["A", "B", "C"], types=["T1", "T2"])
    owed = Entitlements.of(plain.users, plain.types, guarantee={"A": ["1/2", 0]}, cap={"C": [2, 2]})
    market = replace(plain, entitlements=owed)
    for digits in (30, 60):
        found, known = (decide(NashWelfare(digits=digits), each) for each in (market, plain))
        assert 0 < found.error * 10**digits <= 1
        proof = found.evidence
        assert ((proof.lower <= known.utilities) & (known.utilities <= proof.upper)).all()
        assert "below the largest" in verify(json.loads(json.dumps(NashWelfare().certify(found).to_json())))
    free, bound = (decide(NashWelfare(), two(**more)) for more in ({"cap": {"A": [8, 4]}}, {"cap": {"A": [8, 3]}}))
    assert (free.utilities == allocate("nash-welfare", two().plain(), exact=True).utilities).all()
    assert bound.error == 0


def test_who_can_hold_nothing_has_no_logarithm_and_is_named() -> None:
    for market, who in (
        (two(cap={"A": [0, 0]}), "A"),
        (two(guarantee={"A": [8, 4]}), "B"),
        (two(guarantee={"A": [8, 4]}).as_(float), "B"),
    ):
        with pytest.raises(NotSolved, match=rf"there is nothing for {who}, so that every product of utilities is 0"):
            allocate("nash-welfare", market)


def test_a_draft_short_of_the_tolerance_does_where_shares_are_proved() -> None:
    """B's cap leaves it no T2, of which it is guaranteed one: the conic solver says that it almost solved this."""
    owed = Entitlements.of(["A", "B"], ["T1", "T2"], guarantee={"B": [0, 1]}, cap={"B": [None, 0]})
    market = Market.of(
        [[2, 1], [2, 2]], ["7/2", 1], demand=[None, 2], users=owed.users, types=owed.types, entitlements=owed
    )
    found, floats = (allocate("nash-welfare", each) for each in (market, market.as_(float)))
    assert (found.utilities.tolist(), found.error) == ([4, 4], 0)
    assert (floats.utilities.tolist(), floats.error, floats.evidence) == ([4, 4], 0, None)


def test_what_a_group_may_not_hold_is_0_whatever_noise_a_draft_has() -> None:
    owed = Entitlements.of(["A", "B", "C"], ["T1", "T2"], group={"A": "g", "B": "g"}, cap={"g": [0, 1]})
    market = Market.of([["37/2", 7], [5, 1], [4, 0]], [3, 1], users=owed.users, types=owed.types, entitlements=owed)
    found, floats = (allocate("nash-welfare", each) for each in (market, market.as_(float)))
    assert (found.utilities.tolist(), found.error) == ([Fraction(7, 2), Fraction(1, 2), 12], 0)
    assert floats.utilities == pytest.approx([3.5, 0.5, 12], rel=1e-12)


@pytest.mark.parametrize("size", [7, 9, 12])
def test_units_of_users_do_not_matter_to_the_draft(size: int) -> None:
    market = two(guarantee={"B": [1, 1]}, cap={"A": [5, 3]})
    units = [Fraction(10) ** size, Fraction(10) ** -size]
    other = market.rescaled(dict(zip(market.users, units, strict=True)))
    found = [allocate("nash-welfare", each) for each in (market, other)]
    assert [each.error for each in found] == [0, 0]
    assert (found[0].utilities * np.array(units)).tolist() == found[1].utilities.tolist()

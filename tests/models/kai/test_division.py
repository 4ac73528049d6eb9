"""KAI Scheduler's division of a resource, against its own published cases."""

from __future__ import annotations

from fractions import Fraction
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kai_division_cases import CASES, Case

from fairopt.models.kai.pool import QueueClaim, divided, over_quota
from fairopt.program import INFINITY


def test_all_published_cases_are_here() -> None:
    """70 of the 71 of resource_division_test.go (the last is below); ten stand for three resources each."""
    assert len({case.line for case in CASES}) == 70


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.line} {case.name}")
@pytest.mark.parametrize("number", [Fraction, float])
def test_published_cases_agree(case: Case, number: Any) -> None:
    """Exactly in fractions; in floats as the source compares them, to the last digits."""
    claims = [
        claim._replace(
            **{key: number(getattr(claim, key)) for key in ("deserved", "request", "weight")},
            limit=claim.limit if claim.limit == INFINITY else number(claim.limit),
        )
        for claim in case.claims
    ]
    found = (
        divided(number(case.total), claims)
        if case.given is None
        else over_quota(number(case.total), [number(each) for each in case.given], claims)
    )
    left = max(0, number(case.total) + sum(map(number, case.given or ())) - sum(found))
    for got, wanted in zip([*found, left], [*case.shares, case.left], strict=True):
        near = wanted is None or isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-12)
        assert near if number is float else wanted in (None, got)


def test_getqueuesbypriority() -> None:
    """Line 2023: priorities 1, 6, 2, 3 and 2 are served in the order 6, 3, 2 (both), 1."""
    claims = [QueueClaim(0, 1, tier=tier) for tier in (1, 6, 2, 3, 2)]
    served = [divided(amount, claims) for amount in (1, 2, 4, 5)]
    assert served == [[0, 1, 0, 0, 0], [0, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]


def test_what_rounding_leaves_over_goes_to_lower_priorities_first() -> None:
    """One GPU for two queues of a priority: half each, rounded to none, and the queue below has it whole."""
    assert divided(1, [QueueClaim(0, 1, tier=2), QueueClaim(0, 1, tier=2), QueueClaim(0, 1, tier=1)]) == [
        0,
        0,
        1,
    ]
    assert divided(1, [QueueClaim(0, 1, tier=2), QueueClaim(0, 1, tier=2), QueueClaim(0, 0, tier=1)]) == [
        1,
        0,
        0,
    ]


def test_past_usage_takes_from_what_is_over_quota() -> None:
    """Two queues of weight 1 with usages 3/4 and 1/4: with k = 1 they weigh 1/4 and 3/4."""
    claims = [QueueClaim(0, 100, usage=Fraction(3, 4)), QueueClaim(0, 100, usage=Fraction(1, 4))]
    assert divided(100, claims) == [50, 50]
    assert divided(100, claims, k=1) == [25, 75]
    assert divided(100, claims, k=2) == [0, 100]  # 1/2 - 2 x 1/4 = 0


AMOUNTS = st.integers(0, 12)
CLAIMS = st.builds(
    QueueClaim,
    AMOUNTS,
    AMOUNTS,
    st.one_of(AMOUNTS, st.just(INFINITY)),
    st.integers(0, 3),
    st.integers(0, 2),
    st.just(0),
    st.integers(0, 5),
)


@given(st.integers(0, 30), st.lists(CLAIMS, min_size=1, max_size=5))
def test_what_is_given_and_left_is_what_there_was(total: int, claims: list[QueueClaim]) -> None:
    """Unless quotas are more than there is; whole numbers stay whole, and nobody has more than it may ask for."""
    found = divided(total, claims)
    owed = sum(min(claim.deserved, claim.requestable) for claim in claims)
    left = max(total, owed) - sum(found)
    assert left >= 0
    assert all(share == int(share) and share <= claim.requestable for share, claim in zip(found, claims, strict=True))
    wanting = [c for c, share in zip(claims, found, strict=True) if share < c.requestable and c.weight]
    assert not wanting or left == 0

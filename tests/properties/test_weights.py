"""Claims of weights: the families reach what was worked out by hand, and where a smaller claim gives more."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairopt.models import NashWelfare
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.proofs.findings.liars import weights
from fairopt.proofs.findings.liars.weights import Claim
from fairopt.proofs.ledger.checking import NoLongerFollows


@pytest.mark.parametrize(
    "claim", [weights.LEVEL, weights.THROUGHPUT, weights.NO_ENVY], ids=lambda each: each.policy.name
)
def test_a_claim_gives_what_the_formula_says(claim: Claim) -> None:
    assert 1 < claim.checked(3, 2, 10) <= 3


@pytest.mark.parametrize("claim", weights.ALIKE, ids=lambda each: each.policy.name)
def test_users_alike_are_divided_among_by_weight(claim: Claim) -> None:
    assert claim.checked(2, 3, 2) == Fraction(3, 2)


@pytest.mark.parametrize(("policy", "market", "times"), weights.LESS, ids=lambda each: getattr(each, "name", ""))
def test_less_weight_gives_more_under_rules_that_are_not_monotone(
    policy: Policy, market: Market, times: Fraction
) -> None:
    assert weights.smaller(policy, market, times) > 1


def test_less_weight_gives_no_more_under_nash_welfare() -> None:
    with pytest.raises(NoLongerFollows, match="less gives more"):
        weights.smaller(NashWelfare(), Market.of([[4, 1], [11, 8], [12, 7]], [1, 1]), Fraction(9, 10))


def test_bounds_on_weights_grow_with_the_claim_to_the_whole() -> None:
    half = Fraction(1, 2)
    assert weights.no_envy(half, 1, 10) < weights.no_envy(half, 3, 10) < weights.no_envy(half, 10**9, 10) < 2
    assert weights.equal_throughput(half, 10**9, 5) > Fraction(599, 100)

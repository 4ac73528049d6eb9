"""Users who lie together: the families of markets reach what was worked out by hand, below the bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairopt.proofs.findings.liars import coalitions
from fairopt.proofs.findings.liars.coalitions import Coalition

FAMILIES = (coalitions.COOPERATIVE, coalitions.MAX_MIN, coalitions.NONCOOPERATIVE, coalitions.NASH)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.policy.name)
def test_two_of_three_gain_what_the_formula_says(family: Coalition) -> None:
    assert 1 < family.checked(3, 2, 10) <= family.most(3, 2, Fraction(10))


@pytest.mark.parametrize("family", FAMILIES[1:], ids=lambda each: each.policy.name)
def test_the_bound_is_the_limit(family: Coalition) -> None:
    far = Fraction(10**9)
    assert family.ratio(5, 2, far) > Fraction(99, 100) * family.most(5, 2, far)


def test_one_liar_is_the_smallest_coalition() -> None:
    assert coalitions.largest_least(Fraction(1, 3), Fraction(1, 3)) == Fraction(7, 3)
    assert coalitions.partial_allocation(2, 2) == 2

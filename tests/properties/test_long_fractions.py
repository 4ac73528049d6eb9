"""Which fractions are long, and what is left of these: at the last digit."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from fairopt.numbers import objects
from fairopt.properties.long_fractions import KEPT, LONG, above, are_long

#: As many binary digits as a fraction may have, and one more.
MOST, MORE = Fraction(2 ** (LONG - 1) + 1), Fraction(2**LONG + 1)


def test_a_fraction_is_long_from_the_digit_on_after_those_that_it_may_have() -> None:
    assert (LONG, KEPT) == (10_000, 100)
    assert [are_long(objects([each])) for each in (MOST, 1 / MOST, MORE, 1 / MORE)] == [False, False, True, True]
    assert not are_long(np.array([0.5, 2.0**1000]))
    assert above(objects([MOST, 1 / MOST])).tolist() == [MOST, 1 / MOST]


@pytest.mark.parametrize("value", [Fraction(3**7000), Fraction(1, 3**7000), Fraction(3**7000, 3**7000 + 1)])
def test_what_is_left_of_a_long_fraction_is_the_least_of_a_hundred_digits_or_one_more(value: Fraction) -> None:
    (found,) = above(objects([value]))
    assert 0 < found - value < value / 2 ** (KEPT - 1)
    scale = Fraction(2) ** (KEPT - value.numerator.bit_length() + value.denominator.bit_length())
    assert found * scale == ceil(value * scale)

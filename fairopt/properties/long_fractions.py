"""Fractions of thousands of digits, as exact decisions may have: sums of hundreds of them take seconds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.numbers import Array, arithmetic

#: Binary digits beyond which a fraction is long, and those that are left of one that is rounded.
LONG, KEPT = 10_000, 100


def are_long(values: Array) -> bool:
    """Whether these are rationals, and some of them are long.

    >>> are_long(np.array([Fraction(1, 3)])), are_long(np.array([Fraction(1, 3**7000)]))
    (False, True)
    """
    return arithmetic(values).exact and any(_digits(value) > LONG for value in np.asarray(values).ravel().tolist())


def above(values: Array) -> Array:
    """Return the least fractions with few digits that are not below these positive ones.

    >>> (value,) = above(np.array([Fraction(1, 3**7000)]))
    >>> 0 < value - Fraction(1, 3**7000) < value / 2**98
    True
    """
    out = values.copy()
    for place, value in np.ndenumerate(values):
        if _digits(value) > LONG:
            shift = KEPT - value.numerator.bit_length() + value.denominator.bit_length()
            top, bottom = value.numerator << max(shift, 0), value.denominator << max(-shift, 0)
            out[place] = -(-top // bottom) * Fraction(2) ** -shift
    return out


def _digits(value: Fraction | int) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())

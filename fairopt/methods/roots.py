"""Roots of rational numbers: exact where they are rational, else rounded down."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from fairopt.program import Array, Number

#: The largest exponent of `integers_in_proportion`; larger powers would have millions of digits.
LARGEST_EXPONENT = 64
#: A root that is not rational is rounded down to a multiple of this.
GRAIN = Fraction(1, 10**12)
#: Utilities in floats are right to this part, and a power of one is off by the exponent times as much; what is allowed.
NOISE, ALLOWED = 1e-14, 1e-4
#: Decimal digits to which logarithms of Fractions are computed, beside those of their factors.
DIGITS = 30


def beyond_floats(exponent: Any) -> Any:
    """Whether a product of utilities in floats to powers that add up to ``exponent`` (any shape) is noise.

    >>> beyond_floats(1e6), beyond_floats(1e12)
    (False, True)
    """
    return NOISE * exponent > ALLOWED


def sum_of_logarithms(values: Array, times: Array) -> float:
    """Return the sum of ``times`` the logarithms of ``values``, both Fractions (n,), right but for last digits.

    >>> import numpy as np
    >>> sum_of_logarithms(np.array([1 + Fraction(1, 10**40)]), np.array([Fraction(10**40)]))
    1.0
    """
    with localcontext() as context:
        # values near 1 have small logarithms, and large multiples of them
        context.prec = DIGITS + len(str(int(sum(times))))
        pairs = zip(values, times, strict=True)
        return float(sum((_decimal(factor) * _decimal(value).ln() for value, factor in pairs), Decimal(0)))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def integers_in_proportion(weights: Iterable[Number]) -> list[int] | None:
    """Return the smallest integers in proportion to the weights, None where one exceeds `LARGEST_EXPONENT`."""
    weight = [Fraction(w) for w in weights]
    scale = lcm(*(w.denominator for w in weight))
    whole = [int(w * scale) for w in weight]
    common = gcd(*whole)
    whole = [w // common for w in whole]
    return whole if max(whole) <= LARGEST_EXPONENT else None


def root(value: Fraction, degree: int) -> Fraction:
    """Return the root of a positive number: the root itself where it is rational, else rounded down to `GRAIN`."""
    exact = Fraction(whole_root(value.numerator, degree), whole_root(value.denominator, degree))
    return exact if exact**degree == value else rounded_root(value.numerator, value.denominator, degree)


def rounded_root(top: int, bottom: int, degree: int) -> Fraction:
    """Return the root of top / bottom, rounded down to `GRAIN`.

    >>> rounded_root(1, 3, 1)
    Fraction(333333333333, 1000000000000)
    """
    steps = GRAIN.denominator
    # floor(root(value)) is floor(root(floor(value)))
    return Fraction(whole_root(top * steps**degree // bottom, degree), steps)


def whole_root(value: int, degree: int) -> int:
    """Return the largest integer whose power ``degree`` is at most ``value``, by Newton's method from above."""
    if not value:
        return 0
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better

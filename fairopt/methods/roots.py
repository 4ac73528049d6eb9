"""Roots of rational numbers: exact where they are rational, else rounded down."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm

from fairopt.program import Number

#: The largest exponent of `integers_in_proportion`; larger powers would have millions of digits.
LARGEST_EXPONENT = 64
#: A root that is not rational is rounded down to a multiple of this.
GRAIN = Fraction(1, 10**12)


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
    if exact**degree == value:
        return exact
    steps = GRAIN.denominator
    # floor(root(value)) is floor(root(floor(value)))
    return Fraction(whole_root(value.numerator * steps**degree // value.denominator, degree), steps)


def whole_root(value: int, degree: int) -> int:
    """Return the largest integer whose power ``degree`` is at most ``value``, by Newton's method from above."""
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better

"""A concave function between points and lines: all breakpoints where it is piecewise linear, else as near as asked."""

from __future__ import annotations

from fractions import Fraction as F
from math import isqrt
from random import Random
from typing import NamedTuple

import pytest

from fairopt.methods.sandwich import corners, covering, gap, height, sandwich


class Point(NamedTuple):
    """A point of the function."""

    epsilon: F
    value: F


class Line(NamedTuple):
    """A line above it."""

    constant: F
    slope: F


@pytest.mark.parametrize("seed", range(8))
def test_all_breakpoints_are_found_whatever_duals_say_at_them(seed: int) -> None:
    random = Random(seed)
    slopes = sorted({F(random.randint(1, 40), random.randint(1, 5)) for _ in range(random.randint(1, 9))}, reverse=True)
    wanted = [Point(F(0), F(random.randint(-3, 3)))]
    for slope in slopes:
        step = F(random.randint(1, 9), random.randint(1, 9))
        wanted.append(Point(wanted[-1].epsilon + step, wanted[-1].value + slope * step))
    lines = [
        Line(point.value - slope * point.epsilon, slope) for point, slope in zip(wanted, [*slopes, F(0)], strict=True)
    ]
    asked = []

    def ask(epsilon: F) -> tuple[Point, Line]:
        asked.append(epsilon)
        value = min(height(line, epsilon) for line in lines)
        tight = [line for line in lines if height(line, epsilon) == value]
        mixed = random.random()  # at a breakpoint, duals may give any line between the two
        slope = tight[0].slope + F(round(8 * mixed), 8) * (tight[-1].slope - tight[0].slope)
        return Point(epsilon, value), Line(value - slope * epsilon, slope)

    start = ask(F(0))
    found = [start, *sandwich(ask, start, lines[-1])]
    assert corners([point for point, _ in found]) == wanted
    assert covering(wanted, [lines[-1], *(line for _, line in found)]) == lines
    assert len(asked) <= 2 * len(wanted) + 1


def test_a_curved_function_is_known_as_nearly_as_asked() -> None:
    def ask(epsilon: F) -> tuple[Point, Line]:  # the root of epsilon + 1 up to 3, rounded down and up
        root = F(isqrt((epsilon.numerator + epsilon.denominator) * 10**24 // epsilon.denominator), 10**12)
        above = root + F(1, 10**12)
        slope = 1 / (2 * above) if epsilon < 8 else F(0)
        return Point(epsilon, min(root, F(3))), Line((above + (epsilon + 1) / above) / 2 - slope * epsilon, slope)

    level = Line(F(3), F(0))
    for near in (F(1, 10), F(1, 1000)):
        start = ask(F(0))
        found = [start, *sandwich(ask, start, level, near)]
        points = corners([point for point, _ in found])
        lines = covering(points, [level, *(line for _, line in found)])
        ends = zip(lines, points, [*points[1:], None], strict=True)
        assert max(gap(line, left, right) for line, left, right in ends) <= near
        assert len(found) < 4 / float(near) ** 0.5

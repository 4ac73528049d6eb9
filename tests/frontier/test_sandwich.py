"""A concave function between points and lines: all breakpoints where it is piecewise linear, else as near as asked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from math import isqrt
from random import Random

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt.frontier.curve import UpperLine, covering, point_at
from fairopt.frontier.sandwich import corners, sandwich
from fairopt.report import Statement


def point(epsilon: F, value: F) -> Statement:
    return point_at(epsilon, value, np.zeros(0))


def line(constant: F, slope: F) -> UpperLine:
    return UpperLine(constant, slope, ())


def numbers(points: Sequence[Statement]) -> list[tuple[F, F]]:
    return [(each.epsilon, each.value) for each in points]


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_all_breakpoints_are_found_whatever_duals_say_at_them(seed: int) -> None:
    random = Random(seed)
    slopes = sorted({F(random.randint(1, 40), random.randint(1, 5)) for _ in range(random.randint(1, 9))}, reverse=True)
    wanted = [point(F(0), F(random.randint(-3, 3)))]
    for slope in slopes:
        step = F(random.randint(1, 9), random.randint(1, 9))
        wanted.append(point(wanted[-1].epsilon + step, wanted[-1].value + slope * step))
    lines = [
        line(each.value - slope * each.epsilon, slope) for each, slope in zip(wanted, [*slopes, F(0)], strict=True)
    ]
    asked = []

    def ask(epsilon: F) -> tuple[Statement, UpperLine]:
        asked.append(epsilon)
        value = min(each.height(epsilon) for each in lines)
        tight = [each for each in lines if each.height(epsilon) == value]
        mixed = random.random()  # at a breakpoint, duals may give any line between the two
        slope = tight[0].slope + F(round(8 * mixed), 8) * (tight[-1].slope - tight[0].slope)
        return point(epsilon, value), line(value - slope * epsilon, slope)

    start = ask(F(0))
    found = [start, *sandwich(ask, start, lines[-1])]
    assert numbers(corners([each for each, _ in found])) == numbers(wanted)
    nearest = covering(wanted, [lines[-1], *(each for _, each in found)])
    assert [(each.constant, each.slope) for each in nearest] == [(each.constant, each.slope) for each in lines]
    assert len(asked) <= 2 * len(wanted) + 1


def test_a_curved_function_is_known_as_nearly_as_asked() -> None:
    def ask(epsilon: F) -> tuple[Statement, UpperLine]:  # the root of epsilon + 1 up to 3, rounded down and up
        root = F(isqrt((epsilon.numerator + epsilon.denominator) * 10**24 // epsilon.denominator), 10**12)
        above = root + F(1, 10**12)
        slope = 1 / (2 * above) if epsilon < 8 else F(0)
        return point(epsilon, min(root, F(3))), line((above + (epsilon + 1) / above) / 2 - slope * epsilon, slope)

    level = line(F(3), F(0))
    for near in (F(1, 10), F(1, 1000)):
        start = ask(F(0))
        found = [start, *sandwich(ask, start, level, near)]
        points = corners([each for each, _ in found])
        lines = covering(points, [level, *(each for _, each in found)])
        ends = zip(lines, points, [*points[1:], None], strict=True)
        assert max(each.gap(left, right) for each, left, right in ends) <= near
        assert len(found) < 4 / float(near) ** 0.5

"""A concave function of one number between points that it reaches and lines above it.

Asked at one place, the function answers with a point on it, or below, and a line that is nowhere below it. Where two
lines cross, it is asked next. If it is piecewise linear and the answers are exact, all its breakpoints are found after
two questions for each; else the distance between points and lines shrinks with the square of their number.

Source: Eisner and Severance, Mathematical techniques for efficient record segmentation in large shared databases, 1976
(piecewise linear); Rote, The convergence rate of the sandwich algorithm for approximating convex functions, 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar


class Evaluation(Protocol):
    """At ``epsilon`` the function is at least ``value``."""

    @property
    def epsilon(self) -> Fraction:
        """Where it is."""

    @property
    def value(self) -> Fraction:
        """What is reached."""


class BoundingLine(Protocol):
    """The function is nowhere above ``constant`` + ``slope`` times epsilon."""

    @property
    def constant(self) -> Fraction:
        """The height at 0."""

    @property
    def slope(self) -> Fraction:
        """The rise."""


P = TypeVar("P", bound=Evaluation)
A = TypeVar("A", bound=BoundingLine)
#: Answers are asked for at numbers with denominators up to this, where the function is not piecewise linear.
ROUND = 1000


def height(line: BoundingLine, epsilon: Fraction) -> Fraction:
    """Return the line's height at ``epsilon``."""
    return line.constant + line.slope * epsilon


def gap(line: BoundingLine, left: Evaluation, right: Evaluation | None) -> Fraction:
    """Return how far a line is above the points at most, from one to the next; where that is None, to infinity."""
    ends = [height(line, left.epsilon) - left.value]
    return max(ends + ([] if right is None else [height(line, right.epsilon) - right.value]))


class _Interval(NamedTuple, Generic[P, A]):
    """From a point to the next, None at infinity, with the line that came with each."""

    left: P
    falls: A
    right: P | None
    rises: A

    def gap(self) -> Fraction:
        """Return how far the nearer of the lines is above."""
        either = [self.rises] if self.right is None else [self.falls, self.rises]
        return min(gap(line, self.left, self.right) for line in either)

    def crossing(self) -> Fraction | None:
        """Return where the lines cross; None where they do not cross between the points."""
        if self.falls.slope <= self.rises.slope:
            return None
        at = (self.rises.constant - self.falls.constant) / (self.falls.slope - self.rises.slope)
        return at if self.holds(at) else None

    def holds(self, epsilon: Fraction) -> bool:
        """Return whether it is between the points."""
        return self.left.epsilon < epsilon and (self.right is None or epsilon < self.right.epsilon)


def sandwich(
    ask: Callable[[Fraction], tuple[P, A]], start: tuple[P, A], level: A, near: Fraction = Fraction(0)
) -> Iterator[tuple[P, A]]:
    """Yield what the function answers, where it is farthest from known first, until it is known up to ``near``.

    ``start`` is the answer at the left end, ``level`` a line without slope that the function reaches. With ``near`` 0
    the function must be piecewise linear and ``ask`` exact.
    """
    intervals = [_Interval(*start, None, level)]
    while True:
        unknown = [
            (far, at, interval)
            for interval in intervals
            if (far := interval.gap()) > near and (at := interval.crossing())
        ]
        if not unknown:
            return
        _, at, interval = max(unknown, key=lambda each: each[0])
        intervals.remove(interval)
        rounded = at.limit_denominator(ROUND) if near else at
        point, line = ask(rounded if interval.holds(rounded) else at)
        yield point, line
        intervals += [
            _Interval(interval.left, interval.falls, point, line),
            _Interval(point, line, interval.right, interval.rises),
        ]


def corners(points: Sequence[P]) -> list[P]:
    """Return the corners of the least concave function through or above the points, which never falls, in order."""
    kept: list[P] = []
    highest = {point.epsilon: point for point in sorted(points, key=lambda each: each.value)}
    for _, point in sorted(highest.items()):
        while len(kept) > 1 and _slope(kept[-2], kept[-1]) <= _slope(kept[-1], point):
            kept.pop()
        kept.append(point)
    while len(kept) > 1 and kept[-2].value >= kept[-1].value:
        kept.pop()
    return kept


def _slope(left: Evaluation, right: Evaluation) -> Fraction:
    return (right.value - left.value) / (right.epsilon - left.epsilon)


def covering(points: Sequence[Evaluation], lines: Sequence[A]) -> list[A]:
    """Return the line nearest above for each interval from a point to the next, and for what comes after the last."""
    level = min((line for line in lines if line.slope <= 0), key=lambda line: line.constant)
    return [min(lines, key=lambda line, ends=ends: gap(line, *ends)) for ends in pairwise(points)] + [level]  # type: ignore[misc]

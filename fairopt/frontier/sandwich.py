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
from typing import NamedTuple, TypeAlias

from fairopt.frontier.curve import UpperLine
from fairopt.report import Statement

#: A point of the function, or below, and a line that is nowhere below it.
Answer: TypeAlias = tuple[Statement, UpperLine]
#: Answers are asked for at numbers with denominators up to this, where the function is not piecewise linear.
ROUND = 1000


class _Interval(NamedTuple):
    """From a point to the next, None at infinity, with the line that came with each."""

    left: Statement
    falls: UpperLine
    right: Statement | None
    rises: UpperLine

    def gap(self) -> Fraction:
        """Return how far the nearer of the lines is above."""
        either = [self.rises] if self.right is None else [self.falls, self.rises]
        return min(line.gap(self.left, self.right) for line in either)

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
    ask: Callable[[Fraction], Answer], start: Answer, level: UpperLine, near: Fraction = Fraction(0)
) -> Iterator[Answer]:
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


def corners(points: Sequence[Statement]) -> list[Statement]:
    """Return the corners of the least concave function through or above the points, which never falls, in order."""
    kept: list[Statement] = []
    highest = {point.epsilon: point for point in sorted(points, key=lambda each: each.value)}
    for _, point in sorted(highest.items()):
        while len(kept) > 1 and _slope(kept[-2], kept[-1]) <= _slope(kept[-1], point):
            kept.pop()
        kept.append(point)
    while len(kept) > 1 and kept[-2].value >= kept[-1].value:
        kept.pop()
    return kept


def _slope(left: Statement, right: Statement) -> Fraction:
    slope: Fraction = (right.value - left.value) / (right.epsilon - left.epsilon)
    return slope

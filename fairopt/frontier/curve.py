"""A trade-off as data: the points of a curve, the lines above it, and what Pareto-efficient allocations reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from fairopt.program import Array, Number, short_text
from fairopt.properties import ParetoWeights
from fairopt.report import Grid, Key, ResultForm, Statement, Tabular, listed

#: A point of a curve.
POINT = ResultForm(
    "What an allocation reaches.",
    Key("epsilon", Number, "By how much the property fails, at most."),
    Key("value", Number, "The goal."),
    Key("allocation", list[list[Number]], "GPUs of each type for each user."),
)


def point_at(
    epsilon: Fraction, value: Fraction, allocation: Array, variables: Mapping[str, Fraction] | None = None
) -> Statement:
    """Return what an allocation (n, k) reaches at ``epsilon``; ``variables``: the others of its program, by name."""
    return POINT.of(epsilon=epsilon, value=value, allocation=allocation, variables=variables)


@dataclass(frozen=True, eq=False)
class UpperLine:
    """Nothing is above ``constant`` + ``slope`` times epsilon, at any epsilon; ``duals`` of the program prove it.

    ``factors`` (n,), of the Nash welfare: what each user's gain is multiplied with; the mean of what comes out is above
    the product.
    """

    constant: Fraction
    slope: Fraction
    duals: Sequence[Sequence[Any]]
    factors: Array | None = None

    form = ResultForm(
        "A line that the curve is nowhere above.",
        Key("constant", Number, "Its height at epsilon 0."),
        Key("slope", Number, "Its rise."),
    )

    def height(self, epsilon: Fraction) -> Fraction:
        """Return its height at ``epsilon``."""
        return self.constant + self.slope * epsilon

    def gap(self, left: Statement, right: Statement | None) -> Fraction:
        """Return how far it is above the points at most, from one to the next; where that is None, to infinity."""
        most: Fraction = max(self.height(each.epsilon) - each.value for each in (left, right) if each is not None)
        return most


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Tabular):
    """The largest ``goal`` among allocations that fail a property, ``against``, by epsilon, as a function of epsilon.

    It is at least as high as what joins each of ``points`` to the next, level after the last, and nowhere higher than
    one of ``lines``; of these there is one for each such span. ``gap`` is the largest distance of a span to its line;
    where there is none, the curve is `exact`. ``efficient``: what Pareto-efficient allocations reach, face by face. The
    allocations of the largest sum of throughputs times positive weights are a face: all are efficient, and so are
    mixtures of two, which are on the line between the points that a curve over the face has.
    ``stopped``: why it was not followed to the end, "" where it was.

    >>> from fairopt import frontier
    >>> from fairopt.datasets import oef_example
    >>> curve = frontier(oef_example(), "total_efficiency", "sharing_incentive", policies=[]).curves[0]
    >>> curve
    <Curve: total_efficiency against sharing_incentive, exact: 41/9 at 0, 5 at 4/7>
    >>> curve.at(Fraction(2, 7))
    Fraction(43, 9)
    """

    goal: str
    against: str
    points: tuple[Statement, ...]
    lines: tuple[UpperLine, ...]
    efficient: Mapping[ParetoWeights, Sequence[Statement]] = field(default_factory=dict)
    stopped: str = ""

    form = ResultForm(
        "The most of a goal, as a function of epsilon.",
        Key("goal", str, "What is largest."),
        Key("property", str, "What may fail by epsilon.", lambda curve: curve.against),
        Key("exact", bool, "Whether points and lines meet everywhere."),
        Key("gap", Number, "By how much they are apart, at most."),
        Key(
            "stopped",
            str | None,
            "Why it was not followed to its end; null where it was.",
            lambda curve: curve.stopped or None,
        ),
        Key(
            "points",
            listed(POINT),
            "The curve is on the straight lines between these, or above; level after the last.",
        ),
        Key("lines", list[UpperLine], "One for each of these spans, and for what comes after the last point."),
        Key(
            "efficient",
            listed(listed(POINT)),
            "What Pareto-efficient allocations reach, on one efficient face after another.",
            lambda curve: [*curve.efficient.values()],
        ),
    )

    @property
    def gap(self) -> Fraction:
        """The largest distance between what is reached and what is proved to be above it, in the goal's unit."""
        spans = [*pairwise(self.points), (self.points[-1], None)]
        return max(line.gap(*ends) for line, ends in zip(self.lines, spans, strict=True))

    @property
    def exact(self) -> bool:
        """Whether no distance is left."""
        return not self.gap

    def covering(self, points: Sequence[Statement]) -> list[UpperLine]:
        """Return the lines that are nearest above points in order, one for each span between two and after the last."""
        return covering(points, self.lines)

    def at(self, epsilon: Number) -> Fraction:
        """Return what is reached at an epsilon that is not negative: the curve itself where it is exact."""
        found = along(self.points, epsilon)
        assert found is not None
        return found

    def below(self, epsilon: Number) -> Fraction:
        """Return what nothing is above at ``epsilon``."""
        return min(line.height(Fraction(epsilon)) for line in self.lines)

    def over(self, policy: Statement) -> str:
        """Return how far a policy beside it is below it, as a part of the curve; ~ in floats, "-" for none."""
        epsilon, distance = policy.epsilons.get(self.against), policy.distances.get((self.goal, self.against))
        most = 0 if epsilon is None else self.below(max(epsilon, 0))
        return "-" if distance is None or not most else f"{'' if policy.exact else '~'}{float(distance / most):z.1%}"

    def efficient_at(self, epsilon: Number) -> Fraction | None:
        """Return what Pareto-efficient allocations are known to reach; None where none is known."""
        reached = (along(points, epsilon) for points in self.efficient.values())
        return max((each for each in reached if each is not None), default=None)

    def __repr__(self) -> str:
        corners = [f"{short_text(point.value)} at {short_text(point.epsilon)}" for point in self.points]
        said = corners if len(corners) < 5 else [corners[0], f"{len(corners) - 2} more", corners[-1]]
        known = "exact" if self.exact else f"known up to {float(self.gap):.2g}"
        return f"<Curve: {self.goal} against {self.against}, {known}: {', '.join(said)}>"

    def _table(self) -> Grid:
        epsilons = [point.epsilon for point in self.points]
        columns = {"epsilon": epsilons, "at least": [point.value for point in self.points]}
        above, efficient = ([ask(each) for each in epsilons] for ask in (self.below, self.efficient_at))
        return Grid(
            "breakpoint", [str(n) for n in range(len(epsilons))], {**columns, "at most": above, "PE": efficient}
        )

    @property
    def settled(self) -> bool:
        """Whether Pareto-efficient allocations are known to reach what all allocations do, wherever that is known."""
        spans = pairwise([*self.points, self.points[-1]])
        return all(
            any(self._meets(points, left) and self._meets(points, right) for points in self.efficient.values())
            for left, right in spans
        )

    def _meets(self, points: Sequence[Statement], point: Statement) -> bool:
        reached = along(points, point.epsilon)
        return reached is not None and reached >= point.value - self.gap

    def without_needless_faces(self) -> Curve:
        """Return the curve without faces that reach nowhere more than the others at their own points."""
        kept = self.efficient
        for face, points in self.efficient.items():
            rest = replace(self, efficient={each: of for each, of in kept.items() if each is not face})
            others = [(point.value, rest.efficient_at(point.epsilon)) for point in points]
            if all(most is not None and most >= value for value, most in others):
                kept = rest.efficient
        return replace(self, efficient=kept)


def along(points: Sequence[Statement], epsilon: Number) -> Fraction | None:
    """Return the height at ``epsilon`` of the lines from each point to the next; None before the first."""
    here = Fraction(epsilon)
    if not points or here < points[0].epsilon:
        return None
    height: Fraction = points[-1].value
    for left, right in pairwise(points):
        if here <= right.epsilon:
            part = (here - left.epsilon) / (right.epsilon - left.epsilon)
            height = left.value + part * (right.value - left.value)
            break
    return height


def covering(points: Sequence[Statement], lines: Sequence[UpperLine]) -> list[UpperLine]:
    """Return the line nearest above for each interval from a point to the next, and for what comes after the last."""
    level = min((line for line in lines if line.slope <= 0), key=lambda line: line.constant)
    spans = pairwise(points)
    return [min(lines, key=lambda line, ends=ends: line.gap(*ends)) for ends in spans] + [level]  # type: ignore[misc]

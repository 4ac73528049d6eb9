"""How a curve is followed, over all allocations or over Pareto-efficient ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from fairopt.errors import NotCapable, OutOfTime
from fairopt.frontier.curve import Curve, UpperLine, covering, point_at
from fairopt.frontier.goals import Oracle, Welfare
from fairopt.frontier.relaxed import Relaxed
from fairopt.frontier.sandwich import corners, sandwich
from fairopt.problem import Market, usable
from fairopt.program import Array, fractions
from fairopt.properties import Answer, ParetoEfficiency, ParetoWeights
from fairopt.report import Statement


def trace(market: Market, goal: Welfare, relaxed: Relaxed, near: Fraction) -> Curve:
    """Return the curve of a goal on an exact market, known up to the part ``near`` of its largest value.

    It stops earlier where time is over. Errors: `OutOfTime` before anything is known; `NotCapable` of the goal.
    """
    if near < goal.finest:
        raise NotCapable(f"{goal.name} is followed up to 1/{1 / goal.finest} of its largest value; give a larger gap")
    oracle = goal.oracle(market, relaxed, None)
    level, start = oracle.level(), oracle.at(Fraction(0))
    if relaxed.efficient:
        return _efficient(market, goal, relaxed, start[0], level)
    found, stopped = [start], ""
    try:
        for each in sandwich(oracle.at, start, level, near * level.constant):
            found.append(each)
    except OutOfTime as error:
        stopped = str(error)
    points = corners([point for point, _ in found])
    lines = covering(points, [level, *(line for _, line in found)])
    return Curve(goal.name, relaxed.name, tuple(points), tuple(lines), stopped=stopped)


def _efficient(market: Market, goal: Welfare, relaxed: Relaxed, best: Statement, level: UpperLine) -> Curve:
    """Return the level curve of Pareto efficiency alone: the best allocation, or one that is better for somebody."""
    allocation, face = face_of(market, best.allocation)
    point = best.but(allocation=allocation, value=Fraction(goal.value(market, market.utility(allocation))))
    return Curve(goal.name, relaxed.name, (point,), (level,), efficient={face: (point,)})


def on_faces(
    market: Market, goal: Welfare, relaxed: Relaxed, faces: Mapping[ParetoWeights, Sequence[Array]], curve: Curve
) -> Curve:
    """Return the curve with what Pareto-efficient allocations reach, as far as there is time.

    These are the allocations that are known of ``faces`` and, of a linear goal, all others on them: it is followed over
    one face after another, those first that come nearest to the curve, while the next may reach more.
    """
    known = {face: [_reached(market, goal, relaxed, each) for each in some] for face, some in faces.items()}
    apart = {face: min(curve.below(point.epsilon) - point.value for point in points) for face, points in known.items()}
    try:
        for face in sorted(known, key=apart.__getitem__):
            if curve.settled:
                break
            points = known[face] if goal.near else _followed(goal.oracle(market, relaxed, face), curve)
            if points:
                curve = replace(curve, efficient={**curve.efficient, face: tuple(corners(points))})
    except OutOfTime as error:
        curve = replace(curve, stopped=curve.stopped or f"{error}, before all efficient faces were looked at")
    return curve.without_needless_faces()


def _followed(oracle: Oracle, curve: Curve) -> list[Statement]:
    """Return the points of a linear goal on a face; none where others reach as much wherever the face has any."""
    first, level = oracle.least(), oracle.level()
    others = curve.efficient_at(first)
    if others is not None and others >= level.constant:
        return []
    start = oracle.at(first)
    return [start[0], *(point for point, _ in sandwich(oracle.at, start, level))]


def _reached(market: Market, goal: Welfare, relaxed: Relaxed, allocation: Array) -> Statement:
    """Return the point that an allocation is."""
    utilities = market.utility(allocation)
    value, epsilon = Fraction(goal.value(market, utilities)), Fraction(relaxed.epsilon(market, allocation))
    return point_at(max(epsilon, Fraction(0)), value, allocation, dict(relaxed.variables(market, utilities)) or None)


def face_of(market: Market, shares: Array) -> tuple[Array, ParetoWeights]:
    """Return an efficient allocation (n, k), and a face that it is on.

    It is ``shares`` or one that is better for somebody and worse for nobody, without GPUs that their holder cannot use.
    """
    verdict = ParetoEfficiency().check(market, shares, tolerance=0)
    if verdict.answer is Answer.FAILS:
        shares = verdict.witness.allocation
        verdict = ParetoEfficiency().check(market, shares, tolerance=0)
    return fractions(usable(market.speedup, shares, market.demand)), verdict.evidence

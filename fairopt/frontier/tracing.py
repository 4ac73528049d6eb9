"""How a curve is followed, over all allocations or over Pareto-efficient ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from fairopt.errors import OutOfTime
from fairopt.frontier.curve import Curve, CurvePoint, EfficientFace, UpperLine
from fairopt.frontier.goals import Welfare
from fairopt.frontier.relaxed import Relaxed
from fairopt.frontier.tradeoff import least_epsilon, program_of
from fairopt.methods.sandwich import corners, covering, sandwich
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties import Answer, ParetoEfficiency
from fairopt.properties.shares.pareto_efficiency import DominatingAllocation, ParetoWeights

#: On efficient faces a goal that is not linear is followed up to this part of its largest value.
ROUGH = Fraction(1, 100)


def trace(market: Market, goal: Welfare, relaxed: Relaxed, near: Fraction) -> Curve:
    """Return the curve of a goal on an exact market, known up to the part ``near`` of its largest value.

    It stops earlier where time is over. Errors: `OutOfTime` before anything is known; `NotCapable` of the goal.
    """
    oracle = goal.oracle(market, relaxed)
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


def _efficient(market: Market, goal: Welfare, relaxed: Relaxed, best: CurvePoint, level: UpperLine) -> Curve:
    """Return the level curve of Pareto efficiency alone: the best allocation, or one that is better for somebody."""
    allocation, face = face_of(market, best.allocation)
    point = replace(best, allocation=allocation, value=Fraction(goal.value(market, market.utility(allocation))))
    face = replace(face, points=(point,))
    return Curve(goal.name, relaxed.name, (point,), (level,), efficient=(face,))


def on_faces(market: Market, goal: Welfare, relaxed: Relaxed, faces: Iterable[EfficientFace], curve: Curve) -> Curve:
    """Return the curve with what the allocations of efficient faces reach; of those that time is left for."""
    found = []
    try:
        for face in faces:
            oracle = goal.oracle(market, relaxed, face)
            first = least_epsilon(program_of(market, relaxed, lambda p, market, own: p.maximize(own.sum()), face))
            level, start = oracle.level(), oracle.at(first)
            near = ROUGH * level.constant if goal.near else Fraction(0)
            points = [start[0], *(point for point, _ in sandwich(oracle.at, start, level, near))]
            found.append(replace(face, points=tuple(corners(points))))
    except OutOfTime as error:
        curve = replace(curve, stopped=curve.stopped or f"{error}, before all efficient faces were looked at")
    return curve.with_faces(found)


def face_of(market: Market, shares: Array) -> tuple[Array, EfficientFace]:
    """Return an efficient allocation (n, k), ``shares`` or one better for somebody and worse for nobody, and a face."""
    verdict = ParetoEfficiency().check(market, shares, tolerance=0)
    if verdict.answer is Answer.FAILS:
        assert isinstance(verdict.witness, DominatingAllocation)
        shares = verdict.witness.allocation
        verdict = ParetoEfficiency().check(market, shares, tolerance=0)
    proof: ParetoWeights = verdict.evidence
    rents = None if market.demand is None else proof.demand_prices
    worth = Fraction((proof.weights * market.utility(shares)).sum())
    return shares, EfficientFace(proof.weights, proof.prices, rents, worth)

"""Certificates of trade-offs: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from certificate_kinds.decisions import LEAST, LEVELLED, SHARES
from certificate_kinds.examples import (
    PAIR,
    Json,
    Truth,
    certificate,
    market_of,
    prices,
    require,
    require_feasible,
    shares_of,
)
from fairopt.frontier import GOALS, RELAXED
from fairopt.frontier.curve import along, point_at
from fairopt.frontier.tracing import trace
from fairopt.properties import Answer, ParetoEfficiency
from fairopt.report import Statement


# -- worked out by hand ------------------------------------------------------------------------------------------------
def point(epsilon: Any, value: Any, allocation: Any, **variables: Any) -> Json:
    """Return what an allocation reaches."""
    return {"epsilon": epsilon, "value": value, "allocation": allocation} | (
        {"variables": variables} if variables else {}
    )


def line(constant: Any, slope: Any, duals: list[Any], **more: Any) -> Json:
    """Return what nothing is above."""
    return {"constant": constant, "slope": slope, "duals": duals} | more


def tradeoff(goal: str, name: str, points: list[Json], lines: list[Json], gap: Any = 0, **more: Any) -> Json:
    """Return a trade-off on the market of OEF Eq. (6), where equal shares are worth 3/2 and 3."""
    return certificate("frontier", market=PAIR, goal=goal, property=name, points=points, lines=lines, gap=gap, **more)


#: A has the first type and B the second: the most that there is, 6.
APART, MOST = [[1, 0], [0, 1]], line(6, 0, prices(1, 5))
ENVY_COSTS = tradeoff(
    "total_efficiency",
    "envy_freeness",
    [point(0, "21/4", SHARES), point("2/3", 6, APART)],
    [line("21/4", "9/8", [*prices("7/4", "7/2"), ["envy_free", 0, 1, "-3/4"]]), MOST],
)
SHARING_COSTS = tradeoff(
    "total_efficiency",
    "sharing_incentive",
    [point(0, "21/4", SHARES), point("1/3", 6, APART)],
    [line("21/4", "9/4", [*prices("5/2", 5), ["sharing_incentive", 0, "-3/2"]]), MOST],
)
EQUALITY_COSTS = tradeoff(
    "total_efficiency",
    "equal_throughput",
    [point(0, "30/7", [[1, "4/7"], [0, "3/7"]], level="15/7"), point("16/9", 6, APART, level=1)],
    [line("30/7", "27/28", [*prices("10/7", "20/7"), ["at_least", 0, "-3/7"], ["at_most", 1, "3/7"]]), MOST],
)
#: Of the Nash welfare, which is the root of 5/4 here.
NASH_COSTS_NOTHING = tradeoff(
    "nash_welfare",
    "sharing_incentive",
    [point(0, "111/100", SHARES)],
    [line("9/8", 0, prices("3/8", "3/4"), factors=["9/8", "9/10"])],
    "3/200",
)
EFFICIENCY_COSTS_NOTHING = tradeoff(
    "least_gain",
    "pareto_efficiency",
    [point(0, "10/9", LEVELLED, least_ratio="10/9")],
    [line("10/9", 0, LEAST)],
    weights=[5, 2],
    prices=[5, 10],
)
#: A Pareto-efficient allocation at which A envies B by 1/3 of its equal share; nothing is above 6.
EFFICIENT_TOO = ENVY_COSTS | {
    "points": [point("1/3", "45/8", [[1, "1/8"], [0, "7/8"]])],
    "lines": [MOST],
    "gap": "3/8",
    "weights": [5, 2],
    "prices": [5, 10],
}


# -- whether what they state is so -------------------------------------------------------------------------------------
#: Up to what part the Nash welfare is followed, to be compared with.
NEAR = Fraction(1, 10**4)


def _frontier(data: Mapping[str, Any]) -> None:
    market, gap = market_of(data), Fraction(data["gap"])
    goal = next(each for each in GOALS if each.name == data["goal"])
    relaxed = next(each for each in RELAXED if each.name == data["property"])
    efficient = data.get("weights") is not None
    points = []
    for told in data["points"]:
        shares = shares_of(told, market)
        require_feasible(market, shares)
        reached = point_at(Fraction(told["epsilon"]), Fraction(told["value"]), shares)
        require(relaxed.efficient or relaxed.epsilon(market, shares) <= reached.epsilon, "the property fails by more")
        require(reached.value <= goal.value(market, market.utility(shares)) + (gap and NEAR), "it is not reached")
        points.append(reached)
    for each in [*points, *(_between(*ends) for ends in pairwise(points))]:
        holds = ParetoEfficiency().check(market, each.allocation, tolerance=0).answer is Answer.HOLDS
        require(not (efficient or relaxed.efficient) or holds, "it is not Pareto-efficient")
    require(points and (efficient or not points[0].epsilon), "something before the first point is not told")
    curve = trace(market, goal, relaxed, goal.near and NEAR)
    for epsilon in {each.epsilon for each in (*points, *curve.points) if each.epsilon >= points[0].epsilon}:
        told_there = along(points, epsilon)
        require(told_there is not None and curve.at(epsilon) <= told_there + gap, f"more is reached at {epsilon}")
        require(efficient or told_there <= curve.below(epsilon), f"so much is not reached at {epsilon}")  # type: ignore[operator]


def _between(one: Statement, two: Statement) -> Statement:
    mixed = (one.epsilon + two.epsilon) / 2, (one.value + two.value) / 2, (one.allocation + two.allocation) / 2
    return point_at(*mixed)


TRUTH: dict[str, Truth] = {"frontier": _frontier}

"""Certificates about allocations: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairopt.discovery import PROPERTIES, load
from fairopt.evidence import throughput_of
from fairopt.problem import worth
from fairopt.program import Sense
from fairopt.properties import Answer
from fairopt.testing.certificate_kinds.examples import (
    ALIKE,
    CANNOT_RUN,
    PAIR,
    certificate,
    extreme,
    market,
    optimality,
    prices,
)
from fairopt.testing.certificate_kinds.truth import (
    Truth,
    extreme_of,
    market_of,
    policy_of,
    require,
    require_feasible,
    shares_of,
)

# -- worked out by hand ------------------------------------------------------------------------------------------------
FAIR = certificate(
    "property", market=PAIR, allocation=[[1, "1/4"], [0, "3/4"]], property="envy_freeness", answer="HOLDS"
)
#: B counts twice, and has twice as much.
WEIGHTED = certificate(
    "property",
    market=market({"A": [1, 2], "B": [1, 5]}, [1, 1], B={"weight": 2}),
    allocation=[["1/3", "1/3"], ["2/3", "2/3"]],
    property="envy_freeness",
    answer="HOLDS",
)
#: Each can use one GPU only, so that half of the three are of no use.
ONE_EACH = market({"A": [1, 2], "B": [1, 5]}, [2, 1], A={"demand": 1}, B={"demand": 1})
#: Of the three halves that are its own partition each uses the two that are fastest.
HALVES = [["1/2", "1/2"], ["1/2", "1/2"]]
DEMANDING = certificate("property", market=ONE_EACH, allocation=HALVES, property="sharing_incentive", answer="HOLDS")
ENVY = certificate("envy", market=PAIR, allocation=[[1, 0], [0, 1]], user="A", envied="B")
DOMINANCE = certificate("dominance", market=ALIKE, allocation=[["1/2"], [0]], better=[["1/2"], ["1/2"]])
#: One of the second type is left idle.
IDLE, LEVEL = [[0, 1], [1, 0]], {"level": 1}
EQUALITY = [["equal_efficiency", 0, 1], ["equal_efficiency", 1, -1]]
EQUAL = optimality("oef-noncooperative", CANNOT_RUN, IDLE, 2, [*prices(2), *EQUALITY], variables=LEVEL)
DOMINANCE_OVER_ALL = certificate(
    "dominance",
    market=CANNOT_RUN,
    allocation=IDLE,
    better=[[0, 2], [1, 0]],
    optima=[
        extreme(EQUAL, "maximize", [[1, 1], [0, 0]], IDLE, 1, [*prices(1), *EQUALITY], variables=LEVEL),
        extreme(EQUAL, "maximize", [[0, 0], [1, 0]], IDLE, 1, prices(1), variables=LEVEL),
    ],
)
PARETO = certificate("pareto_weights", market=PAIR, allocation=[[1, 0], [0, 1]], weights=[1, 1], prices=[1, 5])
#: The right to use one GPU more is worth something.
PARETO_DEMANDS = certificate(
    "pareto_weights", market=ONE_EACH, allocation=[[1, 0], [0, 1]], weights=[1, 1], prices=[0, 4], rents=[1, 1]
)


# -- whether what they state is so -------------------------------------------------------------------------------------
def _property(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    verdict = load(PROPERTIES, data["property"])().check(market, shares_of(data, market))
    require(verdict.exact and verdict.answer.value == data["answer"], f"it {verdict.answer.value}")


def _envy(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    user, other = market.index(data["user"]), market.index(data["envied"])
    values = market.values(shares_of(data, market))
    require(values[user, user] < values[user, other], "there is no envy")


def _dominance(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    shares, better = shares_of(data, market), shares_of(data, market, "better")
    require_feasible(market, shares)
    require_feasible(market, better)
    before = [worth(market, i, row) for i, row in enumerate(shares)]
    if data.get("optima") is not None:
        name = policy_of(data["optima"][0])
        users = range(len(market.users))
        before = [extreme_of(name, market, throughput_of(market, i), Sense.MAXIMIZE) for i in users]
    gains = [worth(market, i, row) - had for i, (row, had) in enumerate(zip(better, before, strict=True))]
    require(min(gains) >= 0 < max(gains), "it does not dominate")


def _pareto_weights(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    verdict = load(PROPERTIES, "pareto_efficiency")().check(market, shares_of(data, market))
    require(verdict.exact and verdict.answer is Answer.HOLDS, "the allocation is dominated")


TRUTH: dict[str, Truth] = {
    "property": _property,
    "envy": _envy,
    "dominance": _dominance,
    "pareto_weights": _pareto_weights,
}

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
    Json,
    certificate,
    market,
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
#: Each can use one GPU only: of the three halves that are its own partition it uses the two that are fastest.
DEMANDING = certificate(
    "property",
    market=market({"A": [1, 2], "B": [1, 5]}, [2, 1], A={"demand": 1}, B={"demand": 1}),
    allocation=[["1/2", "1/2"], ["1/2", "1/2"]],
    property="sharing_incentive",
    answer="HOLDS",
)
ENVY = certificate("envy", market=PAIR, allocation=[[1, 0], [0, 1]], user="A", envied="B")
DOMINANCE = certificate("dominance", market=ALIKE, allocation=[["1/2"], [0]], better=[["1/2"], ["1/2"]])
EQUAL = certificate(
    "optimality",
    market=CANNOT_RUN,
    policy="oef-noncooperative",
    allocation=[[0, 1], [1, 0]],
    value=2,
    duals=[["capacity", 0, 2], ["equal_efficiency", 0, 1], ["equal_efficiency", 1, -1]],
    variables={"level": 1},
)
DOMINANCE_OVER_ALL = certificate(
    "dominance",
    market=CANNOT_RUN,
    allocation=[[0, 1], [1, 0]],
    better=[[0, 2], [1, 0]],
    optima=[
        certificate(
            "extreme",
            of=EQUAL,
            sense="maximize",
            weights=[[1, 1], [0, 0]],
            allocation=[[0, 1], [1, 0]],
            value=1,
            duals=[["capacity", 0, 1], ["equal_efficiency", 0, 1], ["equal_efficiency", 1, -1]],
            variables={"level": 1},
        ),
        certificate(
            "extreme",
            of=EQUAL,
            sense="maximize",
            weights=[[0, 0], [1, 0]],
            allocation=[[0, 1], [1, 0]],
            value=1,
            duals=[["capacity", 0, 1]],
            variables={"level": 1},
        ),
    ],
)
PARETO = certificate("pareto_weights", market=PAIR, allocation=[[1, 0], [0, 1]], weights=[1, 1], prices=[1, 5])
#: Each can use one GPU only, so that half of them are of no use; the right to use one more is worth something.
PARETO_DEMANDS = certificate(
    "pareto_weights",
    market=market({"A": [1, 2], "B": [1, 5]}, [2, 1], A={"demand": 1}, B={"demand": 1}),
    allocation=[[1, 0], [0, 1]],
    weights=[1, 1],
    prices=[0, 4],
    rents=[1, 1],
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
EXAMPLES: dict[str, Json] = {
    "FAIR": FAIR,
    "WEIGHTED": WEIGHTED,
    "DEMANDING": DEMANDING,
    "ENVY": ENVY,
    "DOMINANCE": DOMINANCE,
    "DOMINANCE_OVER_ALL": DOMINANCE_OVER_ALL,
    "PARETO": PARETO,
    "PARETO_DEMANDS": PARETO_DEMANDS,
    "EQUAL": EQUAL,
}

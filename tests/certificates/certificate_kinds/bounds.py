"""Certificates of properties at all speedups within bounds, by hand; `decisions` says when they are true."""

from __future__ import annotations

from typing import Any

from certificate_kinds.entitlements import NOW, OWED
from certificate_kinds.examples import Json, Truth, certificate, market


def of(name: str, allocation: Any, answer: str, most: Any, **more: Any) -> Json:
    """Return a certificate on A and B, of which A's speed on the second type is from 1 to ``most``, or any."""
    bounds = {"least": [1, 1 if most else 0], "most": [1, most]}
    told = market({"A": [1, 1], "B": [1, 3]}, [1, 1], A=bounds)
    return certificate("property", market=told, allocation=allocation, property=name, answer=answer, **more)


#: A has all of the first type and a quarter of the second: enough up to twice the speed there.
QUARTER = [[1, "1/4"], [0, "3/4"]]
UP_TO_2 = of("sharing_incentive", QUARTER, "HOLDS", 2)
UP_TO_4 = of("sharing_incentive", QUARTER, "DEPENDS", 4, speedups=[[1, "3/2"], [1, 3]])
ENVIOUS = of("envy_freeness", QUARTER, "DEPENDS", 4, speedups=[[1, 2], [1, 3]])
NEVER = of("sharing_incentive", [["1/2", "1/4"], ["1/2", "3/4"]], "FAILS", None)
#: At most twice as fast there, A gives nothing of the first type for the second of B.
EFFICIENT_IN_RANGE = of("pareto_efficiency", QUARTER, "HOLDS", 2)
#: A gives a quarter of the second type, of which it gets at most twice as much, for a half of the first.
DOMINATED_IN_RANGE: Json = {
    "schema": 1,
    "certificate": "dominance",
    "market": UP_TO_2["market"],
    "allocation": [["1/2", "1/2"], ["1/2", "1/2"]],
    "better": QUARTER,
}
#: A is owed two more of the first type, at whatever speed.
GUARANTEED: Json = certificate(
    "property",
    market=market({"A": [1, 1], "B": [1, 2], "C": [1, 3]}, [6, 1], A={"least": [0, 0], "most": [None, None]})
    | {"entitlements": OWED},
    allocation=NOW,
    property="guarantee_incentive",
    answer="FAILS",
)

TRUTH: dict[str, Truth] = {}

"""Certificates of the largest total among envy-free, Pareto-efficient allocations."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from certificate_kinds.examples import (
    Truth,
    certificate,
    decide,
    market,
    market_of,
    prices,
    require,
    shares_of,
)
from fairopt.discovery import POLICIES, load
from fairopt.properties import Answer
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency

# -- worked out by hand ------------------------------------------------------------------------------------------------
#: A GPU of each type. At cooperative OEF's optimum C gives some of T1 to B, B some of T0 to A, and A some of T2 to C.
LEFT, RIGHT = [["envy_free", 0, 2, "-1/3"]], [["envy_free", 0, 2, "-3/7"], ["envy_free", 1, 0, "-2/7"]]
NOBODY = [["envy_free", 0, 1, "-1/126"], ["envy_free", 0, 2, "-5/14"], ["envy_free", 1, 0, "-8/63"]]
BEST = certificate(
    "efficient",
    market=market({"A": [1, 1, 3], "B": [1, 2, 2], "C": [1, 3, 5]}, [1, 1, 1]),
    allocation=[[1, 0, "5/14"], [0, "6/7", 0], [0, "1/7", "9/14"]],
    weights=[1, "9/10", "3/5"],
    value="52/7",
    bound="52/7",
    gap=0,
    nodes=[
        {"without": [], "circle": [[2, 1], [1, 0], [0, 2]]},
        {"without": [[2, 1]], "duals": [*prices("4/3", 2, 4), *LEFT]},
        {"without": [[1, 0]], "duals": [*prices("8/7", "18/7", "26/7"), *RIGHT]},
        {
            "without": [[0, 2]],
            "duals": [
                *prices("26/21", "22/9", "236/63"),
                *NOBODY,
                ["envy_free", 1, 2, "-1/9"],
                ["envy_free", 2, 1, "-1/126"],
            ],
        },
    ],
)


# -- whether what they state is so -------------------------------------------------------------------------------------
def _efficient(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    shares, best = shares_of(data, market), decide(load(POLICIES, "oef-efficient")(), market)
    for asked in (EnvyFreeness(), ParetoEfficiency()):
        require(asked.check(market, shares).answer is Answer.HOLDS, f"no {asked.name}")
    reached = market.utility(shares).sum()
    require(reached == Fraction(data["value"]) and best.evidence.bound <= Fraction(data["bound"]), "more can be had")


TRUTH: dict[str, Truth] = {"efficient": _efficient}

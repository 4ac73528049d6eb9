"""Certificates of decisions on entitled markets, and by normalisers: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from certificate_samples import fractions

from certificate_kinds.examples import (
    Truth,
    certificate,
    decide,
    market,
    market_of,
    require,
    require_feasible,
    shares_of,
)
from fairopt.backends.exact import Exact
from fairopt.discovery import POLICIES, load
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of as share_variables
from fairopt.program import Array, Formulation, Number

#: Of 2 GPUs A can use a half: that is a half of what equal time is worth, though all of its own partition.
EQUAL_TIME = certificate(
    "levels",
    market=market({"A": [1], "B": [1]}, [2], A={"demand": "1/2"}),
    allocation=[["1/2"], ["3/2"]],
    normaliser="equal-time",
    rounds=[
        {"level": "1/2", "fixed": ["A"], "duals": [["demand", 0, 1], ["least_ratio", 0, -1]]},
        {"level": "3/2", "fixed": ["B"], "duals": [["capacity", 0, 1], ["least_ratio", 0, -1], ["least_ratio", 1, -1]]},
    ],
)
#: A is guaranteed 3 of 4 GPUs, and B's group, in which it is alone, 1.
GUARANTEED = certificate(
    "levels",
    market=market({"A": [1], "B": [1]}, [4])
    | {
        "entitlements": {
            "groups": ["G"],
            "in": [None, "G", None],
            "goods": [],
            "stock": [],
            "guarantee": [[3], [0], [1]],
            "cap": [[None], [2], [None]],
            "borrow_weight": [1, 1, 1],
            "tier": [0, 0, 0],
            "held": [[0], [0]],
            "fixed": [[0], [0]],
            "pending": [],
        }
    },
    allocation=[[3], [1]],
    owed={"floors": [[1]]},
    rounds=[
        {"level": "1/2", "fixed": ["B"], "duals": [["capacity", 0, "1/2"], ["least_ratio", 1, -1]]},
        {
            "level": "3/2",
            "fixed": ["A"],
            "duals": [["capacity", 0, "1/2"], ["least_ratio", 0, -1], ["least_ratio", 1, -1]],
        },
    ],
)
#: The same GPUs by Gavel's hierarchy: A has a weight of 1 and B of 3. A keeps its guarantee, B has the rest.
RATED = GUARANTEED | {
    "rates": [["1/4", "3/4"], [1, 0]],
    "rounds": [
        {"level": "2/3", "fixed": ["B"], "duals": [["capacity", 0, "2/3"], ["least_ratio", 1, "-4/3"]]},
        {
            "level": "4/3",
            "fixed": ["A"],
            "duals": [["capacity", 0, "1/2"], ["least_ratio", 0, -1], ["least_ratio", 1, -1]],
        },
    ],
}
#: Nash welfare there: at these costs of a unit of throughput all GPUs, but for A's 3, are best with B.
WITHIN = certificate(
    "nash_bounds",
    **{key: GUARANTEED[key] for key in ("market", "allocation", "owed")},
    costs=["1/3", 1],
    duals=[["capacity", 0, 1]],
    gap=0,
    lower=[3, 1],
    upper=[3, 1],
)


# -- whether what they state is so -------------------------------------------------------------------------------------
def _levels(data: Mapping[str, Any]) -> None:
    market, filling = market_of(data), load(POLICIES, "water-filling")
    shares = shares_of(data, market)
    require_feasible(market, shares)
    normaliser = type(filling.normaliser)(data.get("normaliser") or "own-partition")
    if data.get("rates") is not None:
        # the rates have the weights: ratios are to what a unit of weight is worth, in units of the mean weight
        scale = normaliser.of(market) * market.weight.mean() / market.weight
        _rise(data, market, market.utility(shares), scale)
        return
    decision = decide(filling(normaliser=normaliser), market)
    require((market.utility(shares) == decision.utilities).all(), "utilities are others")


def _rise(data: Mapping[str, Any], market: Market, reached: Array, scale: Array) -> None:
    """Require that users arrive, round by round, at what they ``reached`` (n,), and that who is fixed can have no more.

    Ratios are to ``scale`` (n,).
    """
    had = reached * 0
    for this, told in zip(data["rounds"], data["rates"], strict=True):
        rate = fractions(told)
        require(_most(market, scale, had, rate) == fractions([this["level"]])[0], "the level is another")
        had = had + rate * fractions([this["level"]])[0]
        for name in this["fixed"]:
            i = market.index(name)
            require(_most(market, scale, had, np.eye(len(had), dtype=np.int64)[i]) == 0, f"{name} can have more")
    require((reached >= had * scale).all(), "the allocation gives less")


def _most(market: Market, scale: Array, had: Array, rate: Array) -> Number:
    """Return the most t for which all ratios can be at least ``had + rate * t``."""
    p = Formulation("told rates")
    share, level = share_variables(p, market), p.variable("level")
    p.maximize(level)
    p.constrain("ratio", (market.speedup * share).sum(axis=1) / scale >= rate * level + had)
    return Exact().solve(p.program()).require_optimal().objective or 0


TRUTH: dict[str, Truth] = {"levels": _levels}

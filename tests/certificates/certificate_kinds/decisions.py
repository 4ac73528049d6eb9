"""Certificates of decisions, ranges over optima and allocations: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from certificate_samples import fractions

from certificate_kinds.examples import (
    ALIKE,
    CANNOT_RUN,
    PAIR,
    SAYS_3,
    SAYS_4,
    Json,
    Truth,
    certificate,
    decide,
    extreme,
    extreme_of,
    market,
    market_of,
    optimality,
    point_of,
    policy_of,
    prices,
    require,
    require_feasible,
    shares_of,
)
from fairopt.discovery import POLICIES, PROPERTIES, load
from fairopt.evidence import throughput_of
from fairopt.policy import decide as policy_decide
from fairopt.problem import worth
from fairopt.program import INFINITY, Sense
from fairopt.properties import AllocationProperty, Answer

# -- worked out by hand ------------------------------------------------------------------------------------------------
#: What leaves nobody envious, and is in equilibrium.
SHARES = [[1, "1/4"], [0, "3/4"]]
EFFICIENT = optimality("max-efficiency", PAIR, [[1, 0], [0, 1]], 6, prices(1, 5))
COOPERATIVE = optimality("oef-cooperative", PAIR, SHARES, "21/4", [*prices("7/4", "7/2"), ["envy_free", 0, 1, "-3/4"]])
COOPERATIVE_4 = optimality(
    "oef-cooperative", SAYS_4, [[1, "3/8"], [0, "5/8"]], "45/8", [*prices("9/8", "9/2"), ["envy_free", 0, 1, "-1/8"]]
)
NONCOOPERATIVE = optimality(
    "oef-noncooperative",
    PAIR,
    [[1, "4/7"], [0, "3/7"]],
    "30/7",
    [*prices("10/7", "20/7"), ["equal_efficiency", 0, "-3/7"], ["equal_efficiency", 1, "3/7"]],
    variables={"level": "15/7"},
)
LEVELLED = [[1, "1/3"], [0, "2/3"]]
LEAST = [*prices("10/27", "20/27"), ["least_ratio", 0, "-5/9"], ["least_ratio", 1, "-4/9"]]
MAX_MIN = optimality("max-min", PAIR, LEVELLED, "10/9", LEAST, variables={"least_ratio": "10/9"})
LEVELS = certificate(
    "levels", market=PAIR, allocation=LEVELLED, rounds=[{"level": "10/9", "fixed": ["A", "B"], "duals": LEAST}]
)
#: A runs on the first type only, B and C on the second only: A reaches 3 times its own partition, the others 3/2.
TWO_LEVELS = certificate(
    "levels",
    market=market({"A": [1, 0], "B": [0, 1], "C": [0, 1]}, [1, 8]),
    allocation=[[1, 0], [0, 4], [0, 4]],
    rounds=[
        {
            "level": "3/2",
            "fixed": ["B", "C"],
            "duals": [["capacity", 1, "3/16"], ["least_ratio", 1, "-1/2"], ["least_ratio", 2, "-1/2"]],
        },
        {"level": 3, "fixed": ["A"], "duals": [["capacity", 0, 3], ["least_ratio", 0, -1]]},
    ],
)
SHARED = {"allocation": SHARES, "prices": ["2/3", "4/3"]}
EQUILIBRIUM = certificate("equilibrium", market=PAIR, **SHARED)
#: One GPU is all that A can use, the fast one; for a slow one it would pay a half less.
ONE_OF_TWO = market({"A": [1, 2]}, [1, 1], A={"demand": 1})
RENTED = certificate("equilibrium", market=ONE_OF_TWO, allocation=[[0, 1]], prices=[0, "1/2"], demand_duals=["1/2"])
#: A price too high by a hundredth: with t = u / 2, t - 1 - log t is at most 1/100.
BETWEEN = certificate(
    "nash_bounds",
    market=ONE_OF_TWO,
    allocation=[[0, 1]],
    prices=["1/100", "1/2"],
    demand_duals=["1/2"],
    gap="1/100",
    lower=["17/10"],
    upper=["12/5"],
)
PARTIAL = certificate(
    "partial",
    market=PAIR,
    allocation=[["5/8", "5/32"], [0, "3/8"]],
    kept=["5/8", "1/2"],
    together=SHARED,
    apart=[{"allocation": [[1, 1]], "prices": alone} for alone in (["1/6", "5/6"], ["1/3", "2/3"])],
)
EQUAL_SPLIT = certificate("trace", market=PAIR, allocation=[["1/2", "1/2"], ["1/2", "1/2"]])
#: Of 5 GPUs B asks for 1 only, and A has the other 4: less than its demand.
DEMANDED_SPLIT = certificate(
    "trace",
    market=market({"A": [4, 1], "B": [4, 3]}, [2, 3], A={"demand": 6}, B={"demand": 1}),
    allocation=[["8/5", "12/5"], ["2/5", "3/5"]],
)


def trade(price: Any, fast_amount: Any, slow_amount: Any) -> Json:
    """Return the trade in which B buys GPUs of the second type from A."""
    words = {"buyer": "B", "seller": "A", "fast": "T1", "slow": "T0"}
    return words | {"price": price, "fast_amount": fast_amount, "slow_amount": slow_amount}


TRADING = certificate("trace", market=PAIR, allocation=[[1, "5/14"], [0, "9/14"]], trades=[trade("7/2", "1/7", "1/2")])
TRADING_3 = certificate("trace", market=SAYS_3, allocation=[[1, "3/8"], [0, "5/8"]], trades=[trade(4, "1/8", "1/2")])
ANY_SPLIT = optimality("max-efficiency", ALIKE, [["1/2"], ["1/2"]], 1, prices(1))
MOST = extreme(ANY_SPLIT, "maximize", [[1], [0]], [[1], [0]], 1, prices(1))
LEAST_OF_A = extreme(ANY_SPLIT, "minimize", [[1], [0]], [[0], [1]], 0, [])


# -- whether what they state is so -------------------------------------------------------------------------------------
#: What partial allocation rounds its parts to.
GRAIN = Fraction(1, 10**12)


def _optimality(data: Mapping[str, Any]) -> None:
    market, policy = market_of(data), load(POLICIES, data["policy"])()
    decision = decide(policy, market)
    assert decision.program is not None
    reached = decision.program.value(point_of(data, decision.program, market))
    require(reached == decision.objective == Fraction(data["value"]), "the optimum is another")


def _partial(data: Mapping[str, Any]) -> None:
    """Compare utilities, which all optima share, with the policy's own; what it rounds, and says so, is allowed."""
    market = market_of(data)
    shares, found = shares_of(data, market), policy_decide(load(POLICIES, "partial-allocation")(), market, exact=True)
    require(found.arithmetic.exact, "floats decide nothing")
    require_feasible(market, shares)
    apart = abs(market.utility(shares) - found.utilities)
    slack = GRAIN + Fraction(found.error)
    require((apart <= slack * market.speedup.max() * market.capacity.sum()).all(), "utilities are others")


def _nash(data: Mapping[str, Any]) -> None:
    """Decide of an equilibrium, and of bounds on utilities, by the policy's own intervals."""
    market = market_of(data)
    shares, found = shares_of(data, market), policy_decide(load(POLICIES, "nash-welfare")(), market, exact=True)
    require(found.arithmetic.exact, "floats decide nothing")
    require_feasible(market, shares)
    require((shares.sum(axis=1) <= market.limit).all(), "somebody gets more than it demands")
    own, best, off = market.utility(shares), found.utilities, 1 + Fraction(found.error)
    lower, upper = (fractions(data.get(side, own.tolist())) for side in ("lower", "upper"))
    require((lower <= best * off).all() and (best <= upper * off).all(), "utilities are others")
    most = float(market.weight @ np.log((best / own).astype(float)))
    require(most <= float(Fraction(data.get("gap", 0))) + 1e-9, "the gap is larger")


def _trace(data: Mapping[str, Any]) -> None:
    name = "equal-split" if data.get("trades") is None else "second-price-trading"
    market = market_of(data)
    require((shares_of(data, market) == decide(load(POLICIES, name)(), market).shares).all(), "the shares are others")


def _extreme(data: Mapping[str, Any]) -> None:
    TRUTH[data["of"]["certificate"]](data["of"])
    market, weights = market_of(data["of"]), fractions(data["weights"])
    found = extreme_of(policy_of(data["of"]), market, weights, Sense(data["sense"]))
    reached = (weights * shares_of(data, market)).sum()
    require(reached == found == Fraction(data["value"]), f"the extreme is {found}")


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
    "pareto_weights", market=ONE_EACH, allocation=[[1, 0], [0, 1]], weights=[1, 1], prices=[0, 4], demand_duals=[1, 1]
)


# -- whether what they state is so -------------------------------------------------------------------------------------
def _property(data: Mapping[str, Any]) -> None:
    market = market_of(data)
    judge: AllocationProperty = load(PROPERTIES, data["property"])()
    # not `check`, whose limits are for what somebody gives; what a verifier accepts may be beyond these
    verdict = judge.decided(market, shares_of(data, market), Fraction(0))
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
    if not market.known.all():  # at the worst for each user: least of what it gets, most of what it gives
        least, most = market.ends
        least = np.where((least == 0) & (most > 0), np.array(Fraction(1, 10**30)), least)
        require(bool(((most < INFINITY) | (better >= shares)).all()), "somebody gives what may be worth any amount")
        market = replace(market, speedup=np.where(better >= shares, least, most), least=None, most=None)
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
    "optimality": _optimality,
    "equilibrium": _nash,
    "nash_bounds": _nash,
    "partial": _partial,
    "trace": _trace,
    "extreme": _extreme,
    "property": _property,
    "envy": _envy,
    "dominance": _dominance,
    "pareto_weights": _pareto_weights,
}

"""Certificates about programs and misreports: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from certificate_samples import fractions, sharing

from certificate_kinds import decisions, entitled_decisions, faces
from certificate_kinds.decisions import COOPERATIVE, COOPERATIVE_4, TRADING, TRADING_3
from certificate_kinds.examples import (
    PAIR,
    Json,
    Truth,
    certificate,
    extreme,
    extreme_of,
    market,
    market_of,
    point_of,
    policy_of,
    prices,
    require,
    require_feasible,
    shares_of,
)
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.discovery import POLICIES, load
from fairopt.evidence import throughput_of
from fairopt.policy import Formulated
from fairopt.problem import worth
from fairopt.program import INFINITY, Formulation, Number, Sense, between, objects


# -- worked out by hand ------------------------------------------------------------------------------------------------
def program(sense: str, costs: list[int], rows: list[Json], *, offset: int = 0, **bounds: Any) -> Json:
    """Return a bare program of variables that are not negative; ``bounds`` says what else they all are."""
    variables = [{"cost": cost, "lower": 0, "upper": None, "integer": False} | bounds for cost in costs]
    return {"sense": sense, "offset": offset, "variables": variables, "rows": rows}


def row(*terms: list[int], lower: int | None = None, upper: int | None = None) -> Json:
    """Return a row of a bare program; a term is a column and its rate."""
    return {"terms": list(terms), "lower": lower, "upper": upper}


def bound(value: Any, limit: Any, gap: Any, duals: list[Any], **about: Any) -> Json:
    """Return a certificate of a point's distance from a bound."""
    return certificate("bound", value=value, bound=limit, gap=gap, duals=duals, **about)


NO_POINT = certificate(
    "infeasibility", program=program("maximize", [0], [row([0, 1], lower=2)], upper=1), duals=[["row", 0, -1]]
)
OUT_OF_REACH = certificate(
    "infeasibility", market=PAIR, at_least=[["A", 4]], duals=[["at_least", 0, -1], *prices(1, 2)]
)
HALVED = program("maximize", [1], [row([0, 2], upper=3)], integer=True)
WHOLE = bound(1, "3/2", "1/2", [["row", 0, "1/2"]], program=HALVED, point=[1])
AT_LEAST_2 = program("minimize", [3], [row([0, 1], lower=2)], offset=1)
CHEAPEST = bound(7, 7, 0, [["row", 0, -3]], program=AT_LEAST_2, point=[2])
HALFWAY = bound(1, 6, 5, prices(1, 5), market=PAIR, policy="max-efficiency", allocation=[[1, 0], [0, 0]])


def of_others(told: Json, cost: list[int], point: list[int]) -> Json:
    """Return the optimum of a program by somebody else: the sum of costs times shares, one GPU of either type."""
    value = sum(c * x for c, x in zip(cost, point, strict=True))
    duals = [["row", j, max(cost[j], cost[j + 2])] for j in (0, 1)]
    written = program("maximize", cost, [row([j, 1], [j + 2, 1], upper=1) for j in (0, 1)])
    about = {"market": told, "policy": "by-somebody-else", "program": written, "point": point}
    return bound(value, value, 0, duals, shares=[[0, 1], [2, 3]], **about)


OF_OTHERS = of_others(PAIR, [1, 2, 1, 5], [1, 0, 0, 1])


# -- whether what they state is so -------------------------------------------------------------------------------------
def _infeasibility(data: Mapping[str, Any]) -> None:
    if "program" in data:
        require(_best(data["program"]) is None, "there is a point")
        return
    market = market_of(data)
    least: dict[int, Fraction] = {}
    for name, amount in data["at_least"]:
        user = market.index(name)
        least[user] = max(Fraction(amount), least.get(user, Fraction(amount)))
    require(Exact().solve(sharing(market, least)).status is Status.INFEASIBLE, "there is an allocation")


def _bound(data: Mapping[str, Any]) -> None:
    told = [Fraction(data[key]) for key in ("value", "bound", "gap")]
    if data.get("shares") is not None:
        require_feasible(market_of(data), shares_of(data, market_of(data)))
        require(told[2] == 0, "nothing is decided")
    if "program" in data:
        best: Number | None
        reached, best, sense = _reached(data), _best(data["program"]), Sense(data["program"]["sense"])
    else:
        market, policy = market_of(data), load(POLICIES, data["policy"])()
        assert isinstance(policy, Formulated)
        program = policy.formulate(market, None)
        reached, sense = Fraction(program.value(point_of(data, program, market))), program.sense
        best = Fraction(program.value(Exact().solve(program).require_optimal().point))
    require(told[0] == reached, "the point has another objective")
    up = 1 if sense is Sense.MAXIMIZE else -1
    require(best is not None and up * best <= up * told[1], f"the optimum {best} is beyond the bound")
    require(told[2] == up * (told[1] - told[0]), "the gap is another")


def _reached(data: Mapping[str, Any]) -> Fraction:
    """Return the objective at the point of a bare program; `Untrue` where it breaks a row, a bound or integrality."""
    program, x = data["program"], [Fraction(value) for value in data["point"]]
    require(len(x) == len(program["variables"]), "the point has another length")
    for value, variable in zip(x, program["variables"], strict=True):
        require(_within(value, variable), "a variable is out of its bounds")
        require(not variable["integer"] or value.denominator == 1, "a variable is no integer")
    for row in program["rows"]:
        require(_within(sum(Fraction(rate) * x[j] for j, rate in row["terms"]), row), "a row is broken")
    costs = [Fraction(variable["cost"]) for variable in program["variables"]]
    return Fraction(program["offset"]) + sum((c * value for c, value in zip(costs, x, strict=True)), Fraction(0))


def _sides(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    low, high = entry["lower"], entry["upper"]
    return -INFINITY if low is None else Fraction(low), INFINITY if high is None else Fraction(high)


def _within(value: Any, entry: Mapping[str, Any]) -> bool:
    low, high = _sides(entry)
    return bool(low <= value <= high)


def _best(data: Mapping[str, Any]) -> Number | None:
    """Return the exact optimum of a bare program without its integrality (infinite or not), None without a point."""
    bounds, sides = ([_sides(entry) for entry in data[key]] for key in ("variables", "rows"))
    if any(low > high for low, high in (*bounds, *sides)):
        return None
    matrix = np.full((len(sides), len(bounds)), Fraction(0), dtype=object)
    for r, row in enumerate(data["rows"]):
        for j, rate in row["terms"]:
            matrix[r, j] = Fraction(rate)
    p = Formulation("as written")
    x = p.variable(
        "x", (len(bounds),), lower=objects(low for low, _ in bounds), upper=objects(high for _, high in bounds)
    )
    p.maximize((objects(Fraction(entry["cost"]) for entry in data["variables"]) * x).sum() + Fraction(data["offset"]))
    p.constrain("row", between(objects(low for low, _ in sides), matrix @ x, objects(high for _, high in sides)))
    program = replace(p.program(), sense=Sense(data["sense"]))
    solution = Exact().solve(program)
    if solution.status is Status.UNBOUNDED:
        return INFINITY if program.sense is Sense.MAXIMIZE else -INFINITY
    return None if solution.status is Status.INFEASIBLE else Fraction(program.value(solution.require_optimal().point))


# -- worked out by hand ------------------------------------------------------------------------------------------------
def misreport(policy: str, report: list[int], gain: Any, truth: Json, lie: Json) -> Json:
    """Return a certificate of what A gains from a policy by a report."""
    proofs = {"truth": truth, "lie": lie}
    return certificate("misreport", market=PAIR, policy=policy, user="A", report=report, gain=gain, **proofs)


LIE = misreport("second-price-trading", [1, 3], "1/28", TRADING, TRADING_3)
#: What A has of GPUs at its true speedups.
OWN = [[1, 2], [0, 0]]
BEST = [*prices("5/3", "10/3"), ["optimum", "-2/3"]]
WORST = [*prices("3/2", 8), ["envy_free", 0, 1, "-1/2"], ["optimum", -2]]
LIE_WHATEVER_OPTIMUM = misreport(
    "oef-cooperative",
    [1, 4],
    "1/4",
    extreme(COOPERATIVE, "maximize", OWN, COOPERATIVE["allocation"], "3/2", BEST),
    extreme(COOPERATIVE_4, "minimize", OWN, COOPERATIVE_4["allocation"], "7/4", WORST),
)
SAYS_6 = market({"A": [1, 6], "B": [1, 5]}, [1, 1])
#: A says that it runs at 6 on the second type, and then gets all of it.
LIE_TO_OTHERS = misreport("by-somebody-else", [1, 6], 2, OF_OTHERS, of_others(SAYS_6, [1, 6, 1, 5], [1, 1, 0, 0]))


# -- whether what they state is so -------------------------------------------------------------------------------------
def _misreport(data: Mapping[str, Any]) -> None:
    market, name = market_of(data), data["policy"]
    user = market.index(data["user"])
    report = fractions(data["report"])
    lie = market.misreport(user, report)
    require((report != market.speedup[user]).any(), "the report is the truth")
    known = decisions.TRUTH | entitled_decisions.TRUTH | faces.TRUTH | TRUTH
    made = []
    for part, told in (("truth", market), ("lie", lie)):
        known[data[part]["certificate"]](data[part])
        decision = data[part]["of"] if data[part]["certificate"] == "extreme" else data[part]
        require(policy_of(data[part]) == name and market_of(decision) == told, "it decides something else")
        made.append(worth(market, user, shares_of(decision, market)[user]))
    if data["truth"]["certificate"] == "extreme":
        own = throughput_of(market, user)
        made = [extreme_of(name, market, own, Sense.MAXIMIZE), extreme_of(name, lie, own, Sense.MINIMIZE)]
    require(made[1] - made[0] == Fraction(data["gain"]) > 0, "the gain is another")


TRUTH: dict[str, Truth] = {"infeasibility": _infeasibility, "bound": _bound, "misreport": _misreport}

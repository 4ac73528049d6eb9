"""Whether what a certificate states is true, decided by fairopt itself: no use is made of its proof, nor of a verifier.

Decisions are made again by the installed policies with the exact back end, properties are checked, programs are solved.
So a verifier can be held to it: whatever it accepts must be true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.certificates.decisions import on_shares
from fairopt.discovery import POLICIES, PROPERTIES, load
from fairopt.evidence import throughput_of
from fairopt.policy import Allocation, Formulated, Policy
from fairopt.problem import Market, market_from_dict, worth
from fairopt.program import INFINITY, Array, Formulation, Number, Program, Sense, between
from fairopt.properties import Answer
from fairopt.properties.misreports.exact_reports import exact_or_none
from fairopt.testing.certificate_samples import fractions, sharing

#: What partial allocation rounds its parts to.
GRAIN = Fraction(1, 10**12)


class Untrue(Exception):
    """What the certificate states is not so, for the reason given."""


def require(holds: object, otherwise: str) -> None:
    """Raise `Untrue` unless ``holds``."""
    if not holds:
        raise Untrue(otherwise)


def require_true(data: Mapping[str, Any]) -> None:
    """Raise `Untrue` where a certificate (JSON) that a verifier accepts states what is not so."""
    STATEMENTS[data["certificate"]](data)


def market_of(data: Mapping[str, Any]) -> Market:
    """Return the market of a certificate; a null says that a weight or demand is left out."""
    users = [{key: value for key, value in user.items() if value is not None} for user in data["market"]["user"]]
    return market_from_dict({**data["market"], "user": users})


def shares_of(data: Mapping[str, Any], market: Market, key: str = "allocation") -> Array:
    """Return the allocation in a certificate."""
    shares = fractions(data[key])
    require(shares.shape == market.shape, "the allocation has another shape")
    return shares


def decide(policy: Policy, market: Market) -> Allocation:
    """Return the exact decision; `Untrue` where there is none, since then nobody can have proved one."""
    decision = exact_or_none(policy, market)
    if decision is None:
        raise Untrue(f"{policy.name} has no exact decision here")
    return decision


def require_feasible(market: Market, shares: Array) -> None:
    """Raise `Untrue` where a share is negative or a type given out more often than it is there."""
    require((shares >= 0).all() and (shares.sum(axis=0) <= market.capacity).all(), "the allocation is not feasible")


def _point(data: Mapping[str, Any], program: Program, market: Market) -> Array:
    others = {key: Fraction(value) for key, value in (data.get("variables") or {}).items()}
    parts = [
        shares_of(data, market).ravel() if block.name == "share" else fractions([others[block.name]])
        for block in program.variable_blocks
    ]
    x = np.concatenate(parts)
    require(not program.violations(x), "the point breaks the program of the policy")
    return x


def _optimality(data: Mapping[str, Any]) -> None:
    market, policy = market_of(data), load(POLICIES, data["policy"])()
    decision = decide(policy, market)
    assert decision.program is not None
    reached = decision.program.value(_point(data, decision.program, market))
    require(reached == decision.objective == Fraction(data["value"]), "the optimum is another")


def _same_utilities(name: str, slack: Fraction = Fraction(0)) -> Callable[[Mapping[str, Any]], None]:
    """Return the check of a policy whose optima all have the same utilities."""

    def check(data: Mapping[str, Any]) -> None:
        market = market_of(data)
        shares, decision = shares_of(data, market), decide(load(POLICIES, name)(), market)
        require_feasible(market, shares)
        apart = abs(market.utility(shares) - decision.utilities)
        require((apart <= slack * market.speedup.max() * market.capacity.sum()).all(), "utilities are others")

    return check


def _trace(data: Mapping[str, Any]) -> None:
    name = "equal-split" if data.get("trades") is None else "second-price-trading"
    market = market_of(data)
    require((shares_of(data, market) == decide(load(POLICIES, name)(), market).shares).all(), "the shares are others")


def policy_of(decision: Mapping[str, Any]) -> str:
    """Return the name of the policy whose decision a certificate is about."""
    if decision["certificate"] == "extreme":
        return policy_of(decision["of"])
    if decision["certificate"] == "trace":
        return "equal-split" if decision.get("trades") is None else "second-price-trading"
    fixed = {"levels": "water-filling", "equilibrium": "nash-welfare", "partial": "partial-allocation"}
    return str(fixed.get(decision["certificate"]) or decision["policy"])


def extreme_of(name: str, market: Market, weights: Array, sense: Sense) -> Fraction:
    """Return how far a sum of shares goes over all optima: those complementary to an optimal dual solution."""
    policy: Policy = load(POLICIES, name)()
    face = policy.optimal_face(decide(policy, market))
    assert face is not None
    program = on_shares(face, weights, sense)
    return Fraction(program.value(Exact().solve(program).require_optimal().point))


def _extreme(data: Mapping[str, Any]) -> None:
    require_true(data["of"])
    market, weights = market_of(data["of"]), fractions(data["weights"])
    found = extreme_of(policy_of(data["of"]), market, weights, Sense(data["sense"]))
    reached = (weights * shares_of(data, market)).sum()
    require(reached == found == Fraction(data["value"]), f"the extreme is {found}")


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


def _misreport(data: Mapping[str, Any]) -> None:
    market, name = market_of(data), data["policy"]
    user = market.index(data["user"])
    report = fractions(data["report"])
    lie = market.misreport(user, report)
    require((report != market.speedup[user]).any(), "the report is the truth")
    made = []
    for part, told in (("truth", market), ("lie", lie)):
        require_true(data[part])
        decision = data[part]["of"] if data[part]["certificate"] == "extreme" else data[part]
        require(policy_of(data[part]) == name and market_of(decision) == told, "it decides something else")
        made.append(worth(market, user, shares_of(decision, market)[user]))
    if data["truth"]["certificate"] == "extreme":
        own = throughput_of(market, user)
        made = [extreme_of(name, market, own, Sense.MAXIMIZE), extreme_of(name, lie, own, Sense.MINIMIZE)]
    require(made[1] - made[0] == Fraction(data["gain"]) > 0, "the gain is another")


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
    if "program" in data:
        best: Number | None
        reached, best, sense = _reached(data), _best(data["program"]), Sense(data["program"]["sense"])
    else:
        market, policy = market_of(data), load(POLICIES, data["policy"])()
        assert isinstance(policy, Formulated)
        program = policy.formulate(market, None)
        reached, sense = Fraction(program.value(_point(data, program, market))), program.sense
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
        "x", (len(bounds),), lower=_array(low for low, _ in bounds), upper=_array(high for _, high in bounds)
    )
    p.maximize((_array(Fraction(entry["cost"]) for entry in data["variables"]) * x).sum() + Fraction(data["offset"]))
    p.constrain("row", between(_array(low for low, _ in sides), matrix @ x, _array(high for _, high in sides)))
    program = replace(p.program(), sense=Sense(data["sense"]))
    solution = Exact().solve(program)
    if solution.status is Status.UNBOUNDED:
        return INFINITY if program.sense is Sense.MAXIMIZE else -INFINITY
    return None if solution.status is Status.INFEASIBLE else Fraction(program.value(solution.require_optimal().point))


def _array(values: Any) -> Array:
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


STATEMENTS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "optimality": _optimality,
    "levels": _same_utilities("water-filling"),
    "equilibrium": _same_utilities("nash-welfare"),
    "partial": _same_utilities("partial-allocation", GRAIN),
    "trace": _trace,
    "extreme": _extreme,
    "property": _property,
    "envy": _envy,
    "dominance": _dominance,
    "pareto_weights": _pareto_weights,
    "misreport": _misreport,
    "infeasibility": _infeasibility,
    "bound": _bound,
}

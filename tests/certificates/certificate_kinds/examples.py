"""What all topics share: markets of certificates worked out by hand, and whether what a certificate states is true.

Most examples speak of the market of OEF Eq. (6): A runs at 1 and 2 on two types, B at 1 and 5, and of each there is one
GPU. Truth is decided by fairopt: no use is made of a certificate's proof, nor of a verifier. Decisions are made again
by the installed policies with the exact backend, properties are checked, programs are solved. So a verifier can be
tested against it: every certificate that it accepts must be true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from certificate_samples import fractions

from fairopt.backends.exact import Exact
from fairopt.discovery import POLICIES, load
from fairopt.policy import Allocation, Policy
from fairopt.problem import Entitlements, Gangs, Good, Market, market_from_dict
from fairopt.program import INFINITY, Array, Program, Sense, on_shares
from fairopt.properties.misreports.exact_reports import exact_or_none

Json = dict[str, Any]


def market(speedups: dict[str, list[Any]], capacity: list[Any], **more: dict[str, Any]) -> Json:
    """Return a market as certificates hold it; ``more`` gives weights and demands by the name of a user."""
    users = [{"name": name, "speedup": row} | more.get(name, {}) for name, row in speedups.items()]
    return {"schema": 1, "types": [f"T{j}" for j in range(len(capacity))], "capacity": capacity, "user": users}


def certificate(kind: str, **body: Any) -> Json:
    """Return a certificate of a kind."""
    return {"schema": 1, "certificate": kind} | body


def prices(*of: Any) -> list[list[Any]]:
    """Return the duals of the capacities of as many types."""
    return [["capacity", j, price] for j, price in enumerate(of)]


def optimality(policy: str, market: Json, allocation: Any, value: Any, duals: list[Any], **more: Any) -> Json:
    """Return a certificate of a policy's optimum; ``more`` may tell the other ``variables`` of its program."""
    body = {"allocation": allocation, "value": value, "duals": duals}
    return certificate("optimality", market=market, policy=policy, **body, **more)


def extreme(of: Json, sense: str, weights: Any, allocation: Any, value: Any, duals: list[Any], **more: Any) -> Json:
    """Return a certificate of the extreme of a sum of shares over the optima ``of`` a decision."""
    body = {"allocation": allocation, "value": value, "duals": duals}
    return certificate("extreme", of=of, sense=sense, weights=weights, **body, **more)


PAIR = market({"A": [1, 2], "B": [1, 5]}, [1, 1])
#: A says that it runs at 4 (or 3) on the second type.
SAYS_4 = market({"A": [1, 4], "B": [1, 5]}, [1, 1])
SAYS_3 = market({"A": [1, 3], "B": [1, 5]}, [1, 1])
#: Two users that are alike, and one GPU: every division of it is most efficient.
ALIKE = market({"A": [1], "B": [1]}, [1])
#: B cannot run on the second type, so that equality with B leaves one of its GPUs idle.
CANNOT_RUN = market({"A": [1, 1], "B": [1, 0]}, [1, 2])


Truth: TypeAlias = Callable[[Mapping[str, Any]], None]


class Untrue(Exception):
    """The statement of the certificate is false, for the given reason."""


def require(holds: object, otherwise: str) -> None:
    """Raise `Untrue` unless ``holds``."""
    if not holds:
        raise Untrue(otherwise)


def market_of(data: Mapping[str, Any]) -> Market:
    """Return the market of a certificate; a null says that a weight or demand is left out."""
    users = [
        {key: value for key, value in user.items() if value is not None and key not in ("least", "most")}
        for user in data["market"]["user"]
    ]
    told = {key: value for key, value in data["market"].items() if key != "entitlements"}
    market, owed = market_from_dict({**told, "user": users}), data["market"].get("entitlements")
    if any("least" in user for user in data["market"]["user"]):
        rows = [[user.get(key, user["speedup"]) for user in data["market"]["user"]] for key in ("least", "most")]
        least, most = ([[INFINITY if x is None else Fraction(x) for x in row] for row in each] for each in rows)
        market = replace(market, least=np.array(least, dtype=object), most=np.array(most, dtype=object))
    return market if owed is None else replace(market, entitlements=_entitlements(market, owed))


def _entitlements(market: Market, told: Mapping[str, Any]) -> Entitlements:
    nodes, goods = (*market.users, *told["groups"]), [Good(**each) for each in told["goods"]]
    known, pending = (*market.types, *map(str, goods)), told["pending"]

    def rows(key: str) -> dict[str, Any]:
        return {node: dict(zip(known, row, strict=True)) for node, row in zip(nodes, told[key], strict=False)}

    resources = {name for gang in pending for name in gang.get("other") or {}}
    gangs = Gangs.of(
        [gang["user"] for gang in pending],
        [gang["gpus"] for gang in pending],
        users=market.users,
        types=market.types,
        allowed=[gang["types"] for gang in pending],
        other={name: [(gang.get("other") or {}).get(name, 0) for gang in pending] for name in resources},
    )
    return Entitlements.of(
        market.users,
        market.types,
        group={node: over for node, over in zip(nodes, told["in"], strict=True) if over is not None},
        groups=told["groups"],
        goods=dict(zip(goods, told["stock"], strict=True)),
        gangs=gangs,
        **{key: rows(key) for key in ("guarantee", "cap", "held", "fixed")},
        **{key: dict(zip(nodes, told[key], strict=True)) for key in ("borrow_weight", "tier")},
    )


def shares_of(data: Mapping[str, Any], market: Market, key: str = "allocation") -> Array:
    """Return the allocation in a certificate; where a program is embedded, some of its variables are the shares."""
    embedded = data.get("shares") if key == "allocation" else None
    shares = fractions(data[key] if embedded is None else [[data["point"][j] for j in row] for row in embedded])
    require(shares.shape == market.shape, "the allocation has another shape")
    return shares


def decide(policy: Policy, market: Market) -> Allocation:
    """Return the exact decision; `Untrue` where there is none, since then none can be proved."""
    decision = exact_or_none(policy, market)
    if decision is None:
        raise Untrue(f"{policy.name} has no exact decision here")
    return decision


def require_feasible(market: Market, shares: Array) -> None:
    """Raise `Untrue` where a share is negative or a type given out more often than it is there."""
    require((shares >= 0).all() and (shares.sum(axis=0) <= market.capacity).all(), "the allocation is not feasible")


def point_of(data: Mapping[str, Any], program: Program, market: Market) -> Array:
    """Return the point of a policy's program that a certificate tells; `Untrue` where it breaks the program."""
    others = {key: Fraction(value) for key, value in (data.get("variables") or {}).items()}
    parts = [
        shares_of(data, market).ravel() if block.name == "share" else fractions([others[block.name]])
        for block in program.variable_blocks
    ]
    x = np.concatenate(parts)
    require(not program.violations(x), "the point breaks the program of the policy")
    return x


def policy_of(decision: Mapping[str, Any]) -> str:
    """Return the name of the policy whose decision a certificate is about."""
    if decision["certificate"] == "extreme":
        return policy_of(decision["of"])
    if decision["certificate"] == "trace":
        return "equal-split" if decision.get("trades") is None else "second-price-trading"
    fixed = {"levels": "water-filling", "equilibrium": "nash-welfare", "partial": "partial-allocation"}
    fixed["efficient"] = "oef-efficient"
    return str(fixed.get(decision["certificate"]) or decision["policy"])


def extreme_of(name: str, market: Market, weights: Array, sense: Sense) -> Fraction:
    """Return the extreme of a sum of shares over all optima: those complementary to an optimal dual solution."""
    policy: Policy = load(POLICIES, name)()
    face = policy.optimal_face(decide(policy, market))
    assert face is not None
    program = on_shares(face, weights, sense)
    return Fraction(program.value(Exact().solve(program).require_optimal().point))

"""Whether what a certificate states is true, decided by fairopt: no use is made of its proof, nor of a verifier.

Decisions are made again by the installed policies with the exact back end, properties are checked, programs are solved.
So a verifier can be tested against it: every certificate that it accepts must be true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.certificates.decisions import on_shares
from fairopt.discovery import POLICIES, load
from fairopt.policy import Allocation, Policy
from fairopt.problem import Market, market_from_dict
from fairopt.program import Array, Program, Sense
from fairopt.properties.misreports.exact_reports import exact_or_none
from fairopt.testing.certificate_samples import fractions

Truth: TypeAlias = Callable[[Mapping[str, Any]], None]


class Untrue(Exception):
    """The statement of the certificate is false, for the given reason."""


def require(holds: object, otherwise: str) -> None:
    """Raise `Untrue` unless ``holds``."""
    if not holds:
        raise Untrue(otherwise)


def market_of(data: Mapping[str, Any]) -> Market:
    """Return the market of a certificate; a null says that a weight or demand is left out."""
    users = [{key: value for key, value in user.items() if value is not None} for user in data["market"]["user"]]
    return market_from_dict({**data["market"], "user": users})


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
    return str(fixed.get(decision["certificate"]) or decision["policy"])


def extreme_of(name: str, market: Market, weights: Array, sense: Sense) -> Fraction:
    """Return the extreme of a sum of shares over all optima: those complementary to an optimal dual solution."""
    policy: Policy = load(POLICIES, name)()
    face = policy.optimal_face(decide(policy, market))
    assert face is not None
    program = on_shares(face, weights, sense)
    return Fraction(program.value(Exact().solve(program).require_optimal().point))

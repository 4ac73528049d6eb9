"""Certificates of a policy's decision on a market, and of the range of its choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate, OfAllocation
from fairopt.certificates.parts import (
    Duals,
    Gap,
    KnownPolicy,
    Objective,
    Part,
    Prices,
    Shares,
    UpTo,
    Variables,
    rows_of,
)
from fairopt.certificates.rows import other_variables, row_duals
from fairopt.problem import Market
from fairopt.program import Array, Program, Sense

TRADES = {"type": "array", "items": {"$ref": "#/$defs/trade"}}


@dataclass(frozen=True, eq=False)
class Optimality(Certificate):
    """``allocation`` (n, k) is optimal for the program that ``policy`` makes of the market; ``value`` is its objective.

    ``duals`` are entries [block, index..., value]; ``variables`` are the values of the other variables.
    """

    kind: ClassVar[str] = "optimality"
    decision: ClassVar[bool] = True
    market: Market
    policy: KnownPolicy
    allocation: Shares
    value: Objective
    duals: Duals
    variables: Variables | None = None

    @classmethod
    def of(cls, market: Market, policy: str, program: Program, solution: Solution) -> Optimality:
        """Return the certificate of an exact optimum of the policy's program."""
        return cls(market=market, policy=policy, **_optimum(program, solution))


@dataclass(frozen=True, eq=False)
class MarketBound(Certificate):
    """``allocation`` is feasible for the policy's program, with objective ``value``; no other exceeds ``bound``."""

    kind: ClassVar[str] = "bound"
    market: Market
    policy: KnownPolicy
    allocation: Shares
    value: Objective
    bound: UpTo
    gap: Gap
    duals: Duals
    variables: Variables | None = None


@dataclass(frozen=True, eq=False)
class WaterFillingProof(OfAllocation):
    """``allocation`` is lexicographically max-min; ``rounds`` of water filling are {"level", "fixed", "duals"}."""

    kind: ClassVar[str] = "levels"
    decision: ClassVar[bool] = True
    rounds: Annotated[Sequence[Mapping[str, Any]], Part(rows_of("level"), "The rounds, in order.")]


@dataclass(frozen=True, eq=False)
class NashEquilibrium(OfAllocation):
    """``allocation`` maximises Nash welfare: at ``prices`` (k,), with weights as budgets, all buy their best bundle."""

    kind: ClassVar[str] = "equilibrium"
    decision: ClassVar[bool] = True
    prices: Prices


@dataclass(frozen=True, eq=False)
class PartialAllocationProof(OfAllocation):
    """``allocation`` is that of partial allocation: each user keeps the part ``kept`` (n,) of its bundle.

    ``together`` is {"allocation", "prices"} of the equilibrium with all users, ``apart`` the same without each user in
    turn.
    """

    kind: ClassVar[str] = "partial"
    decision: ClassVar[bool] = True
    kept: Annotated[Array, Part("numbers", "What part of its bundle each user keeps.")]
    together: Annotated[Mapping[str, Array], Part("shared", "The bundles of all users.")]
    apart: Annotated[
        Sequence[Mapping[str, Array]], Part(rows_of("shared_or_none"), "The bundles without each user in turn.")
    ]


@dataclass(frozen=True, eq=False)
class ComputedAllocation(OfAllocation):
    """``allocation`` is the result of ``trades`` from the equal split; without trades (None) it is the equal split."""

    kind: ClassVar[str] = "trace"
    decision: ClassVar[bool] = True
    trades: Annotated[Sequence[Mapping[str, Any]], Part(TRADES, "The trades, in order.")] | None = None


@dataclass(frozen=True, eq=False)
class Extreme(Certificate):
    """Over all allocations that a policy may choose, the sum of ``weights`` (n, k) times shares is at most ``value``.

    With ``sense`` "minimize", instead of "maximize", it is at least ``value``. ``of`` certifies the decision;
    ``allocation`` attains the value.
    """

    kind: ClassVar[str] = "extreme"
    decision: ClassVar[bool] = True
    of: Annotated[Certificate, Part("decided", "The decision.")]
    sense: Annotated[str, Part("sense", "Which way the sum goes.")]
    weights: Annotated[Array, Part("table", "A weight for each share.")]
    allocation: Shares
    value: Objective
    duals: Duals
    variables: Variables | None = None

    @classmethod
    def over(cls, choices: Program, weights: Array, sense: Sense, decision: Certificate, solve: Any) -> Extreme:
        """Optimise over the program of all choices with an exact back end's ``solve``, and return the certificate."""
        program = on_shares(choices, weights, sense)
        return cls(
            of=decision, sense=sense.value, weights=weights, **_optimum(program, solve(program).require_optimal())
        )


def _optimum(program: Program, solution: Solution) -> dict[str, Any]:
    """Return an exact optimum and its proof as fields; the verifier maximises: duals of a minimisation change sign."""
    assert solution.dual is not None
    return {
        "allocation": program.variable("share", solution.point),
        "value": Fraction(program.value(solution.point)),
        "duals": row_duals(program, solution.dual if program.sense is Sense.MAXIMIZE else -solution.dual),
        "variables": other_variables(program, solution.point),
    }


def on_shares(program: Program, weights: Array, sense: Sense = Sense.MAXIMIZE) -> Program:
    """Return the program with another objective: the sum of ``weights`` (n, k) times the shares."""
    block = next(block for block in program.variable_blocks if block.name == "share")
    cost = np.zeros(len(program.cost), dtype=weights.dtype)
    cost[block.span] = weights.ravel()
    return replace(program, sense=sense, cost=cost, offset=0, logarithms=None)

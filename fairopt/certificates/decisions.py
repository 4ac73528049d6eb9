"""Certificates of what a policy decides on a market, and of how far its choices reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate
from fairopt.certificates.rows import other_variables, row_duals
from fairopt.problem import Market
from fairopt.program import Array, Program, Sense


@dataclass(frozen=True, eq=False)
class Optimality(Certificate):
    """``allocation`` (n, k) is optimal for the program that ``policy`` makes of the market; ``value`` is its objective.

    ``duals`` are entries [block, index..., value]; ``variables`` the values of variables other than shares.
    """

    kind: ClassVar[str] = "optimality"
    market: Market
    policy: str
    allocation: Array
    value: Fraction
    duals: Sequence[Sequence[Any]]
    variables: Mapping[str, Fraction] | None = None

    @classmethod
    def of(cls, market: Market, policy: str, program: Program, solution: Solution) -> Optimality:
        """Return the certificate that an exact optimum of the policy's program makes."""
        assert solution.dual is not None
        x = solution.point
        return cls(
            market=market,
            policy=policy,
            allocation=program.variable("share", x),
            value=Fraction(program.value(x)),
            duals=row_duals(program, solution.dual),
            variables=other_variables(program, x),
        )


@dataclass(frozen=True, eq=False)
class MarketBound(Certificate):
    """``allocation`` is feasible for the policy's program, at objective ``value``; no allocation is above ``bound``."""

    kind: ClassVar[str] = "bound"
    market: Market
    policy: str
    allocation: Array
    value: Fraction
    bound: Fraction
    gap: Fraction
    duals: Sequence[Sequence[Any]]
    variables: Mapping[str, Fraction] | None = None


@dataclass(frozen=True, eq=False)
class Levels(Certificate):
    """``allocation`` is lexicographically max-min: ``rounds`` of {"level", "fixed", "duals"}, as water filling goes."""

    kind: ClassVar[str] = "levels"
    market: Market
    allocation: Array
    rounds: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class NashEquilibrium(Certificate):
    """``allocation`` maximises Nash welfare: at ``prices`` (k,), with weights as budgets, all hold their best buys."""

    kind: ClassVar[str] = "equilibrium"
    market: Market
    allocation: Array
    prices: Array


@dataclass(frozen=True, eq=False)
class Partial(Certificate):
    """``allocation`` is that of partial allocation: ``kept`` (n,) of the bundles ``together``.

    ``together`` is {"allocation", "prices"} with all users, ``apart`` the same without each in turn.
    """

    kind: ClassVar[str] = "partial"
    market: Market
    allocation: Array
    kept: Array
    together: Mapping[str, Array]
    apart: Sequence[Mapping[str, Array]]


@dataclass(frozen=True, eq=False)
class Trace(Certificate):
    """``allocation`` is where ``trades`` lead from the equal split; without trades (None) it is the equal split."""

    kind: ClassVar[str] = "trace"
    market: Market
    allocation: Array
    trades: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, eq=False)
class Extreme(Certificate):
    """Over all choices that a policy has, the sum of ``weights`` (n, k) times shares is at most (at least) ``value``.

    ``of`` certifies the decision; ``sense`` is "maximize" or "minimize"; ``allocation`` attains the value.
    """

    kind: ClassVar[str] = "extreme"
    of: Certificate
    sense: str
    weights: Array
    allocation: Array
    value: Fraction
    duals: Sequence[Sequence[Any]]
    variables: Mapping[str, Fraction] | None = None

    @classmethod
    def over(cls, choices: Program, weights: Array, sense: Sense, decision: Certificate, solve: Any) -> Extreme:
        """Optimise over the program of all choices with an exact back end's ``solve``, and return the certificate."""
        program = on_shares(choices, weights, sense)
        solution: Solution = solve(program).require_optimal()
        assert solution.dual is not None
        x = solution.point
        return cls(
            of=decision,
            sense=sense.value,
            weights=weights,
            allocation=program.variable("share", x),
            value=Fraction(program.value(x)),
            # the verifier maximises: what minimises has its duals turned round
            duals=row_duals(program, solution.dual if sense is Sense.MAXIMIZE else -solution.dual),
            variables=other_variables(program, x),
        )


def on_shares(program: Program, weights: Array, sense: Sense) -> Program:
    """Return the program with another objective: the sum of ``weights`` (n, k) times the shares."""
    block = next(block for block in program.variable_blocks if block.name == "share")
    cost = np.full(len(program.cost), Fraction(0), dtype=object)
    cost[block.span] = weights.ravel()
    return replace(program, sense=sense, cost=cost, offset=Fraction(0), logarithms=None)

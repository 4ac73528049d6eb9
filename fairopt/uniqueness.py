"""Whether the optimum leaves a choice, and how to make it the same way every time.

The optimal solutions of a linear program are its feasible points that are complementary to any one optimal dual
solution. So a program is cut down to them by turning rows with a non-zero dual into equations and by fixing variables
with a non-zero reduced cost: no objective row, no added tolerance on the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Solution, not_negative
from fairopt.program import INFINITY, Array, Block, Logarithms, Program, Rows, Sense

if TYPE_CHECKING:
    from fairopt.policy import Decision, Policy

#: A float dual below this share of the largest one is taken for zero: HiGHS solves to 1e-7, and a true dual this much
#: smaller than the others would need speedups that differ by the same factor.
ZERO_DUAL = 1e-7
#: Two optimal allocations that differ by less than this, relative to what there is, are the same in floats.
SAME = 1e-6


@dataclass(frozen=True)
class Uniqueness:
    """Whether utilities and shares are the same in every optimum; None where nothing was optimised."""

    utilities: bool | None = None
    shares: bool | None = None


def cut_to_optima(program: Program, solution: Solution) -> Program:
    """Return ``program`` cut down to its optimal solutions, given an optimal ``solution`` with duals."""
    dual, reduced, x = solution.dual, solution.reduced_cost, solution.point
    assert dual is not None
    assert reduced is not None
    activity = program.rows.activity(x)
    held, fixed = _not_zero(dual), _not_zero(reduced)
    rows = program.rows
    row_bound = _nearer(rows.lower, rows.upper, activity)
    bound = _nearer(program.lower, program.upper, x)
    return replace(
        program,
        name=f"optima of {program.name}",
        lower=np.where(fixed, bound, program.lower),
        upper=np.where(fixed, bound, program.upper),
        rows=replace(rows, lower=np.where(held, row_bound, rows.lower), upper=np.where(held, row_bound, rows.upper)),
    )


def with_optimum(program: Program, solution: Solution) -> Program:
    """Return ``program`` with one more row, "optimum", that keeps its objective at that of an exact ``solution``.

    Exactly, this is the same set as that of `cut_to_optima`, and a reader needs no duals to see it.
    """
    rows, count = program.rows, len(program.rows)
    terms = np.flatnonzero(program.cost != 0)
    value = program.value(solution.point) - program.offset
    best, none = np.array([value], dtype=object), np.array([INFINITY], dtype=object)
    low, high = (best, none) if program.sense is Sense.MAXIMIZE else (-none, best)
    return replace(
        program,
        name=f"optima of {program.name}",
        rows=Rows(
            row=np.concatenate([rows.row, np.full(len(terms), count)]),
            column=np.concatenate([rows.column, terms]),
            value=np.concatenate([rows.value, program.cost[terms]]),
            lower=np.concatenate([rows.lower, low]),
            upper=np.concatenate([rows.upper, high]),
        ),
        row_blocks=(*program.row_blocks, Block("optimum", (), count, 1, equation="objective = its optimum")),
    )


def uniqueness(policy: Policy, decision: Decision, *, seed: int = 0) -> Uniqueness:
    """Say whether every optimum has the same utilities, and whether it has the same shares.

    A random linear function is maximised and minimised over the optimal solutions. Different values prove that the
    optimum is not unique; equal values mean that it is, except with probability zero over the function.
    """
    face = policy.optimal_face(decision)
    if face is None:
        return Uniqueness(None, None)
    random = np.random.default_rng(seed)
    face = face.as_(float)
    market = decision.market.as_(float)
    shares = np.asarray(decision.shares, dtype=float)
    session = Highs().session()
    unique = []
    # relative weights, so that users who count in thousands do not drown the others
    per_user = random.uniform(1, 2, len(market.users)) / market.fair_utility()
    there = market.capacity > 0
    per_share = random.uniform(1, 2, market.shape) * np.where(there, 1 / np.where(there, market.capacity, 1), 0)
    for weight in (per_user[:, None] * market.speedup, per_share):
        objective = _on_shares(face, weight)
        ends = [
            session.solve(replace(objective, sense=sense)).require_optimal().objective
            for sense in (Sense.MAXIMIZE, Sense.MINIMIZE)
        ]
        spread = abs(float(ends[0]) - float(ends[1]))  # type: ignore[arg-type]
        unique.append(spread <= SAME * (1 + abs(float((weight * shares).sum()))))
    return Uniqueness(utilities=unique[0], shares=unique[0] and unique[1])


def lexicographic(policy: Policy, decision: Decision) -> Array:
    """Return the lexicographically largest optimum: utilities in the order of the users, then shares row by row."""
    face = policy.optimal_face(decision)
    if face is None:
        return decision.shares
    market = decision.market.as_(Fraction if decision.exact else float)
    session = Exact() if decision.exact else Highs().session()
    n, k = market.shape
    x = None
    for weight in (*_utility_weights(market.speedup), *_share_weights(n, k, market.speedup.dtype)):
        program = _on_shares(face, weight)
        solution = session.solve(program).require_optimal()
        x = solution.point
        face = replace(cut_to_optima(program, solution), name=face.name)
    assert x is not None
    return not_negative(face.variable("share", x))


def _utility_weights(speedup: Array) -> list[Array]:
    weights = []
    for i in range(len(speedup)):
        weight = np.zeros_like(speedup)
        weight[i] = speedup[i] / speedup[i].max()
        weights.append(weight)
    return weights


def _share_weights(n: int, k: int, kind: Any) -> list[Array]:
    return [np.eye(n * k, dtype=int)[place].reshape(n, k).astype(kind) for place in range(n * k)]


def _on_shares(program: Program, weight: Array) -> Program:
    """Return the program with another objective: the sum of ``weight`` times the shares."""
    none: Logarithms | None = None
    cost = np.zeros(len(program.cost), dtype=weight.dtype)
    block = next(block for block in program.variable_blocks if block.name == "share")
    cost[block.span] = weight.ravel()
    return replace(program, sense=Sense.MAXIMIZE, cost=cost, offset=0, logarithms=none)


def _not_zero(dual: Array) -> Array:
    size = np.abs(dual)
    if dual.dtype == object:
        return np.asarray(size > 0, dtype=bool)
    return np.asarray(size > ZERO_DUAL * max(1e-3, size.max(initial=0.0)))


def _nearer(lower: Array, upper: Array, value: Array) -> Array:
    return np.where(np.abs(value - lower) <= np.abs(value - upper), lower, upper)

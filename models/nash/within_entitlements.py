"""Nash welfare within floors and caps: what is proved of an answer in floats, and who can hold nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.exact.bound import exact_bound
from fairopt.backends.solution import Status
from fairopt.errors import NotSolved
from fairopt.methods.eisenberg_gale.bounds import GAP_PER_WEIGHT, UtilityBounds
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Array, Formulation, Program, cast


def rows_of(market: Market) -> Program:
    """Return the rows and bounds that shares keep, with nothing to maximise."""
    p = Formulation("shares")
    p.maximize(0 * shares_of(p, market).sum())
    return p.program()


def as_proved(problem: Market, draft: Allocation, shares: Array, found: UtilityBounds) -> Allocation:
    """Return the decision with the exact ``shares`` of which ``found`` is proved; a market in floats gets floats."""
    assert draft.solution is not None
    utility = (problem.speedup * shares).sum(axis=1).astype(float)
    objective = float(problem.weight.astype(float) @ np.log(utility))
    solution = replace(
        draft.solution,
        status=Status.OPTIMAL,
        raw_status=f"{draft.solution.raw_status}; utilities are proven within {float(found.error):.2g}",
        bound=objective + float(found.gap),
    )
    decided = replace(draft, solution=solution, objective=objective)
    if not problem.exact:
        return replace(decided, shares=cast(shares, float), evidence=None)
    return replace(decided, shares=shares, evidence=found, error=found.error)


def bounded_by_gradient(problem: Market, draft: Allocation) -> Allocation:
    """Return the draft with a bound: the objective is concave, so that a linear program says how far it can rise."""
    assert draft.solution is not None
    market = problem.as_(float)
    utility = (market.speedup * draft.shares).sum(axis=1)
    objective = float(market.weight @ np.log(utility))
    p = Formulation("gradient of Nash welfare")
    p.maximize((shares_of(p, market) * (market.speedup * (market.weight / utility)[:, None])).sum())
    program = p.program()
    proved = exact_bound(program, Highs().optimum(program).dual)
    gap = INFINITY if proved is None else max(0.0, float(proved[0] - Fraction(float(market.weight.sum()))))
    effort = {GAP_PER_WEIGHT: gap / float(market.weight.sum())}
    solution = replace(draft.solution, bound=objective + gap, effort=effort)
    return replace(draft, solution=solution, objective=objective, evidence=None)


def require_something(market: Market, error: NotSolved) -> None:
    """Say who is the reason for an ``error``: whoever gets nothing, whatever is done. Errors: `NotSolved`."""
    p = Formulation("least utility")
    least = p.variable("least")
    p.maximize(least)
    p.constrain("own", (market.speedup * shares_of(p, market)).sum(axis=1) >= least, labels=(market.users,))
    program = p.program()
    best = Exact().solve(program)
    if best.objective is not None and best.dual is not None and best.objective <= 0:
        duals = best.dual[program.row_block("own").span]
        who = ", ".join(name for name, dual in zip(market.users, duals, strict=True) if dual)
        remedy = "raise caps, lower the guarantees of others, or leave entitlements out with Market.plain()"
        said = f"within the entitlements there is nothing for {who}, so that every product of utilities is 0"
        raise NotSolved(f"{said}: {remedy}", error.solution) from error

"""What the policies that raise a common level share: the decision by prices, its optimal face and its certificate.

Both are the program of `fairopt.methods.level.solve`: everybody reaches ``rate * t``, and t is as large as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.certificates import MarketBound
from fairopt.errors import NotCapable, NotSolved
from fairopt.methods.level.solve import Raised, raise_level
from fairopt.methods.proven import ROUNDING, Proven
from fairopt.policy import Decision, Seconds
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Program

#: Scaling down by a multiple of this keeps exact shares short.
GRAIN = 2**60
#: Prices below this part of all others together are left out.
SMALL = Fraction(1, 10**22)


def by_prices(
    policy: str,
    problem: Market,
    rate: Array,
    worth: float,
    rows: Callable[[Array], tuple[str, Array]],
    start: Raised | None = None,
) -> tuple[Decision, Raised]:
    """Return the decision that raises everybody to ``rate * t``, at the objective ``worth * t``; evidence `Proven`.

    Shapes: ``rate`` (n,). ``rows`` makes of the values (n,) of throughputs the name and duals of the users' rows.
    ``start`` is what was raised in a market of the same types, if any; that of this one is returned as well.
    Errors: `NotSolved`.
    """
    market = problem.as_(float)
    raised = _raise(market, rate, start)
    name, duals = rows(worth * raised.values)
    blocks = {"capacity": worth * raised.prices, name: duals}
    if market.demand is not None:
        blocks["demand"] = worth * raised.rents
    evidence = Proven(
        lower=raised.lower * worth * (1 - 2 * ROUNDING),
        upper=raised.upper * worth * (1 + 2 * ROUNDING),
        duals=blocks,
        effort=raised.effort,
    )
    effort = raised.effort
    decision = Decision(
        policy=policy,
        market=problem,
        shares=raised.shares,
        objective=raised.level * worth,
        backend="auto",
        evidence=evidence,
        seconds=Seconds(build=effort["prepare"], solve=effort["solve"], certify=effort["certify"]),
    )
    return decision, raised


def _raise(market: Market, rate: Array, start: Raised | None) -> Raised:
    if start is not None:
        try:
            return raise_level(market.speedup, market.capacity, rate, demand=market.demand, start=start)
        except NotSolved:  # too far off: the prices are found anew
            pass
    return raise_level(market.speedup, market.capacity, rate, demand=market.demand)


def following(decide: Callable[[Market, Raised | None], tuple[Decision, Raised]]) -> Callable[[Market], Decision]:
    """Return a function that decides market after market, each from the prices of the last that had the same types."""
    types: Sequence[str] | None = None
    last: Raised | None = None

    def again(problem: Market) -> Decision:
        nonlocal types, last
        decision, last = decide(problem, last if types == problem.types else None)
        types = problem.types
        return decision

    return again


def solution_of(program: Program, decision: Decision, level: float) -> Solution:
    """Return a decision by prices as the solution, with duals, of the ``program`` in floats that it solves."""
    x = np.zeros(len(program.cost))
    for block in program.variable_blocks:
        x[block.span] = decision.shares.ravel() if block.name == "share" else level
    dual = np.zeros(len(program.rows))
    for block in program.row_blocks:
        values = np.asarray(decision.evidence.duals[block.name]).ravel()
        dual[block.span] = values if block.kept is None else values[block.kept]
    rows = program.rows
    against = np.bincount(rows.column, weights=rows.value * dual[rows.row], minlength=len(x))
    return Solution(
        status=Status.OPTIMAL,
        raw_status="proved by prices",
        backend=decision.backend,
        objective=program.value(x),
        bound=decision.evidence.upper,
        x=x,
        dual=dual,
        reduced_cost=program.cost - against,
    )


def exact_bound(
    decision: Decision,
    rate: Array,
    worth: Fraction,
    rows: Callable[[Array], tuple[str, Array]],
    variable: str,
    equal: bool,
) -> MarketBound:
    """Return, in exact numbers, what a decision by prices reaches and what its prices prove that nothing is above.

    ``rate`` (n,) and ``worth`` are exact, ``rows`` as in `by_prices`; with ``equal`` nobody may have more than the
    level, which is the ``variable`` of the program. Errors: `NotCapable` where the shares are no allocation at all.
    """
    market = decision.market.as_(Fraction)
    shares = np.where(market.speedup > 0, _exact(decision.shares), np.array(Fraction(0)))
    reached = (market.speedup * shares).sum(axis=1)
    if not (reached > 0).all():
        raise NotCapable(f"in this decision of {decision.policy} somebody has nothing")
    level = (reached / rate).min()
    if equal:
        shares = shares * (rate * level / reached)[:, None]
    fit = [Fraction(1)]
    for held, there in ((shares.sum(axis=0), market.capacity), (shares.sum(axis=1), market.limit)):
        fit += [limit / use for limit, use in zip(there, held, strict=True) if limit != INFINITY and use > limit]
    by = Fraction(int(min(fit) * GRAIN), GRAIN)
    shares, level = shares * by, level * by
    price, rent = _exact(decision.evidence.duals["capacity"]), np.full(len(rate), Fraction(0), dtype=object)
    if market.demand is not None:
        rent = _exact(decision.evidence.duals["demand"])
    # a price that is next to nothing is as good as 0, and shorter
    worth_of = price * market.capacity
    rents_worth = [q * d for q, d in zip(rent, market.limit, strict=True) if q]
    least = SMALL * max([*worth_of, *rents_worth])
    price = np.where((worth_of > 0) & (worth_of < least), np.array(Fraction(0)), price)
    value = np.array(
        [
            min((p + q) / s for p, s in zip(price, row, strict=True) if s)
            for row, q in zip(market.speedup, rent, strict=True)
        ]
    )
    gain = (rate * value).sum() / worth
    price, rent, value = price / gain, rent / gain, value / gain
    limited = [i for i, limit in enumerate(market.limit) if limit != INFINITY]
    bound = (price * market.capacity).sum() + sum(rent[i] * market.limit[i] for i in limited)
    name, duals = rows(value)
    entries = [["capacity", j, p] for j, p in enumerate(price) if p]
    entries += [["demand", i, rent[i]] for i in limited if rent[i]]
    entries += [[name, i, dual] for i, dual in enumerate(duals) if dual]
    reach = level * worth
    return MarketBound(
        decision.market, decision.policy, shares, reach, bound, bound - reach, entries, {variable: level}
    )


def _exact(values: Array) -> Array:
    """Return floats as the Fractions that they are."""
    out = np.empty(np.shape(values), dtype=object)
    out.ravel()[:] = [Fraction(value) for value in np.asarray(values).ravel().tolist()]
    return out

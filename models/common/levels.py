"""Shared parts of the policies that raise a common level: the method by prices, and its certificate.

Their program is that of `fairopt.methods.level`: maximise t such that every user reaches ``rate * t``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.backends import Method
from fairopt.backends.solution import Solution
from fairopt.errors import NotCapable
from fairopt.methods.result import duals_of, ends_of, so_far
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import INFINITY, ROUNDING, Array, fractions

if TYPE_CHECKING:
    from fairopt.certificates import Certificate

#: Scaling down by a multiple of this keeps the fractions of exact shares short.
GRAIN = 2**60
#: Prices below this part of the sum of the others are set to 0.
SMALL = Fraction(1, 10**22)


class PriceMethod(Method):
    """Maximise the common level by its dual, the prices of the types (`fairopt.methods.level`).

    Its policies raise every user to ``rate * t`` and say of their program: ``level_variable``, the variable t;
    ``equal``: whether no user may have more than its level; ``rate(market)``: each user's throughput at t = 1 (n,), in
    the market's number type; ``worth(market)``: the objective at t = 1; ``user_duals(values, rate)``: the name and
    the duals (n,) of the users' rows, given the values (n,) of their throughputs; ``verifier_knows(market)``: whether
    the verifier writes this program, and ``told(market)``: the name under which certificates speak of it.
    """

    name = "prices"
    number = float

    def solve(self, policy: Any, problem: Market, start: Any = None) -> Solution:
        """Return the solution in floats; ``start`` is used if it is of a market with the same types."""
        from fairopt.methods.level import raise_level  # here, since backends decide without it

        market = problem.as_(float)
        rate, worth = policy.rate(market), float(policy.worth(market))
        types, last = start or ((), None)
        near = last if types == market.types else None
        raised = so_far(partial(raise_level, market.speedup, market.capacity, rate, demand=market.demand, start=near))
        lower, upper = ends_of(raised)
        prices, demand_duals, targets = duals_of(raised, "capacity", "demand", "target")
        name, duals = policy.user_duals(worth * targets, rate)
        blocks = {"capacity": worth * prices, name: duals}
        if market.demand is not None:
            blocks["demand"] = worth * demand_duals
        return replace(
            raised,
            objective=lower * worth,
            bound=upper * worth,
            lower=lower * worth * (1 - 2 * ROUNDING),
            upper=upper * worth * (1 + 2 * ROUNDING),
            values={**raised.values, policy.level_variable: np.array(lower)},
            duals=blocks,
            warm_start=(market.types, raised.warm_start),
        )

    def certify(self, policy: Any, decision: Allocation) -> Certificate:
        """Return an exact allocation near the decision's, a bound by its prices, and the gap.

        Errors: `NotCapable` where the verifier does not know the program.
        """
        if not policy.verifier_knows(decision.market):
            raise NotCapable(f"the verifier has no program of {policy.told(decision.market)}: decide without prices")
        return exact_bound(policy, decision)


def exact_bound(policy: Any, decision: Allocation) -> Certificate:
    """Return the exact value of a decision by prices, and the exact upper bound that its prices prove.

    Errors: `NotCapable` where a user gets nothing.
    """
    from fairopt.certificates import MARKET_BOUND, Certificate  # here, since who decides need not certify

    market, solution = decision.market.as_(Fraction), decision.solution
    assert solution is not None
    rate, worth = policy.rate(market), policy.worth(market)
    shares = np.where(market.speedup > 0, fractions(decision.shares), np.array(Fraction(0)))
    reached = (market.speedup * shares).sum(axis=1)
    if not (reached > 0).all():
        raise NotCapable(f"in this decision of {decision.policy} somebody has nothing")
    level = (reached / rate).min()
    if policy.equal:
        shares = shares * (rate * level / reached)[:, None]
    by = Fraction(int(min(Fraction(1), market.largest_multiple(shares)) * GRAIN), GRAIN)
    shares, level = shares * by, level * by
    price = fractions(solution.duals["capacity"])
    demand_dual = fractions([0] * len(rate) if market.demand is None else solution.duals["demand"])
    # tiny prices are rounded to 0 to keep fractions short
    worth_of = price * market.capacity
    worth_of_demands = [q * d for q, d in zip(demand_dual, market.limit, strict=True) if q]
    least = SMALL * max([*worth_of, *worth_of_demands])
    price = np.where((worth_of > 0) & (worth_of < least), np.array(Fraction(0)), price)
    value = np.array(
        [
            min((p + q) / s for p, s in zip(price, row, strict=True) if s)
            for row, q in zip(market.speedup, demand_dual, strict=True)
        ]
    )
    gain = (rate * value).sum() / worth
    price, demand_dual, value = price / gain, demand_dual / gain, value / gain
    bound, entries = by_prices(market, price, demand_dual)
    name, duals = policy.user_duals(value, rate)
    entries += [[name, i, dual] for i, dual in enumerate(duals) if dual]
    reach = level * worth
    variables, gap = {policy.level_variable: level}, bound - reach
    return Certificate(
        MARKET_BOUND, decision.market, decision.policy, shares, reach, bound, gap, entries, variables=variables
    )


def by_prices(market: Market, price: Array, demand_dual: Array) -> tuple[Fraction, list[list[object]]]:
    """Return the bound that prices (k,) and duals of demands (n,) prove, and both as entries of a certificate."""
    limited = [i for i, limit in enumerate(market.limit) if limit != INFINITY]
    bound = (price * market.capacity).sum() + sum(demand_dual[i] * market.limit[i] for i in limited)
    entries: list[list[object]] = [["capacity", j, p] for j, p in enumerate(price) if p]
    return bound, entries + [["demand", i, demand_dual[i]] for i in limited if demand_dual[i]]

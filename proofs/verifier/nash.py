"""Nash welfare where demands bind: between which numbers its throughputs lie, which are irrational.

No logarithm is taken. Let c be the least that a unit of throughput costs a user at prices and rents. The sum
of c * throughput is at most what all GPUs and all demands cost, for every allocation. For every t,
t - 1 - log t is at least (1 - t)^2 / 2 where t <= 1, and at least (t - 1)^2 / (2 t) where t >= 1. With
t = c * throughput / weight, the weighted sum of t - 1 - log t at an optimum is at most the gap: what all
costs, less all weights, plus each weight times weight / (c * throughput) - 1 at the allocation that is given.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from .decisions import read_rents
from .market import Market, dot, row_shown
from .reading import Entry, Rejected, shown, summed
from .statements import Proved, read_allocation

#: Terms of the gap are rounded up to a part of it, so that sums stay short: together a thousandth.
ROUNDED = 1000


def nash_bounds(data: Entry) -> Proved:
    """At every allocation of maximal Nash welfare each throughput lies within its bounds."""
    told = data.fields("market allocation prices rents gap lower upper")
    market, shares = read_allocation(told)
    users = range(len(market.users))
    prices, rents = told["prices"].numbers(len(market.types)), read_rents(told["rents"], market)
    lower, upper = (told[key].numbers(len(market.users)) for key in ("lower", "upper"))
    gap = told["gap"].amount(positive=True)
    if min(prices) < 0 or any(summed(shares[i]) > market.demand[i] for i in users):
        raise Rejected("a price is negative, or somebody gets more than it demands")
    own = [dot(market.speedup[i], shares[i]) for i in users]
    costs = [min(_costs(market, i, prices, rents[i])) for i in users]
    if not (min(own) > 0 and min(costs) > 0):
        raise Rejected("somebody gets nothing, or pays nothing")
    terms = [price * there for price, there in zip(prices, market.capacity, strict=True)]
    terms += [rent * Fraction(most) for rent, most in zip(rents, market.demand, strict=True) if most != inf]
    for i, weight in enumerate(market.weight):
        terms += [weight * (weight / (costs[i] * own[i]) - 1), -weight]
    grain = gap / (ROUNDED * len(terms))
    if sum(-(-term // grain) for term in terms) * grain > gap:
        raise Rejected("prices and rents prove a larger gap")
    for i, weight in enumerate(market.weight):
        low, high = costs[i] * lower[i] / weight, costs[i] * upper[i] / weight
        if not (0 <= low <= 1 <= high):
            raise Rejected(f"the bounds of {market.users[i]!r} are on one side of what prices say")
        if weight * (1 - low) ** 2 < 2 * gap or weight * (high - 1) ** 2 < 2 * high * gap:
            raise Rejected(f"the bounds of {market.users[i]!r} are closer than is proved")
    said = "wherever Nash welfare is largest, the throughputs of the users are at least "
    said += f"{row_shown(lower)} and at most {row_shown(upper)}; the sum of weight * log throughput of this"
    return Proved(f"{said} allocation is less than {shown(gap)} below the largest", market, shares)


def _costs(market: Market, i: int, prices: list[Fraction], rent: Fraction) -> list[Fraction]:
    """Return what a unit of user i's throughput costs on each type that it can run on."""
    kinds = zip(prices, market.speedup[i], market.capacity, strict=True)
    return [(price + rent) / speed for price, speed, there in kinds if speed and there]

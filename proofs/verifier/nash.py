"""Nash welfare where demands or entitlements bind: between which numbers its throughputs lie.

No logarithm is taken. Let c be the least that a unit of throughput costs a user at prices and demand duals.
The sum of c * throughput is at most what all GPUs and all demands cost, for every allocation. For every t,
t - 1 - log t is at least (1 - t)^2 / 2 where t <= 1, and at least (t - 1)^2 / (2 t) where t >= 1. With
t = c * throughput / weight, the weighted sum of t - 1 - log t at an optimum is at most the gap: what all
costs, less all weights, plus each weight times weight / (c * throughput) - 1 at the allocation that is given.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from .decisions import read_demand_duals, read_whole, require_entitled
from .market import Market, Table, dot, read_market, read_table, row_shown
from .programs import entitle, point_of, read_duals, sharing, throughput
from .reading import Entry, Rejected, shown, summed
from .statements import Proved, require_feasible

#: Terms of the gap are rounded up to a part of it, so that sums stay short: together a thousandth.
ROUNDED = 1000


def nash_bounds(data: Entry) -> Proved:
    """At every allocation of maximal Nash welfare each throughput lies within its bounds.

    Where there are entitlements, duals of the rows prove what all throughputs cost at most, for any costs.
    """
    free = "costs" not in data.value
    told = data.fields(
        f"market allocation gap lower upper {'prices demand_duals' if free else 'costs duals owed'}"
    )
    market = read_market(told["market"]) if free else read_whole(told["market"])
    shares, users = read_table(told["allocation"], market), range(len(market.users))
    require_feasible(market, shares)
    costs, terms, note = _bought(told, market, shares) if free else _within(told, market, shares)
    lower, upper = (told[key].numbers(len(users)) for key in ("lower", "upper"))
    gap = told["gap"].amount(positive=free)
    own = [dot(market.speedup[i], shares[i]) for i in users]
    if not (min(own) > 0 and min(costs) > 0):
        raise Rejected("somebody gets nothing, or pays nothing")
    for i, weight in enumerate(market.weight):
        terms += [weight * (weight / (costs[i] * own[i]) - 1), -weight]
    grain = gap / (ROUNDED * len(terms))
    if (sum(-(-term // grain) for term in terms) * grain if gap else summed(terms)) > gap:
        raise Rejected("prices and demand duals prove a larger gap")
    for i, weight in enumerate(market.weight):
        low, high = costs[i] * lower[i] / weight, costs[i] * upper[i] / weight
        if not (0 <= low <= 1 <= high):
            raise Rejected(f"the bounds of {market.users[i]!r} are on one side of what prices say")
        if weight * (1 - low) ** 2 < 2 * gap or weight * (high - 1) ** 2 < 2 * high * gap:
            raise Rejected(f"the bounds of {market.users[i]!r} are closer than is proved")
    said = "wherever Nash welfare is largest, the throughputs of the users are at least "
    said += f"{row_shown(lower)} and at most {row_shown(upper)}; the sum of weight * log throughput of this"
    said += f" allocation is {'less than' if free else 'at most'} {shown(gap)} below the largest"
    return Proved(said, market, shares, note)


def _bought(told: Entry, market: Market, shares: Table) -> tuple[list[Fraction], list[Fraction], str]:
    """Return what a unit of throughput costs, and what all GPUs and demands do by prices and demand duals."""
    users = range(len(market.users))
    prices, demand_duals = (
        told["prices"].numbers(len(market.types)),
        read_demand_duals(told["demand_duals"], market),
    )
    if min(prices) < 0 or any(summed(shares[i]) > market.demand[i] for i in users):
        raise Rejected("a price is negative, or somebody gets more than it demands")
    terms = [price * there for price, there in zip(prices, market.capacity, strict=True)]
    terms += [
        demand_dual * Fraction(most)
        for demand_dual, most in zip(demand_duals, market.demand, strict=True)
        if most != inf
    ]
    kinds = [[*zip(prices, row, market.capacity, strict=True)] for row in market.speedup]
    each = [
        [(p + demand_dual) / v for p, v, n in row if v and n]
        for row, demand_dual in zip(kinds, demand_duals, strict=True)
    ]
    return [min(costs) for costs in each], terms, ""


def _within(told: Entry, market: Market, shares: Table) -> tuple[list[Fraction], list[Fraction], str]:
    """Return the costs that are told, what all throughputs cost at most, by duals, and what else is told."""
    program, costs = sharing(market), told["costs"].numbers(len(market.users))
    if market.entitled is None:
        raise Rejected("there are no entitlements")
    require_entitled(market, shares)
    note = f"within entitlements; {entitle(program, market, market.entitled, told['owed'])}"
    for i, cost in enumerate(costs):
        program.cost |= throughput(market, i, factor=cost)
    program.value(point_of(shares, Entry({})))
    return costs, [program.bound(read_duals(told["duals"]))], note

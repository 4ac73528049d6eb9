"""Certificates about an allocation, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .decisions import SENSES, Proved, decided, read_allocation
from .market import Market, Table, dot, read_table
from .programs import MOST_TERMS, at_most
from .reading import Rejected, brief, choice, fields, items, numbers, position, shown, summed, within

#: The properties that are decided by computing them, and what it means that one holds.
MEANING = {
    "feasibility": "no share is negative, and no type is given out more often than it is there",
    "sharing_incentive": "everybody gets at least what its weight's part of every type is worth to it",
    "envy_freeness": "nobody would get more out of another's shares, scaled by the two weights",
    "work_conservation": "no GPU is idle that somebody who wants more could run on",
    "adjacent_types": "nobody holds two types, and none of a type between them",
}
#: Nobody shall take an allocation that is impossible for one that can be had.
IMPOSSIBLE = ", which gives out what is not there"


def property_(data: Any) -> Proved:
    """A property holds or fails by its bare definition: nothing to prove, only to compute."""
    told = fields(data, "property", "market allocation property answer")
    market, shares = read_allocation(told, feasible=False)
    name = choice(told["property"], "property", list(MEANING))
    if name != "feasibility":
        _require_worth(shares)
    answer = "HOLDS" if PROPERTIES[name](market, shares) else "FAILS"
    if told["answer"] != answer:
        raise Rejected(f"{name} does not get {brief(told['answer'])}")
    possible = name == "feasibility" or market.feasible(shares)
    said = f"{name} {answer.lower()} for the allocation{'' if possible else IMPOSSIBLE}"
    note = f"it means: {MEANING[name]}"
    if name == "adjacent_types":
        note += f", in the order {', '.join(map(repr, _there(market)))} (types without GPUs do not count)"
    return Proved(said, market, shares, note)


def _require_worth(shares: Table) -> None:
    if min(map(min, shares)) < 0:
        raise Rejected("what a negative share is worth is not defined")


def sharing_incentive(market: Market, shares: Table) -> bool:
    """Return whether everybody gets at least what its own partition is worth to it."""
    return all(market.worth(i, bundle) >= market.equal_share(i) for i, bundle in enumerate(shares))


def envy_freeness(market: Market, shares: Table) -> bool:
    """Return whether nobody prefers another's shares, scaled by the two weights, to its own."""
    users = range(len(shares))
    within(len(users) ** 2 * len(market.types), MOST_TERMS, "envy_freeness", "comparisons")
    own = [market.worth(i, bundle) for i, bundle in enumerate(shares)]
    return all(own[i] >= market.out_of_shares(shares, i, other) for i in users for other in users)


def work_conservation(market: Market, shares: Table) -> bool:
    """Return whether no GPU is idle that somebody below its demand could run on."""
    used = [market.used(i, bundle) for i, bundle in enumerate(shares)]
    columns = zip(*used, strict=True)
    idle = [summed(column) < there for column, there in zip(columns, market.capacity, strict=True)]
    return not any(
        idle[j] and market.speedup[i][j] and summed(used[i]) < market.demand[i]
        for i in range(len(used))
        for j in range(len(idle))
    )


def adjacent_types(market: Market, shares: Table) -> bool:
    """Return whether the types that each user holds stand next to each other, types without GPUs left out."""
    there = [j for j, gpus in enumerate(market.capacity) if gpus]
    held = [[place for place, j in enumerate(there) if bundle[j] > 0] for bundle in shares]
    return all(not places or places[-1] - places[0] == len(places) - 1 for places in held)


def _there(market: Market) -> list[str]:
    return [name for name, gpus in zip(market.types, market.capacity, strict=True) if gpus]


PROPERTIES: dict[str, Callable[[Market, Table], bool]] = {
    "feasibility": Market.feasible,
    "sharing_incentive": sharing_incentive,
    "envy_freeness": envy_freeness,
    "work_conservation": work_conservation,
    "adjacent_types": adjacent_types,
}


def envy(data: Any) -> Proved:
    """One user would get more out of another's shares than out of its own."""
    told = fields(data, "envy", "market allocation user envied")
    market, shares = read_allocation(told, feasible=False)
    _require_worth(shares)
    user, other = (position(told[key], market.users, key) for key in ("user", "envied"))
    own, theirs = market.worth(user, shares[user]), market.out_of_shares(shares, user, other)
    if own >= theirs:
        raise Rejected("there is no envy")
    said = f"{market.users[user]!r} gets {shown(own)}, and would get {shown(theirs)} out of the shares of"
    impossible = "" if market.feasible(shares) else IMPOSSIBLE
    note = "shares are scaled by the two weights"
    return Proved(f"{said} {market.users[other]!r}{impossible}", market, shares, note)


def dominance(data: Any) -> Proved:
    """Another feasible allocation gives nobody less, and somebody more.

    With ``optima``, the most that each user gets at any optimum of a policy: than any such optimum.
    """
    told = fields(data, "dominance", "market allocation better", "optima")
    market, shares = read_allocation(told)
    better = read_table(told["better"], market, "better")
    if not market.feasible(better):
        raise Rejected("the better allocation is not feasible")
    if told["optima"] is None:
        now, what = [market.worth(i, bundle) for i, bundle in enumerate(shares)], "the allocation"
    else:
        ranges = [decided(each, f"optima[{at}]") for at, each in enumerate(items(told["optima"], "optima"))]
        wanted = [(market, SENSES[0], market.throughput_of(i)) for i in range(len(shares))]
        found = [(each.market, each.range.sense, each.range.weights) for each in ranges if each.range]
        if found != wanted or len({each.policy for each in ranges}) != 1:
            raise Rejected("each user's most at any optimum of one policy is needed, in order")
        now, what = [each.range.value for each in ranges if each.range], f"any optimum of {ranges[0].named}"
    gains = [market.worth(i, better[i]) - before for i, before in enumerate(now)]
    if not min(gains) >= 0 < max(gains):
        raise Rejected("somebody loses, or nobody gains")
    who = market.users[gains.index(max(gains))]
    said = f"{what} is not Pareto-efficient: {who!r} could get {shown(max(gains))} more"
    return Proved(said, market, shares if told["optima"] is None else None)


def pareto_weights(data: Any) -> Proved:
    """The allocation maximises a sum of throughputs with positive weights: nobody can gain without a loser.

    ``prices`` of GPUs, and ``rents`` of a user's right to use one more, bound that sum.
    """
    told = fields(data, "pareto_weights", "market allocation weights prices", "rents")
    market, shares = read_allocation(told)
    weights = numbers(told["weights"], "weights", len(market.users))
    prices = numbers(told["prices"], "prices", len(market.types))
    rents = numbers([0] * len(weights) if told["rents"] is None else told["rents"], "rents", len(weights))
    if min(weights) <= 0 or min(prices + rents) < 0:
        raise Rejected("a price is negative, or a weight is not positive")
    for weight, rent, row in zip(weights, rents, market.speedup, strict=True):
        if any(weight * speed > price + rent for speed, price in zip(row, prices, strict=True)):
            raise Rejected("a price is too low")
    limits = zip(prices + rents, market.capacity + market.demand, strict=True)
    most = summed(at_most(price, 0, limit) for price, limit in limits)
    if dot(weights, [market.worth(i, bundle) for i, bundle in enumerate(shares)]) != most:
        raise Rejected("prices prove nothing")
    return Proved("the allocation is Pareto-efficient", market, shares)


RULES: dict[str, Callable[[Any], Proved]] = {
    "property": property_,
    "envy": envy,
    "dominance": dominance,
    "pareto_weights": pareto_weights,
}

"""What each policy of shares must come to, by the definition in its source: the judge of decisions.

Nothing here is fairopt's: no formulation, no rows, no evidence, no backend. Programs are written down anew and decided
by `plain_lp`; rules are carried out anew. Each function returns by how much a decision is off, as a part of the right
value: 0 for an exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations
from math import exp, log, log1p, sqrt
from typing import Any

from plain_filling import Rates, alike, by_weight, levels
from plain_lp import Row, Terms, at_least, exactly, largest
from plain_market import NOTHING, Given, held, part, rows, table, times, too_much, used, utilities, worth
from plain_trades import traded

Off = Callable[[Given, Any], Fraction]
Program = tuple[Terms, list[Row]]


def minus(one: Terms, other: Terms) -> Terms:
    """Return the difference of two sums."""
    keys = {**one, **other}
    return {key: one.get(key, NOTHING) - other.get(key, NOTHING) for key in keys}


def apart(one: Fraction, right: Fraction) -> Fraction:
    """Return how far a number is from the right one, as a part of that."""
    return abs(one - right) / abs(right) if right else abs(one)


def furthest(ones: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """Return the largest `apart` of several."""
    return max(apart(one, other) for one, other in zip(ones, right, strict=True))


def total(market: Given) -> Terms:
    """Return the sum of all throughputs."""
    return {key: rate for i in market.users for key, rate in held(market, i).items()}


# -- programs: what is largest, under which rows -----------------------------------------------------------------------
def most_total(market: Given) -> Program:
    """Return the program of the largest total throughput. Source: OEF Eq. (4)."""
    return total(market), rows(market)


def compared_with(market: Given, user: int, normaliser: str = "own-partition") -> Fraction:
    """Return the throughput that stands for 1. Source: Gavel Sec. 4.1, and its scheduler's policies."""
    own = part(market, user)
    if normaliser == "equal-time":
        return times(market.speedup[user], own)
    if normaliser == "isolated":
        limit = market.limit[user]
        scale = Fraction(1) if limit is None else min(Fraction(1), limit / sum(own))
        own = [x * scale for x in own]
    return worth(market, user, own)


def most_ratio(market: Given, normaliser: str = "own-partition") -> Program:
    """Return the program of the largest least ratio. Source: Gavel Sec. 4.1."""
    ratio = [Row(minus({"t": compared_with(market, i, normaliser)}, held(market, i)), NOTHING) for i in market.users]
    return {"t": Fraction(1)}, [*rows(market), *ratio]


def without_envy(market: Given) -> Program:
    """Return the program of the largest total where nobody would exchange, by weight, at any speedups.

    Source: OEF Eq. (10).
    """
    low = market.speedup if market.least is None else market.least
    gain = {key: rate for i in market.users for key, rate in held(market, i, low[i]).items()}
    return gain, [*rows(market), *envious(market)]


def envious(market: Given) -> list[Row]:
    """Return the rows by which nobody prefers another's shares, by weight, to its own, beyond what is guaranteed.

    Source: OEF Eq. (10c), Theorem 5.1; guarantees as `CooperativeOEF` says.
    """
    found = []
    for i, other in permutations(market.users, 2):
        scale = market.weight[i] / market.weight[other]
        for row in extremes(market, i):
            rate = beyond(market, i, row)
            theirs = {(other, j): scale * rate[j] for j in market.types if market.speedup[other][j] > 0}
            floors = [NOTHING if market.floor is None else times(rate, market.floor[who]) for who in (i, other)]
            found.append(Row(minus(theirs, held(market, i, rate)), scale * floors[1] - floors[0]))
    return found


def beyond(market: Given, user: int, row: Sequence[Fraction]) -> list[Fraction]:
    """Return what a GPU beyond its guarantee counts for a user: nothing where it can hold no more of the type.

    Whose guarantee meets its demand could only swap its slowest GPU.
    """
    if market.floor is None:
        return list(row)
    own, met = market.floor[user], _is_met(market, user)
    slowest = min((v for v, x in zip(row, own, strict=True) if x > 0), default=NOTHING) if met else NOTHING
    return [max(v - slowest, NOTHING) if _has_room(market, user, j) else NOTHING for j, v in enumerate(row)]


def _is_met(market: Given, user: int) -> bool:
    limit = market.limit[user]
    return market.floor is not None and limit is not None and sum(market.floor[user]) >= limit


def _has_room(market: Given, user: int, j: int) -> bool:
    cap = None if market.cap is None else market.cap[user][j]
    most = market.capacity[j] if cap is None else min(cap, market.capacity[j])
    return market.speedup[user][j] > 0 and most > (NOTHING if market.floor is None else market.floor[user][j])


def rising(market: Given) -> list[int]:
    """Return the users that can hold more than what they are guaranteed."""
    if market.floor is None:
        return list(market.users)
    free = [i for i in market.users if not _is_met(market, i)]
    return [i for i in free if any(_has_room(market, i, j) for j in market.types)]


def extremes(market: Given, user: int) -> list[list[Fraction]]:
    """Return the speedups at which a linear row is at its worst: the corners, and each type alone that has no end."""
    return [*market.corners(user), *([] if market.most is None else _endless(market, user))]


def _endless(market: Given, user: int) -> list[list[Fraction]]:
    assert market.most is not None
    ends = [j for j in market.types if market.most[user][j] is None]
    return [[Fraction(int(j == end)) for j in market.types] for end in ends]


def all_alike(market: Given) -> Program:
    """Return the program of the largest total where throughputs are equal by weight. Source: OEF Eq. (9)."""
    level = [
        row
        for i in rising(market)
        for row in exactly(minus(held(market, i), {"E": market.weight[i]}), _guaranteed(market, i))
    ]
    return total(market), [*rows(market), *level]


def _guaranteed(market: Given, user: int) -> Fraction:
    """Return what a user's guarantee is worth."""
    return NOTHING if market.floor is None else times(market.speedup[user], market.floor[user])


# -- how far a decision is off ---------------------------------------------------------------------------------------
def said(found: Any, reached: Fraction, right: Fraction) -> Fraction:
    """Return how far what is reached is from the right value, or what the decision says of it, if it says anything."""
    told = reached if found.objective is None else Fraction(found.objective)
    return furthest([reached, told], [right, right])


def max_efficiency(market: Given, found: Any) -> Fraction:
    """Return how far the total is from the largest."""
    return said(found, sum(utilities(market, table(found.shares)), NOTHING), largest(*most_total(market)).value)


def max_min(market: Given, found: Any, normaliser: str = "own-partition") -> Fraction:
    """Return how far the least ratio is from the largest."""
    own = utilities(market, table(found.shares))
    least = min(u / compared_with(market, i, normaliser) for i, u in enumerate(own))
    return said(found, least, largest(*most_ratio(market, normaliser)).value)


def envy(market: Given, found: Any) -> Fraction:
    """Return the larger of the largest envy, as a part of what somebody has, and how far the total is off."""
    shares, low = table(found.shares), market.speedup if market.least is None else market.least
    reached = sum((times(v, x) for v, x in zip(low, shares, strict=True)), NOTHING)
    off = [said(found, reached, largest(*without_envy(market)).value)]
    for row in envious(market):
        parts = [rate * shares[i][j] for (i, j), rate in row.terms.items()]
        size = max(sum((abs(x) for x in parts), abs(row.most)), Fraction(1, 10**400))
        off.append(max(NOTHING, sum(parts) - row.most) / size)
    return max(off)


def equal(market: Given, found: Any) -> Fraction:
    """Return how far throughputs by weight are apart, as a part of the largest, or how far the total is off."""
    own = utilities(market, table(found.shares))
    level = [(own[i] - _guaranteed(market, i)) / market.weight[i] for i in rising(market)] or [NOTHING]
    unequal = (max(level) - min(level)) / max(*own, Fraction(1, 10**400))
    return max(unequal, said(found, sum(own, NOTHING), largest(*all_alike(market)).value))


def robust_ratio(market: Given, found: Any) -> Fraction:
    """Return how far the least ratio at the worst speedups is from the largest such."""
    shares, more, reached = table(found.shares), [], []
    for i in market.users:
        own = used(market, i, part(market, i))
        for row in extremes(market, i):
            if fair := times(row, own):
                more.append(Row(minus({"t": fair}, held(market, i, row)), NOTHING))
                reached.append(times(row, shares[i]) / fair)
    return said(found, min(reached), largest({"t": Fraction(1)}, [*rows(market), *more]).value)


def nash(market: Given, found: Any) -> Fraction:
    """Return a bound on how far utilities are from those of the largest product. Source: Eisenberg and Gale 1959.

    For any costs c of a unit of throughput, the most that sum_i c_i u_i can be, M, bounds it at the optimum u*, too. So
    sum_i w_i (t_i - 1 - log t_i) with t = c u* / w is at most M - sum(w) - sum_i w_i log(c_i u_i / w_i). At the optimum
    the costs w / u leave nothing. A decision may tell better ones: they are only tried.
    """
    own = utilities(market, table(found.shares))
    if min(own) <= 0:
        return Fraction(1)
    ways = [[w / u for w, u in zip(market.weight, own, strict=True)], *_costs_told(market, found.evidence)]
    return min(_away(market, own, costs) for costs in ways)


def _costs_told(market: Given, evidence: Any) -> list[list[Fraction]]:
    """Return the costs that evidence tells, by prices of types and demand duals of users, if it tells any."""
    if hasattr(evidence, "costs"):
        return [[Fraction(c) for c in evidence.costs]]
    if getattr(evidence, "prices", None) is None:
        return []
    demand_duals = (
        [NOTHING for _ in market.users]
        if evidence.demand_duals is None
        else [Fraction(q) for q in evidence.demand_duals]
    )
    prices = [Fraction(p) for p in evidence.prices]
    there = [j for j, m in enumerate(market.capacity) if m]  # others cannot be bought, whatever they cost
    pairs = zip(market.speedup, demand_duals, strict=True)
    return [[min((prices[j] + demand_dual) / row[j] for j in there if row[j]) for row, demand_dual in pairs]]


def _away(market: Given, own: Sequence[Fraction], costs: Sequence[Fraction]) -> Fraction:
    if min(costs) <= 0:
        return Fraction(1)
    gain = {key: rate * costs[i] for i in market.users for key, rate in held(market, i).items()}
    ratio = [c * u / w for c, u, w in zip(costs, own, market.weight, strict=True)]
    over = largest(gain, rows(market)).value - sum(w * r for w, r in zip(market.weight, ratio, strict=True))
    bent = sum(float(w) * max(0.0, float(r - 1) - logarithm(r)) for w, r in zip(market.weight, ratio, strict=True))
    gap = (max(0.0, float(over)) + bent) / float(min(market.weight))
    return Fraction(sqrt(2 * gap) + gap) + max(abs(r - 1) for r in ratio) if gap else NOTHING


def partly(market: Given, found: Any) -> Fraction:
    """Return how far what users keep is from the formula. Source: Cole, Gkatzelis and Goel, EC 2013, Sec. 3."""
    together, without = found.evidence.together, found.evidence.apart
    own, off = utilities(market, table(together.shares)), [nash(market, together)]
    kept = [1.0]
    if len(market.users) > 1:
        others = [market.without(i) for i in market.users]
        alone = [utilities(each, table(one.shares)) for each, one in zip(others, without, strict=True)]
        off += [nash(each, one) for each, one in zip(others, without, strict=True)]
        kept = [_kept(market, i, own, alone[i]) for i in market.users]
    off += [
        apart(x, Fraction(f) * y)
        for row, all_, f in zip(table(found.shares), table(together.shares), kept, strict=True)
        for x, y in zip(row, all_, strict=True)
    ]
    return max(off)


def _kept(market: Given, user: int, together: Sequence[Fraction], alone: Sequence[Fraction]) -> float:
    """Return the product of the others' ratios, each to its weight over the user's."""
    rest = [i for i in market.users if i != user]
    logs = [
        float(market.weight[i] / market.weight[user]) * logarithm(together[i] / one)
        for i, one in zip(rest, alone, strict=True)
    ]
    return exp(min(0.0, sum(logs)))


def logarithm(ratio: Fraction) -> float:
    """Return the logarithm of a fraction that may be beyond floats, or near 1."""
    near = ratio - 1
    return log1p(float(near)) if abs(near) < Fraction(1, 2) else log(ratio.numerator) - log(ratio.denominator)


def filling(
    market: Given, found: Any, normaliser: str = "own-partition", rates: Rates = alike, weights: bool = True
) -> Fraction:
    """Return how far ratios are from those of progressive filling. Source: Gavel Sec. 4.3."""
    own = utilities(market, table(found.shares))
    alone = market if weights else market._replace(weight=[Fraction(1)] * len(own))
    scale = [compared_with(alone, i, normaliser) for i in market.users]
    right = levels(market, scale, rates)
    ratio = [u / s for u, s in zip(own, scale, strict=True)]
    told = [Fraction(level) for level in found.evidence.level.tolist()]
    return max(furthest(ratio, right), furthest(told, right), said(found, min(ratio), min(right)))


def raised(market: Given, found: Any, normaliser: str = "own-partition") -> Fraction:
    """Return by how much a user can be raised without lowering one that is no better off: the definition of max-min
    fairness (Bertsekas and Gallager, Sec. 6.5.2), which names no rounds; for exact decisions.
    """
    own, more = utilities(market, table(found.shares)), [NOTHING]
    ratio = [u / compared_with(market, i, normaliser) for i, u in enumerate(own)]
    for i in market.users:
        kept = [at_least(held(market, o), own[o]) for o in market.users if o != i and ratio[o] <= ratio[i]]
        more.append(apart(own[i], largest(held(market, i), [*rows(market), *kept]).value))
    return max(more)


# -- rules -----------------------------------------------------------------------------------------------------------
def same(right: Callable[[Given], Sequence[Sequence[Fraction]]]) -> Off:
    """Return the judge of a rule that gives certain shares."""

    def off(market: Given, found: Any) -> Fraction:
        pairs = zip(table(found.shares), right(market), strict=True)
        ends = [(x, y, m) for one, other in pairs for x, y, m in zip(one, other, market.capacity, strict=True)]
        return max(abs(x - y) / m if m else abs(x - y) for x, y, m in ends)

    return off


def split(market: Given) -> list[list[Fraction]]:
    """Return equal parts by weight, within demands: all rise alike until they have enough, or all is given out."""
    everything = sum(market.capacity)
    ends = sorted(d / w for d, w in zip(market.limit, market.weight, strict=True) if d is not None)
    for level in ends:
        if _count(market, level) >= everything:
            break
    else:
        level = max([NOTHING, *ends]) + everything / min(market.weight)
    below = max([NOTHING, *(end for end in ends if end < level)])
    free = sum((w for i, w in enumerate(market.weight) if not _full(market, i, below)), NOTHING)
    if free:
        level = min(level, below + (everything - _count(market, below)) / free)
    count = [level * w if d is None else min(d, level * w) for d, w in zip(market.limit, market.weight, strict=True)]
    return [[x * m / everything for m in market.capacity] for x in count]


def _full(market: Given, user: int, level: Fraction) -> bool:
    limit = market.limit[user]
    return limit is not None and limit <= level * market.weight[user]


def _count(market: Given, level: Fraction) -> Fraction:
    pairs = zip(market.limit, market.weight, strict=True)
    return sum((level * w if d is None else min(d, level * w) for d, w in pairs), NOTHING)


def isolated(market: Given) -> list[list[Fraction]]:
    """Return each user's part of every type, scaled down to its demand."""
    found = []
    for i, limit in enumerate(market.limit):
        own = part(market, i)
        scale = Fraction(1) if limit is None else min(Fraction(1), limit / sum(own))
        found.append([x * scale for x in own])
    return found


def proportional(market: Given) -> list[list[Fraction]]:
    """Return as many GPUs as each demands, in proportion to types, all scaled down where that is too many."""
    everything = sum(market.capacity)
    asked = [sum(part(market, i)) if limit is None else limit for i, limit in enumerate(market.limit)]
    scale = min(Fraction(1), everything / sum(asked))
    return [[x * scale * m / everything for m in market.capacity] for x in asked]


PROGRAMS: Mapping[str, Callable[[Given], Program]] = {
    "max-efficiency": most_total,
    "max-min": most_ratio,
    "oef-cooperative": without_envy,
    "oef-noncooperative": all_alike,
}
JUDGES: Mapping[str, Off] = {
    "max-efficiency": max_efficiency,
    "max-min": max_min,
    "max-min-robust": robust_ratio,
    "oef-cooperative": envy,
    "oef-cooperative-robust": envy,
    "oef-noncooperative": equal,
    "nash-welfare": nash,
    "partial-allocation": partly,
    "water-filling": filling,
    "hierarchical-water-filling": partial(filling, normaliser="equal-time", rates=by_weight, weights=False),
    "equal-split": same(split),
    "gavel-isolated": same(isolated),
    "gavel-proportional": same(proportional),
    "second-price-trading": same(traded),
}


def off(name: str, market: Given, found: Any) -> Fraction:
    """Return how far a decision of a policy is off by its definition, rows that are broken included."""
    return max(JUDGES[name](market, found), too_much(market, table(found.shares)))

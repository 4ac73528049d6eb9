"""Properties at all speedups within bounds: what they compare is linear in each user's own speedups.

That is so as long as which GPUs a user uses does not depend on its speedups. Then the least and the most
that a comparison can be are at the ends of the bounds. A speedup whose least is 0 may be any positive one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import inf

from .entitled import Asked, asks, served, told, uses
from .market import ZERO, Bound, Market, Table, read_table
from .reading import MOST_COMPARED, STEPS, Entry, Number, Rejected, summed
from .standing import Standing, peers

Bundle = list[Fraction]
#: A user, what it uses, and what must not be worth more to it; None where its speedups decide what it uses.
Case = tuple[int, Bundle | None, Bundle | None]


def bounds_of(market: Market, user: int) -> list[Bound]:
    """Return the least and the most of each speedup of a user."""
    return market.bounds.get(user) or [(speed, speed) for speed in market.speedup[user]]


def in_use(market: Market, user: int, bundle: Bundle) -> Bundle | None:
    """Return which GPUs of a bundle a user uses at all its speedups; None where they differ."""
    if user not in market.bounds:
        return market.used(user, bundle)
    bounds = market.bounds[user]
    runs = [share if most else ZERO for share, (_, most) in zip(bundle, bounds, strict=True)]
    if summed(runs) <= market.demand[user]:
        return runs
    order = sorted((j for j, share in enumerate(runs) if share), key=lambda j: -market.speedup[user][j])
    sure = all(bounds[faster][0] >= bounds[slower][1] for faster, slower in pairwise(order))
    return market.used(user, bundle) if sure else None


def _serving(market: Market, user: int, asked: Asked, bundle: Bundle) -> Bundle | None:
    """Return which GPUs serve what a user asks for at all its speedups; None where they differ."""
    runs = [share if most else ZERO for share, (_, most) in zip(bundle, bounds_of(market, user), strict=True)]
    if all(len(types) == 1 for types in asked):
        return [Fraction(min(max(ZERO, x), asked.get(frozenset([j]), ZERO))) for j, x in enumerate(runs)]
    if served(asked, runs) == summed(runs):
        return runs
    return None if user in market.bounds else uses(asked, market.speedup[user], bundle)


def _equal_shares(market: Market, shares: Table) -> Iterator[Case]:
    for i, bundle in enumerate(shares):
        part = [market.weight[i] / market.weights * there for there in market.capacity]
        yield i, in_use(market, i, bundle), in_use(market, i, part)


def _others(market: Market, shares: Table) -> Iterator[Case]:
    market.budget.spend(len(shares) ** 2 * (20 + 4 * len(market.types)), MOST_COMPARED, "others", STEPS)
    for i, bundle in enumerate(shares):
        for other, theirs in enumerate(shares):
            scaled = [market.weight[i] / market.weight[other] * share for share in theirs]
            yield i, in_use(market, i, bundle), in_use(market, i, scaled)


def _peers(market: Market, shares: Table) -> Iterator[Case]:
    for i, would in peers(market, shares):
        yield i, in_use(market, i, shares[i]), in_use(market, i, would)


def _guarantees(market: Market, shares: Table) -> Iterator[Case]:
    stands = Standing(market, shares, says="guarantees")
    for i, asked in enumerate(asks(market, stands.owed)):
        bundles = shares[i], stands.guarantee[i][: len(shares[i])]
        if told(market, stands.owed):
            pair = [_serving(market, i, asked, bundle) for bundle in bundles]
        else:
            pair = [in_use(market, i, bundle) for bundle in bundles]
        yield i, pair[0], pair[1]


#: What each property compares.
COMPARED: dict[str, Callable[[Market, Table], Iterator[Case]]] = {
    "sharing_incentive": _equal_shares,
    "envy_freeness": _others,
    "envy_within_peers": _peers,
    "guarantee_incentive": _guarantees,
}


def within_bounds(
    market: Market, shares: Table, name: str, speedups: Entry, holds: Callable[[Market, Table], bool]
) -> str:
    """Return HOLDS, or FAILS where a comparison does at all; DEPENDS needs some at which it holds."""
    unsure, changes, fails = False, set[int](), False
    for user, own, would in COMPARED[name](market, shares):
        if own is None or would is None:
            unsure = True
            continue
        row, bounds = [a - b for a, b in zip(own, would, strict=True)], bounds_of(market, user)
        if _least(row, bounds) < 0:
            changes.add(user)
        most = _least([-each for each in row], bounds)
        opened = any(low == 0 < high and each < 0 for each, (low, high) in zip(row, bounds, strict=True))
        fails = fails or most > 0 or (most == 0 and opened)
    if not fails and unsure:
        raise Rejected("which GPUs are in use depends on the speedups")
    if not fails and changes:
        _require_holds(market, shares, changes, speedups, holds)
        return "DEPENDS"
    if speedups.value is not None:
        raise Rejected("speedups at which it holds are of no use here")
    return "FAILS" if fails else "HOLDS"


def _least(row: Bundle, bounds: list[Bound]) -> Number:
    """Return the least of a row times speedups within bounds."""
    terms = [(each, low if each > 0 else high) for each, (low, high) in zip(row, bounds, strict=True) if each]
    endless = any(end == inf for _, end in terms)
    return -inf if endless else summed(each * Fraction(end) for each, end in terms)


def gain_at_all(market: Market, user: int, before: Bundle, after: Bundle) -> tuple[Number, bool]:
    """Return the least that a user gains at its speedups, and whether it gains something at all of them."""
    used, would = in_use(market, user, before), in_use(market, user, after)
    if used is None or would is None:
        raise Rejected("which GPUs are in use depends on the speedups")
    row, bounds = [b - a for a, b in zip(used, would, strict=True)], bounds_of(market, user)
    least = _least(row, bounds)
    opened = any(low == 0 < high and each > 0 for each, (low, high) in zip(row, bounds, strict=True))
    return least, least > 0 or (least == 0 and opened)


def _require_holds(
    market: Market, shares: Table, changes: set[int], speedups: Entry, holds: Callable[[Market, Table], bool]
) -> None:
    if speedups.value is None:
        raise Rejected("that it depends is shown by speedups at which it holds")
    found = read_table(speedups, market)
    for user, row in enumerate(found):
        for speed, (low, high) in zip(row, bounds_of(market, user), strict=True):
            if not low <= speed <= high or (speed == 0 < high):
                raise Rejected("the speedups are not within the bounds")
    if not holds(replace(market, speedup=found, bounds={}), shares):
        raise Rejected("it does not hold at these speedups")
    if all(bound == (ZERO, inf) for user in changes for bound in bounds_of(market, user)):
        raise Rejected("nothing is known of the speedups on which it depends")

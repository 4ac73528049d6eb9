"""Properties at all speedups within bounds: what they compare is linear in each user's own speedups.

That is so as long as which GPUs a user uses does not depend on its speedups. Then the least and the most
that a comparison can be are at the ends of the bounds. A speedup whose least is 0 may be any positive one.

Pareto efficiency: no cycle of trades can hurt nobody and help somebody.
In a cycle each user gives GPUs of one type to the next, and gets another type. It pays if the product, over
the users, of the worth of a GPU given over that of one received is below 1. If all GPUs are in use, an
allocation that is better leads to such a cycle, whatever demands forbid (the dual: weights and prices). One
that meets a user or a type twice is two, of which one pays, if no speedup is in both; so types differ, and
neighbours, as these share one. Each speedup is in the product once: it is least at the ends of the bounds.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from math import inf

from .entitled import Asked, served, uses
from .market import Bound, Market, read_table
from .reading import MOST_COMPARED, STEPS, ZERO, Entry, Number, Rejected, Table, summed, within
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
    for i, asked in enumerate(stands.asked):
        bundles = shares[i], stands.guarantee[i][: len(shares[i])]
        if stands.entitled.usage_known(stands.types):
            pair = [_serving(market, i, asked, bundle) for bundle in bundles]
        else:
            pair = [in_use(market, i, bundle) for bundle in bundles]
        yield i, pair[0], pair[1]


UNSURE = "which GPUs are in use depends on the speedups"
#: What each property compares.
COMPARED: dict[str, Callable[[Market, Table], Iterator[Case]]] = {
    "sharing_incentive": _equal_shares,
    "envy_freeness": _others,
    "envy_within_peers": _peers,
    "guarantee_incentive": _guarantees,
}


def nobody_prefers(name: str, market: Market, shares: Table) -> bool:
    """Return whether nobody would get more out of what a property compares with, its speedups being known."""
    gains = (_gain(market, i, would, own) for i, own, would in COMPARED[name](market, shares))
    return all(gain is not None and gain[0] >= 0 for gain in gains)


def within_bounds(
    market: Market, shares: Table, name: str, speedups: Entry, holds: Callable[[Market, Table], bool]
) -> str:
    """Return HOLDS, or FAILS where a comparison does at all; DEPENDS needs some at which it holds."""
    unsure, changes, fails = False, set[int](), False
    for user, own, would in COMPARED[name](market, shares):
        keeps, gains = _gain(market, user, would, own), _gain(market, user, own, would)
        if keeps is None or gains is None:
            unsure = True
            continue
        if keeps[0] < 0:
            changes.add(user)
        fails = fails or gains[1]
    if not fails and unsure:
        raise Rejected(UNSURE)
    if not fails and changes:
        _require_holds(market, shares, changes, speedups, holds)
        return "DEPENDS"
    if speedups.value is not None:
        raise Rejected("speedups at which it holds are of no use here")
    return "FAILS" if fails else "HOLDS"


def gain_at_all(market: Market, user: int, before: Bundle, after: Bundle) -> tuple[Number, bool]:
    """Return the least that a user gains at its speedups, and whether it gains something at all of them."""
    gain = _gain(market, user, in_use(market, user, before), in_use(market, user, after))
    if gain is None:
        raise Rejected(UNSURE)
    return gain


def _gain(
    market: Market, user: int, before: Bundle | None, after: Bundle | None
) -> tuple[Number, bool] | None:
    """Return what `gain_at_all` does for GPUs in use; None where it is not known which are."""
    if before is None or after is None:
        return None
    bounds, rises = bounds_of(market, user), [b - a for a, b in zip(before, after, strict=True)]
    pairs = [(rise, *ends) for rise, ends in zip(rises, bounds, strict=True) if rise]
    terms = [(rise, low if rise > 0 else high) for rise, low, high in pairs]
    endless = any(end == inf for _, end in terms)
    least = -inf if endless else summed(rise * Fraction(end) for rise, end in terms)
    opened = any(rise > 0 and low == 0 < high for rise, low, high in pairs)
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


# -- Pareto efficiency -------------------------------------------------------------------------------------
#: Of more types there are too many cycles.
MOST_TYPES = 8
#: The most bits of a rate, times about as many cycles as there are.
MOST_BITS = 2**25


def pareto_efficiency(market: Market, shares: Table) -> bool:
    """Return whether the allocation is Pareto-efficient at all speedups within the bounds."""
    users, types = range(len(shares)), range(len(market.types))
    runs = [[most > 0 for _, most in bounds_of(market, i)] for i in users]
    if not market.feasible(shares):
        raise Rejected("the allocation is not feasible")
    held = [[shares[i][j] if runs[i][j] else ZERO for j in types] for i in users]
    if any(summed(row) > most for row, most in zip(held, market.demand, strict=True)):
        raise Rejected(UNSURE)
    if any(there and any(runs[i][j] for i in users) for j, there in enumerate(market.left_over(held))):
        return False  # somebody can run on what is idle
    traded = [j for j in types if any(row[j] for row in held)]
    within(len(traded), MOST_TYPES, "pareto_efficiency", "types")
    legs = {(a, b): _rates(market, held, a, b) for a in traded for b in traded if a != b}
    rates = [rate for leg in legs.values() for rate, _ in leg]
    bits = max((max(rate.numerator, rate.denominator).bit_length() for rate in rates), default=0)
    market.budget.spend(bits * 4 ** len(traded), MOST_BITS, "pareto_efficiency", "bits in all cycles")
    return not any(
        _pays([legs[cycle[at - 1], cycle[at]] for at in range(length)])
        for length in range(2, len(traded) + 1)
        for cycle in permutations(traded, length)
        if cycle[0] == min(cycle)
    )


def _rates(market: Market, held: Table, receives: int, gives: int) -> list[tuple[Fraction, int]]:
    """Return the least that each user gives for what it receives; of two neighbours, one takes the third.

    In a shortest cycle that pays nobody need be it. Say q gives a for z, the third b for a, and p c for b.
    Where b for a by p and a for b by q do not pay, q gives no more of b for z than q and the third in turn.
    """
    rates = []
    for i, row in enumerate(held):
        bounds = bounds_of(market, i)
        if row[gives] and (most := bounds[receives][1]):
            rates.append((ZERO if most == inf else bounds[gives][0] / Fraction(most), i))
    return sorted(rates)[:3]


def _pays(legs: list[list[tuple[Fraction, int]]]) -> bool:
    """Return whether some rates, one of each list, have a product below 1 where neighbours differ."""
    for rate, first in legs[0]:
        least = {first: rate}
        for leg in legs[1:]:
            ways = {i: [old * new for other, old in least.items() if other != i] for new, i in leg}
            least = {i: min(products) for i, products in ways.items() if products}
        if any(product < 1 for i, product in least.items() if i != first):
            return True
    return False

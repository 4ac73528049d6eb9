"""Pareto efficiency at all speedups within bounds: no cycle of trades can hurt nobody and help somebody.

In a cycle each user gives GPUs of one type to the next, and gets another type. It pays if the product, over
the users, of the worth of a GPU given over that of one received is below 1. If all GPUs are in use, an
allocation that is better leads to such a cycle, whatever demands forbid (the dual: weights and prices). One
that meets a user or a type twice is two, of which one pays, if no speedup is in both; so types differ, and
neighbours, as these share one. Each speedup is in the product once: it is least at the ends of the bounds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import inf

from .bounds import bounds_of
from .market import ZERO, Market, Table
from .reading import Rejected, summed, within

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
        raise Rejected("which GPUs are in use depends on the speedups")
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

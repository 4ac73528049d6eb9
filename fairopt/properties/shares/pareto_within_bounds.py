r"""Pareto efficiency for all speedups within bounds, exactly.

**For some speedups.** An allocation is efficient at speedups v if and only if there are weights w > 0, prices p and
a demand dual r for each demand that binds, so that ``w_i v_ij <= p_j + r_i``, with equality where i holds j. Whether
that is so for some v within the bounds is a linear program: ``w_i least_ij <= p_j + r_i``, and ``<= w_i most_ij`` where
i holds j. Its dual (`gain_at_all`) looks for an allocation that is better at all speedups.

**For all speedups,** without demands that bind and with all GPUs in use. It fails at v if and only if a cycle of trades
pays: user s gives type j_s and receives j_(s-1), and the product of ``v_(s,j_s) / v_(s,j_(s-1))`` is below 1 (the
system above consists of differences of logarithms, which contradict each other around a cycle). At fixed v a cycle that
meets a user twice, or a type twice, is two cycles, one of which pays; so users differ, and so do types. Then each
speedup stands in the product once, and over the bounds its least is with what is given at its least and what is
received at its most. For a cycle of types the best user of each leg can be taken: if the legs of one user are not
neighbours, they share no speedup, so that the cycle is two again. Neighbours do share one, and must differ; so the
three best users of a leg suffice, of which its two neighbours can take two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import prod
from operator import itemgetter

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.deadline import left
from fairopt.errors import NotCapable
from fairopt.methods.efficient_faces import Pair
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Formulation, Number

#: Of more types there are too many cycles: 16,064 of 8 types, 125,664 of 9.
MOST_TYPES = 8
#: How exactly the part of the bounds is found up to which it holds.
GRAIN = Fraction(1, 2**30)
#: Two neighbours in a cycle take at most two of the best users for a trade.
BEST = 3


def gain_at_all(market: Market, used: Array) -> tuple[Number, Array, Array]:
    """Return the most that users can gain at the worst of their speedups, over ``used`` (n, k), where nobody loses.

    With it shares (n, k) that are better at all speedups, if it is positive; else, last, speedups (n, k) at which no
    allocation is better.

    ``market`` is exact, and ``used`` what is in use of its allocation at all speedups. Errors: `NotSolved`.
    """
    least, most = market.ends
    fair, room = market.fair_utility(), market.limit - used.sum(axis=1)
    unbounded = most == INFINITY  # what is worth any amount to its holder is never given
    opened = (least == 0) & (most > 0)
    p = Formulation("largest gain at all speedups")
    more = p.variable("more", market.shape, lower=0, upper=np.where(most > 0, INFINITY, 0))
    less = p.variable("less", market.shape, lower=0, upper=np.where(unbounded, 0, used))
    gains = (least / fair[:, None] * more - np.where(unbounded, 0, most) / fair[:, None] * less).sum(axis=1)
    p.maximize(gains.sum() + (more * opened).sum())  # of an open speedup any positive one is possible, but not 0
    p.constrain("capacity", (more - less).sum(axis=0) <= market.capacity - used.sum(axis=0))
    p.constrain("nobody_loses", gains >= 0)
    limited = room < INFINITY
    p.constrain("demand", ((more - less).sum(axis=1) <= np.where(limited, room, 0)).where(limited))
    program = p.program()
    found = Exact().solve(program).require_optimal()
    dual = found.dual
    assert dual is not None
    weight = (1 - dual[program.row_block("nobody_loses").span]) / fair
    paid = np.broadcast_to(dual[program.row_block("capacity").span], market.shape).copy()
    demand_dual = program.row_block("demand")
    paid[demand_dual.kept] += dual[demand_dual.span][:, None]
    worth = paid / weight[:, None]
    speedups = np.where(used > 0, worth, np.minimum(worth, np.where(unbounded, worth, market.speedup)))
    change = program.variable("more", found.point) - program.variable("less", found.point)
    return program.value(found.point), used + change, np.clip(speedups, least, most)


def worst_cycle(
    least: Array, most: Array, held: Array, enough: Number = INFINITY
) -> tuple[Number, tuple[Pair, ...]] | None:
    """Return the cycle of trades with the least rate at speedups between ``least`` and ``most`` (n, k), and the rate.

    Each pair of a user and a type gives the type to the user of the next pair, the last to the first. The rate is the
    product, over users, of the worth of what is given for what is received: somebody gains and nobody loses where it is
    below 1. ``held`` (n, k): who holds what. Cycles whose rate is at least ``enough`` are left out; None where there is
    none. Errors: `NotCapable` for more than `MOST_TYPES` types.

    >>> least, most = np.array([[9, 9], [9, 18]]), np.array([[11, 11], [11, 22]])
    >>> rate, cycle = worst_cycle(least * Fraction(1), most, np.eye(2, dtype=bool))
    >>> print(rate, cycle)
    162/121 ((0, 0), (1, 1))
    """
    types = np.flatnonzero(held.any(axis=0)).tolist()
    if len(types) > MOST_TYPES:
        raise NotCapable(f"{len(types)} types make too many cycles of trades; {MOST_TYPES} are decided")
    legs = {(a, b): _best(least, most, held, a, b) for a in types for b in types if a != b}
    worst: tuple[Number, tuple[Pair, ...]] | None = None
    for cycle in _cycles(types):
        chain = [legs[cycle[at - 1], cycle[at]] for at in range(len(cycle))]
        if all(chain) and prod(best[0][0] for best in chain) < enough:
            left()
            rate, users = _around(chain)
            if users and rate < enough:
                worst, enough = (rate, tuple(zip(users, cycle, strict=True))), rate
    return worst


def _cycles(types: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield each cycle of two or more types once: the first of its types comes first."""
    for at, first in enumerate(types):
        for length in range(1, len(types) - at):
            for rest in permutations(types[at + 1 :], length):
                yield first, *rest


def _best(least: Array, most: Array, held: Array, receives: int, gives: int) -> list[tuple[Number, int]]:
    """Return who trades one type for another at the least rates, each with the rate before it."""
    able = np.flatnonzero(held[:, gives] & (most[:, receives] > 0) & (most[:, gives] > 0)).tolist()
    rates = ((least[i, gives] / most[i, receives] if most[i, receives] < INFINITY else Fraction(0), i) for i in able)
    return sorted(rates)[:BEST]


def _around(chain: list[list[tuple[Number, int]]]) -> tuple[Number, tuple[int, ...]]:
    """Return the least rate, and its users: one out of each list, neighbours being different ones; () for none."""
    best: tuple[Number, tuple[int, ...]] = (INFINITY, ())
    for rate, first in chain[0]:
        ways: list[tuple[Number, tuple[int, ...]]] = [(rate, (first,))]
        for able in chain[1:]:
            longer = ([(so_far * by, (*way, user)) for so_far, way in ways if way[-1] != user] for by, user in able)
            ways = [min(each, key=itemgetter(0)) for each in longer if each]
        best = min([way for way in ways if way[1][-1] != first] + [best], key=itemgetter(0))
    return best


def reached(market: Market, held: Array, cycle: tuple[Pair, ...]) -> tuple[Fraction, Array, tuple[Pair, ...]]:
    """Return how far around the stated speedups of an exact market it holds, given a ``cycle`` that pays further out.

    It holds within a part of the bounds; just beyond, at speedups (n, k) that are returned with it, a cycle pays.
    The part is a lower bound, exact up to `GRAIN`. Each step finds the part for one cycle, and the next cycle that pays
    within that.
    """
    inner: tuple[Pair, ...] | None = cycle
    part, beyond = Fraction(0), Fraction(1)
    while inner is not None:
        cycle, part = inner, Fraction(0)
        while beyond - part > GRAIN:
            middle = (part + beyond) / 2
            part, beyond = (part, middle) if _rate(market, cycle, middle) < 1 else (middle, beyond)
        least, most = (_inside(market, end, part) for end in market.ends)
        worst = worst_cycle(least, most, held, Fraction(1)) if part else None
        inner = None if worst is None else worst[1]
        beyond = part if inner else beyond
    return part, _corner(market, cycle, beyond), cycle


def _inside(market: Market, end: Array, part: Fraction) -> Array:
    finite = end < INFINITY
    inside = market.speedup + part * (np.where(finite, end, market.speedup) - market.speedup)
    return np.where(finite, inside, end)


def _legs(cycle: tuple[Pair, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield each user of a cycle, what it gives, and what it receives."""
    return ((user, gives, cycle[at - 1][1]) for at, (user, gives) in enumerate(cycle))


def _rate(market: Market, cycle: tuple[Pair, ...], part: Fraction) -> Number:
    least, most = (_inside(market, end, part) for end in market.ends)
    if any(most[user, receives] == INFINITY for user, _, receives in _legs(cycle)):
        return Fraction(0)
    rates = (least[user, gives] / most[user, receives] for user, gives, receives in _legs(cycle))
    return prod(rates, start=Fraction(1))


def _corner(market: Market, cycle: tuple[Pair, ...], part: Fraction) -> Array:
    """Return positive, finite speedups within a part of the bounds at which the cycle pays."""
    least, most = (_inside(market, end, part) for end in market.ends)
    power = 1
    while True:
        corner = market.speedup.copy()
        for user, gives, receives in _legs(cycle):
            corner[user, gives] = least[user, gives] or corner[user, gives] / 2**power
            top = most[user, receives]
            corner[user, receives] = corner[user, receives] * 2**power if top == INFINITY else top
        known = replace(market, speedup=corner, least=None, most=None)
        if _rate(known, cycle, Fraction(0)) < 1:
            return np.asarray(corner)
        power *= 2

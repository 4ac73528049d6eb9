"""The exact equilibrium near shares in floats: these tell who buys what, and that gives prices and spending."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.methods.eisenberg_gale.equilibrium import Equilibrium
from fairopt.methods.eisenberg_gale.forests import edges_of, forest_prices
from fairopt.methods.eisenberg_gale.money_flow import spend
from fairopt.problem import Market
from fairopt.program import INFINITY, Array

#: Two floats that differ by more than this part of themselves are different numbers: each is a quotient, rounded once.
APART = 1e-12
#: Prices in floats are off by no more than this part: they come of a chain of quotients, and sums over all users.
CHAINED = 1e-10
#: Between the smallest number to divide by and the largest quotient, floats have all of their digits.
SMALLEST, LARGEST = 1e-140, 1e140


def exact_equilibrium(market: Market, shares: Array) -> tuple[Equilibrium, Array] | None:
    """Return the exact equilibrium near the float ``shares`` (n, k), and its shares; None where none is found.

    The shares only suggest who buys what. A forest of those pairs gives the prices exactly: two types of one user stand
    in the ratio of its speedups, and in each tree the GPUs cost what its users have. Then it is checked exactly that
    no user has a better buy, and money is sent over the best buys until every budget is spent and every GPU paid for.
    Demands are ignored. Among several equilibria (prices and utilities are the same in all) the choice does not
    depend on the order of the users, and users with the same best buys get the same by weight.

    A float of the market is the fraction that it is. Floats only save exact work: they discard forests that are far
    from an equilibrium, and decide comparisons that no rounding can change.

    Source: the structure is that of Devanur, Papadimitriou, Saberi and Vazirani, J. ACM 2008, Sec. 3.
    """
    floats = market.as_(float)
    for edges in edges_of(floats, shares):
        if not _plausible(floats, edges):
            continue
        prices = forest_prices(market, edges, Fraction)
        bought = _bought(market, floats, prices)
        if bought is not None:
            return bought
    return None


def _plausible(floats: Market, edges: Array) -> bool:
    """Return False where, for certain, not all edges are best buys at the prices that they imply."""
    with np.errstate(all="ignore"):
        prices = forest_prices(floats, edges, float)
        wanted = (floats.speedup > 0) & (floats.capacity > 0)
        bang = np.where(wanted, floats.speedup / prices, 0.0)
    if not _safe(prices[prices > 0]) or not _safe(bang[wanted & (prices > 0)]):
        return True
    if (wanted & (prices == 0)).any():
        return False
    users, types = edges.T
    return bool((bang[users, types] >= bang.max(axis=1)[users] * (1 - CHAINED)).all())


def _safe(values: Array) -> bool:
    return bool(((values > SMALLEST) & (values < LARGEST)).all())


def _bought(market: Market, floats: Market, prices: Array) -> tuple[Equilibrium, Array] | None:
    """Return shares (n, k) that spend all budgets on best buys and pay for all GPUs; None where there are none."""
    on_sale = np.flatnonzero(prices > 0)
    free = (prices == 0) & (floats.capacity > 0)
    if (floats.speedup[:, free] > 0).any():
        return None
    best = _best_buys(market, floats, prices, on_sale)
    patterns, group = np.unique(best, axis=0, return_inverse=True)
    of_pattern = [tuple(np.flatnonzero(pattern).tolist()) for pattern in patterns]
    order = sorted(range(len(patterns)), key=of_pattern.__getitem__)
    wishes, members = [of_pattern[at] for at in order], [np.flatnonzero(group.reshape(-1) == at) for at in order]
    weights = [Fraction(weight) for weight in market.weight]
    budgets = [sum((weights[i] for i in each), Fraction(0)) for each in members]
    flow = spend(budgets, wishes, [prices[j] * Fraction(market.capacity[j]) for j in on_sale])
    if flow is None:
        return None
    nothing = Fraction(0)
    shares, spending = np.full(market.shape, nothing, dtype=object), np.full(market.shape, nothing, dtype=object)
    for users, wish, budget, row in zip(members, wishes, budgets, flow, strict=True):
        for place in wish:
            if row[place]:
                j, part = on_sale[place], row[place] / budget
                for i in users:
                    spending[i, j] = weights[i] * part
                    shares[i, j] = spending[i, j] / prices[j]
    worth = prices.copy()
    for j in np.flatnonzero(floats.capacity == 0):  # nobody can buy those: they cost the most that anybody would pay
        offers = (
            Fraction(market.speedup[i, j])
            * prices[(at := on_sale[np.argmax(best[i])])]
            / Fraction(market.speedup[i, at])
            for i in np.flatnonzero(floats.speedup[:, j] > 0)
        )
        worth[j] = max(offers, default=nothing)
    return Equilibrium(worth, np.array(weights, dtype=object), spending), shares


def _best_buys(market: Market, floats: Market, prices: Array, on_sale: Array) -> Array:
    """Return for each user which of the types on sale give it most for its money (n, types on sale), exactly."""
    top = max(prices[on_sale])
    relative = np.array([float(prices[j] / top) for j in on_sale])
    table = floats.speedup[:, on_sale]
    unit = table.max(axis=1, keepdims=True)
    if _safe(relative) and _safe(unit) and _safe(table[table > 0]):
        bang = table / relative
        near = bang >= bang.max(axis=1, keepdims=True) * (1 - APART)
    else:
        near = table > 0
    for i in np.flatnonzero(near.sum(axis=1) > 1):
        places = np.flatnonzero(near[i])
        exact = [Fraction(market.speedup[i, on_sale[place]]) / prices[on_sale[place]] for place in places]
        near[i, places] = [value == max(exact) for value in exact]
    return np.asarray(near)


def keeps_demands(market: Market, shares: Array) -> bool:
    """Return whether exact ``shares`` (n, k) keep to the demands of ``market``."""
    limited = np.flatnonzero(market.limit < INFINITY)
    return all(sum(shares[i], Fraction(0)) <= Fraction(market.limit[i]) for i in limited)

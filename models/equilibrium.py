"""Competitive equilibrium from equal incomes: the proof that shares maximise Nash welfare, and how to get it exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.models.money_flow import spend
from fairopt.problem import Market
from fairopt.program import Array, Number

#: Float noise: a slack or a spending below this tells nothing about whether an edge is used.
NOISE = 1e-15


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Prices at which every user, with its weight as its budget, can buy nothing better than its shares.

    Shapes: ``prices`` (k,) of one GPU of each type, in money of which a user has its weight; ``budgets`` (n,);
    ``spending`` (n, k) money of each user on each type. ``rents`` (n,), where some demand binds, is what a user would
    pay for the right to use one more GPU; None where none does. The price of a type without GPUs is the most that
    anybody would pay for one.

    The conditions in `violations` are those of Karush, Kuhn and Tucker for the concave program of Eisenberg and Gale,
    so shares that violate none of them maximise Nash welfare.

    Source: Eisenberg and Gale 1959; Varian 1974 (equal incomes).
    """

    prices: Array
    budgets: Array
    spending: Array
    rents: Array | None = None

    @classmethod
    def of(cls, market: Market, shares: Array, rents: Array | None = None) -> Equilibrium:
        """Return the equilibrium that belongs to these shares; whether it is one, `violations` says.

        The price of a type is the most that anybody would pay at the margin, w_i v_ij / u_i, less the user's rent.
        """
        market = market.as_(Fraction if shares.dtype == object else float)
        pays = market.speedup * (market.weight / (market.speedup * shares).sum(axis=1))[:, None]
        net = pays if rents is None else np.maximum(pays - rents[:, None], 0)
        prices = net.max(axis=0)
        return cls(prices, market.weight, shares * prices, rents)

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.prices.dtype == object

    def violations(self, market: Market, shares: Array, tolerance: Number = 0) -> list[str]:
        """Return what keeps ``shares`` at these prices from being an equilibrium; empty where nothing does.

        No solver is asked. In Fractions a tolerance of 0 is a proof; in floats give one, relative to what there is.
        """
        number = Fraction if self.exact else float
        market = market.as_(number)
        found: list[str] = []
        utility = (market.speedup * shares).sum(axis=1)
        rents = self.budgets * 0 if self.rents is None else self.rents
        unequal = np.abs(self.budgets - market.weight) > tolerance * market.weight
        unbought = np.abs(self.spending - shares * self.prices) > tolerance * market.weight[:, None]
        _report(found, unequal, "{} has another budget than its weight", market.users)
        _report(found, unbought, "{} on {}: spending is not price times shares", market.users, market.types)
        _report(found, shares < 0, "{} on {}: negative shares", market.users, market.types)
        _report(found, self.prices < 0, "{} has a negative price", market.types)
        _report(found, rents < 0, "{} has a negative rent", market.users)
        rest = market.capacity - shares.sum(axis=0)
        _report(found, rest < -tolerance * market.capacity, "{} is overbooked", market.types)
        money = self.budgets.sum()
        _report(found, np.abs(rest * self.prices) > tolerance * money, "{} has a price, but some is left", market.types)
        limited = market.limit < market.capacity.sum()
        limit = np.where(limited, market.limit, 0)
        room = np.where(limited, limit - shares.sum(axis=1), 0)
        _report(found, limited & (room < -tolerance * limit), "{} is over its demand", market.users)
        unpaid = np.where(limited, np.abs(room * rents) > tolerance * self.budgets, rents != 0)
        _report(found, unpaid, "{} has a rent, but is not at its demand", market.users)
        _report(found, utility <= 0, "{} gets nothing", market.users)
        # w_i v_ij <= u_i (p_j + q_i), with equality where i holds any of j
        worth, cost = market.speedup * self.budgets[:, None], (self.prices + rents[:, None]) * utility[:, None]
        scale = worth.max(axis=1, keepdims=True) * tolerance
        _report(found, worth > cost + scale, "{} would rather buy {}", market.users, market.types)
        overpaid = (cost - worth) * shares > scale * market.capacity
        _report(found, overpaid, "{} holds {}, which is not its best buy", market.users, market.types)
        return found


def exact_equilibrium(market: Market, shares: Array) -> tuple[Equilibrium, Array] | None:
    """Return the exact equilibrium near the float ``shares`` (n, k), and its shares; None where none is found.

    The shares only suggest who buys what. A forest of those pairs gives the prices exactly: two types of one user stand
    in the ratio of its speedups, and in each tree the GPUs cost what its users have. Then it is checked exactly that
    no user has a better buy, and money is sent over the best buys until every budget is spent and every GPU paid for.
    Demands are not looked at. Among several equilibria (prices and utilities are the same in all) the choice does not
    depend on the order of the users, and users with the same best buys get the same by weight.

    Source: the structure is that of Devanur, Papadimitriou, Saberi and Vazirani, J. ACM 2008, Sec. 3.
    """
    market = market.as_(Fraction)
    for edges in _forests(market, shares):
        prices = _forest_prices(market, edges)
        if prices is None:
            continue
        bought = _bought(market, prices)
        if bought is not None:
            return Equilibrium.of(market, bought), bought
    return None


def _forests(market: Market, shares: Array) -> Iterator[list[tuple[int, int]]]:
    """Yield forests of pairs (user, type) that may carry all spending, the likeliest first.

    Pairs are taken by how much is spent on them over how much worse than the best buy they are, as Kruskal does. Each
    tree has a user and a type, so there are at most min(n, k) places where the list of edges can end.
    """
    floats = market.as_(float)
    usable = (floats.speedup > 0) & (floats.capacity > 0)
    shares = np.where(usable, np.maximum(shares.astype(float), 0.0), 0.0)
    utility = (floats.speedup * shares).sum(axis=1)
    if not (utility > 0).all():
        return
    marginal = np.where(usable, floats.speedup * (floats.weight / utility)[:, None], 0.0)
    prices = np.maximum(marginal.max(axis=0), NOISE**2)
    spent = shares * prices / np.minimum.outer(floats.weight, np.maximum(prices * floats.capacity, NOISE**2))
    key = np.where(usable, (spent + NOISE) / (1 - marginal / prices + NOISE), -1.0)
    n, k = market.shape
    tree = list(range(n + k))

    def root(node: int) -> int:
        while tree[node] != node:
            tree[node] = tree[tree[node]]
            node = tree[node]
        return node

    chosen: list[tuple[int, int]] = []
    keys: list[float] = []
    for flat in np.argsort(-key, axis=None, kind="stable")[: int(usable.sum())]:
        i, j = divmod(int(flat), k)
        a, b = root(i), root(n + j)
        if a != b:
            tree[a] = b
            chosen.append((i, j))
            keys.append(float(key[i, j]))
    # until every user and every type has an edge the list cannot end
    seen = [len({i for i, _ in chosen[:end]}) + len({j for _, j in chosen[:end]}) for end in range(len(chosen) + 1)]
    ends = [end for end in range(1, len(chosen) + 1) if seen[end] == seen[-1]]
    gap = {end: keys[end - 1] / (keys[end] if end < len(keys) else 1.0) for end in ends}
    for end in sorted(ends, key=lambda end: -gap[end]):
        yield chosen[:end]


def _forest_prices(market: Market, edges: list[tuple[int, int]]) -> Array | None:
    """Return the prices (k,) that a forest implies, 0 for types outside of it."""
    n, k = market.shape
    users_of: list[list[int]] = [[] for _ in range(k)]
    types_of: list[list[int]] = [[] for _ in range(n)]
    for i, j in edges:
        users_of[j].append(i)
        types_of[i].append(j)
    prices = np.full(k, Fraction(0), dtype=object)
    for first in range(k):
        if prices[first] or not users_of[first]:
            continue
        prices[first] = Fraction(1)
        tree, buyers, waiting = [first], set[int](), [first]
        while waiting:
            j = waiting.pop()
            for i in users_of[j]:
                if i in buyers:
                    continue
                buyers.add(i)
                for other in types_of[i]:
                    if other != j:
                        prices[other] = prices[j] * market.speedup[i, other] / market.speedup[i, j]
                        tree.append(other)
                        waiting.append(other)
        level = sum(market.weight[i] for i in buyers) / sum(prices[j] * market.capacity[j] for j in tree)
        for j in tree:
            prices[j] *= level
    return prices


def _bought(market: Market, prices: Array) -> Array | None:
    """Return shares (n, k) that spend all budgets on best buys and pay for all GPUs; None where there are none."""
    on_sale = [int(j) for j in np.flatnonzero(prices > 0)]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(market.speedup):
        if any(row[j] and market.capacity[j] for j in range(len(row)) if not prices[j]):
            return None
        bang = [row[j] / prices[j] for j in on_sale]
        best = max(bang)
        groups.setdefault(tuple(place for place, value in enumerate(bang) if value == best), []).append(i)
    wishes = sorted(groups)
    budgets = [sum((market.weight[i] for i in groups[wish]), Fraction(0)) for wish in wishes]
    flow = spend(budgets, wishes, [prices[j] * market.capacity[j] for j in on_sale])
    if flow is None:
        return None
    shares = np.full(market.shape, Fraction(0), dtype=object)
    for wish, budget, row in zip(wishes, budgets, flow, strict=True):
        for place in wish:
            j = on_sale[place]
            for i in groups[wish]:
                shares[i, j] = market.weight[i] / budget * row[place] / prices[j]
    return shares


def _report(found: list[str], broken: Array, text: str, *names: tuple[str, ...]) -> None:
    for place in np.argwhere(np.asarray(broken, dtype=bool)):
        found.append(text.format(*(name[int(at)] for name, at in zip(names, place, strict=True))))

"""The exact equilibrium near shares in floats: forests of who buys what, their prices, and a flow of money."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from fairopt.deadline import left
from fairopt.methods.eisenberg_gale.bounds import Equilibrium
from fairopt.numbers import FLOATS, RATIONALS, Arithmetic
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, cast

#: A slack or a spending below this is rounding, and says nothing about whether an edge is used.
NOISE = 1e-15
#: Two floats that differ by more than this part of themselves are different numbers: each is a quotient, rounded once.
APART = 1e-12
#: Prices in floats are off by no more than this part: they come of a chain of quotients, and sums over all users.
CHAINED = 1e-10
#: Between the smallest number to divide by and the largest quotient, floats have all of their digits.
SMALLEST, LARGEST = 1e-140, 1e140


def spend(
    budgets: Sequence[Fraction], wishes: Sequence[Sequence[int]], values: Sequence[Fraction]
) -> list[list[Fraction]] | None:
    """Return who spends how much on what (groups, goods), so that all budgets are spent and all goods are paid for.

    Group g has ``budgets[g]`` and buys goods ``wishes[g]`` only; good j costs ``values[j]`` in all. None where it
    cannot be done. The answer is a function of the arguments: shortest augmenting paths, in their order.

    Source: Edmonds and Karp 1972.
    """
    if sum(budgets) != sum(values):
        return None
    unit = lcm(*(number.denominator for number in (*budgets, *values)))
    purse = [int(amount * unit) for amount in budgets]
    unpaid = [int(amount * unit) for amount in values]
    flow = [[0] * len(values) for _ in budgets]
    payers: list[list[int]] = [[] for _ in values]  # of each good: the groups that spend on it, in their order
    for group in range(len(purse)):
        while purse[group]:
            path = _path(group, wishes, payers, unpaid)
            if path is None:
                return None
            # forward over (path[0], path[1]), back over (path[2], path[1]), forward over (path[2], path[3]), ...
            goods, groups = path[1::2], path[0::2]
            back = [flow[g][j] for g, j in zip(groups[1:], goods[:-1], strict=True)]
            amount = min(purse[group], unpaid[goods[-1]], *back)
            for g, j in zip(groups, goods, strict=True):
                if not flow[g][j]:
                    insort(payers[j], g)
                flow[g][j] += amount
            for g, j in zip(groups[1:], goods[:-1], strict=True):
                flow[g][j] -= amount
                if not flow[g][j]:
                    payers[j].remove(g)
            purse[group] -= amount
            unpaid[goods[-1]] -= amount
    nothing = Fraction(0)
    return [[Fraction(amount, unit) if amount else nothing for amount in row] for row in flow]


def _path(start: int, wishes: Sequence[Sequence[int]], payers: list[list[int]], unpaid: list[int]) -> list[int] | None:
    """Return a shortest path group, good, group, ..., good from ``start`` to a good that is not paid for."""
    reached_by: dict[int, int] = {}  # good: the group that reaches it
    frees: dict[int, int] = {start: -1}  # group: the good that it would give back
    waiting = deque([start])
    while waiting:
        group = waiting.popleft()
        for good in wishes[group]:
            if good in reached_by:
                continue
            reached_by[good] = group
            if unpaid[good]:
                path = [good]
                while good >= 0:
                    path += [reached_by[good], frees[reached_by[good]]]
                    good = path[-1]
                return path[-2::-1]
            for other in payers[good]:
                if other not in frees:
                    frees[other] = good
                    waiting.append(other)
    return None


def edges_of(floats: Market, shares: Array) -> Iterator[Array]:
    """Yield forests of pairs (user, type) that may carry all spending (edges, 2), the likeliest first.

    Pairs are added, as in Kruskal's algorithm, in the order of how much is spent on them over how much worse than the
    best buy they are. Each tree has a user and a type, so there are at most min(n, k) places where the list of edges
    can end.
    """
    usable = (floats.speedup > 0) & (floats.capacity > 0)
    shares = np.where(usable, np.maximum(shares.astype(float), 0.0), 0.0)
    # in units of a user's best type, since speedups may be so small that what a unit of theirs costs is beyond floats
    best = np.where(usable, floats.speedup, 0.0).max(axis=1, keepdims=True)
    speed = np.divide(floats.speedup, best, out=np.zeros(shares.shape), where=usable)
    utility = (speed * shares).sum(axis=1)
    if not (utility > 0).all():
        return
    marginal = speed * (floats.weight / utility)[:, None]
    prices = np.maximum(marginal.max(axis=0), NOISE**2)
    spent = shares * prices / np.minimum.outer(floats.weight, np.maximum(prices * floats.capacity, NOISE**2))
    key = np.where(usable, (spent + NOISE) / (1 - marginal / prices + NOISE), -1.0)
    edges = _spanning(key, int(usable.sum()))
    keys = key[edges[:, 0], edges[:, 1]]
    # until every user and every type has an edge the list cannot end
    covered = 1 + max(int(np.unique(side, return_index=True)[1].max()) for side in edges.T)
    gap = keys / np.append(keys[1:], 1.0)
    for end in sorted(range(covered, len(edges) + 1), key=lambda end: -gap[end - 1]):
        yield edges[:end]


def _spanning(key: Array, usable: int) -> Array:
    """Return the edges (edges, 2) of a spanning forest of largest keys, in falling order of these."""
    n, k = key.shape
    order = np.argsort(-key, axis=None, kind="stable")[:usable]
    first = [-1] * n  # the type of a user's first edge, which is in the user's tree from then on
    tree = list(range(k))
    chosen: list[tuple[int, int]] = []
    for flat in order.tolist():
        i, j = divmod(flat, k)
        if first[i] < 0:
            first[i] = j
        elif tree[first[i]] != tree[j]:
            old, new = tree[first[i]], tree[j]
            tree = [new if each == old else each for each in tree]
        else:
            continue
        chosen.append((i, j))
    return np.array(chosen)


def forest_prices(market: Market, edges: Array, number: Arithmetic) -> Array:
    """Return the prices (k,) that a forest implies, in ``number``; 0 for types outside of it."""
    n, k = market.shape
    users, types = edges.T
    ties = np.bincount(users, minlength=n)[users] > 1
    links: list[list[tuple[int, int]]] = [[] for _ in range(k)]  # of each type: the others that a user ties to it
    of_user: dict[int, list[int]] = {}
    for i, j in edges[ties].tolist():
        of_user.setdefault(i, []).append(j)
    for i, tied in of_user.items():
        for j in tied:
            links[j] += [(i, other) for other in tied if other != j]
    tree = np.full(k, -1)
    prices = number.zeros(k)
    for root in sorted(set(types.tolist())):
        if tree[root] >= 0:
            continue
        tree[root], prices[root], waiting = root, number(1), [root]
        while waiting:
            j = waiting.pop()
            for i, other in links[j]:
                if tree[other] < 0:
                    tree[other] = root
                    ratio = number(market.speedup[i, other]) / number(market.speedup[i, j])
                    prices[other] = prices[j] * ratio
                    waiting.append(other)
    home = np.full(n, -1)
    home[users] = tree[types]
    for root in sorted({each for each in tree.tolist() if each >= 0}):
        goods = np.flatnonzero(tree == root)
        money = number(_total(market.weight[home == root]))
        prices[goods] *= money / sum((prices[j] * number(market.capacity[j]) for j in goods), number(0))
    return prices


def exact_equilibrium(market: Market, shares: Array, *, rounded: bool = False) -> tuple[Equilibrium, Array] | None:
    """Return the exact equilibrium near the float ``shares`` (n, k), and its shares; None where none is found.

    Both are ``rounded`` to floats where that is asked for.

    The shares only suggest who buys what. A forest of those pairs gives the prices exactly: two types of one user stand
    in the ratio of its speedups, and in each tree the GPUs cost what its users have. Then it is checked exactly that
    no user has a better buy, and money is sent over the best buys until every budget is spent and every GPU paid for.
    Demands are ignored. Among several equilibria (prices and utilities are the same in all) the choice does not
    depend on the order of the users, and users with the same best buys get the same by weight.

    A float of the market is the fraction that it is. Floats only save exact work: they discard forests that are far
    from an equilibrium, and decide comparisons that no rounding can change.

    Source: the structure is that of Devanur, Papadimitriou, Saberi and Vazirani, J. ACM 2008, Sec. 3.

    >>> equilibrium, shares = exact_equilibrium(Market.of([[1, 2], [1, 5]], [1, 1]), np.array([[1.0, 0.2], [0.0, 0.8]]))
    >>> shares.tolist()
    [[Fraction(1, 1), Fraction(1, 4)], [Fraction(0, 1), Fraction(3, 4)]]
    """
    floats = market.as_(float)
    for edges in edges_of(floats, shares):
        left()
        if not _plausible(floats, edges):
            continue
        prices = forest_prices(market, edges, RATIONALS)
        bought = _bought(market, floats, prices, rounded=rounded)
        if bought is not None:
            return bought
    return None


def _total(weights: Array) -> Fraction:
    """Return the exact sum of weights, of which many may be alike."""
    return sum((Fraction(each) * count for each, count in Counter(weights.tolist()).items()), Fraction(0))


def _plausible(floats: Market, edges: Array) -> bool:
    """Return False where, for certain, not all edges are best buys at the prices that they imply."""
    users, types = edges.T
    if not _safe(floats.speedup[users, types]):
        return True
    with np.errstate(all="ignore"):
        prices = forest_prices(floats, edges, FLOATS)
        wanted = (floats.speedup > 0) & (floats.capacity > 0)
        bang = np.where(wanted, floats.speedup / prices, 0.0)
    if not _safe(prices[prices > 0]) or not _safe(bang[wanted & (prices > 0)]):
        return True
    if (wanted & (prices == 0)).any():
        return False
    return bool((bang[users, types] >= bang.max(axis=1)[users] * (1 - CHAINED)).all())


def _safe(values: Array) -> bool:
    return bool(((values > SMALLEST) & (values < LARGEST)).all())


def _bought(market: Market, floats: Market, prices: Array, *, rounded: bool) -> tuple[Equilibrium, Array] | None:
    """Return shares (n, k) that spend all budgets on best buys and pay for all GPUs; None where there are none.

    What is returned, but nothing before, may be ``rounded`` to floats.
    """
    on_sale = np.flatnonzero(prices > 0)
    free = (prices == 0) & (floats.capacity > 0)
    if (floats.speedup[:, free] > 0).any():
        return None
    best = _best_buys(market, floats, prices, on_sale)
    alike: dict[bytes, list[int]] = {}
    for i, pattern in enumerate(best):
        alike.setdefault(pattern.tobytes(), []).append(i)
    by_wish = sorted((np.flatnonzero(best[users[0]]).tolist(), users) for users in alike.values())
    wishes, members = [wish for wish, _ in by_wish], [np.array(users) for _, users in by_wish]
    budgets = [_total(market.weight[each]) for each in members]
    flow = spend(budgets, wishes, [prices[j] * Fraction(market.capacity[j]) for j in on_sale])
    if flow is None:
        return None
    nothing, number = Fraction(0), (float if rounded else Fraction)
    weights = cast(market.weight, number)
    shares, spending = (np.full(market.shape, number(0), dtype=weights.dtype) for _ in range(2))
    for users, wish, budget, row in zip(members, wishes, budgets, flow, strict=True):
        for place in wish:
            j = on_sale[place]
            if row[place] and len(users) == 1 and not rounded:  # the only one, who pays all
                spending[users, j], shares[users, j] = row[place], row[place] / prices[j]
            elif row[place]:
                part = row[place] / budget
                spending[users, j] = weights[users] * number(part)
                shares[users, j] = weights[users] * number(part / prices[j])
    worth = prices.copy()
    for j in np.flatnonzero(floats.capacity == 0):  # nobody can buy those: they cost the most that anybody would pay
        offers = (
            Fraction(market.speedup[i, j])
            * prices[(at := on_sale[np.argmax(best[i])])]
            / Fraction(market.speedup[i, at])
            for i in np.flatnonzero(floats.speedup[:, j] > 0)
        )
        worth[j] = max(offers, default=nothing)
    return Equilibrium(cast(worth, number), weights, spending), shares


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

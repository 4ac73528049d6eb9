"""Who buys what in an equilibrium: forests of pairs (user, type), read off shares in floats, and their prices."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array

#: A slack or a spending below this is rounding, and says nothing about whether an edge is used.
NOISE = 1e-15


def edges_of(floats: Market, shares: Array) -> Iterator[Array]:
    """Yield forests of pairs (user, type) that may carry all spending (edges, 2), the likeliest first.

    Pairs are added, as in Kruskal's algorithm, in the order of how much is spent on them over how much worse than the
    best buy they are. Each tree has a user and a type, so there are at most min(n, k) places where the list of edges
    can end.
    """
    usable = (floats.speedup > 0) & (floats.capacity > 0)
    shares = np.where(usable, np.maximum(shares.astype(float), 0.0), 0.0)
    utility = (floats.speedup * shares).sum(axis=1)
    if not (utility > 0).all():
        return
    marginal = np.where(usable, floats.speedup * (floats.weight / utility)[:, None], 0.0)
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


def forest_prices(market: Market, edges: Array, number: type[Fraction] | type[float]) -> Array:
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
    prices = np.full(k, number(0), dtype=object if number is Fraction else float)
    for root in np.unique(types).tolist():
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
    for root in np.unique(tree[tree >= 0]).tolist():
        goods = np.flatnonzero(tree == root)
        money = sum((number(weight) for weight in market.weight[home == root]), number(0))
        prices[goods] *= money / sum((prices[j] * number(market.capacity[j]) for j in goods), number(0))
    return prices

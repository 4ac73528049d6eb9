"""What a bundle is worth to one user, by the bare definition."""

from __future__ import annotations

from fairopt.problem.market import Market
from fairopt.program import INFINITY, Array, Number


def worth(market: Market, user: int, bundle: Array) -> Number:
    """Return the throughput of a bundle (k,) to one user, by the bare definition, to check `Market.utility` against.

    >>> print(worth(Market.of([[1, 3]], capacity=[2, 1], demand=[2]), 0, [2, 1]))
    4
    """
    left = INFINITY if market.demand is None else market.demand[user]
    total: Number = 0
    for speedup, held in sorted(zip(market.speedup[user], bundle, strict=True), key=lambda pair: -pair[0]):
        used = min(held, left)
        total += speedup * used
        left -= max(0, used)
    return total

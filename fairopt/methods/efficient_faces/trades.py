"""Trades in a circle: shares are Pareto-efficient if and only if none of these improves them.

In such a trade user i(t) gives some of a type j(t) that it holds to user i(t + 1), for all t around the circle, and

    prod_t v[i(t + 1), j(t)] > prod_t v[i(t), j(t)].

With the right amounts nobody loses by it and somebody gains. Where there is none, the largest products along paths are
weights of a sum of throughputs that the shares maximise, so that they are Pareto-efficient. All GPUs that somebody can
use must be given out, and to users that can use them, and there are no demands: these would allow other trades.

Source: Varian, Equity, Envy, and Efficiency, 1974; for divisible goods Bogomolnaia, Moulin, Sandomirskiy and
Yanovskaya, Competitive Division of a Mixed Manna, Econometrica 2017, Sec. 3.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.program import Array

#: A user and a type of GPU that it holds.
Pair = tuple[int, int]
#: What one unit becomes on a path of trades, and who gives what on it.
_Path = tuple[Fraction, tuple[Pair, ...]]


def improving_circle(speedup: Array, shares: Array) -> tuple[Pair, ...] | None:
    """Return who gives what in a trade in a circle that improves ``shares`` (n, k), None where there is none.

    Of all improving circles it is one of the shortest, and of these the one that improves most. Numbers are exact.

    >>> speedup, shares = np.array([[1, 2], [1, 5]]), np.array([[0, 1], [1, 0]])
    >>> improving_circle(speedup, shares)
    ((1, 0), (0, 1))
    """
    found = _paths(speedup, shares)
    return found if isinstance(found, tuple) else None


def efficient_weights(speedup: Array, shares: Array) -> Array | None:
    """Return positive weights (n,) of a sum of throughputs that ``shares`` (n, k) maximise; None where there are none.

    The largest product from a type is its price, and the weight of a user what it pays for its throughput at least.

    >>> speedup = np.array([[1, 2], [1, 5]])
    >>> efficient_weights(speedup, np.array([[1, 1], [0, 1]])).tolist()
    [Fraction(1, 1), Fraction(2, 5)]
    """
    found = _paths(speedup, shares)
    if isinstance(found, tuple):
        return None
    price = [max(found.get((j, other), Fraction(0)) for other in range(len(speedup.T))) for j in range(len(speedup.T))]
    least = [min(price[j] / Fraction(row[j]) for j in np.flatnonzero(row)) for row in speedup]
    return np.array(least, dtype=object)


def _paths(speedup: Array, shares: Array) -> tuple[Pair, ...] | dict[tuple[int, int], Fraction]:
    """Return an improving circle, or else the largest product on a path from each type to each other.

    A step from type j to another is a user that gets some of j for some of the other, which it holds.
    """
    types = range(len(speedup.T))
    steps: dict[int, dict[int, tuple[Fraction, int]]] = {j: {} for j in types}
    for i, held in np.argwhere(shares > 0).tolist():
        for j in types:
            rate = Fraction(speedup[i, j]) / speedup[i, held]
            if j != held and rate > steps[j].get(held, (0, 0))[0]:
                steps[j][held] = rate, i
    best = {(j, j): Fraction(1) for j in types}
    paths: dict[tuple[int, int], _Path] = {(j, j): (Fraction(1), ()) for j in types}
    for _ in types:
        longer: dict[tuple[int, int], _Path] = {}
        for (j, at), (so_far, pairs) in paths.items():
            for held, (rate, i) in steps[at].items():
                product = so_far * rate
                if product > best.get((j, held), 0) and product > longer.get((j, held), (0,))[0]:
                    longer[j, held] = product, (*pairs, (i, held))
        circles = [longer[j, j] for j in types if (j, j) in longer]
        if circles:
            return max(circles)[1]
        paths = longer
        best |= {ends: product for ends, (product, _) in longer.items()}
    return best

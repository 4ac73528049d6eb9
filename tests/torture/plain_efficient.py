"""The best allocation without envy that is Pareto-efficient, by trying all ways in which users may hold types.

An allocation is efficient where some positive weights of users and prices of types make every GPU that is held worth
its price, and none worth more (Varian 1974); so it matters only who holds which types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

from plain_lp import NoPoint, Row, at_least, exactly, largest
from plain_market import NOTHING, Given, held, rows, table, times, utilities
from plainly import apart, envious, total

#: So many speedups, and all ways are tried.
MOST = 6
ONE = Fraction(1)


def gain_for_all(market: Given, own: Sequence[Fraction]) -> Fraction:
    """Return how much more users could have than their ``own``, in parts of what all GPUs are worth, if none loses."""
    kept = [at_least(held(market, i), own[i]) for i in market.users]
    whole = [times(row, market.capacity) for row in market.speedup]
    gain = {key: rate / whole[i] for i in market.users for key, rate in held(market, i).items()}
    return largest(gain, [*rows(market), *kept]).value - sum(u / w for u, w in zip(own, whole, strict=True))


def best_efficient(market: Given) -> Fraction:
    """Return the largest total of all allocations without envy that are Pareto-efficient."""
    found = []
    for holds in _ways(market):
        nothing = [Row({(i, j): ONE}, NOTHING) for i in market.users for j in market.types if (i, j) not in holds]
        all_out = [
            row
            for j in market.types
            if any(market.speedup[i][j] for i in market.users)
            for row in exactly({(i, j): ONE for i in market.users if market.speedup[i][j]}, market.capacity[j])
        ]
        try:
            found.append(largest(total(market), [*rows(market), *nothing, *all_out, *envious(market)]).value)
        except NoPoint:
            continue
    return max(found)


def _ways(market: Given) -> Iterator[set[tuple[int, int]]]:
    """Yield who may hold which types, of all ways that are efficient."""
    columns = []
    for j in market.types:
        able = [i for i in market.users if market.speedup[i][j] > 0]
        columns.append([some for size in range(1, len(able) + 1) for some in combinations(able, size)] or [()])
    for chosen in product(*columns):
        holds = {(i, j) for j, some in enumerate(chosen) for i in some}
        if _efficient(market, holds):
            yield holds


def _efficient(market: Given, holds: set[tuple[int, int]]) -> bool:
    terms = {
        (i, j): {("weight", i): market.speedup[i][j], ("price", j): -ONE} for i in market.users for j in market.types
    }
    prices = [Row(each, NOTHING) for each in terms.values()] + [at_least(terms[key], NOTHING) for key in holds]
    weights = [at_least({("weight", i): ONE}, ONE) for i in market.users]
    try:
        largest({}, [*prices, *weights])
    except NoPoint:
        return False
    return True


def efficient(market: Given, found: Any) -> Fraction:
    """Return how far a decision of efficient OEF is off: envy, gains that are left, a bound that does not hold."""
    shares = table(found.shares)
    own, upper = utilities(market, shares), Fraction(found.solution.upper)
    off = [gain_for_all(market, own), max(NOTHING, sum(own) - upper), apart(Fraction(found.objective), sum(own))]
    for i, other in permutations(market.users, 2):
        scale = market.weight[i] / market.weight[other]
        off.append(max(NOTHING, scale * times(market.speedup[i], shares[other]) - own[i]))
    if len(market.users) * len(market.capacity) <= MOST:
        off.append(max(NOTHING, best_efficient(market) - upper))
    return max(off)

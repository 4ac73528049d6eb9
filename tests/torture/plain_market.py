"""A market as bare lists of Fractions, and what shares are worth there, written down anew from the papers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any, NamedTuple

from plain_lp import Row, Terms, at_least

Table = Sequence[Sequence[Fraction]]
NOTHING = Fraction(0)


class Given(NamedTuple):
    """What is given of a market; ``limit`` and entries of ``most`` are None where there is none.

    ``least`` and ``most``: between which speedups lie. ``floor`` and ``cap``: what each user holds of a type at least
    and at most; ``together``: members, a type, and what they hold of it at most.
    """

    speedup: Table
    capacity: Sequence[Fraction]
    weight: Sequence[Fraction]
    limit: Sequence[Fraction | None]
    least: Table | None = None
    most: Sequence[Sequence[Fraction | None]] | None = None
    floor: Table | None = None
    cap: Sequence[Sequence[Fraction | None]] | None = None
    together: Sequence[tuple[Sequence[int], int, Fraction]] = ()

    @property
    def users(self) -> range:
        """All users."""
        return range(len(self.speedup))

    @property
    def types(self) -> range:
        """All types."""
        return range(len(self.capacity))

    def without(self, user: int) -> Given:
        """Return the market without a user."""
        rest = [i for i in self.users if i != user]
        return Given(
            [self.speedup[i] for i in rest],
            self.capacity,
            [self.weight[i] for i in rest],
            [self.limit[i] for i in rest],
        )

    def corners(self, user: int) -> list[list[Fraction]]:
        """Return the speedups of a user at all ends of its bounds; an end that is infinite is left out."""
        if self.least is None or self.most is None:
            return [list(self.speedup[user])]
        ends = zip(self.least[user], self.most[user], strict=True)
        return [list(each) for each in product(*({low, low if high is None else high} for low, high in ends))]


def given(
    speedup: Any, capacity: Any, weight: Any = None, limit: Any = None, least: Any = None, most: Any = None
) -> Given:
    """Return what is given, each float as the fraction that it is, infinity as None."""
    ones = [1] * len(speedup)
    return Given(
        [[Fraction(v) for v in row] for row in speedup],
        [Fraction(m) for m in capacity],
        [Fraction(w) for w in (ones if weight is None else weight)],
        [None] * len(ones) if limit is None else [_finite(d) for d in limit],
        None if least is None else [[Fraction(v) for v in row] for row in least],
        None if most is None else [[_finite(v) for v in row] for row in most],
    )


def of(market: Any) -> Given:
    """Return what a market of fairopt holds in its arrays: speedups, capacities, weights, demands, bounds."""
    told = market.least is not None
    least, most = (market.least.tolist(), market.most.tolist()) if told else (None, None)
    demand = None if market.demand is None else market.demand.tolist()
    return given(market.speedup.tolist(), market.capacity.tolist(), market.weight.tolist(), demand, least, most)


def _finite(value: Any) -> Fraction | None:
    return None if value is None or value == inf else Fraction(value)


def table(shares: Any) -> list[list[Fraction]]:
    """Return shares as Fractions."""
    return [[Fraction(x) for x in row] for row in shares.tolist()]


# -- what bundles are worth ------------------------------------------------------------------------------------------
def used(market: Given, user: int, bundle: Sequence[Fraction]) -> list[Fraction]:
    """Return which GPUs of a bundle a user uses: the fastest, as many as it demands."""
    left, found = market.limit[user], [NOTHING for _ in bundle]
    for j in sorted(market.types, key=lambda j: -market.speedup[user][j]):
        if market.speedup[user][j] > 0:
            found[j] = bundle[j] if left is None else min(bundle[j], left)
            left = None if left is None else left - found[j]
    return found


def worth(market: Given, user: int, bundle: Sequence[Fraction]) -> Fraction:
    """Return the throughput of a user from a bundle."""
    return times(market.speedup[user], used(market, user, bundle))


def times(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """Return the sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), NOTHING)


def part(market: Given, user: int) -> list[Fraction]:
    """Return the user's own partition: its weight's part of every type."""
    return [m * market.weight[user] / sum(market.weight) for m in market.capacity]


def utilities(market: Given, shares: Table) -> list[Fraction]:
    """Return each user's throughput from all that it holds."""
    return [times(row, held) for row, held in zip(market.speedup, shares, strict=True)]


# -- what shares may be ----------------------------------------------------------------------------------------------
def held(market: Given, user: int, rate: Sequence[Fraction] | None = None) -> Terms:
    """Return the sum of ``rate`` (its speedups) times what a user holds, where it can run."""
    rates = market.speedup[user] if rate is None else rate
    return {(user, j): rates[j] for j in market.types if market.speedup[user][j] > 0}


def rows(market: Given) -> list[Row]:
    """Return capacities, demands, floors and caps, as rows for shares (i, j)."""
    one = [Fraction(1)] * len(market.capacity)
    runs = [held(market, i, one) for i in market.users]
    found = [Row({(i, j): one[0] for i in market.users if (i, j) in runs[i]}, market.capacity[j]) for j in market.types]
    found += [Row(runs[i], limit) for i, limit in enumerate(market.limit) if limit is not None]
    for i, j in product(market.users, market.types):
        if market.floor is not None and market.floor[i][j] > 0:
            found.append(at_least({(i, j): one[0]}, market.floor[i][j]))
        if market.cap is not None and market.cap[i][j] is not None:
            found.append(Row({(i, j): one[0]}, market.cap[i][j]))
    for members, j, most in market.together:
        found.append(Row({(i, j): one[0] for i in members if (i, j) in runs[i]}, most))
    return found


def too_much(market: Given, shares: Table) -> Fraction:
    """Return by how much shares break a row, as a part of what there is; below 0 counts, too; 0 if none is broken."""
    size = [m or min(m for m in market.capacity if m) for m in market.capacity]
    over = [max(NOTHING, -x) / size[j] for row in shares for j, x in enumerate(row)]
    over += [max(NOTHING, sum(row[j] for row in shares) - m) / size[j] for j, m in enumerate(market.capacity)]
    for row, limit in zip(shares, market.limit, strict=True):
        over += [] if limit is None else [max(NOTHING, sum(row) - limit) / limit]
    for i, j in product(market.users, market.types):
        least = NOTHING if market.floor is None else market.floor[i][j]
        most = None if market.cap is None else market.cap[i][j]
        over.append(max(NOTHING, least - shares[i][j], NOTHING if most is None else shares[i][j] - most) / size[j])
    over += [max(NOTHING, sum(shares[i][j] for i in members) - most) / size[j] for members, j, most in market.together]
    return max(over)

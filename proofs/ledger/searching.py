"""The smallest counterexamples: small integer markets in order of size, one after the other, until one refutes.

Size is the number of users, then of types, then the largest integer of the market (of a report too, where there is
one), then the sum of all of them; ties go by the numbers in order. The search is complete and deterministic: no market
of its domain that comes before the one found refutes the claim, as far as floats can tell, and the one found is proved.
A float solver only sifts: what it lets pass is decided exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement, pairwise, product
from typing import Any

from fairopt.problem import Market

Row = tuple[int, ...]


#: Yields the sets of so many users that are looked at, out of the rows that a user may have.
Users = Callable[[list[Row], int], Iterable[tuple[Row, ...]]]


def _gains_less(row: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether from each type to the next a user gains by a smaller factor than another."""
    return all(y * w < x * z for (x, y), (w, z) in zip(pairwise(row), pairwise(other), strict=True))


def _rising(row: Sequence[Any]) -> bool:
    return all(slow < fast for slow, fast in pairwise(row))


def in_order_of_ratios(rows: list[Row], count: int) -> Iterator[tuple[Row, ...]]:
    """Yield users such that from each type to the next every one gains by a larger factor than the one before it."""
    if not count:
        yield ()
    for others in in_order_of_ratios(rows, count - 1) if count else ():
        yield from ((*others, row) for row in rows if not others or _gains_less(others[-1], row))


def least_ratios_first(rows: list[Row], count: int) -> Iterator[tuple[Row, ...]]:
    """Yield users of whom the first gains less, from each type to the next, than each of the others."""
    for first in rows:
        others = [row for row in rows if _gains_less(first, row)]
        yield from ((first, *some) for some in combinations_with_replacement(others, count - 1))


def least_speedups_first(rows: list[Row], count: int) -> Iterator[tuple[Row, ...]]:
    """Yield users of whom the first is slower than each of the others on every type but the first."""
    for users in combinations_with_replacement(rows, count):
        if all(x < y for other in users[1:] for x, y in zip(users[0][1:], other[1:], strict=True)):
            yield users


@dataclass(frozen=True)
class Domain:
    """Which markets are looked at.

    ``shapes``: (users, types) in order; ``largest``: the largest integer. Speedups are 1 on the first type where they
    are ``normalised``, rise strictly from type to type where ``rising``, and may be 0 with ``zeros``. Users can change
    places, so that each set of them stands once, unless ``users`` puts them in order. Each type has one GPU, except the
    first ``capacities`` types, which have any number up to ``largest``.
    """

    shapes: tuple[tuple[int, int], ...]
    largest: int
    users: Users = combinations_with_replacement
    capacities: int = 0
    normalised: bool = False
    rising: bool = False
    zeros: bool = False

    def markets(self) -> Iterator[Market]:
        """Yield the markets, the smallest first."""
        for n, k in self.shapes:
            for largest in range(1, self.largest + 1):
                yield from (Market.of(rows, capacity) for rows, capacity in self._of(n, k, largest))

    def _of(self, n: int, k: int, largest: int) -> list[tuple[tuple[Row, ...], Row]]:
        rows = [row for row in product(range(0 if self.zeros else 1, largest + 1), repeat=k) if self._allows(row)]
        capacities = list(product(*(range(1, largest + 1 if j < self.capacities else 2) for j in range(k))))
        found = [
            (of, capacity)
            for of, capacity in product(self.users(rows, n), capacities)
            if max(chain(*of, capacity)) == largest and all(any(column) for column in zip(*of, strict=True))
        ]
        return sorted(found, key=lambda each: (sum(chain(*each[0], each[1])), each))

    def _allows(self, row: Row) -> bool:
        return any(row) and (not self.normalised or row[0] == 1) and (not self.rising or _rising(row))


def as_in_oef(market: Market) -> bool:
    """Whether every user has speedup 1 on the first type and more on each faster one."""
    return all(row[0] == 1 and _rising(row) for row in market.speedup.tolist())


def ordered_by_ratios(market: Market) -> bool:
    """Whether users stand in strict order of all their ratios between types."""
    return all(_gains_less(a, b) for a, b in pairwise(market.speedup.tolist()))


def first_by_ratios(market: Market) -> bool:
    """Whether the first user gains strictly the least from each type to the next."""
    first, *others = market.speedup.tolist()
    return all(_gains_less(first, other) for other in others)


@dataclass(frozen=True)
class FalseReport:
    """A market, a user and what it reports instead of its speedups."""

    market: Market
    user: int
    report: Row


def false_reports(domain: Domain, kind: str) -> Iterator[FalseReport]:
    """Yield false reports on the markets of a domain, in order of size; the report's integers count like the market's.

    ``kind``: no entry of the report is smaller ("larger") or none is larger ("smaller"). Where speedups are normalised,
    reports are.
    """
    for n, k in domain.shapes:
        for largest in range(1, domain.largest + 1):
            found = []
            for m in range(1, largest + 1):
                for rows, capacity in domain._of(n, k, m):
                    for user, report in product(range(n), product(range(1, largest + 1), repeat=k)):
                        truth = rows[user]
                        ordered = (
                            zip(truth, report, strict=True) if kind == "larger" else zip(report, truth, strict=True)
                        )
                        if report == truth or (domain.normalised and report[0] != 1) or max(m, *report) < largest:
                            continue
                        if all(low <= high for low, high in ordered):
                            found.append((rows, capacity, user, report))
            found.sort(key=lambda each: (sum(chain(*each[0], each[1], each[3])), each))
            yield from (FalseReport(Market.of(rows, capacity), user, report) for rows, capacity, user, report in found)

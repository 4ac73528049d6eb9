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


@dataclass(frozen=True)
class Domain:
    """Which markets are looked at, beside the assumptions in words (`OF_A_ROW`, `OF_ALL`).

    ``shapes``: (users, types) in order; ``largest``: the largest integer. Each type has one GPU, except
    the first ``capacities`` types, which have any number up to ``largest``.
    """

    shapes: tuple[tuple[int, int], ...]
    largest: int
    assumptions: str = ""
    capacities: int = 0

    def markets(self) -> Iterator[Market]:
        """Yield the markets, the smallest first; users can change places, so that each set of them stands once."""
        for n, k in self.shapes:
            for largest in range(1, self.largest + 1):
                yield from (Market.of(rows, capacity) for rows, capacity in self._of(n, k, largest))

    def _of(self, n: int, k: int, largest: int) -> list[tuple[tuple[Row, ...], Row]]:
        words = self.assumptions.split()
        least = 0 if "zeros" in words else 1
        numbers = range(least, largest + 1)
        rows = [row for row in product(numbers, repeat=k) if any(row) and all(OF_A_ROW[word](row) for word in words)]
        users = [of for of in _ordered(rows, n, words) if all(OF_ALL[word](of) for word in words)]
        capacities = list(product(*(range(1, largest + 1 if j < self.capacities else 2) for j in range(k))))
        found = [
            (of, capacity)
            for of, capacity in product(users, capacities)
            if max(chain(*of, capacity)) == largest and all(any(column) for column in zip(*of, strict=True))
        ]
        return sorted(found, key=lambda each: (sum(chain(*each[0], each[1])), each))


def _ordered(rows: list[Row], n: int, words: list[str]) -> Iterable[tuple[Row, ...]]:
    """Yield users in the order that the words ask for; without any, each set of them once."""
    if "ordered" in words:
        return _chains(rows, n)
    if "slowest-first" in words:
        return (
            (first, *others)
            for first in rows
            for others in combinations_with_replacement([row for row in rows if _gains_less(first, row)], n - 1)
        )
    return combinations_with_replacement(rows, n)


def _gains_less(row: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether from each type to the next a user gains by a smaller factor than another."""
    return all(y * w < x * z for (x, y), (w, z) in zip(pairwise(row), pairwise(other), strict=True))


def _rising(row: tuple[Any, ...]) -> bool:
    return all(slow < fast for slow, fast in pairwise(row))


def _chains(rows: list[Row], length: int, begun: tuple[Row, ...] = ()) -> Iterator[tuple[Row, ...]]:
    """Yield users such that from each type to the next every one gains by a larger factor than the one before it."""
    if len(begun) == length:
        yield begun
        return
    for row in rows:
        if not begun or _gains_less(begun[-1], row):
            yield from _chains(rows, length, (*begun, row))


def _first_least(rows: tuple[Row, ...]) -> bool:
    """Whether the first user has the least speedup on every type, strictly after the first type."""
    return all(x < y for other in rows[1:] for x, y in zip(rows[0][1:], other[1:], strict=True))


def _any(_: object) -> bool:
    return True


#: Assumptions in words: on each user's speedups, and on all users together.
OF_A_ROW: dict[str, Callable[[Row], bool]] = {
    "normalised": lambda row: row[0] == 1,
    "rising": _rising,
    "zeros": _any,
    "ordered": _any,
    "slowest-first": _any,
    "first-least": _any,
}
OF_ALL: dict[str, Callable[[tuple[Row, ...]], bool]] = {
    "normalised": _any,
    "rising": _any,
    "zeros": _any,
    "ordered": _any,  # as `_ordered` makes them
    "slowest-first": _any,
    "first-least": _first_least,
}


def as_in_oef(market: Market) -> bool:
    """Whether every user has speedup 1 on the first type and more on each faster one."""
    return all(row[0] == 1 and _rising(tuple(row)) for row in market.speedup.tolist())


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
    fixed = "normalised" in domain.assumptions.split()
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
                        if report == truth or (fixed and report[0] != 1) or max(m, *report) < largest:
                            continue
                        if all(low <= high for low, high in ordered):
                            found.append((rows, capacity, user, report))
            found.sort(key=lambda each: (sum(chain(*each[0], each[1], each[3])), each))
            yield from (FalseReport(Market.of(rows, capacity), user, report) for rows, capacity, user, report in found)

"""A market of GPUs as a certificate holds it: who gets how much out of which GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any

from .reading import Number, amount, digest, fields, items, names, numbers, require, schema, shown, summed

Table = list[list[Fraction]]  #: a row for each user, a column for each type
ZERO, ONE = Fraction(0), Fraction(1)
#: A market or an allocation of at most so many numbers is printed in full.
MOST_SHOWN = 12


@dataclass(frozen=True)
class Market:
    """Users with speedups, a weight and a demand (the most GPUs in use at once), and GPUs of several types.

    ``speedup[i][j]`` is user i's throughput on one GPU of type j; ``capacity[j]`` is how many there are.
    """

    users: list[str]
    types: list[str]
    speedup: Table
    capacity: list[Fraction]
    weight: list[Fraction]
    demand: list[Number]

    @cached_property
    def weights(self) -> Fraction:
        """The sum of all weights."""
        return summed(self.weight)

    def used(self, i: int, bundle: list[Fraction]) -> list[Fraction]:
        """Return what user i runs on of a bundle: its fastest GPUs first, no more of them than it demands."""
        left, used = self.demand[i], [ZERO] * len(bundle)
        for j in sorted(range(len(bundle)), key=lambda j: -self.speedup[i][j]):
            if self.speedup[i][j]:
                used[j] = Fraction(min(bundle[j], left))
                left = minus(left, used[j])
        return used

    def worth(self, i: int, bundle: list[Fraction]) -> Fraction:
        """Return user i's throughput on a bundle."""
        return dot(self.speedup[i], self.used(i, bundle))

    def equal_share(self, i: int) -> Fraction:
        """Return what user i's own partition, its weight's part of every type, is worth to it."""
        part = self.weight[i] / self.weights
        return self.worth(i, [part * there for there in self.capacity])

    def out_of_shares(self, shares: Table, i: int, other: int) -> Fraction:
        """Return what user i would get out of another's shares, scaled by the two weights."""
        scale = self.weight[i] / self.weight[other]
        return self.worth(i, [scale * share for share in shares[other]])

    def throughput_of(self, i: int) -> Table:
        """Return the weights on shares whose sum is user i's throughput."""
        return [row if other == i else [ZERO] * len(row) for other, row in enumerate(self.speedup)]

    def with_report(self, i: int, report: list[Fraction]) -> Market:
        """Return the market in which user i reports other speedups."""
        return replace(self, speedup=[*self.speedup[:i], report, *self.speedup[i + 1 :]])

    def without(self, i: int) -> Market:
        """Return the market without user i."""
        kept = [other for other in range(len(self.users)) if other != i]
        per_user = {
            key: [getattr(self, key)[other] for other in kept]
            for key in ("users", "speedup", "weight", "demand")
        }
        return replace(self, **per_user)

    def equal_split(self) -> Table:
        """Return what everybody gets of an equal split: GPUs in proportion to weight, of all types alike.

        Nobody gets more than it demands; what that leaves is split again among the others.
        """
        total = left = summed(self.capacity)
        weights, held = self.weights, [ZERO] * len(self.users)
        filled = [
            inf if most == inf else most / weight
            for most, weight in zip(self.demand, self.weight, strict=True)
        ]
        for i in sorted(range(len(held)), key=filled.__getitem__):
            held[i] = Fraction(min(self.demand[i], left * self.weight[i] / weights))
            left, weights = left - held[i], weights - self.weight[i]
        return [[gpus / total * there for there in self.capacity] for gpus in held]

    def feasible(self, shares: Table) -> bool:
        """Return whether no share is negative and no type is given out more often than it is there."""
        columns = zip(*shares, strict=True)
        fits = all(summed(column) <= most for column, most in zip(columns, self.capacity, strict=True))
        return fits and min(map(min, shares)) >= 0

    def canonical(self) -> list[Any]:
        """Return all that the market says, in the one form that its digest is taken of."""
        users = [
            [name, [exactly(s) for s in self.speedup[i]], exactly(self.weight[i]), exactly(self.demand[i])]
            for i, name in enumerate(self.users)
        ]
        return ["market", self.types, [exactly(there) for there in self.capacity], users]

    def __str__(self) -> str:
        """Name the market: its digest, and all of it where it is small."""
        told = f"market {digest(self.canonical())}: "
        if len(self.users) * len(self.types) > MOST_SHOWN:
            return f"{told}{len(self.users)} users, {len(self.types)} types"
        types = (
            f"{there} {name!r}" for there, name in zip(map(shown, self.capacity), self.types, strict=True)
        )
        return f"{told}{', '.join(types)} for {', '.join(self._users())}"

    def _users(self) -> Iterator[str]:
        for i, name in enumerate(self.users):
            weight = "" if self.weight[i] == 1 else f" weight {shown(self.weight[i])}"
            demand = "" if self.demand[i] == inf else f" demand {shown(self.demand[i])}"
            yield f"{name!r} {row_shown(self.speedup[i])}{weight}{demand}"


def dot(left: list[Fraction], right: list[Fraction]) -> Fraction:
    """Return the sum of products."""
    return summed(a * b for a, b in zip(left, right, strict=True) if a and b)


def minus(limit: Number, used: Fraction) -> Number:
    """Return what is left of a limit. Sums with infinity would go through floats, and overflow."""
    return limit if limit == inf else limit - used


def exactly(value: Number) -> str | None:
    """Return a number in lowest terms, with all its digits; None for infinity."""
    if value == inf:
        return None
    top, bottom = Decimal(Fraction(value).numerator), Decimal(Fraction(value).denominator)
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def row_shown(row: list[Fraction]) -> str:
    """Return a row of numbers for print."""
    return f"({', '.join(map(shown, row))})"


def table_shown(table: Table) -> str:
    """Name a table of numbers: all of it where it is small, else its digest."""
    if len(table) * len(table[0]) <= MOST_SHOWN:
        return ", ".join(map(row_shown, table))
    return f"of digest {digest(['table', [[exactly(value) for value in row] for row in table]])}"


def read_market(data: Any, place: str = "market") -> Market:
    """Return the market of an object with the keys of fairopt's market files; one entry a user."""
    told = fields(data, place, "schema types capacity user")
    schema(told["schema"], f"{place}, ")
    types = names(told["types"], f"{place}, types")
    capacity = numbers(told["capacity"], f"{place}, capacity", len(types))
    users = [
        fields(user, f"{place}, user {number}", "name speedup", "weight demand")
        for number, user in enumerate(items(told["user"], f"{place}, user"), 1)
    ]
    market = Market(
        users=names([user["name"] for user in users], f"{place}, user names"),
        types=types,
        speedup=[
            numbers(u["speedup"], f"{place}, user {i}, speedup", len(types)) for i, u in enumerate(users, 1)
        ],
        capacity=capacity,
        weight=[_weight(u["weight"], f"{place}, user {i}, weight") for i, u in enumerate(users, 1)],
        demand=[_demand(u["demand"], f"{place}, user {i}, demand") for i, u in enumerate(users, 1)],
    )
    require(users and types, place, "there are no users, or no types")
    require(min(capacity) >= 0, place, "a capacity is negative")
    require(min(map(min, market.speedup)) >= 0, place, "a speedup is negative")
    for i, name in enumerate(market.users):
        require(market.equal_share(i) > 0, place, f"{name!r} can run nowhere")
    return market


def _weight(value: Any, place: str) -> Fraction:
    return ONE if value is None else amount(value, place, positive=True)


def _demand(value: Any, place: str) -> Number:
    return inf if value is None else amount(value, place, positive=True)


def read_table(value: Any, market: Market, place: str) -> Table:
    """Return a table of numbers, a row for each user and a column for each type."""
    rows = items(value, place, len(market.users))
    return [numbers(row, f"{place}, row {i}", len(market.types)) for i, row in enumerate(rows, 1)]

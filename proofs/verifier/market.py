"""A market of GPUs as a certificate holds it: who gets how much out of which GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, lcm
from typing import Any

from .entitled import Entitled, read_entitled
from .reading import (
    ONE,
    ZERO,
    Budget,
    Entry,
    Number,
    Table,
    digest,
    distinct,
    exactly,
    require,
    row_exactly,
    shown,
    summed,
)

Bound = tuple[Fraction, Number]  #: the least and the most that a speedup may be; from 0 on: any positive one
#: A market or an allocation of at most so many numbers is printed in full.
MOST_SHOWN = 12


@dataclass(frozen=True)
class Market:
    """Users with speedups, a weight and a demand (the most GPUs in use at once), and GPUs of several types.

    ``speedup[i][j]`` is user i's throughput on one GPU of type j; ``capacity[j]`` is how many there are.
    ``entitled`` is what users and groups are guaranteed, may take, hold and ask for, where that is told.
    ``bounds`` are those of the speedups of users of whom they are not known.
    """

    users: list[str]
    types: list[str]
    speedup: Table
    capacity: list[Fraction]
    weight: list[Fraction]
    demand: list[Number]
    entitled: Entitled | None = None
    bounds: dict[int, list[Bound]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget, compare=False)  #: of the file that it is from

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
        return dot(self.speedup[i], bundle if self.demand[i] == inf else self.used(i, bundle))

    def worths(self, shares: Table) -> list[Fraction]:
        """Return everybody's throughput."""
        return [self.worth(i, bundle) for i, bundle in enumerate(shares)]

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

    def without(self, i: int) -> Market:
        """Return the market without user i."""
        per_user = {key: getattr(self, key) for key in ("users", "speedup", "weight", "demand")}
        return replace(self, **{key: each[:i] + each[i + 1 :] for key, each in per_user.items()})

    def equal_split(self) -> Table:
        """Return an equal split: GPUs of all types alike, by weight; what demands leave is split again."""
        total = left = summed(self.capacity)
        weights, held = self.weights, [ZERO] * len(self.users)
        pairs = zip(self.demand, self.weight, strict=True)
        filled = [inf if most == inf else most / weight for most, weight in pairs]
        for i in sorted(range(len(held)), key=filled.__getitem__):
            held[i] = Fraction(min(self.demand[i], left * self.weight[i] / weights))
            left, weights = left - held[i], weights - self.weight[i]
        return [[gpus / total * there for there in self.capacity] for gpus in held]

    def left_over(self, shares: Table) -> list[Fraction]:
        """Return how many GPUs of each type nobody holds; below zero where they are given out too often."""
        columns = zip(self.capacity, zip(*shares, strict=True), strict=True)
        return [there - summed(column) for there, column in columns]

    def feasible(self, shares: Table) -> bool:
        """Return whether no share is negative and no type is given out more often than it is there."""
        return min(self.left_over(shares)) >= 0 and min(map(min, shares)) >= 0

    def __str__(self) -> str:
        """Name the market: its digest, and all of it where it is small."""
        rows = list(zip(self.users, self.speedup, self.weight, self.demand, strict=True))
        users = [[name, row_exactly(row), exactly(weight), exactly(most)] for name, row, weight, most in rows]
        canonical: list[Any] = ["market", self.types, row_exactly(self.capacity), users]
        canonical += [] if self.entitled is None else [self.entitled.canonical()]
        if self.bounds:
            canonical.append([[i, [list(map(exactly, b)) for b in row]] for i, row in self.bounds.items()])
        said = f"market {digest(canonical)}: " + ("" if self.entitled is None else f"{self.entitled}; ")
        said += f"speedups of {len(self.bounds)} users known within bounds; " if self.bounds else ""
        if len(self.users) * len(self.types) > MOST_SHOWN:
            return f"{said}{len(self.users)} users, {len(self.types)} types"
        gpus = [f"{shown(there)} {name!r}" for there, name in zip(self.capacity, self.types, strict=True)]
        holders = [
            f"{name!r} {row_shown(row)}"
            + ("" if weight == 1 else f" weight {shown(weight)}")
            + ("" if most == inf else f" demand {shown(most)}")
            for name, row, weight, most in rows
        ]
        return f"{said}{', '.join(gpus)} for {', '.join(holders)}"


def dot(left: list[Fraction], right: list[Fraction]) -> Fraction:
    """Return the sum of products."""
    return summed(a * b for a, b in zip(left, right, strict=True) if a and b)


def in_integers(row: list[Fraction], weight: Fraction) -> tuple[list[int], int]:
    """Return integers in proportion to a row over a weight, and by what that was multiplied."""
    parts = [each / weight for each in row]
    by = lcm(*(each.denominator for each in parts))
    return [int(each * by) for each in parts], by


def minus(limit: Number, used: Fraction) -> Number:
    """Return what is left of a limit. Sums with infinity would go through floats, and overflow."""
    return limit if limit == inf else limit - used


def row_shown(row: list[Fraction]) -> str:
    """Return a row of numbers for print."""
    return f"({', '.join(map(shown, row))})"


def digest_of(table: Table) -> str:
    """Name a table of numbers by its digest."""
    return f"of digest {digest(['table', [row_exactly(row) for row in table]])}"


def table_shown(table: Table) -> str:
    """Name a table of numbers: all of it where it is small, else its digest."""
    small = len(table) * len(table[0]) <= MOST_SHOWN
    return ", ".join(map(row_shown, table)) if small else digest_of(table)


def read_market(entry: Entry, *, whole: bool = False) -> Market:
    """Return the market of an object with the keys of fairopt's market files; one entry a user.

    ``whole``: speedups may be known within bounds, and there may be entitlements.
    """
    fields = entry.fields("schema types capacity user", "entitlements" if whole else "")
    fields["schema"].version()
    types = distinct([each.name() for each in fields["types"].items()], fields["types"].place)
    may = "weight demand least most" if whole else "weight demand"
    users = [each.fields("name speedup", may) for each in fields["user"].items()]
    names = distinct([user["name"].name() for user in users], fields["user"].place)
    market = Market(
        users=names,
        types=types,
        speedup=[user["speedup"].numbers(len(types)) for user in users],
        capacity=fields["capacity"].numbers(len(types)),
        weight=[_amount_or(ONE, user["weight"]) for user in users],
        demand=[_amount_or(inf, user["demand"]) for user in users],
        entitled=read_entitled(fields["entitlements"], names, types) if whole else None,
        budget=entry.budget,
    )
    require(users and types, entry.place, "there are no users, or no types")
    require(min(market.capacity) >= 0, entry.place, "a capacity is negative")
    require(min(map(min, market.speedup)) >= 0, entry.place, "a speedup is negative")
    for i, user in enumerate(users if whole else []):
        if user["least"].value is not None or user["most"].value is not None:
            market.bounds[i] = _bounds(user, market.speedup[i])
    for i, name in enumerate(market.users):
        require(market.equal_share(i) > 0, entry.place, f"{name!r} can run nowhere")
    return market


def _bounds(user: Entry, speedup: list[Fraction]) -> list[Bound]:
    least = [each.amount() for each in user["least"].items(len(speedup))]
    most = [inf if each.value is None else each.amount() for each in user["most"].items(len(speedup))]
    ends = list(zip(least, most, strict=True))
    inside = all(low <= speed <= high for (low, high), speed in zip(ends, speedup, strict=True))
    require(inside, user.place, "a speedup is not within its bounds")
    stated = all(speed for (_, high), speed in zip(ends, speedup, strict=True) if high)
    require(stated, user.place, "a speedup is 0 that may be any positive one")
    return ends


def _amount_or(absent: Any, entry: Entry) -> Any:
    return absent if entry.value is None else entry.amount(positive=True)


def read_table(entry: Entry, market: Market) -> Table:
    """Return a table of numbers, a row for each user and a column for each type."""
    return [row.numbers(len(market.types)) for row in entry.items(len(market.users))]

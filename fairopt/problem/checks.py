"""What makes a market valid; every refusal names the row, the column, the value and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.numbers import exact
from fairopt.program import INFINITY, Array

if TYPE_CHECKING:
    from fairopt.problem.market import Market

#: Beyond these a market is taken for a mistake; the largest cluster in the literature has ten types.
MOST_ROWS, MOST_TYPES, MOST_SPEEDUPS = 100_000, 1_000, 5_000_000


def check_size(users: int, types: int) -> None:
    """Refuse nothing at all, and too much."""
    if not types:
        raise BadInput("no GPU types", place="capacity", remedy="Give at least one type and its capacity")
    if types > MOST_TYPES:
        raise BadInput(f"{types} types", place="types", remedy=f"Give at most {MOST_TYPES}")
    if not users:
        raise BadInput("no users", place="speedup", remedy="Give at least one user")
    if users > MOST_ROWS or users * types > MOST_SPEEDUPS:
        raise BadInput(
            f"{users} users with {types} types",
            place="speedup",
            remedy=f"Give at most {MOST_ROWS} users and {MOST_SPEEDUPS} speedups",
        )


def listed(values: Iterable[object], place: str) -> list[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise BadInput(f"got {type(values).__name__}", place=place, remedy="Give a list of numbers")
    return list(values)


def listed_rows(speedup: Iterable[Iterable[object]]) -> list[list[object]]:
    return [listed(row, f"speedup, row {number}") for number, row in enumerate(listed(speedup, "speedup"), start=1)]


def checked_names(names: Sequence[str] | None, count: int, kind: str, letter: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{letter}{number}" for number in range(1, count + 1))
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"got {names!r:.80}", place=f"{kind}s", remedy="Give a list of names, each a string")
    if len(names) != count:
        unit = "capacities" if kind == "type" else "rows of speedups"
        raise BadInput(f"{len(names)} {kind}s for {count} {unit}", place=f"{kind}s", remedy="Give one name for each")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip() or not name.isprintable() or len(name) > 200:
            raise BadInput(
                f"got {name[:60]!r}", place=f"{kind} {number}", remedy="Give a printable name of 1 to 200 letters"
            )
        if name in seen:
            raise BadInput(
                f"{kind}s {seen[name]} and {number} are both called {name!r}",
                place=f"{kind}s",
                remedy="Give each a name of its own",
            )
        seen[name] = number
    return tuple(names)


def checked_owners(owner: Sequence[str], users: tuple[str, ...]) -> tuple[str, ...]:
    if len(owner) != len(users):
        raise BadInput(f"{len(owner)} owners for {len(users)} rows", place="owner", remedy="Give one for each row")
    return tuple(owner)


def _not_negative(value: object, place: str) -> Fraction:
    number = exact(value, place)
    if number < 0:
        raise BadInput(f"got {number}", place=place, remedy="Give a number that is not negative")
    return number


def speedup_table(rows: list[list[object]], users: tuple[str, ...], types: tuple[str, ...]) -> Array:
    table = np.empty((len(rows), len(types)), dtype=object)
    for i, row in enumerate(rows):
        if len(row) != len(types):
            raise BadInput(
                f"{len(row)} speedups for {len(types)} types",
                place=f"user {users[i]!r}, speedup",
                remedy=f"Give one for each of {', '.join(types)}; 0 where the user cannot run",
            )
        for j, value in enumerate(row):
            table[i, j] = _not_negative(value, f"user {users[i]!r}, speedup on {types[j]!r}")
    return table


def column(values: Iterable[object], names: tuple[str, ...], what: str, kind: str = "user") -> Array:
    given = listed(values, what)
    if len(given) != len(names):
        raise BadInput(f"{len(given)} values for {len(names)} {kind}s", place=what, remedy=f"Give one for each {kind}")
    out = np.empty(len(given), dtype=object)
    out[:] = [_not_negative(value, f"{kind} {name!r}, {what}") for name, value in zip(names, given, strict=True)]
    return out


def demand_column(demand: Iterable[object], users: tuple[str, ...]) -> Array:
    given = listed(demand, "demand")
    known = [0 if value is None else value for value in given]
    out = column(known, users, "demand")
    out[[value is None for value in given]] = INFINITY
    return out


def check_market(market: Market) -> None:
    if not any(market.capacity > 0):
        raise BadInput("no type has any GPUs", place="capacity", remedy="Give at least one type a positive capacity")
    for user, weight in zip(market.users, market.weight, strict=True):
        if weight <= 0:
            raise BadInput(f"got {weight}", place=f"user {user!r}, weight", remedy="Give a positive weight")
    for user, limit in zip(market.users, market.limit, strict=True):
        if limit <= 0:
            raise BadInput(
                f"got {limit}", place=f"user {user!r}, demand", remedy="Give a positive demand, or leave out the user"
            )
    check_rows(market, range(len(market.users)))


def check_rows(market: Market, rows: Iterable[int]) -> None:
    """A user must be able to run somewhere: else its fair utility is 0 and no ratio to it means anything."""
    usable = market.capacity > 0
    for i in rows:
        runs = (market.speedup[i] > 0) & usable
        if not runs.any():
            where = "every speedup is 0" if not any(market.speedup[i] > 0) else "it runs only where there are no GPUs"
            raise BadInput(
                f"the user can run nowhere: {where}",
                place=f"user {market.users[i]!r}, speedup",
                remedy="Give a positive speedup on a type that has GPUs, or leave out the user",
            )

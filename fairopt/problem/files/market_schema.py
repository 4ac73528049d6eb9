"""The one schema of market files, version 1: a dictionary in, a `Market` out, and back without loss.

The same schema for other programs is `market.schema.json` (JSON Schema 2020-12), which `market_schema` returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from importlib import resources
from itertools import groupby
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.checks import MOST_ROWS, check_name, listed
from fairopt.problem.files.file_type import check_kind
from fairopt.problem.labels import check_keys
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact, shown, written
from fairopt.program import INFINITY

VERSION = 1
_TOP = ("schema", "types", "capacity", "user")
_USER = ("name", "speedup", "job", "weight", "demand")
_JOB = ("name", "speedup", "weight", "demand")


def market_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of market files."""
    text = resources.files("fairopt.problem.files").joinpath("market.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Name the file in every `BadInput` that is raised inside."""
    try:
        yield
    except BadInput as error:
        if not file or error.file:
            raise
        raise error.inside(file) from error.__cause__


def market_from_dict(data: Mapping[str, object], file: str = "") -> Market:
    """Return the market that a dictionary of the file schema describes; numbers are ints, decimals or strings "p/q".

    A user with several job types becomes a row "user/job" for each of them, with `Market.owner` the user. Its weight is
    divided among them, equally or in proportion to the jobs' own ``weight``, and so is its ``demand``, unless
    the jobs have demands of their own.

    Errors: `BadInput` that names ``file``, the user by position and name, the key and what to do.

    Source: OEF Sec. 4.2.4 (virtual users; weights divided equally).
    """
    with naming(file):
        return _market(data)


class _Rows:
    """The rows of a market as they are collected from its users."""

    def __init__(self) -> None:
        self.speedup: list[list[object]] = []
        self.weight: list[object] = []
        self.demand: list[object] = []
        self.users: list[str] = []
        self.owner: list[str] = []
        self.places: list[str] = []

    def add(self, name: str, owner: str, place: str, speedup: list[object], weight: object, demand: object) -> None:
        for column, value in zip(
            (self.users, self.owner, self.places, self.speedup, self.weight, self.demand),
            (name, owner, place, speedup, weight, demand),
            strict=True,
        ):
            column.append(value)  # type: ignore[attr-defined]


def _market(data: Mapping[str, object]) -> Market:
    place = "the top level"
    check_table(data, place)
    check_kind(data, "market", place)
    check_version(data, place)
    check_keys(data, _TOP, _TOP, place)
    types = [
        check_name(name, f"types, entry {number}") for number, name in enumerate(listed(data["types"], "types"), 1)
    ]
    users = tables(data["user"], "user", "users")
    if len(users) > MOST_ROWS:
        raise BadInput(f"{len(users)} users", place="user", remedy=f"Give at most {MOST_ROWS}")
    rows, seen = _Rows(), dict[str, int]()
    for number, table in enumerate(users, start=1):
        place, name = named(table, f"user {number}", _USER)
        if name in seen:
            raise BadInput(
                f"user {seen[name]} has the same name", place=place, remedy="Give each a name of its own, or use jobs"
            )
        seen[name] = number
        _add_user(rows, table, place, name)
    return Market.of(
        rows.speedup,
        listed(data["capacity"], "capacity"),
        weight=rows.weight,
        demand=None if all(limit is None for limit in rows.demand) else rows.demand,
        users=rows.users,
        types=types,
        owner=rows.owner,
        places=rows.places,
    )


def check_version(data: Mapping[str, object], place: str) -> None:
    """Refuse a file of another version of the schema."""
    if "schema" not in data:
        raise BadInput("the key 'schema' is missing", place=place, remedy=f"Add schema = {VERSION}")
    version = data["schema"]
    if isinstance(version, bool) or not isinstance(version, int) or version != VERSION:
        raise BadInput(
            f"got version {shown(version)}",
            place="schema",
            remedy=f"This fairopt understands schema {VERSION}; write the integer {VERSION}",
        )


def check_table(value: object, place: str) -> None:
    """Refuse what is no table of keys and values."""
    if not isinstance(value, Mapping):
        raise BadInput(f"got {type(value).__name__}", place=place, remedy="Give a table of keys and values")


def tables(value: object, place: str, what: str) -> Sequence[Mapping[str, object]]:
    """Return a list of tables that is not empty; ``what`` is what messages call them."""
    if not isinstance(value, list | tuple):
        raise BadInput(f"got {type(value).__name__}", place=place, remedy=f"Give a list of {what}, each a table")
    if not value:
        raise BadInput(f"no {what}", place=place, remedy="Give at least one")
    return value


def named(table: Mapping[str, object], place: str, known: Sequence[str]) -> tuple[str, str]:
    """Return how messages call a table, by position and name, and its name; its keys are checked on the way."""
    check_table(table, place)
    called = f"{place} ({shown(table['name'])})" if isinstance(table.get("name"), str) else place
    check_keys(table, known, ["name"], called)
    return called, check_name(table["name"], f"{place}, name")


def _speedup(table: Mapping[str, object], place: str) -> list[object]:
    return listed(table["speedup"], f"{place}, speedup")


def _positive(table: Mapping[str, object], key: str, place: str) -> Fraction:
    number = exact(table[key], f"{place}, {key}")
    if number <= 0:
        raise BadInput(f"got {number}", place=f"{place}, {key}", remedy=f"Give a positive {key}, or leave the key out")
    return number


def _add_user(rows: _Rows, table: Mapping[str, object], place: str, name: str) -> None:
    if ("speedup" in table) == ("job" in table):
        found = "both 'speedup' and 'job'" if "job" in table else "neither 'speedup' nor 'job'"
        raise BadInput(
            found, place=place, remedy="Give speedup for a user of one job type, and job, a list, for one of several"
        )
    weight = _positive(table, "weight", place) if "weight" in table else Fraction(1)
    demand = _positive(table, "demand", place) if "demand" in table else None
    if "speedup" in table:
        rows.add(name, name, place, _speedup(table, place), weight, demand)
        return
    jobs = tables(table["job"], f"{place}, job", "jobs")
    called = [named(job, f"{place}, job {number}", _JOB) for number, job in enumerate(jobs, start=1)]
    part = [
        _positive(job, "weight", where) if "weight" in job else Fraction(1)
        for job, (where, _) in zip(jobs, called, strict=True)
    ]
    first: dict[str, int] = {}
    for number, (job, (where, job_name)) in enumerate(zip(jobs, called, strict=True), start=1):
        if first.setdefault(job_name, number) != number:
            raise BadInput(
                f"job {first[job_name]} has the same name", place=where, remedy="Give each a name of its own"
            )
        check_keys(job, _JOB, ["speedup"], where)
        if "demand" in job and demand is not None:
            raise BadInput(
                "a demand here and one of the whole user",
                place=f"{where}, demand",
                remedy="Give demand to the user, which divides it as its weight, or to its jobs",
            )
        share = part[number - 1] / sum(part)
        limit = _positive(job, "demand", where) if "demand" in job else None if demand is None else demand * share
        rows.add(f"{name}/{job_name}", name, where, _speedup(job, where), weight * share, limit)


def market_to_dict(market: Market) -> dict[str, Any]:
    """Return the dictionary of the file schema that `market_from_dict` turns back into exactly this market.

    Numbers are ints, floats where their shortest decimal form is the number, and else strings "p/q", so that any
    writer of JSON or TOML can write them. Weights of 1 and absent demands are left out.

    Errors: `BadInput` where rows of one owner do not stand together or are not called "owner/job".
    """
    users: list[dict[str, Any]] = []
    seen: set[str] = set()
    for (owner, virtual), group in groupby(
        range(len(market.users)), key=lambda i: (market.owner[i], _virtual(market, i))
    ):
        rows = list(group)
        if owner in seen:
            raise BadInput(
                f"the rows of {owner!r} do not stand together",
                place=f"user {rows[0] + 1} ({market.users[rows[0]]!r})",
                remedy="Reorder them with Market.select",
            )
        seen.add(owner)
        users.append(_user_with_jobs(market, owner, rows) if virtual else _plain_user(market, rows[0]))
    capacity = [
        written(amount, f"type {name!r}, capacity") for name, amount in zip(market.types, market.capacity, strict=True)
    ]
    return {"schema": VERSION, "types": list(market.types), "capacity": capacity, "user": users}


def _virtual(market: Market, row: int) -> bool:
    return market.owner[row] != market.users[row]


def _row(market: Market, row: int, name: str, weight: dict[str, Any]) -> dict[str, Any]:
    place = f"user {row + 1} ({market.users[row]!r})"
    table = {"name": name, "speedup": [written(value, f"{place}, speedup") for value in market.speedup[row]]} | weight
    limit = market.limit[row]
    return table if limit == INFINITY else table | {"demand": written(limit, f"{place}, demand")}


def _plain_user(market: Market, row: int) -> dict[str, Any]:
    return _row(market, row, market.users[row], _weight(exact(market.weight[row], f"user {row + 1}, weight")))


def _user_with_jobs(market: Market, owner: str, rows: list[int]) -> dict[str, Any]:
    weights = [exact(market.weight[row], f"user {row + 1}, weight") for row in rows]
    equal = len(set(weights)) == 1
    jobs = []
    for row, weight in zip(rows, weights, strict=True):
        start, _, job = market.users[row].partition(f"{owner}/")
        if start or not job:
            raise BadInput(
                f"the row belongs to {owner!r}",
                place=f"user {row + 1} ({market.users[row]!r})",
                remedy=f"A file can hold it when it is called {owner + '/...'!r} or when it belongs to itself",
            )
        jobs.append(_row(market, row, job, {} if equal else {"weight": written(weight, f"user {row + 1}, weight")}))
    return {"name": owner} | _weight(sum(weights, Fraction(0))) | {"job": jobs}


def _weight(weight: Fraction) -> dict[str, Any]:
    return {} if weight == 1 else {"weight": written(weight, "weight")}

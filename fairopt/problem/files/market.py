"""Market files: .toml, .json and .csv, read and written by suffix.

A CSV table is ``user,weight,demand,<type>...`` with a row for each user and one row called ``capacity``, which has a
number in the column of each type. Cells are separated by commas, semicolons or tabs. What users are entitled to has
columns of its own; see `fairopt.problem.files.market_csv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any

from fairopt.errors import BadInput, type_of
from fairopt.problem.files.entitlements import (
    OF_MARKETS,
    OF_USERS,
    SPEEDUPS,
    entitlements_in,
    ranged,
    speedup_rows,
    told_of_market,
    told_of_node,
)
from fairopt.problem.files.market_csv import market_from_csv, market_to_csv
from fairopt.problem.files.schema import (
    NAME,
    NAMES,
    NUMBERS,
    Column,
    ObjectPart,
    TableType,
    check_unique,
    document_type,
    json_schema,
    positive,
    read_document,
    tables,
    write_document,
)
from fairopt.problem.files.storage import (
    DOCUMENTS,
    AnyPath,
    naming,
    read_file,
    suffix_to_read,
    text_for,
    write_file,
)
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact
from fairopt.program import INFINITY

#: The suffixes of market files.
FORMATS = (*DOCUMENTS, ".csv")
_SPEEDUP = (
    "Throughput on one GPU of each type, in the order of types and in any unit; 0 where it cannot run. "
    "At least one is positive on a type that has GPUs. 'unknown', [least, most] or [least, speedup, most] stand for "
    "what was not measured."
)
#: Of who demands nothing: without the key it would be given as much as anybody.
DEMAND = positive("demand", "Give a positive demand, or leave out who demands nothing")
JOB = TableType(
    (
        Column("name", NAME, "The name of the job type."),
        Column("speedup", SPEEDUPS, _SPEEDUP),
        Column("weight", positive("weight"), "Its part of the user's weight, relative to the other job types.", None),
        Column("demand", DEMAND, "The most GPUs in use at once; not beside a demand of the user.", None),
    ),
    called="jobs",
)
USER = TableType(
    (
        Column("name", NAME, "The name of the user, which no other has."),
        Column("speedup", SPEEDUPS, _SPEEDUP, None),
        Column("job", tables(JOB), 'Its job types; each becomes a user "user/job" (OEF Sec. 4.2.4).', None),
        Column("weight", positive("weight"), "Entitlement (tickets, priority).", 1),
        Column("demand", DEMAND, "The most GPUs in use at once, divided as the weight is.", None),
        *OF_USERS,
    ),
    called="users",
    one_of=("speedup", "job", "Give speedup for a user of one job type, and job, a list, for one of several"),
    rules={"dependentSchemas": {"demand": {"properties": {"job": {"items": {"not": {"required": ["demand"]}}}}}}},
)
MARKET = document_type(
    Column("types", NAMES, "The names of the GPU types, each once."),
    Column("capacity", NUMBERS, "GPUs of each type, in the order of types; at least one is positive."),
    Column("user", tables(USER), "The users."),
    *OF_MARKETS,
)


def market_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of market files, for other programs.

    >>> market_schema()["type"]
    'object'
    """
    about = "Who wants which GPUs how much, how many there are, and who is entitled to what. Decimals are read exactly."
    return json_schema(MARKET, "market", about)


def read_market(path: AnyPath, types: Sequence[str] = ()) -> Market:
    """Return the market in a .toml, .json or .csv file.

    ``types``: columns of a CSV table that are GPU types, whatever they are called. Shapes and units: those of `Market`.
    The format: docs/formats/market.md. Errors: `BadInput` naming the file, the place, the remedy.

    Source: the format is ours.

    >>> from fairopt import read_market
    >>> from fairopt.datasets import dataset_path
    >>> read_market(dataset_path("oef_example.toml"))
    <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>
    """
    if types and suffix_to_read(path, FORMATS) != ".csv":
        raise BadInput(f"{path} says itself what its types are", place="--type", remedy="Leave it out")
    return read_file(path, market_from_dict, {".csv": partial(market_from_csv, named=types)})


def write_market(market: Market, path: AnyPath) -> None:
    """Write a market so that `read_market` gives it back exactly; an existing file is replaced.

    Errors: `BadInput` for what is no market, another suffix, a path that cannot be written, and job types in CSV.

    Shapes and units: those of `Market`. Source: the format is ours.

    >>> from tempfile import TemporaryDirectory
    >>> from fairopt import Market, read_market, write_market
    >>> market = Market.of([[1, "1/3"]], capacity=[1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     write_market(market, f"{folder}/market.toml")
    ...     read_market(f"{folder}/market.toml") == market
    True
    """
    if not isinstance(market, Market):
        raise BadInput(f"got {type_of(market)}", place="market", remedy="Give a Market")
    write_file(path, market, market_to_dict, {".csv": market_to_csv})


def require_writable(market: Market, path: AnyPath) -> None:
    """Refuse, as `write_market` would, a market that the format of a path has no words for."""
    with naming(path):
        text_for(path, market, market_to_dict, {".csv": market_to_csv})


def market_from_dict(data: Mapping[str, Any], file: str = "") -> Market:
    """Return the market that a dictionary of the file schema describes; numbers are ints, decimals or strings "p/q".

    A user with several job types becomes a row "user/job" for each of them, with `Market.owner` the user. Its weight is
    divided among them, equally or in proportion to the jobs' own ``weight``, and so is its ``demand``, unless the jobs
    have demands of their own. Errors: `BadInput` that names ``file``, the user, the key and what to do.
    Source: OEF Sec. 4.2.4 (virtual users; weights divided equally).

    >>> data = {"schema": 1, "types": ["K80"], "capacity": [2], "user": [{"name": "A", "speedup": ["1/3"]}]}
    >>> market_from_dict(data)
    <Market: 1 user, 1 type (K80), 2 GPUs>
    """
    with naming(file):
        top = read_document(data, "market", MARKET)
        check_unique(top["user"], "user")
        lines = [line for user in top["user"] for line in _lines(user)]
        names, owners, places, speedups, weights, demand = zip(*lines, strict=True)
        entitlements = entitlements_in(top, top["user"])
        types = len(top["types"])
        rate = [1] * types if entitlements is None or entitlements.rate is None else entitlements.rate.tolist()
        return Market.of(
            **speedup_rows(speedups, rate, types),
            capacity=top["capacity"],
            weight=weights,
            demand=None if all(limit is None for limit in demand) else demand,
            users=names,
            types=top["types"],
            owner=owners,
            places=places,
            entitlements=entitlements,
        )


def _lines(user: ObjectPart) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a market that a user is: name, owner, place, speedups, weight and demand."""
    name, weight, demand = user["name"], Fraction(user["weight"]), user["demand"]
    if user["job"] is None:
        yield name, name, user.place, user["speedup"], weight, demand
        return
    jobs = user["job"]
    check_unique(jobs, "job")
    parts = [job["weight"] or Fraction(1) for job in jobs]
    for job, part in zip(jobs, parts, strict=True):
        if job["demand"] is not None and demand is not None:
            remedy = "Give demand to the user, which divides it as its weight, or to its jobs"
            raise BadInput("a demand here and one of the whole user", place=job.place_of("demand"), remedy=remedy)
        share = part / sum(parts)
        limit = job["demand"] if demand is None else demand * share
        yield f"{name}/{job['name']}", name, job.place, job["speedup"], weight * share, limit


def market_to_dict(market: Market) -> dict[str, Any]:
    """Return what `market_from_dict` turns back into exactly this market, in the types of JSON and TOML.

    Errors: `BadInput` where rows of one owner do not stand together or are not called "owner/job".

    >>> from fairopt import Market
    >>> market_to_dict(Market.of([[1]], capacity=["1/3"], users=["A"], types=["K80"]))["capacity"]
    ['1/3']
    """
    users: list[dict[str, Any]] = []
    seen: set[str] = set()
    for (owner, virtual), group in groupby(
        range(len(market.users)), key=lambda i: (market.owner[i], market.owner[i] != market.users[i])
    ):
        rows = list(group)
        if owner in seen:
            remedy = "Reorder them with Market.select"
            raise BadInput(f"the rows of {owner!r} do not stand together", place=_place(market, rows[0]), remedy=remedy)
        seen.add(owner)
        users.append(_with_jobs(market, owner, rows) if virtual else _values(market, rows[0], owner))
    more = {} if market.entitlements is None else told_of_market(market.entitlements)
    return write_document({"types": market.types, "capacity": market.capacity, "user": users, **more}, MARKET)


def _place(market: Market, row: int) -> str:
    return f"user {row + 1} ({market.users[row]!r})"


def _values(market: Market, row: int, name: str) -> dict[str, Any]:
    limit = market.limit[row]
    ends = (None if own is None else own[row] for own in (market.least, market.most))
    return {
        "name": name,
        "speedup": ranged(market.speedup[row], *ends),
        "weight": market.weight[row],
        "demand": None if limit == INFINITY else limit,
        **({} if market.entitlements is None else told_of_node(market.entitlements, row)),
    }


def _with_jobs(market: Market, owner: str, rows: list[int]) -> dict[str, Any]:
    weights = [exact(market.weight[row], f"{_place(market, row)}, weight") for row in rows]
    jobs = []
    for row in rows:
        start, _, job = market.users[row].partition(f"{owner}/")
        if start or not job:
            remedy = f"A file can hold it when it is called {owner + '/...'!r} or when it belongs to itself"
            raise BadInput(f"the row belongs to {owner!r}", place=_place(market, row), remedy=remedy)
        own = _values(market, row, job)
        jobs.append(own | {"weight": None} if len(set(weights)) == 1 else own)
    return {"name": owner, "weight": sum(weights, Fraction(0)), "job": jobs}

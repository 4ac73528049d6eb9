"""Markets as CSV tables: a row for each user, with its throughput on each type; and a row with the capacity.

A column is a GPU type where it is none of `weight`, `demand`, ``group``, ``tier``, ``guarantee:TYPE``, ``cap:TYPE`` and
so on. A blank cell is one that is left out. Groups are named and say nothing of their own; gangs, further goods, rates
and groups in groups have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.files.cells import filled, number, read_cells, read_csv
from fairopt.problem.files.entitlements import OF_MARKETS, OF_USERS, entitlements_in, told_of_market, told_of_node
from fairopt.problem.files.schema import (
    NUMBER,
    Column,
    ObjectPart,
    TableType,
)
from fairopt.problem.files.storage import csv_text
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market
from fairopt.problem.numbers import shown, written
from fairopt.program import INFINITY

CAPACITY = "capacity"
_OPTIONAL = TableType(
    (
        Column("weight", NUMBER, "Entitlement; 1 where it is left out.", 1),
        Column("demand", NUMBER, "The most GPUs in use at once.", None),
    )
)
_OTHERS = ("user", *_OPTIONAL.names)
#: What people call these two elsewhere: a column of such a name is hardly a GPU type.
_ELSEWHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "weight": ("priority", "tickets", "quota", "entitlement", "share", "shares", "credits", "budget"),
        "demand": ("gpus", "limit", "request", "requested"),
    }
)
_BY_TYPE = ("guarantee", "cap", "reserve", "held", "fixed")
#: Columns with one value for each user; the others have one for each type, and are called KEY:TYPE.
WORDS: Mapping[str, Column] = MappingProxyType(
    {each.name: each for each in OF_USERS if each.name not in (*_BY_TYPE, "settings")}
)
_ROWS: Mapping[str, Column] = MappingProxyType({each.name: each for each in OF_USERS if each.name in _BY_TYPE})


def market_from_csv(text: str, named: Sequence[str] = ()) -> Market:
    """Return the market in a CSV text; a blank weight is 1, a blank demand is no limit, other blanks are errors.

    ``named``: columns that are GPU types, whatever they are called.
    """
    line, header, rows = read_csv(text, "user", check_column)
    types = _types(header, named, line)
    capacity = next((row for row in rows if row.name == CAPACITY), None)
    if capacity is None:
        remedy = "Add the row capacity,... with the GPUs of each type"
        raise BadInput("no row is called 'capacity'", place=f"line {text.rstrip().count(chr(10)) + 1}", remedy=remedy)
    for name in header:
        if name in types:
            filled(
                capacity, name, "Write how many GPUs there are of this type; leave the column out if it is no GPU type"
            )
        elif name != "user" and capacity.value.get(name):
            raise BadInput(f"got {shown(capacity[name])}", place=capacity.place_of(name), remedy="Leave the cell blank")
    users = [row for row in rows if row is not capacity]
    if not users:
        raise BadInput("no users", place=capacity.place, remedy="Give a row for each user")
    cells = read_cells(users, _OPTIONAL)
    return Market.of(
        [[number(row, name) for name in types] for row in users],
        [number(capacity, name) for name in types],
        weight=[row["weight"] for row in cells],
        demand=None if all(row["demand"] is None for row in cells) else [row["demand"] for row in cells],
        users=[row.name for row in users],
        types=types,
        places=[row.place for row in users],
        entitlements=_entitlements(users, header, types),
    )


def _types(header: Sequence[str], named: Sequence[str], line: int) -> list[str]:
    """Return the columns that are GPU types. Errors: `BadInput` for what is hardly one, and where there is none."""
    types = [name for name in header if name in named or not (name in _OTHERS or _is_entitled(name))]
    for name in named:
        if name not in types:
            raise BadInput(f"no column is called {shown(name)}", place="--type", remedy=nearest(name, types, "column"))
    for name in types:
        if name not in named and (meant := _meant(name)) is not None:
            remedy = f"Call it {meant}, or leave it out; if it is a GPU type, say so by --type {name}"
            raise BadInput(f"unknown column {shown(name)}", place=f"line {line}", remedy=remedy)
    if not types:
        raise BadInput("no GPU types", place="line 1", remedy="Give a column for each type, after the header user")
    return types


def _meant(name: str) -> str | None:
    """Return the column that one of an unknown name is probably meant to be."""
    near = get_close_matches(name.casefold(), _OPTIONAL.names, 1, 0.8)
    return next((word for word, others in _ELSEWHERE.items() if word in near or name.casefold() in others), None)


def check_column(name: str, place: str) -> None:
    """Refuse a header that does not begin with ``user``, and the known columns in capital letters."""
    if place.endswith(", column 1") and name != "user":
        remedy = "Start with the header user,<type>,...; of another table, say who its users are: --column user=NAME"
        raise BadInput(f"the first column is {shown(name)}", place=place.removesuffix(", column 1"), remedy=remedy)
    if name.casefold() in _OTHERS and name != name.casefold():
        remedy = f"Write {name.casefold()}, in small letters"
        raise BadInput(f"unknown column {shown(name)}", place=place, remedy=remedy)


def market_to_csv(market: Market) -> str:
    """Return the CSV text of a market; `BadInput` where the names or job types cannot be told from CSV's own words."""
    if market.owner != market.users:
        remedy = "Write it as .toml or .json; CSV has no job types"
        raise BadInput("a market with job types", place="owner", remedy=remedy)
    entitled = _cells_of(market)
    for names, words in ((market.types, _OTHERS), (market.users, (CAPACITY,))):
        for name in names:
            odd = names is market.types and _is_entitled(name)
            if odd or name.casefold() in words or name != name.strip() or (names is market.types and _meant(name)):
                remedy = "Write it as .toml or .json, or rename it"
                raise BadInput(f"the name {shown(name)}", place="names", remedy=remedy)
    there = {"weight": any(market.weight != 1), "demand": any(market.limit != INFINITY)}
    optional = [name for name in _OPTIONAL.names if there[name]]
    rows: list[list[object]] = []
    lines = zip(market.users, market.speedup, market.weight, market.limit, strict=True)
    for at, (user, row, weight, limit) in enumerate(lines):
        cells = {"weight": written(weight, user), "demand": "" if limit == INFINITY else written(limit, user)}
        more = [column[at] for column in entitled.values()]
        rows.append([user, *(cells[name] for name in optional), *(written(value, user) for value in row), *more])
    amounts = [written(amount, CAPACITY) for amount in market.capacity]
    rows.append([CAPACITY, *("" for _ in optional), *amounts, *("" for _ in entitled)])
    return csv_text(["user", *optional, *market.types, *entitled], rows)


# -- entitlements --------------------------------------------------------------------------------------------------
def _is_entitled(name: str) -> bool:
    """Return whether a column of that name says what a user is entitled to."""
    return name in WORDS or (name.partition(":")[0] in _ROWS and ":" in name)


def _entitlements(users: Sequence[ObjectPart], header: Sequence[str], types: Sequence[str]) -> Entitlements | None:
    """Return the entitlements in the columns of a CSV table. Errors: `BadInput` that names the line and column."""
    columns = [name for name in header if name not in types and _is_entitled(name)]
    if not columns:
        return None
    by_key: dict[str, dict[str, str]] = {}
    for name in columns:
        key, _, gpu_type = name.partition(":")
        if name not in WORDS and gpu_type not in types:
            remedy = nearest(gpu_type, types, "type")
            raise BadInput(f"there is no type {gpu_type!r}", place=f"column {name!r}", remedy=remedy)
        by_key.setdefault(key, {})[name] = gpu_type
    rows = [ObjectPart(user.place, _values(user, by_key), user.name, user.cells) for user in users]
    top: dict[str, Any] = {each.name: each.default for each in OF_MARKETS} | {"types": list(types)}
    return entitlements_in(ObjectPart("", top), rows)


def _values(user: ObjectPart, by_key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {each.name: each.default for each in OF_USERS} | {"name": user.name, "job": None}
    for key, named in by_key.items():
        cells = {name: text for name in named if (text := user.value.get(name))}
        if key in WORDS and cells:
            values[key] = WORDS[key].value.read(cells[key], user.place_of(key))
        elif cells:
            read: dict[str, Any] = {}
            for name, text in cells.items():
                read |= _ROWS[key].value.read({named[name]: text}, user.place_of(name))
            values[key] = read
    return values


def _cells_of(market: Market) -> dict[str, list[object]]:
    """Return the columns (n,) that say what users are entitled to. Errors: `BadInput` for what CSV cannot say."""
    owed = market.entitlements
    if market.least is not None:
        raise _cannot("speedups within bounds")
    if owed is None:
        return {}
    if owed.settings:
        raise _cannot("the scheduler's settings of users and groups")
    more = {key: value for key, value in told_of_market(owed).items() if value is not None}
    groups = more.pop("group", [])
    for key in more:
        raise _cannot(_CALLED.get(key, key))
    for group in groups:
        own = {
            key for key, value in group.items() if key not in ("name", "group") and value not in (None, _default(key))
        }
        if own or group["group"] is not None:
            raise _cannot(f"the group {group['name']!r}, of which it says more than its users")
    told = [told_of_node(owed, user) for user in range(len(owed.users))]
    named = dict.fromkeys(each["group"] for each in told if each["group"] is not None)
    if tuple(named) != owed.groups:
        raise _cannot("groups without users, or in another order than their users")
    out: dict[str, list[object]] = {}
    for key, column in WORDS.items():
        if any(each[key] != column.default for each in told):
            out[key] = ["" if each[key] == column.default else column.value.write(each[key], key) for each in told]
    for key, column in _ROWS.items():
        rows = [{} if each[key] is None else column.value.write(each[key], key) for each in told]
        for gpu_type in market.types:
            cells = [row.get(gpu_type, "") for row in rows]
            if any(cell != "" and (cell != 0 or column.name == "cap") for cell in cells):
                out[f"{key}:{gpu_type}"] = cells
    return out


#: What messages call the tables of a market file.
_CALLED: Mapping[str, str] = MappingProxyType({"good": "further goods", "gang": "gangs", "rate": "rates of types"})


def _default(key: str) -> Any:
    return next(each.default for each in OF_USERS if each.name == key)


def _cannot(what: str) -> BadInput:
    return BadInput(f"CSV has no place for {what}", place="the market", remedy="Write it as .toml or .json")

"""Entitlements in a market's CSV table: the columns ``group``, ``tier``, ``guarantee:TYPE``, ``cap:TYPE``, and so on.

A blank cell is one that is left out. Groups are named and say nothing of their own; gangs, further goods, rates and
groups in groups have no place here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.files.columns import Column, TableRow
from fairopt.problem.files.entitlements import OF_MARKETS, OF_USERS, entitlements_in, told_of_market, told_of_node
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market

_BY_TYPE = ("guarantee", "cap", "reserve", "held", "fixed")
#: Columns with one value for each user; the others have one for each type, and are called KEY:TYPE.
WORDS: Mapping[str, Column] = MappingProxyType({each.name: each for each in OF_USERS if each.name not in _BY_TYPE})
_ROWS: Mapping[str, Column] = MappingProxyType({each.name: each for each in OF_USERS if each.name in _BY_TYPE})


def is_entitled(name: str) -> bool:
    """Return whether a column of that name says what a user is entitled to."""
    return name in WORDS or (name.partition(":")[0] in _ROWS and ":" in name)


def entitlements_of(users: Sequence[TableRow], header: Sequence[str], types: Sequence[str]) -> Entitlements | None:
    """Return the entitlements in the columns of a CSV table. Errors: `BadInput` that names the line and column."""
    columns = [name for name in header if name not in types and is_entitled(name)]
    if not columns:
        return None
    by_key: dict[str, dict[str, str]] = {}
    for name in columns:
        key, _, gpu_type = name.partition(":")
        if name not in WORDS and gpu_type not in types:
            remedy = nearest(gpu_type, types, "type")
            raise BadInput(f"there is no type {gpu_type!r}", place=f"column {name!r}", remedy=remedy)
        by_key.setdefault(key, {})[name] = gpu_type
    rows = [TableRow(user.name, user.place, _values(user, by_key), user.at) for user in users]
    top: dict[str, Any] = {each.name: each.default for each in OF_MARKETS} | {"types": list(types)}
    return entitlements_in(TableRow("", "", top, str), rows)


def _values(user: TableRow, by_key: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {each.name: each.default for each in OF_USERS} | {"name": user.name, "job": None}
    for key, named in by_key.items():
        cells = {name: text for name in named if (text := user.values.get(name))}
        if key in WORDS and cells:
            values[key] = WORDS[key].value.read(cells[key], user.at(key))
        elif cells:
            read: dict[str, Any] = {}
            for name, text in cells.items():
                read |= _ROWS[key].value.read({named[name]: text}, user.at(name))
            values[key] = read
    return values


def cells_of(market: Market) -> dict[str, list[object]]:
    """Return the columns (n,) that say what users are entitled to. Errors: `BadInput` for what CSV cannot say."""
    owed = market.entitlements
    if market.least is not None:
        raise _cannot("speedups within bounds")
    if owed is None:
        return {}
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

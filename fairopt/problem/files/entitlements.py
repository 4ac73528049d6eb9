"""Entitlements in market files: the keys of users, and tables of groups, goods and gangs.

::

    [[user]]
    name = "train"
    speedup = "unknown"                     # or by type: a number, "unknown", [least, most], [least, speedup, most]
    group = "team-a"
    guarantee = {H100 = 8}                  # by type or good, or a list in the order of types; "unlimited" too
    cap = {H100 = 16}                       # no cap on types that are not named

    [[group]]
    name = "team-a"
    group = "org"                           # the group that it is in

    [[good]]
    resource = "cpu"
    flavor = "H100"                         # counted for gangs on this type; any other name: for all of them
    stock = 640

    [[gang]]
    name = "job-1"
    user = "train"
    gpus = 8
    on = "H100"                             # it runs; left out: it waits
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.entitled_rows import TOP, Good, Row
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.files.schema import (
    FLAG,
    NAME,
    NAMES,
    NUMBER,
    TEXT,
    Column,
    ObjectPart,
    TableType,
    ValueType,
    check_unique,
    number_schema,
    positive,
    tables,
)
from fairopt.problem.gangs import MOST_GANGS, PENDING, Gangs
from fairopt.problem.numbers import amount, exact, integer, shown, written
from fairopt.program import INFINITY, Array

UNLIMITED, UNKNOWN = "unlimited", "unknown"
_END = {"anyOf": [number_schema(minimum=0), {"const": UNLIMITED}]}


# -- what may stand in a column ------------------------------------------------------------------------------------
def _end(value: Any, place: str) -> Any:
    return INFINITY if value == UNLIMITED else amount(value, place)


def _written_end(value: Any, place: str) -> Any:
    return UNLIMITED if value == INFINITY else written(value, place)


def _by_name(each: ValueType, wanted: str) -> ValueType:
    """Return what a column holds that has an ``each`` by name; ``wanted`` is what messages call such a table."""

    def read(given: Any, place: str) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise BadInput(f"got {shown(given)}", place=place, remedy=f"Give a table {wanted}")
        return {str(name): each.read(value, f"{place}, {name!r}") for name, value in given.items()}

    return ValueType(
        read,
        lambda given, place: {name: each.write(value, place) for name, value in given.items()},
        {"anyOf": [{"type": "object", "additionalProperties": each.schema}]},
    )


_BY_NAME = _by_name(ValueType(_end, _written_end, _END), "{TYPE = number}, or a list with a number for each type")


def _read_row(given: Any, place: str) -> Row:
    if isinstance(given, list | tuple):
        return [_end(value, f"{place}, number {number}") for number, value in enumerate(given, start=1)]
    row: Row = _BY_NAME.read(given, place)
    return row


_ROW = ValueType(_read_row, _BY_NAME.write, {"anyOf": [{"type": "array", "items": _END}, *_BY_NAME.schema["anyOf"]]})
_INTEGER = ValueType(integer, lambda value, _: int(value), {"type": ["integer", "string"]})
_WEIGHT = ValueType(amount, written, number_schema(minimum=0))
_SETTINGS = _by_name(TEXT, '{OPTION = "text"}')

#: What users and groups may say.
OF_NODES = (
    Column("group", NAME, "The group that it is in.", None),
    Column("guarantee", _ROW, "Quota: what it can have at any time, by type. Of a group: its members' sum.", None),
    Column("cap", _ROW, "The most that it may hold, by type; no cap on types that are not named.", None),
    Column("reserve", _ROW, "The part of the guarantee that nobody may borrow, by type.", None),
    Column("borrow_weight", _WEIGHT, "Its weight beside its siblings in what they borrow.", 1),
    Column("tier", _INTEGER, "Its priority; higher goes first.", 0),
    Column("usage", _WEIGHT, "Decayed past usage, in GPU seconds or in the scheduler's own unit.", 0),
    Column("settings", _SETTINGS, "What the scheduler's own objects set beside amounts; only its rule reads it.", None),
)
#: What only users may say.
OF_USERS = (
    *OF_NODES,
    Column("held", _ROW, "What it holds now, by type; at least what its running gangs take.", None),
    Column("fixed", _ROW, "The part of what it holds that cannot be taken back, by type.", None),
)
GROUP = TableType(
    (Column("name", NAME, "The name of the group, which no other group or user has."), *OF_NODES), "groups"
)
GOOD = TableType(
    (
        Column("resource", NAME, "What is counted: cpu, memory."),
        Column("flavor", NAME, "The GPU type beside which it is counted, or another name: for all types."),
        Column("stock", _WEIGHT, "How much there is."),
    ),
    "goods",
)
GANG = TableType(
    (
        Column("name", NAME, "The name of the gang, which no other has."),
        Column("user", NAME, "The user that asked for it."),
        Column("gpus", _WEIGHT, "How many GPUs it takes, all of one type; it runs with all of them or not at all."),
        Column("types", NAMES, "The types on which it may run; all, where it is left out.", None),
        Column("on", NAME, "The type on which it runs; where it is left out it waits.", None),
        Column("tier", _INTEGER, "Its priority; higher goes first.", 0),
        Column("preemptible", FLAG, "Whether it may be stopped.", True),
        Column("since", NUMBER, "When it was asked for, in seconds; left out: 0, and the order here decides.", 0),
        Column("other", _by_name(_WEIGHT, "{RESOURCE = number}"), "What else it takes, by resource: {cpu = 64}.", None),
        Column("settings", _SETTINGS, "What the scheduler's own objects say of it; only its rule reads it.", None),
    ),
    "gangs",
    MOST_GANGS,
)
#: What the top level of a market file may say.
OF_MARKETS = (
    Column("group", tables(GROUP), "Groups of users and of groups.", None),
    Column("good", tables(GOOD), "Further resources that are counted, such as CPU.", None),
    Column("gang", tables(GANG), "What users asked for: it runs, or waits.", None),
    Column("rate", _ROW, "What a GPU of each type counts for where no speedups were measured.", None),
    Column("half_life", positive("number of seconds"), "Half-life of usage, in seconds.", None),
    Column("settings", _SETTINGS, "What the scheduler sets for the whole cluster; only its rule reads it.", None),
)
_KEYS = ("guarantee", "cap", "reserve", "borrow_weight", "tier", "usage", "held", "fixed")


# -- speedups that are not known -----------------------------------------------------------------------------------
def _read_speedups(given: Any, place: str) -> Any:
    if given == UNKNOWN:
        return UNKNOWN
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, list | tuple):
        remedy = f"Give a list of numbers, or {UNKNOWN!r}"
        raise BadInput(f"got {shown(given)}", place=place, remedy=remedy)
    return [each if not isinstance(each, list) else _range(each, f"{place} {at}") for at, each in enumerate(given, 1)]


def _range(ends: list[Any], place: str) -> tuple[Any, Any, Any]:
    """Return least, speedup and most; of two numbers the speedup is the mean."""
    if len(ends) not in (2, 3):
        raise BadInput(f"{len(ends)} numbers", place=place, remedy="Give [least, most], or [least, speedup, most]")
    least, most = exact(ends[0], place), _end(ends[-1], place)
    if len(ends) == 2 and most == INFINITY:
        raise BadInput("it has no upper end", place=place, remedy="Give [least, speedup, most] where most is unlimited")
    return least, (least + most) / 2 if len(ends) == 2 else exact(ends[1], place), most


def _written_speedups(row: Any, place: str) -> Any:
    return [
        [written(each[0], place), written(each[1], place), _written_end(each[2], place)]
        if isinstance(each, tuple)
        else each
        if each == UNKNOWN
        else written(each, place)
        for each in row
    ]


_LISTED = {"type": "array", "minItems": 1, "items": {"anyOf": [*_END["anyOf"], {"const": UNKNOWN}, {"type": "array"}]}}
SPEEDUPS = ValueType(_read_speedups, _written_speedups, {"anyOf": [_LISTED, {"const": UNKNOWN}]})


def speedup_rows(rows: Sequence[Any], rate: Sequence[Any], types: int) -> dict[str, Any]:
    """Return speedups, and least and most where not all are known, as `Market.of` takes them."""
    unknown = [(0, each, INFINITY) for each in rate]
    full = [
        unknown
        if row == UNKNOWN
        else [unknown[j] if each == UNKNOWN and j < types else each for j, each in enumerate(row)]
        for row in rows
    ]
    bounded = any(isinstance(each, tuple) for row in full for each in row)
    ends = {"least": 0, "speedup": 1, "most": 2} if bounded else {"speedup": 1}
    return {
        name: [[each[at] if isinstance(each, tuple) else each for each in row] for row in full]
        for name, at in ends.items()
    }


def ranged(speedup: Array, least: Array | None, most: Array | None) -> list[Any]:
    """Return a row of speedups (k,) as files hold it."""
    row: list[Any] = speedup.tolist()
    if least is None or most is None:
        return row
    ends = zip(least.tolist(), row, most.tolist(), strict=True)
    return [each if low == high else (low, each, high) for low, each, high in ends]


# -- reading and writing -------------------------------------------------------------------------------------------
def entitlements_in(top: ObjectPart, users: Sequence[ObjectPart]) -> Entitlements | None:
    """Return the entitlements that a market file states; None where it has none of their keys."""
    said = any(top[column.name] is not None for column in OF_MARKETS)
    if not said and all(user[column.name] == column.default for user in users for column in OF_USERS):
        return None
    groups = top["group"] or []
    check_unique(groups, "group")
    for user in users:
        key = next((column.name for column in OF_USERS if user[column.name] != column.default), None)
        if user["job"] is not None and key is not None:
            remedy = "Give it to users of one job type"
            raise BadInput("a user with several job types", place=user.place_of(key), remedy=remedy)
    names, types = [user.name for user in users], top["types"]
    gangs, goods = top["gang"] or [], top["good"] or []
    check_unique(gangs, "gang")
    stocks = {Good(each["resource"], each["flavor"]): each["stock"] for each in goods}
    if len(stocks) < len(goods):
        raise BadInput("a good stands twice", place="good", remedy="Give each resource once for a flavor")
    rows = [*users, *groups]
    given: dict[str, Any] = {
        key: {
            row.name: row[key]
            for row in (users if key in ("held", "fixed") else rows)
            if row[key] is not None and row.name not in (None, "")
        }
        for key in _KEYS
    }
    optional = {key: given[key] or None for key in ("held", "fixed")}
    return Entitlements.of(
        names,
        types,
        group={row.name: row["group"] for row in rows if row["group"] is not None},
        groups=[row.name for row in groups],
        goods=stocks,
        half_life=top["half_life"],
        rate=top["rate"],
        gangs=_gangs(gangs, names, types),
        settings={"": top["settings"] or {}, **{row.name: row["settings"] for row in rows if row["settings"]}},
        **(given | optional),
    )


def _gangs(rows: Sequence[ObjectPart], users: Sequence[str], types: Sequence[str]) -> Gangs:
    resources = list(dict.fromkeys(name for row in rows for name in row["other"] or {}))
    return Gangs.of(
        [row["user"] for row in rows],
        [row["gpus"] for row in rows],
        users=users,
        types=types,
        names=[row.name for row in rows],
        allowed=[row["types"] for row in rows],
        on=[row["on"] for row in rows],
        tier=[row["tier"] for row in rows],
        preemptible=[row["preemptible"] for row in rows],
        since=[row["since"] for row in rows],
        other={name: [(row["other"] or {}).get(name, 0) for row in rows] for name in resources},
        settings=[row["settings"] or {} for row in rows],
    )


def told_of_node(owed: Entitlements, node: int) -> dict[str, Any]:
    """Return what a file says of a user or group, for `OF_USERS` and `OF_NODES`."""
    over, n = int(owed.parent[node]), len(owed.users)
    said: dict[str, Any] = {
        "group": None if over == TOP else owed.nodes[over],
        "cap": _named(owed, owed.cap[node], INFINITY),
        "reserve": _named(owed, owed.reserve[node], 0),
        "borrow_weight": owed.borrow_weight[node],
        "tier": int(owed.tier[node]),
        "usage": owed.usage[node],
        "settings": owed.settings.get(owed.nodes[node]),
    }
    if node < n:
        said["guarantee"] = _named(owed, owed.guarantee[node], 0, every=True)
        for key, own, running in zip(("held", "fixed"), (owed.held, owed.fixed), owed.running_gangs, strict=True):
            said[key] = None if (own[node] == running[node]).all() else _named(owed, own[node], 0, every=True)
    else:
        implied = owed.guarantee[list(owed.children[node])].sum(axis=0)
        same = np.array_equal(owed.guarantee[node], implied)
        said["guarantee"] = None if same else _named(owed, owed.guarantee[node], 0, every=True)
    return said


def told_of_market(owed: Entitlements) -> dict[str, Any]:
    """Return what a file says beside its users, for `OF_MARKETS`."""
    n = len(owed.users)
    groups = [{"name": name} | told_of_node(owed, n + at) for at, name in enumerate(owed.groups)]
    goods = [{**good._asdict(), "stock": stock} for good, stock in zip(owed.goods, owed.stock, strict=True)]
    return {
        "group": groups or None,
        "good": goods or None,
        "gang": [_told_gang(owed, at) for at in range(len(owed.gangs))] or None,
        "rate": None if owed.rate is None else dict(zip(owed.types, owed.rate, strict=True)),
        "half_life": owed.half_life,
        "settings": owed.settings.get(""),
    }


def _told_gang(owed: Entitlements, at: int) -> dict[str, Any]:
    gangs = owed.gangs
    allowed, on = gangs.allowed[at], int(gangs.on[at])
    other = {name: each for name, each in zip(gangs.resources, gangs.other[at], strict=True) if each}
    return {
        "name": gangs.names[at],
        "user": owed.users[gangs.user[at]],
        "gpus": gangs.size(at),
        "types": None if allowed.all() else [owed.types[j] for j in np.flatnonzero(allowed)],
        "on": None if on == PENDING else owed.types[on],
        "tier": int(gangs.tier[at]),
        "preemptible": bool(gangs.preemptible[at]),
        "since": gangs.since[at],
        "other": other or None,
        "settings": gangs.settings[at] or None if gangs.settings else None,
    }


def _named(owed: Entitlements, row: Array, blank: Any, *, every: bool = False) -> dict[str, Any] | None:
    named = {name: each for name, each in zip(owed.columns, row, strict=True) if every or each != blank}
    return named or None

"""Allocations that somebody else made: read, matched to a market by name, exact, and not yet believed.

Negative and overbooked numbers are read as they are: whether an allocation is feasible is a property, and audited
there. What is no number, or has no place in the market, is bad input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import listed
from fairopt.problem.files.columns import TOP, VERSION
from fairopt.problem.files.csv_table import number, read_csv
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.market import check_column
from fairopt.problem.files.storage import AnyPath, naming, read_text, suffix_of
from fairopt.problem.frames import axes
from fairopt.problem.labels import check_keys, check_labels, is_pandas, nearest
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact, shown
from fairopt.program import Array, objects

#: What `fairopt solve --json` prints, and so what may stand beside an allocation.
SOLVE_KEYS = (
    *("schema", "policy", "backend", "status", "objective", "users", "types", "allocation", "utilities", "unique"),
    *("unique_utilities", "solver", "proven", "owners", "evidence", "seconds", "properties", "metrics", "certificate"),
)


def read_allocation(path: AnyPath, market: Market) -> Array:
    """Return the shares (n, k) as Fractions from a .csv file or from the JSON that ``solve`` prints.

    CSV has the header ``user,<type>...``; rows and columns are matched to the market by name, in any order. JSON is
    ``{"allocation": [[...]]}`` in the market's order, or in the order of its ``users`` and ``types`` where it has them.
    Errors: `BadInput` that names the file and the place: for names, another shape, and what is no finite number.
    """
    with naming(path):
        return _READERS[suffix_of(path, _READERS)](read_text(path), market)


def allocation_from(values: Any, market: Market) -> Array:
    """Return shares (n, k) as Fractions of lists, an array, or a labelled pandas table; errors as `read_allocation`."""
    if is_pandas(values, "DataFrame"):
        users, types = axes(values)
        check_labels(users, market.users, "user", "the table's rows")
        check_labels(types, market.types, "type", "the table's columns")
        return _sorted(_exact_rows(values.to_numpy(dtype=object), users, types), users, types, market)
    return _exact_rows(values, market.users, market.types)


def _exact_rows(values: Any, users: Sequence[str], types: Sequence[str]) -> Array:
    rows = [listed(row, f"allocation, row {number}") for number, row in enumerate(listed(values, "allocation"), 1)]
    lengths = sorted({len(row) for row in rows})
    if len(rows) != len(users) or lengths != [len(types)]:
        width = " or ".join(str(length) for length in lengths[:5]) or "0"
        raise BadInput(
            f"{len(rows)} rows of {width} numbers for {len(users)} users and {len(types)} types",
            place="allocation",
            remedy="Give a row for each user of the market, with a number for each type",
        )
    called = [f"allocation, user {number} ({user!r})" for number, user in enumerate(users, start=1)]
    return _table(
        [exact(value, f"{place}, type {name!r}", tiny=True) for name, value in zip(types, row, strict=True)]
        for place, row in zip(called, rows, strict=True)
    )


def _sorted(rows: Array, users: Sequence[str], types: Sequence[str], market: Market) -> Array:
    """Return rows and columns, named in any order, in the market's order."""
    of_user = {name: i for i, name in enumerate(users)}
    of_type = {name: j for j, name in enumerate(types)}
    return rows[np.ix_([of_user[name] for name in market.users], [of_type[name] for name in market.types])]


def _from_csv(text: str, market: Market) -> Array:
    _, header, rows = read_csv(text, "user", check_column)
    types = [name for name in header if name != "user"]
    check_labels(types, market.types, "type", "line 1")
    users, known = [row.name for row in rows], frozenset(market.users)
    for row in rows:
        if row.name not in known:
            remedy = nearest(row.name, market.users)
            raise BadInput("there is no such user in the market", place=row.place, remedy=remedy)
    check_labels(users, market.users, "user", "column 'user'")
    return _sorted(_table([number(row, name, tiny=True) for name in types] for row in rows), users, types, market)


def _table(rows: Iterable[list[Fraction]]) -> Array:
    given = list(rows)
    return objects(value for row in given for value in row).reshape(len(given), -1)


def _from_json(text: str, market: Market) -> Array:
    data = parse_json(text)
    check_keys(data, SOLVE_KEYS, ["allocation"], TOP)
    if data.get("schema", VERSION) != VERSION:
        remedy = f"This fairopt understands schema {VERSION}"
        raise BadInput(f"got version {shown(data['schema'])}", place="schema", remedy=remedy)
    if data["allocation"] is None:
        remedy = "Verify an allocation that was solved"
        raise BadInput(f"there is none; the status is {shown(data.get('status'))}", place="allocation", remedy=remedy)
    users = _names(data, "users", market.users, "user")
    types = _names(data, "types", market.types, "type")
    return _sorted(_exact_rows(data["allocation"], users, types), users, types, market)


def _names(data: Mapping[str, Any], key: str, wanted: tuple[str, ...], kind: str) -> list[str]:
    given = data.get(key, list(wanted))
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise BadInput(f"got {shown(given)}", place=key, remedy=f"Give a list of the {kind}s' names, or leave it out")
    check_labels(given, wanted, kind, key)
    return given


_READERS: Mapping[str, Callable[[str, Market], Array]] = MappingProxyType({".csv": _from_csv, ".json": _from_json})

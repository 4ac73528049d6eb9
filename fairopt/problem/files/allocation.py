"""Allocations that somebody else made: read, matched to a market by name, exact, and not yet believed.

Negative and overbooked numbers are read as they are: whether an allocation is feasible is a property, and audited
there. What is no number, or has no place in the market, is bad input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.files.cells import number, read_csv
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.market_csv import check_column
from fairopt.problem.files.schema import TOP, VERSION
from fairopt.problem.files.storage import AnyPath, naming, read_text, suffix_to_read
from fairopt.problem.labels import check_keys, check_labels, exact_rows, in_order, nearest, shares_given
from fairopt.problem.market import Market
from fairopt.problem.numbers import shown
from fairopt.program import Array, objects

#: What `fairopt solve --json` prints, and so what may stand beside an allocation.
SOLVE_KEYS = (
    *("schema", "policy", "backend", "status", "objective", "users", "types", "allocation", "utilities", "unique"),
    *("unique_utilities", "solver", "proven", "owners", "evidence", "seconds", "properties", "metrics", "certificate"),
)


def read_allocation(path: AnyPath, market: Market) -> Array:
    r"""Return the shares (n, k) as Fractions from a .csv file or from the JSON that ``solve`` prints.

    CSV has the header ``user,<type>...``; rows and columns are matched to the market by name, in any order. JSON is
    ``{"allocation": [[...]]}`` in the market's order, or in the order of its ``users`` and ``types`` where it has them.
    Errors: `BadInput` that names the file and the place: for names, another shape, and what is no finite number.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairopt import Market
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "shares.csv")
    ...     _ = file.write_text("user,K80\nB,0.5\nA,1/2\n")
    ...     read_allocation(file, Market.of([[1], [1]], capacity=[1], users=["A", "B"], types=["K80"])).tolist()
    [[Fraction(1, 2)], [Fraction(1, 2)]]
    """
    with naming(path):
        return _READERS[suffix_to_read(path, _READERS)](read_text(path), market)


def allocation_from(values: Any, market: Market) -> Array:
    """Return shares (n, k) as Fractions of lists, an array, or a labelled pandas table; errors as `read_allocation`.

    >>> from fairopt import Market
    >>> allocation_from([["1/2", 0], [0.5, 1]], Market.of([[1, 2], [1, 5]], capacity=[1, 1])).tolist()[0]
    [Fraction(1, 2), Fraction(0, 1)]
    """
    return shares_given(values, market.users, market.types)


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
    numbers = objects(number(row, name, tiny=True) for row in rows for name in types)
    return in_order(numbers.reshape(len(rows), -1), users, types, market.users, market.types)


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
    return in_order(exact_rows(data["allocation"], users, types), users, types, market.users, market.types)


def _names(data: Mapping[str, Any], key: str, wanted: tuple[str, ...], kind: str) -> list[str]:
    given = data.get(key, list(wanted))
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise BadInput(f"got {shown(given)}", place=key, remedy=f"Give a list of the {kind}s' names, or leave it out")
    check_labels(given, wanted, kind, key)
    return given


_READERS: Mapping[str, Callable[[str, Market], Array]] = MappingProxyType({".csv": _from_csv, ".json": _from_json})

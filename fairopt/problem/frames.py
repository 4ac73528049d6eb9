"""Tables of numbers that people give, a row for each user: lists, arrays, or pandas tables with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import listed, listed_names
from fairopt.problem.labels import as_name, check_labels, is_pandas
from fairopt.problem.numbers import exact
from fairopt.program import Array, objects

Names: TypeAlias = Sequence[str] | None


def is_frame(values: object) -> bool:
    """Whether ``values`` are a pandas table; pandas is not imported for it."""
    return is_pandas(values, "DataFrame")


def axes(frame: Any) -> tuple[list[str], list[str]]:
    """Return the labels of the rows and of the columns of a pandas table, as names."""
    rows = [as_name(label, "the table's rows") for label in frame.index]
    return rows, [as_name(label, "the table's columns") for label in frame.columns]


def with_names(table: Any, users: Names, types: Names) -> tuple[Any, Names, Names]:
    """Return a table without its labels, and the names of its rows and columns: the labels of a pandas table.

    Errors: `BadInput` where such a table comes with other names beside it, and for names that are no list of strings.
    """
    if not is_frame(table):
        return table, listed_names(users, "users"), listed_names(types, "types")
    if users is not None or types is not None:
        remedy = "Leave out users and types, or rename the table's rows and columns"
        raise BadInput("the table has names already", place="users" if types is None else "types", remedy=remedy)
    return table.to_numpy(dtype=object), *axes(table)


def shares_given(values: Any, users: Sequence[str], types: Sequence[str]) -> Array:
    """Return shares (n, k) as Fractions of lists, an array, or a pandas table, whose labels may be in any order.

    Errors: `BadInput` that names the place: for labels, another shape, and what is no finite number.
    """
    if not is_frame(values):
        return exact_rows(values, users, types)
    rows, columns = axes(values)
    check_labels(rows, users, "user", "the table's rows")
    check_labels(columns, types, "type", "the table's columns")
    return in_order(exact_rows(values.to_numpy(dtype=object), rows, columns), rows, columns, users, types)


def exact_rows(values: Any, users: Sequence[str], types: Sequence[str]) -> Array:
    """Return shares (n, k) as Fractions of lists or an array in the order of ``users`` and ``types``."""
    rows = [listed(row, f"allocation, row {number}") for number, row in enumerate(listed(values, "allocation"), 1)]
    lengths = sorted({len(row) for row in rows})
    if len(rows) != len(users) or lengths != [len(types)]:
        width = " or ".join(str(length) for length in lengths[:5]) or "0"
        raise BadInput(
            f"{len(rows)} rows of {width} numbers for {len(users)} users and {len(types)} types",
            place="allocation",
            remedy="Give a row for each user of the market, with a number for each type",
        )
    return objects(
        exact(value, f"allocation, user {number} ({user!r}), type {name!r}", tiny=True)
        for number, (user, row) in enumerate(zip(users, rows, strict=True), start=1)
        for name, value in zip(types, row, strict=True)
    ).reshape(len(users), len(types))


def in_order(
    table: Array, rows: Sequence[str], columns: Sequence[str], users: Sequence[str], types: Sequence[str]
) -> Array:
    """Return a table (n, k), whose axes are ``rows`` and ``columns``, in the order of ``users`` and ``types``."""
    of_user = {name: i for i, name in enumerate(rows)}
    of_type = {name: j for j, name in enumerate(columns)}
    return np.asarray(table[np.ix_([of_user[name] for name in users], [of_type[name] for name in types])])

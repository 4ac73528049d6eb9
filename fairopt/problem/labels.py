"""Names that must match: the nearest known name, and columns of numbers aligned by label, never by guess."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.checks import listed, listed_names
from fairopt.problem.numbers import exact, shown
from fairopt.program import Array, objects

Names: TypeAlias = Sequence[str] | None


def nearest(name: object, known: Iterable[str], kind: str = "name") -> str:
    """Return a remedy for an unknown name: the known one that is closest, else what is known."""
    names = list(known)
    alike = {each.casefold(): each for each in names[:2000]}  # small and capital letters count as the same
    for close in difflib.get_close_matches(str(name)[:200].casefold(), alike, n=1):
        return f"Did you mean {alike[close]!r}?"
    more = ", ..." if len(names) > 20 else ""
    return f"Known {kind}s: {', '.join(names[:20])}{more}" if names else f"There are no {kind}s"


def check_keys(table: Mapping[Any, object], known: Sequence[str], required: Sequence[str], place: str) -> None:
    """Refuse unknown keys and missing ones, naming the key, the place and the closest known key."""
    for key in table:
        if key not in known:
            raise BadInput(f"unknown key {shown(key)}", place=place, remedy=nearest(key, known, "key"))
    for key in required:
        if key not in table:
            raise BadInput(f"the key {key!r} is missing", place=place, remedy=f"Add {key}")


def check_labels(given: Sequence[object], wanted: Sequence[str], kind: str, place: str) -> None:
    """Refuse labels that are not exactly the wanted ones, each once, in any order."""
    seen: set[object] = set()
    known = frozenset(wanted)
    for label in given:
        if label not in known:
            remedy = nearest(label, wanted, kind)
            raise BadInput(f"there is no {kind} {shown(label)} in the market", place=place, remedy=remedy)
        if label in seen:
            raise BadInput(f"{kind} {shown(label)} stands twice", place=place, remedy="Give each once")
        seen.add(label)
    missing = [label for label in wanted if label not in seen]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadInput(f"{kind} {missing[0]!r}{more} missing", place=place, remedy=f"Give every {kind} once")


def aligned(values: Any, labels: Sequence[str] | None, what: str, kind: str) -> list[object]:
    """Return one value per label, by label or listed in order; `BadInput` where labels are not exactly ``labels``.

    Without ``labels`` values must be in order.
    """
    if labels is None:
        if isinstance(values, Mapping):
            remedy = f"Give a list in order, or name the {kind}s too: {kind}s=[...]"
            raise BadInput("got a dictionary, and nothing has labels", place=what, remedy=remedy)
        return listed(values, what)
    if is_pandas(values, "Series"):
        pairs = zip(values.index, values.tolist(), strict=True)
    elif isinstance(values, Mapping):
        pairs = zip(values, values.values(), strict=True)
    else:
        return listed(values, what)
    named = [(as_name(label, what), value) for label, value in pairs]
    check_labels([name for name, _ in named], labels, kind, what)
    by_name = dict(named)
    return [by_name[label] for label in labels]


def in_place(values: Any, labels: Sequence[str] | None, what: str, kind: str) -> Any:
    """Return what has labels as `aligned` does, and all else as it is."""
    return aligned(values, labels, what, kind) if isinstance(values, Mapping) or is_pandas(values, "Series") else values


def as_name(label: object, place: str) -> str:
    """Return a table's label as a name; whole numbers are written out, since pandas counts rows by default."""
    if isinstance(label, str):
        return label
    if isinstance(label, int) and not isinstance(label, bool):
        return str(label)
    raise BadInput(f"got the label {shown(label)}", place=place, remedy="Label rows and columns with strings")


def is_pandas(value: object, kind: str) -> bool:
    """Return whether ``value`` is a pandas object of a kind; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")  # an object of pandas cannot be there before pandas is imported
    return pandas is not None and isinstance(value, getattr(pandas, kind))


# -- tables of numbers, a row for each user: lists, arrays, or pandas tables with labels ---------------------------
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
        raise BadInput("the table has labels already", place="users" if types is None else "types", remedy=remedy)
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
            f"{counted(len(rows), 'row')} of {width} number{'s' * (width != '1')} "
            f"for {counted(len(users), 'user')} and {counted(len(types), 'type')}",
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

"""What makes a market, and columns of problems, valid; refusals name the row, the column, the value and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.numbers import LEAST, MOST, amount, beyond, exact, shown, whole
from fairopt.program import INFINITY, Array, Number, objects

#: Beyond these a market is taken for a mistake; the largest cluster in the literature has ten types.
MOST_ROWS, MOST_TYPES, MOST_SPEEDUPS = 100_000, 1_000, 5_000_000
#: A table of speedups in floats larger than this (4 GB) is taken for a mistake.
MOST_CELLS = 500_000_000


def check_size(users: int, types: int) -> None:
    """Refuse nothing at all, and too much."""
    if not types:
        raise BadInput("no GPU types", place="capacity", remedy="Give at least one type and its capacity")
    if types > MOST_TYPES:
        raise BadInput(counted(types, "type"), place="types", remedy=f"Give at most {MOST_TYPES}")
    if not users:
        raise BadInput("no users", place="speedup", remedy="Give at least one user")
    if users > MOST_ROWS or users * types > MOST_SPEEDUPS:
        remedy = f"Give at most {MOST_ROWS} users and {MOST_SPEEDUPS} speedups"
        raise BadInput(f"{counted(users, 'user')} with {counted(types, 'type')}", place="speedup", remedy=remedy)


def listed(values: object, place: str, of: str = "numbers") -> list[object]:
    """Return the entries of a list, an array or a tuple; strings, dictionaries and sets are none."""
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise BadInput(f"got {shown(values)}", place=place, remedy=f"Give a list of {of}")
    try:
        return list(values)
    except TypeError as error:  # an array of no dimensions says so only here
        raise BadInput(f"got {values!r:.100}", place=place, remedy=f"Give a list of {of}") from error


def listed_rows(speedup: object) -> list[list[object]]:
    """Return the rows of a table, each as `listed` has it."""
    return [listed(row, f"speedup, row {number}") for number, row in enumerate(listed(speedup, "speedup"), start=1)]


def check_name(name: object, place: str) -> str:
    """Return ``name`` where it is a printable string of 1 to 200 letters."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
        raise BadInput(f"got {shown(name)}", place=place, remedy="Give a printable name of 1 to 200 letters")
    return name


def listed_owners(owner: Iterable[str] | None, rows: int) -> list[str] | None:
    """Return the owner of each row, or None."""
    given = listed_names(owner, "owner")
    if given is not None and len(given) != rows:
        raise BadInput(f"{len(given)} owners for {counted(rows, 'row')}", place="owner", remedy="Give one for each row")
    return given


def listed_names(names: Iterable[str] | None, place: str) -> list[str] | None:
    """Return names as a list of strings, or None; `BadInput` for what is no list of strings."""
    if names is None:
        return None
    try:
        given = None if isinstance(names, str) else list(names)
    except TypeError:  # an array without a length says so only here
        given = None
    if given is None or not all(isinstance(name, str) for name in given):
        raise BadInput(f"got {shown(names)}", place=place, remedy="Give a list of names, each a string")
    return given


def checked_names(given: Sequence[str] | None, count: int, kind: str, letter: str) -> tuple[str, ...]:
    """Return one name for each of ``count``, all different; without any the letter and a number."""
    names = listed_names(given, f"{kind}s")
    if names is None:
        return tuple(f"{letter}{number}" for number in range(1, count + 1))
    if len(names) != count:
        rows = counted(count, "capacity") if kind == "type" else f"{counted(count, 'row')} of speedups"
        wrong = f"{counted(len(names), kind)} for {rows}"
        raise BadInput(wrong, place=f"{kind}s", remedy="Give one name for each")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        check_name(name, f"{kind} {number}")
        if name in seen:
            raise BadInput(
                f"{kind}s {seen[name]} and {number} are both called {name!r}",
                place=f"{kind}s",
                remedy="Give each a name of its own",
            )
        seen[name] = number
    return tuple(names)


def speedup_table(rows: list[list[object]], places: Sequence[str], types: tuple[str, ...]) -> Array:
    """Return the speedups (n, k) as Fractions that are not negative."""
    for place, row in zip(places, rows, strict=True):
        if len(row) != len(types):
            remedy = f"Give one for each of {', '.join(types[:20])}; 0 where the user cannot run"
            raise BadInput(
                f"{counted(len(row), 'speedup')} for {counted(len(types), 'type')}",
                place=f"{place}, speedup",
                remedy=remedy,
            )
    return objects(
        amount(value, f"{place}, speedup on {name!r}")
        for place, row in zip(places, rows, strict=True)
        for name, value in zip(types, row, strict=True)
    ).reshape(len(rows), len(types))


def speedup_ends(rows: object, places: Sequence[str], types: tuple[str, ...]) -> Array:
    """Return the largest that each speedup (n, k) may be; infinity where None or infinity is given."""
    given = listed_rows(rows)
    open_ = [[value is None or value == INFINITY for value in row] for row in given]
    closed = [[0 if o else v for v, o in zip(row, each, strict=True)] for row, each in zip(given, open_, strict=True)]
    table = speedup_table(closed, places, types)
    table[np.array(open_, dtype=bool)] = INFINITY
    return table


def check_ends(least: Array | None, speedup: Array, most: Array | None, places: Sequence[str]) -> None:
    """Refuse ends of speedups that are not around them, and one of the two is missing."""
    if (least is None) != (most is None):
        raise BadInput("one of the two is missing", place="least, most", remedy="Give both, or neither")
    if least is not None and most is not None:
        if not least.shape == speedup.shape == most.shape:
            raise BadInput(f"{least.shape} and {most.shape}", place="least, most", remedy="Give one row for each user")
        for user, column in np.argwhere(~((least <= speedup) & (speedup <= most)))[:1]:
            got = f"got {least[user, column]} and {most[user, column]} around {speedup[user, column]}"
            remedy = "Give a least that is not above the speedup, and a most that is not below it"
            raise BadInput(got, place=f"{places[user]}, speedup {column + 1}", remedy=remedy)


def check_entitled(entitlements: Any, users: tuple[str, ...], types: tuple[str, ...]) -> None:
    """Refuse entitlements of other users or types, or in another order."""
    if entitlements is not None and (entitlements.users, entitlements.types) != (users, types):
        remedy = "Make them with the market's users and types, in its order"
        raise BadInput("the users or types are not those of the market", place="entitlements", remedy=remedy)


def check_market(capacity: Array, weight: Array, limit: Array, places: Sequence[str]) -> None:
    """Refuse a market without GPUs, and weights and demands (``limit``) that are not positive."""
    if not any(capacity > 0):
        raise BadInput("no type has any GPUs", place="capacity", remedy="Give at least one type a positive capacity")
    for place, own in zip(places, weight, strict=True):
        if own <= 0:
            raise BadInput(f"got {own}", place=f"{place}, weight", remedy="Give a positive weight")
    for place, most in zip(places, limit, strict=True):
        if most <= 0:
            remedy = "Give a positive demand, or leave out the user"
            raise BadInput(f"got {most}", place=f"{place}, demand", remedy=remedy)


def check_rows(speedup: Array, capacity: Array, places: Sequence[str]) -> None:
    """Refuse rows (n, k) of users that can run nowhere: a fair utility is then 0, and no ratio to it means anything."""
    runs_on, usable = speedup.astype(bool), capacity.astype(bool)  # neither is negative
    for user in np.flatnonzero(~(runs_on & usable).any(axis=1))[:1]:
        where = "it runs only where there are no GPUs" if runs_on[user].any() else "every speedup is 0"
        remedy = "Give a positive speedup on a type that has GPUs, or leave out the user"
        raise BadInput(f"the user can run nowhere: {where}", place=f"{places[user]}, speedup", remedy=remedy)


def reported_row(row: Iterable[Any], types: int, place: str, *, in_fractions: bool) -> Array:
    """Return the speedups (types,) that a user reports; `BadInput` for numbers that no market takes."""
    told = np.array([exact(v, place) for v in row] if in_fractions else [float(v) for v in row])
    if told.shape != (types,):
        raise BadInput(
            f"{counted(len(told), 'speedup')} for {counted(types, 'type')}", place=place, remedy="Give one per type"
        )
    if not all(told >= 0):  # NaN is caught as well
        raise BadInput(f"got {told.tolist()}", place=place, remedy="Give speedups that are not negative")
    if not in_fractions:
        _refuse_beyond(told[None, :], "speedup", lambda _: place)
    return told


# -- arrays of floats: the same refusals, for whole arrays at once --------------------------------------------------
def float_table(values: ArrayLike, name: str, dimensions: int) -> Array:
    """Return ``values`` as floats, a copy nobody else holds; `BadInput` where they are no array of numbers."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        what = f"not an array of numbers: {error!s:.200}"
        raise BadInput(what, place=name, remedy="Give an array of floats") from error
    if array.ndim != dimensions:
        remedy = "Speedups are (n, k), the others flat"
        raise BadInput(f"got {array.ndim} dimensions for {dimensions}", place=name, remedy=remedy)
    return array


def check_arrays(
    speedup: Array, capacity: Array, weight: Array, demand: Array | None, called: Callable[[int], str]
) -> None:
    """Refuse what is not a market; ``called`` says what a row is called."""
    n, k = speedup.shape
    for name, array, size, unit in (
        ("capacity", capacity, k, "type"),
        ("weight", weight, n, "user"),
        *((("demand", demand, n, "user"),) if demand is not None else ()),
    ):
        if len(array) != size:
            raise BadInput(
                f"{counted(len(array), 'value')} for {size} {unit}s", place=name, remedy=f"Give one for each {unit}"
            )
    if not n or not k or k > MOST_TYPES or n * k > MOST_CELLS:
        remedy = f"Give 1 to {MOST_TYPES} types, {MOST_CELLS} speedups"
        raise BadInput(f"{counted(n, 'user')} with {counted(k, 'type')}", place="speedup", remedy=remedy)
    remedy = "Give numbers, not negative"
    _refuse(~np.isfinite(speedup) | (speedup < 0), speedup, "speedup", called, remedy)
    _refuse(~np.isfinite(capacity) | (capacity < 0), capacity, "capacity", lambda j: f"type {j + 1}", remedy)
    _refuse(~np.isfinite(weight) | (weight <= 0), weight, "weight", called, "Give a positive weight")
    if demand is not None:
        _refuse(~(demand > 0), demand, "demand", called, "Give a positive demand; infinity is none")
        _refuse_beyond(np.where(np.isinf(demand), 0.0, demand), "demand", called)
    _refuse_beyond(speedup, "speedup", called)
    _refuse_beyond(capacity, "capacity", lambda j: f"type {j + 1}")
    _refuse_beyond(weight, "weight", called)
    if not (capacity > 0).any():
        raise BadInput("no type has any GPUs", place="capacity", remedy="Give at least one type a positive capacity")
    idle = ~((speedup > 0) & (capacity > 0)).any(axis=1)
    _refuse(idle, speedup.max(axis=1), "speedup", called, "The user can run nowhere: give it a type that has GPUs")


def demands(values: ArrayLike | None) -> Array | None:
    """Return demands as floats; NaN is refused later, infinity says that there is no limit, and None that none has."""
    table = None if values is None else float_table(values, "demand", 1)
    return None if table is None or (table == INFINITY).all() else table


def _refuse(broken: Any, values: Array, name: str, called: Callable[[int], str], remedy: str) -> None:
    if broken.any():
        at, place = _first(broken, name, called)
        raise BadInput(f"got {values[at]}", place=place, remedy=remedy)


def _refuse_beyond(values: Array, name: str, called: Callable[[int], str]) -> None:
    """Refuse numbers, not negative, that `Market.of` refuses for their size, in the same words."""
    broken = are_beyond(values)
    if broken.any():
        at, place = _first(broken, name, called)
        raise beyond(float(values[at]), place)


def are_beyond(values: Array) -> Array:
    """Return which numbers, not negative, no market takes for their size; in the shape of ``values``."""
    # the float 1e30 is a little more than 10 to the 30
    return np.asarray((values >= float(MOST)) | ((values < float(LEAST)) & (values > 0)))


def _first(broken: Array, name: str, called: Callable[[int], str]) -> tuple[tuple[int, ...], str]:
    """Return where the first broken value stands, and how that place is told."""
    at = tuple(int(each) for each in np.argwhere(broken)[0])
    column = f" {at[1] + 1}" if len(at) > 1 else ""
    return at, f"{called(at[0])}, {name}{column}"


# -- columns: one validated value for each row, exact ----------------------------------------------------------------


class Frozen:
    """A base of dataclasses in columns: nobody can change the arrays in their fields."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


def one_each(values: object, count: int, default: object = None) -> list[object]:
    """Return ``values`` as a list; where nothing is given, ``default`` for each of ``count``."""
    return [default] * count if values is None else listed(values, "values")


def column(
    values: object, places: Sequence[str], what: str, kind: str, read: Callable[..., Any], dtype: Any = None,
    *, blank: object = ...,
) -> Array:  # fmt: skip
    """Return one value for each of ``places``, as ``read`` returns it of a value and its place.

    Where no values are given it is that of ``blank``. Without a ``dtype`` they are objects. ``kind`` is what messages
    call one of the places. What stands in several rows is read once.
    """
    given = sized([blank] * len(places) if values is None and blank is not ... else values, places, what, kind)
    classes = set(map(type, given))
    if str in classes:
        keys: list[Any] = (
            given if len(classes) == 1 else [value if type(value) is str else id(value) for value in given]
        )
    else:
        keys = list(map(id, given))
    try:
        known = {key: read(value, "") for key, value in dict(zip(keys, given, strict=True)).items()}
    except BadInput:
        for place, value in zip(places, given, strict=True):
            read(value, f"{place}, {what}")  # the first that is wrong, now with its place
        raise
    found = list(map(known.__getitem__, keys))
    return objects(found) if dtype is None else np.array(found, dtype=dtype)


def checked_counts(
    values: object, places: Sequence[str], what: str, kind: str, least: int = 1, *, blank: object = ...
) -> Array:
    """Return one integer of at least ``least`` for each of ``places``, as int64."""
    return column(values, places, what, kind, partial(whole, least=least), np.int64, blank=blank)


def amounts(
    values: object, places: Sequence[str], what: str, kind: str = "job", *, above: bool = False, blank: object = ...
) -> Array:
    """Return one Fraction that is not negative (``above``: positive) for each of ``places``."""
    return column(values, places, what, kind, partial(amount, above=above), blank=blank)


def limits(values: object, places: Sequence[str], what: str, kind: str, *, above: bool = True) -> Array:
    """Return one Fraction for each of ``places``, as `amounts`; infinity where None or infinity is given."""

    def read(value: object, place: str) -> Number:
        unbounded = value is None or (isinstance(value, float) and value == INFINITY)
        return INFINITY if unbounded else amount(value, place, above=above)

    return column(values, places, what, kind, read, blank=None)


def sized(values: object, places: Sequence[str], what: str, kind: str) -> list[object]:
    """Return ``values`` as a list, one for each of ``places``; ``kind`` is what messages call one of these."""
    given = listed(values, what)
    if len(given) != len(places):
        raise BadInput(
            f"{counted(len(given), 'value')} for {len(places)} {kind}s", place=what, remedy=f"Give one for each {kind}"
        )
    return given

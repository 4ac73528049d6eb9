"""Amounts of users and groups by type and good, as somebody gives them, and the tree that the groups make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fairopt.errors import BadInput, type_of
from fairopt.problem.checks import limits, listed
from fairopt.problem.gangs import Gangs
from fairopt.problem.labels import is_pandas, nearest
from fairopt.problem.numbers import amount
from fairopt.program import INFINITY, Array, cast, objects

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: More levels of groups than this are taken for a mistake.
DEEPEST = 50
#: Amounts of one user or group: by type or good, or in the order of the types.
Row: TypeAlias = "Mapping[str, object] | Sequence[object]"
#: Rows or values by the name of a user or group.
ByName: TypeAlias = "Mapping[str, Any] | DataFrame | Series[Any]"
#: In `Entitlements.parent`: nobody is above.
TOP = -1


class Good(NamedTuple):
    """A further resource that is counted: CPU beside GPUs of one type, say; ``flavor`` is where it is counted.

    >>> print(Good("cpu", "H100"))
    cpu:H100
    """

    resource: str
    flavor: str

    def __str__(self) -> str:
        return f"{self.resource}:{self.flavor}"


class Nodes(NamedTuple):
    """For whom and what amounts may be given: users and groups by name, types and goods."""

    place: Mapping[str, int]
    types: tuple[str, ...]
    goods: tuple[Good, ...]

    def node(self, name: str, what: str) -> int:
        """Return the node of that name; ``what`` is the key that messages name."""
        if name not in self.place:
            raise BadInput(f"there is no user or group {name!r}", place=what, remedy=nearest(name, self.place))
        return self.place[name]

    def row(self, given: Row, name: str, what: str, blank: Any, *, infinite: bool) -> Array:
        """Return the amounts (k + g,) of one user or group, ``blank`` (a number, or a row) where nothing is given."""
        known = (*self.types, *map(str, self.goods))
        out = objects(list(blank) if isinstance(blank, np.ndarray) else [blank] * len(known))
        where = f"{name!r}, {what}"
        if not isinstance(given, Mapping):
            values = listed(given, where)
            if len(values) not in (len(self.types), len(known)):
                raise BadInput(
                    f"{len(values)} numbers for {len(self.types)} types", place=where, remedy="Give one for each type"
                )
            given = dict(zip(known, values, strict=False))
        for column, value in given.items():
            if column not in known:
                raise BadInput(f"got {column!r}", place=where, remedy=nearest(column, known, "type"))
            at = f"{where}, {column!r}"
            out[known.index(column)] = (
                limits([value], [at], "", "")[0] if _unbounded(value, infinite) else amount(value, at)
            )
        return cast(out, Fraction)

    def table(self, given: ByName | None, what: str, blank: Any, count: int, *, infinite: bool = False) -> Array:
        """Return the amounts (count, k + g) of the first ``count`` nodes; groups beyond them are refused."""
        width = len(self.types) + len(self.goods)
        out = np.empty((count, width), dtype=object)
        out[:] = (
            cast(blank, Fraction) if isinstance(blank, np.ndarray) else blank if blank == INFINITY else Fraction(blank)
        )
        for name, row in by_name(given, what).items():
            node = self.node(name, what)
            if node >= count:
                raise BadInput(f"{name!r} is a group", place=what, remedy="Give it for users")
            out[node] = self.row(row, name, what, out[node], infinite=infinite)
        return out

    def column(self, given: ByName | None, what: str, blank: Any, read: Callable[..., Any]) -> Array:
        """Return one value (N,) for each node, ``blank`` where nothing is given."""
        out = objects([blank] * len(self.place))
        for name, value in by_name(given, what).items():
            out[self.node(name, what)] = read(value, f"{name!r}, {what}")
        return out


def by_name(given: Any, what: str) -> Mapping[str, Any]:
    """Return what is given of users and groups by their names; of a pandas table or column, what is not NaN.

    Errors: `BadInput` for what is no mapping, and for a table in which a name stands twice.
    """
    if is_pandas(given, "DataFrame"):
        for labels in (given.index, given.columns):
            _once(labels, what)
        return {str(name): row.dropna().to_dict() for name, row in given.astype(object).iterrows()}
    if is_pandas(given, "Series"):
        _once(given.index, what)
        return {str(name): value for name, value in given.dropna().items()}
    if given is not None and not isinstance(given, Mapping):
        raise BadInput(f"got {type_of(given)}", place=what, remedy="Give a mapping, by the name of a user or group")
    return given or {}


def _once(labels: Any, what: str) -> None:
    names = [str(each) for each in labels]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{twice!r} stands twice", place=what, remedy="Give each name one row, and each type one column")


def _unbounded(value: object, infinite: bool) -> bool:
    return infinite and (value is None or (isinstance(value, float) and value == INFINITY))


def upwards_of(parent: Array, names: Sequence[str]) -> tuple[int, ...]:
    """Return all nodes, the deepest first. Errors: `BadInput` for groups in a circle, and too deep ones."""
    depth = [0] * len(parent)
    over = parent.tolist()
    for node in range(len(over)):
        at = over[node]
        while at != TOP:
            depth[node] += 1
            if depth[node] > DEEPEST:
                remedy = f"A group is not inside itself, and at most {DEEPEST} groups lie inside each other"
                raise BadInput(f"{names[at]!r} is in a circle of groups, or too deep", place="group", remedy=remedy)
            at = over[at]
    return tuple(sorted(range(len(over)), key=lambda node: -depth[node]))


def held_by(gangs: Gangs, users: int, types: tuple[str, ...], goods: tuple[Good, ...], chosen: Array | None) -> Array:
    """Return what running gangs take (n, k + g), GPUs and goods, as Fractions."""
    k = len(types)
    out = np.empty((users, k + len(goods)), dtype=object)
    out[:] = Fraction(0)
    out[:, :k] += gangs.held(users, chosen)
    column = {good: k + at for at, good in enumerate(goods)}
    elsewhere = {good.resource: at for good, at in reversed(column.items()) if good.flavor not in types}
    runs = ~gangs.pending if chosen is None else ~gangs.pending & chosen
    for gang in np.flatnonzero(runs) if goods else ():
        for at, resource in enumerate(gangs.resources):
            good = column.get(Good(resource, types[gangs.on[gang]]), elsewhere.get(resource))
            if good is not None:
                out[gangs.user[gang], good] += gangs.other[gang, at]
    return cast(out, Fraction)


def own_part(guarantee: Array, children: Sequence[Sequence[int]]) -> Array:
    """Return each node's own guarantee (N, k + g): of a group, what it has beyond its members together.

    Negative where the members are promised more than their group has; 0 where both are infinite.
    """
    own = guarantee.copy()
    for node, below in enumerate(children):
        for at in range(own.shape[1] if below else 0):
            members = sum((guarantee[child, at] for child in below), Fraction(0))
            own[node, at] = Fraction(0) if members == INFINITY else guarantee[node, at] - members
    return own

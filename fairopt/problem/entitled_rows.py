"""Amounts of users and groups by type and good, as somebody gives them, and the tree that the groups make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fairopt.errors import BadInput, require, type_of
from fairopt.numbers import whole_as_int
from fairopt.problem.gangs import Gangs
from fairopt.problem.labels import is_pandas
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


def tops_of(parent: Array, upwards: Sequence[int]) -> list[int]:
    """Return of each node the one at the top of its tree; ``upwards`` are all nodes, the deepest first."""
    tops = list(range(len(parent)))
    for node in reversed(upwards):
        if parent[node] != TOP:
            tops[node] = tops[parent[node]]
    return tops


def held_by(gangs: Gangs, users: int, types: tuple[str, ...], goods: tuple[Good, ...], chosen: Array | None) -> Array:
    """Return what running gangs take (n, k + g), GPUs and goods, as Fractions."""
    k = len(types)
    out = np.zeros((users, k + len(goods)), dtype=object)  # ints, which are quicker to add than Fractions
    out[:, :k] = gangs.held(users, chosen)
    column = {good: k + at for at, good in enumerate(goods)}
    elsewhere = {good.resource: at for good, at in reversed(column.items()) if good.flavor not in types}
    runs = ~gangs.pending if chosen is None else ~gangs.pending & chosen
    at_work = np.flatnonzero(runs)
    for at, resource in enumerate(gangs.resources if goods else ()):
        none = elsewhere.get(resource, TOP)
        of_type = np.array([column.get(Good(resource, kind), none) for kind in types], dtype=np.int64)
        counted = at_work[of_type[gangs.on[at_work]] >= 0]
        taken = objects(map(whole_as_int, gangs.other[counted, at].tolist()))
        np.add.at(out, (gangs.user[counted], of_type[gangs.on[counted]]), taken)
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


def require_kinds(groups: Any, goods: Any, gangs: Any) -> None:
    """Refuse what is given of groups, goods and gangs as something else than these."""
    for fits, given, place, remedy in (
        (not isinstance(groups, str | bytes), groups, "groups", "Give a list of names"),
        (goods is None or isinstance(goods, Mapping), goods, "goods", "Give a mapping from Good to its stock"),
        (gangs is None or isinstance(gangs, Gangs), gangs, "gangs", "Make them with Gangs.of"),
        *((isinstance(each, Good), each, "goods", 'Give Good("cpu", "all"), say') for each in goods or ()),
    ):
        require(fits, repr(given), place, remedy)
    names = list(groups)
    require(len(set(names)) == len(names), names, "groups", "Give each group once")

"""`Entitlements`: what users and groups of users are owed, may take, hold and ask for, by GPU type."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic, holds_objects
from fairopt.problem.checks import Frozen, check_name, listed
from fairopt.problem.entitled_rows import TOP, ByName, Good, Row, by_name, held_by, require_kinds, upwards_of
from fairopt.problem.gangs import Gangs, no_gangs
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import amount, integer
from fairopt.program import INFINITY, Array, Number, cast, objects


class Entitled(enum.Enum):
    """What entitlements may say that changes who gets what.

    >>> Entitled.CAPS.value
    'caps'
    """

    GUARANTEES = "guarantees"
    CAPS = "caps"
    GROUPS = "groups"
    TIERS = "tiers"


@dataclass(frozen=True, eq=False, repr=False)
class Entitlements(Frozen):
    """What a cluster's files say of its users, over a tree of groups; validated and frozen. Make one with `of`.

    The nodes are the users, in the order of the market's rows, and then the groups. Columns are the k GPU types, and
    then g further goods. Shapes, for N nodes and n users:

    * ``users`` (n,), ``groups`` (N - n,), ``types`` (k,): names. ``goods`` (g,): further resources, ``stock`` (g,) how
      much there is of each.
    * ``parent`` (N,): the node of the group that each is in, -1 at the top.
    * ``guarantee`` (N, k + g): quota, what it can have at any time
      (nominal quota, deserved). A group's is that of the whole group. Infinity for no bound.
    * ``cap`` (N, k + g): the most that it may hold, infinity for no cap
      (nominal quota and borrowing limit, limit, capability).
    * ``reserve`` (N, k + g): the part of the guarantee that nobody may borrow
      (quota less lending limit, hard guarantee).
    * ``borrow_weight`` (N,): its weight beside its siblings in what they borrow; may be 0.
    * ``tier`` (N,): priority, an integer; higher goes first.
    * ``held`` (n, k + g): what each user holds now, ``fixed`` (n, k + g) the part that cannot be taken back.
    * ``usage`` (N,): decayed past usage, in GPU seconds or the file's own unit; ``half_life`` in seconds,
      None if nobody says.
    * ``rate`` (k,): what one GPU of each type counts for where no speedups were measured, None if nobody says.
    * ``gangs``: what runs and what is pending.
    * ``settings``: what the scheduler's own objects set beside amounts, as text, by the name of a user or group ("": of
      the whole cluster) and then by the name of an option. Only that scheduler's rule reads it; where they are not
      Kueue's, "scheduler" of the whole cluster says whose they are.

    Numbers are Fractions, as in a `Market`. Errors: `BadInput` of `of`.

    Source: Kueue's ClusterQueue and Cohort, KAI's and Volcano's Queue, Slurm's associations, YARN's queues.

    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [6], "B": [2]}, group={"A": "ml", "B": "ml"})
    >>> owed.groups, owed.guarantee[owed.node("ml")].tolist()
    (('ml',), [Fraction(8, 1)])
    """

    users: tuple[str, ...]
    groups: tuple[str, ...]
    types: tuple[str, ...]
    goods: tuple[Good, ...]
    stock: Array
    parent: Array
    guarantee: Array
    cap: Array
    reserve: Array
    borrow_weight: Array
    tier: Array
    held: Array
    fixed: Array
    usage: Array
    half_life: Any
    rate: Array | None
    gangs: Gangs
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        users: Sequence[str],
        types: Sequence[str],
        *,
        group: ByName | None = None,
        groups: Sequence[str] = (),
        goods: Mapping[Good, object] | None = None,
        guarantee: ByName | None = None,
        cap: ByName | None = None,
        reserve: ByName | None = None,
        borrow_weight: ByName | None = None,
        tier: ByName | None = None,
        held: ByName | None = None,
        fixed: ByName | None = None,
        usage: ByName | None = None,
        half_life: object = None,
        rate: Row | None = None,
        gangs: Gangs | None = None,
        settings: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Entitlements:
        """Validate and return entitlements; every mapping, or pandas table, is by the name of a user or group.

        ``group``: the group that a user or group is in. ``groups``: names of groups, where the order matters or one has
        no member. ``goods``: the stock of each. A row of amounts is by type, or by a good's name such as
        "cpu:H100", or a list in the order of the types. Left out: guarantees 0 for users and the sum of its members'
        for a group, caps infinity, reserves 0, weights 1, tiers 0, ``held`` what the running gangs take, ``fixed`` what
        those take that are not preemptible. Errors: `BadInput` that names the user or group, the key, the value
        and what to do.
        """
        members = by_name(group, "group")
        require_kinds(groups, goods, gangs)
        above = dict.fromkeys((*groups, *members.values()))
        named = tuple(check_name(name, "group") for name in above)
        both = next((name for name in named if name in set(users)), None)
        if both is not None:
            raise BadInput(f"a user and a group are both called {both!r}", place="group", remedy="Rename one of them")
        extra, gangs = tuple(goods or {}), no_gangs(types) if gangs is None else gangs
        n, count = len(users), len(users) + len(named)
        running = held_by(gangs, n, tuple(types), extra, None)
        nothing = np.full((count, len(types) + len(extra)), Fraction(0), dtype=object)
        blank = cls(
            users=tuple(users),
            groups=named,
            types=tuple(types),
            goods=extra,
            stock=objects(amount(there, f"{good}, stock") for good, there in (goods or {}).items()),
            parent=np.full(count, TOP, dtype=np.int64),
            guarantee=nothing,
            cap=np.full(nothing.shape, INFINITY, dtype=object),
            reserve=nothing,
            borrow_weight=np.full(count, Fraction(1), dtype=object),
            tier=np.zeros(count, dtype=np.int64),
            held=running,
            fixed=held_by(gangs, n, tuple(types), extra, ~gangs.preemptible),
            usage=np.full(count, Fraction(0), dtype=object),
            half_life=None if half_life is None else amount(half_life, "half_life", above=True),
            rate=None,
            gangs=gangs,
        )
        parent = blank.parent.copy()
        for name, over in members.items():
            parent[blank.node(name, "group")] = blank.node(over)
        below_first = upwards_of(parent, blank.nodes)
        owed = blank._table(guarantee, "guarantee", infinite=True)
        given = {blank.node(name, "guarantee") for name in by_name(guarantee, "guarantee")}
        for node in below_first:
            if node >= n and node not in given:
                owed[node] = sum((owed[child] for child in np.flatnonzero(parent == node)), nothing[node])
        entitlements = replace(
            blank,
            parent=parent,
            guarantee=owed,
            cap=blank._table(cap, "cap", infinite=True),
            reserve=blank._table(reserve, "reserve", infinite=True),
            borrow_weight=blank._column(borrow_weight, "borrow_weight", amount),
            tier=np.array(blank._column(tier, "tier", integer).tolist(), dtype=np.int64),
            held=blank._table(held, "held"),
            fixed=blank._table(fixed, "fixed"),
            usage=blank._column(usage, "usage", amount),
            rate=None if rate is None else blank._row(rate, "rate", "rate", nothing[0] + 1)[: len(types)],
            settings=blank._settings(settings or {}),
        )
        entitlements._check(running)
        return entitlements

    def _row(self, given: Row, name: str, what: str, blank: Array, *, infinite: bool = False) -> Array:
        """Return the amounts (k + g,) that are given of one user or group, those of ``blank`` where nothing is."""
        known, where, out = self.columns, f"{name!r}, {what}", blank.copy()
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
            unbounded = infinite and (value is None or (isinstance(value, float) and value == INFINITY))
            out[known.index(column)] = INFINITY if unbounded else amount(value, at)
        return cast(out, Fraction)

    def _table(self, given: ByName | None, what: str, *, infinite: bool = False) -> Array:
        """Return its own table ``what`` with the rows that are given in place of its own."""
        out: Array = getattr(self, what).copy()
        for name, row in by_name(given, what).items():
            node = self.node(name, what)
            if node >= len(out):
                raise BadInput(f"{name!r} is a group", place=what, remedy="Give it for users")
            out[node] = self._row(row, name, what, out[node], infinite=infinite)
        return out

    def _column(self, given: ByName | None, what: str, read: Callable[..., Any]) -> Array:
        """Return its own column ``what`` with the values that are given in place of its own."""
        out = objects(getattr(self, what).tolist())
        for name, value in by_name(given, what).items():
            out[self.node(name, what)] = read(value, f"{name!r}, {what}")
        return out

    def _settings(self, given: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
        """Return the settings that say something."""
        for name in given:
            if name:
                self.node(name, "settings")
        return {name: dict(own) for name, own in given.items() if own}

    def _check(self, running: Array) -> None:
        n = len(self.users)
        for broken, what, remedy in (
            (self.reserve[:n] > self.guarantee[:n], "reserve", "Reserve at most the guarantee"),
            (running > self.held, "held", "It is at least what the running gangs take"),
            (self.fixed > self.held, "fixed", "It is a part of what is held"),
        ):
            for node, column in np.argwhere(broken)[:1]:
                got = getattr(self, what)[node, column]
                raise BadInput(
                    f"got {got}", place=f"{self.nodes[node]!r}, {what}, {self.columns[column]!r}", remedy=remedy
                )

    # -- asking --------------------------------------------------------------------------------------------------
    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The names of users and groups (N,)."""
        return self.users + self.groups

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of types and goods (k + g,)."""
        return self.types + tuple(map(str, self.goods))

    def node(self, name: str, place: str = "") -> int:
        """Return the node of a user or group. Errors: `BadInput`, at ``place``, where there is none."""
        if name not in self._places:
            raise BadInput(f"there is no user or group {name!r}", place=place, remedy=nearest(name, self.nodes))
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.nodes)}

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The nodes directly below each node (N,)."""
        below: list[list[int]] = [[] for _ in self.nodes]
        for node, over in enumerate(self.parent.tolist()):
            if over != TOP:
                below[over].append(node)
        return tuple(map(tuple, below))

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """The nodes that are in no group."""
        return tuple(np.flatnonzero(self.parent == TOP).tolist())

    @cached_property
    def upwards(self) -> tuple[int, ...]:
        """All nodes, each before the group that it is in."""
        return upwards_of(self.parent, self.nodes)

    def path(self, node: int) -> Iterator[int]:
        """Yield a node, the group that it is in, and so on to the top."""
        while node != TOP:
            yield node
            node = int(self.parent[node])

    def total(self, of_users: Array) -> Array:
        """Return what each node (N, ...) has of what the users (n, ...) have: a group has the sum of its members'."""
        out = np.zeros((len(self.nodes), *of_users.shape[1:]), dtype=of_users.dtype)
        out[: len(self.users)] = of_users
        if sparse := holds_objects(out) and out.ndim > 1 and out.size > 0:  # Fractions are slow to add
            out[len(self.users) :] = type(out.flat[0])()
        for node in self.upwards:
            if (over := self.parent[node]) != TOP:
                some = np.flatnonzero(out[node]) if sparse else ...
                out[over, some] += out[node, some]
        return out

    def good(self, resource: str, gpu_type: int) -> int | None:
        """Return the column in which ``resource`` is counted for a gang on a GPU type; None where nobody counts it.

        That is the good of the type's name, or else the only good of that resource whose name is no type's.
        """
        flavors = {good.flavor: at for at, good in enumerate(self.goods) if good.resource == resource}
        own = flavors.get(self.types[gpu_type])
        elsewhere = [at for flavor, at in flavors.items() if flavor not in self.types]
        found = own if own is not None else elsewhere[0] if elsewhere else None
        return None if found is None else len(self.types) + found

    def goods_of(self, gang: int, gpu_type: int) -> list[tuple[int, Number]]:
        """Return what a gang takes beside GPUs, on a type: columns, and how much of each that it takes."""
        takes = self.gangs.other[gang]
        return [(column, takes[at]) for at, column in self._counted[gpu_type] if takes[at]]

    @cached_property
    def _counted(self) -> list[list[tuple[int, int]]]:
        """For each type, which resource of a gang on it is counted in which column."""
        found = [
            [(at, self.good(name, j)) for at, name in enumerate(self.gangs.resources)] for j in range(len(self.types))
        ]
        return [[(at, column) for at, column in each if column is not None] for each in found]

    @cached_property
    def running_gangs(self) -> tuple[Array, Array]:
        """What the running gangs take of types and goods (n, k + g), and what those take that are not preemptible."""
        chosen = (None, ~self.gangs.preemptible)
        held, fixed = (held_by(self.gangs, len(self.users), self.types, self.goods, each) for each in chosen)
        return held, fixed

    @cached_property
    def said(self) -> frozenset[Entitled]:
        """What the entitlements say that a policy must support or refuse."""
        present = {
            Entitled.GUARANTEES: bool((self.guarantee > 0).any()),
            Entitled.CAPS: bool((self.cap < INFINITY).any()),
            Entitled.GROUPS: bool(self.groups),
            Entitled.TIERS: len(set(self.tier.tolist())) > 1,  # the same for all changes nothing
        }
        return frozenset(each for each, there in present.items() if there)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entitlements):
            return NotImplemented
        return bool(_plain(self) == _plain(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Entitlements: {len(self.users)} users in {len(self.groups)} groups, {self.gangs!r}>"

    # -- changing ------------------------------------------------------------------------------------------------
    def as_(self, number: type | Arithmetic) -> Entitlements:
        """Return the same entitlements in ``float`` or in ``Fraction``; counts stay integers."""
        names = ("stock", "guarantee", "cap", "reserve", "borrow_weight", "held", "fixed", "usage", "rate")
        columns: dict[str, Any] = {
            name: None if (own := getattr(self, name)) is None else cast(own, number) for name in names
        }
        half_life, gangs = self.half_life and number(self.half_life), self.gangs.as_(number)
        if gangs is self.gangs and all(columns[name] is getattr(self, name) for name in names):
            return self
        return replace(self, half_life=half_life, gangs=gangs, **columns)

    def select(self, users: Sequence[int]) -> Entitlements:
        """Return those of the users in the given rows, in that order; the groups and their guarantees stay.

        Errors: `BadInput` for a user that stands twice.
        """
        rows, n = list(users), len(self.users)
        if len(set(rows)) < len(rows):
            raise BadInput("a user stands twice", place="entitlements", remedy="Copies have no entitlements")
        nodes = np.array([*rows, *range(n, len(self.nodes))], dtype=np.int64)
        new = np.full(n, TOP, dtype=np.int64)
        new[rows] = np.arange(len(rows))
        parent = self.parent[nodes]
        chosen = np.flatnonzero(np.isin(self.gangs.user, rows))
        gangs = self.gangs.select(chosen)
        names = ("guarantee", "cap", "reserve", "borrow_weight", "tier", "usage")
        columns: dict[str, Any] = {name: getattr(self, name)[nodes] for name in names}
        chosen_users = tuple(self.users[row] for row in rows)
        kept = {"", *chosen_users, *self.groups}
        return replace(
            self,
            users=chosen_users,
            settings={name: own for name, own in self.settings.items() if name in kept},
            parent=np.where(parent == TOP, TOP, parent - n + len(rows)),
            held=self.held[rows],
            fixed=self.fixed[rows],
            gangs=replace(gangs, user=new[gangs.user]),
            **columns,
        )

    def running(self, gangs: Gangs) -> Entitlements:
        """Return the same entitlements after ``gangs`` took the place of its own: what is held changes with them."""
        (held, fixed), after = self.running_gangs, replace(self, gangs=gangs).running_gangs
        return replace(self, gangs=gangs, held=self.held - held + after[0], fixed=self.fixed - fixed + after[1])


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Entitlements | Gangs):
        return {
            name: _plain(each)
            for name, each in vars(value).items()
            if not name.startswith("_") and name in value.__dataclass_fields__
        }
    return value

"""`Gangs`: what users asked a cluster for: groups of pods that start together, pending or running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import lcm
from typing import Any

import numpy as np

from fairopt.errors import BadInput, require
from fairopt.numbers import Arithmetic, whole_as_int
from fairopt.problem.checks import Frozen, amounts, checked_names, column, listed, sized
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import MOST_GPUS, amount, exact, integer, shown
from fairopt.program import Array, cast, objects

#: More gangs than this are taken for a mistake.
MOST_GANGS = 2_000_000
#: In `Gangs.on`: the gang waits.
PENDING = -1


@dataclass(frozen=True, eq=False, repr=False)
class Gangs(Frozen):
    """Gangs in columns; validated and frozen. Make them with `Gangs.of` or a reader.

    A gang is a job or a pod group: all of its GPUs are of one type, and it runs with all of them or not at all.
    Shapes, for m gangs, k types and r other resources:

    * ``names`` (m,). ``user`` (m,): the row of the market that each belongs to.
    * ``gpus`` (m,): how many GPUs it takes; 0 for one that takes other resources only. Integers where all are whole,
      else Fractions: a part of a GPU is a share of it that schedulers give to several.
    * ``allowed`` (m, k): on which types it may run. ``on`` (m,): the type on which it runs, -1 while it is pending.
    * ``tier`` (m,): its priority, an integer; higher goes first. ``preemptible`` (m,): whether it may be stopped.
    * ``since`` (m,): when it was asked for, in seconds; in a tie the order here decides.
    * ``other`` (m, r): how much of each of ``resources`` (r,) it takes, such as CPU cores and bytes of memory.
    * ``settings`` (m,): what the scheduler's own objects say of each beside that, as text, by the name of an option;
      empty where they say nothing. Only that scheduler's rule reads it.

    Errors: `BadInput` of `of`. Source: Kubernetes' pod groups; the rules that use them cite their own.

    >>> Gangs.of(["A", "A"], [4, 8], users=["A"], types=["K80", "V100"], on=["K80", None]).on.tolist()
    [0, -1]
    """

    names: tuple[str, ...]
    user: Array
    gpus: Array
    allowed: Array
    on: Array
    tier: Array
    preemptible: Array
    since: Array
    resources: tuple[str, ...]
    other: Array
    settings: tuple[Mapping[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        user: Sequence[str],
        gpus: Sequence[object],
        *,
        users: Sequence[str],
        types: Sequence[str],
        names: Sequence[str] | None = None,
        allowed: Sequence[Sequence[str] | None] | None = None,
        on: Sequence[str | None] | None = None,
        tier: Sequence[object] | None = None,
        preemptible: Sequence[bool] | None = None,
        since: Sequence[object] | None = None,
        other: Mapping[str, Sequence[object]] | None = None,
        settings: Sequence[Mapping[str, str]] | None = None,
    ) -> Gangs:
        """Validate and return gangs; ``user`` (m,) names each one's user of ``users``, types are of ``types``.

        ``allowed`` (m,): names of types, None for all. ``on`` (m,): the name of the type, None while pending.
        ``other``: amounts (m,) by resource. Left out: all types, pending, tier 0, preemptible, in the order given.
        Errors: `BadInput` that names the gang, the value and what to do.
        """
        count = len(listed(user, "user"))
        require(count <= MOST_GANGS, count, "gangs", f"Give at most {MOST_GANGS}")
        named = checked_names(names, count, "gang", "g")
        places = [f"gang {number} ({name!r})" for number, name in enumerate(named, start=1)]
        types = checked_names(types, len(types), "type", "T")
        rows = {name: row for row, name in enumerate(users)}
        kinds = {name: j for j, name in enumerate(types)}
        taken = {name: amounts(values, places, name, "gang") for name, values in (other or {}).items()}
        taken = {name: each for name, each in taken.items() if each.any()}  # what nobody takes says nothing
        own: Any = sized(settings or [{}] * count, places, "settings", "gang")
        known, marked = partial(_known, known=rows, kind="user"), partial(_marked, column=kinds)
        on_type = partial(_known, known=kinds, kind="type")
        gangs = cls(
            names=named,
            user=column(user, places, "user", "gang", known, np.int64),
            gpus=_light(column(gpus, places, "gpus", "gang", _gpus)),
            allowed=column(allowed, places, "allowed", "gang", marked, bool, blank=None).reshape(count, len(types)),
            on=column(
                on, places, "on", "gang", lambda v, at: PENDING if v is None else on_type(v, at), np.int64, blank=None
            ),
            tier=column(tier, places, "tier", "gang", integer, np.int64, blank=0),
            preemptible=column(preemptible, places, "preemptible", "gang", _flag, bool, blank=True),
            since=column(range(count) if since is None else since, places, "since", "gang", exact),
            resources=tuple(taken),
            other=objects(each for values in taken.values() for each in values).reshape(len(taken), count).T,
            settings=() if not any(settings or ()) else tuple(own),
        )
        for i in np.flatnonzero((gangs.on >= 0) & ~gangs.allowed[np.arange(count), gangs.on]):
            raise BadInput(
                f"it runs on {types[gangs.on[i]]!r}", place=f"{places[i]}, allowed", remedy="Allow that type too"
            )
        return gangs

    @property
    def pending(self) -> Array:
        """Which gangs wait (m,)."""
        return np.asarray(self.on == PENDING)

    def size(self, gang: Any) -> Any:
        """Return the GPUs of one gang, an int where they are whole."""
        return self._sizes[gang]

    @cached_property
    def _sizes(self) -> list[Any]:
        return [int(each) if each == int(each) else each for each in self.gpus.tolist()]

    @cached_property
    def parts(self) -> int:
        """Into how many parts GPUs must be divided so that each gang takes whole ones; 1 where all take whole GPUs."""
        if self.gpus.dtype == np.int64:
            return 1
        return lcm(*{exact(each, "gpus").denominator for each in self.gpus.tolist()})

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        waiting = int(self.pending.sum())
        return f"<Gangs: {len(self) - waiting} running, {waiting} pending>"

    def order(self) -> Array:
        """Return the gangs (m,) by tier, highest first, then by when they were asked for."""
        return self._order

    @cached_property
    def _order(self) -> Array:
        return np.lexsort((self.moments, ~self.tier))

    @cached_property
    def moments(self) -> Array:
        """The place of each gang's ``since`` among all, the earliest 0 (m,); equal ones share a place."""
        since = [whole_as_int(each) for each in self.since.tolist()]  # ints are compared sooner than Fractions
        places = {moment: place for place, moment in enumerate(sorted(set(since)))}
        return np.array([places[each] for each in since], dtype=np.int64)

    @cached_property
    def kinds(self) -> Array:
        """A number for each gang (m,): those that take the same and may run on the same types have the same number."""
        allowed = [row.tobytes() for row in np.packbits(self.allowed, axis=1)]
        known: dict[tuple[Any, ...], int] = {}
        rows = zip(allowed, *(_numbered(column.tolist()) for column in (self.gpus, *self.other.T)), strict=True)
        return np.array([known.setdefault(row, len(known)) for row in rows], dtype=np.int64)

    def held(self, users: int, chosen: Array | None = None) -> Array:
        """Return the GPUs (users, k) of those that run, or of those ``chosen`` (m,) among them."""
        runs = ~self.pending if chosen is None else ~self.pending & chosen
        total = np.zeros((users, self.allowed.shape[1]), dtype=self.gpus.dtype)
        np.add.at(total, (self.user[runs], self.on[runs]), self.gpus[runs])
        return total

    def placed(self, on: Array) -> Gangs:
        """Return the gangs that run on the types ``on`` (m,), -1 for those that wait."""
        return replace(self, on=np.asarray(on, dtype=np.int64))

    def select(self, gangs: Array | Sequence[int]) -> Gangs:
        """Return the gangs at the given places, in that order."""
        at = np.asarray(gangs, dtype=np.int64)
        arrays = ("user", "gpus", "allowed", "on", "tier", "preemptible", "since", "other")
        columns: dict[str, Any] = {name: getattr(self, name)[at] for name in arrays}
        columns["settings"] = tuple(self.settings[g] for g in at) if self.settings else ()
        return replace(self, names=tuple(self.names[g] for g in at), **columns)

    def as_(self, number: type | Arithmetic) -> Gangs:
        """Return the same gangs in ``float`` or in ``Fraction``; whole GPUs stay integers."""
        gpus = self.gpus if self.gpus.dtype == np.int64 else cast(self.gpus, number)
        since, other = cast(self.since, number), cast(self.other, number)
        same = gpus is self.gpus and since is self.since and other is self.other
        return self if same else replace(self, gpus=gpus, since=since, other=other)


def _numbered(values: list[Any]) -> list[int]:
    """Return a number for each value; equal values have the same. The same object is compared once."""
    known: dict[Any, int] = {}
    of = dict(zip(map(id, values), values, strict=True))
    numbers = {key: known.setdefault(value, len(known)) for key, value in of.items()}
    return list(map(numbers.__getitem__, map(id, values)))


def _gpus(value: object, place: str) -> int | Fraction:
    if type(value) is int and 0 <= value <= MOST_GPUS:  # nearly all are
        return value
    found = amount(value, place)
    require(found <= MOST_GPUS, shown(found), place, f"Give at most {MOST_GPUS}")
    return found


def _light(gpus: Array) -> Array:
    """Return amounts of GPUs as integers where all are whole, else as Fractions."""
    parts = any(each.denominator > 1 for each in gpus.tolist())
    return cast(gpus, Fraction) if parts else gpus.astype(np.int64)


def _known(name: object, place: str, known: Mapping[str, int], kind: str) -> int:
    if not isinstance(name, str) or name not in known:
        raise BadInput(f"got {name!r}", place=place, remedy=nearest(name, known, kind))
    return known[name]


def _marked(names: object, place: str, column: Mapping[str, int]) -> list[bool]:
    """Return which types (k,) are named; all, where None is given."""
    chosen = set(column.values()) if names is None else set()
    chosen |= {_known(each, place, column, "type") for each in listed(() if names is None else names, place, "names")}
    if not chosen:
        raise BadInput("no types", place=place, remedy="Name at least one, or leave it out for all")
    return [j in chosen for j in range(len(column))]


def _flag(value: object, place: str) -> bool:
    require(isinstance(value, bool | np.bool_), value, place, "Give true or false")
    return bool(value)


def no_gangs(types: Sequence[str]) -> Gangs:
    """Return no gangs at all."""
    return Gangs.of([], [], users=[], types=types)

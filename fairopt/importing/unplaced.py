"""What files say and a problem has no place for: `Places` collects it while an importer reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fairopt.problem.numbers import shown
from fairopt.report import ResultForm, Statement

if TYPE_CHECKING:
    from fairopt.importing.imported import ImportedGang

#: What a file says and the problem has no place for: the ``place``, the ``value``, and ``why`` that may matter.
UNPLACED = ResultForm("What has no place.", in_full=True, sentence=lambda it: f"{it.place}: {it.value}: {it.why}")
#: In a table of fields: the importer reads it.
TAKEN = ""
UNKNOWN = "no field that is known here"
BOOKKEEPING = "says nothing about who gets what"
COUNTED = "counts what the objects themselves say"
#: Reasons that need no line for each field.
MINOR = (BOOKKEEPING, COUNTED)
#: So many objects are looked through together.
TOGETHER = 100
#: Values that say nothing.
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class Places:
    """Collects what has no place: one entry for each kind of it, with a count and one of the values.

    ``harmless``: the reasons of what keeps no gang from starting; `MINOR` ones are among them.

    >>> places = Places()
    >>> places.of("Queue", "a", {"spec": {"weight": 2, "type": "x"}}, {"spec.weight": TAKEN})
    >>> print(*places.unplaced)
    Queue, spec.type: 'x' ('a'): no field that is known here
    """

    def __init__(self, harmless: Iterable[str] = ()) -> None:
        self._harmless = frozenset((*MINOR, *harmless))
        self._roots: dict[tuple[str, int], _Field] = {}
        self._seen: dict[tuple[str, str], list[Any]] = {}
        self._told: dict[str, dict[str, object]] = {}  # what may stop a gang: by place and the object's name

    def note(self, where: str, name: str, value: object, why: str) -> None:
        """Remember that ``value`` of the object ``name`` has no place; ``where`` is its kind, and the place in it."""
        first = self._seen.setdefault((where, why), [name, value, 0])
        first[2] += 1
        if why not in self._harmless:
            self._told.setdefault(where, {}).setdefault(name, value)

    def of(self, kind: str, name: str, value: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """Note the fields that ``known`` does not call `TAKEN`: it says by dotted path why one has no place.

        A path that ends in "*" stands for all that begin like it and have no entry; the longest such counts. How often
        a field stands there that has no place for a minor reason is not counted.
        """
        self.of_all(kind, [(name, value)], known)

    def of_all(self, kind: str, objects: Sequence[tuple[str, Mapping[str, Any]]], known: Mapping[str, str]) -> None:
        """Do as `of` for each of some objects by name, key by key, which takes a third of the time."""
        root = self._roots.get((kind, id(known)))
        if root is None:  # the table is kept too, so that no other has its id
            above = {path[:at] for path in known for at, sign in enumerate(path) if sign == "."}
            begins = sorted((path[:-1] for path in known if path.endswith("*")), key=len, reverse=True)
            root = self._roots[kind, id(known)] = _Field(kind, "", known, above, begins)
        self._look(root, [name for name, _ in objects], [value for _, value in objects])

    def _look(self, field: _Field, names: Sequence[str], found: Sequence[Any]) -> None:
        """Note what stands at one place in some objects, by the names of these."""
        kinds = set(map(type, found))
        if len(kinds) > 1 and not field.leaf:
            for kind in dict.fromkeys(map(type, found)):
                some = [(name, each) for name, each in zip(names, found, strict=True) if type(each) is kind]
                self._look(field, [name for name, _ in some], [each for _, each in some])
        elif field.above and dict in kinds:
            new = set().union(*found) - field.done
            for key in (*(each for each in found[0] if each in new), *sorted(new - found[0].keys())):
                deeper, own = field.key(key), names
                if not deeper.taken:
                    inside = [each[key] for each in found if key in each]
                    if len(inside) < len(found):
                        own = [name for name, each in zip(names, found, strict=True) if key in each]
                    self._look(deeper, own, inside)
                if deeper.taken:
                    field.done.add(key)
        elif field.lists and list in kinds:
            of_items = [name for name, each in zip(names, found, strict=True) for _ in each]
            self._look(field.item(), of_items, [*chain.from_iterable(found)])
        elif field.why:
            for name, value in zip(names, found, strict=True):
                if (value or value not in _EMPTY) and not field.taken:
                    self._add(field, name, value)

    def _add(self, field: _Field, name: str, value: Any) -> None:
        if field.seen is None:
            where = f"{field.kind}, {field.where}"
            field.seen = self._seen.setdefault((where, field.why), [name, value, 0])
            field.told = None if field.why in self._harmless else self._told.setdefault(where, {})
            field.taken = field.leaf and field.why in MINOR
        field.seen[2] += 1
        if field.told is not None:
            field.told.setdefault(name, value)

    @property
    def listed(self) -> tuple[Statement, ...]:
        """What was noted, an entry for each place and reason."""
        return tuple(
            UNPLACED.of(place=where, value=shown(str(value)) + f" and {count - 1} more" * (count > 1), why=why)
            for (where, why), (_, value, count) in self._seen.items()
        )

    @property
    def unplaced(self) -> tuple[Statement, ...]:
        """What was noted by kind of object and reason; minor reasons last."""
        grouped: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for (where, why), seen in self._seen.items():
            kind, _, field = where.partition(", ")
            grouped.setdefault(("all objects" if why in MINOR else kind, why), []).append((field, seen))
        minor_last = sorted(grouped.items(), key=lambda each: each[0][1] in MINOR)
        return tuple(_entry(kind, why, list(dict(fields).items())) for (kind, why), fields in minor_last)

    def unread(
        self,
        gangs: Iterable[ImportedGang],
        of: Mapping[str, tuple[str, Callable[[str], Iterable[str] | None] | None]],
        above: Mapping[str, str] = MappingProxyType({}),
    ) -> Callable[[str], tuple[str, ...]]:
        """Return what says, of a pending gang by its name, what was noted that may stop it, in words.

        A thing is a kind and a name. Of each gang speak the things in its ``about``, "queue" and the name of its queue
        and of those ``above``, and "type" and the name of each type on which it may run. ``of``: by kind of object, the
        kind of thing of which such an object speaks, and what returns the names of these for the object's own; None for
        the same name. Objects of other kinds speak of every gang.

        >>> from fairopt.importing.imported import ImportedGang
        >>> places = Places()
        >>> places.note("Queue, spec.type", "a", "x", "kinds of queues are not modelled")
        >>> gangs = [ImportedGang(name, name, 1, None, None, {}) for name in "ab"]
        >>> unread = places.unread(gangs, {"Queue": ("queue", None)})
        >>> unread("a"), unread("b")
        (("Queue, spec.type ('x')",), ())
        """
        waiting = {gang.name: gang for gang in gangs if gang.on is None} if self._told else {}

        @cache
        def things() -> Mapping[tuple[str, str], Mapping[str, object]]:
            said: dict[tuple[str, str], dict[str, object]] = {}
            for where, fields in self._told.items():
                kind, names = next((of[each] for each in of if f"{where}, ".startswith(f"{each}, ")), ("", None))
                for name, value in fields.items():
                    for each in ("",) if not kind else (name,) if names is None else names(name) or ():
                        said.setdefault((kind, each), {}).setdefault(where, value)
            return said

        def unread(name: str) -> tuple[str, ...]:
            if name not in waiting:
                return ()
            gang, queues = waiting[name], [waiting[name].user]
            while (over := above.get(queues[-1])) and over not in queues:
                queues.append(over)
            about = [
                *gang.about,
                *(("queue", each) for each in queues),
                *(("type", each) for each in gang.allowed or ()),
            ]
            rows = (things().get(each, {}).items() for each in (*about, ("", "")))
            return tuple(dict.fromkeys(_told(where, value) for row in rows for where, value in row))

        return unread


def _entry(kind: str, why: str, fields: Sequence[tuple[str, Any]]) -> Statement:
    """Return what is said of the fields of one kind of object that have no place for the same reason."""
    names = ", ".join(field for field, _ in fields if field)
    name, value, _ = fields[0][1]
    more = sum(seen[2] for _, seen in fields) - 1
    said = f"{_short(value)} ({name!r})" + (f" and {more} more" if more else "")
    place = f"{kind}, {names}" if names else kind
    return UNPLACED.of(place=place, value=f"{len(fields)} fields" if why in MINOR else said, why=why)


class _Field:
    """What is known of the fields at one dotted path, found once for all objects of a kind; "[]" stands for items.

    ``above`` and ``lists``: whether an object and a list there are looked into; ``leaf``: neither. ``why`` it has no
    place and ``where``, what was ``seen`` there, and where that may stop a gang, what was ``told`` there, by the
    object's name. ``taken``: it is read, or seen and minor, so that there is no more to look at; ``done``: the keys
    below of which that is known.
    """

    __slots__ = (
        "_table", "above", "below", "done", "items", "kind", "leaf", "lists", "path",
        "seen", "taken", "told", "where", "why",
    )  # fmt: skip

    def __init__(self, kind: str, path: str, known: Mapping[str, str], above: set[str], begins: Sequence[str]) -> None:
        self.kind, self.path, self._table = kind, path, (known, above, begins)
        self.above, self.lists = not path or path in above, f"{path}[]" in above
        self.below: dict[str, _Field] = {}
        self.done = set[str]()
        self.items: _Field | None = None
        self.seen: list[Any] | None = None
        self.told: dict[str, object] | None = None
        why, where = known.get(path), path
        if why is None:
            begin = next((each for each in begins if path.startswith(each)), None)
            why = UNKNOWN if begin is None else known[f"{begin}*"]
            where = begin.rstrip(".") if begin is not None and why in MINOR else path
        self.leaf = not (self.above or self.lists)
        self.why, self.where, self.taken = why, where, self.leaf and not why

    def key(self, key: str) -> _Field:
        """Return the field at a key below."""
        if key not in self.below:
            self.below[key] = _Field(self.kind, f"{self.path}.{key}" if self.path else str(key), *self._table)
        return self.below[key]

    def item(self) -> _Field:
        """Return the field that stands for the items of a list there."""
        if self.items is None:
            self.items = _Field(self.kind, f"{self.path}[]", *self._table)
        return self.items


def _told(where: str, value: object) -> str:
    last = where.rpartition(" or ")[2]  # of several commands that print it
    return last if isinstance(value, dict | list) else f"{last} ({_short(value)})"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= 80 else f"{text[:77]}..."

"""What an importer returns: the problem, and what the file says that the problem has no place for."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import shown
from fairopt.program import Number
from fairopt.report import ResultForm, Statement

#: What a file says and the problem has no place for: the ``place``, the ``value``, and ``why`` that may matter.
UNPLACED = ResultForm("What has no place.", in_full=True, sentence=lambda it: f"{it.place}: {it.value}: {it.why}")


def nothing_unread(gang: str) -> tuple[str, ...]:
    """Return that everything that the files say of a gang is read."""
    return ()


class Imported(NamedTuple):
    """A problem of a file of another tool, and what it could not take over.

    ``declared``: what the file itself says that a rule computes, such as a queue's share in its status, by the name of
    the user or group and then by what it is; an audit computes it again. ``counted``: the same, as the objects of the
    file add up to it, where the problem does not hold what it takes. ``importer`` is the name of who read it, "" where
    nobody asked for a name. ``rules``: which rule of the scheduler makes it so, in words, by the value of an audit's
    `fairopt.audit.Cause`. ``policy``: the name of the policy that is the scheduler's rule by these files, "" where they
    do not say. ``unread`` says, by the name of a pending gang, what the files say of it, of its queue or of nodes for
    it that may stop it and that the rule does not read, in words.
    """

    problem: Any
    unplaced: tuple[Statement, ...] = ()
    declared: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    counted: Mapping[str, Mapping[str, Number]] = MappingProxyType({})
    importer: str = ""
    rules: Mapping[str, str] = MappingProxyType({})
    policy: str = ""
    unread: Callable[[str], tuple[str, ...]] = nothing_unread


class ImportedGang(NamedTuple):
    """What a user of another tool asks for, as `Gangs` has it: it runs ``on`` a type, or waits for one ``allowed``.

    ``about``: the things that speak of it beside its queue and its types, as `Places.unread` calls them.
    """

    name: str
    user: str
    gpus: Number
    allowed: Sequence[str] | None
    on: str | None
    other: Mapping[str, Number]
    tier: int = 0
    preemptible: bool = True
    since: Number = 0
    settings: Mapping[str, str] = MappingProxyType({})
    about: tuple[tuple[str, str], ...] = ()


@dataclass
class ImportedQueue:
    """What another tool gives a queue, or a group of queues: amounts are by the names of columns; None: not said.

    ``parent``: the name of the group that it is in, "" for none. ``weight``, ``tier`` and ``usage`` are as those of
    `Entitlements`. ``declared``: what the file says of it that a rule computes. ``settings``: as those of
    `Entitlements`.
    """

    parent: str = ""
    guarantee: dict[Any, Any] | None = None
    cap: dict[Any, Any] | None = None
    reserve: dict[Any, Any] | None = None
    held: dict[Any, Any] | None = None
    fixed: dict[Any, Any] | None = None
    weight: Number | None = None
    tier: int = 0
    usage: Number | None = None
    declared: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def entitlements_of(
    queues: Mapping[str, ImportedQueue],
    users: Sequence[str],
    types: Sequence[str],
    gangs: Gangs | Sequence[ImportedGang],
    *,
    goods: Mapping[Good, Number] = MappingProxyType({}),
    rate: Sequence[Number] | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Entitlements:
    """Return the entitlements of queues by name, of which some are ``users`` and all others groups; errors as `of`.

    ``settings``: those of the whole cluster.
    """

    def said(name: str) -> dict[str, Any]:
        return {node: value for node, queue in queues.items() if (value := getattr(queue, name)) is not None}

    if not isinstance(gangs, Gangs):
        gangs = gangs_of(gangs, users, types, dict.fromkeys(good.resource for good in goods))
    own = set(users)
    rows = ("guarantee", "cap", "reserve", "held", "fixed", "tier", "usage")
    return Entitlements.of(
        users,
        types,
        group={name: queue.parent for name, queue in queues.items() if queue.parent},
        groups=[name for name in queues if name not in own],
        goods=goods,
        borrow_weight=said("weight"),
        rate=rate,
        gangs=gangs,
        settings={"": settings, **{name: queue.settings for name, queue in queues.items()}},
        **{name: said(name) or None for name in rows},
    )


def gangs_of(
    rows: Sequence[ImportedGang], users: Sequence[str], types: Sequence[str], resources: Iterable[str]
) -> Gangs:
    """Return gangs, with what they take of those ``resources`` beside GPUs that some of them takes."""
    names = ImportedGang._fields
    columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    taken, nothing = {name for row in rows for name in row.other}, Fraction(0)
    other = {each: [row.other.get(each, nothing) for row in rows] for each in resources if each in taken}
    named = {name: columns[name] for name in ("allowed", "on", "tier", "preemptible", "since", "settings")}
    return Gangs.of(
        columns["user"], columns["gpus"], users=users, types=types, names=columns["name"], **named, other=other
    )


def market_of(
    owed: Entitlements,
    capacity: Iterable[Number],
    *,
    weight: Sequence[Number] | None = None,
    own: Mapping[str, str] | None = None,
) -> Market:
    """Return a market in which no speedup is known: any positive ones, or 0 but on the type that is ``own`` a user."""
    runs = [[own is None or own[user] == each for each in owed.types] for user in owed.users]
    return Market.of(
        [[int(each) for each in row] for row in runs],
        list(capacity),
        weight=weight,
        users=owed.users,
        types=owed.types,
        least=[[0] * len(row) for row in runs],
        most=[[None if each else 0 for each in row] for row in runs],
        entitlements=owed,
    )


def both_owed(before: Market, after: Market, what: str) -> tuple[Entitlements, Entitlements]:
    """Return the entitlements of two markets of the same users and columns; ``what`` is what messages call these."""
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or old.nodes != new.nodes or old.columns != new.columns:
        remedy = "Import both from the same cluster's files, or change one of them"
        raise BadInput(f"not the same {what}", place="the markets", remedy=remedy)
    return old, new


def files_of(importer: Callable[..., Any]) -> list[str] | None:
    """Return the names of the files that an importer takes; None for any number."""
    parameters = inspect.signature(importer).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    return [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY and each.default is each.empty]


def read_with(
    importer: Callable[..., Any], paths: Sequence[AnyPath], columns: Mapping[str, str] = MappingProxyType({})
) -> Imported:
    """Return what an importer makes of files, as `Imported` even where it returns only a problem.

    ``columns`` says which column of a table says what; an importer of tables has a parameter of that name.

    Errors: `BadInput` for more files than it takes, and for columns where it takes none; those of the importer.
    """
    if columns and "columns" not in inspect.signature(importer).parameters:
        remedy = "Leave --column out; job-csv reads any table of jobs"
        raise BadInput("the importer reads no table whose columns could be named", place="--column", remedy=remedy)
    names = files_of(importer)
    if names is not None and len(paths) != len(names):
        raise BadInput(f"{len(paths)} files", place="FILE", remedy=f"Give it {len(names)}: {', '.join(names)}")
    with naming(", ".join(map(str, paths))):
        found = importer(*paths, **({"columns": columns} if columns else {}))
    return found if isinstance(found, Imported) else Imported(found)


# -- what has no place ---------------------------------------------------------------------------------------------
#: In a table of fields: the importer reads it.
TAKEN = ""
UNKNOWN = "no field that is known here"
BOOKKEEPING = "says nothing about who gets what"
COUNTED = "counts what the objects themselves say"
#: Reasons that need no line for each field.
MINOR = (BOOKKEEPING, COUNTED)
#: Values that say nothing.
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class Places:
    """Collects what has no place: one entry for each kind of it, with a count and the first value.

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
        root = self._roots.get((kind, id(known)))
        if root is None:  # the table is kept too, so that no other has its id
            above = {path[:at] for path in known for at, sign in enumerate(path) if sign == "."}
            begins = sorted((path[:-1] for path in known if path.endswith("*")), key=len, reverse=True)
            root = self._roots[kind, id(known)] = _Field(kind, "", known, above, begins)
        self._walk(name, root, value)

    def _walk(self, name: str, field: _Field, found: Any) -> None:
        if field.above and type(found) is dict:
            below, done = field.below, field.done
            for key, each in found.items():
                if key in done:
                    continue
                deeper = below.get(key)
                if deeper is None:
                    deeper = below[key] = field.to(f"{field.path}.{key}" if field.path else str(key))
                if not (type(each) is dict and each.keys() <= deeper.done):  # nearly all
                    self._walk(name, deeper, each)
                if deeper.taken:
                    done.add(key)
        elif field.lists and type(found) is list:
            items = field.items
            if items is None:
                items = field.items = field.to(f"{field.path}[]")
            for each in found:
                self._walk(name, items, each)
        elif field.why and (found or found not in _EMPTY):
            if field.seen is None:
                where = f"{field.kind}, {field.where}"
                field.seen = self._seen.setdefault((where, field.why), [name, found, 0])
                field.told = None if field.why in self._harmless else self._told.setdefault(where, {})
                field.taken = field.leaf and field.why in MINOR
            field.seen[2] += 1
            if field.told is not None:
                field.told.setdefault(name, found)

    @property
    def listed(self) -> tuple[Statement, ...]:
        """What was noted, an entry for each place and reason, in the order in which it was found."""
        return tuple(
            UNPLACED.of(place=where, value=shown(str(value)) + f" and {count - 1} more" * (count > 1), why=why)
            for (where, why), (_, value, count) in self._seen.items()
        )

    @property
    def unplaced(self) -> tuple[Statement, ...]:
        """What was noted by kind of object and reason, in the order in which it was found; minor reasons last."""
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

    def to(self, path: str) -> _Field:
        """Return the field at a path below."""
        return _Field(self.kind, path, *self._table)


def _told(where: str, value: object) -> str:
    last = where.rpartition(" or ")[2]  # of several commands that print it
    return last if isinstance(value, dict | list) else f"{last} ({_short(value)})"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= 80 else f"{text[:77]}..."

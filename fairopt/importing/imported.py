"""What an importer returns, and how it makes a market of queues and gangs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.program import Number
from fairopt.report import Statement


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

"""Names that must match: the nearest known name, and columns of numbers aligned by label, never by guess."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.checks import listed
from fairopt.problem.numbers import shown


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

"""Fields of a document's objects, read with checks; and which of them have no place in the problem."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.imported import Unplaced
from fairopt.importing.quantities import quantity
from fairopt.problem.files.storage import AnyPath
from fairopt.problem.numbers import shown

#: In a table of fields: the importer reads it.
TAKEN = ""
UNKNOWN = "no field that is known here"
BOOKKEEPING = "says nothing about who gets what"
COUNTED = "counts what the objects themselves say"
#: Reasons that need no line for each field.
MINOR = (BOOKKEEPING, COUNTED)
#: Of every Kubernetes object. Source: apimachinery/pkg/apis/meta/v1/types.go, TypeMeta and ObjectMeta.
OBJECT: Mapping[str, str] = dict.fromkeys(("apiVersion", "kind", "metadata.name", "metadata.namespace"), TAKEN) | {
    f"metadata.{name}": BOOKKEEPING
    for name in (
        *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
        *("generateName", "generation", "labels", "managedFields", "ownerReferences", "resourceVersion"),
        *("selfLink", "uid"),
    )
}


class ObjectPart(NamedTuple):
    """An object of a document, or a part of one, and where it stands; errors of all: `BadInput` that names the place.

    >>> ObjectPart("queue a", {"spec": {"weight": 2}}).part("spec").whole("weight", 1)
    2
    """

    place: str
    value: Mapping[str, Any]

    def _at(self, key: str) -> str:
        return f"{self.place}, {key}"

    def _of(self, key: str, kind: type | tuple[type, ...], blank: Any, wanted: str) -> Any:
        found = self.value.get(key)
        if found is None:
            return blank
        fits = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
        if not fits:
            raise BadInput(f"got {shown(found)}", place=self._at(key), remedy=f"Give {wanted}")
        return found

    def part(self, key: str) -> ObjectPart:
        """Return the object there, an empty one where there is none."""
        return ObjectPart(self._at(key), self._of(key, Mapping, {}, "an object of keys and values"))

    def parts(self, key: str) -> list[ObjectPart]:
        """Return the objects in the list there."""
        found = self._of(key, list, [], "a list of objects")
        for number, each in enumerate(found, start=1):
            if not isinstance(each, Mapping):
                raise BadInput(f"got {shown(each)}", place=f"{self._at(key)} {number}", remedy="Give an object")
        return [ObjectPart(f"{self._at(key)} {number}", each) for number, each in enumerate(found, start=1)]

    def text(self, key: str, blank: str = "") -> str:
        """Return the text there."""
        found: str = self._of(key, str, blank, "text")
        return found

    def flag(self, key: str, blank: bool) -> bool:
        """Return the truth value there."""
        return bool(self._of(key, bool, blank, "true or false"))

    def whole(self, key: str, blank: int, *, least: int = 0) -> int:
        """Return the integer there, at least ``least``."""
        found = int(self._of(key, int, blank, "an integer"))
        require(least <= found < 2**63, shown(found), self._at(key), f"Give an integer from {least}")
        return found

    def amounts(self, key: str) -> dict[str, Fraction]:
        """Return the quantities there by resource."""
        found = {name: quantity(each, f"{self._at(key)}, {name}") for name, each in self.part(key).value.items()}
        for name, each in found.items():
            if each < 0:
                remedy = "Give a quantity that is not negative"
                raise BadInput(f"got {shown(each)}", place=f"{self._at(key)}, {name}", remedy=remedy)
        return found

    def seconds(self, key: str) -> int:
        """Return the time there in seconds since 1970; 0 where there is none."""
        found = self.text(key)
        try:
            return int(datetime.fromisoformat(found).replace(tzinfo=UTC).timestamp()) if found else 0
        except (ValueError, OverflowError) as error:
            remedy = "Give a time such as 2026-08-01T09:30:00Z"
            raise BadInput(f"got {shown(found)}", place=self._at(key), remedy=remedy) from error


@contextmanager
def in_files(paths: Sequence[AnyPath]) -> Iterator[None]:
    """Say in every `BadInput` that is raised inside which file it is about, where its place begins with one."""
    try:
        yield
    except BadInput as error:
        for path in paths:
            if not error.file and error.place.startswith(f"{path}: "):
                error.file, error.place = str(path), error.place.removeprefix(f"{path}: ")
        raise


class Places:
    """Collects what has no place: one entry for each kind of it, with a count and the first value.

    >>> places = Places()
    >>> places.of("Queue", "a", {"spec": {"weight": 2, "type": "x"}}, {"spec.weight": TAKEN})
    >>> print(*places.unplaced)
    Queue, spec.type: 'x' ('a'): no field that is known here
    """

    def __init__(self) -> None:
        self._above: dict[int, tuple[Mapping[str, str], set[str]]] = {}
        self._seen: dict[tuple[str, str], list[Any]] = {}

    def note(self, where: str, name: str, value: object, why: str) -> None:
        """Remember that ``value`` of the object ``name`` has no place; ``where`` is the kind of place."""
        first = self._seen.setdefault((where, why), [name, value, 0])
        first[2] += 1

    def of(self, kind: str, name: str, value: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """Note the fields that ``known`` does not call `TAKEN`: it says by dotted path why one has no place."""
        if id(known) not in self._above:  # the table is kept too, so that no other has its id
            self._above[id(known)] = known, {path[:at] for path in known for at, sign in enumerate(path) if sign == "."}
        above = self._above[id(known)][1]
        for path, found in _fields(value, above):
            why = known.get(path, UNKNOWN)
            if why:
                self.note(f"{kind}, {path}", name, found, why)

    @property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """What was noted by kind of object and reason, in the order in which it was found; minor reasons last."""
        grouped: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for (where, why), seen in self._seen.items():
            kind, _, field = where.partition(", ")
            grouped.setdefault(("all objects" if why in MINOR else kind, why), []).append((field, seen))
        minor_last = sorted(grouped.items(), key=lambda each: each[0][1] in MINOR)
        return tuple(_entry(kind, why, list(dict(fields).items())) for (kind, why), fields in minor_last)


def _entry(kind: str, why: str, fields: Sequence[tuple[str, Any]]) -> Unplaced:
    """Return what is said of the fields of one kind of object that have no place for the same reason."""
    names = ", ".join(field for field, _ in fields if field)
    name, value, _ = fields[0][1]
    more = sum(seen[2] for _, seen in fields) - 1
    said = f"{_short(value)} ({name!r})" + (f" and {more} more" if more else "")
    return Unplaced(f"{kind}, {names}" if names else kind, f"{len(fields)} fields" if why in MINOR else said, why)


def _fields(value: Mapping[str, Any], above: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Yield the fields by dotted path, down to those that are not in ``above``; "[]" stands for the items of a list."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, found = stack.pop()
        if isinstance(found, Mapping) and (not path or path in above):
            stack += [(f"{path}.{key}" if path else str(key), each) for key, each in reversed(list(found.items()))]
        elif isinstance(found, list) and f"{path}[]" in above:
            stack += [(f"{path}[]", each) for each in reversed(found)]
        elif found not in (None, "", [], {}):
            yield path, found


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= 80 else f"{text[:77]}..."

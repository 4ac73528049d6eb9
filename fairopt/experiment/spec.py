"""Specifications: TOML files, one's own or shipped, that say what is played or measured, as frozen dataclasses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from hashlib import sha256
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from fairopt.codec import decode
from fairopt.errors import BadInput, require
from fairopt.problem.files.documents import parse_toml
from fairopt.problem.files.storage import naming, read_text
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import check_within, shown, within

T = TypeVar("T")
#: The version of the keys, which stands in every specification.
SCHEMA = 1
_PLAIN_VALUE = "Give a number, a string, true or false, or a list"


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What all specifications have. ``source`` is the text that it was read from, ``digest`` the hash of that.

    A kind of specification says which ``tables`` it has: by key the class of each entry, and what makes of an entry (a
    dictionary, and where it stands) the one form that the codec takes. Entries with a ``label`` have different ones.
    """

    #: The package with those that come with fairopt, and the command that lists them.
    package: ClassVar[str]
    lister: ClassVar[str]
    #: Keys at the top level that must be there, besides schema and name.
    required: ClassVar[tuple[str, ...]]
    tables: ClassVar[Mapping[str, tuple[type[Any], Callable[[dict[str, Any], str], dict[str, Any]]]]]

    name: str
    title: str
    source: str = ""

    def __post_init__(self) -> None:
        check_entry(self, "name", "title")

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return sha256(self.source.encode()).hexdigest()

    @classmethod
    def shipped(cls) -> dict[str, str]:
        """Return the text of each specification that comes with fairopt, by name."""
        found = {each.name: each for each in resources.files(cls.package).iterdir() if each.name.endswith(".toml")}
        return {name.removesuffix(".toml"): found[name].read_text(encoding="utf-8") for name in sorted(found)}

    @classmethod
    def read(cls, path_or_name: str | PathLike[str]) -> Self:
        """Return the specification in a file, or the one of that name that comes with fairopt, checked.

        Errors: `BadInput`, as `parse` and `check`.
        """
        source, file = cls._source_of(path_or_name)
        spec = cls.parse(source, file)
        with naming(file):
            spec.check()
        return spec

    @classmethod
    def parse(cls, source: str, file: str = "") -> Self:
        """Return the specification in a TOML text; names and files are not looked up yet (`check`).

        Errors: `BadInput` with the file, the key, the value and what to do.
        """
        with naming(file):
            data = plain(parse_toml(source), "")
            known = ["schema", *(each.name for each in fields(cls) if each.name != "source")]
            check_keys(data, known, ("schema", "name", *cls.required), "the top level")
            if (schema := data.pop("schema")) != SCHEMA:
                raise BadInput(f"got {shown(schema)}", place="key 'schema'", remedy=f"Write schema = {SCHEMA}")
            data = cls._prepared(data)
            made = {key: _entries(data[key], key, *how) for key, how in cls.tables.items() if key in data}
            rest = {key: value for key, value in data.items() if key not in made}
            spec: Self = replace(decode(cls, {"title": data["name"], **rest}), **made, source=source)
            spec._check_labels()
            return spec

    def check(self) -> None:
        """Look up what the specification names. Errors: `BadInput`, with the place."""

    @classmethod
    def _prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return the top level in the one form that the codec takes."""
        return data

    def _check_labels(self) -> None:
        """Refuse labels that no entry has. Errors: `BadInput`."""

    @classmethod
    def _source_of(cls, path_or_name: str | PathLike[str]) -> tuple[str, str]:
        """Return the text of a file, or of the specification of that name that is shipped, and what to call it."""
        given = path_or_name if isinstance(path_or_name, Path) else Path(path_or_name)
        if given.is_file():
            with naming(given):
                return read_text(given), str(given)
        known, name = cls.shipped(), str(path_or_name)
        if name in known:
            return known[name], f"{name}.toml"
        if given.suffix or len(given.parts) > 1:
            raise BadInput("there is no such file", file=name, remedy=f"`{cls.lister}` lists what comes with fairopt")
        remedy = f"Give a file, or a name. {nearest(name, known, 'specification')}"
        raise BadInput(f"there is no specification {shown(name)}", remedy=remedy)


@dataclass(frozen=True)
class Entrant:
    """Who takes part: a policy or a contender by its registered ``name``, with ``settings`` as ``--set`` takes them.

    ``label``, unique in a specification, is what tables call it. It is not tried on instances beyond size ``largest``.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    largest: int | None = within(None, least=0)

    def __post_init__(self) -> None:
        check_entry(self, "label")


def entrant_in(given: dict[str, Any], place: str, name: str, settings: str, *more: str) -> dict[str, Any]:
    """Return an `Entrant` in the one form that the codec takes; its table calls name and settings by these keys.

    Errors: `BadInput` for an unknown key, and for a name or settings that cannot be.
    """
    check_keys(given, (name, "label", settings, *more), (name,), place)
    own, how = given[name], given.get(settings, {})
    fits = isinstance(own, str) and bool(own.strip())
    require(fits, shown(own), f"{place}, key {name!r}", "Give a string")
    require(isinstance(how, dict), shown(how), f"{place}, key {settings!r}", "Give keys and values")
    rest = {key: value for key, value in given.items() if key not in (name, settings)}
    return {"label": own, **rest, "name": own, "settings": how}


def _entries(
    given: Any, key: str, kind: type[T], prepared: Callable[[dict[str, Any], str], dict[str, Any]]
) -> tuple[T, ...]:
    """Return what the tables [[key]] describe, whose labels differ."""
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise BadInput(f"got {shown(given)}", place=f"key {key!r}", remedy=f"Give tables [[{key}]]")
    places = [f"{key} {number}" for number in range(1, len(given) + 1)]
    try:
        made = tuple(decode(kind, prepared(each, place), place) for each, place in zip(given, places, strict=True))
    except BadInput as error:  # what refuses itself may call its place by the same word
        error.place = re.sub(rf"^({key} \d+, ){key}, ", r"\1", error.place)
        raise
    labels = [getattr(each, "label", place) for each, place in zip(made, places, strict=True)]
    for number, (label, place) in enumerate(zip(labels, places, strict=True)):
        if label in labels[:number]:
            raise BadInput(f"the label {label!r} stands twice", place=place, remedy="Give labels that differ")
    return made


def plain(value: Any, place: str) -> Any:
    """Return what TOML holds in the types of JSON; decimals become floats."""
    if isinstance(value, dict):
        return {key: plain(each, f"{place}, key {key!r}".removeprefix(", ")) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each, place) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str | int):
        return value
    raise BadInput(f"got {shown(value)}", place=place, remedy=_PLAIN_VALUE)


# -- what cannot be ---------------------------------------------------------------------------------------------------
def check_entry(of: object, *texts: str) -> None:
    """Refuse an object with a number beyond the limits of its field, or none of whose ``texts`` says something."""
    check_within(of, lambda key: f"key {key!r}")
    for key in texts:
        require(bool(getattr(of, key).strip()), shown(getattr(of, key)), f"key {key!r}", "Give a string")


def require_values(values: Sequence[Any], place: str) -> None:
    """Refuse an empty list, values that stand twice, and tables among them."""
    if not values:
        raise BadInput("got an empty list", place=place, remedy="Give at least one value")
    for number, value in enumerate(values):
        if isinstance(value, Mapping):
            raise BadInput(f"got {shown(value)}", place=place, remedy=_PLAIN_VALUE)
        if value in values[:number]:
            raise BadInput(f"{shown(value)} stands twice", place=place, remedy="Leave one of them out")

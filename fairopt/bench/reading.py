"""What specifications have in common: TOML files, here or shipped, whose tables become frozen dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from importlib import resources
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from fairopt.codec import decode
from fairopt.errors import BadInput
from fairopt.problem.files.storage import naming, read_text
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown

T = TypeVar("T")
_PLAIN_VALUE = "Give a number, a string, true or false, or a list"


def shipped_in(package: str) -> dict[str, str]:
    """Return the text of each specification in a package, by name."""
    found = {each.name: each for each in resources.files(package).iterdir() if each.name.endswith(".toml")}
    return {name.removesuffix(".toml"): found[name].read_text(encoding="utf-8") for name in sorted(found)}


def source_of(path_or_name: str | PathLike[str], package: str, lister: str) -> tuple[str, str]:
    """Return the text of a file, or of the specification of that name in ``package``, and what to call it.

    Errors: `BadInput`, which names the command ``lister`` that lists those in the package.
    """
    given = path_or_name if isinstance(path_or_name, Path) else Path(path_or_name)
    if given.is_file():
        with naming(given):
            return read_text(given), str(given)
    known = shipped_in(package)
    name = str(path_or_name)
    if name in known:
        return known[name], f"{name}.toml"
    if given.suffix or len(given.parts) > 1:
        raise BadInput("there is no such file", file=name, remedy=f"`{lister}` lists what comes with fairopt")
    remedy = f"Give a file, or a name. {nearest(name, known, 'specification')}"
    raise BadInput(f"there is no specification {shown(name)}", remedy=remedy)


def tables_of(
    kind: type[T], data: Mapping[str, Any], key: str, prepared: Callable[[dict[str, Any], str], dict[str, Any]]
) -> tuple[T, ...]:
    """Return what the tables [[key]] describe; each is ``prepared`` for the codec, which takes one form only."""
    given = data[key]
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise BadInput(f"got {shown(given)}", place=f"key {key!r}", remedy=f"Give tables [[{key}]]")
    places = [f"{key} {number}" for number in range(1, len(given) + 1)]
    return tuple(decode(kind, prepared(each, place), place) for each, place in zip(given, places, strict=True))


def check_schema(data: dict[str, Any], schema: int) -> None:
    """Take the key "schema" out of a table; refuse any other than ``schema``."""
    if (found := data.pop("schema")) != schema:
        raise BadInput(f"got {shown(found)}", place="key 'schema'", remedy=f"Write schema = {schema}")


def check_different(kind: str, labels: Sequence[str]) -> None:
    """Refuse a label that two tables [[kind]] have."""
    for number, label in enumerate(labels, start=1):
        if label in labels[: number - 1]:
            place = f"{kind} {number}"
            raise BadInput(f"the label {label!r} stands twice", place=place, remedy="Give labels that differ")


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
def _require(of: object, keys: Sequence[str], fits: Callable[[Any], bool], remedy: str) -> None:
    for key in keys:
        if not fits(value := getattr(of, key)):
            raise BadInput(f"got {shown(value)}", place=f"key {key!r}", remedy=remedy)


def require_text(of: object, *keys: str) -> None:
    """Refuse an object whose attributes of these names are not all texts that say something."""
    _require(of, keys, lambda value: bool(value.strip()), "Give a string")


def require_positive(of: object, *keys: str) -> None:
    """Refuse an object whose attributes of these names are not all finite and above 0."""
    _require(of, keys, lambda value: isfinite(value) and value > 0, "Give a number above 0")


def require_counts(of: object, least: int, *keys: str) -> None:
    """Refuse an object that has an attribute of these names below ``least``; None is fine."""
    _require(of, keys, lambda value: value is None or value >= least, f"Give a whole number, at least {least}")


def require_values(values: Sequence[Any], place: str) -> None:
    """Refuse an empty list, values that stand twice, and tables among them."""
    if not values:
        raise BadInput("got an empty list", place=place, remedy="Give at least one value")
    for number, value in enumerate(values):
        if isinstance(value, Mapping):
            raise BadInput(f"got {shown(value)}", place=place, remedy=_PLAIN_VALUE)
        if value in values[:number]:
            raise BadInput(f"{shown(value)} stands twice", place=place, remedy="Leave one of them out")

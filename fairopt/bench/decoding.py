"""Dataclasses from JSON: each field is checked against its type, and what does not fit is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fairopt.errors import BadInput
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown

T = TypeVar("T")


def decoded(kind: type[T], data: object, place: str) -> T:
    """Return the dataclass ``kind`` that a JSON object describes; keys that have a default may be left out.

    Errors: `BadInput` for what is not an object, unknown and missing keys, and values of another type.
    """
    if not isinstance(data, Mapping):
        raise BadInput(f"got {shown(data)}", place=place, remedy="Give an object of keys and values")
    if not is_dataclass(kind):
        raise TypeError(f"{kind} is no dataclass")
    of = fields(kind)
    required = [each.name for each in of if each.default is MISSING and each.default_factory is MISSING]
    check_keys(data, [each.name for each in of], required, place)
    hints = get_type_hints(kind)
    inside = f"{place}, " if place else ""
    made: T = kind(**{key: _value(hints[key], value, f"{inside}key {key!r}") for key, value in data.items()})
    return made


def encoded(value: Any) -> Any:
    """Return what JSON can hold: dataclasses as objects, enums as their values, numbers that are not finite as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: encoded(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, float):
        return float(value) if abs(value) < float("inf") else None
    return value


def _value(hint: Any, value: object, place: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        [kind] = [each for each in get_args(hint) if each is not type(None)]
        return _value(kind, value, place)
    if isinstance(hint, type) and issubclass(hint, Enum):
        known = {each.value: each for each in hint}
        if not isinstance(value, str) or value not in known:
            raise BadInput(f"got {shown(value)}", place=place, remedy=nearest(value, known, "value"))
        return known[value]
    if is_dataclass(hint) and isinstance(hint, type):
        return decoded(hint, value, place)
    origin = get_origin(hint)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise BadInput(f"got {shown(value)}", place=place, remedy="Give an object of keys and values")
        of = get_args(hint)[1]
        return {key: item if of is Any else _value(of, item, f"{place}, {key!r}") for key, item in value.items()}
    takes, remedy = _PLAIN[hint]
    if not takes(value):
        raise BadInput(f"got {shown(value)}", place=place, remedy=remedy)
    return float("nan") if hint is float and value is None else hint(value)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


#: What JSON values a plain type takes, and the remedy for others; a float that was not finite was written as null.
_PLAIN: Mapping[Any, tuple[Callable[[object], bool], str]] = {
    str: (lambda value: isinstance(value, str), "Give a string"),
    bool: (lambda value: isinstance(value, bool), "Give true or false"),
    int: (lambda value: isinstance(value, int) and not isinstance(value, bool), "Give a whole number"),
    float: (_is_number, "Give a number"),
}

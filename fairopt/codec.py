"""The one codec: frozen dataclasses, tuples, mappings, sets and numbers as JSON, and back by their type hints.

A Fraction becomes a string "p/q" ("3/1" for 3, so that it comes back as a Fraction), a NumPy number or array becomes
numbers and lists, a member of an enumeration its value, a mapping whose keys are not strings a list of pairs. Reading
is strict: no "3" for 3, no true for 1, no text for a list, no unknown key. A union is read as the first member that
fits.

>>> encode({("a", 1): Fraction(1, 3)}), decode(tuple[int | Fraction, ...], [1, "2/3"])
([[['a', 1], '1/3']], (1, Fraction(2, 3)))

A text of the command line is read by the same hints: see `decode`. cattrs does the work; it is imported when first
needed, so that other commands start without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from math import isfinite, nan
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact, shown

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")
#: The metadata of a dataclass's field that is not written, and has its default where it is read.
UNWRITTEN: Mapping[str, bool] = {"unwritten": True}
_RATIO = re.compile(r"-?\d+(/0*[1-9]\d*)?", re.ASCII)
#: A plain type: what it takes, the remedy for others, and its name. A float that was not finite may stand as null.
_PLAIN: Mapping[Any, tuple[Callable[[Any], bool], str, str]] = {
    str: (lambda value: isinstance(value, str), "Give a string", "text"),
    bool: (lambda value: isinstance(value, bool), "Give true or false", "true or false"),
    int: (lambda value: type(value) is int, "Give a whole number", "whole number"),
    float: (lambda value: value is None or type(value) in (int, float), "Give a number", "number"),
    Fraction: (lambda value: type(value) is int or _is_ratio(value), 'Give a whole number or a string "p/q"', "number"),
}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: What makes the value of a type that is not plain from a text: (text, type) -> value.
Named = Callable[[str, Any], Any]


def encode(value: Any, *, finite: bool = False) -> Any:
    """Return ``value`` in the types of JSON; ``finite`` writes null for floats that are infinite or no number.

    Errors: `TypeError` for an object of any other class, since it could not be read back.
    """
    return _writer(finite).unstructure(value)


def decode(kind: Any, data: object, place: str = "", *, named: Named | None = None) -> Any:
    """Return the value of type ``kind`` that `encode` wrote; keys that have a default may be left out.

    With ``named``, the data is a text as people write it: "none", "yes", "1/3", "0.5", or "1, 2" for a list; ``named``
    makes what is not plain.

    Errors: `BadInput`, which names ``place`` and the key or entry in it, for whatever does not fit the type.
    """
    from cattrs.errors import BaseValidationError

    try:
        return _reader(named).structure(data, kind)
    except (BaseValidationError, *_UNFIT) as error:
        raise _named(error, place) from error


def described(kind: Any, named: Callable[[Any], str]) -> str:
    """Return in words what `decode` takes as a text for a type; ``named`` describes a type that is not plain."""
    if origin(kind) in (Union, UnionType):
        return " or ".join(dict.fromkeys(described(each, named) for each in get_args(kind)))
    if origin(kind) in (Sequence, tuple, list):
        return f"list of {described(get_args(kind)[0], named)}"
    if _is_a(Enum, kind):
        return " or ".join(str(each.value) for each in kind)
    special = {object: "number or none", type(None): "none"}
    return special.get(kind) or (_PLAIN[kind][-1] if kind in _PLAIN else named(kind))


def arguments(kind: Any) -> int | None:
    """Return how many arguments a type ``Callable[[...], ...]`` has; None for another type."""
    return len(get_args(kind)[0]) if origin(kind) is Callable else None


#: What the classes that are made from JSON may themselves raise where a value does not suit them.
_UNFIT = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


@cache
def _writer(finite: bool) -> Converter:
    from cattrs import Converter

    def unknown(value: Any) -> Any:
        raise TypeError(f"cannot write {type(value).__name__} {shown(value)}: it is no dataclass, tuple, map or number")

    def mapping(value: Mapping[Any, Any]) -> Any:
        pairs = [[write(key), write(each)] for key, each in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else pairs

    def entries(values: Iterable[Any]) -> list[Any]:
        return [write(each) for each in values]

    converter = Converter(unstructure_fallback_factory=lambda _: unknown)
    write = converter.unstructure
    hooks: dict[Any, Callable[[Any], Any]] = {
        object: unknown,
        type(None): lambda value: value,
        str: str,
        int: int,
        bool: bool,
        float: lambda value: float(value) if isfinite(value) or not finite else None,
        Fraction: lambda value: f"{value.numerator}/{value.denominator}",
        np.generic: lambda value: write(value.item()),
        np.ndarray: lambda value: write(value.tolist()),
        Enum: lambda value: write(value.value),
        Mapping: mapping,
        **dict.fromkeys((list, tuple), entries),
        **dict.fromkeys((set, frozenset), lambda value: sorted(entries(value), key=repr)),
    }
    for kind, hook in hooks.items():
        converter.register_unstructure_hook_func(partial(_is_a, kind), hook)
    # by the values, not by the hints of the fields: a field said to be an int may hold a NumPy number
    converter.register_unstructure_hook_func(
        is_dataclass,
        lambda value: {name: write(getattr(value, name)) for name in _written(value.__class__)},
    )
    return converter


@cache
def _reader(named: Named | None) -> Converter:
    from cattrs import Converter
    from cattrs.cols import is_frozenset, is_mapping, is_sequence, list_structure_factory, mapping_structure_factory
    from cattrs.gen import make_dict_structure_fn, override

    def plain(value: Any, kind: Any) -> Any:
        takes, remedy, _ = _PLAIN[kind]
        for meaning in _meanings(value) if named else (value,):
            if takes(meaning):
                return kind(nan if meaning is None else meaning)
        raise BadInput(f"got {shown(value)}", remedy=remedy)

    def is_none(value: Any) -> bool:
        return value is None or (named is not None and value.lower() == "none")

    def union(value: Any, kinds: Any) -> Any:
        if is_none(value) and type(None) in get_args(kinds):
            return None
        *first, last = (kind for kind in get_args(kinds) if kind is not type(None))
        for kind in first:
            try:
                return converter.structure(value, kind)
            except Exception:  # noqa: BLE001  # the next member may fit, and the last one's error is reported
                continue
        return converter.structure(value, last)

    def member(value: Any, kind: type[Enum]) -> Any:
        known = {str(each.value): each for each in kind}
        if str(value) not in known:
            raise BadInput(f"got {shown(value)}", remedy=nearest(value, known, "value"))
        return known[str(value)]

    def listed(value: Any, length: int | None = None) -> Any:
        return _of(list, [part.strip() for part in value.split(",") if part.strip()] if named else value, length)

    def entries(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        make, kinds = (frozenset if is_frozenset(kind) else tuple), get_args(kind)
        if make is tuple and kinds and kinds[-1] is not Ellipsis and not is_sequence(kind):
            return lambda value, _: tuple(
                converter.structure(each, of) for of, each in zip(kinds, listed(value, len(kinds)), strict=True)
            )
        structure = list_structure_factory(_list_of(kinds[0] if kinds else Any), converter)
        return lambda value, _: make(structure(listed(value), _))

    def mapped(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        key, each = get_args(kind) or (str, Any)
        if key is not str:
            pairs = tuple[tuple[key, each], ...]  # type: ignore[valid-type]
            return lambda value, _: dict(converter.structure(value or [], pairs))
        structure = mapping_structure_factory(dict[str, each], converter)  # type: ignore[valid-type]
        return lambda value, _: structure(_of(dict, value), _)

    def anything(value: Any, _: Any) -> Any:
        return value if named is None else None if is_none(value) else exact(value, "")

    def record(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        listed, written = fields(origin(kind)), _written(origin(kind))
        omitted: dict[str, Any] = {each.name: override(omit=True) for each in listed if each.name not in written}
        structure = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **omitted)
        return lambda value, _: structure(_of(dict, value), _)

    converter = Converter()
    if named is None:
        converter.register_structure_hook_factory(lambda kind: is_dataclass(origin(kind)), record)
    else:  # the hooks that come later go first
        converter.register_structure_hook_func(lambda _: True, named)
    for kind in _PLAIN:
        converter.register_structure_hook(kind, plain)
    converter.register_structure_hook_func(lambda kind: kind in (Any, object), anything)
    converter.register_structure_hook_func(lambda kind: origin(kind) in (Union, UnionType), union)
    converter.register_structure_hook_func(partial(_is_a, Enum), member)
    for suits in (is_sequence, is_frozenset, lambda kind: origin(kind) is tuple):
        converter.register_structure_hook_factory(suits, entries)
    converter.register_structure_hook_factory(is_mapping, mapped)
    return converter


def _named(error: Any, place: str) -> BadInput:
    """Return the first thing that is wrong, with the keys and entries that lead to it."""
    from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    where = [place] if place else []
    while isinstance(error, ClassValidationError | IterableValidationError):
        noted, others = error.group_exceptions()
        if others:  # an unknown key first: it may be the missing one, misspelt
            error = others[0]
            continue
        error, note = noted[0]
        step: Any = getattr(note, "name", None) or getattr(note, "index", None)
        if isinstance(error, KeyError) and error.args == (step,):
            return BadInput(f"the key {step!r} is missing", place=", ".join(where), remedy=f"Add {step}")
        where.append(f"key {step!r}" if isinstance(step, str) else f"entry {step + 1}")
    if isinstance(error, BadInput):
        where += [error.place] if error.place else []
        return BadInput(error.problem, place=", ".join(where), remedy=error.remedy, file=error.file)
    if isinstance(error, ForbiddenExtraKeysError):
        key, known = min(error.extra_fields), _written(error.cl)
        return BadInput(f"unknown key {shown(key)}", place=", ".join(where), remedy=nearest(key, known, "key"))
    return BadInput(f"it does not fit: {error!r:.200}", place=", ".join(where), remedy="Check what was given")


def _meanings(text: str) -> Iterator[object]:
    """Yield a text as itself, as a truth value, and as a number in each form that numbers have."""
    yield text
    if text.lower() in _TRUTH:
        yield _TRUTH[text.lower()]
    with suppress(BadInput, OverflowError):
        number = exact(text, "")
        yield int(number) if number.denominator == 1 else f"{number.numerator}/{number.denominator}"
        yield float(number)


def _of(kind: Any, value: Any, length: int | None = None) -> Any:
    if not isinstance(value, kind) or length not in (None, len(value)):
        what = "an object of keys and values" if kind is dict else f"a list{f' of {length}' if length else ''}"
        raise BadInput(f"got {shown(value)}", remedy=f"Give {what}")
    return value


@cache
def _written(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if "unwritten" not in each.metadata)


def origin(kind: Any) -> Any:
    """Return the class of a type that has arguments, such as list for list[int]; another type as it is."""
    return get_origin(kind) or kind


def _list_of(kind: Any) -> Any:
    return list[kind]


def _is_ratio(value: Any) -> bool:
    return isinstance(value, str) and _RATIO.fullmatch(value) is not None


def _is_a(kind: type, found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, kind)

"""Options of a policy of rounds or schedules from the command line: ``--set OPTION=VALUE``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from importlib.metadata import EntryPoint
from inspect import signature
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fairopt import discovery
from fairopt.errors import BadInput, FairoptError
from fairopt.policy import Policy
from fairopt.problem import Market, exact
from fairopt.problem.labels import nearest

P = TypeVar("P", Policy, Policy)
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def configured(policy: P, settings: Sequence[str]) -> P:
    """Return a policy with the options that ``settings`` name; truth values, numbers, lists of them, and policies.

    An option of a kind of its own says how it is read, in its field's metadata: ``read`` (text, place) -> value. Where
    it does not, MODULE:NAME names a function, or a class that is made with its own default options.

    Errors: `BadInput` for an unknown option, a value of another kind, and an option that is given twice.
    """
    options: list[Field[Any]] = [each for each in fields(policy) if each.init] if is_dataclass(policy) else []
    names = [each.name for each in options]
    values: dict[str, Any] = {}
    readers = {each.name: each.metadata["read"] for each in options if "read" in each.metadata}
    hints = get_type_hints(type(policy))
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise BadInput(f"got {text!r}", place="--set", remedy="Write OPTION=VALUE")
        if name not in names:
            raise BadInput(
                f"{policy.name} has no option {name!r}", place="--set", remedy=nearest(name, names, "option")
            )
        place = f"--set {name}"
        if name in values:
            raise BadInput("it is given twice", place=place, remedy="Give each option once")
        values[name] = readers[name](value, place) if name in readers else _value(value, hints[name], place)
    changed: P = replace(policy, **values)  # type: ignore[type-var]
    return changed


def _value(text: str, hint: Any, place: str) -> Any:
    """Return the value that a text means for an option of a type; of a union, the first that takes it."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if type(None) in kinds and text.lower() == "none":
        return None
    problems = []
    for kind in (kind for kind in kinds if kind is not type(None)):
        try:
            return _of_kind(text, kind, place)
        except FairoptError as error:
            problems.append(error)
    raise problems[0]


def _of_kind(text: str, kind: Any, place: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise BadInput(f"got {text!r}", place=place, remedy="Give true or false")
        return _TRUTH[text.lower()]
    if kind is str:
        return text
    if kind is int:
        number = exact(text, place)
        if number.denominator != 1:
            raise BadInput(f"got {text!r}", place=place, remedy="Give a whole number")
        return int(number)
    if kind in (Fraction, object):  # an option of no type takes whatever is a number, and None
        return None if kind is object and text.lower() == "none" else exact(text, place)
    if kind is float:
        return float(exact(text, place))
    if isinstance(kind, type) and issubclass(kind, Enum):
        names = [str(each.value) for each in kind]
        if text not in names:
            raise BadInput(f"got {text!r}", place=place, remedy=nearest(text, names, "value"))
        return next(each for each in kind if str(each.value) == text)
    if kind is Policy:
        return discovery.policy(text, Market)
    if get_origin(kind) in (Sequence, tuple, list):
        of = get_args(kind)[0]
        return tuple(_value(part.strip(), of, place) for part in text.split(",") if part.strip())
    return _named(text, kind, place)


def _named(text: str, kind: Any, place: str) -> Any:
    """Return the object that MODULE:NAME names; of a class, an instance with its default options.

    Only what has the methods that ``kind`` asks for, or can be called as it says, is taken.
    """
    called = getattr(kind, "__name__", str(kind))
    function = get_origin(kind) is Callable
    if ":" not in text or not (function or isinstance(kind, type)):
        raise BadInput(
            f"got {text!r} for an option of type {called}",
            place=place,
            remedy="Name a function or class by MODULE:NAME; others can be given in Python only",
        )
    try:
        found = EntryPoint(name=place, value=text, group="").load()
        made = found() if isinstance(found, type) else found
    except Exception as error:  # whatever the module or the class raises, it is what was named that is at fault
        raise BadInput(
            f"{text!r} cannot be had: {error!r}", place=place, remedy="Check the module and the name"
        ) from error
    if function:
        fits = _takes(made, len(get_args(kind)[0]))
    elif getattr(kind, "_is_protocol", False):
        methods = {
            name: of for name, of in vars(kind).items() if callable(of) and (name[0] != "_" or name == "__call__")
        }
        # a function's own __call__ takes anything
        fits = all(
            _takes(made if name == "__call__" else getattr(made, name, None), len(signature(of).parameters) - 1)
            for name, of in methods.items()
        )
    else:
        fits = isinstance(made, kind)
    if not fits:
        raise BadInput(f"{text!r} is no {called}", place=place, remedy="Name one, as the policy's class says")
    return made


def _takes(made: Any, count: int) -> bool:
    """Whether something can be called with so many arguments."""
    try:
        signature(made).bind(*(None,) * count)
    except (TypeError, ValueError):
        return False
    return True

"""What the command line says of a run: its trace and cluster, and a policy's options, ``--set OPTION=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from inspect import getdoc, signature
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from fairopt import discovery
from fairopt.cli import completing
from fairopt.codec import decode
from fairopt.errors import BadInput, FairoptError
from fairopt.policy import Policy
from fairopt.problem import Cluster, Market, Trace, exact, read_cluster, read_trace
from fairopt.problem.files.storage import naming
from fairopt.problem.labels import nearest
from fairopt.simulation import Mechanics
from fairopt.simulation.run import check_matches
from fairopt.workloads import Workload

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="An option of the policy, as `fairopt policies NAME` lists them. May be repeated.",
        autocompletion=completing.OPTIONS,
    ),
]
P = TypeVar("P", bound=Policy | Workload)
_PLAIN = (bool, int, float, Fraction, str)
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_trace_on(trace: Path, cluster: Path) -> tuple[Trace, Cluster]:
    """Return a trace for the cluster that it is played on, and that cluster, from their files."""
    there = read_cluster(cluster)
    given = read_trace(trace, there.types)
    with naming(trace):
        check_matches(given, there)
    return given, there


def mechanics_of(restart: str, launch: str, spread: str, local_data: bool) -> Mechanics:
    """Return the mechanics that the options of these names describe."""
    costs = {"restart": restart, "launch": launch, "spread": spread}
    return Mechanics(**{name: exact(text, f"--{name}") for name, text in costs.items()}, local_data=local_data)


class Option(NamedTuple):
    """An option of a policy: its type, its default and what it means, in words."""

    name: str
    type: str
    default: str
    meaning: str


def options_of(policy: Policy | Workload) -> list[Option]:
    """Return the options of a policy or a generator; what they mean is taken from its docstring."""
    if not is_dataclass(policy):
        return []
    hints = get_type_hints(type(policy))
    given = [(each.name, hints[each.name], getattr(policy, each.name)) for each in fields(policy) if each.init]
    return [
        Option(name, _type_text(hint), _default_text(now), _meaning(policy, name, hint)) for name, hint, now in given
    ]


def _type_text(hint: Any) -> str:
    """Return what can be written for an option of a type, as `configured` reads it."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_type_text, get_args(hint))))
    if get_origin(hint) in (Sequence, tuple, list):
        return f"list of {_type_text(get_args(hint)[0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(str(each.value) for each in hint)
    if get_origin(hint) is Callable:
        return "MODULE:NAME of a function"
    return _TYPES.get(hint) or f"MODULE:NAME of a {hint.__name__}"


_TYPES: Mapping[Any, str] = MappingProxyType(
    {
        **{bool: "true or false", int: "whole number", str: "text", type(None): "none", Policy: "name of a policy"},
        **dict.fromkeys((float, Fraction), "number"),
        object: "number or none",
    }
)


def _default_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_default_text, value)) or "none at all"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    plain = isinstance(value, int | float | Fraction | str)
    return str(value) if plain else str(getattr(value, "name", getattr(value, "__name__", type(value).__name__)))


def _meaning(policy: Policy | Workload, name: str, hint: Any) -> str:
    """Return what the docstrings of a policy's class and its bases say of an option, else that of the option's type."""
    texts = [
        " ".join(part.split()) for each in type(policy).__mro__ for part in _PARTS.split(vars(each)["__doc__"] or "")
    ]
    own = rf"``{name}``(?: \([^)]*\))?: (.*?)(?= ``\w+``: |$)"
    found = (re.search(form, text) for form in (own, rf"([^.]*``{name}``.*?[.:])(?: |$)") for text in texts)
    said = next((match[1].strip() for match in found if match), (getdoc(hint) or "").partition("\n")[0])
    return said.replace("``", "")


#: What separates the parts of a docstring: a blank line, or the star of a list.
_PARTS = re.compile(r"\n\s*\n|\n\s*\* ")


def configured(policy: P, settings: Sequence[str]) -> P:
    """Return a policy, or a generator, with the options in ``settings``: truth values, numbers, lists, policies.

    An option of another type may have a reader in its field's metadata: ``read`` (text, place) -> value. Without one,
    MODULE:NAME names a function, or a class, of which an instance with default options is made.

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
            remedy = nearest(name, names, "option")
            raise BadInput(f"{policy.name} has no option {name!r}", place="--set", remedy=remedy)
        place = f"--set {name}"
        if name in values:
            raise BadInput("it is given twice", place=place, remedy="Give each option once")
        values[name] = readers[name](value, place) if name in readers else _value(value, hints[name], place)
    changed: P = replace(policy, **values)  # type: ignore[type-var]
    return changed


def _value(text: str, hint: Any, place: str) -> Any:
    """Return the value of a text for an option of a type; for a union, by the first member that accepts it."""
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
    if kind is object:  # an option without a type takes any number, and None
        return None if text.lower() == "none" else exact(text, place)
    if kind is Policy:
        return discovery.policy(text, Market)
    if get_origin(kind) in (Sequence, tuple, list):
        of = get_args(kind)[0]
        return tuple(_value(part.strip(), of, place) for part in text.split(",") if part.strip())
    if kind in _PLAIN or (isinstance(kind, type) and issubclass(kind, Enum)):
        return _plain(text, kind, place)
    return _named(text, kind, place)


def _plain(text: str, kind: Any, place: str) -> Any:
    """Return the first reading of a text that the codec accepts for a type; errors are about the text itself."""
    for meaning in _meanings(text):
        with suppress(BadInput):
            return decode(kind, meaning, place)
    return decode(kind, text, place)


def _meanings(text: str) -> Iterator[object]:
    """Yield a text as itself, as a truth value, and as a number in each form that the codec has for numbers."""
    yield text
    if text.lower() in _TRUTH:
        yield _TRUTH[text.lower()]
    with suppress(BadInput, OverflowError):
        number = exact(text, "")
        yield int(number) if number.denominator == 1 else f"{number.numerator}/{number.denominator}"
        yield float(number)


def _named(text: str, kind: Any, place: str) -> Any:
    """Return the object that MODULE:NAME names, or an instance of that class; it must have the methods of ``kind``."""
    called = getattr(kind, "__name__", str(kind))
    function = get_origin(kind) is Callable
    if ":" not in text or not (function or isinstance(kind, type)):
        remedy = "Name a function or class by MODULE:NAME; others can be given in Python only"
        raise BadInput(f"got {text!r} for an option of type {called}", place=place, remedy=remedy)
    made = discovery.named(text, place)
    if isinstance(made, type):
        try:
            made = made()
        except Exception as error:  # any error of the class
            raise BadInput(f"{text!r} cannot be made: {error!r}", place=place, remedy="Name another one") from error
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
    """Whether an object can be called with ``count`` arguments."""
    try:
        signature(made).bind(*(None,) * count)
    except (TypeError, ValueError):
        return False
    return True

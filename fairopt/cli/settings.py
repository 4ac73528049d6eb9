"""What the command line says of a run: its trace and cluster, and a policy's options, ``--set OPTION=VALUE``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

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

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="An option of the policy, as `fairopt policies NAME` lists them. May be repeated.",
        autocompletion=completing.OPTIONS,
    ),
]
P = TypeVar("P", bound=Policy)
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


def configured(policy: P, settings: Sequence[str]) -> P:
    """Return a policy with the options in ``settings``: truth values, numbers, lists of them, and policies.

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

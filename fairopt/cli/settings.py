"""What the command line says of a run: its trace and cluster, and a policy's options, ``--set OPTION=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import partial
from inspect import getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from fairopt import discovery
from fairopt.cli import completing
from fairopt.codec import arguments, decode, described
from fairopt.errors import BadInput
from fairopt.policy import Policy
from fairopt.problem import Cluster, Market, Trace, exact, read_cluster, read_trace
from fairopt.problem.files.storage import naming
from fairopt.problem.labels import nearest
from fairopt.simulation import Mechanics
from fairopt.simulation.run import check_matches

if TYPE_CHECKING:
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
P = TypeVar("P", bound="Policy | Workload")


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
    given = {name: exact(text, f"--{name}") for name, text in costs.items()}
    try:
        return Mechanics(**given, local_data=local_data)
    except BadInput as error:
        option = error.place.replace("mechanics, ", "--")
        raise BadInput(error.problem, place=option, remedy=error.remedy) from error


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
    return [
        Option(
            each.name,
            described(hints[each.name], _named_text),
            _default_text(getattr(policy, each.name)),
            _meaning(policy, each.name, hints[each.name]),
        )
        for each in fields(policy)
        if each.init
    ]


def _named_text(kind: Any) -> str:
    what = "function" if arguments(kind) is not None else kind.__name__
    return "name of a policy" if kind is Policy else f"MODULE:NAME of a {what}"


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
        read = readers.get(name, partial(decode, hints[name], named=_named))
        values[name] = read(value, place)
    changed: P = replace(policy, **values)  # type: ignore[type-var]
    return changed


def _named(text: str, kind: Any) -> Any:
    """Return the object that MODULE:NAME names, or an instance of that class; it must have the methods of ``kind``.

    A policy of shares has a name of its own.
    """
    if kind is Policy:
        return discovery.policy(text, Market)
    called, count = getattr(kind, "__name__", str(kind)), arguments(kind)
    if ":" not in text or not (count is not None or isinstance(kind, type)):
        remedy = "Name a function or class by MODULE:NAME; others can be given in Python only"
        raise BadInput(f"got {text!r} for an option of type {called}", remedy=remedy)
    made = discovery.named(text)
    if isinstance(made, type):
        try:
            made = made()
        except Exception as error:  # any error of the class
            raise BadInput(f"{text!r} cannot be made: {error!r}", remedy="Name another one") from error
    if count is not None:
        fits = _takes(made, count)
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
        raise BadInput(f"{text!r} is no {called}", remedy="Name one, as the policy's class says")
    return made


def _takes(made: Any, count: int) -> bool:
    """Whether an object can be called with ``count`` arguments."""
    try:
        signature(made).bind(*(None,) * count)
    except (TypeError, ValueError):
        return False
    return True

"""What the command line says of a run: its trace and cluster, and a policy's options, ``--set OPTION=VALUE``."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from fairopt.cli import completing
from fairopt.codec import arguments, described
from fairopt.configuring import choices
from fairopt.errors import BadInput
from fairopt.numbers import is_number
from fairopt.policy import Policy
from fairopt.problem import Cluster, Trace, exact, read_cluster, read_trace
from fairopt.problem.files.storage import naming
from fairopt.simulation import Mechanics

if TYPE_CHECKING:
    from fairopt.workloads import Workload


def settings_listed(by: str) -> Any:
    """Return the option ``--set``; ``by``: the command that lists what can be set."""
    return typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help=f"An option, as `fairopt {by}` lists it. May be repeated.",
        autocompletion=completing.OPTIONS,
    )


Settings = Annotated[list[str] | None, settings_listed("policies NAME")]
P = TypeVar("P", bound="Policy | Workload")


def read_trace_on(trace: Path, cluster: Path) -> tuple[Trace, Cluster]:
    """Return a trace for the cluster that it is played on, and that cluster, from their files."""
    from fairopt.simulation.rounds import check_matches  # here, so that what plays nothing begins sooner

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
            described(hints[each.name], partial(_named_text, type(policy))),
            _default_text(getattr(policy, each.name)),
            _meaning(policy, each.name, hints[each.name]),
        )
        for each in fields(policy)
        if each.init
    ]


def _named_text(owner: type, kind: Any) -> str:
    if kind is Policy:
        return "name of a policy"
    if arguments(kind) is not None:
        return "MODULE:NAME of a function"
    return " or ".join([*choices(kind, owner), f"MODULE:NAME of another {kind.__name__}"])


def _default_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_default_text, value)) or "none at all"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    plain = is_number(value) or isinstance(value, str)
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

"""What the command line says of a run: its trace and cluster, and a policy's options, ``--set OPTION=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import partial, wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from fairopt.cli import completing
from fairopt.codec import arguments, described
from fairopt.configuring import choices
from fairopt.errors import BadInput
from fairopt.numbers import is_number
from fairopt.policy import Policy
from fairopt.problem import Cluster, Trace, exact, read_cluster, read_trace
from fairopt.problem.files.storage import naming
from fairopt.problem.numbers import shown
from fairopt.report import Key, ResultForm, Statement

if TYPE_CHECKING:
    from fairopt.simulation import Mechanics
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


@dataclass(frozen=True)
class Playing:
    """How a trace is played: the options of commands that do."""

    length: Annotated[str, typer.Option(metavar="SECONDS", help="Seconds of a round.")] = "300"
    restart: Annotated[str, typer.Option(metavar="SECONDS", help="Seconds to stop a job and start it again.")] = "0"
    launch: Annotated[str, typer.Option(metavar="SECONDS", help="Seconds to start a job for the first time.")] = "0"
    spread: Annotated[
        str, typer.Option(metavar="FACTOR", help="Factor on the speed of a gang on several hosts (intra-operator).")
    ] = "1"
    local_data: Annotated[bool, typer.Option("--local-data", help="Copy datasets to hosts before jobs run.")] = False
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after so many rounds; of a resumed run, so many more.", min=0),
    ] = None

    @property
    def mechanics(self) -> Mechanics:
        """What starting and moving jobs costs."""
        from fairopt.simulation import Mechanics  # here, so that what plays nothing begins sooner

        given: dict[str, Any] = {
            name: exact(getattr(self, name), f"--{name}") for name in ("restart", "launch", "spread")
        }
        try:
            return Mechanics(**given, local_data=self.local_data)
        except BadInput as error:
            option = error.place.replace("mechanics, ", "--")
            raise BadInput(error.problem, place=option, remedy=error.remedy) from error

    @property
    def seconds(self) -> Fraction:
        """The seconds of a round."""
        seconds = exact(self.length, "--length")
        if seconds <= 0:
            raise BadInput(f"got {shown(seconds)}", place="--length", remedy="Give the seconds of a round, positive")
        return seconds


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the options of a group one by one: the fields of a dataclass that is a parameter.

    In ``Annotated[Group, "Of a trace: "]`` the text is what the help of each begins with.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for each in signature(command).parameters.values():
        kind = getattr(hints[each.name], "__origin__", hints[each.name])
        if not is_dataclass(kind):
            parameters.append(each.replace(annotation=hints[each.name]))
            continue
        groups[each.name] = kind
        begins = "".join(getattr(hints[each.name], "__metadata__", ()))
        options = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            option = copy(options[field.name].__metadata__[0])
            option.help = begins + (option.help[0].lower() + option.help[1:] if begins else option.help)
            annotation: Any = Annotated[options[field.name].__origin__, option]
            parameters.append(each.replace(name=field.name, default=field.default, annotation=annotation))

    @wraps(command)
    def expanded(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    expanded.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


NAME = Key("name", str, "The name.")
OPTION = ResultForm(
    "An option.",
    NAME,
    Key("type", str, "What can be given."),
    Key("default", str, "What it is else."),
    Key("meaning", str, "What it does."),
)


def options_of(policy: Policy | Workload) -> list[Statement]:
    """Return the options of a policy or a generator; what they mean is taken from its docstring."""
    if not is_dataclass(policy):
        return []
    hints = get_type_hints(type(policy))
    return [
        OPTION.of(
            name=each.name,
            type=described(hints[each.name], partial(_named_text, type(policy))),
            default=_default_text(getattr(policy, each.name)),
            meaning=_meaning(policy, each.name, hints[each.name]),
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

"""`fairopt policies`, `backends`, `properties` and `plugins`: what is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from inspect import getdoc
from typing import Annotated, Any, Literal, TypeVar

import typer

from fairopt import discovery
from fairopt.backends import Highs
from fairopt.cli import completing, tables
from fairopt.cli.app import COMMANDS
from fairopt.cli.settings import NAME, OPTION, options_of
from fairopt.errors import BadInput, FairoptError
from fairopt.numbers import arithmetic
from fairopt.policy import Policy
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch
from fairopt.properties import MechanismProperty, Property
from fairopt.report import SCHEMA_KEY, Key, ResultForm, keys_of, listed

T = TypeVar("T")
#: What the letters of definitions on markets are.
LETTERS = (
    "On a market, x_lj is how many GPUs of type j user l has, E_l(x_l) its throughput out of them, pi_l its weight, "
    "and m_j how many GPUs of type j there are."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")]


def policies_option(*problem: type) -> Any:
    """Return the option --policy of a command that compares policies, those that decide on ``problem``."""
    about = "A policy by name, or a function of yours, FILE.py:NAME; all by default. May be repeated."
    return typer.Option("--policy", metavar="NAME", help=about, autocompletion=completing.policies(*problem))


SharePolicies = Annotated[list[str] | None, policies_option(Market)]
Backend = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A backend, or a method of the policy, by name; auto: the policy's own choice.",
        autocompletion=completing.BACKENDS,
    ),
]
PropertyNames = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="NAME",
        help="A property by name; all by default. May be repeated.",
        autocompletion=completing.PROPERTIES,
    ),
]


#: What policies decide, by the type of their problem.
DECIDES: Mapping[type, str] = {Market: "shares", Queue: "rounds", Batch: "schedules"}

SOURCE = Key("source", str, "Where it is from.")
OPTIONS = Key("options", listed(OPTION), "What --set takes.", options_of)
POLICY = ResultForm(
    "A policy.",
    SCHEMA_KEY,
    NAME,
    SOURCE,
    Key(
        "decides", Literal["shares", "rounds", "schedules"], "What it decides.", lambda policy: DECIDES[policy.problem]
    ),
    Key("own_algorithm", bool, "Whether it has a method of its own.", lambda policy: bool(policy.methods)),
    Key(
        "methods",
        list[str],
        "Its methods; the first is the default.",
        lambda policy: [method.name for method in policy.methods],
    ),
    Key("program", bool, "Whether a backend can decide it.", lambda policy: policy.has_program),
    Key(
        "available",
        bool,
        "Whether it can decide here.",
        lambda policy: bool(policy.methods) or Highs.available(),
    ),
    OPTIONS,
    Key(
        "claims",
        listed(dict),
        "What its source claims.",
        lambda policy: [
            {
                "property": claim.said(),
                "checkable": bool(claim.property),
                **{key: getattr(claim, key) for key in ("source", "assumes", "misreport")},
                "refuted": claim.refuted_by is not None,
            }
            for claim in policy.claims
        ],
    ),
    name="policy",
)
BACKEND = ResultForm(
    "A backend.",
    SCHEMA_KEY,
    NAME,
    Key("available", bool, "Whether it can be used here.", lambda backend: backend.available()),
    Key("missing", list[str], "What is to be installed for that.", lambda backend: list(backend.missing())),
    Key(
        "capabilities",
        list[str],
        "What it can do.",
        lambda backend: sorted(capability.name.lower() for capability in backend.capabilities),
    ),
    Key(
        "numbers",
        Literal["floats", "exact rationals"],
        "What it computes in.",
        lambda backend: arithmetic(backend.number).name,
    ),
    name="backend",
)
PROPERTY = ResultForm(
    "A property.",
    SCHEMA_KEY,
    NAME,
    SOURCE,
    Key("of", str, "Of what."),
    Key("definition", str, "The definition."),
    name="property",
)
PLUGIN = ResultForm(
    "What another package brings.",
    SCHEMA_KEY,
    *keys_of(str, "group name value", "As it is registered."),
    Key("package", str, "As it is registered.", discovery.package_of),
    name="plugin",
)


def policy_option(what: str, problem: type) -> Any:
    """Return the option --policy of a command whose policies decide on ``problem``."""
    own = "A function of yours is FILE.py:NAME" if issubclass(problem, Market) else "A class of yours is MODULE:NAME"
    about = f"{what} by name; `fairopt policies` lists them. {own}."
    return typer.Option(metavar="NAME", help=about, autocompletion=completing.policies(problem))


def policies(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Show all about this policy, its options too.", autocompletion=completing.policies()
        ),
    ] = None,
    json_: AsJson = False,
) -> None:
    """List the installed policies and what each claims: those of `solve`, those of `run`, those of `schedule`."""
    if name is not None:
        found = discovery.policy(name)
        return show(json_, POLICY.list([found]), lambda: tables.policy(found, options_of(found)))
    listed, rounds, schedules = (wanted_policies(None, problem) for problem in (Market, Queue, Batch))
    if json_:
        print_json(POLICY.list([*listed, *rounds, *schedules]))
    else:
        tables.policies(listed)
        tables.policies(rounds, "policy of rounds")
        tables.policies(schedules, "policy of schedules")
        tables.say("`fairopt policies NAME` says what options a policy has.")


def backends(json_: AsJson = False) -> None:
    """List the backends, what each can do, and whether it is available here."""
    listed = chosen(None, discovery.BACKENDS, partial(discovery.load, discovery.BACKENDS))
    show(json_, BACKEND.list(listed), lambda: tables.backends(listed))


def properties(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A property: what it says in words.", autocompletion=completing.PROPERTIES),
    ] = None,
    json_: AsJson = False,
) -> None:
    """List the properties that can be checked, with their definitions."""
    wanted = wanted_properties(None if name is None else [name])
    listed = PROPERTY.list(wanted)
    if name is not None:
        return show(json_, listed, lambda: _say_property(wanted[0]))
    columns = {"name": "property", "of": "of", "definition": "definition", "source": "source"}
    show(json_, listed, lambda: tables.listing(columns, listed))
    if not json_:
        tables.say(LETTERS)


def _say_property(shown: Property) -> None:
    said = (getdoc(type(shown)) or "").partition("\n")[0]
    tables.say(f"{shown.name} ({shown.asks()}), of {_with_article(shown.of)}: {said}")
    tables.say(f"definition: {shown.definition}")
    tables.say(f"source: {shown.source}")
    if issubclass(shown.problem, Market):
        tables.say(LETTERS)


def plugins(json_: AsJson = False) -> None:
    """List what other installed packages add to fairopt, by group of entry points."""
    found = discovery.plugins()
    for each in found:
        if each.group == discovery.COMMANDS and each.name in COMMANDS:
            why = "is not used: fairopt has a command of that name"
            print(f"fairopt: {each.name!r} of {discovery.package_of(each)} {why}", file=sys.stderr)
    rows = PLUGIN.list(found)
    if found or json_:
        columns = {"name": "name", "group": "of", "value": "what", "package": "package"}
        return show(json_, rows, lambda: tables.listing(columns, rows))
    tables.say("No other package adds anything to fairopt.")


def wanted_policies(names: list[str] | None, problem: type) -> list[Policy]:
    """Return the named policies, or all that decide on ``problem``."""
    if names:
        made = [discovery.policy(name, problem) for name in dict.fromkeys(names)]
        for at, each in enumerate(made):
            if each.name in (other.name for other in made[:at]):
                raise BadInput(f"two are called {each.name}", place="--policy", remedy="Call one function otherwise")
        return made
    listed = chosen(None, discovery.POLICIES, discovery.policy)
    return [each for each in listed if issubclass(each.problem, problem)]


def compared_policies(names: list[str] | None, decided: type, problem: object) -> tuple[list[Policy], dict[str, str]]:
    """Return the named policies; where none is named, those that are compared on ``problem``, and why others are not.

    ``decided``: what such policies decide on, say a Queue where ``problem`` is a Setting.
    """
    from fairopt.compare import asked_of, left_out  # here, so that lists are printed sooner

    listed = wanted_policies(names, decided)
    if names:
        return listed, {}
    return [each for each in listed if asked_of(each, problem)], left_out(listed, problem)


def wanted_properties(names: list[str] | None, problem: object = None) -> list[Property]:
    """Return the named properties, or all that are asked of ``problem``; `BadInput` for one on another kind of problem.

    ``problem``: a `Market`, `Setting` or `Batch`, or one of these classes; None for anything.
    """
    made = chosen(names, discovery.PROPERTIES, discovery.property_)
    if problem is None:
        return made
    kind = problem if isinstance(problem, type) else type(problem)
    fit = [each for each in made if issubclass(kind, each.problem)]
    if not names and kind is not problem:
        fit = [each for each in fit if each.asked_of(problem)]
    if names and len(fit) < len(made):
        other = next(each for each in made if each not in fit)
        known = ", ".join(each.name for each in discovery.properties(kind))
        remedy = f"Here: {known}"
        raise BadInput(f"{other.name} is a property of {_with_article(other.of)}", place="--property", remedy=remedy)
    return fit


def _with_article(noun: str) -> str:
    return f"{'an' if noun.startswith(tuple('aeiou')) else 'a'} {noun}"


def outcome_properties(names: list[str] | None, problem: object) -> list[Property]:
    """Return those of `wanted_properties` that an outcome can have; `BadInput` where one was named that cannot."""
    wanted = wanted_properties(names, problem)
    for each in wanted if names else ():
        if isinstance(each, MechanismProperty):
            raise BadInput(
                f"{each.name} is a property of a {each.of}, not of one outcome",
                place="--property",
                remedy="Ask `fairopt compare FILE --policy NAME`, which searches for misreports",
            )
    return [each for each in wanted if not isinstance(each, MechanismProperty)]


def chosen(given: list[str] | None, group: str, make: Callable[[str], T]) -> list[T]:
    """Return the named plug-ins, or all installed ones, of which broken ones are left out with a warning."""
    if given:
        return [make(name) for name in dict.fromkeys(given)]
    made = []
    for name in discovery.names(group):
        try:
            made.append(make(name))
        except FairoptError as error:
            print(f"fairopt: left out: {error}", file=sys.stderr)
    return made


def show(json_: bool, data: Any, print_table: Callable[[], None]) -> None:
    """Print data, or what a function returns that makes it, as JSON; or a table."""
    if json_:
        print_json(data() if callable(data) else data)
    else:
        print_table()


def print_json(data: Mapping[str, Any] | list[Any], *, indent: int | None = 2) -> None:
    """Print JSON on standard output, and nothing else there; names as they are, where it takes every letter."""
    print(json_text(data, indent=indent))


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Return JSON that standard output takes."""
    every = str(sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return json.dumps(data, indent=indent, ensure_ascii=not every, allow_nan=False)

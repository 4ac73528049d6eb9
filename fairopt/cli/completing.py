"""What shells propose where a name is wanted: what is installed, and what it is. Files they propose themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from textwrap import shorten
from typing import Any, TypeAlias

import typer

from fairopt import discovery

Proposer: TypeAlias = Callable[[typer.Context, str], Iterable[tuple[str, str]]]


def proposing(found: Callable[[typer.Context], Mapping[str, str]]) -> Proposer:
    """Return the ``autocompletion`` of a parameter; ``found``: what a value is about, by value, in a command so far."""

    def propose(context: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
        return _in_short(found(context))

    return propose


def files_and(data_sets: Callable[[], Mapping[str, str]]) -> Proposer:
    """Return the ``autocompletion`` of a file: data sets after an @; else nothing, and the shell proposes files."""

    def propose(context: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
        found = data_sets() if incomplete.startswith("@") else {}
        return _in_short({f"@{name}": about for name, about in found.items()})

    return propose


def _in_short(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return proposals whose texts stand in one line, as shells want them."""
    return [(value, shorten(about, 50, placeholder=" ...")) for value, about in found.items()]


def registered(group: str) -> Proposer:
    """Return what proposes the names of a group of entry points."""
    return proposing(lambda _: dict.fromkeys(discovery.names(group), ""))


def policies(problem: type | None = None) -> Proposer:
    """Return what proposes the policies that decide on ``problem``, or all."""
    return proposing(lambda _: {each.name: each.source for each in discovery.policies(problem)})


def _backends(context: typer.Context) -> dict[str, str]:
    policy = _policy(context)
    methods = () if policy is None else policy.methods
    return dict.fromkeys(["auto", *(each.name for each in methods), *discovery.names(discovery.BACKENDS)], "")


def _options(context: typer.Context) -> dict[str, str]:
    policy = _policy(context)
    return {f"{each.name}=": "" for each in fields(policy) if each.init} if is_dataclass(policy) else {}


def _policy(context: typer.Context) -> Any:
    """Return the policy that the command has so far; None where it has none that is installed."""
    name = context.params.get("policy")
    return discovery.policy(name) if name in discovery.names(discovery.POLICIES) else None


BACKENDS, OPTIONS = proposing(_backends), proposing(_options)
PROPERTIES = proposing(lambda _: {each.name: each.definition for each in discovery.properties()})

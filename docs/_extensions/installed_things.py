"""The directive ``installed``: what is registered in a group of entry points, read from the objects themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

from building import paragraph, table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt import discovery
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch


def first_line(thing: Any) -> str:
    """Return what the docstring says first."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def claims(policy: Any) -> str:
    """Return what a policy's source claims of it, and which of that a stored market refutes."""
    return "; ".join(map(claimed, policy.claims)) or "none"


def claimed(claim: Any) -> str:
    """Return one claim in words."""
    kind = f" ({claim.misreport} misreports)" if claim.misreport != "any" else ""
    refuted = " (refuted)" if claim.refuted_by is not None else ""
    return f"{claim.said()}{kind}{f' if {claim.assumes}' if claim.assumes else ''}{refuted}"


def policies(problem: type) -> Callable[[], Iterator[tuple[str, ...]]]:
    """Return a function that yields the rows of all policies that decide on ``problem``."""

    def rows() -> Iterator[tuple[str, ...]]:
        for policy in discovery.policies(problem):
            settings = [each.name for each in fields(policy) if each.init] if is_dataclass(policy) else []
            options = ", ".join(f"`{name}`" for name in settings)
            yield f"`{policy.name}`", first_line(type(policy)), policy.source, claims(policy), options or "none"

    return rows


def backends() -> Iterator[tuple[str, ...]]:
    """Yield a row for each backend."""
    for name in discovery.names(discovery.BACKENDS):
        made = discovery.backend(name)
        able = ", ".join(sorted(each.value for each in made.capabilities))
        numbers = "floats" if made.number is float else "exact rationals"
        yield f"`{name}`", first_line(type(made)), numbers, able


def properties() -> Iterator[tuple[str, ...]]:
    """Yield a row for each property."""
    for each in discovery.properties():
        yield f"`{each.name}`", first_line(type(each)), f"`{each.definition}`", each.source


def datasets() -> Iterator[tuple[str, ...]]:
    """Yield a row for each data set."""
    for name in discovery.names(discovery.DATASETS):
        about = first_line(discovery.load(discovery.DATASETS, name)).removeprefix("Return ")
        yield f"`{name}`", about[:1].upper() + about[1:]


def workloads() -> Iterator[tuple[str, ...]]:
    """Yield a row for each generator of traces."""
    for name in discovery.names(discovery.WORKLOADS):
        made = discovery.workload(name)
        options = ", ".join(f"`{each.name}`" for each in fields(made) if is_dataclass(made))  # type: ignore[arg-type]
        yield f"`{name}`", first_line(type(made)), made.source, made.home and f"`@{made.home}`", options


POLICY = ("Name", "What it does", "Source", "What the source claims", "Options")
LISTS: Mapping[str, tuple[tuple[str, ...], Callable[[], Iterator[tuple[str, ...]]]]] = MappingProxyType(
    {
        "share-policies": (POLICY, policies(Market)),
        "round-policies": (POLICY, policies(Queue)),
        "schedule-policies": (POLICY, policies(Batch)),
        "backends": (("Name", "What it is", "Numbers", "Can"), backends),
        "properties": (("Name", "What it asks", "Definition", "Source"), properties),
        "datasets": (("Name", "What it is"), datasets),
        "workloads": (("Name", "What it draws", "Source", "Its own cluster", "Options"), workloads),
    }
)


class Installed(SphinxDirective):
    """A table of what is installed of one kind, one of ``LISTS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        heads, rows = LISTS[self.arguments[0]]
        found = list(rows())
        return [table(heads, found)] if found else [paragraph("None.")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("installed", Installed)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

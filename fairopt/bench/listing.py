"""What `fairopt bench list` says: the specifications that come with fairopt, and what is installed."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt import discovery
from fairopt.bench import configuring
from fairopt.bench.spec import Spec, shipped
from fairopt.errors import FairoptError


def specifications() -> Iterator[tuple[str, ...]]:
    """Yield (name, task, title) of each."""
    for name, text in shipped().items():
        spec = Spec.parse(text, f"{name}.toml")
        yield name, spec.task, spec.title


def summaries(group: str) -> Iterator[tuple[str, ...]]:
    """Yield (name, first line of its docstring) of each object of a group; of a broken one, what is wrong."""
    for name in discovery.names(group):
        try:
            yield name, (discovery.load(group, name).__doc__ or "").strip().partition("\n")[0]
        except FairoptError as error:
            yield name, str(error)


def contenders() -> Iterator[tuple[str, ...]]:
    """Yield (name, tasks, whether it can run here or why not) of each contender."""
    for name in discovery.names(discovery.CONTENDERS):
        try:
            contender = configuring.contender(name, {})
            yield name, ", ".join(contender.tasks), contender.missing() or "available"
        except FairoptError as error:
            yield name, "", str(error)

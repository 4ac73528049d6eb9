"""Contenders, tasks and families by name, with the settings that a specification gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from fairopt import discovery
from fairopt.bench.kinds import Contender, Family, Instance, Task
from fairopt.bench.records import InstanceKey
from fairopt.codec import decode
from fairopt.errors import BadInput, FairoptError


def task(name: str) -> Task:
    """Return the task of a name. Errors as `registered`."""
    made: Task = registered(discovery.TASKS, name, Task)()
    return made


def family(name: str) -> Family:
    """Return the family of instances of a name. Errors as `registered`."""
    made: Family = registered(discovery.FAMILIES, name, Family)()
    return made


def drawn(key: InstanceKey) -> Instance:
    """Return the instance again. Errors: `ValueError` where its content differs from that of the key."""
    instance = family(key.family).draw(key.seed, key.parameters)
    if key.digest and instance.digest != key.digest:
        raise ValueError(f"{key.name} has the digest {instance.digest} on this machine, and not {key.digest}")
    return instance


def contender(name: str, settings: Mapping[str, Any], place: str = "") -> Contender:
    """Return the contender of a name with settings as its fields. Errors as `registered`; `BadInput` for a setting."""
    found: type[Contender] = registered(discovery.CONTENDERS, name, Contender)
    where = place or f"{name}, settings"
    if is_dataclass(found):
        return decode(found, settings, where)
    if settings:
        raise BadInput(f"there is no setting {next(iter(settings))!r}", place=where, remedy="It has no settings")
    return found()


def registered(group: str, name: str, kind: Any) -> Any:
    """Return the class that is registered as ``name``, or that MODULE:NAME names.

    Errors: `BadInput` for an unknown name and what is no ``kind``; `NotInstalled` for what cannot be loaded.
    """
    found = discovery.named(name) if ":" in name else discovery.load(group, name)
    if not isinstance(found, type) or not issubclass(found, kind):
        raise BadInput(f"{name!r} is no {kind.__name__}", remedy="Name a class of that kind")
    return found


# -- what `fairopt bench list` says ------------------------------------------------------------------------------------
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
            made = contender(name, {})
            yield name, ", ".join(made.tasks), made.missing() or "available"
        except FairoptError as error:
            yield name, "", str(error)

"""Contenders, tasks and families by name, with the settings that a specification gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fairopt import discovery
from fairopt.errors import BadInput, NotInstalled
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Name the place in every `BadInput` that is raised inside and has none."""
    try:
        yield
    except BadInput as error:
        raise BadInput(
            error.problem, place=error.place or place, remedy=error.remedy, file=error.file
        ) from error.__cause__


def made(group: str, name: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    """Return an object of the class registered as ``name``, or that MODULE:NAME names, with settings as its fields.

    Errors: `BadInput` for a name that there is not, what is no ``kind``, and settings that cannot be; `NotInstalled`
    for what is registered and cannot be loaded.
    """
    if ":" in name:
        try:
            found = EntryPoint(name=name, value=name, group=group).load()
        except Exception as error:  # whatever the module raises, it is what was named that is at fault
            raise BadInput(f"{name!r} cannot be had: {error!r}", remedy="Check the module and the name") from error
    else:
        found = discovery.load(group, name)
    if not isinstance(found, type) or not issubclass(found, kind):
        raise BadInput(f"{name!r} is no {kind.__name__}", remedy="Name a class of that kind")
    return found(**settings_checked(found, settings, f"{name}, settings"))


def settings_checked(of: type, settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return settings in the types of the fields of a dataclass; `BadInput` where one is unknown or of another type."""
    options = {each.name: each for each in fields(of) if each.init} if is_dataclass(of) else {}
    hints = get_type_hints(of) if options else {}
    checked = {}
    for name, value in settings.items():
        if name not in options:
            raise BadInput(f"there is no setting {name!r}", place=place, remedy=nearest(name, options, "setting"))
        checked[name] = _typed(hints[name], value, f"{place}, key {name!r}")
    return checked


def _typed(hint: Any, value: Any, place: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        for kind in kinds[:-1]:
            try:
                return _typed(kind, value, place)
            except BadInput:
                continue
        return _typed(kinds[-1], value, place)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is Any or (hint in (int, str, bool) and type(value) is hint):
        return value
    if get_origin(hint) in (tuple, list) and isinstance(value, list):
        return tuple(value)
    raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give {getattr(hint, '__name__', hint)}")


def broken(group: str, name: str, kind: type) -> str | None:
    """Return why what is registered under a name cannot be had, None where it can."""
    try:
        made(group, name, kind, {})
    except (BadInput, NotInstalled) as error:
        return str(error)
    return None

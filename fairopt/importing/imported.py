"""What an importer returns: the problem, and what the file says that the problem has no place for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.program import Number


class Unplaced(NamedTuple):
    """What a file says and the problem has no place for: where, the value, and why that may matter."""

    place: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.value}: {self.why}"


class Imported(NamedTuple):
    """A problem of a file of another tool, and what it could not take over.

    ``declared``: what the file itself says that a rule computes, such as a queue's share in its status, by the name of
    the user or group and then by what it is; an audit computes it again. ``counted``: the same, as the objects of the
    file add up to it, where the problem does not hold what it takes.
    """

    problem: Any
    unplaced: tuple[Unplaced, ...] = ()
    declared: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    counted: Mapping[str, Mapping[str, Number]] = MappingProxyType({})


def read_with(importer: Callable[..., Any], paths: Sequence[AnyPath]) -> Imported:
    """Return what an importer makes of files, as `Imported` even where it returns only a problem.

    Errors: `BadInput` for more files than it takes; those of the importer.
    """
    parameters = inspect.signature(importer).parameters.values()
    most = sum(each.kind is not each.KEYWORD_ONLY and each.default is each.empty for each in parameters)
    if len(paths) != most and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        remedy = "Give it the files it takes; `fairopt import NAME FILE` takes one, unless the importer says otherwise"
        raise BadInput(f"{len(paths)} files", place="FILE", remedy=remedy)
    with naming(", ".join(map(str, paths))):
        found = importer(*paths)
    return found if isinstance(found, Imported) else Imported(found)

"""What an importer returns: the problem, and what the file says that the problem has no place for."""

from __future__ import annotations

from typing import Any, NamedTuple


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
    the user or group and then by what it is; an audit computes it again.
    """

    problem: Any
    unplaced: tuple[Unplaced, ...] = ()
    declared: dict[str, dict[str, Any]] = {}  # noqa: RUF012  a tuple's field has no factory; nobody changes it

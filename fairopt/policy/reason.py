"""`DecisionReason`: what a scheduler's own rule says of every user and group, and of every gang that waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairopt.problem import Gangs
from fairopt.program import Array, Number


@dataclass(frozen=True, eq=False)
class DecisionReason:
    """The evidence of a scheduler's rule: why its decision is what it is.

    * ``gangs``: the market's gangs as the rule leaves them: ``on`` says which run where.
    * ``unit`` says what ``share`` is: the value that the rule compares, for users and groups by name (a dominant
      share, a level fair-share).
    * ``stated``: values by the names that the scheduler's files have for them ("weightedShare"), and then by user or
      group, so that what a file states can be compared.
    * ``owed`` (N, k): what the rule owes each user and group of every GPU type, where it says so.
    * ``order``: names of users or gangs, in the order in which the rule went through them.
    * ``waits`` says by the name of a gang why it does not run, ``stopped`` why one that ran was stopped. The words name
      the user, the type, the limit and the numbers.

    >>> from fairopt.problem import Gangs
    >>> DecisionReason(Gangs.of([], [], users=[], types=["H100"]), "dominant share").waits
    {}
    """

    gangs: Gangs
    unit: str
    share: Mapping[str, Number] = field(default_factory=dict)
    stated: Mapping[str, Mapping[str, Number]] = field(default_factory=dict, kw_only=True)
    owed: Array | None = None
    order: tuple[str, ...] = ()
    waits: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)

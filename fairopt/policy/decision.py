"""What all decisions have in common: how long they took, and what a scheduler's own rule says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fairopt.backends import Backend, Method
from fairopt.backends.solution import Solution
from fairopt.problem import Gangs
from fairopt.program import Array, Number, Program


@dataclass(frozen=True)
class Seconds:
    """How long each part took: formulating programs, solving, making evidence exact.

    >>> Seconds(solve=0.5)
    Seconds(build=0.0, solve=0.5, certify=0.0)
    """

    build: float = 0.0
    solve: float = 0.0
    certify: float = 0.0


@dataclass(frozen=True, eq=False)
class Decision:
    """What a policy decided on a problem; `Allocation`, `Schedule` and `Plan` say what that is at each level.

    ``solver`` is who solved: a backend, or one of the policy's methods. ``asked`` says whether somebody asked for it,
    for exact numbers, a vertex or options; else the policy's best way decided, which may be another on another problem.
    ``solution`` is its answer to ``program``, None where none was formulated. ``evidence`` is further proof: trades,
    prices, levels. ``state`` is what the policy carries to the next decision.

    Errors: none of its own; asking for one may raise those of `fairopt.decide`. Source: the policy's.

    >>> from fairopt import allocate
    >>> from fairopt.datasets import oef_example
    >>> decision = allocate("max-min", oef_example(), "highs")
    >>> decision.policy, decision.backend, decision.method
    ('max-min', 'highs', None)
    """

    policy: str
    _: KW_ONLY
    solver: Backend | Method | None = None
    asked: bool = False
    program: Program | None = None
    solution: Solution | None = None
    evidence: Any = None
    state: Any = None
    seconds: Seconds = field(default_factory=Seconds)

    @property
    def method(self) -> Method | None:
        """The policy's own method that decided, None where a backend did."""
        return self.solver if isinstance(self.solver, Method) else None

    @property
    def backend(self) -> str:
        """The backend's name; "auto" where the policy's own method decided."""
        return "auto" if self.solver is None or isinstance(self.solver, Method) else self.solver.name


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

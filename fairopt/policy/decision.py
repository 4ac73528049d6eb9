"""What all decisions have in common, and how long they took."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fairopt.backends import Method, Solver
from fairopt.backends.solution import Solution
from fairopt.program import Program


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

    ``solver`` is who solved: a backend, or one of the policy's methods. ``solution`` is its answer to
    ``program``, None where none was formulated. ``evidence`` is further proof: trades, prices, levels. ``state``
    is what the policy carries to the next decision.

    Errors: none of its own; asking for one may raise those of `fairopt.decide`. Source: the policy's.

    >>> from fairopt import allocate
    >>> from fairopt.datasets import oef_example
    >>> decision = allocate("max-min", oef_example(), "highs")
    >>> decision.policy, decision.backend, decision.method
    ('max-min', 'highs', None)
    """

    policy: str
    _: KW_ONLY
    solver: Solver | Method | None = None
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

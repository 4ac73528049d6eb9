"""What every decision has in common, and where its time went."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fairopt.backends import Method, Solver
from fairopt.backends.solution import Solution
from fairopt.program import Program


@dataclass(frozen=True)
class Seconds:
    """Where the time went: writing programs down, inside the solver, making evidence exact."""

    build: float = 0.0
    solve: float = 0.0
    certify: float = 0.0


@dataclass(frozen=True, eq=False)
class Decision:
    """What a policy decided on a problem; `Allocation`, `Schedule` and `Plan` say what that is at each level.

    ``solver`` is who solved: a back end, or a method of the policy's. ``solution`` is its answer, and ``program`` what
    it answered where that was written down. ``evidence`` is what shows beyond them that the decision is right (trades,
    prices, levels), if anything. ``state`` is what the policy carries to the next decision.
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
        """The policy's own method that decided, None where a back end did."""
        return self.solver if isinstance(self.solver, Method) else None

    @property
    def backend(self) -> str:
        """The back end's name; "auto" where the policy's own method decided."""
        return "auto" if self.solver is None or isinstance(self.solver, Method) else self.solver.name

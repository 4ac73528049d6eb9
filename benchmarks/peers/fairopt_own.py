"""fairopt as one calls it: the algorithm made for the policy, proofs included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairopt import allocate, discovery
from fairopt.backends.solution import Status
from fairopt.benchmarks.peers.plain import Floats
from fairopt.errors import NotCapable, NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs
from fairopt.policy import Allocation, Policy
from fairopt.problem import Market


@dataclass(eq=False)
class _Asked:
    """A policy and a market; `Contender.solve` adds what was decided."""

    policy: Policy
    market: Market
    decision: Allocation | None = None


@dataclass(frozen=True)
class Fairopt(Contender):
    """``allocate(policy, market)`` with the policy of the task's name.

    There is nothing to build. The bounds that prove the answer are part of "solve", as no answer is given without
    them; "certify" only hands them over. There is no time limit to pass on: the harness stops it.
    """

    name = "fairopt"
    tasks = ("max-min", "oef-noncooperative", "oef-cooperative", "water-filling", "nash-welfare")
    libraries: ClassVar[Sequence[str]] = ("fairopt", "numpy")
    certifies = True

    def prepare(self, task: str, problem: Market) -> Market:
        """Load the policy, untimed, and return the market as it is."""
        discovery.policy(task)
        return problem

    def build(self, task: str, prepared: Market, *, time_limit: float, threads: int) -> _Asked:
        """Find the policy. Errors: `NotCapable` where it has no algorithm of its own."""
        policy = discovery.policy(task)
        if not policy.methods:
            raise NotCapable(f"{policy.name} has no method of its own: fairopt-highs is what `allocate` would take")
        return _Asked(policy, prepared)

    def solve(self, built: _Asked) -> Floats:
        """Decide."""
        built.decision = allocate(built.policy, built.market)
        return np.asarray(built.decision.shares.astype(float))

    def certify(self, built: _Asked, answer: Any) -> Any:
        """Return what the method proved while it solved."""
        return None if built.decision is None else built.decision.solution


@dataclass(frozen=True)
class FairoptGangs(Contender):
    """fairopt's algorithm for FFT's round: multipliers, then few deviations; the proof is part of "solve"."""

    name = "fairopt-gangs"
    tasks = ("fft-round",)
    libraries: ClassVar[Sequence[str]] = ("fairopt", "numpy", "highspy")

    def prepare(self, task: str, problem: GangAssignment) -> GangAssignment:
        """Import what solves small programs of deviations, and return the problem."""
        import highspy  # noqa: F401

        return problem

    def build(
        self, task: str, prepared: GangAssignment, *, time_limit: float, threads: int
    ) -> tuple[GangAssignment, float]:
        """Validate the arrays once more, as a caller would."""
        given = (prepared.cost, prepared.gangs, prepared.capacity, prepared.least, prepared.allowed)
        return GangAssignment(*given), time_limit

    def solve(self, built: tuple[GangAssignment, float]) -> NDArray[np.int64]:
        """Decide."""
        problem, time_limit = built
        solution = solve_gangs(problem, time_limit=time_limit)
        if solution.status is Status.LIMIT:
            raise OutOfTime("the assignment is not decided at the time limit")
        if solution.status is not Status.OPTIMAL or "type_of" not in solution.values:
            raise NotSolved(f"solve_gangs: {solution.status.value}")
        return solution.values["type_of"]

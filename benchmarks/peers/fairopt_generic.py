"""fairopt's policies through its generic backends: what one gets without an algorithm made for the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt import discovery
from fairopt.backends import Backend, Highs, Options
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.benchmarks.peers.plain import Floats
from fairopt.errors import NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.policy import Allocation, Formulated, Policy, decide
from fairopt.problem import Market
from fairopt.program import Program


@dataclass(frozen=True, eq=False)
class _AsWritten(Formulated):
    """A policy whose program has been written already, so that writing and solving can be timed apart."""

    written: Program
    name = "as-written"
    source = "the policy that wrote the program"

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program."""
        return self.written


@dataclass(eq=False)
class Asked:
    """Who decides what with which solver, and the policy that was asked for; `Contender.solve` adds the decision."""

    decides: Policy
    policy: Policy
    market: Market
    solver: Backend
    options: Options
    decision: Allocation | None = None

    def decide(self) -> Floats:
        """Return the shares in floats. Errors: `OutOfTime`, `NotSolved`."""
        try:
            self.decision = decide(self.decides, self.market, self.solver, options=self.options)
        except NotSolved as error:
            if error.solution is not None and error.solution.status is Status.LIMIT:
                raise OutOfTime(str(error)) from error
            raise
        return np.asarray(self.decision.shares.astype(float))


class Generic(Contender):
    """A policy, found by the task's name, with one backend.

    "build" is writing the program down. Water filling writes one a round: that is part of its "solve".
    """

    backend: ClassVar[type[Backend]]

    def options(self, time_limit: float, threads: int) -> Options:
        """Return what the backend is told."""
        return Options(time_limit=time_limit, threads=threads)

    def prepare(self, task: str, problem: Market) -> Market:
        """Return the market in the backend's numbers, with the policy and its libraries loaded."""
        discovery.policy(task)
        return problem.as_(self.backend.number)

    def build(self, task: str, prepared: Market, *, time_limit: float, threads: int) -> Asked:
        """Formulate the program, where the policy decides by a single one."""
        policy = discovery.policy(task)
        how = self.backend(), self.options(time_limit, threads)
        if isinstance(policy, Formulated) and type(policy).decide is Formulated.decide:
            written = policy.formulate(prepared, policy.start(prepared))
            return Asked(_AsWritten(written), policy, prepared, *how)
        return Asked(policy, policy, prepared, *how)

    def solve(self, built: Asked) -> Floats:
        """Solve the program and check the answer, as `fairopt.allocate` does."""
        return built.decide()


@dataclass(frozen=True)
class FairoptHighs(Generic):
    """The plain program of a policy by fairopt's HiGHS backend, which also scales rows and checks the answer."""

    name = "fairopt-highs"
    tasks = ("max-min", "oef-noncooperative", "oef-cooperative", "water-filling")
    libraries: ClassVar[Sequence[str]] = ("fairopt", "highspy")
    backend = Highs


@dataclass(frozen=True)
class FairoptExact(Generic):
    """The plain program of a policy in fractions, with a certificate; it takes neither a time limit nor threads.

    "certify" is collecting the evidence; that it is right has been proven in "solve".
    """

    name = "fairopt-exact"
    tasks = ("max-min", "oef-noncooperative", "oef-cooperative", "water-filling")
    libraries: ClassVar[Sequence[str]] = ("fairopt", "highspy", "python-flint")
    certifies = True
    backend = Exact

    def options(self, time_limit: float, threads: int) -> Options:
        """Return nothing: the backend has no options."""
        return Options()

    def certify(self, built: Asked, answer: Any) -> Any:
        """Return the certificate of the decision."""
        return None if built.decision is None else built.policy.certify(built.decision)

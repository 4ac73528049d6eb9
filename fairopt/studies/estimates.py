"""Policies that see estimates of the jobs' work with errors, while the jobs take what they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from fairopt.backends import Session
from fairopt.policy import Policy, Schedule
from fairopt.problem import Queue


class ErrorKind(Enum):
    """How the factor of a job's estimate is distributed, ``size`` being x."""

    UNIFORM = "uniform"  # even, from 1 - x to 1 + x
    OVER = "over"  # 1 + x, always
    UNDER = "under"  # 1 - x, always
    EITHER = "either"  # 1 + x or 1 - x, each for half of the jobs
    LOGNORMAL = "lognormal"  # e to the power of a normal variable of deviation x


@dataclass(frozen=True)
class EstimationError:
    """How wrong the work of jobs is estimated: ``size`` 0.3 is 30%; 0 leaves everything as it is."""

    label: str = ""
    size: float = 0.0
    kind: ErrorKind = ErrorKind.UNIFORM

    def factor(self, seed: int, job: str) -> float:
        """Return what a job's estimate is of its work; it depends on the seed and the job's name, and on no policy."""
        random, x = np.random.default_rng([seed, *job.encode()]), self.size
        if self.kind is ErrorKind.LOGNORMAL:
            return float(np.exp(x * random.standard_normal()))
        ranges = {
            ErrorKind.UNIFORM: x * random.uniform(-1, 1),
            ErrorKind.OVER: x,
            ErrorKind.UNDER: -x,
            ErrorKind.EITHER: x * random.choice((-1, 1)),
        }
        return float(1 + ranges[self.kind])


class Misjudging(Policy):
    """A policy of rounds that decides on estimates: work, and what is left of it, are the truth times a job's factor.

    So the relative error of a job stays as it is until the job is done, and none looks done before it is.
    """

    problem: ClassVar[type] = Queue

    def __init__(self, policy: Policy, error: EstimationError, seed: int) -> None:
        self._policy, self._error, self._seed = policy, error, seed
        # what is asked of a policy's class
        self.name, self.source, self.traits = policy.name, policy.source, policy.traits  # type: ignore[misc]
        self.states, self.methods, self.needs = policy.states, policy.methods, policy.needs  # type: ignore[misc]

    @property
    def solver_options(self) -> Any:
        """Those of the policy."""
        return self._policy.solver_options

    def start(self, problem: Queue) -> Any:
        """Return the policy's own first state."""
        return self._policy.start(self._estimated(problem))

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Return what the policy decides on the queue as it is estimated, as a schedule of the true one."""
        decided = self._policy.decide(self._estimated(problem), state, solve)
        assert isinstance(decided, Schedule)
        return replace(decided, queue=problem)

    def _estimated(self, queue: Queue) -> Queue:
        factors = np.array([_factor(self._error, self._seed, name) for name in queue.jobs.names], dtype=float)
        jobs = replace(queue.jobs, work=queue.jobs.work * factors)
        return replace(queue, jobs=jobs, remaining=queue.remaining * factors)


@lru_cache(maxsize=1_000_000)
def _factor(error: EstimationError, seed: int, job: str) -> float:
    return error.factor(seed, job)

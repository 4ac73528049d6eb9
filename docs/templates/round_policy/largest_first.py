"""A policy of rounds: it says who runs where until the next round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairopt.backends import Session
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem import Queue
from fairopt.simulation import Consolidated, Placement, choose, placed


@dataclass(frozen=True)
class LargestFirst(Policy):
    """Each round, jobs in order of the GPUs that they need, the most first; ties keep the order of arrival.

    Source: the paper, venue, year, its section.
    """

    problem = Queue
    name = "largest-first"
    source = "Example of a policy of rounds"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING})
    placement: Placement = field(default_factory=Consolidated)  # each option is a field with a default

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Order the jobs, give each a type with room, and find hosts for them."""
        order = sorted(range(len(problem)), key=lambda row: (-problem.jobs.gpus[row], row))
        return Schedule(self.name, problem, placed(problem, choose(problem, order), self.placement))

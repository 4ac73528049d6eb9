"""SRTF: the job with the shortest remaining time runs first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import fastest, ordered, stands_while_ahead
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY, Array
from fairopt.simulation import Consolidated, Placement, choose, placed


@dataclass(frozen=True)
class ShortestRemainingTimeFirst(Policy):
    """Each round, jobs in order of their remaining time on the fastest type that can hold them.

    A job takes the fastest type with room; the cost of moving is ignored.

    Source: FFT Sec. 2.2, Fig. 2(a) (the order that ignores what a migration costs).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(ShortestRemainingTimeFirst(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of srtf, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "srtf"
    source = "FFT, ICS 2025, Sec. 2.2"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING, Trait.EVENTS})
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Order by remaining time and place; see `Policy.decide`."""
        speed = fastest(problem)
        rows = np.flatnonzero(speed > 0)
        left = problem.remaining[rows] / speed[rows]
        requests = choose(problem, rows[ordered(range(len(rows)), left)])
        stands = stands_while_ahead(problem, requests, self.placement)
        placements = placed(problem, requests, self.placement)
        settled = len(placements) == np.count_nonzero(problem.can)
        newcomers = longest_last if type(self.placement) is Consolidated else None
        return Schedule(self.name, problem, placements, stands=stands, settled=settled, newcomers=newcomers)


def longest_last(queue: Queue) -> Array:
    """Return each job's remaining time (n,) on the fastest type that can hold it; infinity if none can."""
    speed = fastest(queue)
    some = speed > 0
    times = np.full_like(queue.remaining, INFINITY)
    times[some] = queue.remaining[some] / speed[some]
    return times

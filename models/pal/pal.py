"""PAL: least attained service first, every job placed anew each round, on GPUs that are fast for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.models.pal.placement import VariabilityAware
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.queue import Queue, Spots
from fairopt.simulation import Request
from fairopt.simulation.placement import take


@dataclass(frozen=True)
class PAL(Policy):
    """Each round jobs in order of attained GPU-time, each on the free GPUs that its placement likes best.

    All jobs are placed anew: a job that ran moves where better GPUs are free, whatever moving costs.

    * ``by_remaining``: order by remaining time instead, as on the host that is best for the job. PAL is a placement for
      any order; its source shows it with FIFO, least attained service and shortest remaining time.
    * ``skip``: whether a job that does not fit is passed over; else nobody overtakes it, as in the source's code.
    * ``placement``: the placement, with its factor for locality.

    Source: PAL, SC 2024; its code, blox-pal/placement/pal.py, `place`; FFT Sec. 6.1.4.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(PAL(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of pal, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "pal"
    source = "PAL, SC 2024"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.NAMELESS})
    by_remaining: bool = False
    skip: bool = False
    placement: VariabilityAware = field(default_factory=VariabilityAware)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Order the jobs and place one after the other; see `Policy.decide`."""
        best = np.where(problem.suits, problem.jobs.throughput, 0).max(axis=1)
        order = sorted(
            (row for row in problem.able if row not in problem.leased),
            key=lambda row: (problem.remaining[row] / best[row] if self.by_remaining else problem.attained[row], row),
        )
        placements: dict[int, Spots] = dict(problem.leased)
        left = problem.free(placements)
        for row in order:
            gpu_types = tuple(np.flatnonzero(problem.suits[row]).tolist())
            spots = self.placement.spots(problem, Request(row, gpu_types), left)
            if spots:
                take(left, spots)
                placements[row] = spots
            elif not self.skip:
                break
        return Schedule(self.name, problem, placements)

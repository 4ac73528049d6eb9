"""SRTF: who is done soonest runs first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairopt.errors import NotCapable
from fairopt.models.common.job_times import fastest
from fairopt.policy import Solve
from fairopt.problem.queue import Queue
from fairopt.simulation import Consolidated, Placement, RoundPolicy, RoundTrait, Schedule, choose, placed


@dataclass(frozen=True)
class ShortestRemainingTimeFirst(RoundPolicy):
    """Each round, jobs in order of the time that they have left on the type that is the fastest to hold them.

    A job takes the fastest type with room; moving costs what it costs and does not enter the choice.

    Source: FFT Sec. 2.2, Fig. 2(a) (the order that ignores what a migration costs).
    """

    name = "srtf"
    source = "FFT, ICS 2025, Sec. 2.2"
    traits = frozenset({RoundTrait.EXACT, RoundTrait.ONE_TYPE, RoundTrait.NAMELESS, RoundTrait.WORK_CONSERVING})
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Any, solve: Solve | None) -> Schedule:
        """Order by remaining time and place; see `RoundPolicy.decide`."""
        if solve is not None:
            raise NotCapable(f"{self.name} is an algorithm of its own; it has no program for {solve.backend.name}")
        speed = fastest(problem)
        rows = [row for row in range(len(problem)) if speed[row] > 0]
        order = sorted(rows, key=lambda row: (problem.remaining[row] / speed[row], row))
        return Schedule(self.name, problem, placed(problem, choose(problem, order), self.placement))

"""FIFO: jobs in the order of arrival, never stopped, and nobody overtakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairopt.backends import Session
from fairopt.models.common.schedulers import Room, by_arrival, non_preemptive
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.program import INFINITY
from fairopt.simulation import Consolidated, Placement, placed


@dataclass(frozen=True)
class FirstInFirstOut(Policy):
    """Jobs start in the order of arrival, on the fastest type with room; the first that finds none blocks all others.

    A job that runs is never stopped. Jobs that no working hosts could hold, even if they were free, block nobody.

    Source: Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995 (first come, first served, before backfilling).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(FirstInFirstOut(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of fifo, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "fifo"
    source = "Lifka, JSSPP 1995"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.RUNS_TO_COMPLETION, Trait.EVENTS})
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Keep running jobs, and start the first of those that wait; see `Policy.decide`."""
        queue = non_preemptive(problem)
        room = Room(queue)
        waiting = [row for row in queue.able if row not in queue.leased]
        started = next((at for at, row in enumerate(waiting) if not room.start(row)), len(waiting))
        same = not self.overtake(queue, waiting[started:], room)
        placements = placed(queue, room.requests, self.placement)
        # who does not fit finds no more room in the next round, unless a placement left out who was to start
        same = same and len(placements) == len(queue.leased) + len(room.requests)
        settled = same and len(placements) == len(queue.able)
        stands, newcomers = INFINITY if same else None, by_arrival if type(self.placement) is Consolidated else None
        return Schedule(self.name, problem, placements, stands=stands, settled=settled, newcomers=newcomers)

    def overtake(self, queue: Queue, waiting: Sequence[int], room: Room) -> bool:
        """Start jobs behind the first of ``waiting``, which finds no room; return whether time may let others start."""
        return False

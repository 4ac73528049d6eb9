"""A policy of schedules: it says of all jobs of a batch which of them run, where and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairopt.backends import Session
from fairopt.policy import Plan, Policy
from fairopt.problem.batch import Batch, JobSchedule


@dataclass(frozen=True)
class OneByOne(Policy):
    """One job after the other, in order of arrival, on one worker and one PS of the first server that has both.

    Source: the paper, venue, year, its algorithm.
    """

    problem = Batch
    name = "one-by-one"
    source = "Example of a policy of schedules"

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Return a plan in which each job begins when the one before it is done."""
        place = self._place(problem)
        if place is None:
            return Plan(self.name, batch=problem, schedules=())  # no job can run
        server, worker, ps = place
        schedules, last = [], 0
        for job in sorted(range(len(problem.jobs)), key=lambda job: (problem.jobs.arrival[job], job)):
            first = max(last, int(problem.jobs.arrival[job])) + 1  # slot t is the interval (t - 1, t]
            last = first + problem.duration(job, 1, True, worker, ps) - 1
            schedules.append(JobSchedule(job, first, last, ((server, 1),), ((server, 1),), worker, ps))
        return Plan(self.name, batch=problem, schedules=tuple(schedules))

    def _place(self, problem: Batch) -> tuple[int, int, int] | None:
        """Return the first server with a worker and a PS, and their types; None where there is none."""
        for server, (workers, ps) in enumerate(zip(problem.workers, problem.ps, strict=True)):
            if workers.any() and ps.any():
                return server, int(workers.argmax()), int(ps.argmax())
        return None

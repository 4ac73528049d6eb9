"""First come, first served with shares: each job as soon as it fits into its tenant's own share, without prices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.errors import BadInput, NotCapable
from fairopt.models.posted_prices_fast import Fast
from fairopt.models.posted_prices_reference import Search
from fairopt.models.posted_prices_round import RoundState
from fairopt.policy import Seconds, Solve
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.problem.utilities import Linear
from fairopt.schedules import Admission, Plan, SchedulePolicy


@dataclass(frozen=True)
class FirstComeFirstServed(SchedulePolicy):
    """Jobs in order of arrival, each where it completes first within its tenant's own share; nothing is taken back.

    ``shared`` lets a job use whatever is free in the cluster. ``horizon``: slots to look ahead from the last arrival;
    None for as many as all jobs take one after the other, on one worker each. A job that fits nowhere does not run.

    Source: Astraea (posted prices) Sec. 5.1 compares with it in kind; static shares as YARN has them.
    """

    name = "fcfs"
    source = "first come, first served within static shares"
    shared: bool = False
    horizon: int | None = None
    search: Search = field(default_factory=Fast)

    def __post_init__(self) -> None:
        if self.horizon is not None and (not isinstance(self.horizon, int) or self.horizon < 1):
            raise BadInput(f"got {self.horizon!r}", place=f"{self.name}, horizon", remedy="Give a whole number from 1")

    def decide(self, problem: Batch, state: Any, solve: Solve | None) -> Plan:
        """Place jobs one after the other; see `SchedulePolicy.decide`."""
        if solve is not None:
            raise NotCapable(f"{self.name} is an algorithm of its own; it has no program for {solve.backend.name}")
        begun = perf_counter()
        jobs = problem.jobs
        # what counts is completion alone: each slot costs 1, and prices with base 1 are 0
        hasty = replace(problem, jobs=replace(jobs, utility=(Linear(Fraction(-1), Fraction(0)),) * len(jobs)))
        last = int(jobs.arrival.max(initial=0)) + (self.horizon or longest(problem))
        servers = problem.servers
        table = RoundState.fresh(hasty, 0, last, np.ones(len(servers.worker_types)), np.ones(len(servers.ps_types)))
        if self.shared:
            table.share()
        schedules: list[JobSchedule] = []
        admissions: list[Admission] = []
        for job in sorted(range(len(jobs)), key=lambda job: (jobs.arrival[job], job)):
            best = self.search.best(table.after(int(jobs.arrival[job])), job)
            if best is not None:
                table.admit(best.schedule)
                schedules.append(best.schedule)
            schedule = None if best is None else best.schedule
            worth = Fraction(0) if best is None else jobs.utility[job].value(Fraction(best.schedule.last))
            admissions.append(Admission(job, 1, 1, not self.shared, schedule, 0.0, 0.0, worth, 0, best is not None))
        return Plan(
            policy=self.name,
            batch=problem,
            schedules=tuple(schedules),
            admissions=tuple(admissions),
            seconds=Seconds(solve=perf_counter() - begun),
        )


def longest(problem: Batch) -> int:
    """Return the slots that all jobs take one after the other, each on one worker away from its PS."""
    return sum(problem.duration(job, 1, together=False) for job in range(len(problem.jobs)))

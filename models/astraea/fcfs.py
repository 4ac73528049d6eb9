"""First come, first served with shares: each job as soon as it fits into its tenant's own share, without prices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.models.astraea.fast_search import Fast
from fairopt.models.astraea.reference import Best, ScheduleSearch
from fairopt.models.astraea.round_state import RoundState
from fairopt.models.common.schedulers import check_whole
from fairopt.policy import Admission, Plan, Policy, Seconds, Trait
from fairopt.problem.batch import MOST_SLOTS, Batch, JobSchedule
from fairopt.problem.utilities import Linear

#: The first number of slots in which to look for a place for a job.
LOOK = 64


@dataclass(frozen=True)
class FirstComeFirstServed(Policy):
    """Jobs in order of arrival, each where it completes first within its tenant's own share, never revised.

    ``shared`` lets a job use everything that is free in the cluster. ``horizon`` is the number of slots to look ahead
    from the last arrival; None means as many as needed, since a job that fits at all fits behind all others. A job that
    fits nowhere does not run.

    Source: Astraea (posted prices) Sec. 5.1 compares with it in kind; static shares as YARN has them.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> decide(FirstComeFirstServed(), astraea_example())
    <Plan: fcfs on <Batch: 4 jobs of 2 tenants on 4 servers>: 4 of 4 jobs run>
    """

    problem = Batch
    name = "fcfs"
    source = "first come, first served within static shares"
    traits = frozenset({Trait.NAMELESS})
    shared: bool = False
    horizon: int | None = None
    search: ScheduleSearch = field(default_factory=Fast)

    def __post_init__(self) -> None:
        check_whole(self, 1, "horizon")

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Place jobs one after the other; see `Policy.decide`."""
        begun = perf_counter()
        jobs = problem.jobs
        # only completion counts: each slot costs 1, and prices with base 1 are 0
        hasty = replace(problem, jobs=replace(jobs, utility=(Linear(Fraction(-1), Fraction(0)),) * len(jobs)))
        table = Table(hasty, self.shared)
        end = None if self.horizon is None else int(jobs.arrival.max(initial=0)) + self.horizon
        admissions: list[Admission] = []
        for job in sorted(range(len(jobs)), key=lambda job: (jobs.arrival[job], job)):
            best = self._first(table, job, end)
            if best is not None:
                table.admit(best.schedule)
            schedule = None if best is None else best.schedule
            worth = Fraction(0) if schedule is None else jobs.utility[job].value(Fraction(schedule.last))
            admissions.append(Admission(job, 1, 1, not self.shared, schedule, 0.0, 0.0, worth, 0, best is not None))
        return Plan.of_admissions(self.name, problem, admissions, seconds=Seconds(solve=perf_counter() - begun))

    def _first(self, table: Table, job: int, end: int | None) -> Best | None:
        """Return where a job completes first. The window doubles until a place is found; a wider one has no better."""
        arrival, look = int(table.batch.jobs.arrival[job]), LOOK
        most = max(arrival, table.used) + longest(table.batch, job) if end is None else end
        while True:
            until = min(arrival + look, most)
            if until > MOST_SLOTS or (most > MOST_SLOTS and arrival + shortest(table.batch, job) > MOST_SLOTS):
                raise BadInput(
                    f"it does not complete by slot {MOST_SLOTS}",
                    place=f"{self.name}, job {table.batch.jobs.names[job]!r}",
                    remedy="Give longer slots, less work, or a horizon that ends before",
                )
            best = self.search.best(table.between(arrival, until), job)
            if best is not None or until == most:
                return best
            look *= 2


class Table:
    """The state of all slots from the first to the last that was needed so far; it grows on demand."""

    def __init__(self, batch: Batch, shared: bool) -> None:
        self.batch, self.shared, self.used = batch, shared, 0
        self.state = self._fresh(LOOK)

    def between(self, first: int, last: int) -> RoundState:
        """Return the state of the slots after ``first`` up to ``last``: a view of the table."""
        if last > self.state.slots:
            old, self.state = self.state, self._fresh(max(last, 2 * self.state.slots))
            for new, before in ((self.state.workers, old.workers), (self.state.ps, old.ps)):
                new.free[..., : old.slots], new.own[..., : old.slots] = before.free, before.own
                new.pool[..., : old.slots] = before.pool
        return self.state.between(first, last)

    def admit(self, schedule: JobSchedule) -> None:
        """Take the resources of a schedule."""
        self.state.admit(schedule)
        self.used = max(self.used, schedule.last)

    def _fresh(self, slots: int) -> RoundState:
        servers = self.batch.servers
        free = np.ones(len(servers.worker_types)), np.ones(len(servers.ps_types))
        state = RoundState.fresh(self.batch, 0, slots, *free)
        if self.shared:
            state.share()
        return state


def longest(problem: Batch, job: int) -> int:
    """Return the most slots that a job can take: on one worker away from its PS, of the slowest types."""
    return max(problem.duration(job, 1, False, *types) for types in problem.servers.pairs)


def shortest(problem: Batch, job: int) -> int:
    """Return the fewest slots that a job can take: a worker for each chunk, on one server, of the fastest types."""
    return min(problem.duration(job, int(problem.jobs.chunks[job]), True, *types) for types in problem.servers.pairs)

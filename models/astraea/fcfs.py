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
from fairopt.models.astraea.reference import Reference
from fairopt.models.astraea.round_state import RoundState
from fairopt.policy import Admission, Plan, Policy, Seconds, Trait
from fairopt.problem.batch import MOST_SLOTS, Batch, JobSchedule
from fairopt.problem.numbers import within
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
    horizon: int | None = within(None, least=1)
    search: Reference = field(default_factory=Fast)

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Place jobs one after the other; see `Policy.decide`."""
        begun = perf_counter()
        jobs = problem.jobs
        # only completion counts: each slot costs 1, and prices with base 1 are 0
        hasty = replace(problem, jobs=replace(jobs, utility=(Linear(Fraction(-1), Fraction(0)),) * len(jobs)))
        used = 0
        free = np.ones(len(problem.worker_types)), np.ones(len(problem.ps_types))
        state = RoundState.fresh(hasty, 0, LOOK, *free)
        if self.shared:
            state.share()
        end = None if self.horizon is None else int(jobs.arrival.max(initial=0)) + self.horizon
        admissions: list[Admission] = []
        for job in sorted(range(len(jobs)), key=lambda job: (jobs.arrival[job], job)):
            schedule, state = self._first(state, job, end, used)
            if schedule is not None:
                state.admit(schedule)
                used = max(used, schedule.last)
            worth = Fraction(0) if schedule is None else jobs.utility[job].value(Fraction(schedule.last))
            admissions.append(Admission(job, 1, 1, not self.shared, schedule, 0.0, 0.0, worth, 0, schedule is not None))
        return Plan.of_admissions(self.name, problem, admissions, seconds=Seconds(solve=perf_counter() - begun))

    def _first(self, state: RoundState, job: int, end: int | None, used: int) -> tuple[JobSchedule | None, RoundState]:
        """Return where a job completes first, and the state, with more slots where that took them.

        The window doubles until a place is found; a wider one has no better. ``used``: the last slot in use.
        """
        batch, arrival, look = state.batch, int(state.batch.jobs.arrival[job]), LOOK
        most = max(arrival, used) + longest(batch, job) if end is None else end
        while True:
            until = min(arrival + look, most)
            if until > MOST_SLOTS or (most > MOST_SLOTS and arrival + shortest(batch, job) > MOST_SLOTS):
                raise BadInput(
                    f"it does not complete by slot {MOST_SLOTS}",
                    place=f"{self.name}, job {batch.jobs.names[job]!r}",
                    remedy="Give longer slots, less work, or a horizon that ends before",
                )
            if until > state.slots:
                state = state.longer(max(until, 2 * state.slots), shared=self.shared)
            schedule = self.search.best(state.between(arrival, until), job).schedule
            if schedule is not None or until == most:
                return schedule, state
            look *= 2


def longest(problem: Batch, job: int) -> int:
    """Return the most slots that a job can take: on one worker away from its PS, of the slowest types."""
    return max(problem.duration(job, 1, False, *types) for types in problem.pairs)


def shortest(problem: Batch, job: int) -> int:
    """Return the fewest slots that a job can take: a worker for each chunk, on one server, of the fastest types."""
    return min(problem.duration(job, int(problem.jobs.chunks[job]), True, *types) for types in problem.pairs)

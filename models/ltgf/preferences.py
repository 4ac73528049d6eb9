"""Which jobs of a tenant ASTRAEA may prefer before it looks at fairness: new ones, long ones, urgent ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairopt.errors import require
from fairopt.problem.queue import Queue
from fairopt.program import Number


class Preference(Protocol):
    """A reason to select one job of a tenant before another; it does not change the order of tenants."""

    def rank(self, queue: Queue, row: int, term: Number) -> Number:
        """Return a job's rank; a larger one is selected earlier. ``term`` is the length of a lease."""


@dataclass(frozen=True)
class NewJobsFirst:
    """Jobs that never ran go first: most jobs are short and complete soon.

    Algorithm 2 already puts them first, since their rho is 0 and that of jobs that ran is larger. So this preference
    matters only together with others.

    Source: ASTRAEA Sec. 5.2.1 (1), 6.1.1.
    """

    def rank(self, queue: Queue, row: int, term: Number) -> Number:
        """Return 1 for a job that never ran, else 0."""
        return int(queue.started[row] is None)


@dataclass(frozen=True)
class RenewLongJobs:
    """A running job that has had at least ``terms`` leases' worth of time goes first, so that it is not preempted.

    Source: ASTRAEA Sec. 5.2.1 (2), which gives no number of terms.
    """

    terms: int = 4

    def __post_init__(self) -> None:
        require(self.terms >= 1, self.terms, "preference, terms", "Give a number of leases, at least 1")

    def rank(self, queue: Queue, row: int, term: Number) -> Number:
        """Return 1 for a long job whose lease may be renewed, else 0."""
        had = queue.attained[row] / int(queue.jobs.gpus[row])
        return int(bool(queue.running[row]) and had >= self.terms * term)


@dataclass(frozen=True)
class UrgentFirst:
    """Jobs in the order of the priority that users gave them. Source: ASTRAEA Sec. 5.2.1 (3)."""

    def rank(self, queue: Queue, row: int, term: Number) -> Number:
        """Return the job's priority."""
        return int(queue.jobs.priority[row])

"""Which jobs of a tenant ASTRAEA may prefer before it looks at fairness: new ones, long ones, urgent ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairopt.errors import BadInput
from fairopt.problem.queue import Queue
from fairopt.program import Number


class Preference(Protocol):
    """A reason to select one job of a tenant before another; who is ahead among tenants stays as it is."""

    def rank(self, queue: Queue, row: int, term: Number) -> Number:
        """Return how much a job is preferred, the larger the earlier; ``term`` is the length of a lease."""
        ...


@dataclass(frozen=True)
class NewJobsFirst:
    """Jobs that never ran go first: most jobs are short, and are done at once.

    Algorithm 2 puts them first by itself, since their rho is 0 and that of jobs that ran is more: alone, this changes
    nothing; it does beside other preferences.

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
        if self.terms < 1:
            raise BadInput(f"got {self.terms}", place="preference, terms", remedy="Give a number of leases, at least 1")

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

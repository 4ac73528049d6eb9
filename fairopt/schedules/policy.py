"""What a policy of schedules is, and what it decides on a batch: who runs where and when, and who pays whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from fairopt.backends.solution import Solution
from fairopt.policy import Claim, Seconds, Solve
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Number, Program


@dataclass(frozen=True)
class Admission:
    """One decision on one job, in the order in which they were made; the trace that evidence is made of.

    ``interval``, ``round`` and ``own``: when (l, i, and whether only the tenant's own share was offered). ``schedule``:
    the best that was found, None where nothing fits. ``worker_cost`` and ``ps_cost``: at posted prices. ``utility``:
    that of completing there, ``origin`` the slot that it counts from. ``admitted``: whether the gain is positive.
    """

    job: int
    interval: int
    round: int
    own: bool
    schedule: JobSchedule | None
    worker_cost: Number
    ps_cost: Number
    utility: Number
    origin: int
    admitted: bool

    @property
    def gain(self) -> Number:
        """Utility minus cost (mu_j)."""
        return self.utility - self.worker_cost - self.ps_cost


@dataclass(frozen=True)
class Payment:
    """What a job pays for one slot, and to whom: ``incomes`` (U,) adds up to ``workers`` + ``ps`` exactly."""

    job: int
    slot: int
    workers: Fraction
    ps: Fraction
    incomes: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a policy decided on a batch: the schedules of the jobs that run, and what led to them.

    ``schedules``: one `JobSchedule` for each job that runs. ``admissions``: every decision in order. ``payments``: what
    jobs pay for resources beyond their tenant's own share. ``evidence``: what else shows that the plan is right, and
    ``proven``: what is known of it, in words.
    """

    policy: str
    batch: Batch
    schedules: tuple[JobSchedule, ...]
    admissions: tuple[Admission, ...] = ()
    payments: tuple[Payment, ...] = ()
    backend: str = "auto"
    program: Program | None = None
    solution: Solution | None = None
    evidence: Any = None
    proven: str = ""
    seconds: Seconds = field(default_factory=Seconds)

    @cached_property
    def unscheduled(self) -> tuple[int, ...]:
        """The jobs that do not run."""
        run = {each.job for each in self.schedules}
        return tuple(job for job in range(len(self.batch.jobs)) if job not in run)

    @cached_property
    def utilities(self) -> dict[int, Number]:
        """For each job that runs, its utility, counted from its arrival: f(t+ - r)."""
        jobs = self.batch.jobs
        return {
            each.job: jobs.utility[each.job].value(Fraction(each.last - int(jobs.arrival[each.job])))
            for each in self.schedules
        }

    @property
    def revenue(self) -> Number:
        """The total utility of the jobs that run: objective (3)."""
        return sum(self.utilities.values(), start=Fraction(0))

    @cached_property
    def gains(self) -> tuple[Number, ...]:
        """What each tenant ends up with (U,): its jobs' utilities, minus what they pay, plus its incomes (Sec. 3.2)."""
        jobs = self.batch.jobs
        total: list[Number] = [Fraction(0)] * len(self.batch.tenants)
        for job, utility in self.utilities.items():
            total[jobs.tenant[job]] += utility
        for payment in self.payments:
            total[jobs.tenant[payment.job]] -= payment.workers + payment.ps
            for tenant, income in enumerate(payment.incomes):
                total[tenant] += income
        return tuple(total)


class SchedulePolicy(ABC):
    """A rule that says, batch by batch, which jobs run where and when; its options are fields of a frozen dataclass."""

    name: ClassVar[str]
    source: ClassVar[str]
    claims: ClassVar[tuple[Claim, ...]] = ()
    #: Whether `decide` can do without a solver; it is then called with ``solve=None`` by default.
    own_algorithm: ClassVar[bool] = True

    def start(self, problem: Batch) -> Any:
        """Return the state before the first batch; a policy without memory has none."""
        return None

    @abstractmethod
    def decide(self, problem: Batch, state: Any, solve: Solve | None) -> Plan:
        """Return the plan for ``problem``; ``solve`` None asks for the policy's own algorithm.

        Errors: `NotSolved`, `NotCapable` (a back end was named, and there is no program for it), `NotInstalled`.
        """

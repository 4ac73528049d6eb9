"""What a policy of schedules decides on a batch: who runs where and when, and who pays whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from fairopt.numbers import counted
from fairopt.policy.decision import Decision
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Number
from fairopt.report import Grid, Tabular


@dataclass(frozen=True)
class Admission:
    """One decision on one job, or what a search proposes for it.

    ``interval``, ``round`` and ``own`` say when: l, i, and whether only the tenant's own share was offered; a search
    does not know them. ``schedule`` is the best that was found, None where nothing fits, with its costs at posted
    prices and the ``utility`` of its completion; ``origin`` is the slot from which time is counted. ``admitted``:
    whether the gain is positive, once that is decided.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> first = decide("posted-prices", astraea_example()).admissions[0]
    >>> first.job, first.admitted
    (0, True)
    """

    job: int
    interval: int = 0
    round: int = 0
    own: bool = False
    schedule: JobSchedule | None = None
    worker_cost: Number = 0.0
    ps_cost: Number = 0.0
    utility: Number = Fraction(0)
    origin: int = 0
    admitted: bool = False

    @property
    def gain(self) -> Number:
        """Utility minus cost (mu_j)."""
        return self.utility - self.worker_cost - self.ps_cost


@dataclass(frozen=True)
class Payment:
    """What a job pays for one slot, and to whom: ``incomes`` (U,) sum to ``workers`` + ``ps`` exactly.

    >>> Payment(job=0, slot=1, workers=Fraction(1, 2), ps=Fraction(1, 4), incomes=(Fraction(3, 4), Fraction(0)))
    Payment(job=0, slot=1, workers=Fraction(1, 2), ps=Fraction(1, 4), incomes=(Fraction(3, 4), Fraction(0, 1)))
    """

    job: int
    slot: int
    workers: Fraction
    ps: Fraction
    incomes: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decision, Tabular):
    """What a policy decided on a batch: the schedules of the jobs that run, and what led to them.

    ``schedules``: one for each job that runs. ``admissions``: every decision in order. ``payments``: what jobs pay for
    resources beyond their tenant's own share. ``proven``: what is proved about the plan, in words.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> plan = decide("fcfs", astraea_example())
    >>> plan, [each.first for each in plan.schedules]
    (<Plan: fcfs on <Batch: 4 jobs of 2 tenants on 4 servers>: 4 of 4 jobs run>, [4, 4, 4, 4])
    """

    batch: Batch
    schedules: tuple[JobSchedule, ...]
    admissions: tuple[Admission, ...] = ()
    payments: tuple[Payment, ...] = ()
    proven: str = ""

    def __repr__(self) -> str:
        run = f"{len(self.schedules)} of {counted(len(self.batch.jobs), 'job')} run"
        return f"<Plan: {self.policy} on {self.batch!r}: {run}>"

    def _table(self) -> Grid:
        jobs, run = self.batch.jobs, self.schedules
        columns = {
            "tenant": [self.batch.tenants[jobs.tenant[each.job]] for each in run],
            **{name: [getattr(each, name) for each in run] for name in ("first", "last")},
            **{name: [each.count()[at] for each in run] for at, name in enumerate(("workers", "ps"))},
            "utility": [self.utilities[each.job] for each in run],
        }
        return Grid("job", [jobs.names[each.job] for each in run], columns)

    @classmethod
    def of_admissions(cls, policy: str, batch: Batch, admissions: Sequence[Admission], **more: Any) -> Plan:
        """Return the plan in which the jobs that were admitted run as they were; ``more``: its other fields."""
        schedules = tuple(each.schedule for each in admissions if each.admitted and each.schedule is not None)
        return cls(policy, batch, schedules, tuple(admissions), **more)

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
        """What each tenant ends up with (U,)."""
        return self.gains_by(self.utilities)

    def gains_by(self, utilities: Mapping[int, Number]) -> tuple[Number, ...]:
        """Return what each tenant ends up with (U,), given what its jobs are worth.

        It is what they are worth, minus what they pay, plus the tenant's incomes (Sec. 3.2).
        """
        jobs = self.batch.jobs
        total: list[Number] = [Fraction(0)] * len(self.batch.tenants)
        for job, utility in utilities.items():
            total[jobs.tenant[job]] += utility
        for payment in self.payments:
            total[jobs.tenant[payment.job]] -= payment.workers + payment.ps
            for tenant, income in enumerate(payment.incomes):
                total[tenant] += income
        return tuple(total)

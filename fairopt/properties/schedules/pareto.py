"""Pareto efficiency of a plan in tenants' revenue, decided against every schedule of every job; for small batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from fairopt.errors import NotCapable
from fairopt.methods.columns.columns import Times, columns
from fairopt.policy import Plan
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import INFINITY, Array, Number
from fairopt.properties.property import Property, SlackCase
from fairopt.properties.schedules.plan_property import SOURCE
from fairopt.properties.verdict import Verdict

#: All schedules that a job may have, or enough of them: `fairopt.methods.columns.columns.columns` is such a function.
Columns = Callable[[Batch, int], Iterable[JobSchedule]]
#: What completing with a schedule is worth.
Worth = Callable[[JobSchedule], Number]


@dataclass(frozen=True)
class ScheduleParetoEfficiency(Property):
    """No other feasible schedules of the same jobs leave every tenant at least its revenue, and one more.

    Revenue is utility plus what is paid to a tenant minus what it pays. Payments stay as in the plan, so that a
    dominating plan needs nobody's agreement to others. A
    failure shows schedules that leave no tenant with less utility, and some with more, and the utilities before, after.

    * ``columns``: which schedules a job may have; with those of some slots only, it is efficiency within these slots.
      None for all that can be of use, in as many slots.
    * ``most``: how many schedules, and thousands of packings, are looked at; where that is not enough, it is UNDECIDED.

    Source: Astraea (posted prices) Theorem 5; its footnote 1.
    """

    problem = Batch
    of = "schedule"
    name = "schedule_pareto_efficiency"
    head = "nothing wasted"
    broken = "{who} could earn more and nobody less"
    source = f"{SOURCE} Theorem 5"
    definition = "no feasible schedules give every tenant its revenue, and one more, payments as they are"
    columns: Columns | None = None
    most: int | None = 400

    def check(self, plan: Plan, *, tolerance: Number | None = None) -> Verdict:
        """Decide; the margin is minus the most that the tenants' total can grow in this way."""
        batch, jobs = plan.batch, plan.batch.jobs

        def worth(one: JobSchedule) -> Number:
            return jobs.utility[one.job].value(Fraction(one.last - int(jobs.arrival[one.job])))

        try:
            search = Exhaustive(batch, self.columns or all_columns(batch), worth, self.most)
            before = search.tenants(plan.schedules)
            best = search.largest(before)
        except NotCapable as error:
            return Verdict.undecided(self.name, str(error), unit="revenue")
        after = search.tenants(best)
        had: Number = sum(before, start=Fraction(0))
        grown = sum(after) - had
        case = self.case(-grown, max(had, -had), schedules=best, before=before, after=after)
        effort = f"{search.looked} packings of {sum(map(len, search.choices))} schedules"
        return self._by_tightest(case, tolerance, exact=not isinstance(grown, float), unit="revenue", effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return which schedules make somebody better off, in a sentence."""
        told = "; ".join(f"job {each.job} in slots {each.first} to {each.last}" for each in case.schedules)
        return f"utilities {list(map(str, case.before))} become {list(map(str, case.after))} with {told}"


def all_columns(batch: Batch) -> Columns:
    """Return all schedules of a job that can be of use: in no plan does anybody need a later slot."""
    times = Times.of(batch)
    return lambda at, job: columns(at, job, times)


class Exhaustive:
    """Every packing of schedules into the servers, depth first; what cannot become good enough is left out."""

    def __init__(self, batch: Batch, columns: Columns, worth: Worth, most: int | None = None) -> None:
        self.batch, self.worth, self.looked = batch, worth, 0
        self.most = INFINITY if most is None else 1000 * most
        self.choices: list[list[JobSchedule]] = []
        for job in range(len(batch.jobs)):
            left = None if most is None else most + 1 - sum(map(len, self.choices))
            of_job = list(islice(columns(batch, job), left))
            if left is not None and len(of_job) == left:
                what = f"there are more than {most} schedules that jobs may have"
                raise NotCapable(f"{what}; it is decided for small batches")
            self.choices.append(sorted(of_job, key=lambda one: (-worth(one), one.first)))
        slots = max((one.last for each in self.choices for one in each), default=0)
        self.free = tuple(np.repeat(there[..., None], slots, axis=2) for there in (batch.workers, batch.ps))
        self.best_left = self._best_left()

    def largest(self, least: Sequence[Number] | None = None) -> tuple[JobSchedule, ...]:
        """Return schedules of the largest total worth among those that give each tenant at least ``least``, or ()."""
        has: list[Number] = [Fraction(0)] * len(self.batch.tenants)
        best: tuple[JobSchedule, ...] = ()
        found: Number | None = None

        def go(job: int, taken: tuple[JobSchedule, ...]) -> None:
            nonlocal best, found
            self.looked += 1
            if self.looked > self.most:
                raise NotCapable(f"not decided after {self.looked - 1} packings; it is decided for small batches")
            most = [a + b for a, b in zip(has, self.best_left[job], strict=True)]
            if least is not None and any(a < b for a, b in zip(most, least, strict=True)):
                return
            if found is not None and sum(most) <= found:
                return
            if job == len(self.choices):
                best, found = taken, sum(has)
                return
            tenant = int(self.batch.jobs.tenant[job])
            for one in self.choices[job]:
                needs = list(self._needs(one))
                if all(free.min() >= count for free, count in needs):
                    for free, count in needs:
                        free -= count
                    has[tenant] += self.worth(one)
                    go(job + 1, (*taken, one))
                    has[tenant] -= self.worth(one)
                    for free, count in needs:
                        free += count
            go(job + 1, taken)

        go(0, ())
        return best

    def tenants(self, schedules: Iterable[JobSchedule]) -> tuple[Number, ...]:
        """Return what schedules are worth to each tenant (U,)."""
        total: list[Number] = [Fraction(0)] * len(self.batch.tenants)
        for one in schedules:
            total[self.batch.jobs.tenant[one.job]] += self.worth(one)
        return tuple(total)

    def _best_left(self) -> list[list[Number]]:
        """Return for each job what it and those after it can be worth to each tenant at most, and nothing last."""
        left: list[list[Number]] = [[Fraction(0)] * len(self.batch.tenants)]
        for job in reversed(range(len(self.choices))):
            first = list(left[0])
            most = self.worth(self.choices[job][0]) if self.choices[job] else Fraction(0)
            first[self.batch.jobs.tenant[job]] += max(most, Fraction(0))
            left.insert(0, first)
        return left

    def _needs(self, one: JobSchedule) -> Iterator[tuple[Array, int]]:
        """Yield what is free in the slots and at each place of a schedule, to be changed there, and what it takes."""
        span, kinds = slice(one.first - 1, one.last), (one.worker_type, one.ps_type)
        for free, spots, kind in zip(self.free, (one.workers, one.ps), kinds, strict=True):
            yield from ((free[server, kind, span], count) for server, count in spots)

"""Every installed policy of schedules passes the conformance suite; the suite catches policies that should not pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from drawn_seeds import counts

from fairopt.backends import Session
from fairopt.discovery import policies, policy
from fairopt.errors import WrongReturn
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.posted_prices import RUN_TOO_LATE, TWO_TENANTS
from fairopt.policy import Claim, Payment, Plan, Policy, Trait, decide
from fairopt.problem.batch import Batch
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.testing.schedule_suite import schedule_suite
from fairopt.testing.suite import Outcome

INSTALLED = [each.name for each in policies(Batch)]
#: Sampled batches; planted faults are searched for on as many.
BATCHES = 5


@pytest.mark.parametrize("batches", counts(2, 8))
@pytest.mark.parametrize("name", INSTALLED)
def test_policy_conforms(name: str, batches: int, conformance: Callable[[object], None]) -> None:
    report = schedule_suite(verify_schedule.decide, batches=batches).run([policy(name)])
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    conformance(f"schedule policy {name}: {counts} of {len(report.rows)} checks ('-' is not declared)")
    report.require_complete()


@dataclass(frozen=True)
class Broken(Policy):
    """First come, first served, and the base of what is wrong below."""

    problem = Batch
    name: ClassVar[str] = "broken"
    source: ClassVar[str] = "nobody"
    traits = frozenset({Trait.NAMELESS})

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        return self.plan(problem)

    def plan(self, batch: Batch) -> Plan:
        return replace(decide(FirstComeFirstServed(), batch), policy=self.name, admissions=())


class Overbooking(Broken):
    """Puts everybody where the first one is."""

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        first = whole.schedules[0].first if whole.schedules else 0
        same = tuple(replace(each, first=first, last=first + each.duration - 1) for each in whole.schedules)
        return replace(whole, schedules=same)


class Hurried(Broken):
    """Gives jobs fewer slots than they need."""

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        return replace(whole, schedules=tuple(replace(each, last=each.first) for each in whole.schedules))


class Repeating(Broken):
    """Runs the first job twice."""

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        return replace(whole, schedules=(*whole.schedules, *whole.schedules[:1]))


class Elsewhere(Broken):
    """Plans for another batch: the one whose last job has not come."""

    def plan(self, batch: Batch) -> Plan:
        return super().plan(batch.select(range(max(len(batch.jobs) - 1, 0))))


class Writing(Broken):
    """Writes into the batch."""

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        batch.jobs.arrival.setflags(write=True)
        batch.jobs.arrival[:] = 0
        return whole


class Undecided(Broken):
    """Draws who runs, without a seed."""

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        return replace(whole, schedules=tuple(each for each in whole.schedules if random.random() < 0.5))


@dataclass(frozen=True)
class Remembering(Broken):
    """Keeps in the object how often it decided."""

    seen: list[Batch] = field(default_factory=list)

    def plan(self, batch: Batch) -> Plan:
        self.seen.append(batch)
        return replace(super().plan(batch), schedules=super().plan(batch).schedules[len(self.seen) % 2 :])


class Proud(Broken):
    """Divides by the number of jobs."""

    def plan(self, batch: Batch) -> Plan:
        assert 1 / len(batch.jobs) > 0
        return super().plan(batch)


class Greedy(Broken):
    """Takes a payment from each job that nobody receives."""

    def plan(self, batch: Batch) -> Plan:
        whole, nothing = super().plan(batch), (Fraction(0),) * len(batch.tenants)
        paid = tuple(Payment(each.job, each.first, Fraction(1), Fraction(0), nothing) for each in whole.schedules)
        return replace(whole, payments=paid)


class Boasting(Broken):
    """Claims that nobody could have more, and runs one job only."""

    claims = (Claim("schedule_pareto_efficiency", "its author"),)

    def plan(self, batch: Batch) -> Plan:
        whole = super().plan(batch)
        return replace(whole, schedules=whole.schedules[:1])


class Modest(Broken):
    """Says that a batch refutes what holds there."""

    claims = (Claim("budget_balance", "its author", refuted_by=TWO_TENANTS),)


class Inventive(Broken):
    """Claims a property that nobody has defined."""

    claims = (Claim("happiness", "its author"),)


class Alphabetical(Broken):
    """Leaves out whoever comes first in the alphabet."""

    def plan(self, batch: Batch) -> Plan:
        whole, first = super().plan(batch), min(batch.jobs.names, default="")
        return replace(whole, schedules=tuple(x for x in whole.schedules if batch.jobs.names[x.job] != first))


class Programless(Broken):
    """Declares a program, which it has not."""

    traits = frozenset({Trait.PROGRAM})
    methods = ()


class Nameless(Broken):
    """Does not say where it is from."""

    source = ""


CAUGHT: Mapping[type[Broken], str] = {
    Overbooking: "every plan is possible",
    Hurried: "every plan is possible",
    Repeating: "every job runs once or not at all",
    Elsewhere: "every job runs once or not at all",
    Writing: "leaves the batch alone",
    Undecided: "decides the same twice",
    Remembering: "decides the same twice",
    Proud: "copes where nobody can run",
    Greedy: "what is paid is received",
    Boasting: "claims hold",
    Modest: "refuted claims stay refuted",
    Inventive: "says what it is",
    Alphabetical: "names do not matter",
    Programless: "backends agree",
    Nameless: "says what it is",
}


@pytest.mark.parametrize("kind", CAUGHT, ids=lambda kind: kind.__name__)
def test_the_suite_catches(kind: type[Broken]) -> None:
    suite = schedule_suite(verify_schedule.decide, batches=BATCHES)
    one = next(each for each in suite.checks if each.name == CAUGHT[kind])
    row = suite.run_one(kind(), one)
    assert row.outcome is Outcome.FAILED, row
    assert isinstance(row.error, WrongReturn) or not isinstance(row.error, TypeError | NameError), row


def test_what_the_broken_ones_are_made_of_is_not_broken() -> None:
    schedule_suite(verify_schedule.decide, batches=BATCHES).run([Broken()]).require_complete()


def test_what_a_job_that_is_run_too_late_costs() -> None:
    """Counted from its round, the job is worth its cost; counted from its arrival, it is not."""
    plan = decide(policy("posted-prices"), RUN_TOO_LATE)
    assert [plan.utilities[each.job] for each in plan.schedules] == [-8]

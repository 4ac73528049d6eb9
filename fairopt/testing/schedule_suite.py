"""The conformance suite of policies of schedules: what every `Policy` must do, and what it declares and claims.

from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.testing.schedule_suite import schedule_suite
schedule_suite(verify_schedule.decide).run([MyPolicy()]).require_complete()
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fairopt.discovery import policies, property_
from fairopt.policy import Claim, Plan, Policy, Trait, decide
from fairopt.problem.batch import Batch
from fairopt.problem.utilities import Linear
from fairopt.properties import Answer
from fairopt.schedules.document import document
from fairopt.testing.policy_checks import (
    AGREE,
    Known,
    PolicySamples,
    answers,
    backwards,
    check_agreement,
    check_unchanged,
    check_written_down,
    decided,
    suite_of,
)
from fairopt.testing.samples import sample_batches
from fairopt.testing.suite import Suite, requires

__all__ = ["schedule_suite"]

#: What judges a plan's document and returns the violations with a statement.
Judge = Callable[[str], tuple[Sequence[str], str]]


def schedule_suite(judge: Judge, *, batches: int = 12, expected_failures: Known | None = None) -> Suite[Policy]:
    """Return the suite, with plans for ``batches`` sampled batches judged by ``judge``.

    ``judge`` checks a plan by itself, knowing nothing of policies: `fairopt.proofs.verifier.schedules.decide`.
    ``expected_failures`` maps a policy's name to {check: measured reason}.

    >>> from fairopt.proofs.verifier import schedules
    >>> len(schedule_suite(schedules.decide).checks) > 5
    True
    """

    def tried(policy: Policy, claim: Claim) -> Iterator[tuple[Batch, Plan]]:
        return ((plan.batch, plan) for plan in given.outcomes(policy))

    given = PolicySamples(
        some=lambda policy: next(sample_batches(1, seed=1)),
        tried=tried,
        sampled=lambda policy: (decided(policy, batch) for batch in sample_batches(batches, seed=1)),
        judge=judge,
        count=batches,
    )
    return suite_of("policies of schedules", __name__, given, expected_failures)


def installed() -> list[Policy]:
    """Return one of each installed policy of schedules, with default options."""
    return policies(Batch)


def _judged(given: PolicySamples, plan: Plan) -> None:
    violations, _ = given.judge(json.dumps(document(plan)))
    assert not violations, f"{plan.batch!r}: {violations[:3]}"


def can_be_written_down(policy: Policy) -> None:
    """Guards against plug-ins without defaults, and states that cannot be written down."""
    check_written_down(policy)


def every_plan_is_possible(policy: Policy, given: PolicySamples) -> None:
    """Guards against overbooked servers, too few slots, wrong types, and prices and payments that do not follow."""
    for plan in given.outcomes(policy):
        _judged(given, plan)


def every_job_runs_once_or_not_at_all(policy: Policy, given: PolicySamples) -> None:
    """Guards against jobs that are lost from sight or run twice, and plans of another batch."""
    for batch, plan in zip(sample_batches(given.count, seed=1), given.outcomes(policy), strict=True):
        assert plan.policy == policy.name
        assert _told(plan.batch) == _told(batch), "the plan is of another batch"
        run = Counter(each.job for each in plan.schedules)
        assert all(count == 1 for count in run.values()), f"{batch!r}: {run}"
        assert {*run, *plan.unscheduled} == set(range(len(batch.jobs)))


def leaves_the_batch_alone(policy: Policy) -> None:
    """Guards against policies that write into what they are given."""
    for batch in sample_batches(4, seed=2):
        before = copy.deepcopy(batch)
        decided(policy, batch)
        check_unchanged(batch, before, "batch")


def decides_the_same_twice(policy: Policy, given: PolicySamples) -> None:
    """Guards against unseeded randomness and against state kept in the object."""
    for batch, first in zip(sample_batches(given.count, seed=1), given.outcomes(policy), strict=True):
        assert _decided(first) == _decided(decide(policy, batch)), f"{batch!r}"


def copes_where_nobody_can_run(policy: Policy, given: PolicySamples) -> None:
    """Guards against divisions by zero and programs without variables where no job is there, or worth it."""
    for batch in sample_batches(3, seed=3):
        worthless = replace(batch.jobs, utility=(Linear(Fraction(0), Fraction(0)),) * len(batch.jobs))
        for each in (batch.select([]), replace(batch, jobs=worthless)):
            _judged(given, decided(policy, each))


def what_is_paid_is_received(policy: Policy, given: PolicySamples) -> None:
    """Guards against money that comes from nowhere, or is lost."""
    for plan in given.outcomes(policy):
        verdict = property_("budget_balance").judge(policy, plan.batch, plan)
        assert verdict.answer is Answer.HOLDS, verdict
        assert abs(float(sum(plan.gains)) - float(plan.revenue)) <= AGREE * (1 + abs(float(plan.revenue)))


@requires(Trait.PROGRAM)
def backends_agree(policy: Policy) -> None:
    """Guards against answers that depend on the solver: every capable one reaches the same revenue."""
    asked = 0
    for batch in sample_batches(2, seed=4, jobs=2, servers=2):
        plans = [decided(policy, batch), *answers(policy, batch)]
        asked += sum(plan.solution is not None and plan.method is None for plan in plans[1:])
        check_agreement({f"{at}: {plan.backend}": float(plan.revenue) for at, plan in enumerate(plans)}, batch)
    assert asked, "declares a program, and no backend took it"


@requires(Trait.NAMELESS)
def names_do_not_matter(policy: Policy, given: PolicySamples) -> None:
    """Guards against choices by alphabet, and by the order of a set of names."""
    for batch, plan in zip(sample_batches(given.count, seed=1), given.outcomes(policy), strict=True):
        other = decided(policy, _renamed(batch))
        assert _decided(plan) == _decided(other), f"{batch!r}"


def _decided(plan: Plan) -> tuple[Any, ...]:
    return plan.schedules, plan.admissions, plan.payments


def _told(batch: Batch) -> dict[str, Any]:
    told: dict[str, Any] = document(Plan(policy="", batch=batch, schedules=()))["batch"]
    return told


def _renamed(batch: Batch) -> Batch:
    """Return the same batch with names whose alphabetical order is the reverse."""
    return replace(
        batch,
        tenants=backwards(batch.tenants, "x"),
        servers=backwards(batch.servers, "z"),
        jobs=replace(batch.jobs, names=backwards(batch.jobs.names, "y")),
    )

"""The conformance suite of policies of schedules: what every `Policy` must do, and what it declares and claims.

from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.testing.schedule_suite import schedule_suite
report = schedule_suite(verify_schedule.decide).run([MyPolicy()])
print(report)
report.require_complete()
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.discovery import BACKENDS, load, names, policies, property_
from fairopt.errors import NotCapable
from fairopt.policy import Plan, Policy, Trait, decide
from fairopt.problem.batch import Batch
from fairopt.problem.utilities import Linear
from fairopt.properties import Answer
from fairopt.schedules.document import document
from fairopt.testing.batch_samples import sample_batches
from fairopt.testing.claim_checks import check_claims, check_declaration, check_refuted, declared
from fairopt.testing.suite import Suite, Traits, check

#: What judges a plan's document and returns the violations with a statement.
Judge = Callable[[str], tuple[Sequence[str], str]]
#: Two back ends agree on a revenue to this, relative to its size.
AGREE = 1e-6


def schedule_suite(
    judge: Judge, *, batches: int = 12, expected_failures: Mapping[str, Mapping[str, str]] | None = None
) -> Suite[Policy]:
    """Return the suite, with plans for ``batches`` sampled batches judged by ``judge``.

    ``judge`` checks a plan by itself, knowing nothing of policies: `fairopt.proofs.verifier.schedules.decide`.
    ``expected_failures`` maps a policy's name to {check: measured reason}.
    """
    known = expected_failures or {}
    on = ScheduleChecks(judge, batches)

    return Suite(
        "policies of schedules",
        [
            check(on.says_what_it_is),
            check(on.every_plan_is_possible),
            check(on.every_job_runs_once_or_not_at_all),
            check(on.leaves_the_batch_alone),
            check(on.decides_the_same_twice),
            check(on.copes_where_nobody_can_run),
            check(on.what_is_paid_is_received),
            check(on.claims_hold, "claims"),
            check(on.refuted_claims_stay_refuted, "claims"),
            check(on.back_ends_agree, Trait.PROGRAM),
            check(on.names_do_not_matter, Trait.NAMELESS),
        ],
        lambda policy: Traits(policy.name, declared(policy), "", known.get(policy.name, {})),
    )


def installed() -> list[Policy]:
    """Return one of each installed policy of schedules, with default options."""
    return policies(Batch)


@dataclass(frozen=True, eq=False)
class ScheduleChecks:
    """The checks; plans for the sampled batches are made once a policy and kept."""

    judge: Judge
    batches: int
    _plans: dict[int, tuple[Policy, list[Plan]]] = field(default_factory=dict)

    def plans(self, policy: Policy) -> list[Plan]:
        """Return the plans of a policy for the sampled batches."""
        if id(policy) not in self._plans:
            self._plans[id(policy)] = policy, [planned(policy, batch) for batch in sample_batches(self.batches, seed=1)]
        return self._plans[id(policy)][1]

    def says_what_it_is(self, policy: Policy) -> None:
        """Guards against plug-ins without name, source or defaults, and claims of properties that nobody defines."""
        check_declaration(policy)

    def every_plan_is_possible(self, policy: Policy) -> None:
        """Guards against overbooked servers, too few slots, wrong types, and prices and payments that do not follow."""
        for plan in self.plans(policy):
            violations, _ = self.judge(json.dumps(document(plan)))
            assert not violations, f"{plan.batch!r}: {violations[:3]}"

    def every_job_runs_once_or_not_at_all(self, policy: Policy) -> None:
        """Guards against jobs that are lost from sight or run twice, and plans of another batch."""
        for batch, plan in zip(sample_batches(self.batches, seed=1), self.plans(policy), strict=True):
            assert plan.policy == policy.name
            assert _told(plan.batch) == _told(batch), "the plan is of another batch"
            run = Counter(each.job for each in plan.schedules)
            assert all(count == 1 for count in run.values()), f"{batch!r}: {run}"
            assert {*run, *plan.unscheduled} == set(range(len(batch.jobs)))

    def leaves_the_batch_alone(self, policy: Policy) -> None:
        """Guards against policies that write into what they are given."""
        for batch in sample_batches(4, seed=2):
            before = copy.deepcopy(batch)
            planned(policy, batch)
            for one, other in ((batch, before), (batch.servers, before.servers), (batch.jobs, before.jobs)):
                for name, value in vars(one).items():
                    if isinstance(value, np.ndarray):
                        assert not value.flags.writeable, f"{name} can be written"
                        assert np.array_equal(value, getattr(other, name)), f"{name} has changed"

    def decides_the_same_twice(self, policy: Policy) -> None:
        """Guards against unseeded randomness and against state kept in the object."""
        for batch, first in zip(sample_batches(self.batches, seed=1), self.plans(policy), strict=True):
            again = decide(policy, batch)
            assert _decided(first) == _decided(again), f"{batch!r}"

    def copes_where_nobody_can_run(self, policy: Policy) -> None:
        """Guards against divisions by zero and programs without variables where no job is there, or worth it."""
        for batch in sample_batches(3, seed=3):
            jobs = batch.jobs
            nothing = (Linear(Fraction(0), Fraction(0)),) * len(jobs)
            for each in (batch.select([]), replace(batch, jobs=replace(jobs, utility=nothing))):
                plan = planned(policy, each)
                violations, _ = self.judge(json.dumps(document(plan)))
                assert not violations, f"{each!r}: {violations[:3]}"

    def what_is_paid_is_received(self, policy: Policy) -> None:
        """Guards against money that comes from nowhere, or is lost."""
        for plan in self.plans(policy):
            verdict = property_("budget_balance").judge(policy, plan.batch, plan)
            assert verdict.answer is Answer.HOLDS, verdict
            assert abs(float(sum(plan.gains)) - float(plan.revenue)) <= AGREE * (1 + abs(float(plan.revenue)))

    def claims_hold(self, policy: Policy) -> None:
        """Guards against claims that are taken over from a paper and do not hold: they do on generated batches."""
        check_claims(policy, ((plan.batch, plan) for plan in self.plans(policy)))

    def refuted_claims_stay_refuted(self, policy: Policy) -> None:
        """Guards against counterexamples that a change of the policy made meaningless."""
        check_refuted(policy)

    def back_ends_agree(self, policy: Policy) -> None:
        """Guards against answers that depend on the solver: every capable one reaches the same revenue."""
        asked = 0
        for batch in sample_batches(2, seed=4, jobs=2, servers=2):
            found = {"auto": float(planned(policy, batch).revenue)}
            for name in names(BACKENDS):
                solver = load(BACKENDS, name)()
                if solver.available():
                    try:
                        plan = decide(policy, batch, solver)
                    except NotCapable:
                        continue  # one that cannot is not asked
                    found[name] = float(plan.revenue)
                    asked += plan.solution is not None
            least, most = min(found.values()), max(found.values())
            assert most - least <= AGREE * (1 + abs(most)), f"{batch!r}: {found}"
        assert asked, "declares a program, and no back end took it"

    def names_do_not_matter(self, policy: Policy) -> None:
        """Guards against choices by alphabet, and by the order of a set of names."""
        for batch, plan in zip(sample_batches(self.batches, seed=1), self.plans(policy), strict=True):
            other = planned(policy, _renamed(batch))
            assert _decided(plan) == _decided(other), f"{batch!r}"


def planned(policy: Policy, batch: Batch) -> Plan:
    """Return what a pristine copy of a policy decides."""
    return decide(copy.deepcopy(policy), batch)


def _decided(plan: Plan) -> tuple[Any, ...]:
    return plan.schedules, plan.admissions, plan.payments


def _told(batch: Batch) -> dict[str, Any]:
    told: dict[str, Any] = document(Plan(policy="", batch=batch, schedules=()))["batch"]
    return told


def _renamed(batch: Batch) -> Batch:
    """Return the same batch with names whose alphabetical order is the reverse."""

    def reverse(found: Sequence[str], letter: str) -> tuple[str, ...]:
        return tuple(f"{letter}{len(found) - at:04}" for at in range(len(found)))

    return replace(
        batch,
        tenants=reverse(batch.tenants, "x"),
        servers=replace(batch.servers, names=reverse(batch.servers.names, "z")),
        jobs=replace(batch.jobs, names=reverse(batch.jobs.names, "y")),
    )

"""The conformance suite of policies of rounds: what every `Policy` must do, and what it declares of itself.

from fairopt.proofs.verifier import runs
from fairopt.testing.round_suite import round_suite
round_suite(runs.decide).run([MyPolicy()]).require_complete()
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

import numpy as np

from fairopt.backends import Session
from fairopt.codec import encode
from fairopt.discovery import policies
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Queue, Trace
from fairopt.simulation import History, Round, Setting, Snapshot, advance, begin, choose, next_queue, placed
from fairopt.simulation.document import document
from fairopt.simulation.placement import Consolidated
from fairopt.simulation.record import snapshot_from, snapshot_text
from fairopt.testing.policy_checks import (
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
from fairopt.testing.round_changes import check_engine
from fairopt.testing.round_samples import played, sample_settings
from fairopt.testing.suite import Suite, requires

__all__ = ["round_suite"]

#: What replays a run's document and returns the violations with a statement, within a tolerance.
Judge = Callable[[str, Fraction], tuple[Sequence[str], str]]
#: No policy needed more than 40 rounds for a sampled setting; one that needs this many makes no progress.
MOST_ROUNDS = 300
#: The tolerance for floats in one round.
NEAR = Fraction(1, 10**9)


def round_suite(judge: Judge, *, settings: int = 20, expected_failures: Known | None = None) -> Suite[Policy]:
    """Return the suite, with runs over ``settings`` sampled settings judged by ``judge``.

    ``judge`` replays a run by itself, knowing nothing of policies: `fairopt.proofs.verifier.runs.decide`.
    ``expected_failures`` maps a policy's name to {check: measured reason}.

    >>> from fairopt.proofs.verifier import runs
    >>> len(round_suite(runs.decide).checks) > 10
    True
    """

    def tried(policy: Policy, claim: Claim) -> Iterator[tuple[Setting, History]]:
        return ((play.setting, play.history()) for play in given.outcomes(policy))

    given = PolicySamples(
        some=lambda policy: next(_schedules(policy, given)).queue,
        tried=tried,
        sampled=lambda policy: (fold(policy, each) for each in sample_settings(settings, seed=1)),
        judge=judge,
        count=settings,
    )
    return suite_of("policies of rounds", __name__, given, expected_failures)


@dataclass(frozen=True, eq=False)
class _PlayedRun:
    """A fold over a setting: what the policy decided, and the record, of each round; ``ended`` within `MOST_ROUNDS`."""

    setting: Setting
    schedules: tuple[Schedule, ...]
    records: tuple[Round, ...]
    ended: bool

    def history(self, before: Sequence[Round] = ()) -> History:
        """Return what happened, with the records ``before`` it."""
        return History.of(self.setting.trace, self.setting.cluster, [*before, *self.records])

    def text(self, before: Sequence[Round] = ()) -> str:
        """Return the document of the run, with the records ``before`` it."""
        one, policy = self.setting, self.records[-1].policy
        return json.dumps(document(self.history(before), one.mechanics, one.length, policy))


def fold(policy: Policy, setting: Setting, after: Snapshot | None = None) -> _PlayedRun:
    """Return the rounds of a setting, by hand: a pristine copy of the policy decides each, given the state alone."""
    number = setting.trace.jobs.arithmetic.number
    length = number(setting.length)
    snapshot = begin(setting.cluster, number) if after is None else after
    schedules, records = list[Schedule](), list[Round]()
    while len(records) < MOST_ROUNDS:
        coming = next_queue(snapshot, setting.trace, setting.cluster, length)
        if coming is None:
            return _PlayedRun(setting, tuple(schedules), tuple(records), True)
        moved, queue = coming
        schedules.append(decided(policy, queue, moved.state))
        assert schedules[-1].queue is queue, "the schedule is of another queue"
        records.append(advance(moved, setting.trace, schedules[-1], setting.mechanics))
        snapshot = records[-1].after
    return _PlayedRun(setting, tuple(schedules), tuple(records), False)


def installed() -> list[Policy]:
    """Return one of each installed policy of rounds, with default options."""
    return policies(Queue)


def _schedules(policy: Policy, given: PolicySamples) -> Iterator[Schedule]:
    return (each for play in given.outcomes(policy) for each in play.schedules)


def _judged(given: PolicySamples, text: str, setting: Setting, tolerance: Fraction = Fraction(0)) -> None:
    violations, _ = given.judge(text, tolerance)
    assert not violations, f"{setting.cluster!r}, {setting.trace!r}: {violations[:3]}"


def can_be_written_down(policy: Policy) -> None:
    """Guards against plug-ins without defaults, and states that cannot be written down."""
    check_written_down(policy)


def every_round_is_possible(policy: Policy, given: PolicySamples) -> None:
    """Guards against torn gangs, overbooked or broken hosts, wrong types, broken leases and wrong records."""
    for play in given.outcomes(policy):
        _judged(given, play.text(), play.setting)


def every_round_is_possible_in_floats(policy: Policy, given: PolicySamples) -> None:
    """Guards against arithmetic that works in Fractions only."""
    for setting in sample_settings(max(1, given.count // 4), seed=2):
        play = fold(policy, setting.as_(float))
        assert play.ended, f"not over after {MOST_ROUNDS} rounds in floats"
        _judged(given, play.text(), setting, NEAR)


def everybody_is_done_in_the_end(policy: Policy, given: PolicySamples) -> None:
    """Guards against endless starvation, and against jobs that are forgotten."""
    for number, play in enumerate(given.outcomes(policy)):
        done = {job for record in play.records for job in record.completed}
        stuck = {job for record in play.records for job in record.unschedulable}
        left = sorted(set(play.setting.trace.jobs.names) - done - stuck)
        assert play.ended, f"setting {number}: after {MOST_ROUNDS} rounds {left} wait still"
        assert not left, f"setting {number}: {left} are neither done nor reported"


def run_is_a_fold_of_decide(policy: Policy, given: PolicySamples) -> None:
    """Guards against state kept in the object, unseeded randomness, and a loop that carries more than the state."""
    for play in given.outcomes(policy)[:6]:
        rounds = played(policy, play.setting, rounds=MOST_ROUNDS)
        _same_records(play.records, list(rounds))


def a_run_stopped_and_resumed_is_the_same(policy: Policy, given: PolicySamples) -> None:
    """Guards against states that lose something when they are written down, at any boundary of rounds."""
    for play in given.outcomes(policy)[:3]:
        for before, then in pairwise(play.records):
            read = snapshot_from(snapshot_text(before.after), policy.states)
            _same_records([then], list(played(copy.deepcopy(policy), play.setting, rounds=1, after=read)))


def a_schedule_stands_as_long_as_it_says(policy: Policy, given: PolicySamples) -> None:
    """Guards against a `stands` that is too late: a run that asks no sooner is the one that asks each round."""
    for number, setting in enumerate(sample_settings(max(2, given.count // 4), seed=8)):
        check_engine(policy, setting.as_(float) if number % 2 else setting)
        # with leases, which others gave and which end in the middle of the run
        first = fold(Lender(seed=number), setting).records[: 1 + number % 3]
        check_engine(policy, setting, replace(first[-1].after, state=None, started=False))


def leaves_the_queue_and_the_state_alone(policy: Policy, given: PolicySamples) -> None:
    """Guards against policies that write into what they are given."""
    for play in given.outcomes(policy)[:3]:
        state: Any = None
        for step in play.schedules:
            before = copy.deepcopy(step.queue)
            written = encode(state)
            schedule = decided(policy, step.queue, state)
            check_unchanged(step.queue, before, "queue")
            assert encode(state) == written, "the state that was given has changed"
            state = schedule.state


def keeps_leases_that_it_did_not_give(policy: Policy, given: PolicySamples) -> None:
    """Guards against policies that expect only their own leases, or none, and fail in the middle of a run."""
    met = 0
    for number, setting in enumerate(sample_settings(max(3, given.count // 4), seed=3, jobs=(8, 20))):
        first = fold(Lender(seed=number), setting).records[: 2 + number % 3]
        play = fold(policy, setting, replace(first[-1].after, state=None, started=False))
        for step in play.schedules:
            leased = step.queue.leased
            met += len(leased)
            kept = {row: step.placements.get(row) for row in leased}
            assert kept == dict(leased), f"{step.queue!r}: leases on {dict(leased)} and placed at {kept}"
        if play.schedules:
            _judged(given, play.text(first), setting)
    assert met, "no lease was met; sample more settings"


def copes_where_nobody_can_run(policy: Policy) -> None:
    """Guards against divisions by zero, programs without variables and lost states where nobody can be placed."""
    for setting in sample_settings(4, seed=4, outages=False):
        jobs, cluster = setting.trace.jobs, setting.cluster
        now = jobs.arrival[-1]
        queue = Queue.fresh(jobs, cluster, length=setting.length, now=now)
        dark = replace(queue, up=np.zeros_like(queue.up))
        huge = replace(queue, jobs=replace(jobs, gpus=jobs.gpus + 1000))
        state: Any = None
        for each in (dark, huge, queue, dark):
            schedule = decided(policy, each, state)
            refuse_broken(schedule)
            assert each is queue or not schedule.placements
            state = schedule.state
            encode(state)


def forgets_who_is_done(policy: Policy, given: PolicySamples) -> None:
    """Guards against states that grow with every job that was ever present."""
    for play in given.outcomes(policy)[:6]:
        for step in play.schedules:
            known = set(re.findall(r"job-\d+", json.dumps(encode(step.state))))
            gone = known - set(step.queue.jobs.names)
            assert not gone, f"round {step.queue.index}: the state holds {sorted(gone)[:5]}, who are not present"


@requires(Trait.PROGRAM)
def backends_agree(policy: Policy, given: PolicySamples) -> None:
    """Guards against answers that depend on the solver: every capable one reaches the same objective."""
    asked = 0
    for setting in sample_settings(max(1, min(2, given.count // 2)), seed=5, jobs=(5, 7), hosts=(2, 3)):
        for step in fold(policy, setting).schedules[:4]:
            schedules = answers(policy, step.queue, state=policy.start(step.queue))
            solved = [(each.backend, each.solution) for each in schedules if each.solution is not None]
            found = {name: float(one.objective) for name, one in solved if one.objective is not None}
            asked = max(asked, len(found))
            check_agreement(found, step.queue)
    assert asked >= 2, f"declares a program, and {asked} backends took it"


@requires(Trait.SAME_IN_FLOATS)
def floats_place_like_fractions(policy: Policy, given: PolicySamples) -> None:
    """Guards against rules that are right in one number type only."""
    for setting in sample_settings(max(2, given.count // 4), seed=6, ties=False):
        exactly, nearly = (fold(policy, each) for each in (setting, setting.as_(float)))
        for one, other in zip(exactly.schedules, nearly.schedules, strict=True):
            _same_places(one, other)


@requires(Trait.WORK_CONSERVING)
def no_gpu_is_idle_for_which_somebody_waits(policy: Policy, given: PolicySamples) -> None:
    """Guards against GPUs left idle although a whole gang that waits would fit on them."""
    for step in _schedules(policy, given):
        left = step.queue.free(step.placements)
        types = len(step.queue.cluster.types)
        free = np.bincount(step.queue.cluster.gpu_type, weights=left, minlength=types)
        for row in set(range(len(step.queue))) - set(step.placements):
            fits = step.queue.allowed[row] & (step.queue.jobs.gpus[row] <= free)
            assert not fits.any(), f"{step.queue!r}: {step.queue.jobs.names[row]} waits, {free.tolist()} are free"


@requires(Trait.ONE_TYPE)
def gangs_lie_on_one_type(policy: Policy, given: PolicySamples) -> None:
    """Guards against gangs whose slowest type slows down the others."""
    for step in _schedules(policy, given):
        for row, spots in step.placements.items():
            assert len(step.queue.gpu_types(spots)) == 1, f"{step.queue!r}: {step.queue.jobs.names[row]} at {spots}"


@requires(Trait.RUNS_TO_COMPLETION)
def nobody_who_runs_is_stopped(policy: Policy, given: PolicySamples) -> None:
    """Guards against preemption by a policy that promises none."""
    for step in _schedules(policy, given):
        for row in np.flatnonzero(step.queue.running).tolist():
            name, spots = step.queue.jobs.names[row], step.placements.get(row)
            assert spots == step.queue.last[row], f"{step.queue!r}: {name} is taken from {step.queue.last[row]}"


@requires(Trait.EVENTS)
def lengths_of_rounds_do_not_matter(policy: Policy, given: PolicySamples) -> None:
    """Guards against policies that continuous time would play otherwise than short rounds."""
    for play in given.outcomes(policy):
        state: Any = None
        for step in play.schedules:
            other = decided(policy, replace(step.queue, length=step.queue.length * 7), state)
            assert (dict(other.placements), other.stands) == (
                dict(step.placements),
                step.stands,
            ), f"{step.queue!r}: another schedule in rounds of {other.queue.length}"
            state = step.state


@requires(Trait.NAMELESS)
def names_do_not_matter(policy: Policy, given: PolicySamples) -> None:
    """Guards against choices by alphabet, and by the order of a set of names."""
    for play in given.outcomes(policy)[:4]:
        other = fold(policy, _renamed(play.setting))
        for one, two in zip(play.schedules, other.schedules, strict=True):
            _same_places(one, two)


@dataclass(frozen=True)
class Lender(Policy):
    """Places the jobs that fit, and leases GPUs at random for up to five rounds; other policies must cope with this."""

    problem: ClassVar[type] = Queue
    name: ClassVar[str] = "lender"
    source: ClassVar[str] = "the conformance suite"
    seed: int = 0

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Return placements in the queue's order, with leases for about half of them."""
        random = Random(f"{self.seed}/{problem.index}")
        placements = placed(problem, choose(problem, range(len(problem))), Consolidated())
        new = [row for row in placements if row not in problem.leased]
        leases = {row: problem.end + random.choice([0, 0, 1, 5]) * problem.length for row in new}
        return Schedule(self.name, problem, placements, leases)


def _renamed(setting: Setting) -> Setting:
    """Return the same setting with names whose alphabetical order is the reverse."""
    jobs, cluster = setting.trace.jobs, setting.cluster
    hosts = dict(zip(cluster.hosts, backwards(cluster.hosts, "z"), strict=True))
    new = replace(jobs, names=backwards(jobs.names, "y"), tenants=backwards(jobs.tenants, "x"))
    outages = tuple(replace(each, host=hosts[each.host]) for each in setting.trace.outages)
    return replace(setting, cluster=replace(cluster, hosts=tuple(hosts.values())), trace=Trace(new, outages))


def _same_records(one: Sequence[Round], other: Sequence[Round]) -> None:
    for left, right in zip(one, other, strict=False):
        if left != right:
            differ = [each.name for each in fields(left) if getattr(left, each.name) != getattr(right, each.name)]
            raise AssertionError(f"round {left.index} differs in {differ}")
    assert len(one) == len(other), f"{len(one)} rounds, and {len(other)}"


def _same_places(one: Schedule, other: Schedule) -> None:
    left, right = dict(one.placements), dict(other.placements)
    differ = {row: (left.get(row), right.get(row)) for row in {*left, *right} if left.get(row) != right.get(row)}
    assert not differ, f"{one.queue!r}: placements differ, row by row: {differ}"

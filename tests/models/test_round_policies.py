"""Every installed policy of rounds passes the conformance suite; the suite catches policies that should not pass."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fairopt.backends import Session
from fairopt.discovery import policies, policy
from fairopt.errors import WrongReturn
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem import Queue
from fairopt.proofs.verifier import runs as verify_run
from fairopt.simulation import Consolidated, Placement, Request, choose, placed
from fairopt.testing.round_suite import Lender, round_suite
from fairopt.testing.suite import Outcome

INSTALLED = [each.name for each in policies(Queue)]
#: Generated traces on which planted faults are searched for: with few, those that are `RARE` are not caught.
TRACES, FEW = 4, 2


@pytest.mark.parametrize("name", INSTALLED)
def test_policy_conforms(name: str, conformance: Callable[[object], None]) -> None:
    report = round_suite(verify_run.decide, settings=1).run([policy(name)])
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    conformance(f"round policy {name}: {counts} of {len(report.rows)} checks ('-' is not declared)")
    report.require_complete()


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTALLED)
def test_policy_conforms_on_300_traces(name: str) -> None:
    round_suite(verify_run.decide, settings=300).run([policy(name)]).require_complete()


#: Prints a digest of what every policy decides on a few settings.
DIGEST = """
import hashlib
from fairopt.discovery import policies, policy
from fairopt.problem import Queue
from fairopt.simulation import run, snapshot_text
from fairopt.testing.round_samples import sample_settings
for name in [each.name for each in policies(Queue)]:
    text = hashlib.sha256()
    for one in sample_settings(2, seed=7):
        for record in run(policy(name), one.trace, one.cluster, length=one.length, mechanics=one.mechanics, rounds=12):
            text.update(repr((record.ran, record.waiting, record.notes)).encode())
            text.update(snapshot_text(record.after).encode())
    print(name, text.hexdigest())
"""


@pytest.mark.slow
def test_decisions_do_not_depend_on_how_python_hashes_names() -> None:
    def digests(seed: str) -> dict[str, str]:
        environment = os.environ | {"PYTHONHASHSEED": seed}
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST], capture_output=True, text=True, env=environment, check=True
        )
        return dict(line.split() for line in ran.stdout.splitlines())

    one, other = digests("1"), digests("2")
    assert set(one) == set(INSTALLED)
    assert {name for name in one if one[name] != other[name]} == set()


@dataclass(frozen=True)
class Broken(Policy):
    """Places everybody in the queue's order, and is the base of what is wrong below."""

    problem: ClassVar[type] = Queue
    name: ClassVar[str] = "broken"
    source: ClassVar[str] = "nobody"
    placement: Placement = field(default_factory=Consolidated)

    def order(self, queue: Queue) -> list[int]:
        return list(range(len(queue)))

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        return self.schedule(problem, state)

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        return Schedule(self.name, queue, placed(queue, choose(queue, self.order(queue)), self.placement), state=state)


class Overbooking(Broken):
    """Puts everybody whom it chose on the first host of a type."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        first = {
            request.row: queue.cluster.of_type(request.gpu_types[0])[0] for request in choose(queue, self.order(queue))
        }
        spots = {row: ((host, int(queue.jobs.gpus[row])),) for row, host in first.items()}
        return Schedule(self.name, queue, dict(queue.leased) | spots)


class Tearing(Broken):
    """Starts gangs with the GPUs that are left."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        schedule = super().schedule(queue, state)
        torn = {row: tuple((host, min(gpus, 2)) for host, gpus in spots) for row, spots in schedule.placements.items()}
        return replace(schedule, placements=torn)


class Forgetful(Broken):
    """Knows of no lease."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        free = replace(queue, lease=queue.lease * 0)
        backwards = [row for row in reversed(range(len(queue))) if row not in queue.unschedulable]
        return Schedule(self.name, queue, placed(free, choose(free, backwards), self.placement))


class BlindToFailures(Broken):
    """Counts on hosts that are down."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        schedule = super().schedule(replace(queue, up=np.ones_like(queue.up)), state)
        return replace(schedule, queue=queue)


class Hasty(Broken):
    """Runs jobs on whatever is free, whether they can run there or not."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        gpu_types = tuple(range(len(queue.cluster.types)))
        rows = [row for row in range(len(queue)) if row not in queue.leased and row not in queue.unschedulable]
        return Schedule(self.name, queue, placed(queue, [Request(row, gpu_types) for row in rows], self.placement))


class Undecided(Broken):
    """Shuffles without a seed."""

    def order(self, queue: Queue) -> list[int]:
        return random.sample(range(len(queue)), len(queue))


@dataclass(frozen=True)
class Remembering(Broken):
    """Keeps in the object what belongs into the state: whoever ran last goes last."""

    memory: list[str] = field(default_factory=list)

    def order(self, queue: Queue) -> list[int]:
        order = sorted(range(len(queue)), key=lambda row: queue.jobs.names[row] in self.memory)
        self.memory[:] = [queue.jobs.names[row] for row in order[: len(order) // 2]]
        return order


@dataclass(frozen=True)
class Seen:
    """A state that `Unwritable` does not name."""

    count: int = 0


class Unwritable(Broken):
    """Has a state of a class that nobody can read."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        return super().schedule(queue, Seen(len(queue)))


class Dropping(Broken):
    """Never runs the first job of the trace."""

    def order(self, queue: Queue) -> list[int]:
        return [row for row in range(len(queue)) if queue.jobs.names[row] != "job-000"]


class Writing(Broken):
    """Writes into the queue."""

    def order(self, queue: Queue) -> list[int]:
        queue.remaining.setflags(write=True)
        queue.remaining[0] = queue.remaining[0] * 2
        return list(range(len(queue)))


class Overwriting(Broken):
    """Writes into the state that it is given."""

    def start(self, problem: Queue) -> Any:
        return {}

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        state[str(queue.index)] = 1
        return super().schedule(queue, state)


class Hoarding(Broken):
    """Keeps everybody who ever was there in its state."""

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        return super().schedule(queue, frozenset(state or ()) | frozenset(queue.jobs.names))


class Proud(Broken):
    """Divides by the number of jobs that can run."""

    def order(self, queue: Queue) -> list[int]:
        able = [row for row in range(len(queue)) if queue.allowed[row].any()]
        return able if 1 / len(able) else []


class Alphabetical(Broken):
    """Goes by names."""

    traits = frozenset({Trait.NAMELESS})

    def order(self, queue: Queue) -> list[int]:
        return sorted(range(len(queue)), key=lambda row: queue.jobs.names[row])


class Clocked(Broken):
    """Goes by the length of a round, and declares that it does not matter."""

    traits = frozenset({Trait.EVENTS})

    def order(self, queue: Queue) -> list[int]:
        return sorted(range(len(queue)), key=lambda row: queue.remaining[row] > queue.length)


class Lazy(Broken):
    """Runs one job at a time, and declares that it leaves nobody waiting, nor stops anybody."""

    traits = frozenset({Trait.WORK_CONSERVING, Trait.RUNS_TO_COMPLETION})

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        whole = super().schedule(queue, state)
        latest = sorted(set(whole.placements) - set(queue.leased))[-1:]
        kept = {row: spots for row, spots in whole.placements.items() if row in queue.leased or row in latest}
        return replace(whole, placements=kept)


class Mixing(Broken):
    """Lays gangs on whatever hosts come first, and declares that it keeps to one type."""

    traits = frozenset({Trait.ONE_TYPE})

    def schedule(self, queue: Queue, state: Any) -> Schedule:
        placements = dict(queue.leased)
        left = queue.free(placements)
        for row in set(range(len(queue))) - {*placements, *queue.unschedulable}:
            able = [host for host, gpu_type in enumerate(queue.cluster.gpu_type) if queue.suits[row, gpu_type]]
            ends = np.cumsum([0, *(left[host] for host in able)]).clip(max=queue.jobs.gpus[row])
            if ends[-1] == queue.jobs.gpus[row]:
                here = zip(able, np.diff(ends).tolist(), strict=True)
                placements[row] = tuple((host, gpus) for host, gpus in here if gpus)
                left = queue.free(placements)
        return Schedule(self.name, queue, placements)


class Rounding(Broken):
    """Goes by the last digits, which floats do not have."""

    traits = frozenset({Trait.SAME_IN_FLOATS})

    def order(self, queue: Queue) -> list[int]:
        return sorted(range(len(queue)), key=lambda row: hash(queue.remaining[row]) % 10007)


class Programless(Broken):
    """Declares a program, which it has not."""

    traits = frozenset({Trait.PROGRAM})


class Nameless(Broken):
    """Does not say where it is from."""

    source = ""


CAUGHT: Mapping[type[Broken], str] = {
    Overbooking: "every round is possible",
    Tearing: "every round is possible",
    Forgetful: "keeps leases that it did not give",
    BlindToFailures: "copes where nobody can run",
    Hasty: "every round is possible",
    Undecided: "run is a fold of decide",
    Remembering: "run is a fold of decide",
    Unwritable: "a run stopped and resumed is the same",
    Dropping: "everybody is done in the end",
    Writing: "leaves the queue and the state alone",
    Overwriting: "leaves the queue and the state alone",
    Hoarding: "forgets who is done",
    Proud: "copes where nobody can run",
    Alphabetical: "names do not matter",
    Clocked: "lengths of rounds do not matter",
    Lazy: "no gpu is idle for which somebody waits",
    Mixing: "gangs lie on one type",
    Rounding: "floats place like fractions",
    Programless: "backends agree",
    Nameless: "says what it is",
}
RARE = {Remembering, Clocked, Mixing, Undecided}


@pytest.mark.parametrize("kind", CAUGHT, ids=lambda kind: kind.__name__)
def test_the_suite_catches(kind: type[Broken]) -> None:
    suite = round_suite(verify_run.decide, settings=TRACES if kind in RARE else FEW)
    one = next(each for each in suite.checks if each.name == CAUGHT[kind])
    row = suite.run_one(kind(), one)
    assert row.outcome is Outcome.FAILED, row
    assert isinstance(row.error, WrongReturn) or not isinstance(row.error, TypeError | NameError), row


def test_whoever_declares_to_stop_nobody_is_held_to_it() -> None:
    suite = round_suite(verify_run.decide, settings=TRACES)
    one = next(each for each in suite.checks if each.name == "nobody who runs is stopped")
    assert suite.run_one(Lazy(), one).outcome is Outcome.FAILED


@pytest.mark.parametrize("policy", [Broken(), Lender()], ids=lambda policy: policy.name)
def test_what_the_broken_ones_are_made_of_is_not_broken(policy: Policy) -> None:
    round_suite(verify_run.decide, settings=FEW).run([policy]).require_complete()


def test_a_trait_that_is_not_declared_is_skipped_and_said_so() -> None:
    report = round_suite(verify_run.decide, settings=2).run([Broken()])
    of_rounds = {trait for policy in policies(Queue) for trait in policy.traits}
    assert len(of_rounds) == 7
    assert report.counts[Outcome.SKIPPED] == 7 + 2  # it claims nothing either
    assert "does not declare" in str(report)

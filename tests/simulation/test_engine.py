"""The engine in columns against the referee: the same changes and snapshots, for all policies, from any round on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import plain_rounds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.backends import Session
from fairopt.discovery import policies, policy
from fairopt.errors import NotSolved, WrongReturn
from fairopt.models import FifoQuota, LeastAttainedService, ShortestRemainingTimeFirst, ShortestServiceQueues, Themis
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Queue, Trace
from fairopt.problem.profile import Profile
from fairopt.program import Number
from fairopt.simulation import History, Mechanics, Setting, run
from fairopt.simulation.engine import Engine
from fairopt.testing.round_changes import check_engine as check_against
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.strategies import clusters, traces

check_engine = partial(check_against, referee=plain_rounds.Referee)
INSTALLED = [each.name for each in policies(Queue)]
#: Options under which schedules stand for other times than by default, and leases over several rounds.
OPTIONS: list[Policy] = [
    LeastAttainedService(thresholds=(30, 200, 700), by_start=True),
    LeastAttainedService(thresholds=(), skip=False),
    LeastAttainedService(thresholds=None),
    LeastAttainedService(promote=2),
    FifoQuota(pooled=True, overtake=True),
    FifoQuota(overtake=True, borrow=False),
    ShortestServiceQueues(random=True, gpu_time=False, wait_for_hosts=True),
    ShortestServiceQueues(per_gpu=True),
    Themis(lease=150, knob=0),
    Themis(average_contention=True, gang_share=True),
]


def called(rule: Policy) -> str:
    """Return a name that is the same in every process, as a representation with a function's address is not."""
    return re.sub(r" at 0x\w+", "", repr(rule))


#: The suite of policies of rounds asks the same of every installed one: `a schedule stands as long as it says`.
ASKED = [*(pytest.param(policy(name), marks=pytest.mark.slow) for name in INSTALLED), *OPTIONS]


@pytest.mark.parametrize("rule", ASKED, ids=called)
def test_the_engine_says_what_the_referee_says(rule: Policy) -> None:
    for number, setting in enumerate(sample_settings(2, seed=21)):
        check_engine(rule, setting.as_(float), cut=number or None)
        if number == 0:
            check_engine(rule, setting.as_(float), ask=True)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*map(policy, INSTALLED), *OPTIONS], ids=called)
def test_the_engine_says_what_the_referee_says_on_500_traces(rule: Policy) -> None:
    for number, setting in enumerate(sample_settings(500, seed=22, jobs=(3, 12), hosts=(2, 4))):
        check_engine(rule, setting.as_(float), cut=number % 5 or None, ask=number % 3 == 2)


AMOUNTS = (Fraction(0), Fraction(1), Fraction(5, 2))


@st.composite
def drawn(draw: st.DrawFn) -> Setting:
    """Draw settings in which ties are frequent, in Fractions or floats."""
    cluster = draw(clusters())
    restart, launch = draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS))
    mechanics = Mechanics(restart, launch, local_data=draw(st.booleans()))
    setting = Setting(cluster, draw(traces(cluster)), mechanics, Fraction(10))
    return setting.as_(draw(st.sampled_from([float, Fraction])))


@given(setting=drawn(), rule=st.sampled_from([policy(name) for name in INSTALLED] + OPTIONS), cut=st.integers(1, 9))
def test_on_drawn_settings(setting: Setting, rule: Policy, cut: int) -> None:
    try:
        check_engine(rule, setting, cut=cut)
    except NotSolved:  # a host is gone for good, or a quota is too small: the engine must say so, too
        with pytest.raises(NotSolved):
            list(Engine(rule, setting.trace, setting.cluster, length=setting.length, mechanics=setting.mechanics))


def _long_jobs(outages: tuple[Outage, ...] = ()) -> tuple[Trace, Cluster]:
    cluster = Cluster.uniform({"GPU": (2, 1)})
    jobs = Jobs.of(gpus=[1, 1, 1], work=[6000, 9000, 600], types=cluster.types, arrival=[0, 0, 3100])
    return Trace(jobs, outages).as_(float), cluster


@dataclass(frozen=True)
class Counted(ShortestRemainingTimeFirst):
    """Counts how often it is asked; in a list, because policies keep nothing in themselves."""

    name = "counted"
    asked: list[int] = field(default_factory=list)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        self.asked.append(problem.index)
        return super().decide(problem, state, solve)


def test_a_policy_is_asked_when_something_happens() -> None:
    trace, cluster = _long_jobs((Outage("GPU-1", 4000, 4100),))
    policy_ = Counted()
    changes = list(Engine(policy_, trace, cluster, length=300))
    # at first, after the arrival, after the failure, and after each completion
    assert policy_.asked == [0, 11, 13, 14, *policy_.asked[4:]]
    assert len(policy_.asked) < 10 < max(each.index for each in changes)
    every = Counted()
    assert list(Engine(every, trace, cluster, length=300, ask=True)) == changes
    assert every.asked == list(range(max(every.asked) + 1))


def test_nobody_is_asked_for_what_is_left_where_nobody_waits() -> None:
    cluster = Cluster.uniform({"GPU": (3, 1)})
    # 0.1 cannot be added up without rounding: rounds played in one step must end when rounds one by one do
    trace = Trace(Jobs.of(gpus=[1, 1, 1], work=[50, 333, 90], types=cluster.types)).as_(float)
    policy_ = Counted()
    done = {row: end for each in Engine(policy_, trace, cluster, length="0.1") for row, end in each.completed.items()}
    assert policy_.asked == [0]
    ends = {
        each.job: each.end for one in run(Counted(), trace, cluster, length="0.1") for each in one.ran if each.completed
    }
    assert {trace.jobs.names[row]: end for row, end in done.items()} == ends


@dataclass(frozen=True)
class Sized(ShortestRemainingTimeFirst):
    """Notes how many jobs it is asked about; ``says`` whether it tells how it would decide on newcomers."""

    name = "sized"
    says: bool = True
    asked: list[int] = field(default_factory=list)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        self.asked.append(len(problem))
        decided = super().decide(problem, state, solve)
        return decided if self.says else replace(decided, newcomers=None)


# two at first, then all with the third, if it is not said how that would be decided; the fourth finds no room
@pytest.mark.parametrize(("says", "asked"), [(True, [2, 4, 5]), (False, [2, 3, 4, 5])])
def test_nobody_is_asked_about_newcomers_where_the_policy_has_said_how(says: bool, asked: list[int]) -> None:
    cluster = Cluster.uniform({"GPU": (2, 2)})
    jobs = Jobs.of(
        gpus=[1, 1, 1, 2, 1], work=[6000] * 5, types=cluster.types, arrival=[0, 0, 1000, 2000, 3000], priority=[0] * 5
    )
    policy_ = Sized(says=says)
    wanted = History.of(Trace(jobs).as_(float), cluster, run(Sized(), Trace(jobs).as_(float), cluster, length=300))
    engine = Engine(policy_, Trace(jobs).as_(float), cluster, length=300)
    done = {jobs.names[row]: end for each in engine for row, end in each.completed.items()}
    assert done == wanted.completion
    assert policy_.asked[: len(asked)] == asked


@pytest.mark.parametrize("number", [float, Fraction])
def test_newcomers_that_nobody_asks_about_are_placed_as_by_the_policy(number: type) -> None:
    """Gangs over several hosts, ties, a slower type for some, estimates and datasets: as the referee has it."""
    cluster = Cluster.uniform({"old": (3, 4), "new": (2, 8)})
    count = 60
    jobs = Jobs.of(
        gpus=[1 + row * 7 % 6 + 8 * (row % 9 == 4) for row in range(count)],
        work=[100 + 37 * (row % 11) for row in range(count)],
        types=cluster.types,
        throughput=[[1, 2] if row % 3 else [1, Fraction(1, 3)] for row in range(count)],
        arrival=[400 * (row // 3) for row in range(count)],
        pattern=["intra" if row % 2 else "inter" for row in range(count)],
        dataset=["big" if row % 5 == 0 else "" for row in range(count)],
        dataset_size=[3] * count,
        estimate=[50 + 91 * (row % 7) for row in range(count)],
    )
    for mechanics in (Mechanics(30, 5, Fraction(3, 4)), Mechanics(local_data=True)):
        setting = Setting(cluster, Trace(jobs), mechanics, Fraction(60)).as_(number)
        counted = Counted()
        changes = list(Engine(counted, setting.trace, cluster, length=60, mechanics=mechanics))
        alone = [one for each in changes if each.index not in counted.asked for one in each.placed]
        assert bool(alone) != mechanics.local_data  # then loading depends on the host, and the policy is asked
        assert mechanics.local_data or max(len(one.spots) for one in alone) > 1
        check_engine(ShortestRemainingTimeFirst(), setting)


def test_stop_ends_the_run_after_a_round_and_iterating_goes_on() -> None:
    trace, cluster = _long_jobs()
    whole = list(Engine(ShortestRemainingTimeFirst(), trace, cluster, length=300))
    engine = Engine(ShortestRemainingTimeFirst(), trace, cluster, length=300)
    first = []
    for each in engine:
        first.append(each)
        engine.stop()
    assert (first, engine.index) == (whole[:1], 1)
    rest = list(Engine(ShortestRemainingTimeFirst(), trace, cluster, length=300, after=engine.snapshot()))
    ends = [{row: end for each in changes for row, end in each.completed.items()} for changes in (rest, whole)]
    assert ends[0] == ends[1]


class Interrupted(ShortestRemainingTimeFirst):
    """Is interrupted in the middle of a decision, once."""

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        if problem.index == 11 and not hasattr(Interrupted, "over"):
            Interrupted.over = True  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return super().decide(problem, state, solve)


def test_an_interruption_leaves_the_round_undone() -> None:
    trace, cluster = _long_jobs()
    engine = Engine(Interrupted(), trace, cluster, length=300)
    with pytest.raises(KeyboardInterrupt):
        list(engine)
    assert engine.index == engine.snapshot().index == 11
    done = {row: end for each in engine for row, end in each.completed.items()}
    assert done == {
        row: end for each in Engine(Interrupted(), trace, cluster, length=300) for row, end in each.completed.items()
    }


class Slower(Mechanics):
    """Jobs slow down with time: a speed that changes while a job stays where it is."""

    def speed(self, queue: Queue, row: int, spots: Any) -> Number:
        return super().speed(queue, row, spots) / (1 + queue.index)


def test_another_model_of_a_cluster_is_asked_in_every_round() -> None:
    trace, cluster = _long_jobs()
    setting = Setting(cluster, trace, Slower(), Fraction(300))
    check_engine(ShortestRemainingTimeFirst(), replace(setting, trace=Trace(trace.jobs.take([2])).as_(float)))


class Overbooking(ShortestRemainingTimeFirst):
    """Puts all jobs on the first host."""

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        return Schedule(self.name, problem, dict.fromkeys(range(len(problem)), ((0, 1),)))


def test_what_is_kept_of_jobs_whose_speed_changes_follows_the_jobs_present() -> None:
    grows = Profile.of([[1, 1, 32, 1]], [[0, 32, 1], [5, 32, "1/2"]])
    jobs = Jobs.of(gpus=[1] * 400, work=[10] * 400, types=["T"], arrival=range(0, 8000, 20), profiles=[grows] * 400)
    engine = Engine(ShortestRemainingTimeFirst(), Trace(jobs).as_(float), Cluster.uniform({"T": (1, 2)}), length=10)
    kept = [len(engine._courses) for changes in engine if changes.completed]
    assert len(kept) == 400
    assert 0 < max(kept) <= 110


def test_a_broken_schedule_is_refused_in_the_same_words() -> None:
    trace, cluster = _long_jobs()
    with pytest.raises(WrongReturn) as told:
        list(run(Overbooking(), trace, cluster, length=300))
    with pytest.raises(WrongReturn) as said:
        list(Engine(Overbooking(), trace, cluster, length=300))
    assert str(said.value) == str(told.value)
    # and where only the job that comes last is wrong
    late = replace(trace.jobs, arrival=np.array([0.0, 3000.0, 3100.0]))
    with pytest.raises(WrongReturn, match="round 10: host 'GPU-1' gives out 2 GPUs and has 1"):
        list(Engine(Overbooking(), Trace(late), cluster, length=300))

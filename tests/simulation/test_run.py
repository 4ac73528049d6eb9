"""The loop of rounds: a fold of `decide` that stops and goes on anywhere, and what happens in it, by hand."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from fairopt.backends import Session
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.errors import BadInput, NotSolved, WrongReturn
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.policy import Policy, Schedule, decide
from fairopt.problem import Cluster, Jobs, Outage, Queue, Spots, Trace
from fairopt.simulation import (
    Change,
    History,
    Mechanics,
    Round,
    advance,
    begin,
    next_queue,
    run,
    snapshot_from,
    snapshot_text,
)


@dataclass(frozen=True)
class Scripted(Policy):
    """Plays what it is told: by round, for each job that runs, its spots and, where it has one, its lease."""

    plan: tuple[Mapping[str, Spots], ...] = ()
    leases: tuple[Mapping[str, int], ...] = ()

    problem: ClassVar[type] = Queue
    name = "scripted"
    source = "none"

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        at = problem.index
        told = self.plan[at] if at < len(self.plan) else self.plan[-1] if self.plan else {}
        until = self.leases[at] if at < len(self.leases) else {}
        rows = {name: row for row, name in enumerate(problem.jobs.names)}
        return Schedule(
            self.name,
            problem,
            {rows[name]: spots for name, spots in told.items() if name in rows},
            leases={rows[name]: Fraction(end) for name, end in until.items() if name in rows},
        )


ON_A, ON_B = ((0, 1),), ((1, 1),)
TWO = Cluster.of(["T", "T"], [1, 1], hosts=["A", "B"])


def one_job(work: object = 100, **columns: object) -> Trace:
    return Trace(Jobs.of(gpus=[1], work=[work], types=["T"], names=["j"], **columns))  # type: ignore[arg-type]


def play(trace: Trace, *plan: Mapping[str, Spots], rounds: int | None = None, **options: Any) -> list[Round]:
    leases = options.pop("leases", ())
    return list(run(Scripted(plan, leases), trace, options.pop("cluster", TWO), length=10, rounds=rounds, **options))


# -- a fold that stops and goes on -----------------------------------------------------------------------------------
def sample() -> tuple[Trace, Cluster]:
    """Return 60 jobs of the Philly excerpt, with failures, on half of its cluster."""
    jobs = philly_trace(["K80", "V100"]).jobs.take(range(60))
    cluster = Cluster.uniform({"K80": (1, 3), "V100": (2, 3)}, bandwidth="1.25")
    outages = (Outage("V100-1", Fraction(1000), Fraction(4000)), Outage("K80-1", Fraction(3100), Fraction(3200)))
    return Trace(jobs, outages), cluster


MECHANICS = Mechanics(restart=Fraction(40), launch=Fraction(5), spread=Fraction(9, 10))


def test_run_is_a_fold_of_decide() -> None:
    trace, cluster = sample()
    policy = ShortestRemainingTimeFirst()
    folded, snapshot = [], begin(cluster)
    while (coming := next_queue(snapshot, trace, cluster, Fraction(300))) is not None:
        moved, queue = coming
        state = moved.state if moved.started else policy.start(queue)
        folded.append(advance(moved, trace, decide(policy, queue, state=state), MECHANICS))
        snapshot = folded[-1].after
    records = list(run(policy, trace, cluster, length=300, mechanics=MECHANICS))
    assert records == folded
    assert len(records) > 40
    assert any(ran.lost for record in records for ran in record.ran)
    assert any(record.unschedulable for record in records)


@pytest.mark.parametrize("number", [Fraction, float])
def test_a_run_stopped_after_any_round_goes_on_as_if_it_had_not_been(number: type) -> None:
    trace, cluster = sample()
    trace, policy = trace.as_(number), ShortestRemainingTimeFirst()
    whole = list(run(policy, trace, cluster, length=300, mechanics=MECHANICS))
    for at in range(len(whole)):
        snapshot = snapshot_from(snapshot_text(whole[at].after), policy.states)
        assert snapshot == whole[at].after
        # the next round is the same, after each round: so are all that follow
        following = run(policy, trace, cluster, length=300, mechanics=MECHANICS, after=snapshot, rounds=1)
        assert list(following) == whole[at + 1 : at + 2]


def test_floats_come_near_fractions_on_the_excerpt() -> None:
    trace, cluster = philly_trace(), philly_cluster()
    exact = next(iter(run(ShortestRemainingTimeFirst(), trace, cluster, length=300)))
    near = next(iter(run(ShortestRemainingTimeFirst(), trace.as_(float), cluster, length=300)))
    assert [ran.job for ran in exact.ran] == [ran.job for ran in near.ran]
    assert all(isinstance(ran.remaining, Fraction) for ran in exact.ran)
    assert all(isinstance(ran.remaining, float | np.floating) for ran in near.ran)


# -- by hand ---------------------------------------------------------------------------------------------------------
def test_table_1_of_fft() -> None:
    cluster = Cluster.uniform({"GPU1": (1, 1), "GPU0": (1, 1)})
    trace = Trace(Jobs.of(gpus=[1, 1], work=[16, 16], types=cluster.types, throughput=[[1, 8], [1, 8]]))
    history = History.of(trace, cluster, run(ShortestRemainingTimeFirst(), trace, cluster, length=1))
    assert dict(history.completion) == {"j1": 2, "j2": Fraction(15, 4)}
    assert history.rounds[2].migrations[0].before == ("GPU1",)


def test_setup_is_carried_over_rounds() -> None:
    records = play(one_job(), {"j": ON_A}, {"j": ON_B}, mechanics=Mechanics(restart=Fraction(25)), rounds=5)
    ran = [record.ran[0] for record in records]
    assert [each.setup for each in ran] == [0, 10, 10, 5, 0]
    assert [each.progress for each in ran] == [10, 0, 0, 5, 10]
    assert [each.change for each in ran] == [Change.START, Change.MIGRATE, Change.STAY, Change.STAY, Change.STAY]
    assert records[-1].after.present[0].remaining == 75
    assert records[-1].after.present[0].attained == 50


def test_what_is_left_of_a_setup_is_still_left_after_a_pause() -> None:
    records = play(one_job(), {"j": ON_A}, {}, {"j": ON_A}, mechanics=Mechanics(launch=Fraction(15)), rounds=3)
    assert records[0].after.present[0].setup == 5
    assert records[1].after.present[0].setup == 5
    assert records[2].ran[0].change is Change.RESUME
    assert records[2].ran[0].setup == 5  # a restart costs nothing here, and the launch is neither paid twice nor spared


def test_state_and_dataset_travel_over_the_slowest_link() -> None:
    cluster = Cluster.of(["T", "T"], [1, 1], hosts=["A", "B"], bandwidth=[2, 4])
    trace = one_job(state_size=[6], dataset=["d"], dataset_size=[12])
    mechanics = Mechanics(local_data=True)
    records = play(trace, {"j": ON_A}, {"j": ON_B}, {"j": ON_A}, cluster=cluster, mechanics=mechanics, rounds=3)
    # to A: 12 GB at 2; to B: 6 GB at 2 (A is the slower), 12 GB at 4; back to A: state only, the data is still there
    assert [record.ran[0].setup for record in records] == [6, 6, 3]


def test_a_job_is_done_within_a_round() -> None:
    (record,) = play(one_job(Fraction(7, 2)), {"j": ON_A})
    assert (record.ran[0].end, record.end, record.completed) == (Fraction(7, 2), 10, ("j",))
    assert record.after.present == {}


def test_a_failure_takes_the_rounds_work_along() -> None:
    jobs = one_job().jobs
    trace = Trace(jobs, (Outage("A", Fraction(15), Fraction(32)),))
    records = play(trace, {"j": ON_A}, {"j": ON_A}, {}, {}, {"j": ON_A}, rounds=5)
    lost = records[1].ran[0]
    assert (lost.end, lost.lost, lost.progress, lost.remaining) == (15, True, 0, 90)
    assert records[1].after.present[0].attained == 15
    assert [record.down for record in records] == [(), (), ("A",), ("A",), ()]
    assert [record.usable for record in records] == [2, 2, 1, 1, 2]
    assert records[4].ran[0].change is Change.RESUME
    with pytest.raises(WrongReturn, match="host 'A' gives out 1 GPUs and has 0"):
        play(trace, {"j": ON_A}, rounds=3)


@pytest.mark.parametrize(("begins", "lost"), [(14, True), (15, False), (20, False)])
def test_a_failure_at_or_after_the_end_loses_nothing(begins: int, lost: bool) -> None:
    trace = Trace(one_job(15).jobs, (Outage("A", Fraction(begins), Fraction(40)),))
    second = play(trace, {"j": ON_A}, rounds=2)[1].ran[0]
    assert (second.lost, second.completed) == (lost, not lost)


def test_a_lease_binds_until_it_ends_and_not_after() -> None:
    leased = ({"j": 30},)
    records = play(one_job(), {"j": ON_A}, {"j": ON_A}, {"j": ON_A}, {"j": ON_B}, leases=leased, rounds=1)
    assert records[0].ran[0].lease == 30
    keep = ({"j": 30}, {"j": 30}, {"j": 30})
    moved = play(one_job(), {"j": ON_A}, {"j": ON_A}, {"j": ON_A}, {"j": ON_B}, leases=keep, rounds=4)
    assert moved[3].ran[0].change is Change.MIGRATE
    with pytest.raises(WrongReturn, match="holds a lease"):
        play(one_job(), {"j": ON_A}, {"j": ON_B}, leases=leased, rounds=2)
    with pytest.raises(WrongReturn, match="holds a lease"):
        play(one_job(), {"j": ON_A}, {}, leases=leased, rounds=2)


def test_a_lease_ends_with_its_host() -> None:
    trace = Trace(one_job().jobs, (Outage("A", Fraction(5), Fraction(8)),))
    records = play(trace, {"j": ON_A}, {"j": ON_B}, leases=({"j": 90},), rounds=2)
    assert records[0].ran[0].lost
    assert records[1].ran[0].change is Change.MIGRATE


@pytest.mark.parametrize(
    ("spots", "says"),
    [
        (((0, 1),), "1 GPUs of the 2"),
        (((0, 1), (0, 1)), "not rising"),
        (((1, 1), (0, 1)), "not rising"),
        (((0, 2),), "gives out 2 GPUs and has 1"),
        (((0, 1), (2, 1)), "cannot run on type 'U'"),
    ],
)
def test_schedules_that_a_cluster_cannot_play_are_refused(spots: Spots, says: str) -> None:
    cluster = Cluster.of(["T", "T", "U"], [1, 1, 1])
    trace = Trace(Jobs.of(gpus=[2], work=[1], types=["T", "U"], throughput=[[1, 0]], names=["j"]))
    with pytest.raises(WrongReturn, match=says):
        play(trace, {"j": spots}, cluster=cluster)


# -- who is there ----------------------------------------------------------------------------------------------------
def test_nothing_happens_to_an_empty_trace() -> None:
    assert play(Trace(Jobs.of(gpus=[], work=[], types=["T"]))) == []


def test_misfits_are_reported_when_they_come_and_end_no_run() -> None:
    trace = Trace(Jobs.of(gpus=[9, 1, 3], work=[1, 1, 1], types=["T"], arrival=[0, 30, 55]))
    records = play(trace, {"j2": ON_A})
    assert [(record.index, record.arrived, tuple(record.unschedulable)) for record in records] == [
        (0, ("j1",), ("j1",)),
        (3, ("j2",), ("j1",)),
        (6, ("j3",), ("j1", "j3")),
    ]
    assert records[0].unschedulable["j1"] == "T: needs 9 GPUs of 2"
    assert records[2].waiting == ("j1", "j3")


def test_rounds_without_anybody_are_skipped_and_counted() -> None:
    trace = Trace(Jobs.of(gpus=[1, 1, 1], work=[1, 1, 1], types=["T"], arrival=[0, 1000, 2005]))
    records = play(trace, {"j1": ON_A, "j2": ON_A, "j3": ON_A})
    assert [(record.index, record.begin) for record in records] == [(0, 0), (100, 1000), (201, 2010)]


def test_a_policy_that_runs_nobody_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("fairopt.simulation.rounds"), "PATIENCE", 5)
    with pytest.raises(NotSolved, match="with jobs waiting: j"):
        play(one_job(), {})
    assert len(play(one_job(), {}, rounds=4)) == 4
    # a host that comes back may change things: the run goes on until then
    trace = Trace(one_job().jobs, (Outage("A", Fraction(0), Fraction(80)),))
    assert len(play(trace, {}, rounds=7)) == 7
    assert len(play(trace, {}, rounds=12)) == 12
    with pytest.raises(NotSolved):
        play(trace, {}, rounds=13)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"length": 0}, "length: got 0"),
        ({"cluster": Cluster.uniform({"U": (1, 1)})}, "throughputs for T; the cluster has U"),
        ({"trace": Trace(one_job().jobs, (Outage("C", Fraction(1), Fraction(2)),))}, "there is no host 'C'"),
    ],
)
def test_what_does_not_go_together_is_refused(change: Mapping[str, Any], says: str) -> None:
    given: dict[str, Any] = {"trace": one_job(), "cluster": TWO, "length": 10} | dict(change)
    with pytest.raises(BadInput, match=says):
        next(run(Scripted(), **given))

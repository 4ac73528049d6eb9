"""What `run` must not get wrong at the edges: time, failures, odd schedules, damaged and foreign snapshots."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction as F
from math import floor
from typing import Any, ClassVar

import pytest

from fairopt.backends import Session
from fairopt.errors import BadInput, NotSolved, WrongReturn
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.baselines.themis import Themis
from fairopt.models.fft.fft import FFT
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Queue, Trace
from fairopt.simulation import History, Mechanics, choose, run, snapshot_from, snapshot_text
from fairopt.simulation.measures import measure

SRTF = ShortestRemainingTimeFirst()
ONE = Cluster.uniform({"T": (1, 1)})


def jobs_of(**columns: Any) -> Jobs:
    return Jobs.of(**({"gpus": [1], "work": [100], "types": ["T"], "names": ["j"]} | columns))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("fairopt.simulation.rounds"), "PATIENCE", 5)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", [60, 65, 200])
def test_a_cluster_that_comes_back_after_long_is_no_stall(end: int) -> None:
    trace = Trace(jobs_of(), (Outage("T-1", F(0), F(end)),))
    records = list(run(SRTF, trace, ONE, length=10))
    assert records[-1].completed == ("j",)
    assert records[-1].ran[0].end == -floor(-F(end, 10)) * 10 + 100


@pytest.mark.usefixtures("impatient")
def test_misfits_one_after_the_other_are_no_stall() -> None:
    unschedulable = jobs_of(gpus=[9] * 8, work=[1] * 8, names=None, arrival=range(0, 80, 10))
    assert len(list(run(SRTF, Trace(unschedulable), ONE, length=10))) == 8


@pytest.mark.usefixtures("impatient")
def test_a_cluster_that_is_gone_for_good_is_a_stall_that_names_who_waits() -> None:
    jobs = jobs_of(gpus=[9] * 6 + [1], work=[1] * 7, names=[f"misfit-{n}" for n in range(6)] + ["able"])
    trace = Trace(jobs, (Outage("T-1", F(0), float("inf")),))
    with pytest.raises(NotSolved, match=r"waiting: able$"):
        list(run(SRTF, trace, ONE, length=10))


def test_rounds_that_are_skipped_in_floats_end_at_the_first_that_somebody_came_before() -> None:
    for over in (3, 7, 10, 11, 13):
        for times in range(1, 60):
            trace = Trace(jobs_of(arrival=[F(times, over)], work=[F(1, 1000)])).as_(float)
            (record,) = run(SRTF, trace, ONE, length=F(1, over))
            assert record.arrived == ("j",)
            assert record.begin >= float(F(times, over)) > record.begin - 1 / over - 1e-9
            assert record.index in (times, times + 1)


def test_outages_are_in_the_numbers_of_the_jobs() -> None:
    trace = Trace(jobs_of(), (Outage("T-1", 0.1, 3),))
    assert [type(moment) for each in trace.outages for moment in (each.begin, each.end)] == [F, F]
    (record,) = run(SRTF, trace, ONE, length=10, rounds=1)
    assert record.ran[0].end == F(1, 10)
    assert type(record.ran[0].end) is F
    rough = Trace(jobs_of().as_(float), (Outage("T-1", F(1, 10), float("inf")),))
    assert (rough.outages[0].begin, rough.outages[0].end) == (0.1, float("inf"))
    assert type(rough.outages[0].begin) is float


@dataclass(frozen=True)
class Told(Policy):
    """Decides what a function says."""

    say: Callable[[Queue], Schedule]
    problem: ClassVar[type] = Queue
    name = "told"
    source = "none"

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        return self.say(problem)


@pytest.mark.parametrize(
    ("placements", "says"),
    [
        ({0: ((-1, 1),)}, "host -1; there are 1"),
        ({0: ((7, 1),)}, "host 7; there are 1"),
        ({7: ((0, 1),)}, "no job in row 7"),
        ({-1: ((0, 1),)}, "no job in row -1"),
    ],
)
def test_what_is_not_there_cannot_be_scheduled(placements: Any, says: str) -> None:
    with pytest.raises(WrongReturn, match=says):
        next(run(Told(lambda queue: Schedule("told", queue, placements)), Trace(jobs_of()), ONE, length=10))


def test_half_a_gpu_is_none() -> None:
    pair = Cluster.uniform({"T": (2, 1)})
    halves = Told(lambda queue: Schedule("told", queue, {0: ((0, 0.5), (1, 0.5))}))  # type: ignore[dict-item]
    with pytest.raises(WrongReturn, match="of the 1 that it needs"):
        next(run(halves, Trace(jobs_of()), pair, length=10))


def test_a_lease_is_not_cut_short() -> None:
    def say(queue: Queue) -> Schedule:
        return Schedule("told", queue, {0: ((0, 1),)}, leases={0: F(100) if queue.index == 0 else F(5)})

    with pytest.raises(WrongReturn, match="until 100, cut short to 5"):
        list(run(Told(say), Trace(jobs_of()), ONE, length=10))


def test_a_schedule_is_of_the_queue_that_was_asked_about() -> None:
    nearly_done = Told(lambda queue: Schedule("told", replace(queue, remaining=queue.remaining / 100), {0: ((0, 1),)}))
    with pytest.raises(WrongReturn, match="another queue"):
        next(run(nearly_done, Trace(jobs_of()), ONE, length=10))


@pytest.mark.parametrize(
    "body",
    ['{"index": 1}', "{}", "[]", '{"index": "1", "now": 0, "arrived": 0, "present": {}, "held": []}'],
)
def test_a_damaged_snapshot_is_refused(body: str) -> None:
    with pytest.raises(BadInput, match="snapshot"):
        snapshot_from(f'{{"schema": 2, "snapshot": {body}}}', ())


def test_a_snapshot_of_an_earlier_fairopt_is_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"it has schema 1, and this fairopt reads schema 2. Begin the run anew"):
        snapshot_from('{"schema": 1, "snapshot": {"record": "Snapshot", "fields": {"index": 1}}}', ())


def test_a_snapshot_of_another_policy_is_refused() -> None:
    after = next(run(FFT(), Trace(jobs_of()), ONE, length=10)).after
    assert snapshot_from(snapshot_text(after), FFT.states) == after
    with pytest.raises(BadInput, match="it holds a 'FFTState', which is no state of this policy"):
        snapshot_from(snapshot_text(after), SRTF.states)


def test_a_snapshot_of_another_cluster_or_trace_is_refused() -> None:
    pair = Cluster.uniform({"T": (2, 1)})
    two = jobs_of(gpus=[1, 1], work=[100, 100], names=None)
    after = next(run(SRTF, Trace(two), pair, length=10)).after
    for jobs, cluster in ((two, ONE), (jobs_of(), pair)):
        with pytest.raises(BadInput, match="it is of 2 hosts and 2 jobs"):
            next(run(SRTF, Trace(jobs), cluster, length=10, after=after))


def test_nobody_has_arrived_in_a_run_of_no_rounds() -> None:
    found = measure(History.of(Trace(jobs_of(arrival=[50])), ONE, ()))
    assert (found.jobs, found.unfinished, found.first_wait.count) == (0, (), 0)


def test_a_run_that_was_stopped_before_everybody_came_has_no_makespan() -> None:
    trace = Trace(jobs_of(gpus=[1, 1], work=[5, 5], names=None, arrival=[0, 95]))
    assert measure(History.of(trace, ONE, run(SRTF, trace, ONE, length=10, rounds=1))).makespan is None
    assert measure(History.of(trace, ONE, run(SRTF, trace, ONE, length=10))).makespan == 105


def test_a_type_without_the_memory_makes_no_job_short() -> None:
    cluster = Cluster.uniform({"a": (1, 1), "b": (1, 1)}, memory={"a": 100, "b": 1})
    # x would be done in 1 on b, if it fitted there; on a it takes 100, and y 60
    jobs = Jobs.of(gpus=[1, 1], work=[100, 60], types=["a", "b"], throughput=[[1, 100], [1, 1]], memory=[50, 50])
    assert [ran.job for ran in next(run(SRTF, Trace(jobs), cluster, length=10)).ran] == ["j2"]


def test_choosing_asks_for_the_types_of_those_only_who_find_room() -> None:
    cluster = Cluster.uniform({"small": (1, 4), "large": (1, 4)}, memory={"small": 1})
    queue = Queue.fresh(
        Jobs.of(gpus=[3] * 500, work=[1] * 500, types=cluster.types, memory=[2] * 500), cluster, length=1
    )
    asked: list[int] = []

    def gpu_types(queue: Queue, row: int) -> list[int]:
        asked.append(row)
        return [1]

    assert [request.row for request in choose(queue, range(500), gpu_types=gpu_types)] == [0]
    assert asked == [0]
    assert [request.row for request in choose(queue, range(500), gpu_types=gpu_types, skip=False)] == [0]


def test_a_type_that_is_too_small_makes_no_job_short_either() -> None:
    cluster = Cluster.uniform({"a": (1, 2), "b": (1, 1)})
    jobs = Jobs.of(gpus=[2, 2], work=[100, 60], types=["a", "b"], throughput=[[1, 100], [1, 1]])
    assert [ran.job for ran in next(run(SRTF, Trace(jobs), cluster, length=10)).ran] == ["j2"]
    costs = next(run(Themis(), Trace(jobs), cluster, length=10)).costs
    assert costs["largest finish-time fairness"] == F(1, 2)  # 100 alone on a, where two share the cluster


def test_a_queue_is_of_jobs_for_its_cluster() -> None:
    with pytest.raises(BadInput, match="throughputs for T; the cluster has U"):
        Queue.fresh(jobs_of(), Cluster.uniform({"U": (1, 1)}), length=1)
    with pytest.raises(BadInput, match="length: got 0"):
        Queue.fresh(jobs_of(), ONE, length=0)


def test_stopping_while_a_state_moves_makes_the_move_no_cheaper() -> None:
    pair = Cluster.of(["T", "T"], [1, 1], bandwidth=[2, 2])

    def say(queue: Queue) -> Schedule:
        spots = {0: ((0, 1),), 2: ()}.get(queue.index, ((1, 1),))  # stopped in round 2
        return Schedule("told", queue, {0: spots} if spots else {})

    trace = Trace(jobs_of(work=[500], state_size=[60]))  # 30 on the way, three rounds
    records = list(run(Told(say), trace, pair, length=10, rounds=6))
    assert [[ran.setup for ran in each.ran] for each in records] == [[0], [10], [], [10], [10], [0]]


def test_a_failure_while_data_are_copied_makes_the_copy_no_cheaper() -> None:
    cluster = Cluster.of(["T"], [1], bandwidth=[2])
    trace = Trace(jobs_of(dataset=["d"], dataset_size=[60]), (Outage("h1", F(1), F(2)),))
    records = list(run(SRTF, trace, cluster, length=10, rounds=5, mechanics=Mechanics(local_data=True)))
    assert [each.ran[0].setup for each in records] == [1, 10, 10, 10, 0]

"""Phases of jobs: what policies are told in each, that no run depends on them, files and records, what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction as F
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from fairopt import read_trace
from fairopt.backends import Session
from fairopt.errors import BadInput, NotCapable
from fairopt.models import FirstInFirstOut, ShortestRemainingTimeFirst
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace, write_trace
from fairopt.problem.phases import by_factor, factor_at, progress
from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import History, Mechanics, run
from fairopt.simulation.document import document
from fairopt.simulation.engine import run_continuous
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_record

ONE = Cluster.uniform({"V100": (1, 2)})
#: The first does 10 units as 10, the next 20 as 60, and the last 30 as 15.
PHASES: list[Any] = [{10: 3, 30: "1/2"}, None]


def trace(**more: Any) -> Trace:
    told = {"phases": PHASES, "gpus": [1, 1], "work": [60, 45], "types": ["V100"], "names": ["a", "b"]} | more
    return Trace(Jobs.of(**told))


@dataclass(frozen=True)
class Listens(Policy):
    """Runs all jobs, and keeps what it is told: work, what remains, throughput."""

    problem = Queue
    name = "listens"
    told: ClassVar[list[tuple[Any, ...]]] = []

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        jobs = problem.jobs
        self.told.append((jobs.work[0], problem.remaining[0], jobs.throughput[0, 0], jobs.phases[0]))
        return Schedule(self.name, problem, dict.fromkeys(range(len(problem)), ((0, 1),)))


@pytest.mark.parametrize("seed", range(50))
def test_progress_is_the_integral_of_the_factors(seed: int) -> None:
    random = Random(seed)
    phases = tuple((F(mark), F(random.randint(1, 9), 2)) for mark in sorted(random.sample(range(1, 50), 4)))
    done = F(random.randint(0, 120), 2)
    steps = [F(at, 4) for at in range(int(done * 4))]
    assert progress(done, phases) == sum((factor_at(step, phases) / 4 for step in steps), F(0))
    marks = tuple((progress(mark, phases), factor) for mark, factor in phases)
    made = progress(done, phases)
    assert sum(by_factor(made, marks).values()) == made
    assert factor_at(made, marks) == factor_at(done, phases)


def test_a_policy_is_told_progress_and_the_speed_of_now() -> None:
    Listens.told.clear()
    list(run(Listens(), trace(), ONE, length=10, rounds=5))
    marks = ((10, 3), (70, F(1, 2)))
    assert Listens.told == [
        (85, 85, 1, marks),
        (85, 75, 3, marks),
        (85, 45, 3, marks),
        (85, 15, F(1, 2), marks),
        (85, 10, F(1, 2), marks),
    ]


def test_an_estimate_scales_what_is_told() -> None:
    Listens.told.clear()
    list(run(Listens(), trace(estimate=[120, 45]), ONE, length=10, rounds=2))
    assert [each[:3] for each in Listens.told] == [(170, 170, 1), (170, 150, 3)]


@pytest.mark.parametrize("number", [F, float])
def test_no_run_depends_on_phases_where_the_policy_does_not(number: type) -> None:
    plain, phased = (trace(phases=each).as_(number) for each in (None, PHASES))
    one, other = (list(run(FirstInFirstOut(), each, ONE, length=7)) for each in (plain, phased))
    assert [each.ran for each in one] == [each.ran for each in other]


def test_who_would_be_done_first_by_the_speed_of_now_goes_first() -> None:
    # after 20 s the first has 45 of 85 left at 3 a second, 15 s as it seems and 40 in truth; the second takes 16
    late = trace(work=[60, 16], arrival=[0, 20], gpus=[2, 2])
    ran = [[each.job for each in record.ran] for record in run(ShortestRemainingTimeFirst(), late, ONE, length=10)]
    assert ran[2] == ["a"]
    plain = trace(work=[60, 16], arrival=[0, 20], gpus=[2, 2], phases=None)
    assert [each.job for each in list(run(ShortestRemainingTimeFirst(), plain, ONE, length=10))[2].ran] == ["b"]


def test_files_hold_phases(tmp_path: Path) -> None:
    for suffix in ("toml", "json"):
        write_trace(trace(), tmp_path / f"trace.{suffix}")
        assert read_trace(tmp_path / f"trace.{suffix}", ["V100"]).jobs.phases == trace().jobs.phases
    with pytest.raises(BadInput, match=r"there are jobs with phases.*\.toml or \.json"):
        write_trace(trace(), tmp_path / "trace.csv")


@pytest.mark.parametrize("number", [F, float])
def test_records_hold_phases(number: type, tmp_path: Path) -> None:
    jobs, path = trace().as_(number), tmp_path / "run.jsonl"
    how: dict[str, Any] = {"length": 10, "mechanics": Mechanics()}
    *_, last = records = list(run(FirstInFirstOut(), jobs, ONE, length=10))
    with Recorder(path, header("fifo", jobs, ONE, **how), jobs, ONE) as recorder:
        recorder.keep()
        for each in records:
            recorder.add(each.changes)
        recorder.end(last.after)
    assert read_record(path).trace.jobs.phases == jobs.jobs.phases
    near = F(0) if number is F else F(1, 10**9)
    assert judge(path.read_text(encoding="utf-8"), near)[0] == []
    told = document(History.of(jobs, ONE, records), Mechanics(), 10, "fifo")
    assert judge(json.dumps(told), near)[0] == []


@pytest.mark.parametrize("phases", [[[30, 1], [10, 2]], [[60, 1]], [[0, 1]], [[10, 0]], [[10]], [[10, 1], [10, 2]]])
def test_the_verifier_refuses_phases_that_cannot_be(phases: Any) -> None:
    told = document(
        History.of(trace(), ONE, list(run(FirstInFirstOut(), trace(), ONE, length=10))), Mechanics(), 10, "x"
    )
    told["trace"]["jobs"][0]["phases"] = phases
    with pytest.raises(Unreadable):
        judge(json.dumps(told), F(0))


@pytest.mark.parametrize(
    ("phases", "says"),
    [
        ({0: 2}, r"phases, after 0: got 0"),
        ({60: 2}, r"phases, after 60: all of the work is 60"),
        ({10: 0}, r"phases, after 10: got 0"),
        ([[10, 2], ["10.0", 3]], r"two phases begin there"),
        ([[10, 2, 3]], r"Give pairs of work and factor"),
        ({"x": 2}, r"'x'"),
    ],
)
def test_bad_phases_are_refused(phases: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        trace(phases=[phases, None])


def test_jobs_keep_their_phases() -> None:
    jobs = trace(arrival=[5, 0]).jobs
    assert jobs.names == ("b", "a")
    assert jobs.phases == ((), ((10, 3), (30, F(1, 2))))
    assert jobs.take([1]).phases == jobs.phases[1:]
    assert jobs.as_(float).phases[1] == ((10.0, 3.0), (30.0, 0.5))
    assert trace(phases=[None, {}]).jobs.phases == ()
    assert replace(jobs, phases=()).phases == ()


def test_continuous_time_is_refused() -> None:
    with pytest.raises(NotCapable, match="jobs with phases need rounds"):
        list(run_continuous(FirstInFirstOut(), trace(), ONE))

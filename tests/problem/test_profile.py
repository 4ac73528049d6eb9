"""Profiles: goodput against every batch, speeds that change within rounds, what policies are told, files, refusals."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction as F
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from drawn_seeds import seeds
from plain_rounds import run as plain_run

from fairopt import read_trace
from fairopt.backends import Session
from fairopt.errors import BadInput, NotCapable
from fairopt.models import FirstInFirstOut, ShortestRemainingTimeFirst, Sia
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace, write_trace
from fairopt.problem.profile import Profile, made, takes
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import History, Mechanics, run
from fairopt.simulation.document import document
from fairopt.simulation.engine import Engine
from fairopt.simulation.playing import run_continuous
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_record
from fairopt.testing.round_samples import sample_settings

ONE = Cluster.uniform({"V100": (1, 2)})
#: Does 10 units at 1, the next 60 at 3, and then goes at 1/2; with two GPUs always twice as fast.
GROWS = Profile.of([[1, 1, 32, 1], [2, 1, 32, 2]], [[10, 32, 3], [70, 32, "1/2"]])


def trace(**more: Any) -> Trace:
    told = {"profiles": [GROWS, None], "gpus": [1, 1], "work": [85, 45], "types": ["V100"], "names": ["a", "b"]} | more
    return Trace(Jobs.of(**told))


def drawn(random: Random, own: int, types: int) -> Profile:
    """Return a profile with several sizes, hosts, batches and phases, one size being ``own``."""
    rows = [
        (gpus, hosts, batch, *(F(random.randint(1, 12), 4) for _ in range(types)))
        for gpus in {own, *random.sample((1, 2, 3, 4), 2)}
        for hosts in range(1, min(gpus, random.randint(1, 2)) + 1)
        for batch in (8, 32)
    ]
    marks = random.sample([F(each, 3) for each in range(1, 4000)], random.randint(0, 4))
    efficiency = [(mark, random.choice((8, 32)), F(random.randint(1, 9), 4)) for mark in (0, *marks)]
    return Profile.of(rows, efficiency, restart=random.choice((None, 7)))


class Listens(Policy):
    """Runs all jobs, and keeps what it is told: work, what remains, throughput."""

    problem = Queue
    name = "listens"
    told: ClassVar[list[tuple[Any, ...]]] = []

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        jobs = problem.jobs
        self.told.append((jobs.work[0], problem.remaining[0], jobs.throughput[0, 0]))
        return Schedule(self.name, problem, dict.fromkeys(range(len(problem)), ((0, 1),)))


@dataclass(frozen=True)
class AnySize(Policy):
    """Gives jobs sizes that are drawn anew every few rounds, on hosts as they come."""

    problem = Queue
    name = "any-size"
    seed: int = 0

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        random, left, placements = Random(f"{self.seed} {problem.index // 3}"), problem.free(), {}
        for row in range(len(problem)):
            gpus, wanted = random.choice(problem.jobs.sizes(row)), []
            gpu_type = random.choice(problem.open_to(row) or [-1])
            for host in problem.hosts(gpu_type) if gpu_type >= 0 else ():
                take = min(int(left[host]), gpus - sum(each for _, each in wanted))
                wanted += [(host, take)] if take else []
            if sum(each for _, each in wanted) == gpus:
                placements[row] = tuple(wanted)
                for host, each in wanted:
                    left[host] -= each
        return Schedule(self.name, problem, placements)


@pytest.mark.parametrize("seed", range(50))
def test_goodput_is_the_most_that_any_batch_makes(seed: int) -> None:
    random = Random(seed)
    profile = drawn(random, 2, 2)
    done, gpus, hosts = F(random.randint(0, 4000), 3), random.choice(profile.sizes), random.randint(1, 4)
    known = sorted({on for size, on, *_ in profile.throughput if size == gpus})
    on = max([each for each in known if each <= hosts], default=known[0])
    best = [F(0), F(0)]
    for size, there, batch, *speeds in profile.throughput:
        if (size, there) == (gpus, on):
            held = [(after, factor) for after, each, factor in profile.efficiency if each == batch and after <= done]
            worth = max(held)[1] if held else 1
            best = [max(one, speed * worth) for one, speed in zip(best, speeds, strict=True)]
    phase = profile.phase(done)
    assert list(profile.speed(phase, gpus, hosts)) == best
    chosen = profile.batch(phase, gpus, hosts, 1)
    assert (gpus, on, chosen) in {row[:3] for row in profile.throughput}


@pytest.mark.parametrize("seed", range(50))
def test_work_is_the_integral_of_the_speeds(seed: int) -> None:
    random = Random(seed)
    marks = [0, *sorted(random.sample(range(1, 50), 4))]
    course = tuple((F(mark), F(random.randint(1, 9), 2)) for mark in marks)
    done, time = F(random.randint(0, 60), 2), F(random.randint(1, 60), 3)
    more = made(course, done, time)
    assert takes(course, done, done + more) == time
    # a small step is at the speed of where it begins
    step, at = F(1, 10**6), done
    assert made(course, at, step) == step * [speed for mark, speed in course if mark <= at][-1]
    assert made(course, done, time) == made(course, done, time / 3) + made(
        course, done + made(course, done, time / 3), 2 * time / 3
    )


@pytest.mark.parametrize("number", [F, float])
@pytest.mark.parametrize("seed", seeds(4, 12))
def test_engine_plain_rounds_and_verifier_agree(seed: int, number: type) -> None:
    """On clusters of several types and hosts with outages, leases and costs of moving, where sizes change."""
    random = Random(seed)
    [setting] = sample_settings(1, seed=seed)
    jobs = setting.trace.jobs
    # a job with a profile has the throughput that this says
    profiles = [drawn(random, gpus, len(jobs.types)) if random.random() < 0.8 else None for gpus in jobs.gpus.tolist()]
    own = [
        list(each.speed(0, gpus, 1)) if each else row
        for each, gpus, row in zip(profiles, jobs.gpus.tolist(), jobs.throughput.tolist(), strict=True)
    ]
    table = jobs.throughput.copy()
    table[:] = own
    told = Trace(replace(jobs, throughput=table, profiles=tuple(profiles)), setting.trace.outages).as_(number)
    how: Any = {"length": setting.length, "mechanics": setting.mechanics, "rounds": 25}
    policy = AnySize(seed)
    records = list(run(policy, told, setting.cluster, **how))
    plain = list(plain_run(policy, told, setting.cluster, **how))
    whole = [(each.ran, each.waiting, each.after.present) for each in records]
    if number is F:
        assert whole == [(each.ran, each.waiting, each.after.present) for each in plain]
    else:
        ends = [{ran.job: ran.end for ran in each.ran} for each in plain]
        assert [{ran.job: pytest.approx(ran.end) for ran in each.ran} for each in records] == ends
    engine = Engine(policy, told, setting.cluster, **how)
    list(engine)
    assert engine.snapshot().present == records[-1].after.present
    near = F(0) if number is F else F(1, 10**6)
    written = document(History.of(told, setting.cluster, records), setting.mechanics, setting.length, policy.name)
    assert judge(json.dumps(written), near)[0] == []


def test_a_run_goes_on_from_a_snapshot_in_any_phase() -> None:
    whole = list(run(FirstInFirstOut(), trace(), ONE, length=7))
    for record in whole[:-1]:
        [after, *_] = run(FirstInFirstOut(), trace(), ONE, length=7, after=record.after, rounds=1)
        assert after.ran == whole[record.index + 1].ran


def test_by_hand() -> None:
    # 10 at 1, 60 at 3, 15 at 1/2: after 10, 30 and 60 s
    records = list(run(FirstInFirstOut(), trace(), ONE, length=25))
    ran = [next(each for each in record.ran if each.job == "a") for record in records]
    assert [(each.speed, each.progress, each.end) for each in ran] == [(1, 55, 25), (3, F(25), 50), (F(1, 2), 5, 60)]
    assert trace().jobs.mean_speed(0) == [F(85, 60)]


def test_a_policy_is_told_the_speed_of_now() -> None:
    Listens.told.clear()
    list(run(Listens(), trace(), ONE, length=10, rounds=5))
    assert Listens.told == [(85, 85, 1), (85, 75, 3), (85, 45, 3), (85, 15, F(1, 2)), (85, 10, F(1, 2))]
    Listens.told.clear()
    list(run(Listens(), trace(estimate=[170, 45]), ONE, length=10, rounds=2))
    assert Listens.told == [(170, 170, 1), (170, 150, 3)]


def test_who_would_be_done_first_by_the_speed_of_now_goes_first() -> None:
    # after 20 s the first has 45 of 85 left at 3 a second, 15 s as it seems and 40 in truth; the second takes 16
    grows = Profile.of([[2, 1, 1, 1]], GROWS.efficiency and [[10, 1, 3], [70, 1, "1/2"]])
    late = trace(work=[85, 16], arrival=[0, 20], gpus=[2, 2], profiles=[grows, None])
    ran = [[each.job for each in record.ran] for record in run(ShortestRemainingTimeFirst(), late, ONE, length=10)]
    assert ran[2] == ["a"]


def test_sia_goes_by_the_goodput_of_now() -> None:
    """A larger batch is worth more later, and only then is a second GPU."""
    later = Profile.of([[1, 1, 8, 4], [2, 1, 16, 6]], [[0, 16, "1/2"], [20, 16, 1]])
    records = list(run(Sia(restart=0), trace(profiles=[later, None], arrival=[0, 600]), ONE, length=5))
    assert [sum(n for _, n in each.ran[0].spots) for each in records[:3]] == [1, 2, 2]


def test_a_job_restarts_in_its_own_time() -> None:
    own = Profile.of([[1, 1, 1, 1], [2, 1, 1, 2]], restart=3)
    rounds = list(run(AnySize(3), trace(profiles=[own, own]), ONE, length=5, mechanics=Mechanics(restart=1, launch=2)))
    spent = {each.setup for record in rounds for each in record.ran if each.change.value in ("resume", "migrate")}
    first = {each.setup for record in rounds for each in record.ran if each.change.value == "start"}
    assert (spent, first) == ({3}, {3})


@pytest.mark.parametrize("number", [F, float])
def test_records_hold_profiles(number: type, tmp_path: Path) -> None:
    jobs, path = trace().as_(number), tmp_path / "run.jsonl"
    how: dict[str, Any] = {"length": 10, "mechanics": Mechanics()}
    *_, last = records = list(run(FirstInFirstOut(), jobs, ONE, length=10))
    with Recorder(path, header("fifo", jobs, ONE, **how), jobs, ONE) as recorder:
        recorder.keep()
        for each in records:
            recorder.add(each.changes)
        recorder.end(last.after)
    again = read_record(path)
    assert again.trace.as_(number).jobs.profiles == jobs.jobs.profiles
    assert [each.ran for each in again.rounds()] == [each.ran for each in records]
    near = F(0) if number is F else F(1, 10**9)
    text = path.read_text(encoding="utf-8")
    assert judge(text, near)[0] == []
    faster = (
        text.replace("[1,1,32,1]", "[1,1,32,2]").replace("[1.0,1.0", "[1,1").replace("[1,1,32.0,1.0]", "[1,1,32.0,2.0]")
    )
    assert faster != text
    assert judge(faster, near)[0] != []


def test_files_hold_profiles(tmp_path: Path) -> None:
    two = Profile.of([[1, 1, 8, 4, 1], [2, 2, 8, 6, 3]], [[20, 8, "1/3"]], restart=30)
    jobs = Jobs.of(profiles=[two, None, two], gpus=[1, 1, 2], work=[85, 45, 9], types=["V100", "K80"],
                   throughput=[None, [1, 1], None])  # fmt: skip
    for suffix in ("toml", "json"):
        write_trace(Trace(jobs), tmp_path / f"trace.{suffix}")
        again = read_trace(tmp_path / f"trace.{suffix}", ["V100", "K80"]).jobs
        assert again.profiles == jobs.profiles
        assert again.throughput.tolist() == jobs.throughput.tolist()
        [turned, *_] = read_trace(tmp_path / f"trace.{suffix}", ["K80", "V100"]).jobs.profiles
        assert turned == two.take([1, 0])
    with pytest.raises(BadInput, match=r"there are jobs with profiles.*\.toml or \.json"):
        write_trace(trace(), tmp_path / "trace.csv")
    text = (tmp_path / "trace.toml").read_text(encoding="utf-8")
    for old, new, says in (
        ('profile = "profile1"', 'profile = "profile2"', "there is no profile 'profile2'"),
        ("[1, 1, 8, 4, 1]", "[1, 1, 8, 4]", "row 2: got 5 numbers"),
        ("[1, 1, 8, 4, 1]", "[1, 2, 8, 4, 1]", "row 1: 2 hosts for 1 GPUs"),
    ):
        assert old in text
        (tmp_path / "bad.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(BadInput, match=says):
            read_trace(tmp_path / "bad.toml", ["V100", "K80"])


@pytest.mark.parametrize(
    ("rows", "efficiency", "says"),
    [
        ([], [], "0 and 0 rows"),
        ([[1, 1, 1]], [], "throughput, row 1: got 3 numbers"),
        ([[0, 1, 1, 1]], [], "row 1, GPUs: got 0"),
        ([["two", 1, 1, 1]], [], "row 1, GPUs: got 'two'"),
        ([[1, 1, 0, 1]], [], "row 1, batch: got 0"),
        ([[1, 1, 1, -1]], [], "row 1: got -1"),
        ([[1, 1, 1, 1], [1, 1, 1, 2]], [], "row 2: these GPUs, hosts and batch stand twice"),
        ([[1, 1, 1, 1]], [[0, 1]], "efficiency, row 1: got 2 numbers"),
        ([[1, 1, 1, 1]], [[0, 2, 1]], "there is no batch 2"),
        ([[1, 1, 1, 1]], [[0, 1, 0]], "row 1: got 0"),
        ([[1, 1, 1, 1]], [[5, 1, 2], ["5.0", 1, 3]], "two factors of a batch begin there"),
    ],
)
def test_bad_profiles_are_refused(rows: Any, efficiency: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Profile.of(rows, efficiency)


def test_jobs_that_cannot_have_their_profile_are_refused() -> None:
    with pytest.raises(BadInput, match=r"job 1 \('a'\), gpus: 3 GPUs are not in its profile"):
        trace(gpus=[3, 1])
    with pytest.raises(BadInput, match="1 throughput for 2 types"):
        trace(types=["V100", "K80"])
    with pytest.raises(BadInput, match=r"throughput: got .*Leave it out, or give 1"):
        trace(throughput=[[2], [1]])
    with pytest.raises(BadInput, match=r"profile: got 3.*Profile.of"):
        trace(profiles=[3, None])
    with pytest.raises(NotCapable, match="jobs whose speed changes need rounds"):
        list(run_continuous(FirstInFirstOut(), trace(), ONE))


def test_jobs_keep_their_profiles() -> None:
    jobs = trace(arrival=[5, 0]).jobs
    assert (jobs.names, jobs.profiles) == (("b", "a"), (None, GROWS))
    assert jobs.take([1]).profiles == (GROWS,)
    assert jobs.as_(float).profiles[1] == GROWS.as_(float)
    assert trace(profiles=[None, None]).jobs.profiles == ()
    shared = trace(profiles=[GROWS, GROWS]).as_(float).jobs
    assert shared.profiles[0] is shared.profiles[1]

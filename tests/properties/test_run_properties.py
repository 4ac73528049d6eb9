"""Properties of runs: each agrees with its bare definition, decided from the trace and the records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.compare import verify
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Jobs, Market, Trace
from fairopt.properties import Answer, EnvyFreeness
from fairopt.properties.property import SlackCase
from fairopt.properties.runs.lease_kept import LeaseKept, promised
from fairopt.properties.runs.no_starvation import NoStarvation
from fairopt.properties.runs.run_property import BOTH, ONE, TWO_GPUS, RunProperty, jobs, scripted
from fairopt.properties.runs.sharing_incentive_over_time import SharingIncentiveOverTime
from fairopt.properties.runs.work_conservation_over_time import WorkConservationOverTime
from fairopt.simulation import History, Setting
from fairopt.simulation.gpu_time import time_on_whole_cluster
from fairopt.testing.run_property_suite import cases, of_runs, run_property_suite


@pytest.mark.parametrize("each", of_runs(), ids=lambda each: each.name)
def test_property_conforms(each: RunProperty, conformance: Callable[[object], None]) -> None:
    report = run_property_suite().run([each])
    conformance(f"property {each.name}: {report.ran(each.name)} of {len(report.checks)} checks ran")
    report.require_complete()


def test_a_property_of_runs_must_say_its_cases() -> None:
    assert RunProperty.__abstractmethods__ == {"cases"}


# -- brute force ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Told:
    """What a run says of its jobs, read from the records without any of the code that is tested."""

    history: History

    def able(self, name: str) -> list[int]:
        jobs, cluster = self.history.trace.jobs, self.history.cluster
        row = jobs.names.index(name)
        total = {
            kind: sum(int(g) for g, k in zip(cluster.gpus, cluster.gpu_type, strict=True) if k == kind)
            for kind in range(len(cluster.types))
        }
        return [
            kind
            for kind in total
            if jobs.throughput[row, kind] > 0
            and jobs.memory[row] <= cluster.memory[kind]
            and jobs.gpus[row] <= total[kind]
        ]

    def done(self, name: str) -> Fraction | None:
        ends = [ran.end for record in self.history.rounds for ran in record.ran if ran.job == name and ran.completed]
        return Fraction(ends[0]) if ends else None

    def own_part(self, name: str, present: Fraction) -> Fraction:
        """W over the speed of 1/N of the time on each type, the fastest first, whole gangs only."""
        jobs, cluster = self.history.trace.jobs, self.history.cluster
        row = jobs.names.index(name)
        left, speed = Fraction(1), Fraction(0)
        for kind in sorted(self.able(name), key=lambda kind: -jobs.throughput[row, kind]):
            gpus = sum(int(g) for g, k in zip(cluster.gpus, cluster.gpu_type, strict=True) if k == kind)
            part = min(left, Fraction(gpus) / (present * int(jobs.gpus[row])))
            speed, left = speed + part * jobs.throughput[row, kind], left - part
        return Fraction(jobs.work[row] / speed)

    def mean_present(self, begin: Fraction, end: Fraction) -> Fraction:
        area = Fraction(0)
        for name, arrival in zip(self.history.trace.jobs.names, self.history.trace.jobs.arrival, strict=True):
            if self.able(name):
                done = self.done(name)
                area += max(min(end, end if done is None else done) - max(begin, arrival), Fraction(0))
        return area / (end - begin)

    def moments(self) -> list[Fraction]:
        records = self.history.rounds
        found = {moment for record in records for moment in (record.begin, record.end)}
        found |= {ran.end for record in records for ran in record.ran}
        return sorted(found | {arrival for arrival in self.history.trace.jobs.arrival if arrival < records[-1].end})


def starved(history: History) -> bool:
    """Whether at some event a job has waited, since a round passed it over, longer than its own part would take."""
    told = Told(history)
    waiting: dict[str, Fraction] = {}
    events = told.moments()
    for record in history.rounds:
        passed = {name for name in record.waiting if told.able(name)}
        waiting = {name: waiting.get(name, record.begin) for name in passed}
        for name, begin in waiting.items():
            for moment in events:
                if record.begin < moment <= record.end:
                    bound = told.own_part(name, told.mean_present(begin, moment))
                    if moment - begin > bound:
                        return True
        # a host that fails within a round leaves its jobs without GPUs, but nobody decides before the next round
    return False


def delayed(history: History) -> bool:
    told, arrival = Told(history), history.arrival
    for name in history.trace.jobs.names:
        done = told.done(name)
        if done is not None:
            own = told.own_part(name, told.mean_present(arrival[name], done))
            if done - arrival[name] > own:
                return True
    return False


def idle(history: History) -> bool:
    cluster, jobs = history.cluster, history.trace.jobs
    for record in history.rounds:
        free = {
            host: int(gpus) for host, gpus in zip(cluster.hosts, cluster.gpus, strict=True) if host not in record.down
        }
        for ran in record.ran:
            for host, gpus in ran.spots:
                free[host] -= gpus
        for name in record.waiting:
            for kind in Told(history).able(name):
                there = [
                    free[host]
                    for host, of in zip(cluster.hosts, cluster.gpu_type, strict=True)
                    if of == kind and host in free
                ]
                if sum(there) >= jobs.gpus[jobs.names.index(name)]:
                    return True
    return False


def prefixes(history: History) -> Iterator[History]:
    for count in range(1, len(history.rounds) + 1, 4):
        yield replace(history, rounds=history.rounds[:count])


@pytest.mark.parametrize(
    ("each", "brute"),
    [(NoStarvation(), starved), (SharingIncentiveOverTime(), delayed), (WorkConservationOverTime(), idle)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_agrees_with_brute_force(each: RunProperty, brute: Callable[[History], bool]) -> None:
    answers = set()
    for history in cases():
        for part in prefixes(history):
            fails = each.check(part).answer is Answer.FAILS
            assert fails == brute(part), f"{part.trace!r}, {len(part.rounds)} rounds"
            answers.add(fails)
    assert answers == {True, False}


# -- by hand ----------------------------------------------------------------------------------------------------------
def test_a_wait_begins_with_the_round_that_passes_a_job_over() -> None:
    """The job arrives at 1 and runs from the next round, at 10, on: nobody could have decided before."""
    history = scripted(jobs([1, 1], [30, 2], [0, 1]), {"a": ONE}, {"a": ONE, "b": ONE}, {"a": ONE})
    assert NoStarvation().check(history).margin is None
    late = scripted(jobs([1, 1], [30, 2], [0, 1]), {"a": ONE}, {"a": ONE}, {"a": ONE, "b": ONE})
    verdict = NoStarvation().check(late)
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -8)
    assert str(verdict.witness) == "b waits without GPUs from 10 to 20, longer than 2"


def test_a_bound_of_ones_own() -> None:
    history = scripted(jobs([2, 2], [20, 20]), {"a": BOTH}, {"a": BOTH}, {"b": BOTH}, {"b": BOTH})
    assert NoStarvation(longest=20).check(history).margin == 0
    assert NoStarvation(longest=19).check(history).answer is Answer.FAILS
    assert NoStarvation(longest="39/2").check(history).margin == Fraction(-1, 2)  # type: ignore[arg-type]
    assert NoStarvation(longest="1/2").longest == Fraction(1, 2)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="longest"):
        NoStarvation(longest=0)


def test_another_ideal() -> None:
    history = scripted(jobs([1, 1], [20, 20]), {"a": ONE, "b": ONE}, {"a": ONE, "b": ONE})
    assert SharingIncentiveOverTime(ideal=time_on_whole_cluster).check(history).margin == 0
    slower = scripted(jobs([1, 1], [20, 20]), {"a": ONE}, {"a": ONE, "b": ONE}, {"b": ONE})
    verdict = SharingIncentiveOverTime(ideal=time_on_whole_cluster).check(slower)
    assert (verdict.margin, verdict.witness.rho) == (Fraction(-1, 2), Fraction(3, 2))


def test_leases_end_with_the_job_and_with_its_host() -> None:
    done = scripted(jobs([1, 1], [10, 20]), {"a": ONE, "b": ONE}, {"b": ONE}, leases={(0, "a"): 30})
    assert LeaseKept().check(done).answer is Answer.HOLDS
    moved = scripted(jobs([1], [20]), {"a": ((0, 1),)}, {"a": ((1, 1),)}, cluster=Cluster.of(["T", "T"], [1, 1]))
    assert LeaseKept().check(moved).answer is Answer.HOLDS  # no lease was given
    verdict = LeaseKept().check(promised(moved, 20))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -10)


def test_a_run_of_nobody_has_every_property() -> None:
    history = History.of(jobs([], []), TWO_GPUS, ())
    assert {each.check(history).answer for each in of_runs()} == {Answer.HOLDS}


def test_why_a_run_is_not_decided() -> None:
    cut = scripted(jobs([1, 1, 1], [10, 20, 10], [0, 0, 90]), {"a": ONE, "b": ONE})
    verdict = WorkConservationOverTime().check(cut)
    assert (verdict.answer, verdict.exact) == (Answer.UNDECIDED, False)
    assert verdict.reason == "the run ends at 10 with b not done, 1 job not arrived"


def test_a_run_is_written_round_by_round() -> None:
    history = scripted(jobs([1], [30]), *[{"a": ONE}] * 3, leases={(1, "a"): 30})
    assert [record.ran[0].lease for record in history.rounds] == [10, 30, 30]
    with pytest.raises(BadInput, match="2 rounds are told, and 1 are played"):
        scripted(jobs([1], [10]), {"a": ONE}, {"a": ONE})


def test_verify_takes_a_history() -> None:
    history = scripted(jobs([1, 1], [10, 10]), {"a": ONE}, {"b": ONE})
    setting = Setting(history.cluster, history.trace)
    found = verify(setting, history, of_runs())
    assert found["work_conservation_over_time"].answer is Answer.FAILS
    assert verify(setting, history, of_runs(), tolerance=1000)["work_conservation_over_time"].answer is Answer.HOLDS
    with pytest.raises(BadInput, match="envy_freeness is a property on a Market, not on a Setting"):
        verify(setting, history, [EnvyFreeness()])
    with pytest.raises(BadInput, match="lease_kept is a property on a Setting, not on a Market"):
        verify(Market.of([[1]], capacity=[1]), [[1]], [LeaseKept()])


def but(case: SlackCase, **shown: Any) -> SlackCase:
    """Return a case that shows something else."""
    return case.but(**shown)


def broken_lease(job: str, begin: int, until: int, lease: int) -> SlackCase:
    return LeaseKept().case(-1, 1, job=job, begin=begin, until=until, lease=lease)


def starved(job: str, begin: int, end: int, bound: int) -> SlackCase:
    return NoStarvation().case(-1, 1, job=job, begin=begin, end=end, bound=bound)


def idle_gpus(job: str, begin: int, kind: str, gpus: int, free: int) -> SlackCase:
    return WorkConservationOverTime().case(-1, 1, job=job, begin=begin, type=kind, gpus=gpus, free=free)


def test_a_job_may_need_all_the_memory_of_a_type() -> None:
    idle = scripted(jobs([1, 1], [10, 10]), {"a": ONE}, {"b": ONE})
    for memory, right in ((8, True), (9, False)):
        needs = replace(idle.trace.jobs, memory=np.array([0, memory]))
        told = replace(idle, trace=replace(idle.trace, jobs=needs), cluster=replace(idle.cluster, memory=np.array([8])))
        assert idle_gpus("b", 0, "T", 1, 1).refutes(told) is right


def test_hosts_that_are_down_break_no_lease_and_have_no_gpus() -> None:
    two = Cluster.of(["T", "T"], [1, 1])
    broken = promised(scripted(jobs([1, 1], [20, 20]), {"a": ((0, 1),)}, {"b": ((1, 1),)}, cluster=two), 20)
    assert LeaseKept().check(broken).answer is Answer.FAILS
    for down, answer in ((two.hosts[0], Answer.UNDECIDED), (two.hosts[1], Answer.FAILS)):
        rounds = (broken.rounds[0], replace(broken.rounds[1], down=frozenset({down})))
        assert LeaseKept().check(replace(broken, rounds=rounds)).answer is answer
    wide = promised(scripted(jobs([2, 1], [20, 20]), {"a": ((0, 1), (1, 1))}, {"b": ((1, 1),)}, cluster=two), 20)
    part = (wide.rounds[0], replace(wide.rounds[1], down=frozenset({two.hosts[0]})))  # one of its two hosts
    assert LeaseKept().check(replace(wide, rounds=part)).answer is Answer.UNDECIDED
    lost = tuple(replace(each, lost=True) for each in broken.rounds[0].ran)
    gone = replace(broken, rounds=(replace(broken.rounds[0], ran=lost), broken.rounds[1]))
    assert LeaseKept().check(gone).answer is Answer.UNDECIDED
    idle = scripted(jobs([1, 1], [10, 10]), {"a": ((0, 1),)}, {"b": ((0, 1),)}, cluster=two)
    assert WorkConservationOverTime().check(idle).answer is Answer.FAILS
    assert idle_gpus("b", 0, "T", 1, 1).refutes(idle)
    half = replace(idle, rounds=(replace(idle.rounds[0], down=frozenset({two.hosts[1]})), idle.rounds[1]))
    assert WorkConservationOverTime().check(half).answer is Answer.HOLDS
    assert not idle_gpus("b", 0, "T", 1, 1).refutes(half)


def test_a_tolerance_is_a_part_of_a_lease_of_a_bound_of_a_ratio_of_gpu_time() -> None:
    bit = Fraction(1, 10**9)
    late = scripted(jobs([1, 1], [30, 20]), {"a": ONE}, {"a": ONE, "b": ONE}, {"a": ONE}, {"b": ONE})
    second = replace(late.rounds[1], ran=tuple(replace(each, lease=Fraction(30)) for each in late.rounds[1].ran))
    leased = replace(late, rounds=(late.rounds[0], second, *late.rounds[2:]))  # b from 10 until 30, and has it until 20
    slower = scripted(jobs([1, 1], [20, 20]), {"a": ONE}, {"a": ONE, "b": ONE}, {"b": ONE})  # rho 3/2 on all GPUs
    waits = scripted(jobs([2, 2], [20, 20]), {"a": BOTH}, {"a": BOTH}, {"b": BOTH}, {"b": BOTH})  # 20, of 16
    unused = scripted(jobs([1, 1], [10, 10]), {"a": ONE}, {"b": ONE})  # ten of ten
    for asked, history, part in (
        (LeaseKept(), leased, Fraction(1, 2)),
        (SharingIncentiveOverTime(ideal=time_on_whole_cluster), slower, Fraction(1, 2)),
        (NoStarvation(longest=16), waits, Fraction(1, 4)),
        (WorkConservationOverTime(), unused, Fraction(1)),
    ):
        assert asked.check(history).answer is Answer.FAILS
        assert asked.check(history, tolerance=part).answer is Answer.HOLDS, asked.name
        assert asked.check(history, tolerance=part - bit).answer is Answer.FAILS, asked.name


# -- witnesses --------------------------------------------------------------------------------------------------------
def test_a_broken_lease_is_told_as_it_was() -> None:
    plan = ({"a": ONE, "b": ONE}, {"b": ONE}, {"a": ONE, "b": ONE})
    history = promised(scripted(jobs([1, 1], [20, 30]), *plan), 20)
    broken = LeaseKept().check(history).witness
    assert (broken.job, broken.begin, broken.until, broken.lease) == ("a", 0, 10, 20)
    assert broken.refutes(history)
    for other in ({"job": "b"}, {"job": "c"}, {"begin": 20}, {"begin": 10}, {"begin": -1}):
        assert not but(broken, **other).refutes(history), other
    for lease in (30, 15, 10):
        assert not but(broken, lease=lease).refutes(history), lease
    a, b = history.rounds[0].ran
    first = replace(history.rounds[0], ran=(replace(b, lease=Fraction(10)), a))
    assert broken.refutes(replace(history, rounds=(first, *history.rounds[1:])))  # whoever is told first
    turned = promised(scripted(jobs([1, 1], [30, 20]), *(dict.fromkeys(rest, ONE) for rest in ("ab", "a", "ab"))), 20)
    assert broken_lease("b", 0, 10, 20).refutes(turned)
    assert not broken_lease("a", 0, 10, 20).refutes(turned)
    only = promised(scripted(jobs([1, 1], [20, 30]), *plan), 10)
    assert not broken_lease("a", 0, 10, 10).refutes(only)  # it was kept to the end
    kept = scripted(jobs([1], [20]), {"a": ONE}, {"a": ONE}, leases={(0, "a"): 20})
    assert not broken_lease("a", 0, 10, 20).refutes(kept)
    done = promised(scripted(jobs([1, 1], [10, 20]), {"a": ONE, "b": ONE}, {"b": ONE}), 30)
    assert not broken_lease("a", 0, 10, 30).refutes(done)  # who is done needs no GPUs
    two = Cluster.of(["T", "T"], [1, 1])
    moved = promised(scripted(jobs([1], [20]), {"a": ((0, 1),)}, {"a": ((1, 1),)}, cluster=two), 20)
    assert broken_lease("a", 0, 10, 20).refutes(moved)
    back = promised(scripted(jobs([1], [20]), {"a": ((1, 1),)}, {"a": ((0, 1),)}, cluster=two), 20)
    assert broken_lease("a", 0, 10, 20).refutes(back)
    assert LeaseKept().check(back).margin == -10


def test_a_wait_is_told_as_it_was() -> None:
    """b is there from 0, runs from 20 to 30 and is done then; a runs in the other rounds."""
    history = scripted(jobs([2, 2], [30, 10]), {"a": BOTH}, {"a": BOTH}, {"b": BOTH}, {"a": BOTH})
    assert starved("b", 0, 20, 19).refutes(history)
    assert starved("a", 20, 30, 9).refutes(history)
    for job, begin, end, bound in (
        *(("b", 0, 20, 20), ("b", 0, 21, 19), ("b", -1, 20, 19), ("b", 30, 40, 9), ("b", 15, 25, 5)),
        *(("a", 0, 20, 19), ("a", 20, 31, 9), ("a", 19, 30, 9), ("a", 40, 60, 9), ("a", 20, 30, 10)),
    ):
        assert not starved(job, begin, end, bound).refutes(history), (job, begin, end, bound)
    cut = replace(history, rounds=history.rounds[:1])
    assert starved("b", 0, 10, 9).refutes(cut)
    assert not starved("b", 0, 20, 9).refutes(cut)  # nobody knows what comes after


def test_a_delay_is_told_as_it_was() -> None:
    history = scripted(jobs([2, 1], [40, 10]), *[{"a": BOTH}] * 4, {"b": ONE})
    late = SharingIncentiveOverTime().check(history).witness
    assert (late.job, late.took, late.own_part) == ("b", 50, 10)
    assert late.refutes(history)
    for other in ({"job": "a"}, {"took": 49}, {"took": 51}, {"own_part": 50}, {"own_part": 51}):
        assert not but(late, **other).refutes(history), other


def test_idle_gpus_are_told_as_they_were() -> None:
    """Two types: b needs two GPUs of one type, and c runs on the second type only."""
    cluster = Cluster.of(["T", "T", "U"], [1, 2, 2])
    speeds = [[1, 1], [1, 1], [0, 1]]
    trace = Trace(Jobs.of(gpus=[1, 2, 1], work=[20] * 3, types=cluster.types, throughput=speeds, names=["a", "b", "c"]))
    history = scripted(trace, {"a": ((0, 1),)}, {"a": ((0, 1),), "b": ((1, 2),)}, cluster=cluster)
    idle = WorkConservationOverTime().check(history).witness
    assert (idle.job, idle.begin, idle.type, idle.gpus, idle.free) == ("b", 0, "T", 2, 2)
    assert idle.refutes(history)
    assert idle_gpus("c", 10, "U", 1, 2).refutes(history)
    assert idle_gpus("c", 0, "U", 1, 2).refutes(history)
    for job, begin, kind, free in (
        *(("a", 0, "T", 2), ("b", 0, "T", 1), ("b", 0, "T", 3), ("b", 10, "T", 0), ("b", 10, "U", 2)),
        *(("c", 0, "T", 2), ("c", 10, "T", 0), ("c", 10, "U", 1)),
    ):
        assert not idle_gpus(job, begin, kind, 1, free).refutes(history), (job, begin, kind, free)

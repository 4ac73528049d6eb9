"""Measures of runs: by hand on small ones, and by laws that hold on every one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fairopt import discovery
from fairopt.backends import Session
from fairopt.compare import compare
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Queue, Spots, Trace
from fairopt.proofs.verifier import runs as verify_run
from fairopt.simulation import History, Mechanics, Setting, run
from fairopt.simulation.document import document
from fairopt.simulation.gpu_time import finish_time_fairness, presence, time_on_own_part, time_on_whole_cluster
from fairopt.simulation.measures import UNITS, measure
from fairopt.simulation.measures_result import SPREAD, spread


@dataclass(frozen=True)
class Scripted(Policy):
    """Plays what it is told, round by round."""

    plan: tuple[Mapping[str, Spots], ...] = ()

    problem: ClassVar[type] = Queue
    name = "scripted"
    source = "none"

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        told, rows = self.plan[problem.index], {name: row for row, name in enumerate(problem.jobs.names)}
        return Schedule(self.name, problem, {rows[name]: spots for name, spots in told.items()})


def played(trace: Trace, cluster: Cluster, *plan: Mapping[str, Spots], mechanics: Mechanics | None = None) -> History:
    records = run(Scripted(plan), trace, cluster, length=10, rounds=len(plan), mechanics=mechanics)
    return History.of(trace, cluster, records)


def table_1() -> History:
    cluster = Cluster.uniform({"GPU1": (1, 1), "GPU0": (1, 1)})
    trace = Trace(Jobs.of(gpus=[1, 1], work=[16, 16], types=cluster.types, throughput=[[1, 8], [1, 8]]))
    return History.of(trace, cluster, run(ShortestRemainingTimeFirst(), trace, cluster, length=1))


def test_gpus_of_a_gang_on_several_types_wait_for_the_slowest() -> None:
    cluster = Cluster.uniform({"slow": (1, 2), "fast": (1, 4)})
    jobs = Jobs.of(gpus=[3, 2], work=[100, 100], types=cluster.types, throughput=[[1, 2], [1, 2]], names=["a", "b"])
    across: Mapping[str, Spots] = {"a": ((0, 1), (1, 2)), "b": ((1, 2),)}
    found = measure(played(Trace(jobs), cluster, across, across)).gpu
    # a holds 3 GPUs for two rounds of 10, 2 of them faster than the third; b is on one type
    assert (found.held, found.mixed, found.held_back) == (100, 60, 40)


# -- by hand ---------------------------------------------------------------------------------------------------------
def test_times_and_moves_of_fft_table_1() -> None:
    found = measure(table_1())
    assert (found.jobs, found.completed, found.unfinished, found.unschedulable) == (2, 2, (), ())
    assert found.jct == SPREAD.of(
        count=2, mean=Fraction(23, 8), least=2, most=Fraction(15, 4), percentiles={50: 2.875, 90: 3.575, 99: 3.7325}
    )
    assert found.makespan == Fraction(15, 4)
    assert (found.slowdown.mean, found.first_wait.most) == (1, 0)
    assert (found.moves.migrations, found.moves.between_types, found.moves.to_faster) == (1, 1, 1)
    assert (found.row()["to_faster"], found.moves.restarts) == (1, 1)
    # two GPUs for four rounds of 1, of which j1 holds 2 and j2 15/4
    assert (found.gpu.usable, found.gpu.held, found.row()["utilisation"]) == (8, Fraction(23, 4), 23 / 32)
    assert (found.gpu.useful, found.gpu.loading, found.gpu.lost) == (Fraction(23, 4), 0, 0)
    assert (found.ltgf.least, found.ltgf.most, found.sharing_loss) == (1, 1, 0)  # each holds all that it asks for
    assert found.tenants["tenant"].held == Fraction(23, 4)
    assert found.rounds == 4


def test_finish_time_fairness_of_fft_table_1() -> None:
    history = table_1()
    # j1: N = 2, half of GPU0 and of GPU1: 4 + 1/2. j2: N = (2*2 + 7/4)/(15/4) = 23/15, 8*15/23 + 8/23
    assert finish_time_fairness(history) == {"j1": Fraction(9, 16), "j2": Fraction(30, 23)}
    assert finish_time_fairness(history, time_on_own_part) == finish_time_fairness(history)
    assert finish_time_fairness(history, time_on_whole_cluster) == {"j1": 1, "j2": Fraction(15, 8)}
    assert finish_time_fairness(history, partial(time_on_whole_cluster, times_jobs=True)) == {
        "j1": Fraction(1, 2),
        "j2": Fraction(225, 184),
    }
    assert measure(history).worse_off == 0.5
    assert measure(history, ideal=time_on_whole_cluster).finish_time.mean == Fraction(23, 16)
    # a definition of one's own is asked of one job after the other, those of the house of all at once
    own = measure(history, ideal=lambda queue, row, jobs: time_on_own_part(queue, row, jobs))
    assert own.finish_time == measure(history).finish_time


def test_a_gang_holds_its_own_part_for_a_part_of_the_time() -> None:
    cluster = Cluster.uniform({"T": (1, 4)})
    jobs = Jobs.of(gpus=[4, 1], work=[10, 40], types=["T"], names=["gang", "one"])
    history = played(Trace(jobs), cluster, {"gang": ((0, 4),)}, *[{"one": ((0, 1),)}] * 4)
    # gang: N = 2, 2 of 4 GPUs, half of the time: 20. one: N = (2*10 + 40)/50 = 6/5, 10/3 GPUs: all of the time
    assert finish_time_fairness(history) == {"gang": Fraction(1, 2), "one": Fraction(5, 4)}


FRAGMENTS = Cluster.of(["T", "T"], [2, 2], hosts=["A", "B"])
GANGS = Trace(Jobs.of(gpus=[4, 3, 1, 9], work=[10, 10, 100, 1], types=["T"], names=["four", "three", "one", "nine"]))


def test_who_is_left_is_counted_and_named() -> None:
    plan: list[dict[str, Spots]] = [
        {"one": ((0, 1),)},  # 1 + 2 free: too little for four, enough for three on two hosts
        {"one": ((0, 1),), "three": ((0, 1), (1, 2))},
        {"one": ((0, 1),)},  # 3 free, four waits
        {},  # all free, and nobody too large
    ]
    found = measure(played(GANGS, FRAGMENTS, *plan))
    assert found.unfinished == ("four", "one")
    assert found.never_started == ("four",)
    assert found.unschedulable == ("nine",)
    assert (found.jobs, found.completed, found.makespan) == (4, 1, None)
    assert (found.first_wait.count, found.first_wait.mean, found.first_wait.most) == (3, Fraction(50, 3), 40)
    assert (found.jct.count, found.jct.mean, found.slowdown.mean) == (1, 20, 2)
    assert (found.gpu.usable, found.gpu.held) == (160, 60)
    assert (found.row()["fragmentation"], found.row()["scattered"]) == (3 / 16, 3 / 16)
    assert found.row()["unfinished"] == 2


def test_free_gpus_on_hosts_that_are_down_are_not_fragments() -> None:
    trace = Trace(GANGS.jobs, (Outage("B", Fraction(0), Fraction(10)),))
    found = measure(played(trace, FRAGMENTS, {"one": ((0, 1),)}))
    assert (found.gpu.usable, found.gpu.fragmented, found.gpu.scattered) == (20, 10, 0)


def test_loading_and_lost_time() -> None:
    jobs = Jobs.of(gpus=[1], work=[100], types=["T"], names=["j"])
    trace = Trace(jobs, (Outage("A", Fraction(15), Fraction(99)),))
    history = played(trace, FRAGMENTS, *[{"j": ((0, 1),)}] * 2, {"j": ((1, 1),)}, mechanics=Mechanics(launch=5))
    found = measure(history).gpu
    assert (found.held, found.loading, found.useful, found.lost) == (25, 5, 15, 5)
    moved = measure(history).moves
    assert (moved.migrations, moved.between_types, moved.to_faster, moved.resumed) == (1, 0, 0, 0)


def test_resuming_is_a_restart_and_no_migration() -> None:
    trace = Trace(Jobs.of(gpus=[1], work=[100], types=["T"], names=["j"]))
    found = measure(played(trace, FRAGMENTS, {"j": ((0, 1),)}, {}, {"j": ((0, 1),)}))
    assert (found.moves.migrations, found.moves.resumed, found.moves.restarts) == (0, 1, 1)
    assert found.row()["to_faster"] is None


@pytest.mark.parametrize("trace", [GANGS, Trace(Jobs.of(gpus=[], work=[], types=["T"]))])
def test_a_run_of_no_rounds_has_measures_too(trace: Trace) -> None:
    found = measure(History.of(trace, FRAGMENTS, ()))
    assert (found.completed, found.rounds, found.jct.mean, found.row()["utilisation"]) == (0, 0, None, None)
    assert found.row().keys() == UNITS.keys()


def test_who_comes_within_the_last_round_shares_the_cluster_until_it_ends() -> None:
    trace = Trace(Jobs.of(gpus=[1, 1], work=[10, 10], types=["T"], arrival=[0, 4], names=["j", "k"]))
    history = played(trace, FRAGMENTS, {"j": ((0, 1),)})
    assert history.ran.keys() == {"j"}
    assert presence(history).integral(Fraction(0), Fraction(10)) == 16
    # N = 16/10, a GPU and more for itself
    assert finish_time_fairness(history) == {"j": 1}


def test_a_spread_is_that_of_numpy() -> None:
    values = [Fraction(number, 7) for number in (9, 3, 100, 41, 5)]
    found = spread(values)
    assert found.mean == Fraction(158, 35)
    assert found.percentiles == {at: np.percentile([float(value) for value in values], at) for at in found.percentiles}
    assert spread([]).mean is None


# -- laws ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def histories() -> tuple[History, History]:
    """Return the same run in fractions and in floats: jobs of the excerpt, with a failure."""
    jobs = philly_trace().jobs.take(range(120))
    trace, cluster = Trace(jobs, (Outage("P100-1", Fraction(3100), Fraction(9000)),)), philly_cluster()
    mechanics = Mechanics(restart=Fraction(30), spread=Fraction(9, 10))

    def play(trace: Trace) -> History:
        records = run(ShortestRemainingTimeFirst(), trace, cluster, length=300, mechanics=mechanics)
        return History.of(trace, cluster, records)

    return play(trace), play(trace.as_(float))


def test_what_is_held_is_used_or_loading_or_lost(histories: tuple[History, History]) -> None:
    found = measure(histories[0])
    assert found.completed == 120
    assert found.gpu.lost > 0
    assert found.gpu.loading > 0
    assert found.gpu.held == found.gpu.useful + found.gpu.loading + found.gpu.lost
    assert found.gpu.held + found.gpu.fragmented + found.gpu.scattered <= found.gpu.usable
    assert sum(tenant.held for tenant in found.tenants.values()) == found.gpu.held
    assert sum(tenant.jobs for tenant in found.tenants.values()) == found.jobs
    assert found.slowdown.least is not None
    assert found.slowdown.least >= 1


def test_measures_by_another_way(histories: tuple[History, History]) -> None:
    history = histories[0]
    found, jobs = measure(history), history.trace.jobs
    done = {ran.job: ran.end for record in history.rounds for ran in record.ran if ran.completed}
    first = {ran.job: ran.begin for record in reversed(history.rounds) for ran in record.ran}
    jct = [done[name] - arrival for name, arrival in zip(jobs.names, jobs.arrival, strict=True)]
    wait = [first[name] - arrival for name, arrival in zip(jobs.names, jobs.arrival, strict=True)]
    assert found.jct.mean == sum(jct) / 120
    assert found.first_wait.most == max(wait)
    assert found.makespan == max(done.values()) - jobs.arrival[0]
    # a dedicated 1/N is never better than the whole cluster
    alone, apart = finish_time_fairness(history, time_on_whole_cluster), finish_time_fairness(history)
    assert len(alone) == 120
    assert all(alone[name] >= apart[name] for name in alone)


def test_floats_come_near_fractions(histories: tuple[History, History]) -> None:
    exact, near = (measure(history).row() for history in histories)
    assert exact.keys() == near.keys() == UNITS.keys()
    for name, value in exact.items():
        if name != "deciding":
            assert near[name] == pytest.approx(value, rel=1e-9), name


def test_policies_side_by_side_and_one_that_stops() -> None:
    broken = Scripted(({"four": ((0, 4),)},))
    rows = list(compare(Setting(FRAGMENTS, GANGS, length=Fraction(10)), [ShortestRemainingTimeFirst(), broken], []))
    assert [row.error is None for row in rows] == [True, False]
    assert "host 'A' gives out 4 GPUs and has 2" in str(rows[1].error)
    assert rows[0].metrics.completed == 3
    assert rows[1].metrics.rounds == 0


# -- every policy ----------------------------------------------------------------------------------------------------
def jobs_under_every_policy(count: int) -> None:
    """Run the first jobs of the excerpt under each registered policy, and replay the records."""
    trace = Trace(philly_trace().jobs.take(range(count))).as_(float)
    mechanics, names = Mechanics(restart=Fraction(30)), [each.name for each in discovery.policies(Queue)]
    policies = [discovery.policy(name) for name in names]
    done = []
    for row in compare(Setting(philly_cluster(), trace, mechanics), policies, []):
        assert row.error is None, f"{row.policy.name}: {row.error}"
        assert row.metrics.completed == count, row.policy.name
        text = json.dumps(document(row.outcome, mechanics, 300, row.policy.name))
        found, statement = verify_run.decide(text, Fraction(1, 10**6))
        assert not found, f"{row.policy.name}: {found[:3]}"
        assert statement
        done.append(row.policy.name)
    assert done == names


def test_jobs_of_the_excerpt_run_under_every_policy() -> None:
    jobs_under_every_policy(10)


@pytest.mark.slow
def test_the_excerpt_runs_under_every_policy() -> None:
    jobs_under_every_policy(1000)


def test_the_table_in_the_documentation_has_every_measure_of_every_policy() -> None:
    text = (Path(__file__).parents[2] / "docs" / "rounds.md").read_text(encoding="utf-8")
    table = text.split("<!-- measures: written by benchmarks/rounds_table.py -->")[1].split("<!-- measures: end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    assert rows[0][2:] == [each.name for each in discovery.policies(Queue)]
    assert [row[0] for row in rows[2:]] == [*UNITS, "record replayed"]
    assert set(rows[-1][2:]) == {"yes"}
    assert set(next(row for row in rows if row[0] == "completed")[2:]) == {"1000"}

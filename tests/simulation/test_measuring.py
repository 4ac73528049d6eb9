"""Measures that are taken as a run goes on are those of its whole history, and a window cuts what it says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from drawn_seeds import seeds
from plain_rounds import Referee

from fairopt.errors import BadInput
from fairopt.experiment.studies.playing import observe
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.sia.sia import Sia
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.profile import Profile
from fairopt.simulation import History, Mechanics, Setting, run
from fairopt.simulation.engine import Engine
from fairopt.simulation.gpu_time import Window, finish_time_fairness, gpu_time, job_fairness, tenant_fairness
from fairopt.simulation.measures import Measures, Measuring, measure
from fairopt.simulation.measures_result import spread
from fairopt.simulation.recording import header, write_record
from fairopt.simulation.replay import read_record
from fairopt.simulation.whole_rounds import WholeRounds
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.round_suite import Lender

F = Fraction
SEEDS = range(20)
SETTINGS = tuple(sample_settings(len(SEEDS), seed=7))


def setting(seed: int) -> tuple[Policy, Setting, int | None]:
    """A policy that lends, moves and stops jobs at random, or one that is real; for all rounds, or the first."""
    return Lender(seed=seed) if seed % 2 else ShortestRemainingTimeFirst(), SETTINGS[seed], (None, 5)[seed % 3 == 0]


def history_of(seed: int) -> History:
    policy, one, rounds = setting(seed)
    trace, cluster = one.trace, one.cluster
    records = run(policy, trace, cluster, length=one.length, mechanics=one.mechanics, rounds=rounds)
    return History.of(trace, cluster, records)


def streamed(seed: int, kind: type[Referee] | type[Engine], window: Window | None = None) -> Measuring:
    policy, one, rounds = setting(seed)
    play = kind(policy, one.trace, one.cluster, length=one.length, mechanics=one.mechanics, rounds=rounds)
    measuring = Measuring(one.trace, one.cluster, window=window)
    for changes in play:
        measuring.add(changes)
        measuring.result()  # to ask in the midst changes nothing
    measuring.result(play.index)
    return measuring


def timeless(found: Measures) -> Measures:
    return replace(found, deciding=0.0)


@pytest.mark.parametrize("kind", [Referee, Engine])
@pytest.mark.parametrize("seed", seeds(7, len(SETTINGS)))
def test_rounds_of_which_nothing_is_said_count_as_all_others(seed: int, kind: type[Referee] | type[Engine]) -> None:
    assert timeless(streamed(seed, kind).result()) == timeless(measure(history_of(seed)))


@pytest.mark.parametrize("seed", seeds(7, len(SETTINGS)))
def test_fairness_is_that_of_the_functions_of_a_history(seed: int) -> None:
    history, measuring = history_of(seed), streamed(seed, Referee)
    table = measuring.jobs()
    names = [history.trace.jobs.names[row] for row in table.columns["row"]]
    able = {name: rho for name, rho in job_fairness(history).items() if name not in history.unschedulable}
    assert dict(zip(names, table.columns["ltgf"], strict=True)) == able
    finish_times = zip(names, table.columns["finish_time"], strict=True)
    rho = {name: each for name, each in finish_times if each is not None}
    assert rho == finish_time_fairness(history)
    assert {name: each.ltgf for name, each in measuring.result().tenants.items()} == tenant_fairness(history)


@pytest.mark.parametrize("seed", seeds(7, len(SETTINGS)))
def test_a_window_cuts_gpu_time_tick_by_tick_and_jobs_by_arrival(seed: int) -> None:
    history = history_of(seed)
    length = SETTINGS[seed].length
    window = Window(length * F(3, 2), length * F(17, 4))
    found = streamed(seed, Referee, window).result()
    arrived = [name for name in history.ran if window.begin <= history.arrival[name] < window.end]
    assert found.jobs == len(arrived)
    assert found.completed == sum(history.completion[name] is not None for name in arrived)
    long_term = job_fairness(history)
    fair = [rho for name in arrived if (rho := long_term[name]) is not None]
    assert found.ltgf.mean == (sum(fair) / len(fair) if fair else None)

    def inside(begin: F, end: F) -> F:
        return max(min(end, window.end) - max(begin, window.begin), F(0))

    ran = [each for record in history.rounds for each in record.ran]
    assert found.gpu.usable == sum(each.usable * inside(each.begin, each.end) for each in history.rounds)
    assert found.gpu.held == sum(each.gpus * inside(each.begin, each.end) for each in ran)
    loading = [each.gpus * inside(each.begin, min(each.begin + each.setup, each.end)) for each in ran if not each.lost]
    assert found.gpu.loading == sum(loading)
    _, of_tenants = gpu_time(history, window)
    for tenant, each in found.tenants.items():
        held, fair_time = of_tenants[tenant]
        assert (each.held, each.ltgf) == (held, held / fair_time if fair_time else None)


@pytest.mark.parametrize("seed", seeds(7, len(SETTINGS)))
def test_what_is_freed_in_mid_round_is_what_nobody_can_have(seed: int) -> None:
    history = history_of(seed)
    use = measure(history).gpu
    given = sum(each.gpus * (record.end - record.begin) for record in history.rounds for each in record.ran)
    assert use.held + use.freed == given


def test_the_samples_hold_what_they_should() -> None:
    found = [measure(history_of(seed)) for seed in SEEDS]
    assert any(each.gpu.lost for each in found)
    assert any(each.gpu.freed for each in found)
    assert any(each.gpu.loading for each in found)
    assert any(each.unschedulable for each in found)
    assert any(each.unfinished for each in found)
    assert any(each.moves.migrations for each in found)


def test_the_measured_jobs_may_be_told_by_their_rows() -> None:
    cluster = Cluster.of(["T"], [1])
    trace = Trace(Jobs.of(gpus=[1, 1, 1], work=[10, 20, 30], types=["T"], arrival=[0, 0, 5], names=["a", "b", "c"]))
    measuring = Measuring(trace, cluster, rows=range(1, 3))
    for changes in Referee(ShortestRemainingTimeFirst(), trace, cluster, length=10, mechanics=Mechanics()):
        measuring.add(changes)
    found = measuring.result()
    assert (found.jobs, found.completed, found.jct.mean) == (2, 2, F(30 + 55, 2))
    assert (found.makespan, found.gpu.held) == (60, 60)
    assert measuring.jobs().column("jct") == [30, 55]
    frame = measuring.jobs().to_frame()
    assert list(frame.index) == ["b", "c"]


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(BadInput, match="window: it begins at 9 and ends at 9"):
        Measuring(SETTINGS[0].trace, SETTINGS[0].cluster, window=Window(9, 9))


@pytest.mark.parametrize("number", [Fraction, float])
def test_whole_rounds_follow_from_what_changed(number: type, tmp_path: Path) -> None:
    """A record holds changes only, and read back it is what the run yielded: for all rounds, to the last bit."""
    path = tmp_path / "run.jsonl"
    for at, one in enumerate(sample_settings(30, seed=4)):
        this, policy, rounds = one.as_(number), Lender(seed=at), (None, 4, 9)[at % 3]
        options = {"length": this.length, "mechanics": this.mechanics, "rounds": rounds}
        about = header(policy.name, this.trace, this.cluster, length=this.length, mechanics=this.mechanics)
        write_record(path, about, this.trace, this.cluster, Referee(policy, this.trace, this.cluster, **options))
        yielded = [
            replace(each, after=replace(each.after, state=None))
            for each in run(policy, this.trace, this.cluster, **options)
        ]
        assert list(read_record(path).rounds()) == yielded


def test_elastic_jobs_count_with_the_gpus_that_they_hold() -> None:
    cluster = Cluster.uniform({"GPU": (2, 4)})
    jobs = Jobs.of(gpus=[2, 2, 1], work=[4000, 4000, 900], types=cluster.types, arrival=[0, 0, 700],
                   profiles=[Profile.scaled(2, [1], {4: "3/2"})] * 2 + [None])  # fmt: skip
    trace = Trace(jobs)
    rounds = list(run(Sia(growth=None), trace, cluster, length=300))
    by_hand = sum((ran.gpus * (ran.end - ran.begin) for record in rounds for ran in record.ran), F(0))
    assert any(ran.gpus == 4 for ran in rounds[0].ran)
    history = History.of(trace, cluster, rounds)
    found = measure(history)
    freed = sum((ran.gpus * (record.end - ran.end) for record in rounds for ran in record.ran), F(0))
    assert (found.gpu.held, found.gpu.freed) == (by_hand, freed)
    assert found.tenants["tenant"].held == by_hand
    fair = job_fairness(history)
    assert found.ltgf == spread([each for each in fair.values() if each is not None])
    used = observe(history).over_time["utilisation"]
    assert np.mean(used.values) * (used.end - used.begin) * 8 == pytest.approx(float(by_hand), rel=1e-4)
    whole, changes = WholeRounds("sia", trace, cluster), Referee(Sia(growth=None), trace, cluster, length=300)
    again = [record for each in changes for record in whole.add(each)]
    attained = [{row: one.attained for row, one in each.after.present.items()} for each in rounds]
    assert [{row: one.attained for row, one in each.after.present.items()} for each in again] == attained


def test_a_type_may_have_no_hosts() -> None:
    cluster = Cluster.uniform({"OLD": (0, 8), "NEW": (1, 2)})
    trace = Trace(Jobs.of(gpus=[2, 2], work=[40, 40], types=cluster.types, throughput=[[1, 1], [1, 1]]))
    found = measure(History.of(trace, cluster, list(run(ShortestRemainingTimeFirst(), trace, cluster, length=10))))
    assert (found.completed, found.gpu.fragmented, found.gpu.usable) == (2, 0, 160)
    with pytest.raises(BadInput, match="hosts of type 'OLD': got -1"):
        Cluster.uniform({"OLD": (-1, 8)})

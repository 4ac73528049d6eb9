"""Continuous time: the limit of rounds as they get shorter, equal to them where every event is on a boundary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt.errors import NotCapable, NotSolved
from fairopt.models import FFT, EasyBackfilling, FirstInFirstOut, ShortestRemainingTimeFirst
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Outage, Trace
from fairopt.program import cast
from fairopt.simulation import Change, History, Mechanics, Setting
from fairopt.simulation.engine import Engine
from fairopt.simulation.measures import measure
from fairopt.simulation.playing import run_continuous
from fairopt.testing.round_samples import sample_settings

BOTH = pytest.mark.parametrize("policy", [FirstInFirstOut(), ShortestRemainingTimeFirst()], ids=lambda each: each.name)
ONE = Cluster.of(["T"], [2], hosts=["A"])


def completions(policy: Policy, setting: Setting) -> Mapping[str, Any]:
    """Return when each job is done in continuous time."""
    spans = run_continuous(policy, setting.trace, setting.cluster, mechanics=setting.mechanics)
    return {ran.job: ran.end for span in spans for ran in span.ran if ran.completed}


def in_rounds(policy: Policy, setting: Setting, length: Fraction) -> Mapping[str, Any]:
    """Return when each job is done in rounds."""
    names = setting.trace.jobs.names
    engine = Engine(policy, setting.trace, setting.cluster, length=length, mechanics=setting.mechanics)
    return {names[row]: end for changes in engine for row, end in changes.completed.items()}


def on_a_grid(count: int) -> Iterator[Setting]:
    """Yield settings of one type in which everything happens at whole times: at speed 1 and with a bandwidth of 1."""
    for setting in sample_settings(count, seed=11, jobs=(4, 9), types=(1, 1)):
        jobs, cluster = setting.trace.jobs, setting.cluster
        speed = cast(jobs.throughput > 0, Fraction)
        yield replace(
            setting,
            trace=replace(setting.trace, jobs=replace(jobs, throughput=speed)),
            cluster=replace(cluster, bandwidth=np.full_like(cluster.bandwidth, Fraction(1))),
            mechanics=replace(setting.mechanics, spread=Fraction(1)),
        )


@BOTH
def test_completions_are_those_of_rounds_where_every_event_is_on_a_boundary(policy: Policy) -> None:
    failed = done = 0
    for setting in on_a_grid(30):
        found = completions(policy, setting)
        assert found == in_rounds(policy, setting, Fraction(1))
        assert all(isinstance(end, Fraction) for end in found.values())
        failed, done = failed + len(setting.trace.outages), done + len(found)
    assert failed > 10
    assert done > 100


@pytest.mark.parametrize(
    ("policy", "types"), [pytest.param(FirstInFirstOut(), 3, marks=pytest.mark.slow), (ShortestRemainingTimeFirst(), 1)]
)
def test_rounds_come_near_continuous_time_as_they_get_shorter(policy: Policy, types: int) -> None:
    apart = 0
    for setting in sample_settings(3, seed=12, jobs=(4, 8), types=(1, types), ties=False):
        limit = completions(policy, setting)
        events = 2 * len(setting.trace.jobs) + 2 * len(setting.trace.outages)
        for length in (Fraction(1, 5), Fraction(1, 50)):
            found = in_rounds(policy, setting, length)
            assert found.keys() == limit.keys()
            # each event may wait for a boundary, and slow jobs make up for it at the least speed of all
            most = max(float(abs(found[name] - limit[name])) for name in limit)
            assert most <= 8 * events * length
            apart += most > 0
    assert apart, "no event lay within a round"


def test_a_job_takes_over_at_once_and_the_other_loads_again() -> None:
    jobs = Jobs.of(gpus=[2, 2, 1], work=[10, 2, 1], types=["T"], arrival=[0, "7/2", 20], names=["a", "b", "c"])
    trace = Trace(jobs, (Outage("A", Fraction("20.5"), Fraction("30.25")),))
    mechanics = Mechanics(restart=Fraction(1), launch=Fraction(1, 2))
    spans = list(run_continuous(ShortestRemainingTimeFirst(), trace, ONE, mechanics=mechanics))
    # a does 3 of 10 by 3.5; b loads for 0.5 and is done at 6; a loads for 1, and does the other 7 by 14
    held = [(span.begin, span.end, [(ran.job, ran.change) for ran in span.ran]) for span in spans]
    assert held == [
        (0, Fraction("3.5"), [("a", Change.START)]),
        (Fraction("3.5"), 6, [("b", Change.START)]),
        (6, 14, [("a", Change.RESUME)]),
        (20, Fraction("20.5"), [("c", Change.START)]),  # nobody is present from 14 to 20
        (Fraction("20.5"), Fraction("30.25"), []),
        (Fraction("30.25"), Fraction("32.25"), [("c", Change.RESUME)]),  # it loads for 1 and runs for 1
    ]
    assert [span.index for span in spans] == [0, 1, 2, 3, 4, 5]
    history = History.of(trace, ONE, spans)
    assert history.completion == {"a": 14, "b": 6, "c": Fraction("32.25")}
    assert measure(history).completed == 3


def test_it_goes_on_from_a_snapshot_and_is_the_same_in_floats() -> None:
    [setting] = sample_settings(1, seed=13, jobs=(20, 20), types=(1, 1), ties=False)
    policy, floats = ShortestRemainingTimeFirst(), setting.as_(float)
    how: dict[str, Any] = {"trace": setting.trace, "cluster": setting.cluster, "mechanics": setting.mechanics}
    whole = list(run_continuous(policy, **how))
    assert list(run_continuous(policy, **how, after=whole[5].after)) == whole[6:]
    assert completions(policy, floats) == pytest.approx(
        {name: float(end) for name, end in completions(policy, setting).items()}
    )


def test_misfits_that_come_last_are_named() -> None:
    trace = Trace(Jobs.of(gpus=[1, 9], work=[5, 5], types=["T"], arrival=[0, 7], names=["a", "large"]))
    history = History.of(trace, ONE, run_continuous(FirstInFirstOut(), trace, ONE))
    assert history.unschedulable == {"large": "T: needs 9 GPUs of 2"}
    assert history.until == 7


def test_a_run_in_which_nothing_will_happen_is_stalled() -> None:
    trace = Trace(Jobs.of(gpus=[1], work=[5], types=["T"], names=["a"]), (Outage("A", 2, float("inf")),))
    with pytest.raises(NotSolved, match="with jobs waiting: a"):
        list(run_continuous(FirstInFirstOut(), trace, ONE))


@pytest.mark.parametrize("policy", [FFT(), EasyBackfilling()], ids=lambda policy: policy.name)
def test_a_policy_that_needs_rounds_is_refused(policy: Policy) -> None:
    trace = Trace(Jobs.of(gpus=[1], work=[5], types=["T"]))
    with pytest.raises(NotCapable, match=f"{policy.name} needs rounds: play it with fairopt.simulation.run"):
        next(run_continuous(policy, trace, ONE))


def test_a_schedule_that_does_not_stand_is_refused() -> None:
    # both want the fast host; the one that has it may fall behind while it loads
    cluster = Cluster.of(["fast", "slow"], [1, 1])
    jobs = Jobs.of(gpus=[1, 1], work=[10, 12], types=cluster.types, throughput=[[2, 1], [2, 1]])
    with pytest.raises(NotCapable, match="at 0, srtf may decide anew before anything happens"):
        next(run_continuous(ShortestRemainingTimeFirst(), Trace(jobs), cluster))
    assert next(run_continuous(FirstInFirstOut(), Trace(jobs), cluster)).end == 5

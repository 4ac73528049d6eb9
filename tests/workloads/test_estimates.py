"""Errors of estimation: what policies are told, and what a run does."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairopt import discovery, run
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.errors import BadInput, WrongReturn
from fairopt.models import ShortestRemainingTimeFirst
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace, read_trace, write_trace
from fairopt.simulation.engine import Engine
from fairopt.workloads import ErrorForm, ErrorSign, WorkEstimates

ONE = Cluster.uniform({"T": (1, 1)})
SHORT_AND_LONG: dict[str, Any] = {"types": ["T"], "gpus": [1, 1], "work": [600, 1200], "names": ["short", "long"]}


def completions(jobs: Jobs, policy: Any = "srtf") -> dict[str, Fraction]:
    return {ran.job: ran.end for each in run(policy, Trace(jobs), ONE, length=300) for ran in each.ran if ran.completed}


def test_policies_decide_on_estimates_and_the_run_is_the_truth() -> None:
    assert completions(Jobs.of(**SHORT_AND_LONG)) == {"short": 600, "long": 1800}
    misled = Jobs.of(**SHORT_AND_LONG, estimate=[3000, 1500])
    assert completions(misled) == {"long": 1200, "short": 1800}
    # what remains is scaled alike: after 300 s the short job has half its work, so half its estimate
    told = Jobs.of(**SHORT_AND_LONG, estimate=[1300, 1200])
    assert completions(told) == {"long": 1200, "short": 1800}


def test_a_queue_as_told_differs_in_work_and_in_what_remains_of_it() -> None:
    jobs = Jobs.of(**SHORT_AND_LONG, estimate=[900, None])
    queue = replace(Queue.fresh(jobs, ONE, length=300), remaining=np.array([Fraction(200), Fraction(1200)]))
    told = queue.as_told()
    assert told.jobs.work.tolist() == [900, 1200]
    assert told.remaining.tolist() == [300, 1200]
    assert told.jobs.estimate is None
    assert told.as_told() is told
    assert queue.as_(float).as_told().remaining.tolist() == [300.0, 1200.0]
    for column in ("attained", "setup", "lease", "last", "running", "started", "now", "cluster", "held"):
        assert getattr(told, column) is getattr(queue, column), column


@pytest.mark.parametrize("policy", ["srtf", "tiresias-service", "allox", "themis"])
def test_the_engine_tells_policies_the_same(policy: str) -> None:
    cluster = philly_cluster()
    told = WorkEstimates(0.8, ErrorForm.LOGNORMAL).applied(Trace(philly_trace().jobs.take(range(80))), 3).as_(float)
    by_engine = {
        row: at
        for each in Engine(discovery.policy(policy), told, cluster, length=300)
        for row, at in each.completed.items()
    }
    by_referee = {
        told.jobs.names.index(ran.job): ran.end
        for each in run(policy, told, cluster, length=300)
        for ran in each.ran
        if ran.completed
    }
    assert by_engine == by_referee
    truth = Trace(replace(told.jobs, estimate=None))
    misled = {
        row: at
        for each in Engine(discovery.policy(policy), truth, cluster, length=300)
        for row, at in each.completed.items()
    }
    assert by_engine != misled


class _OfAnotherQueue(ShortestRemainingTimeFirst):
    def decide(self, problem: Queue, state: Any, solve: Any) -> Schedule:
        return replace(super().decide(problem, state, solve), queue=replace(problem))


@pytest.mark.parametrize("estimate", [None, [900, 100]])
def test_a_schedule_of_another_queue_is_refused_with_and_without_estimates(estimate: list[int] | None) -> None:
    with pytest.raises(WrongReturn, match="the schedule is of another queue"):
        completions(Jobs.of(**SHORT_AND_LONG, estimate=estimate), _OfAnotherQueue())


@pytest.mark.parametrize("suffix", [".csv", ".toml", ".json"])
def test_estimates_in_files(suffix: str, tmp_path: Path) -> None:
    jobs = Jobs.of(**SHORT_AND_LONG, estimate=["600", "1/3"])
    path = tmp_path / f"trace{suffix}"
    write_trace(Trace(jobs), path)
    there = read_trace(path, ["T"]).jobs
    assert there.estimate is not None
    assert there.estimate.tolist() == [600, Fraction(1, 3)]
    assert there.take([1]).estimate.tolist() == [Fraction(1, 3)]  # type: ignore[union-attr]
    write_trace(Trace(Jobs.of(**SHORT_AND_LONG)), path)
    assert "estimate" not in path.read_text(encoding="utf-8")
    assert read_trace(path, ["T"]).jobs.estimate is None


def test_a_bad_estimate_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("job_id,submit_s,duration_s,gpus,estimate\na,0,60,1,\nb,0,60,1,0\n", encoding="utf-8")
    with pytest.raises(BadInput, match=re.escape("line 3 ('b'), column 'estimate': got 0. Give a positive number")):
        read_trace(path, ["T"])
    with pytest.raises(BadInput, match=re.escape("job 1 ('short'), estimate: got -1. Give a positive number")):
        Jobs.of(**SHORT_AND_LONG, estimate=[-1, 5])


@pytest.mark.parametrize("form", ErrorForm)
@pytest.mark.parametrize("sign", ErrorSign)
def test_errors_have_their_size_and_sign(form: ErrorForm, sign: ErrorSign) -> None:
    trace = philly_trace()
    told = WorkEstimates(0.3, form, sign).applied(trace, 1)
    assert told.jobs.estimate is not None
    again = WorkEstimates(0.3, form, sign).applied(trace, 1).jobs.estimate
    assert again is not None
    assert np.array_equal(told.jobs.estimate, again)
    assert np.array_equal(told.jobs.work, trace.jobs.work)
    off = (told.jobs.estimate / trace.jobs.work - 1).astype(float)
    assert (off >= 0).all() or sign is not ErrorSign.OVER
    assert (off <= 0).all() or sign is not ErrorSign.UNDER
    assert sign is not ErrorSign.BOTH or 0.45 < float((off > 0).mean()) < 0.55
    if form is ErrorForm.LOGNORMAL:
        assert 0.27 < float(np.sqrt((np.log1p(off) ** 2).mean())) < 0.33
    else:
        assert np.abs(off).max() <= 0.3
        assert abs(float(np.abs(off).mean()) - (0.3 if form is ErrorForm.FIXED else 0.15)) < 0.01
    floats = WorkEstimates(0.3, form, sign).applied(trace.as_(float), 1).jobs
    assert floats.estimate is not None
    assert np.allclose(floats.estimate, told.jobs.estimate.astype(float), rtol=1e-12)


@pytest.mark.parametrize("form", ErrorForm)
@pytest.mark.parametrize("sign", ErrorSign)
def test_errors_have_nothing_to_do_with_the_jobs_that_the_same_seed_draws(form: ErrorForm, sign: ErrorSign) -> None:
    from scipy.stats import spearmanr

    for workload in ("poisson", "oef-tenants"):
        jobs = WorkEstimates(0.3, form, sign).applied(discovery.workload(workload).trace(1, philly_cluster()), 1).jobs
        factor = (jobs.estimate / jobs.work).astype(float)
        if len(set(factor)) > 1:  # all of one size and sign: they go with nothing
            assert abs(spearmanr(factor, jobs.work.astype(float)).statistic) < 0.15


def test_errors_that_cannot_be() -> None:
    for size, words in ((-1, "error: got -1"), (1, "an estimate may be too small. Give one below 1, or sign=over")):
        with pytest.raises(BadInput, match=re.escape(words)):
            WorkEstimates(size)
    WorkEstimates(1.5, ErrorForm.FIXED, ErrorSign.OVER)
    trace = philly_trace()
    assert WorkEstimates().applied(trace, 1) is trace  # the truth


def test_who_does_not_look_at_work_is_not_misled() -> None:
    for policy in ("fifo-quota", "tiresias", "stride"):
        told = completions(Jobs.of(**SHORT_AND_LONG, estimate=[5000, 10]), policy)
        assert told == completions(Jobs.of(**SHORT_AND_LONG), policy)

"""Policies of rounds over a trace: what the task accepts, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairopt.benchmarks.instances.traces import Traces
from fairopt.benchmarks.peers.fairopt_rounds import FairoptRounds
from fairopt.benchmarks.tasks.rounds import Rounds
from fairopt.errors import BadInput

GIVEN = {"trace": "@philly-trace", "cluster": "@philly-cluster", "jobs": 40}


def played(instance: Any, policy: str) -> dict[str, Any]:
    contender = FairoptRounds(policy=policy)
    return contender.solve(contender.build("rounds", instance.problem, time_limit=60, threads=1))


@pytest.mark.parametrize("policy", ["srtf", "tiresias", "stride"])
def test_the_engine_is_accepted_and_what_is_not_the_policys_run_is_not(policy: str) -> None:
    instance, task = Traces().draw(0, GIVEN), Rounds()
    answer = played(instance, policy)
    assert task.judge(instance, answer, None).accepted
    for wrong in (np.nextafter(answer["completed"], np.inf), answer["completed"][:-1], answer["completed"] * np.nan):
        assert not task.judge(instance, {**answer, "completed": wrong}, None).accepted


def test_a_job_cannot_be_done_sooner_than_alone() -> None:
    instance, task = Traces().draw(0, GIVEN), Rounds(comparable=0)
    answer = played(instance, "srtf")
    assert task.judge(instance, answer, None).accepted
    told = task.judge(instance, {**answer, "completed": instance.problem.trace.jobs.arrival + 1}, None)
    assert not told.accepted
    assert "sooner" in told.note


def test_more_jobs_than_there_are_are_refused() -> None:
    with pytest.raises(BadInput, match="1000 jobs, not 2000"):
        Traces().draw(0, {**GIVEN, "jobs": 2000})

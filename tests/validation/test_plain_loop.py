"""The plain loop beside which whole traces are timed is shortest remaining time first in continuous time."""

from __future__ import annotations

from random import Random

import pytest

from fairopt.benchmarks.plain_loop import ends
from fairopt.models import ShortestRemainingTimeFirst
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.simulation import History
from fairopt.simulation.playing import run_continuous


@pytest.mark.parametrize("seed", range(40))
def test_jobs_end_when_they_do_under_srtf(seed: int) -> None:
    random = Random(seed)
    arrival = sorted(random.uniform(0, 50) for _ in range(25))
    work, gpus = [random.uniform(1, 30) for _ in arrival], [random.choice([1, 1, 2, 4]) for _ in arrival]
    one = Cluster.uniform({"T": (1, 4)})
    trace = Trace(Jobs.of(types=["T"], gpus=gpus, work=work, arrival=arrival)).as_(float)
    history = History.of(trace, one, run_continuous(ShortestRemainingTimeFirst(), trace, one))
    theirs = [history.completion[name] for name in trace.jobs.names]
    assert ends(arrival, work, gpus, 4) == pytest.approx(theirs)

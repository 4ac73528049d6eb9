"""A small study that tests play: two policies, a trace in a file, a fraction of a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import NotSolved
from fairopt.experiment.journal import read_records
from fairopt.experiment.studies.cells import KINDS, StudyCell
from fairopt.models import ShortestRemainingTimeFirst
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.workloads import Workload

SPEC = """
schema = 1
name = "small"
seeds = 3
loads = [1, 2]
length = 60

[[policies]]
policy = "srtf"

[[policies]]
policy = "tiresias"

[[traces]]
label = "made up"
file = "{trace}"

[[clusters]]
hosts = {{ T = [2, 2] }}

[[compare]]
measure = "jct_mean"
better = "less"
"""


def spec_text(folder: Path) -> str:
    """Write the trace of the study, and return its specification."""
    trace = folder / "trace.csv"
    rows = [f"j{n},{'ab'[n % 2]},{40 * n},{1 + n % 2},{60 + 37 * n % 300}" for n in range(30)]
    trace.write_text("\n".join(["job_id,tenant,submit_s,gpus,duration_s", *rows]) + "\n", encoding="utf-8")
    return SPEC.format(trace=trace)


def spec_file(folder: Path, text: str = "") -> Path:
    """Write the specification, and return its file."""
    path = folder / "small.toml"
    path.write_text(text or spec_text(folder), encoding="utf-8")
    return path


def words(*options: Any) -> list[str]:
    """Return the words of a command `fairopt study`."""
    return [sys.executable, "-m", "fairopt", "study", *map(str, options)]


def study_process(folder: Path, *options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, in a process of its own."""
    return subprocess.run(words(*options), cwd=folder, capture_output=True, text=True, timeout=240)


def cells_of(path: Path) -> list[StudyCell]:
    """Return the cells of a file."""
    return [each for each in read_records(path, KINDS) if isinstance(each, StudyCell)]


def without_times(cells: list[StudyCell]) -> list[Any]:
    """Return what cells say, but when and where they were played, and how long decisions took."""
    said = []
    for each in sorted(cells, key=lambda cell: cell.key):
        assert each.observed is not None
        measures = {name: value for name, value in each.observed.measures.items() if name != "deciding"}
        said.append((each.key, each.called, each.status, measures, each.observed.quantiles, each.observed.over_time))
    return said


class BreaksAfterRounds(ShortestRemainingTimeFirst):
    """A policy that fails in the third round of what it plays."""

    def decide(self, problem: Any, state: Any, solve: Any) -> Schedule:
        if problem.index > 2:
            raise NotSolved("numerical trouble")
        return super().decide(problem, state, solve)


class KillsItsWorkerOnce(ShortestRemainingTimeFirst):
    """A policy that kills the process in which it is played, the first time; the marker says that it did."""

    def decide(self, problem: Any, state: Any, solve: Any) -> Schedule:
        marker = Path(os.environ["STUDY_MARKER"])
        if problem.index > 2 and not marker.exists():
            marker.write_text("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decide(problem, state, solve)


@dataclass(frozen=True)
class Evenly(Workload):
    """A generator of jobs that are all alike."""

    name = "evenly"
    source = "made up"

    jobs: int = 5
    load: float = 1.0

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        arrival = np.random.default_rng(seed).uniform(0, 100 / self.load, self.jobs)
        return Trace(
            Jobs.of(types=cluster.types, gpus=[1] * self.jobs, work=[60] * self.jobs, arrival=arrival.tolist())
        )

"""fairopt's engine with one of its policies: measures taken and the record written as it plays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from fairopt import discovery
from fairopt.experiment.bench import Contender
from fairopt.policy import Policy
from fairopt.simulation import Setting
from fairopt.simulation.engine import Engine
from fairopt.simulation.measures import Measuring
from fairopt.simulation.recording import Recorder, header


@dataclass(frozen=True)
class FairoptRounds(Contender):
    """``policy`` over the trace, in floats, as ``fairopt run --floats --record`` plays it; files are read before."""

    name = "fairopt-rounds"
    tasks = ("rounds",)
    libraries: ClassVar[Sequence[str]] = ("fairopt", "numpy")
    policy: str = "srtf"

    def build(self, task: str, prepared: Setting, *, time_limit: float, threads: int) -> tuple[Policy, Setting]:
        """Find the policy."""
        return discovery.policy(self.policy), prepared

    def solve(self, built: tuple[Policy, Setting]) -> dict[str, Any]:
        """Play it."""
        policy, setting = built
        trace, cluster = setting.trace, setting.cluster
        how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
        done, measuring = np.full(len(trace.jobs), math.nan), Measuring(trace, cluster)
        with TemporaryDirectory() as folder:
            run = header(policy.name, trace, cluster, **how)
            with Recorder(Path(folder, "record.jsonl.gz"), run, trace, cluster) as book:
                engine = Engine(policy, trace, cluster, **how)
                for changes in engine:
                    measuring.add(changes)
                    book.add(changes)
                    for row, moment in changes.completed.items():
                        done[row] = moment
                book.end(engine.snapshot())
        measuring.result(engine.index)
        return {"policy": self.policy, "completed": done}

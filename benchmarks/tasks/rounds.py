"""A trace played in rounds to its end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.experiment.bench import Instance, Judgement, Task
from fairopt.problem import Queue, Trace
from fairopt.simulation import Setting, run


@dataclass(frozen=True)
class Rounds(Task):
    """A trace played in rounds: the answer is the policy's name, and when each job (n,) was done, NaN for never.

    Every job that fits some type must be done, and none sooner than it could be alone. Up to ``comparable`` jobs the
    completions must be those of `fairopt.simulation.run`, which asks the policy in every round, to the last bit. There
    is no objective; the one told is the mean completion time.
    """

    name = "rounds"
    comparable: int = 200

    def warm_up(self) -> Setting:
        """Return ten jobs of Philly."""
        return Setting(philly_cluster().as_(float), Trace(philly_trace().jobs.take(range(10))).as_(float))

    def reference(self, instance: Instance) -> Any:
        """Return nothing: what is compared with depends on the policy, and `judge` works it out."""
        return None

    def judge(self, instance: Instance, answer: Any, reference: Any) -> Judgement:
        """Return what the completions are worth."""
        setting: Setting = instance.problem
        jobs, done = setting.trace.jobs, np.asarray(answer["completed"], dtype=float)
        if done.shape != (len(jobs),):
            return _judged(False, done, f"completions of shape {done.shape} for {len(jobs)} jobs")
        fits = Queue.fresh(jobs, setting.cluster, length=1).fits
        speed = np.where(fits, jobs.throughput, 0).max(axis=1)
        able = speed > 0
        late = np.flatnonzero(able & ~np.isfinite(done))
        if len(late):
            return _judged(False, done, f"job {jobs.names[late[0]]!r} and {len(late) - 1} others are not done")
        soonest = jobs.arrival[able] + jobs.work[able] / speed[able]
        if (done[able] < soonest * (1 - 1e-12)).any():
            return _judged(False, done, "a job is done sooner than alone on its fastest type")
        if len(jobs) > self.comparable:
            return _judged(True, done - jobs.arrival, "every job is done, and none too soon")
        how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
        rounds = run(discovery.policy(answer["policy"]), setting.trace, setting.cluster, **how)
        ends = {each.job: each.end for record in rounds for each in record.ran if each.completed}
        wanted = np.array([ends.get(name, math.nan) for name in jobs.names])
        same = np.array_equal(done, wanted, equal_nan=True)
        return _judged(same, done - jobs.arrival, "completions compared with those of `run`")


def _judged(accepted: bool, times: Any, note: str) -> Judgement:
    mean = float(np.nanmean(times)) if np.isfinite(times).any() else math.nan
    return Judgement(accepted, 0.0 if accepted else 1.0, 0.0 if accepted else math.nan, mean, note)

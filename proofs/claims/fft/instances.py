"""Queues, traces and counts that the rows on FFT share; made from seeds, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

import numpy as np

from fairopt.models.fft.fft import FFT, FFTState
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.trace import Outage
from fairopt.simulation import Mechanics, Round, run

#: A round takes this long in the traces below, so that parts of rounds and of epochs occur.
LENGTH = 2


@dataclass(frozen=True)
class Scene:
    """A trace on a cluster, and what moving costs there."""

    trace: Trace
    cluster: Cluster
    mechanics: Mechanics = field(default_factory=lambda: Mechanics(restart=Fraction(1, 4)))

    def play(self, policy: Policy, rounds: int | None = None) -> list[Round]:
        """Return the records of a run."""
        return list(run(policy, self.trace, self.cluster, length=LENGTH, mechanics=self.mechanics, rounds=rounds))


def scenes(count: int, *, jobs: int = 20, seed: int = 0) -> Iterator[Scene]:
    """Yield traces with gangs, memory, unschedulable jobs, state that takes time to move; a third with outages."""
    dice = Random(seed)
    for number in range(count):
        types = ["a", "b", "c"][: dice.randint(1, 3)]
        memory = {name: dice.choice([8, 16, 32]) for name in types}
        cluster = Cluster.uniform(
            {name: (dice.randint(1, 3), dice.randint(1, 4)) for name in types}, memory=memory, bandwidth=2
        )
        rows = Jobs.of(
            types=types,
            gpus=[dice.choice([1, 1, 1, 2, 2, 4]) for _ in range(jobs)],
            work=[dice.randint(1, 30) for _ in range(jobs)],
            throughput=[[dice.choice([0, 1, 2, 2, 3]) for _ in types] for _ in range(jobs)],
            arrival=sorted(Fraction(dice.randint(0, 3 * jobs), 2) for _ in range(jobs)),
            memory=[dice.choice([0, 0, 0, 10, 20]) for _ in range(jobs)],
            state_size=[dice.randint(0, 3) for _ in range(jobs)],
            pattern=[dice.choice(["intra", "inter"]) for _ in range(jobs)],
        )
        outages = (Outage(cluster.hosts[0], Fraction(9), Fraction(15)),) if number % 3 == 2 else ()
        yield Scene(Trace(rows, outages), cluster)


def queues(count: int, *, jobs: int = 6, seed: int = 0) -> Iterator[tuple[Queue, FFTState]]:
    """Yield queues from the middle of runs, with FFT's state; small enough to try all schedules."""
    dice = Random(seed)
    for scene in scenes(count, jobs=jobs, seed=seed):
        rows, hosts = scene.trace.jobs, len(scene.cluster.hosts)
        now = rows.arrival.max() + dice.randint(0, 3)
        last = tuple(((dice.randrange(hosts), 1),) if dice.random() < 0.6 else () for _ in range(jobs))
        running = np.array([bool(spots) and dice.random() < 0.7 for spots in last])
        queue = replace(Queue.fresh(rows, scene.cluster, length=LENGTH, now=now), last=last, running=running)
        state = FFT().refreshed(queue, FFTState())
        owed = {name: Fraction(dice.randint(0, 40), 4) for name in state.compensation}
        yield queue, replace(state, compensation=owed)


def present(record: Round) -> frozenset[str]:
    """Return the jobs that a round knew and that fit some type."""
    return frozenset({ran.job for ran in record.ran} | set(record.waiting)) - record.unschedulable.keys()

"""What Volcano's rules see of a market: queues in a tree, what they hold, and gangs that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fairopt.models.common.amounts import light
from fairopt.models.common.holdings import Amounts, Holdings, entitlements_of, takes_of
from fairopt.policy import DecisionReason
from fairopt.problem import Market
from fairopt.program import Array


class VolcanoJob(NamedTuple):
    """A gang: who asks, and what it takes on each type that it may run on, by the column of the type."""

    name: str
    queue: int
    ways: Mapping[int, Amounts]
    tier: int = 0
    preemptible: bool = True


@dataclass
class VolcanoCluster(Holdings):
    """What queues hold, and what is free, with the jobs of a session; everything changes as jobs start and stop.

    ``tier`` (N,): priorities; ``total`` (W,): what there is. ``waits``: for each queue its jobs, the first first;
    ``runs``: those that run, and the way that each does; ``starves``: jobs that did not fit; ``stopped``: why others
    were stopped.
    """

    tier: Sequence[int]
    total: list[Any]
    waits: dict[int, deque[VolcanoJob]]
    runs: dict[str, tuple[VolcanoJob, int]] = field(default_factory=dict)
    starves: dict[int, list[VolcanoJob]] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> VolcanoCluster:
        """Return what a market with entitlements says."""
        owed = entitlements_of(market)
        total = light([*market.capacity.tolist(), *owed.stock.tolist()])
        cluster = cls(**vars(Holdings.at_first(market)), tier=owed.tier.tolist(), total=total, waits={})
        gangs = owed.gangs
        for g in gangs.order().tolist():
            job = VolcanoJob(
                gangs.names[g],
                int(gangs.user[g]),
                {j: takes_of(owed, g, j) for j in np.flatnonzero(gangs.allowed[g]).tolist()},
                int(gangs.tier[g]),
                bool(gangs.preemptible[g]),
            )
            if gangs.on[g] < 0:
                cluster.waits.setdefault(job.queue, deque()).append(job)
            else:
                cluster.runs[job.name] = (job, int(gangs.on[g]))
        return cluster

    def start(self, job: VolcanoJob, way: int) -> None:
        """Let a job run, which then holds what it takes."""
        self.runs[job.name] = (job, way)
        self.add(job.queue, job.ways[way])

    def stop(self, job: VolcanoJob, why: str) -> None:
        """Stop a job that runs."""
        _, way = self.runs.pop(job.name)
        self.stopped[job.name] = why
        self.add(job.queue, job.ways[way], -1)


def decided(
    market: Market,
    cluster: VolcanoCluster,
    grounds: Callable[..., DecisionReason],
    order: Sequence[str],
    waits: Mapping[str, str],
) -> tuple[Array, DecisionReason]:
    """Return the GPUs (n, k) that each user holds now, in the market's numbers, and ``grounds`` with the gangs."""
    n, k = market.shape
    rows = [[cluster.held[user][column] + market.capacity[0] * 0 for column in range(k)] for user in range(n)]
    gangs = entitlements_of(market).gangs
    on = np.array([cluster.runs[name][1] if name in cluster.runs else -1 for name in gangs.names], dtype=np.int64)
    evidence = grounds(gangs=gangs.placed(on), order=tuple(order), waits=waits, stopped=cluster.stopped)
    return np.array(rows, dtype=market.capacity.dtype), evidence

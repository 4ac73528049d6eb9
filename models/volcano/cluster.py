"""What Volcano's rules see of a market: queues in a tree, what they hold, and gangs that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fairopt.models.common.amounts import light
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Array, Number

#: Amounts by column; a column that is left out is 0.
Amounts = Mapping[int, Number]


class VolcanoJob(NamedTuple):
    """A gang: who asks, and what it takes on each type that it may run on, by the column of the type."""

    name: str
    queue: int
    ways: Mapping[int, Amounts]
    tier: int = 0
    preemptible: bool = True


@dataclass
class VolcanoCluster:
    """Queues, with what each holds, and what is free; columns are types and goods.

    ``parent`` (N,): the queue above each, -1 at the top. ``held`` (N, W): with what those below hold. ``free`` (W,).
    ``tier`` (N,): priorities. ``waits``: for each queue its jobs, the first first; ``runs``: those that run, and the
    way that each does; ``starves``: jobs that did not fit. Everything changes as jobs start and stop.
    """

    names: Sequence[str]
    columns: Sequence[str]
    parent: Sequence[int]
    tier: Sequence[int]
    total: list[Any]
    free: list[Any]
    held: list[list[Any]]
    waits: dict[int, deque[VolcanoJob]]
    runs: dict[str, tuple[VolcanoJob, int]] = field(default_factory=dict)
    starves: dict[int, list[VolcanoJob]] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> VolcanoCluster:
        """Return what a market with entitlements says."""
        owed = entitlements_of(market)
        total = light([*market.capacity.tolist(), *owed.stock.tolist()])
        held = [light(row) for row in owed.total(owed.held).tolist()]
        used = [sum(held[top][column] for top in owed.tops) for column in range(len(total))]
        cluster = cls(
            owed.nodes,
            owed.columns,
            owed.parent.tolist(),
            owed.tier.tolist(),
            total,
            [there - taken for there, taken in zip(total, used, strict=True)],
            held,
            {},
        )
        gangs = owed.gangs
        for g in gangs.order().tolist():
            job = VolcanoJob(
                gangs.names[g],
                int(gangs.user[g]),
                {j: _taken(owed, gangs, g, j) for j in np.flatnonzero(gangs.allowed[g]).tolist()},
                int(gangs.tier[g]),
                bool(gangs.preemptible[g]),
            )
            if gangs.on[g] < 0:
                cluster.waits.setdefault(job.queue, deque()).append(job)
            else:
                cluster.runs[job.name] = (job, int(gangs.on[g]))
        return cluster

    def above(self, queue: int) -> Iterable[int]:
        """Yield a queue, the one above it, and so on."""
        while queue != TOP:
            yield queue
            queue = self.parent[queue]

    def lacks(self, takes: Amounts) -> list[int]:
        """Return the columns of which less is free than somebody takes."""
        return [column for column, amount in takes.items() if amount > self.free[column]]

    def start(self, job: VolcanoJob, way: int) -> None:
        """Let a job run, which then holds what it takes."""
        self.runs[job.name] = (job, way)
        self._add(job.queue, job.ways[way], 1)

    def stop(self, job: VolcanoJob, why: str) -> None:
        """Stop a job that runs."""
        _, way = self.runs.pop(job.name)
        self.stopped[job.name] = why
        self._add(job.queue, job.ways[way], -1)

    def _add(self, queue: int, takes: Amounts, sign: int) -> None:
        for column, amount in takes.items():
            self.free[column] -= sign * amount
            for node in self.above(queue):
                self.held[node][column] += sign * amount

    def said(self, amounts: Mapping[int, object]) -> str:
        """Return amounts in words."""
        return ", ".join(f"{_short(amount)} {self.columns[column]}" for column, amount in amounts.items())


def entitlements_of(market: Market) -> Entitlements:
    """Return the entitlements of a market, which `fairopt.policy.decide` demands of it."""
    assert market.entitlements is not None
    return market.entitlements


def _taken(owed: Entitlements, gangs: Gangs, g: int, gpu_type: int) -> dict[int, Number]:
    """Return what a gang takes on a type: its GPUs, and what is counted of the other resources."""
    takes: dict[int, Any] = {gpu_type: int(gangs.gpus[g])} if gangs.gpus[g] else {}
    for at, resource in enumerate(gangs.resources):
        column = owed.good(resource, gpu_type)
        if column is not None and gangs.other[g, at]:
            takes[column] = light([gangs.other[g, at]])[0]
    return takes


def _short(amount: Any) -> str:
    return str(amount) if amount == int(amount) else f"{float(amount):.4g}"


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

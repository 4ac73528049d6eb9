"""Volcano's action "allocate": the queue that comes first starts its first job, and takes its turn again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fairopt.models.common.amounts import ratio
from fairopt.models.volcano.cluster import Amounts, VolcanoCluster, VolcanoJob


class Turns(Protocol):
    """Whose turn it is, among the queues with jobs that wait; in a tie it is that of the queue that is listed first.

    Source: volcano pkg/scheduler/framework/session_plugins.go, QueueOrderFn; ties go by time of creation there.
    """

    def first(self) -> int | None:
        """Return the queue that comes first; None where nobody waits."""

    def changed(self, queue: int) -> None:
        """Take notice of what a queue holds, and whether jobs of it wait, now."""


def allocate(
    cluster: VolcanoCluster,
    turns: Turns,
    refused: Callable[[int, Amounts], str] = lambda queue, takes: "",
    overused: Callable[[int], str] = lambda queue: "",
    runs: Callable[[VolcanoJob, int], None] = lambda job, way: None,
) -> tuple[list[str], dict[str, str]]:
    """Start jobs while any fits; return the names of those that started, in order, and why the others wait.

    ``refused`` says why a queue may not start what takes so much, ``overused`` why it starts nothing; "" where it may.
    ``runs`` is told of each job that starts, and the way that it does.

    A job that does not fit is passed over, and the queue goes on with its next. Nodes are not looked at: a job fits
    where the whole cluster has enough that is free.

    Source: volcano pkg/scheduler/actions/allocate/allocate.go, allocateResources.
    """
    started: list[str] = []
    waits: dict[str, str] = {}
    while (queue := turns.first()) is not None:
        jobs = cluster.waits[queue]
        if why := overused(queue):
            waits |= {job.name: why for job in jobs}
            cluster.starves.setdefault(queue, []).extend(jobs)
            jobs.clear()
            turns.changed(queue)
            continue
        job = jobs.popleft()
        way, why = _way(cluster, refused, queue, job)
        if way is None:
            waits[job.name] = why
            cluster.starves.setdefault(queue, []).append(job)
        else:
            cluster.start(job, way)
            started.append(job.name)
            runs(job, way)
        turns.changed(queue)
    return started, waits


def _way(
    cluster: VolcanoCluster, refused: Callable[[int, Amounts], str], queue: int, job: VolcanoJob
) -> tuple[int | None, str]:
    why = "no type is allowed"
    for way, takes in job.ways.items():
        why = refused(queue, takes)
        if why:
            continue
        lacking = cluster.lacks(takes)
        if not lacking:
            return way, ""
        free = cluster.said({column: cluster.free[column] for column in lacking})
        why = f"{free} free, and it takes {cluster.said({column: takes[column] for column in lacking})}"
    return None, why


def within(cluster: VolcanoCluster, queue: int, most: list[Any], takes: Amounts, called: str) -> str:
    """Say why a queue that holds more after taking ``takes`` would have more than ``most``; "" where it would not."""
    held = cluster.held[queue]
    for column, amount in takes.items():
        if held[column] + amount > most[column]:
            has = f"{cluster.names[queue]!r} holds {cluster.said({column: held[column]})}, {called} {most[column]}"
            return f"{has}, and it takes {cluster.said({column: amount})}"
    return ""


def share(held: list[Any], owed: list[Any]) -> Any:
    """Return the largest part of what a queue is owed that it holds, over what it is owed any of; 0 for nothing.

    Source: volcano pkg/scheduler/plugins/proportion/proportion.go, updateQueueAttrShare; api/helpers, Share.
    """
    return max((ratio(has, due) for has, due in zip(held, owed, strict=True) if due > 0), default=0)

"""Volcano's actions: "allocate" starts the first job of the queue that comes first, "reclaim" stops jobs of others.

With "reclaim" a queue below what it deserves stops jobs of queues that are above.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, NamedTuple, TypeAlias

from fairopt.models.common.amounts import ratio
from fairopt.models.common.holdings import Amounts
from fairopt.models.common.turns import TreeTurns
from fairopt.models.volcano.cluster import QueueTree, VolcanoCluster, VolcanoJob
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY

#: What nodes would hold after some of their jobs were stopped, where that differs from now.
Left = dict[int, list[Any]]


#: Whose turn it is, among the queues with jobs that wait; in a tie it is that of the queue that is listed first.
#: Source: volcano pkg/scheduler/framework/session_plugins.go, QueueOrderFn; ties go by time of creation there.
Turns: TypeAlias = TreeTurns | QueueTree


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
    column = cluster.beyond(queue, takes, most)
    if column is None:
        return ""
    held = cluster.said({column: cluster.held[queue][column]})
    takes_ = cluster.said({column: takes[column]})
    return f"{cluster.names[queue]!r} holds {held}, {called} {most[column]}, and it takes {takes_}"


def share(held: list[Any], owed: list[Any]) -> Any:
    """Return the largest part of what a queue is owed that it holds, over what it is owed any of; 0 for nothing.

    Source: volcano pkg/scheduler/plugins/proportion/proportion.go, updateQueueAttrShare; api/helpers, Share.
    """
    return max((ratio(has, due) for has, due in zip(held, owed, strict=True) if due > 0), default=0)


class Rule(NamedTuple):
    """What a plugin says of reclaiming.

    ``may``: whether a queue may reclaim for so much. ``over``: whether any job of a queue may be stopped at all.
    ``yields``: whether a job that has so much may be stopped for a queue that takes so much, by what its queue and the
    groups above would hold before that. ``standing``: the order of victims' queues, least first. ``path``: a queue and
    the groups above it, where those below the same group are asked first; nothing where the tree does not count.
    ``local``: whether which jobs yield depends on the queue that reclaims.
    """

    may: Callable[[int, Amounts], bool]
    over: Callable[[int], bool]
    yields: Callable[[int, Amounts, VolcanoJob, Amounts, Left], bool]
    standing: Callable[[int], tuple[Any, ...]]
    path: Callable[[int], Sequence[int]]
    local: bool = False


class Offenders:
    """Queues with jobs that may be stopped: of each column, below each group, in the order in which they are asked.

    ``running``: those jobs by queue, with what each has. A queue's place changes with what it holds: `place` puts it
    where it belongs now. In a tie the queue that is listed first comes first.
    """

    def __init__(self, rule: Rule, running: dict[int, list[tuple[VolcanoJob, Amounts]]]) -> None:
        self.rule, self.running = rule, running
        self._keys: dict[int, tuple[tuple[Any, ...], set[int]]] = {}
        self._below: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for queue in running:
            self.place(queue)

    def __contains__(self, queue: int) -> bool:
        return queue in self._keys

    def place(self, queue: int) -> None:
        """Put a queue in its place, or leave it out where none of its jobs may be stopped."""
        groups = (*self.rule.path(queue), TOP)
        if queue in self._keys:
            key, columns = self._keys.pop(queue)
            for own in (self._below[node, column] for node in groups for column in columns):
                del own[bisect_left(own, key)]
        columns = {column for _, has in self.running[queue] for column in has}
        if columns and self.rule.over(queue):
            key = (*_quick(self.rule.standing(queue)), queue)
            self._keys[queue] = key, columns
            for own in (self._below.setdefault((node, column), []) for node in groups for column in columns):
                insort(own, key)

    def nearest(self, queue: int, columns: Collection[int]) -> Iterator[int]:
        """Yield those that have any of the columns: below the lowest group above a queue, itself first, and so on."""
        seen: set[int] = set()
        for node in (*self.rule.path(queue), TOP):
            for key in merge(*(self._below.get((node, column), ()) for column in columns)):
                if key[-1] not in seen:
                    seen.add(key[-1])
                    yield key[-1]


def _quick(key: tuple[Any, ...]) -> Iterator[Any]:
    """Yield a key's numbers, each after its float: floats are quick to compare, and in the order of the numbers."""
    for each in key:
        if isinstance(each, tuple):
            yield from _quick(each)
        else:
            yield _rounded(each)
            yield each


def _rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a Fraction beyond floats
        return INFINITY if number > 0 else -INFINITY


def reclaim(cluster: VolcanoCluster, turns: Turns, rule: Rule, waits: dict[str, str]) -> list[str]:
    """Stop jobs of other queues where that lets one start which ``waits``; return the names of those that started.

    Whole jobs are stopped, only where enough of them are found, and not on single nodes as Volcano does. What starts
    here is not stopped again. Source: volcano pkg/scheduler/actions/reclaim/reclaim.go, Execute and reclaimForTask.
    """
    started: list[str] = []
    running = _running(cluster)
    offenders = Offenders(rule, running)
    hopeless: set[Any] = set()

    def victims_of(queue: int, takes: Amounts, *, itself: bool = False) -> Sequence[VolcanoJob] | None:
        able = (each for each in offenders.nearest(queue, cluster.lacks(takes)) if itself or each != queue)
        return _victims(cluster, rule, queue, takes, (running[each] for each in able))

    while (queue := turns.first()) is not None:
        jobs, cluster.starves[queue] = cluster.starves[queue], []
        turns.changed(queue)  # it has one turn
        for job in jobs:
            for way, takes in job.ways.items():
                shape = frozenset(takes.items())
                if shape in hopeless or (queue, shape) in hopeless or not rule.may(queue, takes):
                    continue
                victims = victims_of(queue, takes)
                if victims is None:
                    # out of reach for all, where it would be even if the queue's own jobs yielded to it
                    own = rule.local or (queue in offenders and victims_of(queue, takes, itself=True) is not None)
                    hopeless.add((queue, shape) if own else shape)
                    continue
                for victim in victims:
                    cluster.stop(victim, f"{cluster.names[queue]!r} reclaims {cluster.said(takes)} for {job.name!r}")
                cluster.start(job, way)
                started.append(job.name)
                del waits[job.name]
                for changed in {queue, *(victim.queue for victim in victims)} & running.keys():
                    running[changed] = [each for each in running[changed] if each[0].name in cluster.runs]
                    offenders.place(changed)
                break
    return started


def _running(cluster: VolcanoCluster) -> dict[int, list[tuple[VolcanoJob, Amounts]]]:
    """Return the jobs that may be stopped by queue: of the lowest priority first, and the last that started."""
    out: dict[int, list[tuple[VolcanoJob, Amounts]]] = {}
    for job, way in reversed(cluster.runs.values()):
        if job.preemptible:
            out.setdefault(job.queue, []).append((job, job.ways[way]))
    for jobs in out.values():
        jobs.sort(key=lambda each: each[0].tier)
    return out


def _victims(
    cluster: VolcanoCluster,
    rule: Rule,
    queue: int,
    takes: Amounts,
    running: Iterable[Sequence[tuple[VolcanoJob, Amounts]]],
) -> Sequence[VolcanoJob] | None:
    """Return the jobs to stop so that ``takes`` fits: some that have what lacks; None where there are not enough."""
    lacking: dict[int, Any] = {column: takes[column] - cluster.free[column] for column in cluster.lacks(takes)}
    left: Left = {}
    victims: list[VolcanoJob] = []
    for jobs in running:
        for victim, has in jobs:
            if not lacking:
                return victims
            if not lacking.keys().isdisjoint(has) and rule.yields(queue, takes, victim, has, left):
                victims.append(victim)
                for node in cluster.above(victim.queue):
                    now = left.setdefault(node, list(cluster.held[node]))
                    for column, amount in has.items():
                        now[column] -= amount
                lacking = {c: lack - has.get(c, 0) for c, lack in lacking.items() if lack > has.get(c, 0)}
    return None if lacking else victims

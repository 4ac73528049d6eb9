"""Volcano's action "reclaim": a queue below what it deserves stops jobs of others that are above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairopt.models.volcano.allocate import Turns
from fairopt.models.volcano.cluster import Amounts, VolcanoCluster, VolcanoJob

#: What nodes would hold after some of their jobs were stopped, where that differs from now.
Left = dict[int, list[Any]]


class Rule(NamedTuple):
    """What a plugin says of reclaiming.

    ``may``: whether a queue may reclaim for so much. ``over``: whether any job of a queue may be stopped at all.
    ``yields``: whether a job that has so much may be stopped for a queue that takes so much, by what its queue and the
    groups above would hold before that. ``standing``: the order of victims' queues, least first, after ``near``: how
    near in the tree one is to the queue that reclaims. ``local``: whether which jobs yield depends on that queue.
    """

    may: Callable[[int, Amounts], bool]
    over: Callable[[int], bool]
    yields: Callable[[int, Amounts, VolcanoJob, Amounts, Left], bool]
    standing: Callable[[int], Any]
    near: Callable[[int, int], int]
    local: bool = False


def reclaim(cluster: VolcanoCluster, turns: Turns, rule: Rule, waits: dict[str, str]) -> list[str]:
    """Stop jobs of other queues where that lets one start which ``waits``; return the names of those that started.

    Whole jobs are stopped, only where enough of them are found, and not on single nodes as Volcano does. What starts
    here is not stopped again. Source: volcano pkg/scheduler/actions/reclaim/reclaim.go, Execute and reclaimForTask.
    """
    started: list[str] = []
    running = _running(cluster)
    has = {queue: {column for _, each in jobs for column in each} for queue, jobs in running.items()}
    yielding = {queue for queue in running if rule.over(queue)}
    hopeless: set[Any] = set()
    standings: dict[int, tuple[int, Any]] = {}

    def standing(queue: int) -> Any:
        """Return where a queue stands among victims, computed again only after it changed."""
        if standings.get(queue, (-1, None))[0] != cluster.changes[queue]:
            standings[queue] = (cluster.changes[queue], rule.standing(queue))
        return standings[queue][1]

    while (queue := turns.next()) is not None:
        for job in cluster.starves.get(queue, []):
            for way, takes in job.ways.items():
                shape = frozenset(takes.items())
                if shape in hopeless or (queue, shape) in hopeless or not rule.may(queue, takes):
                    continue
                lacking = cluster.lacks(takes)
                able = [each for each in yielding if each != queue and not has[each].isdisjoint(lacking)]
                others = {each: running[each] for each in able}
                victims = _victims(cluster, rule, queue, takes, others, standing)
                if victims is None:
                    # out of reach for all, where it would be even if the queue's own jobs yielded to it
                    mine = {queue: running[queue]} if queue in yielding else {}
                    own = rule.local or (
                        mine and _victims(cluster, rule, queue, takes, mine | others, standing) is not None
                    )
                    hopeless.add((queue, shape) if own else shape)
                    continue
                for victim in victims:
                    cluster.stop(victim, f"{cluster.names[queue]!r} reclaims {cluster.said(takes)} for {job.name!r}")
                cluster.start(job, way)
                started.append(job.name)
                del waits[job.name]
                for changed in {queue, *(victim.queue for victim in victims)} & running.keys():
                    running[changed] = [each for each in running[changed] if each[0].name in cluster.runs]
                    (yielding.add if rule.over(changed) else yielding.discard)(changed)
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
    running: dict[int, list[tuple[VolcanoJob, Amounts]]],
    standing: Callable[[int], Any],
) -> Sequence[VolcanoJob] | None:
    """Return the jobs to stop so that ``takes`` fits: some that have what lacks; None where there are not enough."""
    lacking: dict[int, Any] = {column: takes[column] - cluster.free[column] for column in cluster.lacks(takes)}
    left: Left = {}
    victims: list[VolcanoJob] = []
    for other in sorted(running, key=lambda each: (-rule.near(queue, each), standing(each))):
        for victim, has in running[other]:
            if not lacking:
                return victims
            if lacking.keys() & has.keys() and rule.yields(queue, takes, victim, has, left):
                victims.append(victim)
                for node in cluster.above(other):
                    now = left.setdefault(node, list(cluster.held[node]))
                    for column, amount in has.items():
                        now[column] -= amount
                lacking = {c: lack - has.get(c, 0) for c, lack in lacking.items() if lack > has.get(c, 0)}
    return None if lacking else victims

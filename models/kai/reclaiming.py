"""From whom a job of KAI's may reclaim, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add, gt, le, sub
from types import MappingProxyType

from fairopt.models.common.holdings import QueuedGang, ratio
from fairopt.models.kai.pool import NodePool
from fairopt.program import INFINITY, Number


class Reach:
    """From whom a job may reclaim: queues beside the ones that it is in, on each level of the tree; and how much.

    ``least``: how many times as saturated as the job's queues the others must stay. ``below``: how many jobs may be
    stopped below each node.

    Source: filter_victims.go, FilterVictim; strategies.go, FitsReclaimStrategy; reclaimable.go, getLeveledQueues,
    reclaimingQueuesRemainWithinBoundaries, isFairShareSaturationLowerPerResource.
    """

    def __init__(
        self, pool: NodePool, job: QueuedGang, least: Number, below: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        self._pool, self._job, self._least = pool, job, least
        self._sides: dict[int, tuple[int, int]] = {}
        #: by the job's queue and those above it: whether it stays within its quota, and beside it those that yield
        self._levels: dict[int, tuple[bool, list[int]]] = {}
        self._took: tuple[int, int] | None = None
        for node in pool.paths[job.queue]:
            above = pool.parent[node]
            within = all(map(le, map(add, pool.allocated[node], job.takes), pool.deserved[node]))
            found = [
                each
                for each in (pool.tops if above < 0 else pool.children[above])
                if each != node and below.get(each) and (not within or self._candidate(each))
            ]  # the filter looks at what is held before anybody is taken
            self._levels[node] = within, [each for each in found if self._yields(each, within)]
        self._below = below

    def levels(self) -> Iterable[tuple[int, list[int]]]:
        """Yield the job's queue and those above it, each with those beside it that yield: these only get fewer."""
        if self._took is not None:
            node, sibling = self._took
            within, found = self._levels[node]
            if not (self._below.get(sibling) and self._yields(sibling, within)):
                found.remove(sibling)
            self._took = None
        return ((node, found) for node, (_, found) in self._levels.items())

    def take(self, queue: int) -> None:
        """Say that a job of a queue is taken next."""
        self._took = self._beside(queue)

    def _yields(self, node: int, within: bool) -> bool:
        """Whether the jobs of a queue may be taken: it holds more than its share, or the job is owed by quota."""
        pool = self._pool
        return pool.over_may(node) or (within and any(map(gt, pool.allocated[node], pool.deserved[node])))

    def _candidate(self, node: int) -> bool:
        pool, under = self._pool, False
        for r, amount in enumerate(self._job.takes):
            if amount and pool.deserved[node][r] != INFINITY:
                if pool.allocated[node][r] > pool.deserved[node][r]:
                    return True
                under = under or pool.allocated[node][r] < pool.deserved[node][r]
        return not under

    # -- how much ----------------------------------------------------------------------------------------------------
    def over_quota(self) -> bool:
        """Whether a queue of the job would hold more for good than its quota, whoever is lost."""
        pool, job = self._pool, self._job
        return not job.preemptible and any(
            any(map(gt, map(add, pool.fixed[node], job.takes), pool.deserved[node])) for node in pool.paths[job.queue]
        )

    def bounded(self, lost: list[QueuedGang]) -> bool:
        """Whether the reclaiming queues stay within their shares, or less saturated than those that give."""
        touched: dict[tuple[int, int], set[int]] = {}
        for each in lost:
            touched.setdefault(self._beside(each.queue), set()).update(_taken(each))
        own = _taken(self._job)
        return not any(self._exceeds(*pair, touched[pair] | own) for pair in touched)

    def spared(self, taken: list[QueuedGang]) -> list[QueuedGang]:
        """Return those of the taken without whom it is not `bounded`, whoever else is lost.

        The more is lost, the less saturated are the queues of the job and those that give. So each is asked with all
        that were taken lost to the former, and with only its own lost to the latter.
        """
        by_side: dict[tuple[int, int], list[QueuedGang]] = {}
        for each in taken if not isinstance(self._pool.free[0], float) else ():  # in rounded numbers nothing is sure
            by_side.setdefault(self._beside(each.queue), []).append(each)
        own, found = _taken(self._job), list[QueuedGang]()
        for (node, sibling), several in by_side.items():
            over = [r for r in range(len(self._job.takes)) if self._then(node, r) > self._pool.shares[node][r]]
            if over:
                others = [sum(amounts) for amounts in zip(*(each.takes for each in several), strict=True)]
                found += [
                    each
                    for each in several
                    if self._exceeds(
                        node, sibling, (_taken(each) | own).intersection(over), list(map(sub, others, each.takes))
                    )
                ]
        return found

    def _exceeds(self, node: int, sibling: int, resources: Iterable[int], more: Sequence[Number] = ()) -> bool:
        """Whether a queue of the job is too saturated beside a sibling, if that held so much ``more``.

        Saturation is what is held over the fair share. Source: reclaimable.go, fairShareSaturationRatio.
        """
        pool = self._pool
        for r in resources:
            then, share, its = self._then(node, r), pool.shares[node][r], pool.shares[sibling][r]
            held = pool.allocated[sibling][r] + (more[r] if more else 0)
            if then > share and its > 0 and then * self._least * its >= held * share:
                return True
        return False

    def _then(self, node: int, r: int) -> Number:
        """Return what a queue of the job would hold with it."""
        found: Number = self._pool.allocated[node][r] + self._job.takes[r]
        return found

    def _beside(self, queue: int) -> tuple[int, int]:
        """Return where the paths of the job and of another queue part: the job's queue, and the one beside it."""
        if queue not in self._sides:
            pool = self._pool
            mine = {pool.parent[node]: node for node in pool.paths[self._job.queue]}
            theirs = next(node for node in pool.paths[queue] if pool.parent[node] in mine)
            self._sides[queue] = mine[pool.parent[theirs]], theirs
        return self._sides[queue]


def _taken(job: QueuedGang) -> set[int]:
    return {r for r, amount in enumerate(job.takes) if amount > 0}


def saturation(held: Number, share: Number) -> Number:
    """Return what is held over the fair share. Source: reclaimable.go, fairShareSaturationRatio."""
    found: Number = ratio(held, share) if share else INFINITY if held > 0 else 0
    return found

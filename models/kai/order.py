"""KAI Scheduler's order of jobs: down the tree of queues to the queue that comes first, and its first job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from fairopt.models.kai.pool import NodePool, PoolJob
from fairopt.problem.entitled_rows import TOP


class Order:
    """Jobs, given by place, in the order in which the scheduler looks at them.

    A queue is compared by what it would hold with the first of its jobs; its place is found anew after each of its
    jobs, whether that started or not. Source: job_order_by_queue.go at d5bc503a.
    """

    def __init__(self, pool: NodePool, jobs: Sequence[PoolJob]) -> None:
        self._pool = pool
        self._jobs: dict[int, list[PoolJob]] = {}
        for job in reversed(jobs):
            self._jobs.setdefault(job.queue, []).append(job)
        self._heaps: dict[int, list[Any]] = {}
        nodes = {node for queue in self._jobs for node in pool.paths[queue]}
        for node in sorted(nodes, key=lambda node: -len(pool.paths[node])):
            heapify(self._heaps.get(node, []))
            self._heaps.setdefault(pool.parent[node], []).append(self._entry(node))
        heapify(self._heaps.setdefault(TOP, []))

    def _entry(self, node: int) -> tuple[tuple[Any, ...], int]:
        return self._pool.order(node, self._first(node).takes), node

    def _first(self, node: int) -> PoolJob:
        while node not in self._jobs:
            node = self._heaps[node][0][1]
        return self._jobs[node][-1]

    def __iter__(self) -> Iterator[PoolJob]:
        while self._heaps[TOP]:
            at, path = TOP, []
            while at not in self._jobs:
                at = heappop(self._heaps[at])[1]
                path.append(at)
            yield self._jobs[at].pop()
            for node in reversed(path):
                if self._heaps.get(node) or self._jobs.get(node):
                    heappush(self._heaps[self._pool.parent[node]], self._entry(node))

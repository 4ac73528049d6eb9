"""In which order the heads of ClusterQueues are tried within a cycle.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/fair_sharing_iterator.go (runTournament, less, computeDRS) and
scheduler.go (makeClassicalIterator).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairopt.models.kueue.flavors import Assignment
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import QueuedWork, State

Key = tuple[object, ...]


class Head(NamedTuple):
    """The head of a ClusterQueue, and the flavor that it was nominated for."""

    work: QueuedWork
    assignment: Assignment


def in_order(state: State, entries: Sequence[Head]) -> Iterator[Head]:
    """Yield the entries one by one; with fair sharing by shares as the usage is when each is asked for."""
    if state.fair:
        yield from _fair(state, entries)
        return
    yield from sorted(
        entries, key=lambda each: (each.assignment.borrows, -each.work.priority, each.work.since, each.work.number)
    )


def _fair(state: State, entries: Sequence[Head]) -> Iterator[Head]:
    by_root: dict[int, list[Head]] = {}
    for each in entries:
        by_root.setdefault(state.quotas.paths[each.work.queue][-1], []).append(each)
    for root, own in by_root.items():
        if own[0].work.queue == root:
            yield from own
        else:
            yield from _Tournament(state, root, own)


class _Tournament:
    """Down a tree of cohorts: each nominates the child with the lowest share, its nominee's usage included.

    A child's key depends on the usage at the child and on whom it nominates. So after an entry was processed only the
    nodes above it are asked again; each cohort keeps its children in a heap, with old keys left in it.
    """

    def __init__(self, state: State, root: int, entries: Sequence[Head]) -> None:
        self.state, self.root = state, root
        self.nominee: dict[int, Head] = {each.work.queue: each for each in entries}
        self.heaps: dict[int, list[tuple[Key, int, int]]] = {}
        self.version: dict[int, int] = {}
        paths = state.quotas.paths
        nodes = {node for queue in self.nominee for node in paths[queue][1:]}
        for queue in list(self.nominee):
            self._enter(queue)
        for node in sorted(nodes, key=lambda each: -len(paths[each])):
            self._choose(node)

    def __iter__(self) -> Iterator[Head]:
        while self.root in self.nominee:
            winner = self.nominee[self.root]
            queue = winner.work.queue
            del self.nominee[queue]
            self.version[queue] = self.version.get(queue, 0) + 1
            yield winner
            for node in self.state.quotas.paths[queue][1:]:
                self._choose(node)

    def _choose(self, cohort: int) -> None:
        """Let a cohort nominate its best child's nominee, and enter it at the cohort above."""
        heap = self.heaps.get(cohort, [])
        while heap and self.version.get(heap[0][2], 0) != heap[0][1]:
            heapq.heappop(heap)
        self.nominee.pop(cohort, None)
        self.version[cohort] = self.version.get(cohort, 0) + 1
        if heap:
            self.nominee[cohort] = self.nominee[heap[0][2]]
            self._enter(cohort)

    def _enter(self, node: int) -> None:
        over = self.state.quotas.parent[node]
        if over >= 0:
            entry = (self._key(node), self.version.get(node, 0), node)
            heapq.heappush(self.heaps.setdefault(over, []), entry)

    def _key(self, node: int) -> Key:
        """Return what `less` compares, for a node with its nominee's usage added."""
        quotas, entry = self.state.quotas, self.nominee[node]
        more = _arriving(self.state, entry, node)
        borrows = False
        if self.state.nominal_first:
            arriving, usage, quota = dict(more), quotas.usage[node], quotas.subtree[node]
            for column, _ in entry.assignment.needs:
                borrows = borrows or usage[column] + arriving.get(column, 0) > quota[column]
        work = entry.work
        return (borrows, *quotas.order(node, more), -work.priority, work.since, node)


def _arriving(state: State, entry: Head, node: int) -> Needs:
    """Return what of an entry's usage arrives at a node above its ClusterQueue: what is not local below."""
    if node == entry.work.queue:
        return entry.assignment.needs
    quotas, found = state.quotas, []
    for column, amount in entry.assignment.needs:
        for at in quotas.paths[entry.work.queue]:
            if at == node or amount <= 0:
                break
            amount -= max(0, quotas.local[at][column] - quotas.usage[at][column])
        if amount > 0:
            found.append((column, amount))
    return found

"""From which ClusterQueue fair sharing preempts next: down the tree, where the share is highest.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/fairsharing (ordering.go, target.go,
least_common_ancestor.go).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from fairopt.models.kueue.quotas import CohortQuotas
from fairopt.models.kueue.state import Candidate, Place

#: What children of a cohort are compared by, least first: the highest share, then cohorts, ClusterQueues, one's own.
_Key = tuple[bool, int, int, object]
_Entry = tuple[_Key, int]
#: The rank of cohorts with candidates of the preemptor's own ClusterQueue: it comes before all others.
OWN = -1


class Standings:
    """ClusterQueues that have candidates, in a tree, and the order of the children of each cohort.

    ``first``: of each ClusterQueue, the place of its first candidate; in the order in which they are asked. Orders are
    made when they are asked for, and hold while the usage stays.
    """

    def __init__(self, quotas: CohortQuotas, first: Mapping[int, Place]) -> None:
        self.quotas, self.first = quotas, first
        self.below: dict[int, list[int]] = {}
        self.ranks: dict[int, int] = {}
        self._orders: dict[int, list[_Entry]] = {}
        for rank, queue in enumerate(first):
            child = queue
            for over in quotas.paths[queue][1:]:
                self.below.setdefault(over, []).append(child)
                if over in self.ranks:
                    break
                self.ranks[over] = rank
                child = over

    def order(self, cohort: int) -> list[_Entry]:
        """Return the children of a cohort that have candidates, in order: a heap, not to be changed."""
        found = self._orders.get(cohort)
        if found is None:
            children = self.below.get(cohort, ())
            found = self._orders[cohort] = sorted([(self._key(child), child) for child in children])
        return found

    def _key(self, child: int) -> _Key:
        infinite, share = self.quotas.order(child)
        if child in self.ranks:
            return not infinite, -share, 0, -self.ranks[child]
        return not infinite, -share, 1, self.first[child]

    def rank_without(self, cohort: int, queue: int) -> int:
        """Return the rank of a cohort if a ClusterQueue had no candidates."""
        rank = self.ranks.get(cohort, OWN)
        if queue not in self.first or cohort not in self.quotas.paths[queue]:
            return rank
        left = (at for at, each in enumerate(self.first) if each != queue and cohort in self.quotas.paths[each])
        return next(left, OWN)


class TargetQueues:
    """Yields the ClusterQueue to preempt from next: TargetClusterQueueOrdering.

    The one who gets it pops a workload of `of`, or drops the queue. Nothing else changes meanwhile, so that only shares
    on the path of a ClusterQueue that was yielded do, and fall. Each cohort that was asked keeps its children in a
    heap, in which those on that path come first until then.

    ``own``: whom of the preemptor's ClusterQueue may go. ``ask``: whom of another. ``standings``: of the others. Its
    orders above the preemptor are from before its usage was added.
    """

    def __init__(
        self,
        quotas: CohortQuotas,
        queue: int,
        standings: Standings,
        own: list[Candidate],
        ask: Callable[[int], list[Candidate]],
    ) -> None:
        self.quotas, self.queue, self.standings, self.ask = quotas, queue, standings, ask
        self.path = quotas.paths[queue]
        self.left: dict[int, list[Candidate]] = {queue: own}
        self.has_own = bool(own)
        self.pruned: set[int] = set()
        self.heaps: dict[int, list[_Entry]] = {}

    def of(self, queue: int) -> list[Candidate]:
        """Return the candidates of a ClusterQueue that are left, in order."""
        found = self.left.get(queue)
        if found is None:
            found = self.left[queue] = self.ask(queue)
        return found

    def __iter__(self) -> Iterator[int]:
        root = self.path[-1]
        if root == self.queue:
            while root not in self.pruned and self.of(root):
                yield root
            return
        while root not in self.pruned:
            found = self._next(root)
            if found is not None:
                yield found
                self._changed(found)

    def rest(self, cohort: int) -> Iterator[int]:
        """Yield the ClusterQueues that are left below a cohort, in order, where nothing changes meanwhile."""
        heap = self._heap(cohort)
        while heap:
            _, child = heapq.heappop(heap)
            if not self._prunes(child):
                if self.quotas.children[child]:
                    yield from self.rest(child)
                else:
                    yield child

    def _heap(self, cohort: int) -> list[_Entry]:
        heap = self.heaps.get(cohort)
        if heap is None:
            heap = self.standings.order(cohort)[:]
            if cohort in self.path:
                mine = self.path[self.path.index(cohort) - 1]
                heap = [each for each in heap if each[1] != mine]
                heapq.heappush(heap, (self._key(mine), mine))
            self.heaps[cohort] = heap
        return heap

    def _next(self, cohort: int) -> int | None:
        """Return the ClusterQueue below a cohort; None where that pruned something: nextTarget."""
        heap = self._heap(cohort)
        while heap:
            child = heap[0][1]
            if not self._prunes(child):
                return self._next(child) if self.quotas.children[child] else child
            heapq.heappop(heap)
        self.pruned.add(cohort)
        return None

    def _key(self, child: int) -> _Key:
        """Return the key of a child with its share now.

        Of cohorts with equal shares the last comes first; of ClusterQueues the one whose candidate does.
        """
        infinite, share = self.quotas.order(child)
        if not self.quotas.children[child]:
            own = self.of(child)
            return not infinite, -share, 2 if child == self.queue else 1, own[0][0] if own else ()
        if child not in self.path:
            rank = self.standings.ranks[child]
        else:
            rank = OWN if self.has_own else self.standings.rank_without(child, self.queue)
        return not infinite, -share, 0, -rank

    def _prunes(self, child: int) -> bool:
        """Prune a child that does not borrow, or has nobody left, and return whether it is pruned."""
        if child not in self.pruned:
            quotas = self.quotas
            if (quotas.borrows(child) or child in self.path) and (quotas.children[child] or self._has_any(child)):
                return False
            self.pruned.add(child)
        return True

    def _has_any(self, queue: int) -> bool:
        return bool(self.left[queue]) if queue in self.left else queue in self.standings.first

    def _changed(self, queue: int) -> None:
        """Enter a ClusterQueue that was yielded, and the cohorts above it, with their shares now."""
        for child, over in pairwise(self.quotas.paths[queue]):
            heap = self.heaps[over]
            if heap and heap[0][1] == child:  # else `rest` took it out
                heapq.heapreplace(heap, (self._key(child), child))

    def sides(self, target: int) -> tuple[int, int, int]:
        """Return the lowest common ancestor, and the nodes below it: of the preemptor, and of a target."""
        below = target
        for over in self.quotas.paths[target][1:]:
            if over in self.path:
                return over, self.path[self.path.index(over) - 1], below
            below = over
        raise AssertionError("they are in one tree")

"""Whom a workload preempts: with fair sharing here, else as `classic` has it.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption: preemption.go (fairPreemptions, runFirstFsStrategy,
runSecondFsStrategy) and fairsharing (strategy.go, ordering.go, target.go, least_common_ancestor.go).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise

from fairopt.models.kueue.classic_preemption import (
    FAIR,
    IN_QUEUE,
    RECLAIMED,
    Gone,
    Places,
    classic,
    fill_back,
    put_back,
)
from fairopt.models.kueue.quotas import CohortQuotas, Needs
from fairopt.models.kueue.state import Candidate, Preempts, State, Strategy, Target
from fairopt.models.kueue.work import QueuedWork

#: A child of a cohort, after what children are compared by.
_Entry = tuple[tuple[object, ...], int]


def targets_of(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], flavor: int | None = None
) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible: getTargets.

    ``columns`` are those that lack room. With a ``flavor`` its pods must find places there, too. The state is as before
    afterwards.
    """

    def places(gone: Sequence[Gone]) -> bool:
        assert flavor is not None
        return state.topologies.place(work, flavor, [target.work for target, _ in gone]) is not None

    asked = places if flavor is not None and work.topology else None
    return (_fair if state.fair else classic)(state, work, needs, columns, asked)


class _TargetQueues:
    """From which ClusterQueue is preempted next: down the tree, where the share is highest: TargetClusterQueueOrdering.

    Of cohorts with equal shares the one that was listed last comes first, then ClusterQueues by their first candidate,
    the preemptor's own last. A node that does not borrow is left out with all below it, but for those above the
    preemptor. Only the usage of who goes is taken away meanwhile, so that shares above a ClusterQueue that came first
    fall, the others stay, and none borrows again.

    ``listed``: whom of each ClusterQueue may go, in order. Preemptors in one state share the order of the children
    of each cohort (`of_preemptor`), which differs only above their own ClusterQueue.
    """

    def __init__(self, quotas: CohortQuotas, listed: Mapping[int, list[Candidate]]) -> None:
        self.quotas, self.listed = quotas, listed
        self.queue = -1
        self.path: Sequence[int] = ()
        self.left: dict[int, list[Candidate]] = {}
        self.rank: dict[int, int] = {}
        below: dict[int, list[int]] = {}
        for rank, queue in enumerate(listed):
            for child, cohort in pairwise(quotas.paths[queue]):
                below.setdefault(cohort, []).append(child)
                if cohort in self.rank:
                    break
                self.rank[cohort] = rank
        self.known: dict[int, list[_Entry]] = {
            cohort: sorted([(self._key(child), child) for child in children if quotas.borrows(child)])
            for cohort, children in below.items()
        }
        self.orders: dict[int, list[_Entry]] = {}

    def of_preemptor(self, queue: int, own: list[Candidate]) -> _TargetQueues:
        """Return the order for a preemptor's ClusterQueue, of which ``own`` may go, with its usage as it is now."""
        mine = copy(self)
        mine.queue, mine.path, mine.left, mine.orders = queue, self.quotas.paths[queue], {queue: own}, {}
        for cohort in mine.path[1:-1]:
            others = (at for at, each in enumerate(self.listed) if each != queue and cohort in self.quotas.paths[each])
            mine.rank = {**mine.rank, cohort: -1 if own else next(others, -1)}
        return mine

    def of(self, queue: int) -> list[Candidate]:
        """Return who of a ClusterQueue is left, in order."""
        found = self.left.get(queue)
        return self.listed[queue] if found is None else found

    def take(self, queue: int) -> Candidate:
        """Return who is the first of a ClusterQueue, who is not left any more; it may have `changed` with that."""
        first, *self.left[queue] = self.of(queue)
        return first

    def first(self, node: int) -> int | None:
        """Return the ClusterQueue below a node, or the node, that comes first; None where nobody is left."""
        if not self.quotas.children[node]:
            return node if self.of(node) else None
        order = self._order(node)
        while order:
            if (found := self.first(order[0][1])) is not None:
                return found
            del order[0]
        return None

    def changed(self, queue: int) -> None:
        """Find anew the places of a ClusterQueue that was first, and of those above it that still borrow."""
        for child, cohort in pairwise(self.quotas.paths[queue]):
            order = self._order(cohort)
            del order[0]
            if child in self.path or self.quotas.borrows(child):
                insort(order, (self._key(child), child))

    def drop(self, node: int) -> None:
        """Drop a node and all below it."""
        if self.quotas.children[node]:
            self.orders[node] = []
        else:
            self.left[node] = []

    def rest(self, node: int) -> Iterator[int]:
        """Yield the ClusterQueues below a node, in order, and drop them."""
        while (queue := self.first(node)) is not None:
            yield queue
            self.drop(queue)

    def sides(self, target: int) -> tuple[int, int, int]:
        """Return the lowest common ancestor, and the nodes below it: of the preemptor, and of a target."""
        theirs = self.quotas.paths[target]
        at = next(at for at, node in enumerate(theirs) if node in self.path)
        return theirs[at], self.path[self.path.index(theirs[at]) - 1], theirs[at - 1]

    def _order(self, cohort: int) -> list[_Entry]:
        order = self.orders.get(cohort)
        if order is None:
            mine = self.path[self.path.index(cohort) - 1] if cohort in self.path else -1
            order = [each for each in self.known.get(cohort, ()) if each[1] != mine]
            if mine >= 0:
                insort(order, (self._key(mine), mine))
            self.orders[cohort] = order
        return order

    def _key(self, node: int) -> tuple[object, ...]:
        infinite, share = self.quotas.order(node)
        if node in self.rank:
            return not infinite, -share, 0, -self.rank[node]
        left = self.of(node)
        return not infinite, -share, 2 if node == self.queue else 1, left[0][0] if left else ()


def _fair(state: State, work: QueuedWork, needs: Needs, columns: set[int], places: Places | None) -> list[Target]:
    """Return `targets_of` with fair sharing: by the first strategy, then those that it left by the second."""
    quotas, rules = state.quotas, state.rules(work.queue)
    own = state.candidates(work.queue, rules.within_cluster_queue, work, columns)
    reclaims = rules.reclaim_within_cohort
    # the candidates of all priorities are the same for each preemptor
    key = ("fair", *columns, reclaims, None if reclaims is Preempts.ANY else work.priority)

    def listed() -> _TargetQueues:
        asked = sorted(quotas.above_quota(work.queue, columns))
        found = {queue: state.candidates(queue, reclaims, work, columns) for queue in asked}
        return _TargetQueues(quotas, {queue: each for queue, each in found.items() if each})

    others = state.known(quotas.paths[work.queue][-1], key, listed)
    if not own and not others.listed.keys() - {work.queue}:
        return []
    quotas.add(work.queue, needs)  # shares are those with the workload in
    fits, gone, retry = _first(state, work, needs, columns, others.of_preemptor(work.queue, own), places)
    if not fits and retry and len(state.strategies) > 1:
        fits = _second(state, work, needs, retry, gone, places)
    quotas.remove(work.queue, needs)
    gone = fill_back(state, work, needs, gone, quotas.add, quotas.remove, places) if fits else gone
    targets = put_back(quotas.add, gone)
    return targets if fits else []


def _first(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], queues: _TargetQueues, places: Places | None
) -> tuple[bool, list[Gone], dict[int, list[Candidate]]]:
    """Return whether it fits now, who goes, and whom rule S2-b may ask again: runFirstFsStrategy."""
    quotas, strategy = state.quotas, state.strategies[0]
    gone: list[Gone] = []
    retry: dict[int, list[Candidate]] = {}
    entitled = state.within_nominal and not quotas.over_any(work.queue, columns)
    while (queue := queues.first(queues.path[-1])) is not None:
        first, reason = None, FAIR
        if queue == work.queue or entitled:
            first, reason = queues.take(queue), IN_QUEUE if queue == work.queue else RECLAIMED
        else:
            ancestor, mine, theirs = queues.sides(queue)
            new_share, old_share = quotas.order(mine), quotas.order(theirs)
            if new_share > old_share:
                # Taking something away only lowers theirs, so neither rule lets any of them go; nor is anybody on the
                # preemptor's side left. S2-b may ask them again only if it lowers ``mine`` before, by those in retry.
                again = any(mine in quotas.paths[each] for each in retry)
                for each in queues.rest(ancestor) if again else ():
                    retry.setdefault(each, []).extend(queues.of(each))
                queues.drop(ancestor)
                continue
            while first is None and queues.of(queue):
                first = queues.take(queue)
                if strategy is Strategy.INITIAL_SHARE:
                    passed = new_share < old_share
                else:
                    passed = new_share <= quotas.order_without(theirs, queue, first[2])
                if not passed:
                    retry.setdefault(queue, []).append(first)
                    first = None
        if first is not None:
            quotas.remove(queue, first[2])
            gone.append((Target(first[1], reason), first[2]))
            if quotas.fits(work.queue, needs, counted=True) and (places is None or places(gone)):
                return True, gone, {}
        queues.changed(queue)
    return False, gone, retry


def _second(
    state: State,
    work: QueuedWork,
    needs: Needs,
    retry: dict[int, list[Candidate]],
    gone: list[Gone],
    places: Places | None,
) -> bool:
    """Add who goes by rule S2-b, one of each ClusterQueue, and return whether it fits: runSecondFsStrategy."""
    quotas = state.quotas
    queues = _TargetQueues(quotas, retry).of_preemptor(work.queue, [])
    while (queue := queues.first(queues.path[-1])) is not None:
        _, first, usage, _ = queues.of(queue)[0]
        queues.drop(queue)
        ancestor, mine, theirs = queues.sides(queue)
        new_share, old_share = quotas.order(mine), quotas.order(theirs)
        if new_share < old_share:
            quotas.remove(queue, usage)
            gone.append((Target(first, FAIR), usage))
            if quotas.fits(work.queue, needs, counted=True) and (places is None or places(gone)):
                return True
        queues.changed(queue)
        if new_share > old_share:  # nobody else below the ancestor has a higher share
            queues.drop(ancestor)
    return False

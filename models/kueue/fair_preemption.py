"""Whom fair sharing preempts for a workload.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/preemption.go (fairPreemptions, runFirstFsStrategy,
runSecondFsStrategy) and preemption/fairsharing (ordering.go, strategy.go, target.go, least_common_ancestor.go).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Candidate, Preempts, QueuedWork, State, Strategy, Target

IN_QUEUE, RECLAIMED, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"
_Key = tuple[bool, int, int, int | tuple[int, ...]]


def fair_targets(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible.

    ``columns`` are those that lack room. The state is as before afterwards.
    """
    candidates = _candidates(state, work, columns)
    if not candidates.queues:
        return []
    quotas, stamp = state.quotas, state.quotas.stamp
    quotas.add(work.queue, needs)  # shares are those with the workload in
    fits, targets, retry = _first(state, work, needs, columns, candidates, state.strategies[0])
    if not fits and len(state.strategies) > 1:
        fits = _second(state, work, needs, retry, targets)
    quotas.remove(work.queue, needs)
    if fits:
        targets = fill_back(state, work, needs, targets)
    for target in targets:
        quotas.add(target.work.queue, target.work.usage)
    quotas.undone(stamp)
    return targets if fits else []


@dataclass
class _Candidates:
    """Who may be preempted, in order, of ``queues``: listed when a ClusterQueue is asked, and used up."""

    queues: list[int]
    ask: Callable[[int], list[Candidate]]
    listed: dict[int, list[Candidate]] = field(default_factory=dict)

    def of(self, queue: int) -> list[Candidate]:
        """Return those of a ClusterQueue that are left."""
        if queue not in self.listed:
            self.listed[queue] = self.ask(queue)
        return self.listed[queue]


def _candidates(state: State, work: QueuedWork, columns: set[int]) -> _Candidates:
    """Return who may be preempted: findCandidates."""
    rules = state.rules(work.queue)
    own = state.candidates(work.queue, rules.within, work, columns)
    found = [work.queue] if own else []
    if rules.reclaim is not Preempts.NEVER:
        found += state.queues_above(rules.reclaim, work, columns)
    return _Candidates(
        found, lambda queue: state.candidates(queue, rules.reclaim, work, columns), {work.queue: own} if own else {}
    )


class _Offenders:
    """Yields the ClusterQueue to preempt from next: down the tree, where the share is highest.

    Source: fairsharing/ordering.go, TargetClusterQueueOrdering. The one who gets it pops a workload, or drops the
    queue; ``candidates`` are used up. Nothing else changes meanwhile, so that only shares on the path of a
    ClusterQueue that was yielded do, and fall. Each cohort that was asked keeps its children in a heap, with old keys
    left in it.
    """

    def __init__(self, state: State, queue: int, candidates: _Candidates) -> None:
        self.state, self.queue, self.candidates = state, queue, candidates
        self.own_path = set(state.quotas.paths[queue])
        self.pruned: set[int] = set()
        self.below: dict[int, list[int]] = {}
        self.heaps: dict[int, list[tuple[_Key, int, int]]] = {}
        self.version: dict[int, int] = {}
        for node in candidates.queues:
            for over in state.quotas.paths[node][1:]:
                known = self.below.setdefault(over, [])
                known.append(node)
                if len(known) > 1:
                    break
                node = over

    def __iter__(self) -> Iterator[int]:
        root = self.state.quotas.paths[self.queue][-1]
        if root == self.queue:
            while root not in self.pruned and root in self.candidates.queues and self.candidates.of(root):
                yield root
            return
        while root not in self.pruned:
            found = self._next(root)
            if found is not None:
                yield found
                self._changed(found)

    def rest(self, cohort: int) -> Iterator[int]:
        """Yield the ClusterQueues that are left below a cohort, in order, where nothing changes meanwhile; prune it."""
        heap = self._heap(cohort)
        while heap:
            _, version, child = heapq.heappop(heap)
            if version == self.version.get(child, 0) and not self._prunes(child):
                if child in self.below:
                    yield from self.rest(child)
                else:
                    yield child
        self.pruned.add(cohort)

    def _heap(self, cohort: int) -> list[tuple[_Key, int, int]]:
        if cohort not in self.heaps:
            children = enumerate(self.below.get(cohort, ()))
            self.heaps[cohort] = [(self._key(child, at), 0, child) for at, child in children]
            heapq.heapify(self.heaps[cohort])
        return self.heaps[cohort]

    def _next(self, cohort: int) -> int | None:
        """Return the ClusterQueue below a cohort; None where that pruned something: nextTarget."""
        heap = self._heap(cohort)
        while heap:
            _, version, child = heap[0]
            if version == self.version.get(child, 0) and not self._prunes(child):
                return self._next(child) if child in self.below else child
            heapq.heappop(heap)
        self.pruned.add(cohort)
        return None

    def _key(self, child: int, at: int) -> _Key:
        """Return what children of a cohort are compared by, least first: the highest share, cohorts before queues.

        Of cohorts with equal shares the last comes first; of ClusterQueues the one whose candidate does.
        """
        infinite, share = self.state.quotas.order(child)
        if child in self.below:
            return not infinite, -share, 0, -at
        own = self.candidates.of(child)
        return not infinite, -share, 1 + (child == self.queue), own[0][0] if own else ()

    def _prunes(self, child: int) -> bool:
        """Prune a child that does not borrow, or has nobody left, and return whether it is pruned."""
        if child not in self.pruned:
            lends = not self.state.quotas.borrows(child)
            if child in self.below:
                useless = lends and child not in self.own_path
            else:
                useless = (lends and child != self.queue) or not self.candidates.of(child)
            if not useless:
                return False
            self.pruned.add(child)
        return True

    def _changed(self, queue: int) -> None:
        """Enter a ClusterQueue that was yielded, and the cohorts above it, with their shares now."""
        path = self.state.quotas.paths[queue]
        for child, over in pairwise(path):
            self.version[child] = version = self.version.get(child, 0) + 1
            heapq.heappush(self.heaps[over], (self._key(child, self.below[over].index(child)), version, child))

    def sides(self, target: int) -> tuple[int, int, int]:
        """Return the lowest common ancestor, and the nodes below it: of the preemptor, and of a target."""
        paths = self.state.quotas.paths
        below = target
        for over in paths[target][1:]:
            if over in self.own_path:
                mine = paths[self.queue][paths[self.queue].index(over) - 1]
                return over, mine, below
            below = over
        raise AssertionError("they are in one tree")


def _first(
    state: State,
    work: QueuedWork,
    needs: Needs,
    columns: set[int],
    candidates: _Candidates,
    strategy: Strategy,
) -> tuple[bool, list[Target], dict[int, list[Candidate]]]:
    """Return whether it fits now, who goes, and whom rule S2-b may ask again: runFirstFsStrategy."""
    quotas = state.quotas
    targets: list[Target] = []
    retry: dict[int, list[Candidate]] = {}
    offenders = _Offenders(state, work.queue, candidates)
    entitled = state.within_nominal and not quotas.over_any(work.queue, columns)
    for queue in offenders:
        own = candidates.of(queue)
        if queue == work.queue or entitled:
            gone = own.pop(0)[1]
            quotas.remove(queue, gone.usage)
            targets.append(Target(gone, IN_QUEUE if queue == work.queue else RECLAIMED))
            if quotas.fits(work.queue, needs, counted=True):
                return True, targets, {}
            continue
        ancestor, mine, theirs = offenders.sides(queue)
        new_share, old_share = quotas.order(mine), quotas.order(theirs)
        if new_share > old_share:
            # Taking something away only lowers theirs, so neither rule lets any of them go; nor of any other below the
            # ancestor: theirs is the highest share there, so nobody on the preemptor's side is left whom to ask.
            for each in offenders.rest(ancestor):
                retry.setdefault(each, []).extend(candidates.of(each))
                candidates.of(each).clear()
            continue
        while own:
            first = own.pop(0)
            gone = first[1]
            if strategy is Strategy.INITIAL_SHARE:
                passed = new_share < old_share
            else:
                passed = new_share <= quotas.order_without(theirs, queue, gone.usage)
            if not passed:
                retry.setdefault(queue, []).append(first)
                continue
            quotas.remove(queue, gone.usage)
            targets.append(Target(gone, FAIR))
            if quotas.fits(work.queue, needs, counted=True):
                return True, targets, {}
            break  # another ClusterQueue may be the one with the highest share now
    return False, targets, retry


def _second(
    state: State, work: QueuedWork, needs: Needs, retry: dict[int, list[Candidate]], targets: list[Target]
) -> bool:
    """Add the targets of rule S2-b, one of each ClusterQueue, and return whether it fits: runSecondFsStrategy."""
    quotas = state.quotas
    offenders = _Offenders(state, work.queue, _Candidates(list(retry), lambda _: [], retry))
    for queue in offenders:
        gone = retry[queue].pop(0)[1]
        ancestor, mine, theirs = offenders.sides(queue)
        if quotas.order(mine) > quotas.order(theirs):  # nobody else below the ancestor has a higher share
            offenders.pruned.add(ancestor)
        if quotas.order(mine) < quotas.order(theirs):
            quotas.remove(queue, gone.usage)
            targets.append(Target(gone, FAIR))
            if quotas.fits(work.queue, needs, counted=True):
                return True
        offenders.pruned.add(queue)
    return False


def fill_back(
    state: State, work: QueuedWork, needs: Needs, targets: list[Target], *, borrowing: bool = True
) -> list[Target]:
    """Return the targets without those that can stay, the last ones first: fillBackWorkloads."""
    for at in range(len(targets) - 2, -1, -1):
        back = targets[at].work
        state.quotas.add(back.queue, back.usage)
        if has_room(state, work, needs, borrowing=borrowing):
            targets[at] = targets[-1]
            targets = targets[:-1]
        else:
            state.quotas.remove(back.queue, back.usage)
    return targets


def has_room(state: State, work: QueuedWork, needs: Needs, *, borrowing: bool) -> bool:
    """Return whether needs fit, and without borrowing where that is not allowed: workloadFits."""
    quotas = state.quotas
    if not borrowing and any(quotas.over(work.queue, column, amount) for column, amount in needs):
        return False
    return quotas.fits(work.queue, needs)

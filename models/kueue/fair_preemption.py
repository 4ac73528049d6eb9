"""Whom fair sharing preempts for a workload.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/preemption.go (fairPreemptions, runFirstFsStrategy,
runSecondFsStrategy) and preemption/fairsharing (ordering.go, strategy.go, target.go, least_common_ancestor.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Preempts, QueuedWork, State, Strategy, Target, first_to_go

IN_QUEUE, RECLAIMED, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"


def fair_targets(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible.

    ``columns`` are those that lack room. The state is as before afterwards.
    """
    candidates = _candidates(state, work, columns)
    if not candidates:
        return []
    quotas = state.quotas
    quotas.add(work.queue, needs)  # shares are those with the workload in
    fits, targets, retry = _first(state, work, needs, columns, candidates, state.strategies[0])
    if not fits and len(state.strategies) > 1:
        fits = _second(state, work, needs, retry, targets)
    quotas.remove(work.queue, needs)
    if fits:
        targets = fill_back(state, work, needs, targets)
    for target in targets:
        state.add(target.work)
    return targets if fits else []


def _candidates(state: State, work: QueuedWork, columns: set[int]) -> dict[int, list[QueuedWork]]:
    """Return who may be preempted, by ClusterQueue, in order: findCandidates."""
    rules, quotas = state.rules(work.queue), state.quotas
    found: dict[int, list[QueuedWork]] = {}

    def collect(queue: int, policy: Preempts) -> None:
        own = state.candidates(queue, policy, work, columns)
        if own:
            found[queue] = own

    collect(work.queue, rules.within)
    if rules.reclaim is not Preempts.NEVER:
        for queue in quotas.above_quota(work.queue, columns):
            if queue != work.queue:
                collect(queue, rules.reclaim)
    return found


class _Offenders:
    """Yields the ClusterQueue to preempt from next: down the tree, where the share is highest.

    Source: fairsharing/ordering.go, TargetClusterQueueOrdering. The one who gets it pops a workload, or drops the
    queue. ``candidates`` are used up.
    """

    def __init__(self, state: State, queue: int, candidates: dict[int, list[QueuedWork]]) -> None:
        self.state, self.queue, self.candidates = state, queue, candidates
        self.own_path = set(state.quotas.paths[queue])
        self.order = first_to_go(queue)
        self.pruned: set[int] = set()
        paths = state.quotas.paths
        self.below: dict[int, list[int]] = {}
        for each in candidates:
            for child, over in zip(paths[each], paths[each][1:], strict=False):
                self.below.setdefault(over, [])
                if child not in self.below[over]:
                    self.below[over].append(child)

    def __iter__(self) -> Iterator[int]:
        root = self.state.quotas.paths[self.queue][-1]
        if root == self.queue:
            while root not in self.pruned and self.candidates.get(root):
                yield root
            return
        while root not in self.pruned:
            found = self._next(root)
            if found is not None:
                yield found

    def _next(self, cohort: int) -> int | None:
        """Return the ClusterQueue below a cohort; None where that pruned something: nextTarget."""
        quotas = self.state.quotas
        best_queue = best_cohort = None
        queue_share = cohort_share = None
        for child in self.below.get(cohort, ()):
            if child in self.pruned:
                continue
            share, borrows = quotas.order(child), quotas.borrows(child)
            if child in self.below:
                if not borrows and child not in self.own_path:
                    self.pruned.add(child)
                elif cohort_share is None or share >= cohort_share:
                    best_cohort, cohort_share = child, share
            elif (not borrows and child != self.queue) or not self.candidates[child]:
                self.pruned.add(child)
            elif (
                queue_share is None
                or share > queue_share
                or (
                    share == queue_share
                    and self.order(self.candidates[child][0]) < self.order(self.candidates[best_queue or 0][0])
                )
            ):
                best_queue, queue_share = child, share
        if best_cohort is None and best_queue is None:
            self.pruned.add(cohort)
            return None
        if cohort_share is not None and (queue_share is None or cohort_share >= queue_share):
            assert best_cohort is not None
            return self._next(best_cohort)
        return best_queue

    def sides(self, target: int) -> tuple[int, int]:
        """Return the nodes below the lowest common ancestor: of the preemptor, and of a target."""
        paths = self.state.quotas.paths
        below = target
        for over in paths[target][1:]:
            if over in self.own_path:
                mine = paths[self.queue][paths[self.queue].index(over) - 1]
                return mine, below
            below = over
        raise AssertionError("they are in one tree")


def _first(
    state: State,
    work: QueuedWork,
    needs: Needs,
    columns: set[int],
    candidates: dict[int, list[QueuedWork]],
    strategy: Strategy,
) -> tuple[bool, list[Target], dict[int, list[QueuedWork]]]:
    """Return whether it fits now, who goes, and whom rule S2-b may ask again: runFirstFsStrategy."""
    quotas = state.quotas
    targets: list[Target] = []
    retry: dict[int, list[QueuedWork]] = {}
    offenders = _Offenders(state, work.queue, candidates)
    entitled = state.within_nominal and not quotas.over_any(work.queue, columns)
    for queue in offenders:
        own = candidates[queue]
        if queue == work.queue or entitled:
            gone = own.pop(0)
            state.remove(gone)
            targets.append(Target(gone, IN_QUEUE if queue == work.queue else RECLAIMED))
            if _fits(state, work, needs):
                return True, targets, {}
            continue
        mine, theirs = offenders.sides(queue)
        new_share, old_share = quotas.order(mine), quotas.order(theirs)
        if new_share > old_share:  # taking something away only lowers theirs, so neither rule lets any of them go
            retry.setdefault(queue, []).extend(own)
            own.clear()
        while own:
            gone = own.pop(0)
            if strategy is Strategy.INITIAL_SHARE:
                passed = new_share < old_share
            else:
                with state.without([gone]):
                    passed = new_share <= quotas.order(theirs)
            if not passed:
                retry.setdefault(queue, []).append(gone)
                continue
            state.remove(gone)
            targets.append(Target(gone, FAIR))
            if _fits(state, work, needs):
                return True, targets, {}
            break  # another ClusterQueue may be the one with the highest share now
    return False, targets, retry


def _second(
    state: State, work: QueuedWork, needs: Needs, retry: dict[int, list[QueuedWork]], targets: list[Target]
) -> bool:
    """Add the targets of rule S2-b, one of each ClusterQueue, and return whether it fits: runSecondFsStrategy."""
    offenders = _Offenders(state, work.queue, retry)
    for queue in offenders:
        gone = retry[queue].pop(0)
        mine, theirs = offenders.sides(queue)
        if state.quotas.order(mine) < state.quotas.order(theirs):
            state.remove(gone)
            targets.append(Target(gone, FAIR))
            if _fits(state, work, needs):
                return True
        offenders.pruned.add(queue)
    return False


def _fits(state: State, work: QueuedWork, needs: Needs) -> bool:
    """Return whether a workload that is counted already would fit: workloadFitsForFairSharing."""
    state.quotas.remove(work.queue, needs)
    fits = state.quotas.fits(work.queue, needs)
    state.quotas.add(work.queue, needs)
    return fits


def fill_back(
    state: State, work: QueuedWork, needs: Needs, targets: list[Target], *, borrowing: bool = True
) -> list[Target]:
    """Return the targets without those that can stay, the last ones first: fillBackWorkloads."""
    for at in range(len(targets) - 2, -1, -1):
        state.add(targets[at].work)
        if has_room(state, work, needs, borrowing=borrowing):
            targets[at] = targets[-1]
            targets = targets[:-1]
        else:
            state.remove(targets[at].work)
    return targets


def has_room(state: State, work: QueuedWork, needs: Needs, *, borrowing: bool) -> bool:
    """Return whether needs fit, and without borrowing where that is not allowed: workloadFits."""
    quotas = state.quotas
    if not borrowing and any(quotas.over(work.queue, column, amount) for column, amount in needs):
        return False
    return quotas.fits(work.queue, needs)

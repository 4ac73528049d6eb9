"""Whom fair sharing preempts for a workload.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/preemption.go (fairPreemptions, runFirstFsStrategy,
runSecondFsStrategy) and preemption/fairsharing/strategy.go.
"""

from __future__ import annotations

from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Candidate, QueuedWork, State, Strategy, Target
from fairopt.models.kueue.target_queues import Standings, TargetQueues

IN_QUEUE, RECLAIMED, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"


def fair_targets(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible.

    ``columns`` are those that lack room. The state is as before afterwards.
    """
    quotas, stamp = state.quotas, state.quotas.stamp
    queues = _target_queues(state, work, columns)
    if not queues.has_own and not queues.standings.first:
        return []
    quotas.add(work.queue, needs)  # shares are those with the workload in
    fits, targets, retry = _first(state, work, needs, columns, queues)
    if not fits and retry and len(state.strategies) > 1:
        fits = _second(state, work, needs, retry, targets)
    quotas.remove(work.queue, needs)
    if fits:
        targets = fill_back(state, work, needs, targets)
    for target in targets:
        quotas.add(target.work.queue, target.work.usage)
    quotas.undone(stamp)
    return targets if fits else []


def _target_queues(state: State, work: QueuedWork, columns: set[int]) -> TargetQueues:
    """Return whom a workload may preempt, before its usage is added: findCandidates."""
    quotas, rules = state.quotas, state.rules(work.queue)
    own = state.candidates(work.queue, rules.within, work, columns)
    known = state.known()
    key = (quotas.paths[work.queue][-1], *columns, rules.reclaim, rules.reclaim.bound(work.priority))
    if key not in known:
        known[key] = Standings(quotas, state.first_above(rules.reclaim, work, columns))
    standings = known[key]
    for cohort in quotas.paths[work.queue][1:]:
        standings.order(cohort)
    return TargetQueues(
        quotas, work.queue, standings, own, lambda queue: state.candidates(queue, rules.reclaim, work, columns)
    )


def _first(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], queues: TargetQueues
) -> tuple[bool, list[Target], dict[int, list[Candidate]]]:
    """Return whether it fits now, who goes, and whom rule S2-b may ask again: runFirstFsStrategy."""
    quotas, strategy = state.quotas, state.strategies[0]
    targets: list[Target] = []
    retry: dict[int, list[Candidate]] = {}
    entitled = state.within_nominal and not quotas.over_any(work.queue, columns)
    for queue in queues:
        own = queues.of(queue)
        if queue == work.queue or entitled:
            gone = own.pop(0)[1]
            quotas.remove(queue, gone.usage)
            targets.append(Target(gone, IN_QUEUE if queue == work.queue else RECLAIMED))
            if quotas.fits(work.queue, needs, counted=True):
                return True, targets, {}
            continue
        ancestor, mine, theirs = queues.sides(queue)
        new_share, old_share = quotas.order(mine), quotas.order(theirs)
        if new_share > old_share:
            _put_back(state, queues, retry, ancestor, mine)
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


def _put_back(state: State, queues: TargetQueues, retry: dict[int, list[Candidate]], ancestor: int, mine: int) -> None:
    """Prune an ancestor where the preemptor's side, ``mine``, has a higher share than the highest of the others.

    Taking something away only lowers theirs, so neither rule lets any of them go; nor is anybody on the preemptor's
    side left whom to ask. Rule S2-b may ask them again only if it lowers ``mine`` before, by those put back below it.
    """
    if any(mine in state.quotas.paths[queue] for queue in retry):
        for each in queues.rest(ancestor):
            retry.setdefault(each, []).extend(queues.of(each))
            queues.of(each).clear()
    queues.pruned.add(ancestor)


def _second(
    state: State, work: QueuedWork, needs: Needs, retry: dict[int, list[Candidate]], targets: list[Target]
) -> bool:
    """Add the targets of rule S2-b, one of each ClusterQueue, and return whether it fits: runSecondFsStrategy."""
    quotas = state.quotas
    standings = Standings(quotas, {queue: own[0][0] for queue, own in retry.items()})
    queues = TargetQueues(quotas, work.queue, standings, [], retry.__getitem__)
    for queue in queues:
        gone = retry[queue].pop(0)[1]
        ancestor, mine, theirs = queues.sides(queue)
        if quotas.order(mine) > quotas.order(theirs):  # nobody else below the ancestor has a higher share
            queues.pruned.add(ancestor)
        if quotas.order(mine) < quotas.order(theirs):
            quotas.remove(queue, gone.usage)
            targets.append(Target(gone, FAIR))
            if quotas.fits(work.queue, needs, counted=True):
                return True
        queues.pruned.add(queue)
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

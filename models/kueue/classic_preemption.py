"""Whom classic preemption preempts for a workload.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/preemption.go (classicalPreemptions) and
preemption/classical (candidate_generator.go, hierarchical_preemption.go).
"""

from __future__ import annotations

from typing import NamedTuple

from fairopt.models.kueue.fair_preemption import IN_QUEUE, RECLAIMED, fill_back, has_room
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Preempts, QueuedWork, Rules, State, Target, first_to_go

WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class _Candidate(NamedTuple):
    """Who may go; the common ancestor; whether it may go while the preemptor borrows; and the reason."""

    work: QueuedWork
    ancestor: int
    while_borrowing: bool
    reason: str


def classic_targets(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible.

    ``columns`` are those that lack room. The state is as before afterwards.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    forbidden = rules.borrow_within is Preempts.NEVER
    under = all(quotas.usage[work.queue][column] < quotas.nominal[work.queue][column] for column in columns)
    above, equal = _from_cohorts(state, work, needs, columns, only_better=forbidden and not under)
    yielding = state.candidates(work.queue, rules.within, work, columns)
    own = [_Candidate(each, work.queue, True, IN_QUEUE) for each in yielding]
    if not (above or equal) or (forbidden and not under):
        attempts: tuple[bool, ...] = (True,)
    else:
        attempts = (False, True) if forbidden and not above else (True, False)
    order = first_to_go(work.queue)
    candidates = [each for kind in (above, equal, own) for each in sorted(kind, key=lambda one: order(one.work))]
    for borrowing in attempts:
        targets: list[Target] = []
        fits = False
        for each in candidates:
            if not _valid(state, work, each, columns, borrowing):
                continue
            state.remove(each.work)
            targets.append(Target(each.work, each.reason))
            fits = has_room(state, work, needs, borrowing=borrowing)
            if fits:
                targets = fill_back(state, work, needs, targets, borrowing=borrowing)
                break
        for target in targets:
            state.add(target.work)
        if fits:
            return targets
    return []


def _valid(state: State, work: QueuedWork, each: _Candidate, columns: set[int], borrowing: bool) -> bool:
    """Return whether all up to the common ancestor still borrow: candidateIsValid."""
    if each.work.queue == work.queue:
        return True
    if borrowing and not each.while_borrowing:
        return False
    for node in state.quotas.paths[each.work.queue]:
        if node == each.ancestor:
            break
        if not state.quotas.over_any(node, columns):
            return False
    return True


def _from_cohorts(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], *, only_better: bool
) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the candidates over whom the preemptor has the better right, and the others.

    Those are in ClusterQueues that borrow, below cohorts that do, up to the common ancestor. With ``only_better`` the
    others are left out: they may not go while the preemptor borrows, and it would. Source:
    collectCandidatesForHierarchicalReclaim, collectCandidatesInSubtree, QuantitiesFitInQuota.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    better: list[_Candidate] = []
    others: list[_Candidate] = []
    if rules.reclaim is Preempts.NEVER:
        return better, others
    right, left = _within(state, work.queue, needs)
    below = work.queue
    for ancestor in quotas.paths[work.queue][1:]:
        for queue in quotas.reclaimable(ancestor, below, columns) if right or not only_better else ():
            for each in state.candidates(queue, rules.reclaim, work, columns):
                (better if right else others).append(_candidate(work, each, ancestor, right, rules))
        below = ancestor
        fits, left = _within(state, ancestor, left)
        right = right or fits
    return better, others


def _candidate(work: QueuedWork, each: QueuedWork, ancestor: int, right: bool, rules: Rules) -> _Candidate:
    """Source: classifyPreemptionVariant, isAboveBorrowingThreshold."""
    if right:
        return _Candidate(each, ancestor, True, RECLAIMED)
    above = each.priority >= work.priority or (rules.threshold is not None and each.priority > rules.threshold)
    if rules.borrow_within is Preempts.NEVER or above:
        return _Candidate(each, ancestor, False, RECLAIMED)
    return _Candidate(each, ancestor, True, WHILE_BORROWING)


def _within(state: State, node: int, needs: Needs) -> tuple[bool, Needs]:
    """Return whether needs fit in a node's quota, and what of them goes on to the node above."""
    quotas = state.quotas
    fits = not any(quotas.over(node, column, amount) for column, amount in needs)
    return fits, [
        (column, max(0, amount - max(0, quotas.local[node][column] - quotas.usage[node][column])))
        for column, amount in needs
    ]

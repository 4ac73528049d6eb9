"""Whom classic preemption preempts for a workload.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption/preemption.go (classicalPreemptions) and
preemption/classical (candidate_generator.go, hierarchical_preemption.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

from fairopt.models.kueue.fair_preemption import IN_QUEUE, RECLAIMED, fill_back, has_room
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Candidate, Preempts, QueuedWork, Rules, State, Target

WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


@dataclass
class _Candidates:
    """Who may go, in lists that are in order: those over whom the preemptor has the better right, others, its own."""

    better: list[list[Candidate]]
    others: list[list[Candidate]]
    own: list[Candidate]

    def __iter__(self) -> Iterator[tuple[QueuedWork, bool]]:
        """Yield who may go, in order, and whether the preemptor has the better right."""
        yield from ((work, True) for _, work in merge(*self.better))
        yield from ((work, False) for _, work in merge(*self.others))
        yield from ((work, True) for _, work in self.own)


def classic_targets(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    """Return who is preempted so that ``work`` can have ``needs``; nobody where that is not possible.

    ``columns`` are those that lack room. The state is as before afterwards.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    forbidden = rules.borrow_within is Preempts.NEVER
    under = all(quotas.usage[work.queue][column] < quotas.nominal[work.queue][column] for column in columns)
    better, others = _from_cohorts(state, work, needs, columns, only_better=forbidden and not under)
    own = state.candidates(work.queue, rules.within, work, columns)
    if not (better or others) or (forbidden and not under):
        attempts: tuple[bool, ...] = (True,)
    else:
        attempts = (False, True) if forbidden and not better else (True, False)
    for borrowing in attempts:
        if borrowing or _may_be_nominal(state, work, needs, own):
            targets = _attempt(state, work, needs, columns, _Candidates(better, others, own), borrowing=borrowing)
            if targets:
                return targets
    return []


def _attempt(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], candidates: _Candidates, *, borrowing: bool
) -> list[Target]:
    """Return who goes, in order, until there is room; nobody where there is none with all of them gone."""
    quotas, rules, stamp = state.quotas, state.rules(work.queue), state.quotas.stamp
    targets: list[Target] = []
    closed: set[int] = set()  # ClusterQueues that borrow no more, or below a cohort that does not: nor will they again
    fits = False
    for each, right in candidates:
        reason = IN_QUEUE
        if each.queue != work.queue:
            while_borrowing, reason = (True, RECLAIMED) if right else _variant(work, each, rules)
            if (borrowing and not while_borrowing) or each.queue in closed:
                continue
            if not _valid(state, work, each.queue, columns):
                closed.add(each.queue)
                continue
        quotas.remove(each.queue, each.usage)
        targets.append(Target(each, reason))
        fits = has_room(state, work, needs, borrowing=borrowing)
        if fits:
            targets = fill_back(state, work, needs, targets, borrowing=borrowing)
            break
    for target in targets:
        quotas.add(target.work.queue, target.work.usage)
    quotas.undone(stamp)
    return targets if fits else []


def _may_be_nominal(state: State, work: QueuedWork, needs: Needs, own: list[Candidate]) -> bool:
    """Return whether needs would be within the quota if all of the own ClusterQueue that may go went."""
    going: dict[int, int] = {}
    for _, each in own:
        for column, amount in each.usage:
            going[column] = going.get(column, 0) + amount
    return not any(state.quotas.over(work.queue, column, amount - going.get(column, 0)) for column, amount in needs)


def _valid(state: State, work: QueuedWork, queue: int, columns: set[int]) -> bool:
    """Return whether all up to the common ancestor still borrow: candidateIsValid."""
    quotas = state.quotas
    own = quotas.paths[work.queue]
    for node in quotas.paths[queue]:
        if node in own:
            break
        if not quotas.over_any(node, columns):
            return False
    return True


def _from_cohorts(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], *, only_better: bool
) -> tuple[list[list[Candidate]], list[list[Candidate]]]:
    """Return the candidates over whom the preemptor has the better right, and the others.

    Those are in ClusterQueues that borrow, below cohorts that do, up to the common ancestor. With ``only_better`` the
    others are left out: they may not go while the preemptor borrows, and it would. Source:
    collectCandidatesForHierarchicalReclaim, collectCandidatesInSubtree, QuantitiesFitInQuota.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    better: list[list[Candidate]] = []
    others: list[list[Candidate]] = []
    if rules.reclaim is Preempts.NEVER:
        return better, others
    right, left = _within(state, work.queue, needs)
    below = work.queue
    for ancestor in quotas.paths[work.queue][1:]:
        for child in quotas.above_below(ancestor, columns) - {below} if right or not only_better else ():
            if found := state.below(child, rules.reclaim, work, columns):
                (better if right else others).append(found)
        below = ancestor
        fits, left = _within(state, ancestor, left)
        right = right or fits
    return better, others


def _variant(work: QueuedWork, each: QueuedWork, rules: Rules) -> tuple[bool, str]:
    """Return whether one over whom there is no better right may go while the preemptor borrows, and the reason.

    Source: classifyPreemptionVariant, isAboveBorrowingThreshold.
    """
    above = each.priority >= work.priority or (rules.threshold is not None and each.priority > rules.threshold)
    return (False, RECLAIMED) if rules.borrow_within is Preempts.NEVER or above else (True, WHILE_BORROWING)


def _within(state: State, node: int, needs: Needs) -> tuple[bool, Needs]:
    """Return whether needs fit in a node's quota, and what of them goes on to the node above."""
    quotas = state.quotas
    fits = not any(quotas.over(node, column, amount) for column, amount in needs)
    return fits, [
        (column, max(0, amount - max(0, quotas.local[node][column] - quotas.usage[node][column])))
        for column, amount in needs
    ]

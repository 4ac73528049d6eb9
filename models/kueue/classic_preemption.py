"""Whom classic preemption preempts for a workload, and what both kinds of preemption share.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption: preemption.go (classicalPreemptions), classical
(candidate_generator.go, hierarchical_preemption.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heapreplace

from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Candidate, Preempts, Rules, State, Target
from fairopt.models.kueue.work import QueuedWork

IN_QUEUE, RECLAIMED, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
#: Who goes, and what was taken away of its usage.
Gone = tuple[Target, Needs]
#: Whether the pods of the preemptor find places when some are gone.
Places = Callable[[Sequence[Gone]], bool]
#: What adds usage to a node, or takes it away.
Moves = Callable[[int, Needs], None]
#: Who may go, by ClusterQueue, and whether the preemptor has the better right.
_Phase = tuple[list[list[Candidate]], bool]


def classic(state: State, work: QueuedWork, needs: Needs, columns: set[int], places: Places | None) -> list[Target]:
    """Return `targets_of` without fair sharing: over whom the preemptor has the better right, others, its own.

    Of what is needed in other ``columns`` only what is beyond the quota matters: there is room for it now, and the
    more, the more others go.
    """
    quotas = state.quotas
    right = quotas.level_of_all(work.queue, needs) + 1  # from which ancestor on the needs fit in the quota below
    matters = tuple(each for each in needs if each[0] in columns or quotas.over(work.queue, *each))
    if work.topology:
        return _classic(state, work, matters, columns, right, places)
    key = work.number, matters, *columns, -1, right  # asked for all resources, and for one of them alone
    root = quotas.paths[work.queue][-1]
    return state.known(root, key, lambda: _classic(state, work, matters, columns, right, places))


def _classic(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], right: int, places: Places | None
) -> list[Target]:
    quotas, rules = state.quotas, state.rules(work.queue)
    forbidden = rules.borrow_within_cohort is Preempts.NEVER
    own = state.candidates(work.queue, rules.within_cluster_queue, work, columns)
    left = dict(needs)  # of what is needed, with all of the own ClusterQueue gone that may go
    for _, _, usage, _ in own:
        for column, amount in usage:
            if column in left:
                left[column] -= amount
    nominal = not any(quotas.over(work.queue, column, amount) for column, amount in left.items())
    enough = not any(left[column] > 0 and left[column] > quotas.available(work.queue, column) for column in columns)
    under = nominal or not forbidden
    for column in columns if under and forbidden else ():
        under = under and quotas.usage[work.queue][column] < quotas.nominal[work.queue][column]
    better, others = _from_cohorts(state, work, needs, columns, right, only_better=not under)
    if not (better or others) or not under:
        attempts: tuple[bool, ...] = (True,)
    else:
        attempts = (False, True) if forbidden and not better else (True, False)
    for borrowing in attempts:
        # with the right over nobody else the preemptor may not borrow: `_variant` would say so of each
        some = [] if borrowing and forbidden else others
        if (borrowing or nominal) and (better or some or enough):
            phases = ((better, True), (some, False), ([own], True))
            if targets := _attempt(state, work, needs, columns, phases, places, borrowing=borrowing):
                return targets
    return []


def _attempt(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], phases: Iterable[_Phase], places: Places | None,
    *, borrowing: bool,
) -> list[Target]:  # fmt: skip
    """Return who goes, in order, until there is room; nobody where there is none with all of them gone.

    The ``phases`` come one after the other. Only ``columns`` lack room, so that the others matter where the preemptor
    may not borrow.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    if borrowing:
        needs = [each for each in needs if each[0] in columns]
    matters = {column for column, _ in needs}
    several, lower = len(columns) > 1, rules.reclaim_within_cohort is not Preempts.ANY
    #: Of each column what is lacking; somebody who goes leaves room for what it takes at most.
    lacks = {column: amount - quotas.available(work.queue, column) for column, amount in needs}
    gone: list[Gone] = []
    for listed, right in phases:
        heap = [(going[0], 0, going) for going in listed if going]
        heapify(heap)
        while heap:
            (_, each, usage, touched), at, going = heap[0]
            queue, reason = each.queue, IN_QUEUE
            open_, takes = True, not (several and columns.isdisjoint(touched))
            if queue != work.queue:
                while_borrowing, reason = (True, RECLAIMED) if right else _variant(work, each, rules)
                takes = takes and (while_borrowing or not borrowing)
                # a ClusterQueue that borrows no more, or is below a cohort that does not, will not again
                open_ = not (lower and each.priority >= work.priority)
                open_ = open_ and not (takes and gone and quotas.borrows_no_more(work.queue, queue, columns))
            if not open_ or at + 1 == len(going):
                heappop(heap)
            else:
                heapreplace(heap, (going[at + 1], at + 1, going))
            if open_ and takes:
                if not touched <= matters:
                    usage = [part for part in usage if part[0] in matters]
                quotas.lift(queue, usage)
                gone.append((Target(each, reason), usage))
                for column, amount in usage:
                    lacks[column] -= amount
                enough = max(lacks.values()) <= 0 and has_room(state, work, needs, borrowing=borrowing)
                if enough and (places is None or places(gone)):
                    gone = fill_back(state, work, needs, gone, quotas.put, quotas.lift, places, borrowing=borrowing)
                    return put_back(quotas.put, gone)
    put_back(quotas.put, gone)
    return []


def _from_cohorts(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], right: int, *, only_better: bool
) -> tuple[list[list[Candidate]], list[list[Candidate]]]:
    """Return, by ClusterQueue, over whom the preemptor has the better right, and the others; in order in each.

    They are in ClusterQueues that borrow, below cohorts that do, up to the common ancestor. With ``only_better`` the
    others are left out: they may not go while the preemptor borrows, and it would. Source:
    collectCandidatesForHierarchicalReclaim, collectCandidatesInSubtree, QuantitiesFitInQuota.
    """
    quotas, policy = state.quotas, state.rules(work.queue).reclaim_within_cohort
    better: list[list[Candidate]] = []
    others: list[list[Candidate]] = []
    if policy is Preempts.NEVER:
        return better, others
    path = quotas.paths[work.queue]
    for column, amount in needs if only_better else ():
        if column in columns and quotas.level(work.queue, column, amount) + 1 == len(path):
            return better, others
    for at, ancestor in enumerate(path[1:], 1):
        if (at >= right or not only_better) and quotas.any_above(ancestor, path[at - 1], columns):
            found = better if at >= right else others
            for child, listed in state.borrowers(ancestor, columns).items():
                if child != path[at - 1] and policy is Preempts.ANY:
                    found += listed
                elif child != path[at - 1]:
                    found += [going for going in listed if going[0][1].priority < work.priority]
    return better, others


def _variant(work: QueuedWork, each: QueuedWork, rules: Rules) -> tuple[bool, str]:
    """Return whether one over whom there is no better right may go while the preemptor borrows, and the reason.

    Source: classifyPreemptionVariant, isAboveBorrowingThreshold.
    """
    above = each.priority >= work.priority or (
        rules.max_priority_threshold is not None and each.priority > rules.max_priority_threshold
    )
    return (False, RECLAIMED) if rules.borrow_within_cohort is Preempts.NEVER or above else (True, WHILE_BORROWING)


def fill_back(
    state: State, work: QueuedWork, needs: Needs, gone: list[Gone], add: Moves, remove: Moves,
    places: Places | None, *, borrowing: bool = True,
) -> list[Gone]:  # fmt: skip
    """Return those that are gone without those that can stay, the last ones first: fillBackWorkloads.

    ``add`` and ``remove``: how usage comes back and goes.
    """
    quotas = state.quotas
    #: What is left in columns where all is for everybody: who takes more cannot stay.
    spare = {
        column: room - amount
        for column, amount in needs
        if len(gone) > 1 and (room := quotas.shared_room(work.queue, column)) is not None
    }
    for at in range(len(gone) - 2, -1, -1):
        target, usage = gone[at]
        fits = True
        for column, amount in usage:
            fits = fits and amount <= spare.get(column, amount)
        if not fits:
            continue
        add(target.work.queue, usage)
        fits = len(spare) == len(needs) and (borrowing or target.work.queue != work.queue)
        fits = fits or has_room(state, work, needs, borrowing=borrowing)
        if fits and (places is None or places(gone[:at] + gone[at + 1 :])):
            gone[at] = gone[-1]
            gone.pop()
            for column, amount in usage:
                if column in spare:
                    spare[column] -= amount
        else:
            remove(target.work.queue, usage)
    return gone


def put_back(add: Moves, gone: Iterable[Gone]) -> list[Target]:
    """Count the usage of those that are gone again, and return them."""
    targets = []
    for target, usage in gone:
        add(target.work.queue, usage)
        targets.append(target)
    return targets


def has_room(state: State, work: QueuedWork, needs: Needs, *, borrowing: bool) -> bool:
    """Return whether needs fit, and without borrowing where that is not allowed: workloadFits."""
    quotas = state.quotas
    for column, amount in () if borrowing else needs:
        if quotas.over(work.queue, column, amount):
            return False
    return quotas.fits(work.queue, needs)

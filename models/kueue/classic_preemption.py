"""Whom classic preemption preempts for a workload, and what both kinds of preemption share.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/preemption: preemption.go (classicalPreemptions), classical
(candidate_generator.go, hierarchical_preemption.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress

from fairopt.models.kueue.quotas import Beside, Needs, Rows
from fairopt.models.kueue.state import Candidate, Preempts, Rules, State, Target
from fairopt.models.kueue.work import QueuedWork
from fairopt.program import INFINITY, Number

IN_QUEUE, RECLAIMED, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
#: Who goes, and what was taken away of its usage.
Gone = tuple[Target, Needs]
#: Who may go, why, what it takes, and usage and quotas of the nodes that use less without it, up to the preemptor's.
_Going = tuple[QueuedWork, str, Candidate, Rows]
#: Whether the pods of the preemptor find places when some are gone.
Places = Callable[[Sequence[Gone]], bool]
#: What adds usage to a node, or takes it away.
Moves = Callable[[int, Needs], None]


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
    # the others may not go while the preemptor borrows, and it would where it is not ``under``
    asked = rules.reclaim_within_cohort is not Preempts.NEVER and (under or right < len(quotas.paths[work.queue]))
    beside = _borrowing(state, work.queue, columns) if asked else {}
    better, others = _somebody(state, work, columns, beside, right, only_better=not under)
    if not (better or others) or not under:
        attempts: tuple[bool, ...] = (True,)
    else:
        attempts = (False, True) if forbidden and not better else (True, False)
    for borrowing in attempts:
        # with the right over nobody else the preemptor may not borrow: `_variant` would say so of each
        some = others and not (borrowing and forbidden)
        if (borrowing or nominal) and (better or some or enough):
            going = _going(state, work, columns, beside, right, (better, some), own, borrowing=borrowing)
            if targets := _attempt(state, work, needs, columns, going, places, borrowing=borrowing):
                return targets
    return []


def _attempt(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], going: Iterable[_Going],
    places: Places | None, *, borrowing: bool,
) -> list[Target]:  # fmt: skip
    """Return who goes, in order, until there is room; nobody where there is none with all of them gone.

    Only ``columns`` lack room, so that the others matter where the preemptor may not borrow.
    """
    quotas = state.quotas
    if borrowing:
        needs = [each for each in needs if each[0] in columns]
    shared = [(*each, room) for each in needs if (room := quotas.shared_room(work.queue, each[0])) is not None]
    if places is None and len(shared) == len(needs):
        return _attempt_shared(state, work, shared, going, borrowing=borrowing)
    matters = {column for column, _ in needs}
    #: Of each column what is lacking; somebody who goes leaves room for what it takes at most.
    lacks = {column: amount - quotas.available(work.queue, column) for column, amount in needs}
    gone: list[Gone] = []
    for each, reason, (_, _, usage, _), _ in going:
        usage = [part for part in usage if part[0] in matters]
        quotas.lift(each.queue, usage)
        gone.append((Target(each, reason), usage))
        for column, amount in usage:
            lacks[column] -= amount
        enough = max(lacks.values()) <= 0 and has_room(state, work, needs, borrowing=borrowing)
        if enough and (places is None or places(gone)):
            gone = fill_back(state, work, needs, gone, quotas.put, quotas.lift, places, borrowing=borrowing)
            return put_back(quotas.put, gone)
    put_back(quotas.put, gone)
    return []


def _attempt_shared(
    state: State, work: QueuedWork, needs: Iterable[tuple[int, int, int]], going: Iterable[_Going], *, borrowing: bool
) -> list[Target]:
    """Return `_attempt` where all quota is for everybody, so that who goes leaves just so much room as it takes.

    Then it is enough to count what is lacking in the tree, and what is above the own quota where it may not borrow.
    ``needs``: each with the room that the tree has.
    """
    usage, quota = state.quotas.usage[work.queue], state.quotas.subtree[work.queue]
    lacks, above = dict[int, Number](), dict[int, Number]()
    for column, amount, room in needs:
        lacks[column] = amount - room if amount > 0 else -INFINITY
        above[column] = -INFINITY if borrowing else usage[column] + amount - quota[column]
    gone: list[_Going] = []
    asked = list(lacks)
    for each in going:
        _, _, (_, _, _, takes), rows = each
        gone.append(each)
        enough = True
        for column in asked:
            lack = lacks[column]
            if column in takes:
                amount = takes[column]
                lacks[column] = lack = lack - amount
                for row, _ in rows:
                    row[column] -= amount
                if not rows:
                    above[column] -= amount
            if lack > 0:
                enough = False
        if enough and (borrowing or max(above.values()) <= 0):
            break
    for _, _, (_, _, _, takes), rows in gone:
        for row, _ in rows:
            for column in asked:
                if column in takes:
                    row[column] += takes[column]
    if max(lacks.values()) > 0 or max(above.values()) > 0:
        return []
    for at in range(len(gone) - 2, -1, -1):  # fillBackWorkloads
        _, _, (_, _, _, takes), rows = gone[at]
        for column in asked:
            if column in takes and (
                lacks[column] + takes[column] > 0 or (not rows and above[column] + takes[column] > 0)
            ):
                break
        else:
            gone[at] = gone[-1]
            gone.pop()
            for column in asked:
                if column in takes:
                    lacks[column] += takes[column]
                    if not rows:
                        above[column] += takes[column]
    return [Target(each, reason) for each, reason, _, _ in gone]


def _going(
    state: State, work: QueuedWork, columns: set[int], beside: Mapping[int, Beside], right: int,
    wanted: tuple[bool, bool], own: Iterable[Candidate], *, borrowing: bool,
) -> Iterator[_Going]:  # fmt: skip
    """Yield who may go, in order: those over whom the preemptor has the better right, the others, its own.

    Of the ClusterQueues ``beside`` only those that borrow still when their turn comes.
    """
    quotas, rules = state.quotas, state.rules(work.queue)
    lower = rules.reclaim_within_cohort is not Preempts.ANY
    listed, queues = state.going(quotas.paths[work.queue][-1], -1 if len(columns) > 1 else min(columns))
    for better in (True, False):
        if not wanted[not better]:
            continue
        left = {queue: rows for queue, (level, rows) in beside.items() if (level >= right) is better}
        left.pop(work.queue, None)
        for candidate in compress(listed, map(left.__contains__, queues)):
            _, each, _, takes = candidate
            if lower and each.priority >= work.priority:
                break
            queue = each.queue
            if columns.isdisjoint(takes):
                continue
            while_borrowing, reason = (True, RECLAIMED) if better else _variant(work, each, rules)
            if borrowing and not while_borrowing:
                continue
            rows = left[queue]
            for usage, quota in rows:
                for column in columns:
                    if usage[column] > quota[column]:
                        break
                else:
                    del left[queue]  # it will not borrow again
                    break
            else:
                yield each, reason, candidate, rows
    for candidate in own:
        yield candidate[1], IN_QUEUE, candidate, ()


def _borrowing(state: State, queue: int, columns: set[int]) -> Mapping[int, Beside]:
    """Return the ClusterQueues that borrow, in a tree, as what is beside one of them.

    All cohorts up to the common ancestor borrow, too. Source: collectCandidatesForHierarchicalReclaim,
    collectCandidatesInSubtree.
    """
    above, children = state.quotas.above_below, state.quotas.children
    _, *path = state.quotas.paths[queue]

    def find() -> Mapping[int, Beside]:
        beside, found, below = state.quotas.beside(queue), dict[int, Beside](), -1
        for ancestor in path:
            nodes = [node for node in above(ancestor, columns) if node != below]
            for node in nodes:
                if children[node]:
                    nodes += above(node, columns)
                else:
                    found[node] = beside[node]
            below = ancestor
        return found

    return state.known(path[-1], ("borrowing", path[0], *columns), find) if path else {}


def _somebody(
    state: State, work: QueuedWork, columns: set[int], beside: Mapping[int, Beside], right: int, *, only_better: bool
) -> tuple[bool, bool]:
    """Return whether anybody may go over whom a preemptor has the better right, and anybody else beside it."""
    found, lower = [False, only_better], state.rules(work.queue).reclaim_within_cohort is not Preempts.ANY
    for queue, (level, _) in beside.items():
        if found[level < right] or queue == work.queue:
            continue
        for place, _, _, takes in state.going(queue)[0]:
            if lower and place[0] >= work.priority:
                break
            if not columns.isdisjoint(takes):
                found[level < right] = True
                break
        if all(found):
            break
    return found[0], found[1] and not only_better


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

"""Preemption as the source has it: every choice computed anew; what the rule does faster must decide the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from fairopt.models.kueue.classic_preemption import FAIR, IN_QUEUE, RECLAIMED, WHILE_BORROWING
from fairopt.models.kueue.cycles import Cycles
from fairopt.models.kueue.flavors import Assignment
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Preempts, State, Strategy, Target
from fairopt.models.kueue.work import QueuedWork

Candidates = dict[int, list[QueuedWork]]


def plain_targets(
    state: State, work: QueuedWork, needs: Needs, columns: set[int], flavor: int | None = None
) -> list[Target]:
    """Return who is preempted for a workload; the state is as before afterwards."""
    return (_fair if state.fair else _classic)(state, work, needs, columns)


def plain_fits(cycle: Cycles, found: Assignment) -> bool:
    """Return whether there is room without all who are stopped for others in the tree or would be for this one."""
    work = found.work
    with removed(cycle.state, [target.work for target in found.targets if target.work.number not in cycle._stopped]):
        return cycle.state.quotas.fits(work.queue, found.needs)


@contextmanager
def removed(state: State, works: Sequence[QueuedWork]) -> Iterator[None]:
    """Let some workloads run no more for a while: SimulateWorkloadRemoval."""
    for work in works:
        state.remove(work)
    yield
    for work in works:
        state.add(work)


def _yielding(state: State, queue: int, policy: Preempts, work: QueuedWork, columns: set[int]) -> list[QueuedWork]:
    if policy is Preempts.NEVER:
        return []
    own = [each for each in state.running.get(queue, {}).values() if each.preemptible]
    own = [each for each in own if any(column in columns for column, _ in each.usage)]
    if policy is not Preempts.ANY:
        newer = policy is Preempts.LOWER_OR_NEWER
        own = [
            each
            for each in own
            if each.priority < work.priority or (newer and each.priority == work.priority and work.since < each.since)
        ]
    return sorted(own, key=lambda each: each.place)


def _over(state: State, node: int, columns: set[int]) -> bool:
    return any(state.quotas.usage[node][column] > state.quotas.subtree[node][column] for column in columns)


def _room(state: State, work: QueuedWork, needs: Needs, *, borrowing: bool = True) -> bool:
    over = any(state.quotas.over(work.queue, column, amount) for column, amount in needs)
    return (borrowing or not over) and state.quotas.fits(work.queue, needs)


def _within(state: State, node: int, needs: Needs) -> tuple[bool, Needs]:
    """Return whether needs fit in a node's quota, and what of them goes on to the node above."""
    quotas = state.quotas
    left = [(c, max(0, amount - max(0, quotas.local[node][c] - quotas.usage[node][c]))) for c, amount in needs]
    return all(quotas.usage[node][c] + amount <= quotas.subtree[node][c] for c, amount in needs), left


def _back(state: State, work: QueuedWork, needs: Needs, gone: list[Target], *, borrowing: bool = True) -> list[Target]:
    for at in range(len(gone) - 2, -1, -1):
        state.add(gone[at].work)
        if _room(state, work, needs, borrowing=borrowing):
            gone[at] = gone[-1]
            gone = gone[:-1]
        else:
            state.remove(gone[at].work)
    return gone


# -- classic ---------------------------------------------------------------------------------------------------
def _classic(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    quotas, rules = state.quotas, state.rules(work.queue)
    forbidden = rules.borrow_within_cohort is Preempts.NEVER
    under = all(quotas.usage[work.queue][column] < quotas.nominal[work.queue][column] for column in columns)
    kinds: dict[bool, list[tuple[QueuedWork, int, bool, str]]] = {True: [], False: []}
    right, left = _within(state, work.queue, needs)
    path = quotas.paths[work.queue]
    for below, ancestor in pairwise(path):
        for queue in range(len(quotas.parent)):
            between = quotas.paths[queue]
            if quotas.children[queue] or ancestor not in between or below in between:
                continue
            if not all(_over(state, node, columns) for node in between[: between.index(ancestor)]):
                continue
            for each in _yielding(state, queue, rules.reclaim_within_cohort, work, columns):
                most = rules.max_priority_threshold is not None and each.priority > rules.max_priority_threshold
                fixed = forbidden or each.priority >= work.priority or most
                reason = RECLAIMED if right or fixed else WHILE_BORROWING
                if right or not forbidden or under:
                    kinds[right].append((each, ancestor, right or not fixed, reason))
        fits, left = _within(state, ancestor, left)
        right = right or fits
    own = [
        (each, -1, True, IN_QUEUE) for each in _yielding(state, work.queue, rules.within_cluster_queue, work, columns)
    ]
    if not any(kinds.values()) or (forbidden and not under):
        attempts = [True]
    else:
        attempts = [False, True] if forbidden and not kinds[True] else [True, False]
    for kind in kinds.values():
        kind.sort(key=lambda one: one[0].place)
    for borrowing in attempts:
        gone: list[Target] = []
        fits = False
        for each, ancestor, while_borrowing, reason in (*kinds[True], *kinds[False], *own):
            if ancestor >= 0:
                between = quotas.paths[each.queue]
                valid = all(_over(state, node, columns) for node in between[: between.index(ancestor)])
                if not valid or (borrowing and not while_borrowing):
                    continue
            state.remove(each)
            gone.append(Target(each, reason))
            fits = _room(state, work, needs, borrowing=borrowing)
            if fits:
                gone = _back(state, work, needs, gone, borrowing=borrowing)
                break
        for target in gone:
            state.add(target.work)
        if fits:
            return gone
    return []


# -- fair sharing ----------------------------------------------------------------------------------------------
def _fair(state: State, work: QueuedWork, needs: Needs, columns: set[int]) -> list[Target]:
    rules, quotas = state.rules(work.queue), state.quotas
    candidates: Candidates = {work.queue: _yielding(state, work.queue, rules.within_cluster_queue, work, columns)}
    for queue in quotas.above_quota(work.queue, columns):
        if queue != work.queue:
            candidates[queue] = _yielding(state, queue, rules.reclaim_within_cohort, work, columns)
    candidates = {queue: own for queue, own in candidates.items() if own}
    quotas.add(work.queue, needs)
    gone: list[Target] = []
    retry: Candidates = {}
    fits = _first(state, work, needs, columns, candidates, retry, gone)
    if not fits and len(state.strategies) > 1:
        fits = _second(state, work, needs, retry, gone)
    quotas.remove(work.queue, needs)
    if fits:
        gone = _back(state, work, needs, gone)
    for target in gone:
        state.add(target.work)
    return gone if fits else []


def _next(state: State, mine: int, left: Candidates, pruned: set[int], node: int, order: list[int]) -> int | None:
    """Return the ClusterQueue whose turn it is below a node: those without candidates, or that lend, are no more."""
    quotas = state.quotas
    best: tuple[tuple[bool, int], bool, int, int] | None = None
    for at, child in enumerate(order):
        if quotas.parent[child] != node or child in pruned:
            continue
        cohort = bool(quotas.children[child])
        if cohort:
            gone = not quotas.borrows(child) and child not in quotas.paths[mine]
        else:
            gone = (not quotas.borrows(child) and child != mine) or not left.get(child)
        if gone:
            pruned.add(child)
            continue
        first = -at if cohort else 0
        key = (quotas.order(child), cohort, -first, child)
        if best is None or key[:2] > best[:2] or (key[:2] == best[:2] and _before(left, mine, cohort, key, best)):
            best = key
    if best is None:
        pruned.add(node)
        return None
    return _next(state, mine, left, pruned, best[3], order) if best[1] else best[3]


def _before(left: Candidates, mine: int, cohort: bool, key: tuple[object, ...], best: tuple[object, ...]) -> bool:
    if cohort:
        return True  # of cohorts with equal shares, the last
    ranks = [(each[3] == mine, left[each[3]][0].place) for each in (key, best)]  # type: ignore[index]
    return ranks[0] < ranks[1]


def _turns(state: State, mine: int, left: Candidates, pruned: set[int]) -> Iterator[int]:
    root = state.quotas.paths[mine][-1]
    order = list(dict.fromkeys(node for queue in left for node in state.quotas.paths[queue]))
    while root not in pruned and (root != mine or left.get(root)):
        found = root if root == mine else _next(state, mine, left, pruned, root, order)
        if found is not None:
            yield found


def _sides(state: State, mine: int, theirs: int) -> tuple[int, int]:
    own, other = state.quotas.paths[mine], state.quotas.paths[theirs]
    shared = next(node for node in other if node in own)
    return own[own.index(shared) - 1], other[other.index(shared) - 1]


def _counted(state: State, work: QueuedWork, needs: Needs) -> bool:
    state.quotas.remove(work.queue, needs)
    fits = state.quotas.fits(work.queue, needs)
    state.quotas.add(work.queue, needs)
    return fits


def _first(
    state: State,
    work: QueuedWork,
    needs: Needs,
    columns: set[int],
    left: Candidates,
    retry: Candidates,
    gone: list[Target],
) -> bool:
    quotas = state.quotas
    entitled = state.within_nominal and not _over(state, work.queue, columns)
    for queue in _turns(state, work.queue, left, set()):
        while left[queue]:
            each, reason = left[queue].pop(0), FAIR
            if queue == work.queue or entitled:
                reason = IN_QUEUE if queue == work.queue else RECLAIMED
            else:
                mine, theirs = _sides(state, work.queue, queue)
                new, old = quotas.order(mine), quotas.order(theirs)
                with removed(state, [each]):
                    final = quotas.order(theirs)
                if not (new < old if state.strategies[0] is Strategy.INITIAL_SHARE else new <= final):
                    retry.setdefault(queue, []).append(each)
                    continue
            state.remove(each)
            gone.append(Target(each, reason))
            if _counted(state, work, needs):
                return True
            break
    return False


def _second(state: State, work: QueuedWork, needs: Needs, retry: Candidates, gone: list[Target]) -> bool:
    pruned: set[int] = set()
    for queue in _turns(state, work.queue, retry, pruned):
        each = retry[queue].pop(0)
        mine, theirs = _sides(state, work.queue, queue)
        if state.quotas.order(mine) < state.quotas.order(theirs):
            state.remove(each)
            gone.append(Target(each, FAIR))
            if _counted(state, work, needs):
                return True
        pruned.add(queue)
    return False

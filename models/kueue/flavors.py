"""Which flavor a workload gets, and whether it fits, must preempt, or waits.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/flavorassigner/flavorassigner.go (findFlavorForPodSets,
fitsResourceQuota, isPreferred, shouldTryNextFlavor) and preemption/preemption_oracle.go.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fairopt.models.kueue.preemption import targets_of
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import MANY, FlavorPreference, Preempts, Rules, Search, State, Target
from fairopt.models.kueue.work import QueuedWork, Spots

#: `CohortQuotas.room`, or what knows it.
Room = Callable[[int, int], tuple[int, int]]


class Mode(enum.IntEnum):
    """How a request can be met, worst first: granularMode."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


@dataclass(slots=True)
class Assignment:
    """A flavor for a head of a ClusterQueue: the mode, how far it borrows, what it takes, and what lacks room.

    ``simulated``: who would go for one resource alone, by its column. ``step``: of fewer pods, as `QueuedWork` has it.
    ``spots``: where its pods go, with the targets gone, or where they would in an empty cluster. ``tried``: the place
    of the flavor at which the search stopped before the last, else -1: TriedFlavorIdx.
    """

    work: QueuedWork
    mode: Mode = Mode.NO_FIT
    flavor: int = -1
    borrows: int = 0
    needs: Needs = ()
    lacks: set[int] = field(default_factory=set)
    targets: Sequence[Target] = ()
    simulated: dict[int, list[Target]] = field(default_factory=dict)
    step: int = 0
    spots: Spots = field(default_factory=dict)
    tried: int = -1


def assign(state: State, work: QueuedWork, flavors: list[int] | None = None) -> Assignment:
    """Return the flavor that a workload gets in this state, with the targets of its preemption.

    One that may start with fewer pods does where it cannot with all: with the most that fit or for which others can
    go, by a binary search. Source: scheduler.go, getInitialAssignments; podset_reducer.go.
    """
    found = _assign(state, work, flavors)
    if work.fewer is None or found.mode is Mode.FIT or found.targets:
        return found
    steps, after = work.fewer
    low, high = 0, steps + 1
    while low < high:
        step = (low + high) // 2
        fewer = _assign(state, replace(work, needs=after(step), step=step), flavors)
        if fewer.mode is Mode.FIT or fewer.targets:
            fewer.work, fewer.step = work, step
            found, high = fewer, step
        else:
            low = step + 1
    return found


def nominate(state: State, work: QueuedWork, room: Room) -> Assignment | None:
    """Return what `assign` does for a head; None where the columns show that it would only be set aside.

    Then it lacks room, has the right over nobody in the cohorts, and its own ClusterQueue cannot give it enough. Known
    of workloads with one flavor, without fair sharing, where who is set aside has no say in who comes before others.
    ``room``: as the quotas have it now. Which column shows it is noted in ``work.hopeless``, for the next time.
    """
    quotas, queue = state.quotas, work.queue
    like = quotas.like[queue]
    rules = state.rules(queue)
    if work.alone is None or state.fair or rules.borrow_within_cohort is not Preempts.NEVER:
        return assign(state, work)
    flavor, needs = work.alone
    usage, nominal, top = quotas.usage[queue], quotas.nominal[queue], len(quotas.paths[queue]) - 1
    level, lacks = 0, []
    for column, amount in needs:
        free, below = room(like, column)
        if amount > free:
            lacks.append(column)
            if amount > below and amount > nominal[column]:
                work.hopeless = state.stirred[queue], column, amount, amount
                return None  # Mode.NO_FIT
        elif level < top and usage[column] + amount > nominal[column]:
            level = top if amount > below else max(level, quotas.level(queue, column, amount))
    borrows = quotas.height[quotas.paths[queue][level]]
    if not lacks:
        return Assignment(work, Mode.FIT, flavor, borrows, needs)
    preempts, reclaims = _preempts(state, work, rules), rules.reclaim_within_cohort is Preempts.ANY
    if not preempts:
        return None if reclaims else assign(state, work)
    if reclaims:  # else room may be held back for it
        yields, enough, within = state.yields(work), True, True
        for column, amount in needs:
            left = amount - yields[column]
            inside = usage[column] + left <= nominal[column]
            if column in lacks:
                free, below = room(like, column)
                inside = inside and usage[column] < nominal[column]
                if left > free:
                    enough = False
                    if not inside and amount > below:
                        work.hopeless = state.stirred[queue], column, amount, left
                        return None
            within = within and inside
        if not (enough or within) and quotas.level_of_all(queue, needs) >= top:
            return None
    for column, amount in needs:
        if amount > quotas.potential[queue][column]:
            return None
    made = Assignment(work, Mode.NO_CANDIDATES, flavor, borrows, needs, set(lacks))
    return _with_targets(state, work, made, rules, simulate=False)


def _assign(state: State, work: QueuedWork, flavors: list[int] | None) -> Assignment:
    """Return `assign` with all pods.

    The search goes on after the flavor that it stopped at in the cycle before, where that was not the last. Who would
    go for one resource alone says which flavor is best, whether the search stops there, and how far the workload
    borrows then. Of the last flavor alone, that is not asked of a workload for which nobody can go and nothing is held
    back.
    """
    rules, named = state.rules(work.queue), list(work.needs)
    flavors = named[work.tried + 1 :] if flavors is None else flavors
    simulate = flavors != named[-1:]
    best, best_level = None, (Mode.NO_FIT, 0)
    for flavor in flavors:
        found, level = _try(state, work, flavor, rules, simulate)
        if not _try_next(level, rules):
            best, best_level = found, level
            best.tried = -1 if flavor == named[-1] else named.index(flavor)
            break
        if _better(level, best_level, rules):
            best, best_level = found, level
    if best is None or best.mode is Mode.NO_FIT:
        return Assignment(work)
    _add_elsewhere(state, work, best, rules, simulate)
    if state.topologies.covers(work, best.flavor):
        _place(state, work, best)
    if best.mode in (Mode.FIT, Mode.NO_FIT) or not _preempts(state, work, rules):
        return best
    return _with_targets(state, work, best, rules, simulate)


def _with_targets(state: State, work: QueuedWork, best: Assignment, rules: Rules, simulate: bool) -> Assignment:
    """Return what a flavor that lacks room is like with who goes for it, and how far the workload borrows then."""
    placed = state.topologies.covers(work, best.flavor)
    same = best.simulated.get(best.needs[0][0]) if len(best.needs) == 1 and not placed else None
    best.targets = targets_of(state, work, best.needs, best.lacks, best.flavor) if same is None else same
    if best.targets and placed:
        best.spots = state.topologies.place(work, best.flavor, [each.work for each in best.targets]) or {}
    orders = best.targets and not state.fair
    if not simulate and (orders or not (best.targets or rules.reclaim_within_cohort is Preempts.ANY)):
        quotas, queue, yields = state.quotas, work.queue, state.yields(work)
        for column, amount in best.needs:
            # with others gone it borrows from no higher than now
            if column not in best.lacks or (now := _height(state, queue, column, amount)) <= best.borrows:
                continue
            if quotas.over(queue, column, amount - yields[column]) and quotas.level(queue, column, amount) == 1:
                best.borrows = now  # those of its own ClusterQueue cannot leave it enough not to borrow
            else:
                best.borrows = max(best.borrows, _simulated(state, work, column, amount, best)[1])
    return best


def _place(state: State, work: QueuedWork, made: Assignment) -> None:
    """Find places for the pods of a workload; where there are none now, others must go, if that can help.

    Source: assignFlavors. Then any of its resources may be what others give up, since what is free may be in too many
    places.
    """
    if made.mode is Mode.FIT:
        spots = state.topologies.place(work, made.flavor)
        if spots is None:
            made.mode = Mode.NO_CANDIDATES
        made.spots = spots or {}
    if made.mode not in (Mode.FIT, Mode.NO_FIT):
        spots = state.topologies.place(work, made.flavor, empty=True)
        if spots is None:
            made.mode = Mode.NO_FIT
        made.spots, made.lacks = spots or {}, {column for column, _ in made.needs}


def _try(
    state: State, work: QueuedWork, flavor: int, rules: Rules, simulate: bool
) -> tuple[Assignment, tuple[Mode, int]]:
    """Return what a flavor would be like, and its level: the worst of its resources.

    Where preemption is preferred to borrowing, that may be one that fits and borrows, while another does not fit.
    """
    own = work.needs[flavor][0]
    level = (Mode.FIT, 0)
    made = Assignment(work, Mode.FIT, flavor, 0, own)
    for column, amount in own:
        one = _quota(state, work, column, amount, rules, made, simulate)
        made.borrows = max(made.borrows, one[1])
        made.mode = min(made.mode, one[0])
        if _better(level, one, rules):
            level = one
        if one[0] is Mode.NO_FIT:
            break
        if one[0] is not Mode.FIT:
            made.lacks.add(column)
    return made, level


def _add_elsewhere(state: State, work: QueuedWork, made: Assignment, rules: Rules, simulate: bool) -> None:
    """Add the resources of other resource groups, which have one flavor each."""
    for column, amount in work.needs[made.flavor][1]:
        mode, borrows = _quota(state, work, column, amount, rules, made, simulate)
        made.borrows = max(made.borrows, borrows)
        made.mode = min(made.mode, mode)
        if mode not in (Mode.FIT, Mode.NO_FIT):
            made.lacks.add(column)
    made.needs = (*made.needs, *work.needs[made.flavor][1])


def _quota(
    state: State, work: QueuedWork, column: int, amount: int, rules: Rules, made: Assignment, simulate: bool
) -> tuple[Mode, int]:
    """Return how an amount of one resource can be had, and how far it borrows: fitsResourceQuota.

    Without ``simulate`` what lacks room is taken for what nobody can go for.
    """
    quotas, queue = state.quotas, work.queue
    if amount > quotas.potential[queue][column]:
        return Mode.NO_FIT, 0
    level, path = quotas.level(queue, column, amount), quotas.paths[queue]
    borrows = quotas.height[path[level]]
    if amount <= quotas.available(queue, column):
        return Mode.FIT, borrows
    while_borrowing = rules.borrow_within_cohort is not Preempts.NEVER or (
        state.fair and rules.reclaim_within_cohort is not Preempts.NEVER
    )
    if quotas.nominal[queue][column] < amount and level + 1 == len(path) and not while_borrowing:
        return Mode.NO_FIT, borrows
    if not _preempts(state, work, rules):
        return Mode.NO_CANDIDATES, borrows
    return _simulated(state, work, column, amount, made) if simulate else (Mode.NO_CANDIDATES, 0)


def _simulated(state: State, work: QueuedWork, column: int, amount: int, made: Assignment) -> tuple[Mode, int]:
    """Return how an amount of one resource can be had where others go for it alone: SimulatePreemption."""
    queue = work.queue
    targets = made.simulated[column] = targets_of(state, work, [(column, amount)], {column})
    if not targets:
        return Mode.NO_CANDIDATES, _height(state, queue, column, amount)
    with state.without([target.work for target in targets], column):
        borrows = _height(state, queue, column, amount)
    return (Mode.PREEMPT if any(each.work.queue == queue for each in targets) else Mode.RECLAIM), borrows


def _height(state: State, queue: int, column: int, amount: int) -> int:
    """Return how far a ClusterQueue borrows for an amount: the height of the lowest subtree with room."""
    quotas = state.quotas
    return quotas.height[quotas.paths[queue][quotas.level(queue, column, amount)]]


def _preempts(state: State, work: QueuedWork, rules: Rules) -> bool:
    if rules.within_cluster_queue is Preempts.NEVER and rules.reclaim_within_cohort is Preempts.NEVER:
        return False
    # most clusters have no circle
    return not state.barred or not (
        work.number in state.barred or state.since_circle.get(state.quotas.paths[work.queue][-1], 0) >= MANY
    )


def _better(a: tuple[Mode, int], b: tuple[Mode, int], rules: Rules) -> bool:
    """Return whether level a is better than b: isPreferred."""
    if a[0] is Mode.NO_FIT or b[0] is Mode.NO_FIT:
        return a[0] is not Mode.NO_FIT
    if (a[0] is Mode.NO_CANDIDATES) != (b[0] is Mode.NO_CANDIDATES):
        return b[0] is Mode.NO_CANDIDATES
    if rules.preference is FlavorPreference.BORROWING:
        return (a[0], -a[1]) > (b[0], -b[1])
    return (-a[1], a[0]) > (-b[1], b[0])


def _try_next(level: tuple[Mode, int], rules: Rules) -> bool:
    """Return whether the next flavor is tried, too: shouldTryNextFlavor."""
    mode, borrows = level
    if mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        return True
    if mode in (Mode.PREEMPT, Mode.RECLAIM) and rules.when_can_preempt is Search.TRY_NEXT:
        return True
    return borrows > 0 and rules.when_can_borrow is Search.TRY_NEXT

"""What the rule moves about: workloads, the rules of their ClusterQueues, and who runs where."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from fairopt.models.kueue.quotas import CohortQuotas, Needs
from fairopt.models.kueue.topology import Topologies
from fairopt.models.kueue.work import Place, QueuedWork

T = TypeVar("T")
#: A workload that preempts the same ones for the third time, or preempts for the twelfth time, goes round in a circle.
AGAIN, OFTEN = 3, 12
#: So many preemptions after the first circle in a tree are enough to say that preemption does not end there. Kueue has
#: no such end: its loops go on as long as the cluster does. Trees have nothing to do with each other, here as there.
MANY = 24


class Preempts(enum.Enum):
    """Which workloads may be preempted. Source: clusterqueue_types.go, PreemptionPolicy."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER = "LowerOrNewerEqualPriority"
    ANY = "Any"


class Search(enum.Enum):
    """Whether the search for a flavor may stop. Source: clusterqueue_types.go, FlavorFungibilityPolicy."""

    MAY_STOP = "MayStopSearch"
    TRY_NEXT = "TryNextFlavor"


class FlavorPreference(enum.Enum):
    """Which flavor is best where none fits without both. Source: clusterqueue_types.go, FlavorFungibilityPreference."""

    BORROWING = "BorrowingOverPreemption"
    PREEMPTION = "PreemptionOverBorrowing"


class Queueing(enum.Enum):
    """Whether a workload that waits blocks later ones. Source: clusterqueue_types.go, QueueingStrategy."""

    BEST_EFFORT = "BestEffortFIFO"
    STRICT = "StrictFIFO"


class Strategy(enum.Enum):
    """When fair sharing may preempt. Source: preemption/fairsharing/strategy.go, rules S2-a and S2-b of KEP-1714."""

    FINAL_SHARE = "LessThanOrEqualToFinalShare"
    INITIAL_SHARE = "LessThanInitialShare"


@dataclass(frozen=True)
class Rules:
    """What a ClusterQueue's spec says beyond quotas; defaults are the source's, and `Kueue` says what each means."""

    reclaim_within_cohort: Preempts = Preempts.NEVER
    within_cluster_queue: Preempts = Preempts.NEVER
    borrow_within_cohort: Preempts = Preempts.NEVER
    max_priority_threshold: int | None = None
    when_can_borrow: Search = Search.MAY_STOP
    when_can_preempt: Search = Search.TRY_NEXT
    preference: FlavorPreference = FlavorPreference.BORROWING
    queueing: Queueing = Queueing.BEST_EFFORT


#: A workload that may be preempted: its place among those of all ClusterQueues but the preemptor's, the workload, what
#: it takes, and the same by column.
Candidate = tuple[Place, QueuedWork, Needs, Mapping[int, int]]


class Target(NamedTuple):
    """A workload to be preempted, and why, in the source's words."""

    work: QueuedWork
    reason: str


@dataclass
class State:
    """Who runs where; quotas with the usage of those; each ClusterQueue's rules; and who preempted how often."""

    quotas: CohortQuotas
    rules: Callable[[int], Rules]
    fair: bool
    strategies: Sequence[Strategy] = (Strategy.FINAL_SHARE, Strategy.INITIAL_SHARE)
    #: Feature gates FairSharingPreemptWithinNominal and FairSharingPrioritizeNonBorrowing, on since 0.17.
    within_nominal: bool = True
    nominal_first: bool = True
    #: Feature gate TASRecomputeAssignmentWithinSchedulingCycle, on since 0.19.
    places_again: bool = True
    topologies: Topologies = field(default_factory=lambda: Topologies("", (), ()))
    #: The numbers of workloads that do not preempt any more, and by tree (its root) how many preemptions there were
    #: since the first of them; after `MANY` nobody preempts there.
    barred: set[int] = field(default_factory=set)
    since_circle: dict[int, int] = field(default_factory=dict)
    running: dict[int, dict[int, QueuedWork]] = field(default_factory=dict)
    #: How often somebody came to a ClusterQueue, or left it.
    stirred: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    #: Those that may be preempted, in the order in which they go, and beside that the ClusterQueue of each: by
    #: ClusterQueue, and by tree (its root), all with the column -1; and by tree and column of a resource that has
    #: several flavors, since those of one flavor are few.
    _going: dict[tuple[int, int], tuple[list[Candidate], list[int]]] = field(default_factory=dict)
    #: What was found below the root of a tree, by what was asked, until something in the tree changes.
    _known: dict[int, dict[Hashable, Any]] = field(default_factory=dict)
    #: By ClusterQueue and priority: what those below it that may be preempted take, by column.
    _yields: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    #: By what candidates take: the same by column. Many share one such table, which stays in the processor's cache.
    _takes: dict[Needs, Mapping[int, int]] = field(default_factory=dict)
    #: How often a workload preempted, by number, and how often the same ones.
    _times: Counter[object] = field(default_factory=Counter)

    def enter(self, works: Iterable[QueuedWork]) -> None:
        """List the workloads that run at first; their usage is counted already."""
        # in the order of their lists, so that those of a tree lie together in memory
        paths = self.quotas.paths
        for _, _, work in sorted((paths[work.queue][-1], work.place, work) for work in works):
            self._enter(work)

    def _enter(self, work: QueuedWork) -> None:
        self.running.setdefault(work.queue, {})[work.number] = work
        self.changed(work.queue)
        if work.preemptible:
            usage = tuple(work.usage)
            self._yield(work, usage)
            if usage not in self._takes:
                self._takes[usage] = dict(usage)
            entry = work.place, work, usage, self._takes[usage]
            for place in self._lists(work, usage):
                if (found := self._going.get(place)) is None:
                    found = self._going[place] = [], []
                at = bisect_left(found[0], entry)
                found[0].insert(at, entry)
                found[1].insert(at, work.queue)

    def add(self, work: QueuedWork) -> None:
        """Let a workload run on its flavor."""
        self.stirred[work.queue] += 1
        self.quotas.add(work.queue, work.usage)
        self.topologies.move(work, work.flavor, work.spots, -1)
        self._enter(work)

    def remove(self, work: QueuedWork) -> None:
        """Take a running workload's usage away; it keeps its flavor."""
        self.stirred[work.queue] += 1
        self.quotas.remove(work.queue, work.usage)
        self.topologies.move(work, work.flavor, work.spots, 1)
        del self.running[work.queue][work.number]
        self.changed(work.queue)
        if work.preemptible:
            self._yield(work, [(column, -amount) for column, amount in work.usage])
            before = (work.place,)
            for place in self._lists(work, work.usage):
                going, queues = self._going[place]
                at = bisect_left(going, before)
                del going[at], queues[at]

    def _yield(self, work: QueuedWork, usage: Needs) -> None:
        """Count the usage of one that may be preempted for those above it."""
        for below, found in self._yields.get(work.queue, {}).items():
            if work.priority < below:
                for column, amount in usage:
                    found[column] += amount

    def goes_round(self, work: QueuedWork, targets: Iterable[Target]) -> bool:
        """Count a preemption; return whether it closes a circle, so that the workload does not preempt any more."""
        root = self.quotas.paths[work.queue][-1]
        if root in self.since_circle:
            self.since_circle[root] += 1
        same = work.number, frozenset(target.work.number for target in targets)
        self._times.update((work.number, same))
        if self._times[same] < AGAIN and self._times[work.number] < OFTEN:
            return False
        self.barred.add(work.number)
        self.since_circle.setdefault(root, 0)
        return True

    def changed(self, queue: int) -> None:
        """Forget what is known of the tree of a ClusterQueue: what runs or is in use there is another."""
        self._known.pop(self.quotas.paths[queue][-1], None)

    def known(self, root: int, key: Hashable, find: Callable[[], T]) -> T:
        """Return what was found below the root of a tree, or find it."""
        of_tree = self._known.setdefault(root, {})
        if key not in of_tree:
            of_tree[key] = find()
        found: T = of_tree[key]
        return found

    def candidates(self, queue: int, policy: Preempts, preemptor: QueuedWork, columns: set[int]) -> list[Candidate]:
        """Return whom of a ClusterQueue a workload may preempt to get room in some columns; not to be changed.

        In the order in which they go. Source: preemption_policy.go, SatisfiesPreemptionPolicy; WorkloadUsesResources.
        """
        if policy is Preempts.NEVER:
            return []
        found, _ = self.going(queue)
        if policy is not Preempts.ANY and found:
            lower = bisect_left(found, ((preemptor.priority,),))
            newer: Sequence[Candidate] = ()
            if policy is Preempts.LOWER_OR_NEWER:
                above = bisect_left(found, ((preemptor.priority + 1,),))
                newer = [each for each in found[lower:above] if preemptor.since < each[1].since]
            found = [*found[:lower], *newer]
        apart = columns.isdisjoint
        return [each for each in found if not apart(each[3])]

    def yields(self, work: QueuedWork) -> Sequence[int]:
        """Return at most how much of each column a workload can get from others of its own ClusterQueue."""
        policy = self.rules(work.queue).within_cluster_queue
        if policy is Preempts.NEVER:
            return [0] * self.quotas.width
        below = work.priority + (policy is Preempts.LOWER_OR_NEWER)
        known = self._yields.setdefault(work.queue, {})
        if below not in known:
            found = known[below] = [0] * self.quotas.width
            for place, _, usage, _ in self.going(work.queue)[0]:
                if place[0] < below:
                    for column, amount in usage:
                        found[column] += amount
        return known[below]

    def going(self, node: int, column: int = -1) -> tuple[Sequence[Candidate], Sequence[int]]:
        """Return who of a ClusterQueue, or of the tree of a root, may be preempted, and the ClusterQueue of each.

        With a column, of a tree: those who use it, and maybe others.
        """
        several = column >= 0 and self.quotas.several[column]
        return self._going.get((node, column if several else -1), ((), ()))

    def _lists(self, work: QueuedWork, usage: Needs) -> Iterable[tuple[int, int]]:
        root, several = self.quotas.paths[work.queue][-1], self.quotas.several
        places = [(root, column) for column, _ in usage if several[column]]
        places.append((work.queue, -1))
        if root != work.queue:
            places.append((root, -1))
        return places

    @contextmanager
    def without(self, works: Iterable[QueuedWork], column: int) -> Iterator[None]:
        """Leave the usage of one column of some running workloads out for a while.

        Source: SimulateWorkloadUsageRemoval.
        """
        gone = [(work.queue, [each for each in work.usage if each[0] == column]) for work in works]
        for queue, usage in gone:
            self.quotas.lift(queue, usage)
        yield
        for queue, usage in reversed(gone):
            self.quotas.put(queue, usage)

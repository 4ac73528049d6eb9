"""What the rule moves about: workloads, the rules of their ClusterQueues, and who runs where."""

from __future__ import annotations

import enum
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from fairopt.models.kueue.quotas import CohortQuotas, Needs

Place = tuple[int, int, int]
#: So many workloads that preempt without end are enough to say that preemption does not end on this cluster.
MANY = 8


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


@dataclass(eq=False, slots=True)
class QueuedWork:
    """A workload: its ClusterQueue (a node), priority, when it was asked for, and what it takes by flavor.

    ``needs`` has a flavor's own columns first and those of other flavors apart: (of the flavor, elsewhere).
    ``number`` breaks ties; workloads of one ``kind`` take the same. ``admitted`` is when it got its quota; ``flavor``
    where it runs, None while it waits.
    """

    name: str
    queue: int
    priority: int
    since: int
    number: int
    needs: Mapping[int, tuple[Needs, Needs]]
    kind: int = 0
    preemptible: bool = True
    admitted: int = 0
    flavor: int | None = None

    @property
    def place(self) -> Place:
        """Its place among those that may be preempted: lowest priority, most recently admitted.

        Those of the preemptor's ClusterQueue come last. Source: common/ordering.go, CandidatesOrdering; without
        workloads that are being evicted, and LocalQueues.
        """
        return self.priority, -self.admitted, self.number

    @property
    def usage(self) -> Needs:
        """What it takes where it runs."""
        assert self.flavor is not None
        own, apart = self.needs[self.flavor]
        return (*own, *apart) if apart else own


#: A workload that may be preempted, after its place among those of all ClusterQueues but the preemptor's.
Candidate = tuple[Place, QueuedWork]


class Target(NamedTuple):
    """A workload to be preempted, and why, in the source's words."""

    work: QueuedWork
    reason: str


@dataclass
class State:
    """Who runs where; quotas with the usage of those; and each ClusterQueue's rules."""

    quotas: CohortQuotas
    rules: Callable[[int], Rules]
    fair: bool
    strategies: Sequence[Strategy] = (Strategy.FINAL_SHARE, Strategy.INITIAL_SHARE)
    #: Feature gates FairSharingPreemptWithinNominal and FairSharingPrioritizeNonBorrowing, on since 0.17.
    within_nominal: bool = True
    nominal_first: bool = True
    #: The numbers of workloads that do not preempt any more; after `MANY` of them nobody does.
    barred: set[int] = field(default_factory=set)
    running: dict[int, dict[int, QueuedWork]] = field(default_factory=dict)

    #: Those that may be preempted, by ClusterQueue and column, in the order in which they go.
    _going: dict[tuple[int, int], list[Candidate]] = field(default_factory=dict)
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict)
    _stamp: int = -1

    def enter(self, work: QueuedWork) -> None:
        """List a workload as running; its usage is counted already."""
        self.running.setdefault(work.queue, {})[work.number] = work
        if work.preemptible:
            for column, _ in work.usage:
                insort(self._going.setdefault((work.queue, column), []), (work.place, work))

    def add(self, work: QueuedWork) -> None:
        """Let a workload run on its flavor."""
        self.quotas.add(work.queue, work.usage)
        self.enter(work)

    def remove(self, work: QueuedWork) -> None:
        """Take a running workload's usage away; it keeps its flavor."""
        self.quotas.remove(work.queue, work.usage)
        del self.running[work.queue][work.number]
        if work.preemptible:
            for column, _ in work.usage:
                going = self._going[work.queue, column]
                del going[bisect_left(going, work.place, key=itemgetter(0))]

    def known(self) -> dict[tuple[object, ...], Any]:
        """Return what was found in this state of the quotas, by what was asked; forgotten with it."""
        if self._stamp != self.quotas.stamp:
            self._stamp = self.quotas.stamp
            self._known.clear()
        return self._known

    def candidates(self, queue: int, policy: Preempts, preemptor: QueuedWork, columns: set[int]) -> list[Candidate]:
        """Return whom of a ClusterQueue a workload may preempt to get room in some columns; not to be changed.

        In the order in which they go. Source: preemption_policy.go, SatisfiesPreemptionPolicy; WorkloadUsesResources.
        """
        if policy is Preempts.NEVER:
            return []
        own: list[Candidate] = []
        for column in columns:
            more = self._going.get((queue, column), [])
            own = sorted({*own, *more}, key=itemgetter(0)) if own and more else own or more
        if policy is Preempts.ANY:
            return own
        lower = bisect_left(own, (preemptor.priority,), key=itemgetter(0))
        found = own[:lower]
        if policy is Preempts.LOWER_OR_NEWER:
            for each in own[lower:]:
                if each[1].priority > preemptor.priority:
                    break
                if preemptor.since < each[1].since:
                    found.append(each)
        return found

    def below(self, node: int, policy: Preempts, preemptor: QueuedWork, columns: set[int]) -> list[Candidate]:
        """Return the `candidates` of all ClusterQueues below a node that are `CohortQuotas.reclaimable`, in order.

        ``policy``: Any or LowerPriority.
        """
        known = self.known()
        key = (node, *columns)
        if key not in known:
            queues = self.quotas.reclaimable(node, columns)
            own = (self.candidates(queue, Preempts.ANY, preemptor, columns) for queue in queues)
            known[key] = sorted(chain.from_iterable(own))
        found: list[Candidate] = known[key]
        if policy is Preempts.ANY:
            return found
        return found[: bisect_left(found, ((preemptor.priority,),))]

    @contextmanager
    def without(self, works: Iterable[QueuedWork], column: int | None = None) -> Iterator[None]:
        """Leave the usage of some running workloads out for a while, or that of one column alone.

        Source: SimulateWorkloadUsageRemoval.
        """
        gone = [(work.queue, work.usage) for work in works]
        if column is not None:
            gone = [(queue, [each for each in usage if each[0] == column]) for queue, usage in gone]
        stamp = self.quotas.stamp
        for queue, usage in gone:
            self.quotas.remove(queue, usage)
        yield
        for queue, usage in reversed(gone):
            self.quotas.add(queue, usage)
        self.quotas.undone(stamp)

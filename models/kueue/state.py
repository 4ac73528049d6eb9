"""What the rule moves about: workloads, the rules of their ClusterQueues, and who runs where."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from fairopt.models.kueue.quotas import CohortQuotas, Needs


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
    """What a ClusterQueue's spec says beyond quotas, with the source's defaults."""

    within: Preempts = Preempts.NEVER
    reclaim: Preempts = Preempts.NEVER
    borrow_within: Preempts = Preempts.NEVER
    threshold: int | None = None
    can_borrow: Search = Search.MAY_STOP
    can_preempt: Search = Search.TRY_NEXT
    preference: FlavorPreference = FlavorPreference.BORROWING
    queueing: Queueing = Queueing.BEST_EFFORT


@dataclass(eq=False)
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
    def usage(self) -> Needs:
        """What it takes where it runs."""
        assert self.flavor is not None
        own, apart = self.needs[self.flavor]
        return (*own, *apart) if apart else own


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
    preempts: bool = True
    running: dict[int, dict[int, QueuedWork]] = field(default_factory=dict)

    def add(self, work: QueuedWork) -> None:
        """Let a workload run on its flavor."""
        self.quotas.add(work.queue, work.usage)
        self.running.setdefault(work.queue, {})[work.number] = work

    def remove(self, work: QueuedWork) -> None:
        """Take a running workload's usage away; it keeps its flavor."""
        self.quotas.remove(work.queue, work.usage)
        del self.running[work.queue][work.number]

    @contextmanager
    def without(self, works: Iterable[QueuedWork]) -> Iterator[None]:
        """Leave the usage of some running workloads out for a while: `SimulateWorkloadUsageRemoval`."""
        gone = list(works)
        for work in gone:
            self.quotas.remove(work.queue, work.usage)
        yield
        for work in reversed(gone):
            self.quotas.add(work.queue, work.usage)


def satisfies(policy: Preempts, preemptor: QueuedWork, candidate: QueuedWork) -> bool:
    """Return whether a policy lets one workload preempt another: preemption_policy.go, SatisfiesPreemptionPolicy."""
    if not candidate.preemptible or policy is Preempts.NEVER:
        return False
    if policy is Preempts.ANY or preemptor.priority > candidate.priority:
        return True
    equal = preemptor.priority == candidate.priority
    return policy is Preempts.LOWER_OR_NEWER and equal and preemptor.since < candidate.since


def first_to_go(queue: int) -> Callable[[QueuedWork], tuple[bool, int, int, int]]:
    """Return the order of candidates: other ClusterQueues' first, lowest priority, most recently admitted.

    Source: common/ordering.go, CandidatesOrdering; without workloads that are being evicted, and LocalQueues.
    """
    return lambda work: (work.queue == queue, work.priority, -work.admitted, work.number)


def uses(work: QueuedWork, columns: set[int]) -> bool:
    """Return whether a running workload uses any of the columns: WorkloadUsesResources."""
    return any(column in columns for column, _ in work.usage)

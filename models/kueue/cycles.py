"""Scheduling cycles, one after another, until nothing changes.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/scheduler.go (schedule, nominate, processEntry,
updateAssignmentIfNeeded, quotaResourcesToReserve) and pkg/cache/queue/cluster_queue.go (requeueIfNotPresent).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fairopt.models.kueue.flavors import Assignment, Mode, assign
from fairopt.models.kueue.order import Head, in_order
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Preempts, QueuedWork, Queueing, State, Target

_Place = tuple[int, int, int]
#: A workload that preempts the same ones for the third time, or preempts for the twelfth time, goes round in a circle.
AGAIN, OFTEN = 3, 12


@dataclass
class Played:
    """What the cycles did: who was admitted in which order, who was stopped for whom and why, and whether in a circle.

    ``circle``: the workloads that preempted the same ones again and again, until they were not let any more.
    """

    admitted: list[QueuedWork] = field(default_factory=list)
    stopped: dict[int, tuple[QueuedWork, QueuedWork, str]] = field(default_factory=dict)
    circle: list[QueuedWork] = field(default_factory=list)
    cycles: int = 0


class _Queue:
    """Workloads of a ClusterQueue that wait: a heap, those set aside, and the one that waits for its preemptions."""

    def __init__(self) -> None:
        self.heap: list[tuple[_Place, QueuedWork]] = []
        self.aside: list[QueuedWork] = []
        self.failed: set[object] = set()
        self.sticky: QueuedWork | None = None

    def push(self, work: QueuedWork) -> None:
        heapq.heappush(self.heap, ((-work.priority, work.since, work.number), work))

    def pop(self) -> QueuedWork | None:
        """Return the head: the one that waits for its preemptions, else the first whose like did not fail."""
        first: QueuedWork | None = self.sticky
        self.sticky = None
        if first is not None:
            return first
        while self.heap:
            work = heapq.heappop(self.heap)[1]
            if (work.priority, work.kind) not in self.failed:
                return work
            self.aside.append(work)  # SchedulingEquivalenceHashing
        return None

    def again(self) -> None:
        """Take those that were set aside back: something was released."""
        for work in self.aside:
            self.push(work)
        self.aside, self.failed = [], set()


def run(state: State, waiting: Iterable[QueuedWork]) -> Played:
    """Play cycles until no workload is admitted or stopped any more; the state is changed.

    A preempted workload waits again and may be admitted later. A workload that preempts the same ones again and again
    (`AGAIN`, `OFTEN`) would do so for ever: from then on it does not preempt, and the outcome names it. After `MANY` of
    them nobody preempts.
    """
    queues: dict[int, _Queue] = {}
    for work in waiting:
        queues.setdefault(work.queue, _Queue()).push(work)
    outcome = Played()
    times: Counter[object] = Counter()
    clock = max((work.admitted for each in state.running.values() for work in each.values()), default=0)
    tried = -1
    while True:
        heads = [head for queue in list(queues) if (head := queues[queue].pop()) is not None]
        if not heads and tried < len(outcome.admitted):
            tried = len(outcome.admitted)  # a head of a strict queue is tried again, whatever happened
            strict = [queue for queue in queues if state.rules(queue).queueing is Queueing.STRICT]
            for queue in strict:
                queues[queue].again()
            continue
        if not heads:
            return outcome
        outcome.cycles += 1
        entries = [Head(work, assign(state, work)) for work in heads]
        cycle = _Cycle(state, queues, outcome, clock + outcome.cycles)
        for entry in in_order(state, entries):
            cycle.process(entry)
        cycle.finish()
        for target in cycle.stopped:
            target.work.flavor = None
            queues.setdefault(target.work.queue, _Queue()).push(target.work)
        for work, targets in cycle.preemptions:
            times.update((work.number, (work.number, targets)))
            if times[work.number, targets] >= AGAIN or times[work.number] >= OFTEN:
                state.barred.add(work.number)
                outcome.circle.append(work)


class _Cycle:
    """One cycle: what is added to the usage for its own time, and who is stopped at its end."""

    def __init__(self, state: State, queues: dict[int, _Queue], outcome: Played, clock: int) -> None:
        self.state, self.queues, self.outcome, self.clock = state, queues, outcome, clock
        self.stopped: list[Target] = []
        #: Who is stopped: by tree, and by tree and column.
        self.victims: dict[int, dict[int, QueuedWork]] = {}
        self.victims_of: dict[tuple[int, int], dict[int, QueuedWork]] = {}
        self.reserved: list[tuple[int, Needs]] = []
        self.preemptions: list[tuple[QueuedWork, frozenset[int]]] = []

    def process(self, entry: Head) -> None:
        """Admit a workload, preempt for it, or put it back: processEntry."""
        work, found = entry
        if self._overlaps(work, found.targets):
            with self.state.without(self._gone(work).values()):
                found = assign(self.state, work, [found.flavor])
            if found.mode is Mode.FIT:  # DeferredFit: it waits for the preemptions of others
                self._reserve(work.queue, found.needs)
                self._stick(work)
                return
        if found.mode is Mode.NO_FIT:
            self._aside(work)
        elif found.mode is not Mode.FIT and not found.targets:
            if self.state.rules(work.queue).reclaim is not Preempts.ANY:  # it cannot always reclaim
                self._reserve(work.queue, self._to_reserve(work, found))
            self._aside(work)
        elif self._overlaps(work, found.targets) or not self._fits(work, found):
            self.queues[work.queue].push(work)  # skipped: it is tried again in the next cycle
        elif found.targets:
            self._stop(work, found.targets)
            self._reserve(work.queue, found.needs)
            self._stick(work)
            self.preemptions.append((work, frozenset(target.work.number for target in found.targets)))
        else:
            work.flavor, work.admitted = found.flavor, self.clock
            self.state.add(work)
            self.outcome.admitted.append(work)
            self.outcome.stopped.pop(work.number, None)

    def finish(self) -> None:
        """Release what was reserved, and stop the targets."""
        for queue, needs in reversed(self.reserved):
            self.state.quotas.remove(queue, needs)
        for target in self.stopped:
            self.state.remove(target.work)
        if self.stopped:
            paths = self.state.quotas.paths
            roots = {paths[target.work.queue][-1] for target in self.stopped}
            for node, waiting in self.queues.items():
                if paths[node][-1] in roots:
                    waiting.again()

    def _stop(self, work: QueuedWork, targets: Sequence[Target]) -> None:
        """Note who is stopped for a workload at the end of the cycle."""
        root = self.state.quotas.paths[work.queue][-1]
        for target in targets:
            gone = target.work
            self.victims.setdefault(root, {})[gone.number] = gone
            for column, _ in gone.usage:
                self.victims_of.setdefault((root, column), {})[gone.number] = gone
            self.outcome.stopped[gone.number] = (gone, work, target.reason)
        self.stopped += targets

    def _overlaps(self, work: QueuedWork, targets: Sequence[Target]) -> bool:
        gone = self._gone(work)
        return any(target.work.number in gone for target in targets)

    def _fits(self, work: QueuedWork, found: Assignment) -> bool:
        """Return whether there is room without those who are stopped, column by column."""
        quotas, root = self.state.quotas, self.state.quotas.paths[work.queue][-1]
        for column, amount in found.needs:
            if amount <= quotas.available(work.queue, column):
                continue
            gone = dict(self.victims_of.get((root, column), ()))
            gone.update((target.work.number, target.work) for target in found.targets)
            with self.state.without(gone.values(), column):
                if amount > quotas.available(work.queue, column):
                    return False
        return True

    def _gone(self, work: QueuedWork) -> dict[int, QueuedWork]:
        """Return who is stopped in the tree of a workload; others leave it no room."""
        return self.victims.get(self.state.quotas.paths[work.queue][-1], {})

    def _reserve(self, queue: int, needs: Needs) -> None:
        self.state.quotas.add(queue, needs)
        self.reserved.append((queue, needs))

    def _to_reserve(self, work: QueuedWork, found: Assignment) -> Needs:
        """Return what is held back for a workload that cannot preempt: quotaResourcesToReserve."""
        quotas, queue = self.state.quotas, work.queue
        kept = []
        for column, amount in found.needs:
            left = quotas.nominal[queue][column] - quotas.usage[queue][column]
            limit = quotas.borrowing[queue][column]
            if not found.borrows:
                amount = max(0, min(amount, left))
            elif limit is not None:
                amount = min(amount, left + limit)
            kept.append((column, amount))
        return kept

    def _stick(self, work: QueuedWork) -> None:
        own = self.queues[work.queue]
        if self.state.rules(work.queue).queueing is Queueing.BEST_EFFORT:
            own.sticky = work
        else:
            own.push(work)

    def _aside(self, work: QueuedWork) -> None:
        """Set a workload aside until something is released; where it blocks, all behind it with it."""
        own = self.queues[work.queue]
        own.aside.append(work)
        if self.state.rules(work.queue).queueing is Queueing.BEST_EFFORT:
            own.failed.add((work.priority, work.kind))
        else:
            own.aside += [each for _, each in own.heap]
            own.heap.clear()

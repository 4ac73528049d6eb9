"""Scheduling cycles, one after another, until nothing changes.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/scheduler.go (schedule, nominate, processEntry,
updateAssignmentIfNeeded, quotaResourcesToReserve, makeClassicalIterator), fair_sharing_iterator.go (runTournament,
less, computeDRS) and pkg/cache/queue/cluster_queue.go (requeueIfNotPresent).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import Any

from fairopt.models.common.holdings import TreeTurns
from fairopt.models.kueue.flavors import Assignment, Mode, assign, nominate
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.state import Preempts, Queueing, State, Target
from fairopt.models.kueue.work import QueuedWork
from fairopt.program import Number

_Place = tuple[Any, int, int, int]


def run(
    state: State, waiting: Iterable[QueuedWork], most: int | None = None, used: Mapping[str, Number] | None = None
) -> Cycles:
    """Play cycles until no workload is admitted or stopped any more, and return them; the state is changed.

    ``most``: end after so many. ``used``: the past use of LocalQueues that order their ClusterQueue.

    A preempted workload waits again and may be admitted later. A workload that preempts the same ones again and again
    (`State.goes_round`) would do so for ever: from then on it does not preempt, and the outcome names it. After `MANY`
    more preemptions in its tree nobody preempts there.
    """
    cycles = Cycles(state, used or {})
    trees: dict[int, list[QueuedWork]] = {}
    for work in waiting:  # trees have nothing to do with each other, but where they share nodes
        trees.setdefault(0 if state.topologies else state.quotas.paths[work.queue][-1], []).append(work)
    for works in trees.values():
        cycles.play_tree(works, most)
    cycles.admitted = [work for _, work in sorted(cycles.turns, key=itemgetter(0))]
    return cycles


class Cycles:
    """Cycles on a state: who waits, and what a cycle adds to the usage for its own time and stops at its end.

    ``turns``: who was admitted when, tree by tree; ``admitted``: in order. ``stopped``: by number who was stopped and
    was not admitted again, for whom and why. ``circle``: the workloads that preempted the same ones again and again,
    until they were not let any more.
    """

    def __init__(self, state: State, used: Mapping[str, Number]) -> None:
        self.state, self._used = state, dict(used)
        self.queues: dict[int, _Queue] = {}
        #: The ClusterQueues in which somebody may wait that is not set aside, and all of them by tree.
        self._awake: dict[int, None] = {}
        self._of_tree: dict[int, list[int]] = {}
        self.turns: list[tuple[int, QueuedWork]] = []
        self.admitted: list[QueuedWork] = []
        self.stopped: dict[int, tuple[QueuedWork, QueuedWork, str]] = {}
        self.circle: list[QueuedWork] = []
        running = (work for each in state.running.values() for work in each.values())
        self._clock = self._first = max((work.admitted for work in running), default=0)
        #: Who was stopped in the cycle, by number: its snapshot has them still, but no more where room is asked for.
        self._stopped: dict[int, QueuedWork] = {}
        self._reserved: list[tuple[Assignment, Needs]] = []
        #: Heads that could get nothing in the cycle.
        self._hopeless: list[QueuedWork] = []

    def play_tree(self, waiting: Iterable[QueuedWork], most: int | None) -> None:
        """Play cycles in a tree from the first one on, at ``most`` so many, with those who wait there."""
        before, tried, self._clock = len(self.queues), -1, self._first
        self._awake.clear()
        for work in waiting:
            self.queue(work.queue).push(work)
        while most is None or self._clock < self._first + most:
            heads = list(self._heads())
            if self._awake:
                self.play(heads)
            elif tried < len(self.turns):
                tried = len(self.turns)  # a head of a strict queue is tried again, whatever happened
                inside = islice(list(self.queues), before, None)
                self._again(node for node in inside if self.queues[node].strict)
            else:
                break

    def queue(self, node: int) -> _Queue:
        """Return what waits in a ClusterQueue, to push somebody."""
        if node not in self.queues:
            self.queues[node] = _Queue(self._used, strict=self.state.rules(node).queueing is Queueing.STRICT)
            self._of_tree.setdefault(self.state.quotas.paths[node][-1], []).append(node)
        self._awake[node] = None
        return self.queues[node]

    def _heads(self) -> Iterator[Assignment]:
        """Yield what the head of each ClusterQueue gets; those that can get nothing are listed as hopeless."""
        room, like, stirred = cache(self.state.quotas.room), self.state.quotas.like, self.state.stirred
        for node in list(self._awake):  # nothing changes meanwhile
            own = self.queues[node]
            if (work := own.first()) is None:
                del self._awake[node]
                continue
            since, column, amount, left = work.hopeless  # unless more may be had from its own ClusterQueue now
            free, below = room(like[node], column) if since == stirred[node] else (left, amount)
            if (left > free and amount > below) or (found := nominate(self.state, work, room)) is None:
                self._hopeless.append(work)
            else:
                yield found

    def _again(self, nodes: Iterable[int]) -> None:
        """Take those that were set aside in some ClusterQueues back."""
        for node in nodes:
            if (own := self.queues[node]).at:
                own.again()
            self._awake[node] = None

    def play(self, heads: Sequence[Assignment]) -> None:
        """Play one cycle with the heads of the ClusterQueues."""
        self._clock += 1
        quotas = self.state.quotas
        preemptors = [(head.work, targets) for head in self._in_order(heads) if (targets := self._process(head))]
        for found, needs in reversed(self._reserved):
            quotas.remove(found.work.queue, needs)
            self.state.topologies.move(found.work, found.flavor, found.spots, 1)
            self.state.changed(found.work.queue)
        for gone in self._stopped.values():
            gone.flavor, gone.step, gone.spots = None, 0, {}
            self.queue(gone.queue).push(gone)
        released = dict.fromkeys(quotas.paths[gone.queue][-1] for gone in self._stopped.values())
        for work in self._hopeless:
            own = self.queues[work.queue]
            # others stay where they are: `_again` would take them back at once
            if quotas.paths[work.queue][-1] not in released or work is own.sticky:
                own.aside(work)
        for root in released:
            self._again(self._of_tree[root])
        self.circle += [work for work, targets in preemptors if self.state.goes_round(work, targets)]
        self._stopped, self._reserved, self._hopeless = {}, [], []

    def _in_order(self, heads: Sequence[Assignment]) -> Iterator[Assignment]:
        """Yield the heads one by one; with fair sharing by shares as the usage is when each is asked for.

        Then each cohort nominates the child with the lowest share, its nominee's usage included. A head that was
        processed changes the keys of the nodes above it alone.
        """
        if not self.state.fair:
            yield from sorted(
                heads, key=lambda each: (each.borrows, -each.work.priority, each.work.since, each.work.number)
            )
            return
        paths, left = self.state.quotas.paths, {each.work.queue: [each] for each in heads}
        turns = TreeTurns(
            self.state.quotas.parent, paths.__getitem__, left, lambda node, queue: self._key(node, left[queue][0])
        )
        for root in dict.fromkeys(paths[queue][-1] for queue in left):
            queue = turns.first(root)
            while queue is not None and left[queue]:
                yield left[queue].pop()
                with self._still_used(queue):
                    turns.changed(queue)
                queue = turns.first(root)

    def _key(self, node: int, found: Assignment) -> tuple[object, ...]:
        """Return what `less` compares, for a node with its nominee's usage added."""
        quotas, work = self.state.quotas, found.work
        more = self._arriving(found, node)
        new = dict(more) if self.state.nominal_first else None
        borrows = new is not None and any(quotas.over(node, column, new.get(column, 0)) for column, _ in found.needs)
        return (borrows, *quotas.order(node, more), -work.priority, work.since)

    def _arriving(self, found: Assignment, node: int) -> Needs:
        """Return what of a nominee's usage arrives at a node above its ClusterQueue: what is not local below."""
        quotas, arriving = self.state.quotas, []
        for column, amount in found.needs:
            for at in quotas.paths[found.work.queue]:
                if at == node or amount <= 0:
                    break
                amount -= max(0, quotas.local[at][column] - quotas.usage[at][column])
            if amount > 0 or node == found.work.queue:
                arriving.append((column, amount))
        return arriving

    def _process(self, found: Assignment) -> Sequence[Target]:
        """Admit a workload, preempt for it and return whom, or put it back: processEntry."""
        work, own = found.work, self.queues[found.work.queue]
        if found.mode is Mode.FIT and not found.spots:
            work.tried = found.tried
            if self._fits(found):
                self._admit(found)
            else:
                own.stay(work)
            return ()
        if self._overlaps(found):
            if work.alone is not None and self._fits(Assignment(work, needs=found.needs)):
                found.mode = Mode.FIT
            else:
                found = assign(self.state, work, [found.flavor])
            if found.mode is Mode.FIT:  # DeferredFit: it waits for the preemptions of others
                work.tried = -1
                self._reserve(found, found.needs)
                self._stick(work)
                return ()
        elif self.state.places_again and found.spots and self._fits(found) and not self._places(found):
            for gone in self._stopped.values():  # the snapshot has them still
                self.state.add(gone)
            found = assign(self.state, work, [found.flavor])
            for gone in self._stopped.values():
                self.state.remove(gone)
        work.tried = found.tried
        if found.mode is not Mode.FIT and not found.targets:
            can_always_reclaim = self.state.rules(work.queue).reclaim_within_cohort is Preempts.ANY
            if found.mode is not Mode.NO_FIT and not can_always_reclaim:
                self._reserve(found, self._to_reserve(found))
            # one that has flavors left is tried with those in the next cycle: PendingFlavors
            (own.stay if work.tried >= 0 else own.aside)(work)
        elif self._overlaps(found) or not self._fits(found) or not self._places(found):
            own.stay(work)
        elif found.targets:
            work.tried = -1
            self._stop(work, found.targets)
            self._reserve(found, found.needs)
            self._stick(work)
            return found.targets
        else:
            self._admit(found)
        return ()

    def _admit(self, found: Assignment) -> None:
        """Let a workload run."""
        work = found.work
        work.flavor, work.admitted, work.step, work.spots = found.flavor, self._clock, found.step, found.spots
        work.tried = -1
        self.queues[work.queue].take(work)
        self.state.add(work)
        self.turns.append((self._clock, work))
        self.stopped.pop(work.number, None)
        if work.local:
            self._used[work.local] = self._used.get(work.local, 0) + work.adds
            self.queues[work.queue].reorder()

    def _stop(self, work: QueuedWork, targets: Sequence[Target]) -> None:
        """Stop others for a workload; they wait again from the end of the cycle on."""
        for target in targets:
            self.state.remove(target.work)
            self._stopped[target.work.number] = target.work
            self.stopped[target.work.number] = (target.work, work, target.reason)

    @contextmanager
    def _still_used(self, queue: int) -> Iterator[None]:
        """Count what those use who were stopped in this cycle, for a ClusterQueue and those above it below the root."""
        quotas = self.state.quotas
        top = quotas.paths[queue][-2:-1]
        stopped = [gone for gone in self._stopped.values() if quotas.paths[gone.queue][-2:-1] == top]
        for gone in stopped:
            quotas.add(gone.queue, gone.usage)
        yield
        for gone in stopped:
            quotas.remove(gone.queue, gone.usage)

    def _overlaps(self, found: Assignment) -> bool:
        return not self._stopped.keys().isdisjoint(target.work.number for target in found.targets)

    def _fits(self, found: Assignment) -> bool:
        """Return whether there is room without those who are stopped, column by column."""
        quotas, work = self.state.quotas, found.work
        if (fits := quotas.fits(work.queue, found.needs)) or not found.targets:
            return fits
        for column, amount in found.needs:
            if amount <= (free := quotas.available(work.queue, column)):
                continue
            # somebody who goes leaves room for what it takes at most; where all is for everybody, just so much
            taken = sum(amount for target in found.targets for at, amount in target.work.usage if at == column)
            room = quotas.shared_room(work.queue, column)
            if amount - free > taken or (room is not None and amount > room + taken):
                return False
            if room is None:
                with self.state.without([target.work for target in found.targets], column):
                    if amount > quotas.available(work.queue, column):
                        return False
        return True

    def _places(self, found: Assignment) -> bool:
        """Return whether the places of its pods are free without those who are stopped."""
        gone = [target.work for target in found.targets]
        return not found.spots or self.state.topologies.fits(found.work, found.flavor, found.spots, gone)

    def _reserve(self, found: Assignment, needs: Needs) -> None:
        """Hold back needs of a workload, and the places of its pods, until the cycle ends."""
        queue = found.work.queue
        self.state.quotas.add(queue, needs)
        self.state.topologies.move(found.work, found.flavor, found.spots, -1)
        self.state.changed(queue)
        self._reserved.append((found, needs))

    def _to_reserve(self, found: Assignment) -> Needs:
        """Return what is held back for a workload that cannot preempt: quotaResourcesToReserve."""
        quotas, queue = self.state.quotas, found.work.queue
        kept = []
        with self._still_used(queue):
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
        own.take(work)
        if own.strict:
            own.push(work)
            return
        if own.sticky is not None:  # past use let another go before it
            own.push(own.sticky)
        own.sticky = work


class _Queue:
    """Workloads of a ClusterQueue that wait, in order; those before ``at`` are set aside until something is released.

    ``sticky``: the one that waits for its preemptions. ``mixed``: whether those set aside and the others may be mixed.

    Past use of LocalQueues comes before priority and age: cluster_queue.go, queueOrderingFunc.
    """

    def __init__(self, used: Mapping[str, Number], *, strict: bool) -> None:
        self.works: list[tuple[_Place, QueuedWork]] = []
        self.at, self.strict, self.mixed = 0, strict, False
        self.failed: set[int] = set()
        self.sticky: QueuedWork | None = None
        self._used = used

    def _place(self, work: QueuedWork) -> _Place:
        return self._used.get(work.local, 0) if work.local else 0, -work.priority, work.since, work.number

    def push(self, work: QueuedWork) -> None:
        entry = self._place(work), work
        self.mixed = self.mixed or (self.at > 0 and entry < self.works[self.at - 1])
        insort(self.works, entry, self.at)

    def reorder(self) -> None:
        """Put all that are not set aside in their places: past use has changed."""
        self.works[self.at :] = sorted((self._place(work), work) for _, work in self.works[self.at :])

    def first(self) -> QueuedWork | None:
        """Return the head: the one that waits for its preemptions, else the first whose like did not fail."""
        while self.at < len(self.works):
            place, work = self.works[self.at]
            if self.sticky is not None and self._place(self.sticky)[0] <= place[0]:
                break
            if work.kind not in self.failed:
                return work
            self.at += 1  # SchedulingEquivalenceHashing
        return self.sticky

    def take(self, work: QueuedWork) -> None:
        """Take the head."""
        if work is self.sticky:
            self.sticky, self.mixed = None, True
        else:
            del self.works[self.at]

    def stay(self, work: QueuedWork) -> None:
        """Leave the head where it is, to be tried again in the next cycle, without a right to come first."""
        if work is self.sticky:
            self.take(work)
            self.push(work)

    def aside(self, work: QueuedWork) -> None:
        """Set the head aside; where it blocks, all behind it with it."""
        if work is self.sticky:
            self.take(work)
            self.works.insert(self.at, (self._place(work), work))
        self.at += 1
        if self.strict:
            self.at = len(self.works)
        else:
            self.failed.add(work.kind)

    def again(self) -> None:
        """Take those that were set aside back: something was released."""
        self.at, self.failed = 0, set()
        if self._used:
            self.reorder()
        elif self.mixed:
            self.works.sort()
        self.mixed = False

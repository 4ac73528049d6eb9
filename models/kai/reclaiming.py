"""From whom a job of KAI's may reclaim, and until when; and who would get what is free then, in the next cycle."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add, gt, le, sub
from types import MappingProxyType
from typing import Any

from fairopt.models.common.holdings import QueuedGang, ratio
from fairopt.models.kai.devices import Spot
from fairopt.models.kai.pool import NodePool
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Number


class Reach:
    """From whom a job may reclaim: queues beside the ones that it is in, on each level of the tree; and how much.

    ``least``: how many times as saturated as the job's queues the others must stay. ``below``: how many jobs may be
    stopped below each node.

    Source: filter_victims.go, FilterVictim; strategies.go, FitsReclaimStrategy; reclaimable.go, getLeveledQueues,
    reclaimingQueuesRemainWithinBoundaries, isFairShareSaturationLowerPerResource.
    """

    def __init__(
        self, pool: NodePool, job: QueuedGang, least: Number, below: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        self._pool, self._job, self._least = pool, job, least
        self._sides: dict[int, tuple[int, int]] = {}
        #: by the job's queue and those above it: whether it stays within its quota, and beside it those that yield
        self._levels: dict[int, tuple[bool, list[int]]] = {}
        self._took: tuple[int, int] | None = None
        for node in pool.paths[job.queue]:
            above = pool.parent[node]
            within = all(map(le, map(add, pool.allocated[node], job.takes), pool.deserved[node]))
            found = [
                each
                for each in (pool.tops if above < 0 else pool.children[above])
                if each != node and below.get(each) and (not within or self._candidate(each))
            ]  # the filter looks at what is held before anybody is taken
            self._levels[node] = within, [each for each in found if self._yields(each, within)]
        self._below = below

    def levels(self) -> Iterable[tuple[int, list[int]]]:
        """Yield the job's queue and those above it, each with those beside it that yield: these only get fewer."""
        if self._took is not None:
            node, sibling = self._took
            within, found = self._levels[node]
            if not (self._below.get(sibling) and self._yields(sibling, within)):
                found.remove(sibling)
            self._took = None
        return ((node, found) for node, (_, found) in self._levels.items())

    def take(self, queue: int) -> None:
        """Say that a job of a queue is taken next."""
        self._took = self._beside(queue)

    def _yields(self, node: int, within: bool) -> bool:
        """Whether the jobs of a queue may be taken: it holds more than its share, or the job is owed by quota."""
        pool = self._pool
        return pool.over_may(node) or (within and any(map(gt, pool.allocated[node], pool.deserved[node])))

    def _candidate(self, node: int) -> bool:
        pool, under = self._pool, False
        for r, amount in enumerate(self._job.takes):
            if amount and pool.deserved[node][r] != INFINITY:
                if pool.allocated[node][r] > pool.deserved[node][r]:
                    return True
                under = under or pool.allocated[node][r] < pool.deserved[node][r]
        return not under

    # -- how much ----------------------------------------------------------------------------------------------------
    def over_quota(self) -> bool:
        """Whether a queue of the job would hold more for good than its quota, whoever is lost."""
        pool, job = self._pool, self._job
        return not job.preemptible and any(
            any(map(gt, map(add, pool.fixed[node], job.takes), pool.deserved[node])) for node in pool.paths[job.queue]
        )

    def bounded(self, lost: list[QueuedGang]) -> bool:
        """Whether the reclaiming queues stay within their shares, or less saturated than those that give."""
        touched: dict[tuple[int, int], set[int]] = {}
        for each in lost:
            touched.setdefault(self._beside(each.queue), set()).update(_taken(each))
        own = _taken(self._job)
        return not any(self._exceeds(*pair, touched[pair] | own) for pair in touched)

    def spared(self, taken: list[QueuedGang]) -> list[QueuedGang]:
        """Return those of the taken without whom it is not `bounded`, whoever else is lost.

        The more is lost, the less saturated are the queues of the job and those that give. So each is asked with all
        that were taken lost to the former, and with only its own lost to the latter.
        """
        by_side: dict[tuple[int, int], list[QueuedGang]] = {}
        for each in taken if not isinstance(self._pool.free[0], float) else ():  # in rounded numbers nothing is sure
            by_side.setdefault(self._beside(each.queue), []).append(each)
        own, found = _taken(self._job), list[QueuedGang]()
        for (node, sibling), several in by_side.items():
            over = [r for r in range(len(self._job.takes)) if self._then(node, r) > self._pool.shares[node][r]]
            if over:
                others = [sum(amounts) for amounts in zip(*(each.takes for each in several), strict=True)]
                found += [
                    each
                    for each in several
                    if self._exceeds(
                        node, sibling, (_taken(each) | own).intersection(over), list(map(sub, others, each.takes))
                    )
                ]
        return found

    def _exceeds(self, node: int, sibling: int, resources: Iterable[int], more: Sequence[Number] = ()) -> bool:
        """Whether a queue of the job is too saturated beside a sibling, if that held so much ``more``.

        Saturation is what is held over the fair share. Source: reclaimable.go, fairShareSaturationRatio.
        """
        pool = self._pool
        for r in resources:
            then, share, its = self._then(node, r), pool.shares[node][r], pool.shares[sibling][r]
            held = pool.allocated[sibling][r] + (more[r] if more else 0)
            if then > share and its > 0 and then * self._least * its >= held * share:
                return True
        return False

    def _then(self, node: int, r: int) -> Number:
        """Return what a queue of the job would hold with it."""
        found: Number = self._pool.allocated[node][r] + self._job.takes[r]
        return found

    def _beside(self, queue: int) -> tuple[int, int]:
        """Return where the paths of the job and of another queue part: the job's queue, and the one beside it."""
        if queue not in self._sides:
            pool = self._pool
            mine = {pool.parent[node]: node for node in pool.paths[self._job.queue]}
            theirs = next(node for node in pool.paths[queue] if pool.parent[node] in mine)
            self._sides[queue] = mine[pool.parent[theirs]], theirs
        return self._sides[queue]


def _taken(job: QueuedGang) -> set[int]:
    return {r for r, amount in enumerate(job.takes) if amount > 0}


def saturation(held: Number, share: Number) -> Number:
    """Return what is held over the fair share. Source: reclaimable.go, fairShareSaturationRatio."""
    found: Number = ratio(held, share) if share else INFINITY if held > 0 else 0
    return found


#: Who got what it takes, and where the job would be; None where it ends as the last time.
Played = tuple[set[QueuedGang], list[Spot] | None] | None


def trial(
    pool: NodePool, job: QueuedGang, asking: Mapping[int, Any], waiting: Mapping[int, QueuedGang]
) -> Callable[[Iterable[QueuedGang]], Played]:
    """Return what allocates to a job and its victims, each time after those that are given were taken too.

    The pool gives it to victims, and not yet to the job. Where it ends as the last time nothing is changed.
    ``waiting``: the jobs that wait, by number; ``asking``: by queue, those that waited at first.
    """
    made = _Trial(pool, job, asking, waiting)

    def play(more: Iterable[QueuedGang]) -> Played:
        for each in more:
            made.add(each)
        return made.play()

    return play


class _Trial:
    """Allocates as the next cycle would, but only to a job and its victims, again after each victim more.

    ``waiting``: the jobs that wait, by number; ``asking``: by queue, those that waited at first. They are only asked in
    their turn: the more a queue's next job takes, the later the queue comes. Source:
    TryToVirtuallyAllocatePreemptorAndGetVictims.
    """

    def __init__(
        self,
        pool: NodePool,
        job: QueuedGang,
        asking: Mapping[int, Any],
        waiting: Mapping[int, QueuedGang],
    ) -> None:
        self._pool, self._job, self._asking, self._waiting = pool, job, asking, waiting
        self._all: set[QueuedGang] = set()
        self._own: dict[int, list[QueuedGang]] = {}
        #: by queue: who is asked in turn, and how many were
        self._rows: dict[int, list[QueuedGang]] = {}
        self._asked: dict[int, int] = {}
        #: by node: those below it with a row, the queue that comes first there, and its key, where another is beside it
        self._below: dict[int, list[int]] = {}
        self._first: dict[int, int | None] = {}
        self._keys: dict[int, tuple[Any, ...]] = {}
        #: of the last allocation: its rows, after each start who had started and how many were asked; who came since
        self._then: dict[int, list[QueuedGang]] = {}
        self._steps: list[tuple[set[QueuedGang], dict[int, int]]] = []
        self._since: set[QueuedGang] = set()
        self.add(job)

    def add(self, job: QueuedGang) -> None:
        """Let one more wait, of which the pool has taken what it had."""
        queue, paths, parent = job.queue, self._pool.paths, self._pool.parent
        if queue not in self._rows:
            for node in paths[queue]:
                beside = self._below.setdefault(parent[node], [])
                if node not in beside:
                    beside.append(node)
                    if len(beside) == 2:
                        self._find_key(beside[0])
        self._all.add(job)
        self._since.add(job)
        own = self._own.setdefault(queue, [])
        insort(own, job, key=lambda each: each.place)
        self._rows[queue] = sorted([*self._before(queue, own), *own], key=lambda each: each.place)
        self._asked[queue] = 0
        self._changed(queue)

    def play(self) -> Played:
        """Allocate, and return who got what it takes; None, and nothing is changed, where it ends as the last time.

        The pool gives it to victims, and not yet to the job; the second is where it would be.
        """
        pool, job, kept, left = self._pool, self._job, set[QueuedGang](), set(self._all)
        at_first = dict(self._asked), dict(self._first), dict(self._keys)
        steps, told, ends_alike = [(set(kept), dict(self._asked))], pool.devices is None, False
        while (queue := self._next(TOP)) is not None:
            each = self._rows[queue][self._asked[queue]]
            self._asked[queue] += 1
            started = each in left and pool.fits(each)
            told = told and (started or each not in left)  # what was tried in vain is no longer seen in the holdings
            left.discard(each)
            if started:
                kept.add(each)
                pool.start(each)
                if not any(map(pool.fits, left) if job in kept else [pool.fits(job)]):
                    break  # what is free only gets less
            self._changed(queue)
            if started and told:
                ends_alike = self._as_then(kept)
                if ends_alike:
                    break
                steps.append((set(kept), dict(self._asked)))
        self._asked, self._first, self._keys = at_first
        self._steps, self._then, self._since = steps if pool.devices is None else [], dict(self._rows), set()
        at = pool.stop(job) if job in kept else None
        if not ends_alike:
            return kept, at
        for each in kept - {job}:
            pool.stop(each)
        return None

    def _as_then(self, kept: set[QueuedGang]) -> bool:
        """Return whether who is new has started, and all else is as it was at some time of the last allocation."""
        number = len(kept) - len(self._since)
        if not (0 <= number < len(self._steps) and self._since <= kept):
            return False
        had, asked = self._steps[number]
        if kept - self._since != had:
            return False
        for queue, row in self._rows.items():
            then, now, before = self._then.get(queue, []), self._asked[queue], asked.get(queue, 0)
            if (row is not then or now != before) and row[now:] != then[before:]:
                return False
        return True

    # -- whose turn it is ------------------------------------------------------------------------------------------
    def _next(self, node: int) -> int | None:
        """Return the queue that comes first below a node; None where nobody waits."""
        nodes, keys = self._below[node], self._keys
        if len(nodes) == 1:
            return self._first[nodes[0]]
        first = min(filter(keys.__contains__, nodes), key=keys.__getitem__, default=None)
        return None if first is None else self._first[first]

    def _changed(self, queue: int) -> None:
        """Find the places of a queue and of those above it anew."""
        parent = self._pool.parent
        for node in self._pool.paths[queue]:
            if node == queue:
                self._first[node] = queue if self._asked[queue] < len(self._rows[queue]) else None
            else:
                self._first[node] = self._next(node)
            self._keys.pop(node, None)
            if len(self._below[parent[node]]) > 1:
                self._find_key(node)

    def _find_key(self, node: int) -> None:
        queue = self._first[node]
        if queue is not None:
            self._keys[node] = self._pool.order(node, self._rows[queue][self._asked[queue]].takes)

    def _before(self, queue: int, row: list[QueuedGang]) -> Iterator[QueuedGang]:
        """Yield those of a queue that wait before the jobs of a row.

        Of those between two of these the one counts that takes the most of everything.
        """
        most: QueuedGang | None = None
        step, last = 0, row[-1].place
        for each in self._asking.get(queue, ()):
            if most is not None and not any(map(gt, each.takes, most.takes)) and each.place < last:
                continue  # it takes no more than one before it
            if each.number not in self._waiting or each in self._all:
                continue
            begun = step
            while step < len(row) and row[step].place < each.place:
                step += 1
            if step == len(row):
                break
            if most is not None and (step > begun or any(map(gt, most.takes, each.takes))):
                yield most
            most = each
        if most is not None:
            yield most

"""From whom a job of KAI's may reclaim, and until when; and who would get what is free then, in the next cycle."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from operator import add, ge, gt, le, sub
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

    def take(self, queue: int) -> int:
        """Say that a job of a queue is taken next; return beside which of the job's queues that is."""
        self._took = self._beside(queue)
        return self._took[0]

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


#: Who got what it takes, and where the job would be; None where it did not, or the others may not be lost.
Played = tuple[set[QueuedGang], list[Spot] | None] | None
#: Allocates to a job and its victims, after those that are given were taken too.
Play = Callable[[Iterable[QueuedGang]], Played]
#: Whose takes count when a queue is asked, and who is asked then.
Turns = list[tuple[QueuedGang, QueuedGang]]
#: Returns the turns of jobs of one queue, given by place.
InTurn = Callable[[tuple[QueuedGang, ...]], Turns]
#: The key of a node below which nobody waits: it comes after all others.
LAST: tuple[Any, ...] = (2,)


def trial(pool: NodePool, job: QueuedGang, in_turn: InTurn, allowed: Callable[[list[QueuedGang]], bool]) -> Play:
    """Return what allocates to a job and its victims, each time after those that are given were taken too.

    The pool then gives it to victims, and not yet to the job; where the job does not get it, or it is not ``allowed``
    to lose the others, nothing is changed.
    """
    return _Trial(pool, job, in_turn, allowed).play


class _Trial:
    """Allocates as the next cycle would, but only to a job and its victims, again after each victim more.

    Those that wait ahead of them are only asked in their turn: the more a queue's next job takes, the later the
    queue comes. Who is left to ask, and who was asked in vain, decide how it ends.
    Source: TryToVirtuallyAllocatePreemptorAndGetVictims.
    """

    def __init__(
        self, pool: NodePool, job: QueuedGang, in_turn: InTurn, allowed: Callable[[list[QueuedGang]], bool]
    ) -> None:
        self._pool, self._job, self._in_turn, self._allowed = pool, job, in_turn, allowed
        self._all: list[QueuedGang] = []
        self._own: dict[int, list[QueuedGang]] = {}
        #: by queue: whose takes count in each turn, and who is asked; how many were, and by that what is left, as a bit
        self._turns: dict[int, Turns] = {}
        self._asked: dict[int, int] = {}
        self._marks: dict[int, list[int]] = {}
        #: by node: the queue that comes first there, and the keys of those below it with turns, where these are several
        self._first: dict[int, int | None] = {}
        self._keys: dict[int, dict[int, tuple[Any, ...]]] = {}
        #: a bit for each that is asked in vain, and for all that are left of a queue; sums of these that were before
        self._bits: dict[object, int] = {}
        self._seen: set[int] = set()

    def _add(self, job: QueuedGang) -> None:
        queue, paths, parent = job.queue, self._pool.paths, self._pool.parent
        if queue not in self._turns:
            for node in paths[queue]:
                beside = self._keys.setdefault(parent[node], {})
                if node not in beside:
                    beside[node] = LAST
                    if len(beside) == 2:
                        self._find_key(next(iter(beside)))
        self._all.append(job)
        own = self._own.setdefault(queue, [])
        insort(own, job, key=lambda each: each.place)
        turns = self._turns[queue] = self._in_turn(tuple(own))
        marks = [0]
        for turn in reversed(turns):  # of those that are left the first, and what stands for the others
            marks.append(self._bit((turn, marks[-1])))
        self._marks[queue] = marks[::-1]
        self._asked[queue] = 0
        self._changed(queue)

    def play(self, more: Iterable[QueuedGang]) -> Played:
        """Allocate; see `trial`."""
        for each in more if self._all else (self._job, *more):
            self._add(each)
        pool, job, kept, left = self._pool, self._job, set[QueuedGang](), set(self._all)
        first, keys, parent = self._first, self._keys, pool.parent
        before: list[tuple[int, int | None, tuple[Any, ...]]] = []
        held = [pool.held(())]
        state, states = sum(marks[0] for marks in self._marks.values()), list[int]()
        while (queue := self._next(TOP)) is not None:
            marks, asked = self._marks[queue], self._asked[queue]
            each = self._turns[queue][asked][1]
            self._asked[queue] = asked + 1
            states.append(state)
            state += marks[asked + 1] - marks[asked]
            starts = each in left and pool.fits(each)
            if each in left and not starts:
                state += self._bit(each)
            if state in self._seen:
                break
            left.discard(each)
            if starts:
                kept.add(each)
                held.append(pool.held(pool.paths[queue]))
                pool.start(each)
                if not any(map(pool.fits, left) if job in kept else [pool.fits(job)]):
                    break  # what is free only gets less
            before += [(node, first[node], keys[parent[node]][node]) for node in pool.paths[queue]]
            self._changed(queue)
        self._asked = dict.fromkeys(self._asked, 0)
        for node, came_first, key in reversed(before):
            first[node], keys[parent[node]][node] = came_first, key
        ends_alike = state in self._seen
        if pool.devices is None:  # on which GPUs pods are depends on the order too
            self._seen.update(states)
        if job in kept and not ends_alike:
            at = pool.stop(job)
            kept.remove(job)
            if self._allowed([each for each in self._all[1:] if each not in kept]):
                return kept, at
        for then in reversed(held):
            pool.go_back(then)
        if pool.devices is not None:
            for each in self._all:
                if each in kept:
                    pool.devices.stop(each.number)
        return None

    def _bit(self, what: object) -> int:
        return self._bits.setdefault(what, 1 << len(self._bits))

    # -- whose turn it is ------------------------------------------------------------------------------------------
    def _next(self, node: int) -> int | None:
        """Return the queue that comes first below a node; None where nobody waits."""
        below = self._keys[node]
        return self._first[min(below, key=below.__getitem__) if len(below) > 1 else next(iter(below))]

    def _changed(self, queue: int) -> None:
        """Find the places of a queue and of those above it anew."""
        first = queue if self._asked[queue] < len(self._turns[queue]) else None
        below: dict[int, tuple[Any, ...]] = {}
        for node in self._pool.paths[queue]:
            if len(below) > 1:
                first = self._first[min(below, key=below.__getitem__)]
            self._first[node] = first
            below = self._keys[self._pool.parent[node]]
            if len(below) > 1:
                self._find_key(node)

    def _find_key(self, node: int) -> None:
        queue = self._first[node]
        self._keys[self._pool.parent[node]][node] = (
            LAST if queue is None else self._pool.order(node, self._turns[queue][self._asked[queue]][0].takes)
        )


def turns_of(own: Sequence[QueuedGang], waiting: Iterable[QueuedGang]) -> Turns:
    """Return whose takes count when jobs of one queue are asked, and who is asked then: they, or who waits before them.

    Of those that wait between two of its own the one counts that takes the most, where that is more than one before
    took. Who takes no more is asked at once after it, since the queue then comes no later; and who waits is asked in
    vain.
    """
    ahead = list[QueuedGang]()
    for each in waiting:
        if each.place > own[-1].place:
            break
        if not ahead or any(map(gt, each.takes, ahead[-1].takes)):
            ahead.append(each)
    row, found = sorted([*own, *ahead], key=lambda each: each.place), Turns()
    for each, after in zip_longest(row, row[1:]):
        if each in own:
            if not found or found[-1][1] is not each:
                found.append((each, each))
        elif after not in own:
            if not all(map(le, each.takes, after.takes)):
                found.append((each, each))
        else:
            found.append((each, after if all(map(ge, each.takes, after.takes)) else each))
    return found

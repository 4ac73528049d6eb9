"""Who would get what is free in KAI Scheduler's next cycle, if a job and those that were stopped for it waited."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import gt
from typing import Any

from fairopt.models.common.holdings import QueuedGang
from fairopt.models.kai.devices import Spot
from fairopt.models.kai.pool import NodePool
from fairopt.problem.entitled_rows import TOP

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

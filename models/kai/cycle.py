"""One cycle of KAI Scheduler in one node pool: allocate, move gangs, reclaim from other queues, preempt within one."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from operator import add, gt, sub
from typing import Any

from fairopt.models.common.holdings import QueuedGang, TreeTurns, by_queue
from fairopt.models.kai.devices import Spot
from fairopt.models.kai.pool import Amounts, Held, NodePool
from fairopt.models.kai.reclaiming import Play, Played, Reach, Turns, trial, turns_of
from fairopt.program import Number

#: Of so many sets of victims it is asked whether they make room for a job; the source has a limit of time.
SCENARIOS = 20
#: So many jobs are moved at most for one. Source: cmd/scheduler/app/options/options.go.
MOST_MOVED = 16
#: What a cycle does, in this order where nobody says otherwise.
ACTIONS = ("allocate", "consolidation", "reclaim", "preempt")
#: The place of a queue with victims in the order, and the job that would be stopped next.
_Rank = tuple[tuple[Any, ...], QueuedGang]
#: What was held, the ranks of the queues, and where the job was, before that was stopped.
_Before = tuple[Held, dict[int, _Rank | None], list[Spot] | None]


def in_order(pool: NodePool, jobs: Iterable[QueuedGang]) -> Iterator[QueuedGang]:
    """Yield jobs, given by place, in the order in which the scheduler looks at them.

    A queue is compared by what it would hold with the first of its jobs; its place is found anew after each of its
    jobs, whether that started or not. Source: job_order_by_queue.go at d5bc503a.
    """
    waiting = by_queue(jobs)
    turns = TreeTurns(
        pool.parent, pool.paths.__getitem__, waiting, lambda node, leaf: pool.order(node, waiting[leaf][0].takes)
    )
    while (queue := turns.first()) is not None:
        job, free = waiting[queue].popleft(), pool.free
        yield job
        if pool.free is not free or not waiting[queue] or waiting[queue][0].takes != job.takes:
            turns.changed(queue)  # else nobody's place has changed


class Cycle:
    """A cycle; ``saturation`` is the least ratio that reclaim asks for.

    By number, it has ``started`` jobs, ``stopped`` others and says why, and looked at some in this ``order``.

    Source: actions/allocate/allocate.go, actions/consolidation/consolidation.go, actions/reclaim/reclaim.go,
    actions/preempt/preempt.go and plugins/proportion/reclaimable at d5bc503a. The scheduler looks for victims node by
    node; here they are taken in its order. Those to whom the scheduler would give back what they had stay, on other
    GPUs where the pool knows its `Devices`.
    """

    def __init__(self, pool: NodePool, saturation: Number) -> None:
        self._pool, self._saturation = pool, saturation
        self._waiting = {job.number: job for job in pool.waiting}
        self._asking = by_queue(pool.waiting)
        #: by queue, the turns of its victims
        self._turns: dict[int, dict[tuple[QueuedGang, ...], Turns]] = {}
        #: the preemptible jobs that run in each queue, the first to be kept first
        self._victims: dict[int, list[QueuedGang]] = {}
        self._below: dict[int, int] = {}
        #: of a queue with victims: its place in the order, and the job that would be stopped next
        self._ranks: dict[int, _Rank | None] = {}
        for job in pool.running:
            self._keep(job)
        self.started: dict[int, QueuedGang] = {}
        self.stopped: dict[int, str] = {}
        self.order: list[int] = []

    def run(self, actions: Iterable[str] = ACTIONS) -> None:
        """Play the cycle: its actions in order."""
        for name in actions:
            getattr(self, name)()

    def allocate(self) -> None:
        """Start what fits. Source: allocate.go."""
        pool = self._pool
        least = [min((job.takes[r] for job in pool.waiting), default=0) for r in range(len(pool.free))]
        for job in in_order(pool, self.waiting):
            self.order.append(job.number)
            if pool.fits(job):
                self._start(job)
            elif any(amount > free for amount, free in zip(least, pool.free, strict=True)):
                break  # nothing fits any more

    def consolidation(self) -> None:
        """Start preemptible jobs for which GPUs are free on no node as it is, where others move."""
        if self._pool.devices is not None:
            self._evict(self._consolidate, lambda job: job.preemptible)

    def reclaim(self) -> None:
        """Start what other queues must make room for. Source: reclaim.go."""
        self._evict(self._reclaim, self._is_due)

    def preempt(self) -> None:
        """Start what jobs of lower priority in the same queue must make room for. Source: preempt.go."""
        self._evict(self._preempt, self._outranks)

    def why(self, job: QueuedGang) -> str:
        """Return in words why a job waits after the cycle."""
        why = self._pool.blocked(job) or "it is looked at again in the next cycle"
        return f"{why}; {self._undue(job) or 'no other queue holds enough beyond what it is owed'}"

    @property
    def waiting(self) -> list[QueuedGang]:
        """The jobs that wait after the cycle, but for those that were stopped in it."""
        return list(self._waiting.values())

    # -- bookkeeping -----------------------------------------------------------------------------------------------
    def _keep(self, job: QueuedGang, change: int = 1) -> None:
        """Count a job that runs among those that may be stopped; with ``change`` -1 no longer."""
        if job.preemptible:
            running = self._victims.setdefault(job.queue, [])
            if change > 0:
                insort(running, job, key=lambda each: each.place)
            else:
                running.pop()  # who is stopped is always the last
        for node in self._pool.paths[job.queue]:
            self._below[node] = self._below.get(node, 0) + (change if job.preemptible else 0)
            self._ranks.pop(node, None)

    def _start(self, job: QueuedGang, at: list[Spot] | None = None) -> None:
        self._pool.start(job, at)
        self._keep(job)
        del self._waiting[job.number]
        self._asking[job.queue].remove(job)
        self._turns.pop(job.queue, None)
        self.started[job.number] = job

    def _take(self, job: QueuedGang) -> _Before:
        """Stop the last job of a queue; return what `_give_back` needs."""
        path = self._pool.paths[job.queue]
        held, ranks = self._pool.held(path), {node: self._ranks.get(node) for node in path}
        self._keep(job, -1)
        return held, ranks, self._pool.stop(job)

    def _give_back(self, taken: list[QueuedGang], before: list[_Before]) -> None:
        """Let all run again that were taken, one after the other; nothing else has changed since."""
        for job, (held, ranks, _) in zip(reversed(taken), reversed(before), strict=True):
            self._pool.go_back(held)
            self._keep(job)
            self._ranks.update(ranks)
        if self._pool.devices is not None:
            for job, (_, _, home) in zip(taken, before, strict=True):
                self._pool.devices.start(job.number, home)

    # -- evicting --------------------------------------------------------------------------------------------------
    def _evict(self, attempt: Callable[[QueuedGang], bool], may: Callable[[QueuedGang], bool]) -> None:
        """Try jobs that wait and ``may``; none that asks for as much as one that failed in its queue is tried.

        Where pods are on GPUs of nodes, only jobs of the same pods are compared.
        """
        failed: dict[tuple[Any, ...], list[Amounts]] = {}
        devices = self._pool.devices
        for job in in_order(self._pool, [each for each in self._waiting.values() if may(each)]):
            pods = devices.pods_of(job.number) if devices is not None else ()
            known = failed.setdefault((job.queue, job.tier, job.preemptible, pods), [])
            known_to_fail = any(all(a >= b for a, b in zip(job.takes, other, strict=True)) for other in known)
            if not known_to_fail and not attempt(job):
                known.append(job.takes)

    def _make_room(
        self,
        job: QueuedGang,
        victim: Callable[[], QueuedGang | None],
        play: Play,
        words: str,
        spared: Callable[[list[QueuedGang]], list[QueuedGang]] = lambda taken: [],
    ) -> bool:
        """Take one victim after the other until the job starts; give all back if it does not in the end.

        ``spared``: those of the taken whom it is not allowed to lose, whoever else is lost. Where these leave no room
        for the job, nothing is simulated. Source: by_pod_solver.go, runSimulation.
        """
        pool, taken, before = self._pool, list[QueuedGang](), list[_Before]()
        tries, crowded, known = SCENARIOS, True, 0
        while tries and (found := victim()) is not None:
            taken.append(found)
            before.append(self._take(found))
            if not pool.fits(job):
                continue
            tries -= 1
            crowded = crowded and self._crowded(job, spared(taken))  # the more is taken, the fewer are spared
            if crowded:
                continue
            played, known = play(taken[known:]), len(taken)
            if played is None:
                continue
            kept, at = played
            self._start(job, at)
            for each in taken:
                if each in kept:
                    self._keep(each)
                else:
                    self.started.pop(each.number, None)
                    self.stopped[each.number] = f"{words} {job.name!r} of {pool.names[job.queue]!r}"
            return True
        self._give_back(taken, before)
        return False

    def _in_turn(self, job: QueuedGang, own: tuple[QueuedGang, ...]) -> Turns:
        """Return the turns of some jobs of one queue, among those that wait there but for a job."""
        queue = own[0].queue
        known = self._turns.setdefault(queue, {}) if queue != job.queue else dict[tuple[QueuedGang, ...], Turns]()
        if own not in known:
            known[own] = turns_of(own, (each for each in self._asking.get(queue, ()) if each is not job))
        return known[own]

    def _crowded(self, job: QueuedGang, others: list[QueuedGang]) -> bool:
        """Return whether less is free than a job takes where ``others`` have again what they had."""
        left = self._pool.free
        for each in others:
            left = list(map(sub, left, each.takes))
        return any(amount > free for amount, free in zip(job.takes, left, strict=True) if amount)

    # -- consolidating ---------------------------------------------------------------------------------------------
    def _consolidate(self, job: QueuedGang) -> bool:
        """Move preemptible jobs so that a job starts, and none of them stops; return whether it does."""
        if any(amount > free for amount, free in zip(job.takes, self._pool.free, strict=True) if amount):
            return False
        moved = count(1)

        def victim() -> QueuedGang | None:
            tops = [top for top in self._pool.tops if self._below.get(top)]
            return self._rank(self._last(tops))[1] if tops and next(moved) <= MOST_MOVED else None

        play = trial(self._pool, job, partial(self._in_turn, job), lambda lost: not lost)
        return self._make_room(job, victim, play, "it was moved for")

    # -- preempting ------------------------------------------------------------------------------------------------
    def _outranks(self, job: QueuedGang) -> bool:
        running = self._victims.get(job.queue, [])
        return any(each.tier < job.tier for each in running[-1:]) and not self._pool.over_quota(job)

    def _preempt(self, job: QueuedGang) -> bool:
        """Take from jobs of lower priority in the same queue; return whether the job starts. Source: preempt.go."""

        def victim() -> QueuedGang | None:
            running = self._victims.get(job.queue, [])
            return running[-1] if running and running[-1].tier < job.tier else None

        def play(taken: Iterable[QueuedGang]) -> Played:
            self._pool.start(job)  # its turn is before theirs
            kept = set[QueuedGang]()
            for each in sorted(taken, key=lambda each: each.place):
                if self._pool.fits(each):
                    self._pool.start(each)
                    kept.add(each)
            return kept, self._pool.stop(job)

        return self._make_room(job, victim, play, "it made room for")

    # -- reclaiming ------------------------------------------------------------------------------------------------
    def _reclaim(self, job: QueuedGang) -> bool:
        """Take from other queues what they hold beyond their share; return whether the job starts."""
        if not self._is_due(job):
            return False
        reach = Reach(self._pool, job, self._saturation, self._below)
        if reach.over_quota():
            return False
        lasts = dict[int, int | None]()
        play = trial(self._pool, job, partial(self._in_turn, job), reach.bounded)
        words = "it was reclaimed for"
        return self._make_room(job, lambda: self._victim(reach, lasts), play, words, reach.spared)

    def _undue(self, job: QueuedGang) -> str:
        """Return in words why a job is not owed what others hold; "" where it is. Source: CanReclaimResources."""
        pool = self._pool
        for r, amount in enumerate(job.takes):
            then, share = pool.allocated[job.queue][r] + amount, pool.shares[job.queue][r]
            if then > share:
                return f"with it its queue would hold {pool.said(r, then)}, and its fair share is {pool.said(r, share)}"
            fixed, quota = pool.fixed[job.queue][r] + amount, pool.deserved[job.queue][r]
            if not job.preemptible and fixed > quota:
                return f"its queue would hold {pool.said(r, fixed)} for good, and its quota is {pool.said(r, quota)}"
        return ""

    def _is_due(self, job: QueuedGang) -> bool:
        """Return whether a job is owed what others hold: whether `_undue` has nothing to say, which takes longer."""
        pool, queue = self._pool, job.queue
        if any(map(gt, map(add, pool.allocated[queue], job.takes), pool.shares[queue])):
            return False
        return job.preemptible or not any(map(gt, map(add, pool.fixed[queue], job.takes), pool.deserved[queue]))

    def _victim(self, reach: Reach, lasts: dict[int, int | None]) -> QueuedGang | None:
        """Return the last job, in the scheduler's order, of a queue that holds more than it should.

        ``lasts``: the last queue beside each of the job's, as long as nobody is taken there.
        """
        found: int | None = None
        for node, options in reach.levels():  # from the reclaiming queue upwards
            if node not in lasts:
                lasts[node] = self._last(options) if options else None
            last = lasts[node]
            if found is None or last is None:
                found = last if found is None else found
            elif self._pool.order(node, gives=self._rank(found)[1].takes) < self._rank(last)[0]:
                found = last
        if found is None:
            return None
        job = self._rank(found)[1]
        del lasts[reach.take(job.queue)]
        return job

    def _rank(self, node: int) -> _Rank:
        found = self._ranks.get(node)
        if found is None:
            below = [each for each in self._pool.children[node] if self._below.get(each)]
            job = self._rank(self._last(below))[1] if below else self._victims[node][-1]
            found = self._ranks[node] = self._pool.order(node, gives=job.takes), job
        return found

    def _last(self, nodes: Iterable[int]) -> int:
        return max(nodes, key=lambda node: self._rank(node)[0])

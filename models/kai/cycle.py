"""One cycle of KAI Scheduler in one node pool: allocate, reclaim from other queues, preempt within a queue."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fairopt.models.kai.division import ratio
from fairopt.models.kai.order import Order
from fairopt.models.kai.pool import Amounts, Job, Pool
from fairopt.program import INFINITY, Number


@dataclass
class Outcome:
    """What a cycle did, by gang: jobs that started, those that were stopped and why, and whom it looked at."""

    started: dict[int, Job] = field(default_factory=dict)
    stopped: dict[int, str] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


class Cycle:
    """A cycle; ``names`` are those of all gangs, ``saturation`` the least ratio that reclaim asks for.

    Source: actions/allocate/allocate.go, actions/reclaim/reclaim.go, actions/preempt/preempt.go and
    plugins/proportion/reclaimable at d5bc503a. The scheduler tries sets of victims node by node; here a pool has no
    nodes, victims are taken in its order, and those that still fit in the end are left alone.
    """

    def __init__(self, pool: Pool, names: tuple[str, ...], saturation: Number) -> None:
        self._pool, self._names, self._saturation = pool, names, saturation
        self._waiting = {job.gang: job for job in pool.waiting}
        #: the preemptible jobs that run in each queue, the first to be kept first
        self._victims: dict[int, list[Job]] = {}
        self._below: dict[int, int] = {}
        #: of a queue with victims: its place in the order, and the job that would be stopped next
        self._ranks: dict[int, tuple[tuple[Any, ...], Job]] = {}
        for job in pool.running:
            self._keep(job)
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Play the cycle."""
        pool, least = (
            self._pool,
            [min((job.takes[r] for job in self._pool.waiting), default=0) for r in range(len(self._pool.free))],
        )
        for job in Order(pool, pool.waiting):
            self.outcome.order.append(job.gang)
            if pool.fits(job):
                self._start(job)
            elif any(amount > free for amount, free in zip(least, pool.free, strict=True)):
                break  # nothing fits any more
        self._evict(self._reclaim, lambda job: not self._undue(job))
        self._evict(self._preempt, self._outranks)
        return self.outcome

    def why(self, job: Job) -> str:
        """Return in words why a job waits after the cycle."""
        why = self._pool.blocked(job) or "it is looked at again in the next cycle"
        return f"{why}; {self._undue(job) or 'no other queue holds enough beyond what it is owed'}"

    @property
    def waiting(self) -> list[Job]:
        """The jobs that wait after the cycle, but for those that were stopped in it."""
        return list(self._waiting.values())

    # -- bookkeeping -----------------------------------------------------------------------------------------------
    def _keep(self, job: Job, change: int = 1) -> None:
        """Count a job that runs among those that may be stopped; with ``change`` -1 no longer."""
        if job.preemptible:
            running = self._victims.setdefault(job.queue, [])
            if change > 0:
                insort(running, job, key=lambda each: each.place)
            else:
                running.remove(job)
        for node in self._pool.paths[job.queue]:
            self._below[node] = self._below.get(node, 0) + (change if job.preemptible else 0)
            self._ranks.pop(node, None)

    def _start(self, job: Job) -> None:
        self._pool.start(job)
        self._keep(job)
        del self._waiting[job.gang]
        self.outcome.started[job.gang] = job

    def _take(self, job: Job) -> None:
        self._pool.stop(job)
        self._keep(job, -1)

    def _give_back(self, job: Job) -> None:
        self._pool.start(job)
        self._keep(job)

    # -- evicting --------------------------------------------------------------------------------------------------
    def _evict(self, attempt: Callable[[Job], bool], may: Callable[[Job], bool]) -> None:
        """Try jobs that wait and ``may``; none that asks for as much as one that failed in its queue is tried."""
        failed: dict[tuple[int, int, bool], list[Amounts]] = {}
        for job in Order(self._pool, [each for each in self._waiting.values() if may(each)]):
            known = failed.setdefault((job.queue, job.tier, job.preemptible), [])
            known_to_fail = any(all(a >= b for a, b in zip(job.takes, other, strict=True)) for other in known)
            if not known_to_fail and not attempt(job):
                known.append(job.takes)

    def _settle(self, job: Job, taken: list[Job], allowed: Callable[[list[Job]], bool], words: str) -> bool:
        """Start a job in the place of those taken, if that is allowed; give back who need not go."""
        needed = [each for each in reversed(taken) if not self._spared(each, job)]
        if not self._pool.fits(job) or not allowed(needed):
            for each in needed:
                self._give_back(each)
            return False
        for each in needed:
            self.outcome.started.pop(each.gang, None)
            by = f"{self._names[job.gang]!r} of {self._pool.names[job.queue]!r}"
            self.outcome.stopped[each.gang] = f"{words} {by}"
        self._start(job)
        return True

    def _spared(self, victim: Job, job: Job) -> bool:
        """Whether the job can start with the victim given back, which then is done."""
        self._give_back(victim)
        if not self._pool.fits(job):
            self._take(victim)
            return False
        return True

    # -- preempting ------------------------------------------------------------------------------------------------
    def _outranks(self, job: Job) -> bool:
        running = self._victims.get(job.queue, [])
        return any(each.tier < job.tier for each in running[-1:]) and not self._pool.over_quota(job)

    def _preempt(self, job: Job) -> bool:
        """Take from jobs of lower priority in the same queue; return whether the job starts. Source: preempt.go."""
        pool, taken = self._pool, list[Job]()
        while not pool.fits(job):
            running = self._victims.get(job.queue, [])
            if not running or running[-1].tier >= job.tier:
                break
            taken.append(running[-1])
            self._take(taken[-1])
        return bool(taken) and self._settle(job, taken, lambda _: True, "it made room for")

    # -- reclaiming ------------------------------------------------------------------------------------------------
    def _reclaim(self, job: Job) -> bool:
        """Take from other queues what they hold beyond their share; return whether the job starts."""
        pool = self._pool
        if self._undue(job):
            return False
        reach = _Reach(pool, job)
        taken: list[Job] = []
        while not pool.fits(job):
            victim = self._victim(reach)
            if victim is None:
                break
            taken.append(victim)
            self._take(victim)
        return bool(taken) and self._settle(job, taken, lambda some: self._bounded(job, some), "it was reclaimed for")

    def _undue(self, job: Job) -> str:
        """Return in words why a job is not owed what others hold; "" where it is. Source: CanReclaimResources."""
        pool = self._pool
        for r, amount in enumerate(job.takes):
            then, share = pool.allocated[r][job.queue] + amount, pool.shares[r][job.queue]
            if then > share:
                return f"with it its queue would hold {pool.said(r, then)}, and its fair share is {pool.said(r, share)}"
            fixed, quota = pool.fixed[r][job.queue] + amount, pool.deserved[r][job.queue]
            if not job.preemptible and fixed > quota:
                return f"its queue would hold {pool.said(r, fixed)} for good, and its quota is {pool.said(r, quota)}"
        return ""

    def _victim(self, reach: _Reach) -> Job | None:
        """Return the last job, in the scheduler's order, of a queue that holds more than it should."""
        found: int | None = None
        for node, siblings in reach.levels:  # from the reclaiming queue upwards
            options = [each for each in siblings if self._below.get(each) and reach.yields(each)]
            last = self._last(options) if options else None
            if found is None or last is None:
                found = last if found is None else found
            elif self._pool.order(node, gives=self._rank(found)[1].takes) < self._rank(last)[0]:
                found = last
        return None if found is None else self._rank(found)[1]

    def _rank(self, node: int) -> tuple[tuple[Any, ...], Job]:
        if node not in self._ranks:
            below = [each for each in self._pool.children[node] if self._below.get(each)]
            job = self._rank(self._last(below))[1] if below else self._victims[node][-1]
            self._ranks[node] = self._pool.order(node, gives=job.takes), job
        return self._ranks[node]

    def _last(self, nodes: Iterable[int]) -> int:
        return max(nodes, key=lambda node: self._rank(node)[0])

    def _bounded(self, job: Job, victims: list[Job]) -> bool:
        """Whether the reclaiming queues stay within their shares, or less saturated than those that give.

        Source: reclaimable.go, reclaimingQueuesRemainWithinBoundaries, isFairShareSaturationLowerPerResource.
        """
        pool = self._pool
        touched: dict[int, set[int]] = {}
        for victim in victims:
            for node in pool.paths[victim.queue]:
                touched.setdefault(node, set()).update(r for r, amount in enumerate(victim.takes) if amount > 0)
        own = {r for r, amount in enumerate(job.takes) if amount > 0}
        for node in pool.paths[job.queue]:
            for sibling in touched.keys() - {node}:
                for r in touched[sibling] | own if pool.parent[sibling] == pool.parent[node] else ():
                    mine = saturation(pool.allocated[r][node] + job.takes[r], pool.shares[r][node])
                    theirs = saturation(pool.allocated[r][sibling], pool.shares[r][sibling])
                    if mine > 1 and pool.shares[r][sibling] > 0 and mine * self._saturation >= theirs:
                        return False
            if not job.preemptible and any(
                pool.fixed[r][node] + amount > pool.deserved[r][node] for r, amount in enumerate(job.takes)
            ):
                return False
        return True


class _Reach:
    """From whom a job may reclaim: queues beside the ones that it is in, on each level of the tree.

    Source: filter_victims.go, FilterVictim; strategies.go, FitsReclaimStrategy; reclaimable.go, getLeveledQueues.
    """

    def __init__(self, pool: Pool, job: Job) -> None:
        self._pool, self._job = pool, job
        self._passed: dict[int, bool] = {}
        self.levels: list[tuple[int, list[int]]] = []
        self._within: dict[int, bool] = {}
        for node in pool.paths[job.queue]:
            above = pool.parent[node]
            siblings = [each for each in (pool.tops if above < 0 else pool.children[above]) if each != node]
            self.levels.append((node, siblings))
            within = all(
                pool.allocated[r][node] + amount <= pool.deserved[r][node] for r, amount in enumerate(job.takes)
            )
            self._within.update(dict.fromkeys(siblings, within))

    def yields(self, node: int) -> bool:
        """Whether the jobs of a queue may be taken: it holds more than its share, or the job is owed by quota."""
        pool, own = self._pool, self._pool.place(node)
        over_share = any(held > may for held, may in zip(own.held, own.may, strict=True))
        quota = self._within[node] and any(held > pool.deserved[r][node] for r, held in enumerate(own.held))
        if node not in self._passed:  # the filter looks at what was held before anybody was taken
            self._passed[node] = self._candidate(node) if self._within[node] else over_share
        return self._passed[node] and (over_share or quota)

    def _candidate(self, node: int) -> bool:
        pool, under = self._pool, False
        for r, amount in enumerate(self._job.takes):
            if amount and pool.deserved[r][node] != INFINITY:
                if pool.allocated[r][node] > pool.deserved[r][node]:
                    return True
                under = under or pool.allocated[r][node] < pool.deserved[r][node]
        return not under


def saturation(held: Number, share: Number) -> Number:
    """Return what is held over the fair share. Source: reclaimable.go, fairShareSaturationRatio."""
    if share:
        return ratio(held, share)
    return INFINITY if held > 0 else 0

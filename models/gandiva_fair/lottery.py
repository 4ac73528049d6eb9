"""Lotteries for gangs: with backfilling, which is unfair, or with winners that wait, which is fair over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from fairopt.backends import Session
from fairopt.models.gandiva_fair.stride import (
    Assign,
    Strides,
    assigned,
    by_name,
    least_crowded,
    tickets_by_type,
    types_before,
)
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import within
from fairopt.problem.queue import Queue
from fairopt.simulation import Consolidated, Placement, Request, placed


class _Lots:
    """Tickets of jobs that can be drawn: of all, or, where ``sizes`` are given, of those that fit the ``gpus`` left.

    They are in a Fenwick tree: to draw a job, or to drop one, costs the logarithm of their number.
    """

    def __init__(self, tickets: Sequence[int], sizes: Sequence[int] = (), gpus: int = 0) -> None:
        self.total, self._tickets = sum(tickets), list(tickets)
        self._tree = [0, *tickets]
        for place in range(1, len(self._tree)):
            above = place + (place & -place)
            if above < len(self._tree):
                self._tree[above] += self._tree[place]
        self._top = 1 << len(tickets).bit_length() >> 1
        self.jobs, self.gpus, self._sizes = set(range(len(tickets))), gpus, sizes
        self._rising = sorted(range(len(sizes)), key=sizes.__getitem__)
        self._shrink()

    def drop(self, job: int) -> None:
        """Leave a job out of further draws."""
        if job not in self.jobs:
            return
        self.jobs.remove(job)
        gone, self._tickets[job] = self._tickets[job], 0
        self.total -= gone
        place = job + 1
        while gone and place < len(self._tree):
            self._tree[place] -= gone
            place += place & -place

    def take(self, job: int) -> None:
        """Run a job on the GPUs that are left."""
        self.gpus -= self._sizes[job]
        self.drop(job)
        self._shrink()

    def _shrink(self) -> None:
        while self._rising and self._sizes[self._rising[-1]] > self.gpus:
            self.drop(self._rising.pop())

    def draw(self, dice: Random) -> int:
        """Return the winner; each job wins with probability proportional to its tickets."""
        left, place, step = dice.randrange(self.total), 0, self._top
        while step:
            if place + step < len(self._tree) and self._tree[place + step] <= left:
                place += step
                left -= self._tree[place]
            step >>= 1
        return place


def backfilled(dice: Random, tickets: Sequence[int], sizes: Sequence[int], gpus: int) -> list[int]:
    """Return the jobs that run in one quantum on ``gpus``: winners are drawn, and those that do not fit are skipped.

    A job is drawn at most once per quantum (sampling without replacement). Skipping jobs that do not fit is the same as
    drawing only among those that fit.

    Source: Gandiva_fair Sec. 3.1 (Small jobs).
    """
    chosen: list[int] = []
    fitting = _Lots(tickets, sizes, gpus)
    while fitting.jobs:
        winner = fitting.draw(dice)
        chosen.append(winner)
        fitting.take(winner)
    return chosen


def gang_aware(
    dice: Random,
    tickets: Sequence[int],
    sizes: Sequence[int],
    gpus: int,
    waiting: Sequence[int],
    *,
    count_wins: bool = True,
    longest: int = 10_000,
) -> tuple[list[int], list[int]]:
    """Return who runs in one quantum on ``gpus``, and who waits afterwards; ``waiting`` waited before, in order.

    First the waiting jobs run, in order, as far as they fit. Then lotteries among all jobs follow (sampling with
    replacement), and each winner runs or waits, until no further job fits. No job runs twice in a quantum: a winner
    that already runs waits for the next quantum, and one that wins twice waits twice. Without ``count_wins``, wins of
    jobs that run or wait are void. Once ``longest`` wins wait, all wins of jobs that cannot run are void.

    Source: Gandiva_fair Sec. 3.1 (Small jobs).
    """
    fitting, everybody = _Lots(tickets, sizes, gpus), _Lots(tickets)
    chosen: list[int] = []
    queue: list[int] = []
    for job in waiting:
        if job in fitting.jobs:
            chosen.append(job)
            fitting.take(job)
        else:
            queue.append(job)
    # a void win changes nothing, so the draw is only among jobs whose win counts
    for job in () if count_wins else {*chosen, *queue}:
        everybody.drop(job)
        fitting.drop(job)
    while fitting.jobs:
        winner = (fitting if len(queue) >= longest else everybody).draw(dice)
        if winner in fitting.jobs:
            chosen.append(winner)
            fitting.take(winner)
        else:
            queue.append(winner)
        if not count_wins:
            everybody.drop(winner)
    return chosen, queue


@dataclass(frozen=True)
class LotteryWithBackfilling(Policy):
    """Each round, jobs are drawn by lot; a job that does not fit is skipped, and the draw goes on among the others.

    A job's chance is its tickets, whole numbers, over its GPUs (``by_size`` False: its tickets). Its tickets are its
    user's, divided in proportion to GPUs, as in `GangAwareStride`. ``readjust``, ``by_weight`` and ``assign`` are the
    options of that policy. Skipping favours small jobs: large ones run only if they are drawn first.

    Draws depend on ``seed``, the queue's index and the type, and on nothing else.

    Source: Gandiva_fair Sec. 3.1 (Small jobs), Table 2.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(LotteryWithBackfilling(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of lottery-backfilling, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "lottery-backfilling"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.1"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    states = (Strides,)
    winners_wait: ClassVar[bool] = False
    seed: int = 0
    readjust: bool = True
    by_weight: bool = False
    by_size: bool = True
    assign: Assign = least_crowded
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Strides, solve: Session) -> Schedule:
        """Draw on each type; see `Policy.decide`."""
        names, types, sizes = problem.jobs.names, problem.cluster.types, problem.jobs.gpus.tolist()
        gpu_types = assigned(problem, types_before(problem, state.gpu_types), self.assign)
        known = {name: row for row, name in enumerate(names)}
        before = [known[name] for name in state.waiting if name in known]
        shared = tickets_by_type(problem, gpu_types, by_weight=self.by_weight, readjust=self.readjust)
        # a job with a lease, or that can run nowhere at present, keeps its wins
        ready = {row for tickets in shared.values() for row in tickets} - problem.leased.keys()
        waiting = [row for row in before if row not in ready]
        requests: list[Request] = []
        for gpu_type, tickets in shared.items():
            rows, free = [row for row in tickets if row in ready], int(problem.room[gpu_type])
            dice = Random(f"{self.seed}/{problem.index}/{types[gpu_type]}")
            chances = [tickets[row] // (sizes[row] if self.by_size else 1) for row in rows]
            place = {row: at for at, row in enumerate(rows)}
            waited = [place[row] for row in before if row in place]
            running, queued = self.quantum(dice, chances, [sizes[row] for row in rows], free, waited)
            requests += [Request(rows[at], (gpu_type,)) for at in running]
            waiting += [rows[at] for at in queued]
        placements = placed(problem, requests, self.placement)
        if self.winners_wait:  # a winner without hosts has not run yet
            waiting = [*(request.row for request in requests if request.row not in placements), *waiting]
        after = by_name(problem, gpu_types)
        kept = Strides(gpu_types=after, waiting=tuple(names[row] for row in waiting))
        return Schedule(self.name, problem, placements, state=kept)

    def quantum(
        self, dice: Random, tickets: Sequence[int], sizes: Sequence[int], gpus: int, waiting: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Return who runs on one type in this round, and who waits afterwards; see `gang_aware`."""
        return backfilled(dice, tickets, sizes, gpus), []


@dataclass(frozen=True)
class GangAwareLottery(LotteryWithBackfilling):
    """Each round, lotteries among all jobs; a winner that does not fit waits, and goes first in the next round.

    Every win is a quantum of service, sooner or later, so that shares of time follow the chances in the long run.
    Chances and options are those of `LotteryWithBackfilling`. The paper does not say what happens to a winner that
    already runs or waits. Here it waits (once more); with ``count_wins`` False such a win is void. Where fair shares
    would leave GPUs idle, jobs win more than can be served, so at most ``longest`` wins wait on a type.

    Source: Gandiva_fair Sec. 3.1 (Small jobs), Table 2.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(GangAwareLottery(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of lottery, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    name = "lottery"
    winners_wait = True
    claims = (Claim("", "Sec. 3.1", words="fair over 1000 quanta or more"),)
    count_wins: bool = True
    longest: int = within(10_000, least=0)

    def quantum(
        self, dice: Random, tickets: Sequence[int], sizes: Sequence[int], gpus: int, waiting: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Return who runs on one type in this round, and who waits afterwards; see `gang_aware`."""
        return gang_aware(dice, tickets, sizes, gpus, waiting, count_wins=self.count_wins, longest=self.longest)

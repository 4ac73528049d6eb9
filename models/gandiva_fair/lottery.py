"""Lotteries for gangs: with backfilling, which is unfair, or with winners that wait, which is fair over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import ClassVar

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.gandiva_fair.pools import Assign, assigned, least_crowded, pools
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.simulation import Consolidated, Placement, Request, placed


def draw(dice: Random, tickets: Sequence[float]) -> int:
    """Return the index of the winner; each wins with probability proportional to its ``tickets``."""
    ends = list(accumulate(tickets))
    return min(bisect_right(ends, dice.random() * ends[-1]), len(ends) - 1)


def backfilled(dice: Random, tickets: Sequence[float], sizes: Sequence[int], gpus: int) -> list[int]:
    """Return the jobs that run in one quantum on ``gpus``: winners are drawn, and those that do not fit are skipped.

    A job is drawn at most once per quantum (sampling without replacement). Skipping jobs that do not fit is the same as
    drawing only among those that fit.

    Source: Gandiva_fair Sec. 3.1 (Small jobs).
    """
    chosen: list[int] = []
    while able := [job for job, size in enumerate(sizes) if size <= gpus and job not in chosen]:
        winner = able[draw(dice, [tickets[job] for job in able])]
        chosen.append(winner)
        gpus -= sizes[winner]
    return chosen


def gang_aware(
    dice: Random,
    tickets: Sequence[float],
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
    chosen: list[int] = []
    queue: list[int] = []
    for job in waiting:
        if sizes[job] <= gpus and job not in chosen:
            chosen.append(job)
            gpus -= sizes[job]
        else:
            queue.append(job)
    everybody = range(len(sizes))
    # a void win changes nothing, so the draw is only among jobs whose win counts
    while able := [
        job for job in everybody if sizes[job] <= gpus and job not in chosen and (count_wins or job not in queue)
    ]:
        among = able if len(queue) >= longest else everybody
        among = among if count_wins else [job for job in among if job not in chosen and job not in queue]
        winner = among[draw(dice, [tickets[job] for job in among])]
        if winner in able:
            chosen.append(winner)
            gpus -= sizes[winner]
        else:
            queue.append(winner)
    return chosen, queue


@dataclass(frozen=True)
class Winners:
    """Winners that have not run yet (``waiting``, job names in order); ``gpu_types``: each job's type."""

    waiting: tuple[str, ...] = ()
    gpu_types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LotteryWithBackfilling(Policy):
    """Each round, jobs are drawn by lot; a job that does not fit is skipped, and the draw goes on among the others.

    A job's chance is its tickets over its GPUs (``by_size`` False: its tickets). Its tickets are its user's, divided in
    proportion to GPUs, as in `GangAwareStride`. ``readjust``, ``by_weight`` and ``assign`` are the options of that
    policy. Skipping favours small jobs: large ones run only if they are drawn first.

    Draws depend on ``seed``, the queue's index and the type, and on nothing else.

    Source: Gandiva_fair Sec. 3.1 (Small jobs), Table 2.
    """

    problem = Queue
    name = "lottery-backfilling"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.1"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    states = (Winners,)
    winners_wait: ClassVar[bool] = False
    seed: int = 0
    readjust: bool = True
    by_weight: bool = False
    by_size: bool = True
    assign: Assign = least_crowded
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Winners, solve: Session) -> Schedule:
        """Draw on each type; see `Policy.decide`."""
        names, types, sizes = problem.jobs.names, problem.cluster.types, problem.jobs.gpus.tolist()
        gpu_types = assigned(problem, state.gpu_types, self.assign)
        at = {name: row for row, name in enumerate(names)}
        before = [at[name] for name in state.waiting if name in at]
        drawn = pools(problem, gpu_types, by_weight=self.by_weight, readjust=self.readjust)
        # a job with a lease, or that can run nowhere at present, keeps its wins
        ready = {row for pool in drawn for row in pool.rows}
        waiting = [row for row in before if row not in ready]
        requests: list[Request] = []
        for pool in drawn:
            rows = pool.rows
            dice = Random(f"{self.seed}/{problem.index}/{types[pool.gpu_type]}")
            chances = [float(pool.tickets[row]) / (sizes[row] if self.by_size else 1) for row in rows]
            waited = [rows.index(row) for row in before if row in rows]
            running, queued = self.quantum(dice, chances, [sizes[row] for row in rows], pool.free, waited)
            requests += [Request(rows[place], (pool.gpu_type,)) for place in running]
            waiting += [rows[place] for place in queued]
        placements = placed(problem, requests, self.placement)
        if self.winners_wait:  # a winner without hosts has not run yet
            waiting = [*(request.row for request in requests if request.row not in placements), *waiting]
        after = {names[row]: types[gpu_type] for row, gpu_type in gpu_types.items()}
        return Schedule(self.name, problem, placements, state=Winners(tuple(names[row] for row in waiting), after))

    def quantum(
        self, dice: Random, tickets: Sequence[float], sizes: Sequence[int], gpus: int, waiting: Sequence[int]
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
    """

    name = "lottery"
    winners_wait = True
    claims = (Claim("", "Sec. 3.1", words="fair over 1000 quanta or more"),)
    count_wins: bool = True
    longest: int = 10_000

    def __post_init__(self) -> None:
        require(self.longest >= 0, self.longest, f"{self.name}, longest", "Give a number of wins from 0")

    def quantum(
        self, dice: Random, tickets: Sequence[float], sizes: Sequence[int], gpus: int, waiting: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Return who runs on one type in this round, and who waits afterwards; see `gang_aware`."""
        return gang_aware(dice, tickets, sizes, gpus, waiting, count_wins=self.count_wins, longest=self.longest)

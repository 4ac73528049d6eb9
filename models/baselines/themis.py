"""Themis: GPUs whose leases have expired go to the jobs that sharing has delayed most."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import (
    Tally,
    by_arrival,
    finish_time_fairness,
    lease_length,
    leases_end,
    ordered,
    staying_first,
)
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Queue
from fairopt.program import Array, Number
from fairopt.simulation import Consolidated, Placement, choose, placed

#: Of a job present: the rounds that it has seen, and the sum of the jobs present in them, where N is their mean.
Seen: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Themis(Policy):
    """Each round, all GPUs without an unexpired lease are offered to the worst fraction 1 - f of jobs by rho.

    * ``knob``: f, in [0, 1]. At least one job gets the offer. 0 offers all GPUs to all jobs in order of rho.
    * ``lease``: how long a job that wins holds its GPUs, in the trace's unit of time; None for one round. A lease that
      ends within a round lasts to the end of that round.
    * ``average_contention``: N in rho is the mean number of jobs present over the rounds that a job has seen; else it
      is the number present now.
    * ``gang_share``: T_id of a job is that of its gang on 1/N of the GPUs; see `finish_time_fairness`. Else T* N.
    * ``random_rest``: the GPUs that the worst jobs leave go to the others in random order (``seed``); else by rho.
    * ``placement``: how hosts are chosen for the winners.

    Readings. Every job is an application of its own, as in ASTRAEA's comparison. Themis holds an auction by partial
    allocation: winners pay by keeping only a part of what they won. A gang is useful only as a whole, so it cannot keep
    a part. Here the jobs that get the offer take the GPUs they want in order of rho, the worst first: a greedy
    minimisation of the largest rho. Ties go to the job that arrived first. rho is estimated as if a job ran on its
    fastest type from now on. Jobs that run and win again stay on their type; others take the fastest with room. N
    counts jobs that fit the cluster.

    Where all jobs get the types that they ask for first, nobody competes: who comes is placed in the order of arrival,
    without an offer. Else ``costs`` has the largest rho.

    With six GPUs and jobs of 6, 3 and 3, T* N gives the alternation of ASTRAEA's Fig. 6(b); with ``gang_share`` the two
    small jobs run first, to their end.

    Source: Themis, NSDI 2020; ASTRAEA Sec. 4.1.2, Fig. 6(b), 6.1.5; FFT Sec. 6.1.5.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Themis(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of themis, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "themis"
    source = "Themis, NSDI 2020; ASTRAEA, TPDS 2022, Sec. 4.1.2"
    # not EXACT: all jobs that have waited from the start have the same rho, which rounding makes different in floats
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING})
    states = (Tally[Seen],)
    knob: object = within(Fraction(4, 5), least=0, most=1)
    lease: object = within(None, above=0)
    average_contention: bool = False
    gang_share: bool = False
    random_rest: bool = True
    seed: int = within(0, least=0)
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Tally[Seen], solve: Session) -> Schedule:
        """Rank by rho, offer, place; see `Policy.decide`."""
        there = problem.fitting
        after = self._seen(problem, state, there)
        free = np.flatnonzero(problem.can & ~problem.holds)
        requests = choose(problem, free, gpu_types=staying_first)
        costs: dict[str, Number] = {}
        calm = len(requests) == len(free) and (staying_first.first(problem)[free] == requests.gpu_types).all()
        if not calm:
            rho = self._rho(problem, after, there)
            costs = {"largest finish-time fairness": max(rho[there].tolist())}
            requests = choose(problem, self._order(problem, free, rho), gpu_types=staying_first)
        placements = placed(problem, requests, self.placement)
        until = problem.now + lease_length(problem, self.lease)
        rows = np.fromiter(placements, dtype=np.int64, count=len(placements))
        # who runs asks for its own type first, and gets it in any order; after an auction the next round says that
        # there is none
        all_run = len(placements) == np.count_nonzero(problem.can)
        plain = self.lease is None and not self.average_contention and type(self.placement) is Consolidated
        stands = leases_end(problem) if calm and all_run and plain else None
        return Schedule(
            self.name,
            problem,
            placements,
            leases=dict.fromkeys(rows[~problem.holds[rows]].tolist(), until),
            state=after,
            costs=costs,
            stands=stands,
            settled=stands is not None,
            newcomers=by_arrival,
        )

    def _seen(self, queue: Queue, state: Tally[Seen], there: list[int]) -> Tally[Seen]:
        if not self.average_contention:
            return Tally()
        seen = {}
        for row in there:
            rounds, total = state.of.get(queue.jobs.names[row], (0, 0))
            seen[queue.jobs.names[row]] = rounds + 1, total + len(there)
        return Tally(seen)

    def _rho(self, queue: Queue, after: Tally[Seen], there: list[int]) -> Array:
        """Return rho (n,) of the jobs that fit the cluster, 0 of the others."""
        contention: list[Number] = [len(there)] * len(there)
        if self.average_contention:
            means = (after.of[queue.jobs.names[row]] for row in there)
            contention = [queue.number(total) / rounds for rounds, total in means]
        rho = np.zeros_like(queue.remaining)
        rho[there] = finish_time_fairness(queue, there, contention, gang_share=self.gang_share)
        return rho

    def _order(self, queue: Queue, free: Array, rho: Array) -> Array:
        """Return the ``free`` jobs in the order in which they take GPUs: those with the offer by falling rho first."""
        worst = ordered(free, -rho)
        offered = max(1, ceil((1 - exact(self.knob, "themis, knob")) * len(worst)))
        rest = worst[offered:]
        if self.random_rest:
            rest = np.random.default_rng((self.seed, queue.index)).permutation(np.sort(rest))
        return np.concatenate((worst[:offered], rest))

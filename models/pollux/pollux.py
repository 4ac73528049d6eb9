"""Pollux: each round GPUs are shared so that the power mean of the jobs' speedups is as large as can be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import Adapted, open_with
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem import exact
from fairopt.problem.numbers import within
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array

#: Added to each speedup, as in the source: a job without GPUs has a power mean, too.
LEAST = 1e-3
#: Passes over all jobs in which each may change alone what it has.
PASSES = 3


@dataclass(frozen=True)
class Pollux(Policy):
    """The shares of GPUs with the largest power mean of speedups that is found, where a restart has a price.

    A job's speedup is its goodput over that with an equal part of the GPUs on one host. The mean of speedups to the
    power p, with p < 0, is the larger the better off are those who are worst off. A job that would run elsewhere, or
    with another number of GPUs, has its speedup multiplied by (T - N S) / (T + S), for its age T, its restarts N, and
    the time S of a restart.

    * ``power``: p, negative. ``restart``: S, in the trace's unit of time, of jobs whose profile has none.
    * ``growth``: a job gets at most so many times the GPUs that it has ever run with, and one at first; None for no
      such limit. The source's agents know nothing of more.
    * ``apart``: at most one job that runs on several hosts is on each host, so that they do not share its network.
    * ``mixed``: None puts a job on one type. A number puts it on GPUs of any types that it suits, as if all were alike,
      and divides hosts into ones of at most so many GPUs. Where it gets several types, it keeps the one of which it has
      most GPUs, the last of those; the others idle. A job that is to have another number of GPUs keeps those that it
      has. Hosts that are as good are taken in an order that is drawn anew in each round, from ``seed``. It is what
      Sia's authors play on clusters of several types.

    How many GPUs each job gets is found exactly, were all hosts one, by a dynamic program; then jobs are put onto hosts
    and each may, alone, change to what is better, until none does. The source searches by a genetic algorithm, at
    random. Jobs take the batch of the best goodput (`Jobs.profiles`), where the source's agents fit a model of it.
    Types are not told apart, as in the source: a job's speed is the mean of those on the types that it suits.
    What a restart costs is weighed by a job's age, so that one which comes just as a round begins waits until the next.

    Source: Pollux, OSDI 2021, Sec. 4.2; its code, simulator/pollux.py (p = -1, S = 30 s). ``mixed``: cluster_unaware.py
    (`fix_allocations_by_dropping`, four GPUs) in sia-simulator/ of github.com/siasosp23/artifacts, commit aaf7a0d.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Pollux(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of pollux, 600 to 900: 1 ran, 1 waited, 0 completed>
    """

    problem = Queue
    name = "pollux"
    source = "Pollux, OSDI 2021, Sec. 4.2"
    states = (Adapted,)
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS})
    power: float = within(-1.0, below=0)
    restart: object = within(30, least=0)
    growth: int | None = within(2, least=1)
    apart: bool = True
    mixed: int | None = within(None, least=1)
    seed: int = within(0, least=0)

    def decide(self, problem: Queue, state: Adapted, solve: Session) -> Schedule:
        """Share and place the round's GPUs; see `Policy.decide`."""
        sharing = Sharing(problem, state, self)
        placements = dict(problem.leased) | sharing.kept(sharing.found())
        return Schedule(
            self.name, problem, placements, state=state.after(problem, placements), costs={"objective": sharing.cost}
        )


class Sharing:
    """A round of Pollux: what each job may have, what it costs, and what is found; rows are those of the queue.

    Its hosts are those of the cluster, or the parts into which they are divided (`Pollux.mixed`); ``whole`` says of
    which host each is a part. ``cost`` is the sum over jobs of their scaled speedups to the power, which is least where
    the mean is largest.
    """

    def __init__(self, queue: Queue, state: Adapted, policy: Pollux) -> None:
        self.queue, self.policy, self.cost = queue, policy, 0.0
        self.rows = [row for row in queue.able if not queue.holds[row]]
        held = np.flatnonzero(queue.holds)
        free: list[int] = (queue.working - queue.held_at(held)).tolist() if len(held) else queue.working.tolist()
        most = policy.mixed or max([1, *free])
        parts = [(host, min(most, gpus - at)) for host, gpus in enumerate(free) for at in range(0, max(gpus, 1), most)]
        self.whole, self.free = [host for host, _ in parts], [gpus for _, gpus in parts]
        self.total = sum(self.free)
        self._order = list(range(len(self.free)))
        if policy.mixed:
            self._order = np.random.default_rng([policy.seed, queue.index]).permutation(self._order).tolist()
        self._now = self._parts() if policy.mixed else {}
        self.spots: dict[int, Spots] = {}
        self._across: dict[int, int] = {}  # jobs on several hosts, by host
        pause, jobs = float(exact(policy.restart, "pollux, restart")), queue.jobs
        hosts = sum(gpus > 0 for gpus in self.free)
        share = hosts / max(self.total, 1)
        self._fair = -(-self.total // max(len(self.rows), 1))
        self._sizes: dict[int, list[int]] = {}
        self._scale: dict[int, float] = {}
        self._moved: dict[int, float] = {}
        self._known: dict[tuple[int, int, int], float] = {}
        for row in self.rows:
            sizes = [each for each in jobs.sizes(row) if each <= self.total and open_with(queue, row, each)]
            grown = state.sizes(queue, row, policy.growth)
            self._sizes[row] = [each for each in sizes if each in grown]
            fair = max([each for each in sizes if each <= self._fair], default=int(jobs.gpus[row]))
            self._scale[row] = share / self._goodput(row, fair, 1)
            self._moved[row] = state.moved(queue, row, pause)

    def _goodput(self, row: int, gpus: int, hosts: int) -> float:
        key = row, gpus, hosts
        if key not in self._known:
            jobs, suits = self.queue.jobs, self.queue.suits[row]
            profile, done = jobs.profile(row), jobs.work[row] - self.queue.remaining[row]
            speeds = jobs.throughput[row] if profile is None else profile.speed(profile.phase(done), gpus, hosts)
            known = [float(speed) for speed, fits in zip(speeds, suits, strict=True) if fits and speed]
            self._known[key] = sum(known) / len(known)
        return self._known[key]

    def price(self, row: int, gpus: int, hosts: int, stays: bool) -> float:
        """Return the cost of a job with so many GPUs on so many hosts; of none for 0."""
        speedup = self._goodput(row, gpus, hosts) * self._scale[row] if gpus else 0.0
        return float((speedup * (1.0 if stays else self._moved[row]) + LEAST) ** self.policy.power)

    def now(self, row: int) -> Spots:
        """Return where a job runs, () where it does not."""
        if self.policy.mixed:
            return self._now.get(row, ())
        return self.queue.last[row] if self.queue.running[row] else ()

    def _parts(self) -> dict[int, Spots]:
        """Return on which parts of hosts jobs run: large ones first, on the fullest part with room, else on several."""
        there: dict[int, list[int]] = {}
        for part, host in enumerate(self.whole):
            there.setdefault(host, []).append(part)
        left, found = list(self.free), dict[int, list[tuple[int, int]]]()
        held = [
            (gpus, row, host) for row in self.rows if self.queue.running[row] for host, gpus in self.queue.last[row]
        ]
        for gpus, row, host in sorted(held, reverse=True):
            fitting = [part for part in there[host] if left[part] >= gpus]
            for part in sorted(fitting or there[host], key=lambda part: left[part] if fitting else -left[part]):
                took = min(gpus, left[part])
                found.setdefault(row, []).extend([(part, took)] * (took > 0))
                left[part], gpus = left[part] - took, gpus - took
        return {row: tuple(sorted(spots)) for row, spots in found.items()}

    def kept(self, spots: dict[int, Spots]) -> dict[int, Spots]:
        """Return the placements on the cluster's hosts, where each job keeps one type."""
        if not self.policy.mixed:
            return spots
        queue, found = self.queue, dict[int, Spots]()
        own = queue.cluster.type_of
        for row, parts in spots.items():
            of, at = Counter[int](), Counter[int]()
            for part, gpus in parts:
                of[own[self.whole[part]]] += gpus
            most = max(of, key=lambda gpu_type: (of[gpu_type], gpu_type))
            sizes = [each for each in queue.jobs.sizes(row) if each <= of[most] and most in open_with(queue, row, each)]
            left = max(sizes, default=0)
            for part, gpus in parts:
                if own[self.whole[part]] == most and left:
                    at[self.whole[part]] += min(gpus, left)
                    left -= min(gpus, left)
            if at:
                found[row] = tuple(sorted(at.items()))
        return found

    def found(self) -> dict[int, Spots]:
        """Return the placements, and set the `cost`."""
        wanted = dict(zip(self.rows, cheapest([self._table(row) for row in self.rows], self.total), strict=True))
        for row in self.rows:
            if wanted[row] and wanted[row] == sum(gpus for _, gpus in self.now(row)):
                self._put(row, self.now(row))
        for row in sorted(self.rows, key=lambda row: -wanted[row]):
            if row not in self.spots and wanted[row]:
                at = next((at for at in (self._place(row, each) for each in self._down(row, wanted[row])) if at), ())
                self._put(row, at)
        for _ in range(PASSES):
            if not [row for row in self.rows if self._improved(row)]:
                break
        self.cost = sum(self._price_at(row, self.spots.get(row, ())) for row in self.rows)
        return self.spots

    def _down(self, row: int, gpus: int) -> list[int]:
        return [each for each in reversed(self._sizes[row]) if each <= gpus]

    def _table(self, row: int) -> Array:
        """Return the cost by the number of GPUs, were all on as few hosts as can be; infinity for no size."""
        table = np.full(max(self._sizes[row], default=0) + 1, np.inf)
        table[0] = self.price(row, 0, 0, False)
        current = sum(gpus for _, gpus in self.now(row))
        for gpus in self._sizes[row]:
            table[gpus] = self.price(row, gpus, 1, gpus == current)
        return table

    def _price_at(self, row: int, spots: Spots) -> float:
        return self.price(row, sum(gpus for _, gpus in spots), len(spots), spots == self.now(row))

    def _put(self, row: int, spots: Spots, sign: int = 1) -> None:
        """Give a job GPUs, or take them from it (-1)."""
        for host, gpus in spots:
            self.free[host] -= sign * gpus
            self._across[host] = self._across.get(host, 0) + sign * (len(spots) > 1)
        if spots and sign > 0:
            self.spots[row] = spots
        else:
            self.spots.pop(row, None)

    def _improved(self, row: int) -> bool:
        """Change what a job has to what is best for it with the rest as it is; return whether that is better."""
        before = self.spots.get(row, ())
        self._put(row, before, -1)
        now, there = self.now(row), sum(self.free)
        fits = bool(now) and all(self.free[host] >= gpus for host, gpus in now)
        clear = len(now) < 2 or not self.policy.apart or not any(self._across.get(host, 0) for host, _ in now)
        options = [before, ()] + [now] * (fits and clear)
        options += [self._place(row, gpus) for gpus in self._sizes[row] if gpus <= there]
        best = min(options, key=lambda spots: self._price_at(row, spots))
        if self._price_at(row, best) > self._price_at(row, before) - 1e-9:
            best = before
        self._put(row, best)
        return best != before

    def _place(self, row: int, gpus: int) -> Spots:
        """Return free GPUs for a job: on the fullest host with room, else on the emptiest; () for none."""
        found: list[Spots] = []
        types = open_with(self.queue, row, gpus)
        if self.policy.mixed and (beside := self._beside(row, gpus, types)):
            return beside
        options = [self.queue.hosts(gpu_type) for gpu_type in types]
        if self.policy.mixed:
            own = self.queue.cluster.type_of
            options = [[part for part in self._order if own[self.whole[part]] in types]]
        for hosts in options:
            one = [host for host in hosts if self.free[host] >= gpus]
            if one:
                return ((min(one, key=lambda host: self.free[host]), gpus),)
            spots, missing = [], gpus
            clear = [host for host in hosts if not (self.policy.apart and self._across.get(host, 0))]
            for host in sorted(clear, key=lambda host: -self.free[host]):
                take = min(missing, self.free[host])
                spots += [(host, take)] if take else []
                missing -= take
            if not missing:
                found.append(tuple(sorted(spots)))
        return min(found, key=len, default=())

    def _beside(self, row: int, gpus: int, types: list[int]) -> Spots:
        """Return the GPUs that a job has, as many as it is to have, and more beside them; () where it cannot be so."""
        now, own = dict(self.now(row)), self.queue.cluster.type_of
        if not now or any(self.free[part] < held for part, held in now.items()):
            return ()
        others = [part for part in self._order if own[self.whole[part]] in types and part not in now]
        if self.policy.apart:
            others = [part for part in others if not self._across.get(part, 0)]
        spots, missing = Counter[int](), gpus
        for part in sorted(now, key=lambda part: -now[part]):
            spots[part] = min(now[part], missing)
            missing -= spots[part]
        for part in [*now, *sorted(others, key=lambda part: -self.free[part])]:
            more = min(self.free[part] - spots[part], missing)
            spots[part], missing = spots[part] + more, missing - more
        found = tuple(sorted((part, held) for part, held in spots.items() if held))
        shared = self.policy.apart and len(found) > 1 and any(self._across.get(part, 0) for part, _ in found)
        return () if missing or shared else found


def cheapest(tables: Sequence[Array], total: int) -> list[int]:
    """Return how many of ``total`` GPUs each job gets so that the sum of costs is least; ``tables`` have it by number.

    >>> cheapest([np.array([9, 5, 4]), np.array([9, 2, 1.5])], 3)
    [2, 1]
    """
    best, chosen = np.zeros(total + 1), []
    for table in tables:
        most = min(len(table), total + 1)
        behind = np.concatenate([np.full(most - 1, np.inf), best])
        # of each row, what is best with 0, 1, ... GPUs fewer
        values = np.lib.stride_tricks.sliding_window_view(behind, most)[:, ::-1] + table[:most]
        chosen.append(values.argmin(axis=1))
        best = values.min(axis=1)
    left, sizes = total, []
    for choice in reversed(chosen):
        sizes.append(int(choice[left]))
        left -= sizes[-1]
    return sizes[::-1]

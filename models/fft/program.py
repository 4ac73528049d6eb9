"""FFT's program of one round: the cost of each job on each type, term by term, and the constraints (Eq. 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fairopt.methods.gang_assignment import GangAssignment
from fairopt.problem.queue import Placements, Queue, Spots
from fairopt.program import INFINITY, Array, Formulation, Number, Program, cast, objects


def switching(queue: Queue, restart: Number, pauses: bool) -> Array:
    """Return the penalty s (n, k), in rounds, for running each job on each type: 0 on the one that it ran on last.

    The state is sent over the slowest link among the hosts that hold it and the working hosts of the type, since the
    host is not chosen yet. ``pauses``: jobs that ran on the type, but not in the last round, also pay.

    Source: FFT Sec. 4.2.3.
    """
    number, cluster, gpu_types = queue.number, queue.cluster, range(len(queue.cluster.types))
    length: Any = queue.length
    last = queue.last_type.copy()
    for row in np.flatnonzero(last < 0).tolist():
        last[row] = queue.last_gpu_type(row)
    penalty = cast(np.zeros((len(queue), len(gpu_types))), number)
    if (cluster.bandwidth != INFINITY).any():
        there = cast(objects(cluster.link([host for host, _ in spots]) for spots in queue.last), number)
        working = cast(objects(cluster.link(queue.hosts(gpu_type)) for gpu_type in gpu_types), number)
        link = np.minimum(there[:, None], working[None, :])
        bound = np.asarray(link != INFINITY, dtype=bool)  # a Fraction divided by infinity would be a float
        size = np.broadcast_to(queue.jobs.state_size[:, None], link.shape)
        penalty[bound] = size[bound] / link[bound]
    penalty = (penalty + number(restart)) / length
    stays = last[:, None] == np.arange(len(gpu_types))[None, :]
    if pauses:
        stays &= queue.running[:, None]
    return np.asarray(np.where(stays | (last[:, None] < 0), number(0), penalty))


def types_of(queue: Queue, placements: Mapping[int, Spots]) -> Array:
    """Return the type on which each job runs (n,), the slowest for it where there are several; -1 where it does not."""
    on = np.full(len(queue), -1)
    rest: Iterable[int] = placements
    if isinstance(placements, Placements) and placements.last is queue.last:
        stay = placements.stay
        on[stay] = queue.last_type[stay]
        rest = [*stay[on[stay] < 0].tolist(), *placements.moved]
    for row in rest:
        if spots := placements[row]:
            on[row] = queue.slowest(row, spots)
    return on


def choices(queue: Queue) -> Array:
    """Return which x (n, k) may be 1; jobs that hold leases run anyway, and their GPUs are not available.

    The job must hold no lease, have a throughput and enough memory there, and a gang no larger than the type's room.

    Source: FFT Eq. (1), Sec. 4.4.1.
    """
    allowed: Array = queue.suits & (queue.jobs.gpus[:, None] <= queue.room[None, :])
    allowed[queue.holds] = False
    return allowed


#: A way to compute K(t), the GPUs that a round must keep busy, from gangs (n,), allowed (n, k) and capacity (k,).
UsableGpus: TypeAlias = Callable[[Array, Array, Array], int]


def smaller_total(gangs: Array, allowed: Array, capacity: Array) -> int:
    """Return the smaller of total GPUs and total demand: FFT Sec. 4.2.4, K(t) without its last clause.

    Possibly no schedule keeps that many busy; the program is then infeasible.
    """
    return min(int(capacity.sum()), int(gangs[allowed.any(axis=1)].sum()))


def nothing(gangs: Array, allowed: Array, capacity: Array) -> int:
    """Return 0: GPUs may stay idle, and do where every job left has a positive cost."""
    return 0


@dataclass(frozen=True, eq=False)
class OneRound:
    """The parts of the program of a round: the terms of the cost (n, k), 0 where a job cannot run on a type.

    ``age``: (t - a_j) theta/W, in rounds. ``volume``: d_j W_j/theta, in GPU-rounds. ``switching``: s, in rounds.
    ``compensation``: rho theta, in squares of the job's unit of work; it is subtracted from the cost. As in the paper,
    the sum of the four mixes units, so that the weight of ``compensation`` depends on the unit of work. With
    ``in_rounds`` (see `FFT`) it is in rounds as well.

    ``allowed`` (n, k) is from `choices`; ``least`` is K(t), GPUs to keep busy.

    Source: FFT Eq. (1), (3), (4), (6), (7), Sec. 4.4.1.
    """

    queue: Queue
    age: Array
    volume: Array
    switching: Array
    compensation: Array
    allowed: Array
    least: int

    @classmethod
    def of(
        cls,
        queue: Queue,
        compensation: Mapping[str, Number],
        allowed: Array,
        least: int,
        *,
        restart: Number = 0,
        remaining: bool = False,
        pauses: bool = False,
        in_rounds: bool = False,
    ) -> OneRound:
        """Return the parts for jobs that are owed so much ``compensation``; the options are those of `FFT`.

        Source: FFT Eq. (3), (4), (6); footnote 1 for W_j.
        """
        jobs, suits = queue.jobs, queue.suits
        zero: Any = queue.now * 0
        length: Any = queue.length
        theta = np.where(suits, jobs.throughput * length, 1)
        age = ((queue.now - jobs.arrival) / length)[:, None] * theta / jobs.work[:, None]
        volume = np.asarray(jobs.gpus[:, None] * (queue.remaining if remaining else jobs.work)[:, None] / theta)
        owed = cast(objects(compensation.get(name, zero) for name in jobs.names), queue.number)[:, None] * theta
        if in_rounds:
            fastest = np.where(suits, theta, zero).max(axis=1, keepdims=True)
            owed = owed / np.where(fastest > 0, fastest * fastest, 1)
        terms = {"age": age, "volume": volume, "switching": switching(queue, restart, pauses), "compensation": owed}
        masked = {name: np.where(suits, term, zero) for name, term in terms.items()}
        return cls(queue, **masked, allowed=allowed, least=least)

    @property
    def cost(self) -> Array:
        """The coefficient of each x (n, k)."""
        return np.asarray(self.age + self.volume + self.switching - self.compensation)

    def costs(self, placements: Mapping[int, Spots]) -> Mapping[str, Number]:
        """Return each term summed over a schedule, signed as in the objective, which is their sum.

        A job whose GPUs lie on several types counts as on the slowest of them.
        """
        on, rows = types_of(self.queue, placements), np.fromiter(placements, dtype=np.int64, count=len(placements))
        rows = rows[on[rows] >= 0]
        signed = {
            "age": self.age,
            "volume": self.volume,
            "switching": self.switching,
            "compensation": -self.compensation,
        }
        zero = cast(np.zeros(1), self.queue.number)
        # one after another, since the order decides the last bit of floats
        sums = {name: np.add.accumulate([*zero, *table[rows, on[rows]]])[-1] for name, table in signed.items()}
        return sums

    def program(self) -> Program:
        """Return the program in binary ``x`` (n, k), in the queue's numbers, for any backend with integers."""
        jobs, room = self.queue.jobs, self.queue.room
        p = Formulation("FFT round")
        labels = (jobs.names, self.queue.cluster.types)
        x = p.variable("x", self.allowed.shape, lower=0, upper=1, integer=True, labels=labels)
        age, volume = (self.age * x).sum(), (self.volume * x).sum()
        switching, owed = (self.switching * x).sum(), (self.compensation * x).sum()
        p.minimize(
            age + volume + switching - owed,
            equation="sum_ji ((t - a_j) theta_ji / W_j + d_j W_j / theta_ji + s_ji - rho_j theta_ji) x_ji",
            source="Eq. (6)",
        )
        p.constrain("one_type", x.sum(axis=1) <= 1, equation="sum_i x_ji <= 1", source="Eq. (1)")
        busy = jobs.gpus[:, None] * x
        p.constrain("capacity", busy.sum(axis=0) <= room, equation="sum_j d_j x_ji <= Y_i", source="Eq. (1)")
        p.constrain("work_conservation", busy.sum() >= self.least, equation="sum_ji d_j x_ji >= K", source="Eq. (7)")
        if not self.allowed.all():
            p.constrain("forbidden", (x == 0).where(~self.allowed), equation="x_ji = 0", source="Sec. 4.4.1")
        return p.program()

    def gangs(self) -> GangAssignment:
        """Return the same problem for our own method, in floats."""
        costs = np.where(self.allowed, self.cost, 0).astype(float)
        return GangAssignment(costs, self.queue.jobs.gpus, self.queue.room, self.least, self.allowed)

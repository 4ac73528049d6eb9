"""FFT's state: how far each job is behind a fair scheduler, and its compensation (Eq. 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.numbers import shown
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number
from fairopt.simulation import Mechanics


@dataclass(frozen=True)
class FFTState:
    """FFT's state between rounds, by the names of the jobs that were present and fit some type.

    * ``compensation``: rho_j, in units of the job's work. ``coefficient``: mu_j, a ratio, of the last round.
    * ``fair_end``: tau_j, in the trace's unit of time; its keys are A(t) of the last round.
    * ``prices`` (k,), ``reward``: the multipliers of the last round's program, if the next one starts from them.

    The type on which a job ran last is in `Queue.last`, which `run` keeps.

    Source: FFT Sec. 4.2.2, Eq. (5).
    """

    compensation: Mapping[str, Number] = field(default_factory=dict)
    coefficient: Mapping[str, Number] = field(default_factory=dict)
    fair_end: Mapping[str, Number] = field(default_factory=dict)
    prices: tuple[float, ...] = ()
    reward: float = 0.0


@dataclass(frozen=True)
class FairPart(ABC):
    """When each job would complete on a part 1/|A(t)| of every type, alone and never preempted: tau_j.

    Such a job stays on one type: the one on which its part makes it fastest. A subclass says what fraction of its gang
    the part is. All hosts count, also those that are down, and A(t) is the set of jobs that fit some type.

    ``from_now`` False: tau_j = a_j + W_j / speed, as if the job had had its present part since its arrival. W_j /
    (tau_j - a_j), the work due in a round, is then exactly the part's work in a round. True: tau_j is now plus the time
    that the part takes for the remaining work.

    Source: FFT Sec. 4.2.2 and its footnote 2.
    """

    from_now: bool = False

    @abstractmethod
    def part(self, queue: Queue, count: int) -> Array:
        """Return the fraction of each job's gang (n, k), at most 1, that a part 1/``count`` of each type can run."""

    def speed(self, queue: Queue, count: int) -> Array:
        """Return each job's work per unit of time (n,) on its part of its best type; 0 where it fits no type."""
        none: Any = queue.now * 0
        speed = np.where(queue.fits, queue.jobs.throughput * self.part(queue, count), none)
        return np.asarray(speed.max(axis=1))

    def fair_end(self, queue: Queue, count: int) -> Array:
        """Return tau_j (n,), in the trace's unit of time; meaningless for jobs that fit no type."""
        speed = self.speed(queue, count)
        speed = np.where(speed > 0, speed, 1)
        if self.from_now:
            now: Any = queue.now
            return np.asarray(now + queue.remaining / speed)
        return np.asarray(queue.jobs.arrival + queue.jobs.work / speed)


@dataclass(frozen=True)
class FluidPart(FairPart):
    """GPUs are divisible: a job has Y_i/|A(t)| GPUs of type i, and its gang's speed in proportion, at most 1.

    That is the same as having the whole gang of d_j GPUs for the part Y_i/(|A(t)| d_j) of the time.

    Source: FFT Sec. 4.2.2; a reading, as the paper does not say what a gang does on less than its GPUs.
    """

    def part(self, queue: Queue, count: int) -> Array:
        """See `FairPart.part`."""
        gpus, capacity = queue.jobs.gpus[:, None], queue.cluster.capacity[None, :]
        return np.asarray(np.minimum(capacity * queue.number(1) / (count * gpus), 1))


@dataclass(frozen=True)
class WholeGpusPart(FairPart):
    """GPUs are whole: floor(Y_i/|A(t)|) of type i, at least one; a gang on fewer GPUs is slower in proportion.

    Source: FFT Sec. 4.2.2; the other reading.
    """

    def part(self, queue: Queue, count: int) -> Array:
        """See `FairPart.part`."""
        gpus, capacity = queue.jobs.gpus[:, None], queue.cluster.capacity[None, :]
        return np.asarray(np.minimum(np.maximum(capacity // count, 1) * queue.number(1) / gpus, 1))


class Served(Protocol):
    """A definition of the work that a job did in a round, for Eq. (5)."""

    def work(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the work done in the round by a job that runs on ``spots``."""


@dataclass(frozen=True)
class FullRound:
    """A scheduled job gets a full round's work, theta_j^i: loading and spreading over hosts are not subtracted.

    Source: FFT Eq. (5), as printed: the sum of theta_j^i x_j^i(t).
    """

    def work(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the throughput on the slowest of its types, for the length of the round."""
        done: Number = queue.jobs.throughput[row, queue.slowest(row, spots)] * queue.length
        return done


@dataclass(frozen=True)
class AfterLoading:
    """Only the work after loading counts, by ``mechanics``, at the speed that the hosts allow.

    Source: FFT Sec. 2.2 (what migration takes off); the other reading of Eq. (5).
    """

    mechanics: Mechanics = field(default_factory=Mechanics)

    def work(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the work in the rest of the round."""
        loading = min(self.mechanics.setup(queue, row, spots), queue.length)
        return self.mechanics.speed(queue, row, spots) * (queue.length - loading)


def refreshed(queue: Queue, state: FFTState, part: FairPart) -> FFTState:
    """Return the state for the jobs present: new jobs owe and are owed nothing, and jobs that left are dropped.

    If a job came or went since the last round, tau_j is estimated again for all jobs.
    """
    rows = queue.fitting
    names = [queue.jobs.names[row] for row in rows]
    if state.fair_end.keys() == set(names):
        return state
    zero = queue.now * 0
    if not rows:
        return FFTState(prices=state.prices, reward=state.reward)
    ends = part.fair_end(queue, len(rows))[rows]
    return replace(
        state,
        compensation={name: state.compensation.get(name, zero) for name in names},
        coefficient={name: state.coefficient.get(name, zero) for name in names},
        fair_end=dict(zip(names, ends.tolist(), strict=True)),
    )


def advance(queue: Queue, state: FFTState, placements: Mapping[int, Spots], served: Served) -> FFTState:
    """Return the state after a round: the recursion (5) for every job in ``state``.

    mu_j(t) = (t - a_j)/(tau_j - a_j), and rho_j(t+1) = max(0, rho_j + mu_j (W_j/(tau_j - a_j) - work in the round)),
    with times in rounds. Errors: `BadInput` where a tau_j does not lie after the job's arrival.

    Source: FFT Eq. (5).
    """
    jobs, zero = queue.jobs, queue.now * 0
    after, coefficient = {}, {}
    for row, name in enumerate(jobs.names):
        if name not in state.fair_end:
            continue
        span = state.fair_end[name] - jobs.arrival[row]
        if span <= 0:
            raise BadInput(
                f"got {shown(state.fair_end[name])} for an arrival at {shown(jobs.arrival[row])}",
                place=f"job {name!r}, fair_end (tau)",
                remedy="A fair end lies after the arrival: work is positive and speeds are finite",
            )
        spots = placements.get(row, ())
        done = served.work(queue, row, spots) if spots else zero
        mu = (queue.now - jobs.arrival[row]) / span
        due = jobs.work[row] * queue.length / span
        after[name] = max(zero, state.compensation[name] + mu * (due - done))
        coefficient[name] = mu
    return replace(state, compensation=after, coefficient=coefficient)

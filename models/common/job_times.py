"""How long jobs take: what is left, what it would be alone, and how these compare; estimates that policies go by."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fairopt.problem.queue import Queue
from fairopt.program import Array, Number


def fastest(queue: Queue) -> Array:
    """Return each job's throughput (n,) on the fastest type that can hold it, all hosts up; 0 where none can."""
    roomy = queue.suits & (queue.jobs.gpus[:, None] <= queue.cluster.capacity[None, :])
    speeds: Array = np.where(roomy, queue.jobs.throughput, 0).max(axis=1)
    return speeds


def time_left(queue: Queue, row: int, kind: int) -> Number:
    """Return the time that a job's remaining work takes on a type, from when it makes progress there."""
    left: Number = queue.remaining[row] / queue.jobs.throughput[row, kind]
    return left


def until_free(queue: Queue, row: int) -> Number:
    """Return how long a job that runs will still hold its GPUs if it stays, at the speed of its slowest type."""
    speed = min(queue.jobs.throughput[row, kind] for kind in queue.kinds(queue.last[row]))
    left: Number = queue.setup[row] + queue.remaining[row] / speed
    return left


def finish_time_fairness(
    queue: Queue, rows: Sequence[int], contention: Sequence[Number], *, gang_share: bool = False
) -> list[Number]:
    """Return rho for each of ``rows``: when a job would be done if it ran from now on, over when it ought to be.

    The first is its age plus what is left at its fastest; the second is its time alone at its fastest (T*), times the
    number of jobs that share the cluster, of which ``contention`` gives one for each of ``rows``. Above 1, it has lost
    by sharing. ``gang_share``: the second is the time on a cluster of 1/N of the GPUs, on which a gang of d that is
    larger than M/N runs for M/N of every d moments, and a smaller one gains nothing from the rest.

    Rows must fit some type.

    Source: ASTRAEA Sec. 4.1.2 (rho = T / (T* N)); FFT Sec. 6.1.5 (rho = T_sh / T_id, 1/N of the cluster).
    """
    speed, gpus = fastest(queue), int(queue.cluster.capacity.sum())
    number: type = Fraction if queue.exact else float
    rhos = []
    for row, jobs in zip(rows, contention, strict=True):
        shared = queue.now - queue.jobs.arrival[row] + queue.remaining[row] / speed[row]
        alone = queue.jobs.work[row] / speed[row]
        slowdown = max(1, number(int(queue.jobs.gpus[row]) * jobs) / gpus) if gang_share else jobs
        rhos.append(shared / (alone * slowdown))
    return rhos

"""Shared parts of schedulers: estimates of job times, leases, jobs that stay where they run, checks of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairopt.errors import require
from fairopt.policy import Policy
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Array, Number
from fairopt.simulation import by_throughput


def fastest(queue: Queue) -> Array:
    """Return each job's throughput (n,) on the fastest type that can hold it with all hosts up; 0 if none can."""
    speeds: Array = np.where(queue.fits, queue.jobs.throughput, 0).max(axis=1)
    return speeds


def time_left(queue: Queue, row: int, gpu_type: int) -> Number:
    """Return the time that a job's remaining work takes on a type, without loading."""
    left: Number = queue.remaining[row] / queue.jobs.throughput[row, gpu_type]
    return left


def until_free(queue: Queue, row: int) -> Number:
    """Return how much longer a running job holds its GPUs if it stays, at the speed of its slowest type."""
    held: Number = queue.setup[row] + time_left(queue, row, queue.last_gpu_type(row))
    return held


def finish_time_fairness(
    queue: Queue, rows: Sequence[int], contention: Sequence[Number], *, gang_share: bool = False
) -> list[Number]:
    """Return rho for each of ``rows``: the time to completion if the job runs from now on, over its fair time.

    The time to completion is the job's age plus its remaining time on its fastest type. The fair time is its time alone
    on its fastest type (T*), times N, the number of jobs that share the cluster (``contention``, for each of ``rows``).
    Above 1 the job has lost by sharing. With ``gang_share`` the fair time is the time on a cluster of 1/N of the GPUs:
    a gang of d GPUs larger than M/N runs for the part M/(N d) of the time, and a smaller one gains nothing from the
    other GPUs.

    Rows must fit some type.

    Source: ASTRAEA Sec. 4.1.2 (rho = T / (T* N)); FFT Sec. 6.1.5 (rho = T_sh / T_id, 1/N of the cluster).
    """
    speed, gpus = fastest(queue), int(queue.cluster.capacity.sum())
    rhos = []
    for row, jobs in zip(rows, contention, strict=True):
        shared = queue.now - queue.jobs.arrival[row] + queue.remaining[row] / speed[row]
        alone = queue.jobs.work[row] / speed[row]
        slowdown = max(1, queue.number(int(queue.jobs.gpus[row]) * jobs) / gpus) if gang_share else jobs
        rhos.append(shared / (alone * slowdown))
    return rhos


def lease_length(queue: Queue, lease: object) -> Number:
    """Return how long a ``lease`` lasts; None is one round."""
    return queue.length if lease is None else queue.number(exact(lease, "lease"))


def non_preemptive(queue: Queue) -> Queue:
    """Return the queue in which every job that ran in the last round holds a lease on its GPUs for this one.

    `choose` and `placed` then leave those jobs where they are. Jobs whose host failed get no lease: they wait again.
    """
    lease = queue.lease.copy()
    lease[queue.running] = queue.end
    return replace(queue, lease=lease)


def staying_first(queue: Queue, row: int) -> Sequence[int]:
    """Return the types that a job may run on now: the one it runs on, then the others, the fastest for it first."""
    order = by_throughput(queue, row)
    here = queue.last_gpu_type(row) if queue.running[row] else -1
    return [here, *(gpu_type for gpu_type in order if gpu_type != here)] if here in order else order


def check_lease(lease: object, place: str) -> None:
    """Refuse what is neither a positive length of time nor None."""
    require(lease is None or exact(lease, place) > 0, lease, place, "Give a length of time, or None for a round")


def check_whole(policy: Policy, least: int, *options: str) -> None:
    """Refuse options that are not whole numbers from ``least``; None is one where it is the default."""
    for name in options:
        value = getattr(policy, name)
        fits = value is getattr(type(policy), name) is None or (isinstance(value, int) and value >= least)
        require(fits, repr(value), f"{policy.name}, {name}", f"Give a whole number from {least}")

"""Shared parts of schedulers that do not preempt, or that avoid moving a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation import by_throughput


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
    fastest = by_throughput(queue, row)
    here = queue.last_gpu_type(row) if queue.running[row] else -1
    return sorted(fastest, key=lambda gpu_type: gpu_type != here)

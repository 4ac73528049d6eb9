"""The greedy step of most schedulers: go through the jobs in order of preference and place each one that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fairopt.problem.queue import Queue, Spots
from fairopt.simulation.placement import Placement, Want


def by_throughput(queue: Queue, row: int) -> Sequence[int]:
    """Return the types that a job may run on now, the fastest for it first; ties keep the order of types."""
    speeds = queue.jobs.throughput[row]
    return sorted(np.flatnonzero(queue.allowed[row]).tolist(), key=lambda kind: (-speeds[kind], kind))


def choose(
    queue: Queue,
    order: Iterable[int],
    *,
    kinds: Callable[[Queue, int], Sequence[int]] = by_throughput,
    skip: bool = True,
) -> list[Want]:
    """Return the jobs that run, with types: in ``order``, each on the first of its ``kinds`` with room for the gang.

    Jobs that hold a lease are left out (they run anyway), and their GPUs are not available. ``skip`` False stops at the
    first job that does not fit, so that no job overtakes it.
    """
    free = queue.free(queue.leased)
    kind_of = queue.cluster.kind
    left: list[int] = np.bincount(kind_of, weights=free, minlength=len(queue.cluster.types)).astype(np.int64).tolist()
    sizes, allowed = queue.jobs.gpus.tolist(), queue.allowed.tolist()
    wants = []
    for row in order:
        if not any(left):  # no other job can be placed
            break
        if row in queue.leased or row in queue.misfits:
            continue
        gpus = sizes[row]
        # most waiting jobs find no room, and ranking the types of each would take most of the time
        roomy = any(able and room >= gpus for able, room in zip(allowed[row], left, strict=True))
        kind = next((kind for kind in kinds(queue, row) if left[kind] >= gpus), None) if roomy else None
        if kind is None:
            if skip:
                continue
            break
        left[kind] -= gpus
        wants.append(Want(row, (kind,)))
    return wants


def placed(queue: Queue, wants: Sequence[Want], placement: Placement) -> dict[int, Spots]:
    """Return the placements of one round: jobs with leases stay where they are, ``wants`` go where they fit."""
    kept = dict(queue.leased)
    return kept | dict(placement.place(queue, wants, queue.free(kept)))

"""The greedy step of most schedulers: go through the jobs in order of preference and place each one that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fairopt.problem.queue import Queue, Spots
from fairopt.simulation.placement import Placement, Request


def by_throughput(queue: Queue, row: int) -> Sequence[int]:
    """Return the types that a job may run on now, the fastest for it first; ties keep the order of types."""
    speeds = queue.jobs.throughput[row]
    return sorted(queue.open_to(row), key=lambda gpu_type: (-speeds[gpu_type], gpu_type))


def choose(
    queue: Queue,
    order: Iterable[int],
    *,
    gpu_types: Callable[[Queue, int], Sequence[int]] = by_throughput,
    skip: bool = True,
) -> list[Request]:
    """Return the jobs that run, in ``order``, each with the first of its ``gpu_types`` that has room for the gang.

    Jobs that hold a lease are left out (they run anyway), and their GPUs are not available. ``skip`` False stops at the
    first job that does not fit, so that no job overtakes it.
    """
    left: list[int] = queue.room.tolist()
    sizes, allowed = queue.jobs.gpus.tolist(), queue.allowed.tolist()
    requests = []
    for row in order:
        if not any(left):  # no other job can be placed
            break
        if row in queue.leased or row in queue.misfits:
            continue
        gpus = sizes[row]
        # most waiting jobs find no room, and ranking the types of each would take most of the time
        roomy = any(able and room >= gpus for able, room in zip(allowed[row], left, strict=True))
        gpu_type = (
            next((gpu_type for gpu_type in gpu_types(queue, row) if left[gpu_type] >= gpus), None) if roomy else None
        )
        if gpu_type is None:
            if skip:
                continue
            break
        left[gpu_type] -= gpus
        requests.append(Request(row, (gpu_type,)))
    return requests


def placed(queue: Queue, requests: Sequence[Request], placement: Placement) -> dict[int, Spots]:
    """Return the placements of one round: jobs with leases stay where they are, ``requests`` go where they fit."""
    kept = dict(queue.leased)
    return kept | dict(placement.place(queue, requests, queue.free(kept)))

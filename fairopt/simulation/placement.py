"""The choice of jobs and of their hosts: the greedy step of most schedulers, and one protocol of placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array


@dataclass(frozen=True)
class Request:
    """A job that is to run: its row, and the types that its GPUs may have (one, unless types may mix)."""

    row: int
    gpu_types: tuple[int, ...]


class Placement(Protocol):
    """A way to choose hosts. Jobs that cannot be placed are left out of the answer; nothing is overbooked."""

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the `Spots` of those of ``requests`` that fit into ``free`` (H,), which is not changed."""
        ...


@dataclass(frozen=True)
class Consolidated:
    """As few hosts as possible for each job; a job that ran in the round before stays where it is.

    First the jobs that can stay, then the others by falling number of GPUs: onto the fullest single host with room
    (the one that it ran on last, where there is a choice), else onto the emptiest hosts.

    Source: ASTRAEA Sec. 5 (consolidated placement); OEF Sec. 4.3 (priority for jobs with more workers).
    """

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the spots of the requests that fit; see `Placement.place`."""
        left = free.copy()
        placed, moving = staying(queue, requests, left)
        for request in sorted(moving, key=lambda request: -int(queue.jobs.gpus[request.row])):
            spots = fewest_hosts(queue, request, left)
            if spots:
                take(left, spots)
                placed[request.row] = spots
        return placed


def staying(queue: Queue, requests: Sequence[Request], left: Array) -> tuple[dict[int, Spots], list[Request]]:
    """Return where jobs stay, whose GPUs are taken out of ``left`` (H,), and the requests of the others."""
    placed: dict[int, Spots] = {}
    moving = []
    for request in requests:
        if stays(queue, request, left):
            placed[request.row] = queue.last[request.row]
            take(left, placed[request.row])
        else:
            moving.append(request)
    return placed, moving


def stays(queue: Queue, request: Request, left: Array) -> bool:
    """Whether a job ran in the round before, and can continue there: same types, and its GPUs are free."""
    last = queue.last[request.row]
    return (
        bool(queue.running[request.row])
        and set(queue.gpu_types(last)) <= set(request.gpu_types)
        and all(left[host] >= gpus for host, gpus in last)
    )


def take(left: Array, spots: Spots) -> None:
    """Take the GPUs of ``spots`` out of ``left`` (H,), in place."""
    for host, gpus in spots:
        left[host] -= gpus


def fewest_hosts(queue: Queue, request: Request, left: Array) -> Spots:
    """Return spots for one job on as few hosts as possible, () where it does not fit.

    The fullest host that can hold all of it, else the emptiest first; ties go to where it ran last, then to the first.
    """
    gpus = int(queue.jobs.gpus[request.row])
    before = {host for host, _ in queue.last[request.row]}
    for gpu_types in [(gpu_type,) for gpu_type in request.gpu_types] + (
        [request.gpu_types] if len(request.gpu_types) > 1 else []
    ):
        hosts = [host for gpu_type in gpu_types for host in queue.cluster.of_type(gpu_type) if left[host] > 0]
        whole = [host for host in hosts if left[host] >= gpus]
        if whole:
            best = min(whole, key=lambda host: (left[host], host not in before, host))
            return ((best, gpus),)
        if sum(int(left[host]) for host in hosts) < gpus:
            continue
        spots, missing = [], gpus
        for host in sorted(hosts, key=lambda host: (-left[host], host not in before, host)):
            here = min(missing, int(left[host]))
            spots.append((host, here))
            missing -= here
            if not missing:
                return tuple(sorted(spots))
    return ()


# -- the greedy step -----------------------------------------------------------------------------------------------
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

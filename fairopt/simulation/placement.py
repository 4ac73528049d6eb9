"""The choice of jobs and of their hosts: the greedy step of most schedulers, and one protocol of placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array


class Request(NamedTuple):
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
    """Return where jobs stay, whose GPUs are taken out of ``left`` (H,), and the requests of the others.

    A job stays if it ran in the round before, may run on the same types, and its GPUs are free.
    """
    placed: dict[int, Spots] = {}
    moving = []
    running, last, gpu_types_of = queue.running.tolist(), queue.last, queue.gpu_types
    free = left.tolist()
    for request in requests:
        row, gpu_types = request
        spots = last[row]
        if (
            running[row]
            and (gpu_types_of(spots) == gpu_types or set(gpu_types_of(spots)) <= set(gpu_types))
            and all([free[host] >= gpus for host, gpus in spots])  # noqa: C419 (a list is faster than a generator)
        ):
            placed[row] = spots
            take(free, spots)
        else:
            moving.append(request)
    left[:] = free
    return placed, moving


def take(left: Array | list[int], spots: Spots) -> None:
    """Take the GPUs of ``spots`` out of ``left`` (H,), in place."""
    for host, gpus in spots:
        left[host] -= gpus


def fewest_hosts(queue: Queue, request: Request, left: Array) -> Spots:
    """Return spots for one job on as few hosts as possible, () where it does not fit.

    The fullest host that can hold all of it, else the emptiest first; ties go to where it ran last, then to the first.
    """
    gpus, of_type = int(queue.jobs.gpus[request.row]), queue.cluster.hosts_by_type
    before = {host for host, _ in queue.last[request.row]}
    groups = [of_type[gpu_type] for gpu_type in request.gpu_types]
    for hosts in groups if len(groups) == 1 else [*groups, np.concatenate(groups)]:
        free = left[hosts]
        whole = free >= gpus
        if whole.any():
            fullest = hosts[whole & (free == free[whole].min())].tolist()
            return ((min(fullest, key=lambda host: (host not in before, host)), gpus),)
        if free.sum(where=free > 0) < gpus:
            continue
        spots, missing = [], gpus
        ties = np.isin(hosts, list(before), invert=True)
        for at in np.lexsort((hosts, ties, -free)).tolist():
            here = min(missing, int(free[at]))
            spots.append((int(hosts[at]), here))
            missing -= here
            if not missing:
                return tuple(sorted(spots))
    return ()


# -- the greedy step -----------------------------------------------------------------------------------------------
#: The types that a job may run on now, given queue and row, the one that it asks for first at the head. A callable with
#: a method ``first(queue)``, as `ByThroughput` has it, is asked for the heads of all jobs at once, which is faster.
Preference = Callable[[Queue, int], Sequence[int]]


@dataclass(frozen=True)
class ByThroughput:
    """The types that a job may run on now, the fastest for it first; ties keep the order of types.

    ``stay``: a job that ran in the round before asks for the type that it runs on before all others.
    """

    stay: bool = False

    def __call__(self, queue: Queue, row: int) -> Sequence[int]:
        """Return a job's types."""
        fastest = queue.by_speed[row]
        here = queue.last_gpu_type(row) if self.stay and queue.running[row] else -1
        return fastest if here < 0 else sorted(fastest, key=lambda gpu_type: gpu_type != here)

    def first(self, queue: Queue) -> Array:
        """Return the first of each job's types (n,), -1 where there is none."""
        fastest = np.argmax(np.where(queue.allowed, queue.jobs.throughput, -1), axis=1)
        first: Array = np.where(queue.allowed.any(axis=1), fastest, -1)
        if self.stay and len(queue.cluster.types) > 1:
            for row in np.flatnonzero(queue.running).tolist():
                here = queue.last_gpu_type(row)
                if queue.allowed[row, here]:
                    first[row] = here
        return first


by_throughput = ByThroughput()


def choose(
    queue: Queue, order: Iterable[int], *, gpu_types: Preference = by_throughput, skip: bool = True
) -> list[Request]:
    """Return the jobs that run, in ``order``, each with the first of its ``gpu_types`` that has room for the gang.

    Jobs that hold a lease are left out (they run anyway), and their GPUs are not available. ``skip`` False stops at the
    first job that does not fit, so that no job overtakes it.
    """
    left: list[int] = queue.room.tolist()
    rows = order if isinstance(order, np.ndarray) else np.array(list(order), dtype=np.int64)
    if queue.leased or queue.misfits:
        rows = rows[~np.isin(rows, [*queue.leased, *queue.misfits])]
    sizes, allowed = queue.jobs.gpus, queue.allowed
    if skip:
        rows = rows[allowed[rows].any(axis=1)]
    first = getattr(gpu_types, "first", None)
    requests = [] if first is None else _all_first(queue, rows, first(queue), left)
    rows = rows[len(requests) :]
    if skip:  # most waiting jobs find no room, and will find none in this round
        rows = rows[(allowed[rows] & (sizes[rows, None] <= np.array(left))).any(axis=1)]
    for row, gpus, able in zip(rows.tolist(), sizes[rows].tolist(), allowed[rows].tolist(), strict=True):
        if not any(left):  # no other job can be placed
            break
        # ranking the types of each would take most of the time
        roomy = any([can and room >= gpus for can, room in zip(able, left, strict=True)])  # noqa: C419 (faster)
        gpu_type = next((each for each in gpu_types(queue, row) if left[each] >= gpus), None) if roomy else None
        if gpu_type is None:
            if skip:
                continue
            break
        left[gpu_type] -= gpus
        requests.append(Request(row, (gpu_type,)))
    return requests


def _all_first(queue: Queue, rows: Array, first: Array, left: list[int]) -> list[Request]:
    """Return the requests of the jobs at the head of ``rows`` that all get what they ask for first, out of ``left``."""
    asked, sizes = first[rows], queue.jobs.gpus[rows]
    got = len(rows) if (asked >= 0).all() else int(np.argmin(asked >= 0))
    for gpu_type, room in enumerate(left):
        total = np.cumsum(np.where(asked[:got] == gpu_type, sizes[:got], 0))
        got = int(np.searchsorted(total, room, side="right"))
    used = np.bincount(asked[:got], weights=sizes[:got], minlength=len(left))
    left[:] = [room - int(gpus) for room, gpus in zip(left, used, strict=True)]
    alone = [(gpu_type,) for gpu_type in range(len(left))]
    return [Request(row, alone[each]) for row, each in zip(rows[:got].tolist(), asked[:got].tolist(), strict=True)]


def placed(queue: Queue, requests: Sequence[Request], placement: Placement) -> dict[int, Spots]:
    """Return the placements of one round: jobs with leases stay where they are, ``requests`` go where they fit."""
    kept = dict(queue.leased)
    return kept | dict(placement.place(queue, requests, queue.free(kept)))

"""Gives a tenant's GPUs to its jobs: whole gangs, larger ones first, on one type or several neighbouring types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array
from fairopt.simulation import Placement, Request, by_throughput
from fairopt.simulation.placement import take


@dataclass(frozen=True)
class Gang:
    """A job that is to run, and how many GPUs of each type it gets."""

    row: int
    gpus: Mapping[int, int]

    @property
    def mixed(self) -> bool:
        """Whether its GPUs are of several types."""
        return len(self.gpus) > 1


def gangs_of(queue: Queue, rows: Iterable[int], budget: Sequence[int], *, cross_type: bool) -> list[Gang]:
    """Return the gangs, among ``rows`` of one tenant, that can run on its ``budget`` (k,) of GPUs.

    Jobs with more workers come first; ties go by arrival. A job takes the fastest type that has room for all of it. If
    there is none and ``cross_type`` allows it, the job takes the smallest range of neighbouring types, the faster types
    first. Of several ranges it takes the one whose slowest type is fastest.

    Source: OEF Sec. 4.3 (priority for jobs with more workers), 4.4 (jobs across types).
    """
    left = list(budget)
    gangs = []
    for row in sorted(rows, key=lambda row: (-int(queue.jobs.gpus[row]), row)):
        size = int(queue.jobs.gpus[row])
        gpu_type = next((gpu_type for gpu_type in by_throughput(queue, row) if left[gpu_type] >= size), None)
        gpus = {gpu_type: size} if gpu_type is not None else _across(queue, row, left) if cross_type else {}
        if gpus:
            gangs.append(Gang(row, gpus))
            for each, count in gpus.items():
                left[each] -= count
    return gangs


def _across(queue: Queue, row: int, left: Sequence[int]) -> dict[int, int]:
    size, speeds = int(queue.jobs.gpus[row]), queue.jobs.throughput[row]
    types = range(len(left))
    usable = [left[gpu_type] if queue.suits[row, gpu_type] else 0 for gpu_type in types]
    runs = [(first, last) for first in types for last in types[first + 1 :] if sum(usable[first : last + 1]) >= size]
    if not runs:
        return {}

    def worth(run: tuple[int, int]) -> tuple[object, ...]:
        inside = [gpu_type for gpu_type in range(run[0], run[1] + 1) if usable[gpu_type]]
        return run[1] - run[0], -min(speeds[gpu_type] for gpu_type in inside), run[0]

    first, last = min(runs, key=worth)
    gpus: dict[int, int] = {}
    for gpu_type in sorted(range(first, last + 1), key=lambda gpu_type: (-speeds[gpu_type], gpu_type)):
        here = min(usable[gpu_type], size - sum(gpus.values()))
        if here:
            gpus[gpu_type] = here
    return gpus


def hosts_of(queue: Queue, gangs: Sequence[Gang], placement: Placement) -> dict[int, Spots]:
    """Return the hosts of each gang; jobs with a lease stay where they are.

    Gangs on several types stay if they can. Then ``placement`` places the gangs on one type. The other mixed gangs
    take, of each type, the hosts with most room. Any choice of hosts leaves room for the rest, because budgets keep
    within the types.
    """
    placed: dict[int, Spots] = dict(queue.leased)
    free = queue.free(placed)
    mixed = [gang for gang in gangs if gang.mixed]
    moving = []
    for gang in mixed:
        if _can_stay(queue, gang, free):
            placed[gang.row] = queue.last[gang.row]
            take(free, placed[gang.row])
        else:
            moving.append(gang)
    requests = [Request(gang.row, tuple(gang.gpus)) for gang in gangs if not gang.mixed]
    for row, spots in placement.place(queue, requests, free).items():
        placed[row] = spots
        take(free, spots)
    for gang in moving:
        placed[gang.row] = _roomiest(queue, gang, free)
        take(free, placed[gang.row])
    return placed


def _can_stay(queue: Queue, gang: Gang, free: Array) -> bool:
    last = queue.last[gang.row]
    same = all(gpus == gang.gpus.get(gpu_type, 0) for gpu_type, gpus in enumerate(queue.held_by([last])))
    return bool(queue.running[gang.row]) and same and all(free[host] >= gpus for host, gpus in last)


def _roomiest(queue: Queue, gang: Gang, free: Array) -> Spots:
    before = {host for host, _ in queue.last[gang.row]}
    spots = []
    for gpu_type, wanted in gang.gpus.items():
        missing = wanted
        for host in sorted(queue.cluster.of_type(gpu_type), key=lambda host: (-free[host], host not in before, host)):
            here = min(missing, int(free[host]))
            if here:
                spots.append((host, here))
                missing -= here
    return tuple(sorted(spots))

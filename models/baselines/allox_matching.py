"""Jobs on unrelated machines with the least total completion time, as a matching of jobs to places in sequences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import NotInstalled
from fairopt.program import Number


@dataclass(frozen=True)
class MachinePosition:
    """A place in a machine's sequence: its type, its number among them, when it is ready, and the place from the end.

    A job at place k from the end delays k - 1 others and itself: its time counts k times in the total, and the time
    until the machine is ready counts once for each job.
    """

    gpu_type: int
    machine: int
    ready: Number
    from_end: int


def places(gpu_type: int, ready: Sequence[Number], jobs: int) -> list[MachinePosition]:
    """Return the places of one type's machines that a matching of ``jobs`` jobs may need; ``ready`` rises.

    A place is left out if at least ``jobs`` others are no worse for every job: those on machines that are ready no
    later, and no farther from the end. In a matching that uses it, one of those is free, and moving the job there costs
    nothing. That leaves about n log n places of n for each machine.
    """
    found = []
    for machine, when in enumerate(ready):
        no_later = bisect_right(ready, when)
        from_end = 1
        while (from_end - 1) * no_later + machine < jobs:
            found.append(MachinePosition(gpu_type, machine, when, from_end))
            from_end += 1
    return found


def matched(times: Sequence[Sequence[Number | None]], ready: Sequence[Sequence[Number]]) -> list[MachinePosition]:
    """Return each job's place such that the sum of all completion times is least.

    * ``times`` (n, k): how long job j takes on a machine of type i, positive; None where it cannot run. Each job can
      run on some type that has machines.
    * ``ready``: for each type, when each of its machines is ready; rising, from 0.

    The matching is computed in floats. Of two with equal cost, up to rounding, either may be returned; `starts` removes
    the differences between identical machines.

    For each job only the cheapest n places are edges: a matching that uses another one leaves one of these free.

    Errors: `NotInstalled` where networkx or scipy is missing.

    Source: AlloX, EuroSys 2020 (the bipartite graph); Horn, 1973, and Bruno et al., 1974 (why it is exact).
    """
    count = len(times)
    if not count:
        return []
    try:
        import scipy.optimize  # noqa: F401  (networkx's matching is that of scipy)
        from networkx import Graph, bipartite
    except ImportError as error:
        raise NotInstalled(
            "matching jobs to machines needs networkx and scipy: pip install 'fairopt[rounds]'"
        ) from error
    found = [place for gpu_type, each in enumerate(ready) for place in places(gpu_type, each, count)]
    gpu_types = np.array([place.gpu_type for place in found], dtype=np.int64)
    when = np.array([place.ready for place in found], dtype=float)
    from_end = np.array([place.from_end for place in found], dtype=float)
    length = np.array([[np.inf if time is None else float(time) for time in row] for row in times])
    graph = Graph()
    graph.add_nodes_from(range(count))
    for job in range(count):
        cost = when + from_end * length[job, gpu_types]
        cheapest = np.argsort(cost, kind="stable")[:count]
        edges = cheapest[np.isfinite(cost[cheapest])]
        graph.add_weighted_edges_from(
            (job, count + place, value) for place, value in zip(edges.tolist(), cost[edges].tolist(), strict=True)
        )
    match = bipartite.minimum_weight_full_matching(graph, top_nodes=range(count))
    return [found[match[job] - count] for job in range(count)]


def starts(times: Sequence[Sequence[Number | None]], matching: Sequence[MachinePosition]) -> list[Number]:
    """Return when each job begins.

    Jobs equally far from the end, on machines of one type, can swap machines without changing the total; so can jobs of
    equal length. The choice is made here: in each type, the shortest jobs are farthest from the end, ties in order, and
    of those equally far the shortest goes to the machine that is free first. So matchings that differ only in such
    swaps start the same jobs at the same times.
    """
    free: dict[tuple[int, int], Number] = {(place.gpu_type, place.machine): place.ready for place in matching}
    shortest: dict[int, list[tuple[Number, int]]] = {}
    levels: dict[tuple[int, int], list[int]] = {}
    for job, place in enumerate(matching):
        shortest.setdefault(place.gpu_type, []).append((times[job][place.gpu_type] or 0, job))
        levels.setdefault((place.gpu_type, place.from_end), []).append(place.machine)
    coming = {gpu_type: iter(sorted(jobs)) for gpu_type, jobs in shortest.items()}
    begin: dict[int, Number] = {}
    for gpu_type, from_end in sorted(levels, reverse=True):
        for now, machine in sorted((free[gpu_type, machine], machine) for machine in levels[gpu_type, from_end]):
            time, job = next(coming[gpu_type])
            begin[job] = now
            free[gpu_type, machine] = now + time
    return [begin[job] for job in range(len(matching))]


def ready_times(held: Sequence[tuple[int, Number]], gpus: int, size: int) -> list[Number]:
    """Return when the machines of ``size`` GPUs each, made of ``gpus`` GPUs, are ready; rising.

    ``held`` are (GPUs, time until they are free) of those in use. GPUs form machines in the order in which they become
    free. A machine is ready when its last GPU is free; left-over GPUs form none.

    >>> ready_times([(2, 30), (2, 10)], 6, 2)
    [0, 10, 30]
    """
    taken = sum(count for count, _ in held)
    free: list[Number] = [0] * (gpus - taken)
    free += sorted(until for count, until in held for _ in range(count))
    return free[size - 1 :: size]

"""FFT's placement: by parallelism first, then by the cost of migration (Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.problem.jobs import Pattern
from fairopt.problem.queue import Placements, Queue, Spots
from fairopt.program import Array, Number
from fairopt.simulation import Mechanics, Request
from fairopt.simulation.placement import Requests, all_staying, staying, take


@dataclass(frozen=True)
class HierarchicalPlacement:
    """Type by type: running jobs stay, gangs get the fewest hosts in order of need, and scattered gangs are repacked.

    1. A job that ran in the round before, on the type that it is to run on, stays where it is.
    2. Gangs that are new on the type get as few of the free hosts as possible. Those that are parallel within operators
      come before the others, and larger ones first.
    3. Gangs that stayed and are on several hosts move to a single host with room (their own GPUs count as free), until
      none fits. The cheapest migration comes first; ties go to gangs that are parallel within operators, then to those
      on more hosts. ``repack`` False leaves this out.
    4. Jobs of one GPU come last, as they fit anywhere: on the fullest host.

    A job runs on one type: the first of its kinds that has room. Among equally good hosts it takes the one with the
    least setup cost (by ``mechanics``), then one that holds its dataset, then the fullest, then the first.

    The paper repacks at each churn event: an arrival, a completion, a host that goes or comes. Here it is done in each
    round, which is the same: without such an event no job moves, since step 3 has left none that fits. The other
    reading, in which pauses and changes of type by the scheduler are not such events, is not offered.

    Source: FFT Sec. 4.3, Fig. 6.
    """

    mechanics: Mechanics = field(default_factory=Mechanics)
    repack: bool = True

    def place(self, queue: Queue, requests: Sequence[Request], free: Array) -> Mapping[int, Spots]:
        """Return the spots of the wants that fit; see `fairopt.simulation.Placement.place`."""
        hosts = _Hosts(queue, self.mechanics, free.copy())
        at_once = all_staying(queue, requests, hosts.left) if isinstance(requests, Requests) else None
        moving: Sequence[Request]
        if at_once is None:
            placed, moving = staying(queue, requests, hosts.left)
        else:
            stay, moving = at_once
            placed = {row: queue.last[row] for row in stay.tolist()}
        gpu_types = {request.row: request.gpu_types for request in moving}
        apart = [row for row, spots in placed.items() if len(spots) > 1]
        coming = sorted(gpu_types, key=lambda row: (_level(queue, row), -queue.jobs.gpus[row]))
        gangs = [row for row in coming if queue.jobs.gpus[row] > 1]
        single = [row for row in coming if queue.jobs.gpus[row] == 1]
        for row in gangs:
            hosts.put(row, gpu_types[row], placed)
        if self.repack:
            hosts.repack(apart, placed)
        for row in single:
            hosts.put(row, gpu_types[row], placed)
        if at_once is not None and not len(moving) and all(placed[row] == queue.last[row] for row in apart):
            return Placements(queue.last, stay, {})
        return placed

    def fewest(self, queue: Queue, row: int, gpu_types: Sequence[int], left: Array) -> Spots:
        """Return spots for one job on as few hosts as possible, () where it does not fit on any of ``gpu_types``.

        Types are tried in order. Taking the emptiest hosts first needs the fewest hosts; the last one is the fullest
        that suffices.
        """
        return _Hosts(queue, self.mechanics, left).fewest(row, gpu_types)


class _Hosts:
    """The hosts of one round and the GPUs ``left`` (H,) on each, which are taken in place.

    For a job, hosts are alike that have the same bandwidth, hold its dataset or not, and held it when it ran last or
    not: `Mechanics.alike` says so. The cost of moving there is asked for one host of each kind.
    """

    def __init__(self, queue: Queue, mechanics: Mechanics, left: Array) -> None:
        self.queue, self.left, self._mechanics = queue, left, mechanics
        self._sizes: list[int] = queue.jobs.gpus.tolist()
        of_type = queue.cluster.hosts_by_type
        self._of_type = of_type if queue.up.all() else [hosts[queue.up[hosts]] for hosts in of_type]
        self._holding: dict[str, Array] = {}

    @cached_property
    def _kind(self) -> Array:
        return self._mechanics.alike(self.queue)

    def put(self, row: int, gpu_types: Sequence[int], placed: dict[int, Spots]) -> None:
        """Place a job where it fits."""
        spots = self.fewest(row, gpu_types)
        if spots:
            take(self.left, spots)
            placed[row] = spots

    def fewest(self, row: int, gpu_types: Sequence[int]) -> Spots:
        """Return spots on as few hosts as possible; see `HierarchicalPlacement.fewest`."""
        gpus = self._sizes[row]
        for gpu_type in gpu_types:
            hosts = self._of_type[gpu_type]
            room = self.left[hosts]
            if room.sum() < gpus:
                continue
            best = self._best(row, hosts, room)
            if best is not None:
                return ((best, gpus),)
            before, holds = self._before(row)[hosts], self._holds(row)[hosts]
            emptiest = np.lexsort([hosts, ~holds, ~before, -room]).tolist()
            spots, missing = [], gpus
            while missing > room[emptiest[0]]:
                at = emptiest.pop(0)
                spots.append((int(hosts[at]), int(room[at])))
                missing -= int(room[at])
            last = min(
                (at for at in emptiest if room[at] >= missing),
                key=lambda at: (room[at], not before[at], not holds[at], hosts[at]),
            )
            return tuple(sorted([*spots, (int(hosts[last]), missing)]))
        return ()

    def repack(self, apart: Sequence[int], placed: dict[int, Spots]) -> None:
        """Move gangs onto single hosts, in place, until no scattered gang fits on one."""
        waiting = list(apart)
        while waiting:
            moves = [(row, host) for row in waiting if (host := self._whole(row, placed[row])) is not None]
            if not moves:
                return
            row, host = min(moves, key=lambda move: self._order(move[0], move[1], placed[move[0]]))
            for old, gpus in placed[row]:
                self.left[old] += gpus
            placed[row] = ((host, self._sizes[row]),)
            take(self.left, placed[row])
            waiting.remove(row)

    def _whole(self, row: int, spots: Spots) -> int | None:
        """Return the best host of a job's type that could hold all of it, counting its own GPUs there as free."""
        hosts = np.concatenate([self._of_type[gpu_type] for gpu_type in self.queue.gpu_types(spots)])
        if self._sizes[row] > self.queue.cluster.gpus[hosts].max(initial=0):
            return None
        own = np.zeros_like(self.left)
        for host, gpus in spots:
            own[host] = gpus
        return self._best(row, hosts, (self.left + own)[hosts])

    def _best(self, row: int, hosts: Array, room: Array) -> int | None:
        """Return the host that can hold all of a job at the least cost; then one with its dataset, then the fullest."""
        fits = room >= self._sizes[row]
        if not fits.any():
            return None
        hosts, room = hosts[fits], room[fits]
        before, holds = self._before(row)[hosts], self._holds(row)[hosts]
        kinds = (self._kind[hosts] * 2 + before) * 2 + holds
        best: tuple[Number, bool, int, int] | None = None
        for kind in np.unique(kinds):
            alike = np.flatnonzero(kinds == kind)
            at = alike[np.lexsort([hosts[alike], room[alike]])[0]]
            host = int(hosts[at])
            one = (self._cost(row, host), not holds[at], int(room[at]), host)
            best = one if best is None else min(best, one)
        return None if best is None else best[-1]

    def _before(self, row: int) -> Array:
        """Whether each host (H,) held the job when it ran last."""
        before = np.zeros(len(self.left), dtype=bool)
        before[[host for host, _ in self.queue.last[row]]] = True
        return before

    def _holds(self, row: int) -> Array:
        """Whether each host (H,) holds the job's dataset; True for a job without one."""
        name = self.queue.jobs.dataset[row]
        if name not in self._holding:
            self._holding[name] = np.array([not name or name in held for held in self.queue.held])
        return self._holding[name]

    def _order(self, row: int, host: int, spots: Spots) -> tuple[Any, ...]:
        """The sort key for migrations: the cost, then the benefit, then the row."""
        return self._cost(row, host), _level(self.queue, row), -len(spots), row

    def _cost(self, row: int, host: int) -> Number:
        return self._mechanics.setup(self.queue, row, ((host, self._sizes[row]),))


def _level(queue: Queue, row: int) -> int:
    """Return 0 for a gang that is parallel within operators, 1 for any other job."""
    return 0 if queue.jobs.pattern[row] is Pattern.INTRA and queue.jobs.gpus[row] > 1 else 1

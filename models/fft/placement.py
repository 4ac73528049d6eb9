"""FFT's placement: by parallelism first, then by the cost of migration (Sec. 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairopt.problem.jobs import Pattern
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number
from fairopt.simulation import Mechanics, Request
from fairopt.simulation.placement import staying, take


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
        left = free.copy()
        placed, moving = staying(queue, requests, left)
        gpu_types = {request.row: request.gpu_types for request in moving}
        apart = [row for row, spots in placed.items() if len(spots) > 1]
        coming = sorted(gpu_types, key=lambda row: (_level(queue, row), -queue.jobs.gpus[row]))
        gangs = [row for row in coming if queue.jobs.gpus[row] > 1]
        single = [row for row in coming if queue.jobs.gpus[row] == 1]
        for row in gangs:
            self._put(queue, row, gpu_types[row], left, placed)
        if self.repack:
            self._repack(queue, apart, left, placed)
        for row in single:
            self._put(queue, row, gpu_types[row], left, placed)
        return placed

    def _put(self, queue: Queue, row: int, gpu_types: Sequence[int], left: Array, placed: dict[int, Spots]) -> None:
        spots = self.fewest(queue, row, gpu_types, left)
        if spots:
            take(left, spots)
            placed[row] = spots

    def _repack(self, queue: Queue, apart: Sequence[int], left: Array, placed: dict[int, Spots]) -> None:
        """Move gangs onto single hosts, in place, until no scattered gang fits on one."""
        waiting = list(apart)
        while waiting:
            moves = [(row, host) for row in waiting if (host := self._whole(queue, row, placed[row], left)) is not None]
            if not moves:
                return
            row, host = min(moves, key=lambda move: self._order(queue, move[0], move[1], placed[move[0]]))
            for old, gpus in placed[row]:
                left[old] += gpus
            placed[row] = ((host, int(queue.jobs.gpus[row])),)
            take(left, placed[row])
            waiting.remove(row)

    def _whole(self, queue: Queue, row: int, spots: Spots, left: Array) -> int | None:
        """Return the best host of a job's type that could hold all of it, counting its own GPUs there as free."""
        own = dict(spots)
        gpus = int(queue.jobs.gpus[row])
        room = {
            host: int(left[host]) + own.get(host, 0)
            for gpu_type in queue.gpu_types(spots)
            for host in queue.hosts(gpu_type)
        }
        whole = [host for host, there in room.items() if there >= gpus]
        return min(whole, key=lambda host: self._ready(queue, row, host, room[host])) if whole else None

    def _order(self, queue: Queue, row: int, host: int, spots: Spots) -> tuple[Any, ...]:
        """The sort key for migrations: the cost, then the benefit, then the row."""
        return self._cost(queue, row, host), _level(queue, row), -len(spots), row

    def _cost(self, queue: Queue, row: int, host: int) -> Number:
        return self.mechanics.setup(queue, row, ((host, int(queue.jobs.gpus[row])),))

    def _ready(self, queue: Queue, row: int, host: int, left: int) -> tuple[Any, ...]:
        """The sort key for hosts that can hold all of a job."""
        return self._cost(queue, row, host), not _holds(queue, row, host), left, host

    def fewest(self, queue: Queue, row: int, gpu_types: Sequence[int], left: Array) -> Spots:
        """Return spots for one job on as few hosts as possible, () where it does not fit on any of ``gpu_types``.

        Types are tried in order. Taking the emptiest hosts first needs the fewest hosts; the last one is the fullest
        that suffices.
        """
        gpus = int(queue.jobs.gpus[row])
        before = {host for host, _ in queue.last[row]}
        for gpu_type in gpu_types:
            hosts = [host for host in queue.hosts(gpu_type) if left[host] > 0]
            if sum(int(left[host]) for host in hosts) < gpus:
                continue
            whole = [host for host in hosts if left[host] >= gpus]
            if whole:
                return ((min(whole, key=lambda host: self._ready(queue, row, host, int(left[host]))), gpus),)

            def ready(host: int) -> tuple[bool, bool, int]:
                return host not in before, not _holds(queue, row, host), host

            spots, missing = [], gpus
            emptiest = sorted(hosts, key=lambda host: (-left[host], *ready(host)))
            while missing > left[emptiest[0]]:
                host = emptiest.pop(0)
                spots.append((host, int(left[host])))
                missing -= int(left[host])
            last = min(
                (host for host in emptiest if left[host] >= missing), key=lambda host: (left[host], *ready(host))
            )
            return tuple(sorted([*spots, (last, missing)]))
        return ()


def _level(queue: Queue, row: int) -> int:
    """Return 0 for a gang that is parallel within operators, 1 for any other job."""
    return 0 if queue.jobs.pattern[row] is Pattern.INTRA and queue.jobs.gpus[row] > 1 else 1


def _holds(queue: Queue, row: int, host: int) -> bool:
    """Whether a host holds the job's dataset; True for a job without one."""
    return not queue.jobs.dataset[row] or queue.jobs.dataset[row] in queue.held[host]

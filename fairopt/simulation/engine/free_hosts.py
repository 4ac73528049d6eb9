"""Which hosts have how many free GPUs, as jobs come and go: a gang finds its hosts without a look at all of them."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from fairopt.policy import Schedule
from fairopt.problem import Cluster, Spots
from fairopt.simulation.engine.standing import Standing


class FreeHosts:
    """The hosts of each type by how many of their GPUs are free, while all hosts work.

    `room` (k) has the free GPUs of each type. `follow` counts those who run; then `taken` gives a job its GPUs, and
    `settle` says that all of them start. Whatever is left in between by an exception is counted anew.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._gpus, self._type = cluster.gpus, cluster.gpu_type.tolist()
        self.room = [0] * len(cluster.types)
        self._free: list[int] = []
        self._hosts: list[dict[int, list[int]]] = []  # of each type, by free GPUs, rising
        self._on: dict[int, Spots] = {}  # by row of the trace, all whose GPUs are not free
        self._since: Schedule | None = None

    def follow(self, standing: Standing, since: Schedule) -> None:
        """Count the GPUs of those who run, placed by the schedule ``since``, or after it by `taken`."""
        there = np.count_nonzero(standing.running)
        known, self._since = since is self._since, None
        if known:
            for row in self._on.keys() - standing.rows.tolist():
                self._change(self._on.pop(row), 1)
        if not known or len(self._on) != there:
            self._anew(standing)

    def _anew(self, standing: Standing) -> None:
        columns = (standing.rows, standing.running, standing.last)
        self._on = {row: on for row, runs, on in zip(*(each.tolist() for each in columns), strict=True) if runs}
        self._free = (self._gpus - standing.held(len(self._gpus))).tolist()
        self._hosts, self.room[:] = [{} for _ in self.room], [0] * len(self.room)
        for host, free in enumerate(self._free):
            self._hosts[self._type[host]].setdefault(free, []).append(host)
            self.room[self._type[host]] += free

    def taken(self, row: int, gpu_type: int, gpus: int) -> Spots:
        """Give a job the GPUs that `Consolidated` would: on the fullest host with room, else on the emptiest hosts.

        ``row`` is that of the trace. The type has so much `room`.
        """
        spots = self._spots(self._hosts[gpu_type], gpus)
        self._on[row] = spots
        self._change(spots, -1)
        return spots

    def settle(self, since: Schedule) -> None:
        """Let all who have `taken` GPUs keep them, as long as the schedule ``since`` stands."""
        self._since = since

    def _spots(self, hosts: dict[int, list[int]], gpus: int) -> Spots:
        fullest = min([free for free in hosts if free >= gpus], default=0)
        if fullest:
            return ((hosts[fullest][0], gpus),)
        spots, missing = [], gpus
        for free in sorted(hosts, reverse=True):
            for host in hosts[free] if missing else ():
                here = min(missing, free)
                spots.append((host, here))
                missing -= here
                if not missing:
                    break
        return tuple(sorted(spots))

    def _change(self, spots: Spots, sign: int) -> None:
        """Count GPUs as free (1), or as taken (-1)."""
        for host, gpus in spots:
            hosts, free = self._hosts[self._type[host]], self._free[host]
            alike, more = hosts[free], free + sign * gpus
            del alike[bisect_left(alike, host)]
            if not alike:
                del hosts[free]
            insort(hosts.setdefault(more, []), host)
            self._free[host] = more
            self.room[self._type[host]] += sign * gpus

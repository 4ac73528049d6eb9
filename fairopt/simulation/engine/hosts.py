"""Which hosts work when."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from fairopt.problem import Cluster, Trace
from fairopt.program import INFINITY, Array, Number


class Hosts:
    """The hosts of a cluster through the outages of a trace; between two moments of these nothing changes."""

    def __init__(self, cluster: Cluster, trace: Trace) -> None:
        self._hosts, self._outages = cluster.hosts, trace.outages
        self._number = {host: number for number, host in enumerate(cluster.hosts)}
        self._moments = sorted({moment for each in trace.outages for moment in (each.begin, each.end)})
        self._known: tuple[int, Array] = -1, np.array([])

    def up(self, now: Number) -> Array:
        """Return which hosts (H,) work at a time; the same array until that changes."""
        place = bisect_right(self._moments, now)
        if place != self._known[0]:
            down = {each.host for each in self._outages if each.begin <= now < each.end}
            self._known = place, np.array([host not in down for host in self._hosts])
        return self._known[1]

    def up_before(self, now: Number, length: Number) -> Array:
        """Return which hosts (H,) worked in the round of ``length`` that ends at ``now``; all did before the first."""
        # not at now - length: in floats that may miss the moment from which now was reached
        down = {each.host for each in self._outages if each.begin + length <= now < each.end + length}
        return np.array([host not in down for host in self._hosts])

    def failing(self, begin: Number, end: Number) -> dict[int, Number]:
        """Return the hosts that fail between two times, each with the first moment that it does."""
        if bisect_right(self._moments, begin) == bisect_right(self._moments, end):
            return {}
        failing: dict[int, Number] = {}
        for outage in self._outages:
            if begin < outage.begin < end:
                host = self._number[outage.host]
                failing[host] = min(outage.begin, failing.get(host, outage.begin))
        return failing

    def next_change(self, now: Number) -> Number:
        """Return when a host fails or comes back next after ``now``; infinity for never."""
        place = bisect_right(self._moments, now)
        return self._moments[place] if place < len(self._moments) else INFINITY

    def change(self, begin: Number, end: Number) -> bool:
        """Whether a host fails or comes back after ``begin``, at the latest at ``end``."""
        return bisect_right(self._moments, begin) < bisect_right(self._moments, end)

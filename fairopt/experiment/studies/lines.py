"""What pictures of a run show over time, gathered from its changes: GPUs held, jobs that wait, hosts' bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.problem import Cluster, Trace
from fairopt.problem.queue import Spots
from fairopt.program import Array
from fairopt.simulation.record import Changes

HOUR = 3600.0
#: The most numbers of a line over time.
POINTS = 201
#: The most parts of a Gantt chart.
BARS = 1500


@dataclass(frozen=True)
class Timeline:
    """Means of something over time: ``values`` (m,) over m equal parts of the time from ``begin`` to ``end``."""

    begin: float
    end: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class HostBar:
    """GPUs of a host that a job held without a pause: row of the host, from when, until when, how many, whose."""

    host: int
    begin: float
    end: float
    gpus: int
    tenant: str


class Line:
    """A number that changes over time, in steps; at first it is 0."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._changes: list[float] = []

    def change(self, time: float, by: float) -> None:
        """Add ``by`` from ``time`` on; times may come in any order."""
        self._times.append(time)
        self._changes.append(by)

    def steps(self) -> tuple[Array, Array]:
        """Return the times of changes (m,), rising, and the values from each on (m,)."""
        order = np.argsort(self._times, kind="stable")
        return np.array(self._times)[order], np.cumsum(np.array(self._changes)[order])

    def means(self, begin: float, end: float, *, scale: float = 1.0, most: float | None = None) -> Timeline:
        """Return the means of the line, at most ``most`` at each time, over ``scale``."""
        if not self._times or end <= begin:
            return Timeline(begin, end, (0.0,) * (POINTS - 1))
        edges = np.linspace(begin, end, POINTS)
        means = np.diff(self.integral(edges, most=most)) / np.diff(edges) / scale
        return Timeline(begin, end, tuple(float(f"{value:.5g}") for value in means))

    def integral(self, edges: Array, *, most: float | None = None) -> Array:
        """Return the integral of the line, at most ``most`` at each time, up to each of the rising ``edges`` (m,)."""
        if not self._times:
            return np.zeros(len(edges))
        times, values = self.steps()
        values = values if most is None else np.minimum(values, most)
        at = np.concatenate([[min(edges[0], times[0])], times, [max(edges[-1], times[-1])]])
        # the integral up to each time, which is straight between two
        sums = np.concatenate([[0.0], np.cumsum(np.diff(at) * np.concatenate([[0.0], values]))])
        return np.asarray(np.interp(edges, at, sums))


class Lines:
    """The lines of a run, and its first bars where it is ``detailed``; give it each of the run's `Changes`.

    ``able`` says of each row of the trace whether it fits some type: others neither wait nor count as demand.
    """

    def __init__(self, trace: Trace, cluster: Cluster, able: Array, *, detailed: bool) -> None:
        jobs = trace.jobs
        self._trace, self._cluster, self._able, self._detailed = trace, cluster, able, detailed
        self._gpus, self._owner = jobs.gpus.tolist(), jobs.tenant.tolist()
        self._arrival = jobs.arrival.astype(float).tolist()
        self.held, self.waiting = Line(), Line()
        self._held = [Line() for _ in jobs.tenants]
        self._asked = [Line() for _ in jobs.tenants]
        self._running: dict[int, tuple[float, Spots]] = {}
        self._bars: list[HostBar] = []

    def add(self, changes: Changes) -> None:
        """Take in what changed in a round."""
        begin = float(changes.begin)
        for row in changes.arrived:
            if self._able[row]:
                self.waiting.change(self._arrival[row], 1)
                self._asked[self._owner[row]].change(self._arrival[row], self._gpus[row])
        for row in changes.stopped:
            self._leave(row, begin)
        for placed in changes.placed:
            if placed.row in self._running:
                self._leave(placed.row, begin)
        for placed in changes.placed:
            self._running[placed.row] = (begin, placed.spots)
            self._count(placed.row, begin, placed.spots, 1)
        for row, time in changes.lost.items():
            self._leave(row, float(time))
        for row, time in changes.completed.items():
            self._leave(row, float(time))
            self.waiting.change(float(time), -1)
            self._asked[self._owner[row]].change(float(time), -self._gpus[row])

    def _count(self, row: int, time: float, spots: Spots, sign: int) -> None:
        gpus = sign * sum(each for _, each in spots)  # an elastic job may hold another number than its own
        self.waiting.change(time, -sign)
        self.held.change(time, gpus)
        self._held[self._owner[row]].change(time, gpus)

    def _leave(self, row: int, time: float) -> None:
        since, spots = self._running.pop(row)
        self._count(row, time, spots, -1)
        if self._detailed:
            self._bars += self._of(row, since, time, spots)
            if len(self._bars) > 2 * BARS:
                self._bars = self._first()

    def _of(self, row: int, since: float, until: float, spots: Spots) -> Iterable[HostBar]:
        tenant = self._trace.jobs.tenants[self._owner[row]]
        return (HostBar(host, since, until, int(gpus), tenant) for host, gpus in spots)

    def _first(self) -> list[HostBar]:
        return sorted(self._bars, key=lambda bar: (bar.begin, bar.host))[: BARS + 1]

    def bars(self, until: float) -> tuple[HostBar, ...]:
        """Return what jobs held on hosts, as far as `BARS` go."""
        for row, (since, spots) in self._running.items() if self._detailed else ():
            self._bars += self._of(row, since, until, spots)
        found = self._first()
        last = found[BARS].begin if len(found) > BARS else until  # what begins later is left out
        return tuple(replace(bar, end=min(bar.end, last)) for bar in found[:BARS] if bar.begin < last)

    def of_tenants(self, begin: float, end: float) -> tuple[Mapping[str, Timeline], Mapping[str, Timeline]]:
        """Return the GPUs that each tenant held, and those that it was entitled to: by weight, at most what it asked.

        Source: ASTRAEA Eq. (6), (8).
        """
        if not self._detailed:
            return {}, {}
        lines = zip(self._trace.jobs.tenants, self._held, self._asked, self._own(), strict=True)
        found = [
            (name, held.means(begin, end), asked.means(begin, end, most=most)) for name, held, asked, most in lines
        ]
        return {name: held for name, held, _ in found}, {name: entitled for name, _, entitled in found}

    def loss(self, cases: UnfairCases) -> float | None:
        """Return how often tenants were served unfairly while jobs came, by a reading; None without cases."""
        arrival = self._arrival
        edges = np.arange(arrival[0], arrival[-1], HOUR) if arrival else np.zeros(0)
        if len(edges) < 2:
            return None
        own, asked = self._own(), self._asked
        due = [each.integral(edges, most=most) for each, most in zip(asked, own, strict=True)]
        if not cases.capped:
            due = [most * (edges - edges[0]) for most in own]
        return tenant_loss(cases, edges, [each.integral(edges) for each in self._held], due)

    def _own(self) -> list[float]:
        """Return each tenant's quota: its part, by weight, of all GPUs."""
        weight = self._trace.jobs.tenant_weight.astype(float)
        own: list[float] = (weight / weight.sum() * float(self._cluster.gpus.sum())).tolist()
        return own


# -- how often tenants are served unfairly: the part of cases, a tenant in an interval, in which rho is below 1 --------
# ASTRAEA calculates rho of tenants "at multiple fixed intervals" and tells "the ratio of cases whose metric value is
# smaller than 1" (Sec. 6.1.4, 6.3). Which intervals these are it does not say: each reading is a measure. All end at
# full hours, from the first arrival to the last.
#
# Source: ASTRAEA, TPDS 2022, Eq. (8), (12), (16).
#: What rho may miss by, in floats, and still be 1.
NOISE = 1e-6


@dataclass(frozen=True)
class UnfairCases:
    """A reading: the interval is the last ``hours`` (None: all since the first arrival).

    ``capped``: Eq. (8), and intervals in which nothing is due are no cases; else Eq. (16).
    """

    hours: int | None
    capped: bool = True


#: By the name of the measure. The published simulator has the last 24 hours, and Eq. (8).
CASES = {
    "tenant_loss_hour": UnfairCases(1),
    "tenant_loss_day": UnfairCases(24),
    "tenant_loss_begun": UnfairCases(None),
    "tenant_loss_quota": UnfairCases(24, capped=False),
}


def tenant_loss(cases: UnfairCases, edges: Array, held: Sequence[Array], due: Sequence[Array]) -> float | None:
    """Return the part of the cases in which less was held than was due; None without cases.

    ``edges`` (m,) are hours; ``held`` and ``due`` are GPU-time up to each (m,), for each tenant.

    >>> hours = 3600.0 * np.arange(4)
    >>> tenant_loss(UnfairCases(1), hours, [np.array([0, 1, 2, 2])], [np.array([0, 1, 3, 3])])
    0.5
    """
    below = count = 0
    for got, owed in zip(held, due, strict=True):
        back = len(edges) if cases.hours is None else cases.hours
        since = np.maximum(np.arange(1, len(edges)) - back, 0)
        had, wanted = got[1:] - got[since], owed[1:] - owed[since]
        some = wanted > NOISE
        below += int((had[some] < wanted[some] * (1 - NOISE)).sum())
        count += int(some.sum())
    return below / count if count else None

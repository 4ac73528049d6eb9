"""What became of the GPUs in a run: time held, used, spent on loading, lost, and free but of no use to who waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number
from fairopt.report import Short
from fairopt.simulation.gpu_time import Window, overlap
from fairopt.simulation.record import Change


@dataclass(frozen=True, repr=False)
class GpuUse(Short):
    """GPU-time in GPUs times the trace's unit of time, over the rounds in which somebody was present.

    ``usable``: of hosts that worked when a round began. ``held``: by jobs, until they were done or their host failed;
    it is the sum of ``useful`` (progress that stays), ``loading`` (setup) and ``lost`` (all that was held in a round
    whose work a failure destroyed). ``freed``: from when a job was done, or its host failed, to the end of that round:
    nobody gets GPUs in mid-round. ``fragmented`` and ``scattered`` were free while jobs waited: see `Fragments`.
    ``mixed``: held by gangs on GPUs of several types; ``held_back``: of that, by GPUs that are faster for the job than
    the slowest of its gang, and wait for it.
    """

    usable: Number
    held: Number
    useful: Number
    loading: Number
    lost: Number
    freed: Number
    fragmented: Number
    scattered: Number
    mixed: Number
    held_back: Number


class Fragments:
    """The GPUs that are free and the gangs that wait, as a run goes on: GPU-time that was free and of no use to them.

    In a round, F_i is the number of free GPUs of type i on working hosts after all placements, and J_i is the set of
    waiting jobs that suit the type (throughput, memory). If every gang in J_i is larger than F_i, no waiting job could
    use the GPUs, and all of F_i is fragmented. If some gang is not, but each is larger than the free GPUs of any single
    host of the type, F_i is scattered: a job could use it only across hosts. Otherwise the policy chose to leave the
    GPUs idle, and they count as neither. The same holds if no job waits for the type. The results are sums over types
    and rounds, times the rounds' length.

    Source: ours, for gangs. The idea (free GPUs that the workload's tasks cannot use) is from Weng et al., "Beware of
    Fragmentation", USENIX ATC 2023.
    """

    def __init__(self, queue: Queue) -> None:
        """Begin with all hosts free; ``queue`` is that of all jobs."""
        cluster = queue.cluster
        kinds: dict[tuple[bool, ...], tuple[int, ...]] = {}  # the types that jobs suit; few jobs differ
        for each in (suits := list(map(tuple, queue.suits.tolist()))):
            if each not in kinds:
                kinds[each] = tuple(np.flatnonzero(each).tolist())
        self._suits = [kinds[each] for each in suits]
        self._size = queue.jobs.gpus.tolist()
        self._gpus, self._free = cluster.gpus.tolist(), cluster.gpus.copy()
        self._type = cluster.gpu_type.tolist()
        self._hosts = cluster.hosts_by_type
        self._there = [int(self._free[hosts].sum()) for hosts in self._hosts]
        self._waiting: list[Counter[int]] = [Counter() for _ in cluster.types]
        self.usable = sum(self._gpus)
        self.fragmented: Number = queue.now
        self.scattered: Number = queue.now

    def change(self, spots: Spots, sign: int) -> None:
        """Count GPUs as free (1), or as taken (-1)."""
        for host, gpus in spots:
            self._free[host] += sign * gpus
            self._there[self._type[host]] += sign * gpus

    def works(self, host: int, sign: int) -> None:
        """Count a host, on which nobody runs, as working again (1), or as down (-1)."""
        self.change(((host, self._gpus[host]),), sign)
        self.usable += sign * self._gpus[host]

    def wait(self, row: int, sign: int) -> None:
        """Count a job as waiting (1), or not any more (-1)."""
        for gpu_type in self._suits[row]:
            self._waiting[gpu_type][self._size[row]] += sign

    def pass_(self, time: Number) -> None:
        """Let time pass in which nothing changes."""
        for gpu_type, waiting in enumerate(self._waiting):
            there = self._there[gpu_type]
            least = min((size for size, count in waiting.items() if count), default=0) if there else 0
            if least > there:
                self.fragmented += there * time
            elif least > 1 and least > self._free[self._hosts[gpu_type]].max():
                self.scattered += there * time


class Held:
    """How the GPU-time that jobs hold within a window is used; ``window`` None: all of it."""

    def __init__(self, window: Window | None, zero: Number) -> None:
        self.window = window
        self.held = self.loading = self.lost = self.freed = self.mixed = self.held_back = zero

    def add(self, gpus: int, begin: Number, end: Number, setup: Number, lost: Number | None = None) -> Number:
        """Add that a job held GPUs, loading first, and from ``lost`` in vain; return what of it is in the window."""
        kept = end if lost is None else lost
        self.loading += gpus * overlap(self.window, begin, min(begin + setup, kept))
        if lost is not None:
            self.lost += gpus * overlap(self.window, lost, end)
        held = gpus * overlap(self.window, begin, end)
        self.held += held
        return held

    def add_mixed(self, gang: Mapping[int, int], speeds: Sequence[Number], begin: Number, end: Number) -> None:
        """Add that a gang held GPUs of several types: how many of each, of which the job has these ``speeds`` (k,)."""
        slowest = min(speeds[gpu_type] for gpu_type in gang)
        faster = sum(gpus for gpu_type, gpus in gang.items() if speeds[gpu_type] > slowest)
        time = overlap(self.window, begin, end)
        self.mixed += sum(gang.values()) * time
        self.held_back += faster * time

    def use(self, usable: Number, free: Fragments) -> GpuUse:
        """Return the sums."""
        useful = self.held - self.loading - self.lost
        wasted = (self.lost, self.freed, free.fragmented, free.scattered)
        return GpuUse(usable, self.held, useful, self.loading, *wasted, self.mixed, self.held_back)


@dataclass(frozen=True)
class Moves:
    """The numbers of moves of jobs: counts of (job, round).

    ``migrations``: a host was new to the job. ``between_types``: migrations that changed the job's slowest type;
    ``to_faster``: those of them to a type that is faster for the job. ``resumed``: it continued, after a pause, on the
    hosts where it ran last.
    """

    migrations: int
    between_types: int
    to_faster: int
    resumed: int

    @property
    def restarts(self) -> int:
        """The number of restarts of jobs that had run before, on any host."""
        return self.migrations + self.resumed


class MoveCounter:
    """The moves as a run goes on. Source: FFT Sec. 6.2.3 (the share towards faster types)."""

    def __init__(self, jobs: Jobs, cluster: Cluster) -> None:
        self._jobs, self._cluster = jobs, cluster
        self._counts: Counter[str] = Counter()

    def add(self, row: int, before: Spots, now: Spots, how: Change) -> None:
        """Add that a job comes to GPUs ``now``, after those that it ran on ``before``; () where that is not known."""
        if how is Change.RESUME:
            self._counts["resumed"] += 1
        if how is not Change.MIGRATE:
            return
        self._counts["migrations"] += 1
        if not before:
            return
        old, new = self._slowest(row, before), self._slowest(row, now)
        self._counts["between_types"] += old[1] != new[1]
        self._counts["to_faster"] += new[0] > old[0]

    def _slowest(self, row: int, spots: Spots) -> tuple[Number, str]:
        types, speeds = self._cluster.types, self._jobs.throughput[row]
        return min((speeds[at], types[at]) for at in {int(self._cluster.gpu_type[host]) for host, _ in spots})

    def counts(self) -> Moves:
        """Return the counts."""
        return Moves(**{name: self._counts[name] for name in Moves.__dataclass_fields__})

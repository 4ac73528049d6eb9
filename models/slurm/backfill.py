"""Slurm's backfill: a later job starts now where that delays the expected start of none before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

import numpy as np

from fairopt.models.slurm.site import SlurmJob, SlurmPartition
from fairopt.models.slurm.starting import JobStarter, Place
from fairopt.program import Array

#: What SchedulerParameters are without a value: bf_window in minutes, bf_resolution in seconds, bf_max_job_test.
DAY, MINUTE, MOST_TESTED = 1440, 60, 500


class Backfill:
    """One pass of backfill over a `JobStarter`.

    Each job that must wait is given the nodes on which it is expected to start, whole and for its whole time limit; a
    later one starts now where it is over before that. When GPUs become free is known from the limits of running jobs.

    Source: Slurm 22.05.8, src/plugins/sched/backfill/backfill.c, _attempt_backfill; src/plugins/select/cons_common/
    job_test.c, _will_run_test, without its windows of half a minute.
    """

    def __init__(self, starter: JobStarter) -> None:
        """Begin with no node kept for anybody."""
        self.starter, self.site = starter, starter.site
        self.window = 60 * self.site.parameter("bf_window", DAY)
        #: Pieces of time, one after another, each with the nodes (M,) that are left.
        self._pieces: list[tuple[float, float, Array]] = [(0.0, self.window, np.ones(len(self.site.names), dtype=bool))]
        #: By type, GPUs and CPUs: when each node has so many free (M,).
        self._ends: dict[tuple[int, int, int], Array] = {}
        self._on: list[list[SlurmJob]] = [[] for _ in self.site.names]
        for job in self.site.jobs.values():
            for node in job.on:
                self._on[node].append(job)

    def run(self) -> bool:
        """Go through the jobs once, and say whether any was started, or others were stopped for it."""
        changed, starter = False, self.starter
        starter.makes_room.clear()
        waiting = [each for each in starter.queue if starter.waits(each[0])]
        for job, part in waiting[: self.site.parameter("bf_max_job_test", MOST_TESTED)]:
            if not starter.waits(job) or part.refuses(job):
                continue
            broken = [starter.limits.on_jobs(job, part) or starter.beyond(job, part, kind) for kind in job.gang.takes]
            if all(broken):  # nothing is kept for it, since nobody knows when the limit leaves room
                starter.room.waits[job.gang.name] = next(iter(broken), "")
                continue
            changed = self._tried(job, part) or changed
        return changed

    def _tried(self, job: SlurmJob, part: SlurmPartition) -> bool:
        """Start a job, or keep the nodes on which it is expected to start; say whether anything started or stopped."""
        long, since = part.seconds(job), 0.0
        for _ in range(2 * len(self._pieces) + 3):
            nodes, later = self._left(part.nodes, since, since + long)
            begin, on, kind = self._earliest(job, part, nodes)
            if since == 0 and begin > 0 and self.starter.stop_for(job, part, nodes):
                self._keep(0.0, long, nodes)  # until those are gone nobody else starts there
                return True
            if on is None:
                if later is None:
                    return False
                since = later
                continue
            begin = max(begin, since)
            if begin <= 0:
                self.starter.start(job, part, kind, on)
                self._changed(job)
                return True
            if later is not None and begin > later:
                since = later
                continue
            if begin > self.window:
                return False
            own = self._mask(on)
            if any((own & ~left).any() for low, high, left in self._pieces if high > begin and low < begin + long):
                since = begin
                continue
            step = self.site.parameter("bf_resolution", MINUTE)
            self._keep(begin // step * step, (begin + long) // step * step, own)
            return False
        return False

    # -- what is kept for whom ---------------------------------------------------------------------------------------
    def _left(self, nodes: Array, since: float, until: float) -> tuple[Array, float | None]:
        """Return which nodes are left from ``since`` to ``until``, and when to look again, None for never."""
        left, later = nodes.copy(), None
        for at, (low, high, own) in enumerate(self._pieces):
            if high > since and at + 1 < len(self._pieces) and later is None:
                after = nodes & self._pieces[at + 1][2]
                later = high if (after & ~(left & own)).any() else None
            if high <= since:
                continue
            if low > until:
                break
            left &= own
        return left, later

    def _keep(self, since: float, until: float, nodes: Array) -> None:
        self._pieces = list(self._with(since, until, nodes))

    def _with(self, since: float, until: float, nodes: Array) -> Iterator[tuple[float, float, Array]]:
        for low, high, own in self._pieces:
            cuts = [low, *(cut for cut in (since, until) if low < cut < high), high]
            for begin, end in pairwise(cuts):
                yield begin, end, own & ~nodes if since <= begin < until else own

    def _mask(self, on: Place) -> Array:
        mask = np.zeros(len(self.site.names), dtype=bool)
        mask[list(on)] = True
        return mask

    # -- when GPUs become free ---------------------------------------------------------------------------------------
    def _earliest(self, job: SlurmJob, part: SlurmPartition, nodes: Array) -> tuple[float, Place | None, int]:
        """Return in how many seconds a job fits into nodes, where, and on which type; None where it never does."""
        best: tuple[float, Place | None, int] = (inf, None, -1)
        for kind in job.gang.takes:
            if self.starter.beyond(job, part, kind):
                continue
            if (on := self.starter.fits(job, kind, nodes, self.site.free)) is not None:
                return 0.0, on, kind
            key = (kind, *job.on_each)
            if key not in self._ends:
                self._ends[key] = np.array([self._when(node, *key) for node in range(len(self.site.names))])
            when = np.where(nodes, self._ends[key], inf)
            begin = float(np.partition(when, job.nodes - 1)[job.nodes - 1]) if len(when) >= job.nodes else inf
            if begin < best[0]:
                chosen = np.flatnonzero(when <= begin)[: job.nodes]
                best = begin, {int(node): job.on_each for node in chosen}, kind
        return best

    def _when(self, node: int, kind: int, gpus: int, cpus: int) -> float:
        """Return in how many seconds a node has GPUs and CPUs free, by the time limits of what runs there."""
        if self.site.total[node, kind] < gpus or self.site.total[node, -1] < cpus:
            return inf
        have, spare, end = int(self.site.free[node, kind]), int(self.site.free[node, -1]), 0.0
        for job in sorted((job for job in self._on[node] if node in job.on), key=lambda job: job.left):
            if have >= gpus and spare >= cpus:
                break
            have, spare = have + job.on[node][0] * (job.kind == kind), spare + job.on[node][1]
            end = max(job.left, 1.0)
        return end if have >= gpus and spare >= cpus else inf

    def _changed(self, job: SlurmJob) -> None:
        for node in job.on:
            self._on[node].append(job)
            for key, when in self._ends.items():
                when[node] = self._when(node, *key)

"""Slurm's backfill: a later job starts now where that delays the expected start of none before it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil, inf

import numpy as np

from fairopt.models.slurm.site import SlurmJob, SlurmPartition
from fairopt.models.slurm.starting import JobStarter, Place
from fairopt.program import Array

#: What SchedulerParameters are without a value: bf_window in minutes, bf_resolution in seconds, bf_max_job_test.
DAY, MINUTE, MOST_TESTED = 1440, 60, 500
#: Seconds of the first window in which jobs end together.
FIRST_WINDOW = 30


class Backfill:
    """One pass of backfill over a `JobStarter`.

    Each job that must wait is given the nodes on which it is expected to start, whole and for its whole time limit; a
    later one starts now where it is over before that. When GPUs become free is known from the limits of running jobs,
    of which some are taken to end together; here windows of half a minute begin now, there on the clock.

    Source: Slurm 22.05.8, src/plugins/sched/backfill/backfill.c, _attempt_backfill; src/plugins/select/cons_common/
    job_test.c, _will_run_test.
    """

    def __init__(self, starter: JobStarter) -> None:
        """Begin with no node kept for anybody."""
        self.starter, self.site = starter, starter.site
        self.window = 60 * self.site.parameter("bf_window", DAY)
        #: Pieces of time, one after another, each with the nodes (M,) that are left.
        self._pieces: list[tuple[float, float, Array]] = [(0.0, self.window, np.ones(len(self.site.names), dtype=bool))]
        tested = self.site.parameter("bf_max_job_test", MOST_TESTED)
        size = self.site.parameter("bf_node_space_size", tested)
        #: How many pieces there may be; a pass ends where a job is to be kept nodes, and there are so many.
        self._most, self._full = size if size >= 2 else tested, False
        #: What running jobs hold: when they end, their numbers, a node, a type, GPUs and CPUs there.
        rows = [row for job in self.site.jobs.values() for row in self._of(job)]
        self._rows = np.array(sorted(rows)).reshape(len(rows), 6)

    def run(self) -> bool:
        """Go through the jobs once, and say whether any was started, or others were stopped for it."""
        changed, starter = False, self.starter
        starter.makes_room.clear()
        waiting = [each for each in starter.listed if starter.waits(each[0])]
        for job, part in waiting[: self.site.parameter("bf_max_job_test", MOST_TESTED)]:
            if self._full:
                break
            if not starter.waits(job) or part.refuses(job):
                continue
            if why := part.denies(job) or starter.limits.on_jobs(
                job, part
            ):  # nothing is kept for it: nobody knows when there is room
                starter.room.waits[job.gang.name] = why
                continue
            changed = self._tried(job, part) or changed
        return changed

    def _tried(self, job: SlurmJob, part: SlurmPartition) -> bool:
        """Start a job, or keep the nodes on which it is expected to start; say whether anything started or stopped."""
        long, since = part.seconds(job), 0.0
        broken = {kind: self.starter.beyond(job, part, kind) for kind in job.gang.takes}
        limit = next(iter(broken.values())) if broken and all(broken.values()) else ""
        kinds = [kind for kind, why in broken.items() if limit or not why]
        for _ in range(2 * len(self._pieces) + 3):
            nodes, later = self._left(part.nodes, since, since + long)
            begin, on, kind = self._earliest(job, part, nodes, kinds)
            if since == 0 and begin > 0 and self.starter.stop_for(job, part, nodes):
                self._keep(0.0, long, nodes)  # until those are gone nobody else starts there
                return job.number in self.starter.makes_room
            if on is None:
                if later is None:
                    return False
                since = later
                continue
            begin = max(begin, since)
            if limit and begin <= 0:
                return self._limited(job, limit)
            if begin <= 0:
                self.starter.start(job, part, kind, on)
                self._started(job)
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
            if limit:
                return self._limited(job, limit)
            step = self.site.parameter("bf_resolution", MINUTE)
            self._keep(begin // step * step, (begin + long) // step * step, own)
            return False
        return False

    def _limited(self, job: SlurmJob, limit: str) -> bool:
        """Keep nothing for a job that a limit on amounts stops, which is looked at once a start is found."""
        self.starter.room.waits[job.gang.name] = limit
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
        self._full = len(self._pieces) >= self._most
        if not self._full:
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
    def _earliest(
        self, job: SlurmJob, part: SlurmPartition, nodes: Array, kinds: list[int]
    ) -> tuple[float, Place | None, int]:
        """Return in how many seconds a job fits into nodes, where, and on which type; None where it never does."""
        for end, free in self._later(job, part, nodes):
            for kind in kinds:
                if (on := self.starter.fits(job, kind, nodes, free)) is not None:
                    return end, on, kind
        return inf, None, -1

    def _later(self, job: SlurmJob, part: SlurmPartition, nodes: Array) -> Iterator[tuple[float, Array]]:
        """Yield when how much is free (M, k + 1): now, then after each window, and without whom a job may stop."""
        yield 0.0, self.site.free
        free, stops = self.site.free.copy(), [each.number for each in self.starter.may_stop(job, part)]
        gone = np.isin(self._rows[:, 1], stops)
        self._free(free, self._rows[gone])
        for end, some in self._windows(nodes, self._rows[~gone]):
            self._free(free, some)
            yield end, free

    @staticmethod
    def _free(free: Array, rows: Array) -> None:
        node, kind, gpus, cpus = rows[:, 2:].astype(np.int64).T
        np.add.at(free, (node, kind), gpus)
        np.add.at(free, (node, -1), cpus)

    def _windows(self, nodes: Array, rows: Array) -> Iterator[tuple[float, Array]]:
        """Yield what running jobs leave on nodes, window after window, each with the end of its last job.

        A window is over before the first job that ends after it, if that is next to one on these nodes; each is twice
        as long as the last, or longer by bf_window_linear. So what is expected may be later than what could be.
        """
        if not len(rows):
            return
        first = np.flatnonzero(np.append(True, rows[1:, 1] != rows[:-1, 1]))
        ends = rows[first, 0]
        own = np.flatnonzero(np.logical_or.reduceat(nodes[rows[:, 2].astype(np.int64)], first))
        window, at = float(FIRST_WINDOW), 0
        while at < len(own) and ends[own[at]] < inf:
            if at == 0:
                until = (ends[own[0]] // FIRST_WINDOW + 1) * FIRST_WINDOW
            within = np.searchsorted(ends, until + window, side="right")
            last = min(max(int(np.searchsorted(own, within - 1)), at), len(own) - 1)
            after = own[last] + 1
            begin, stop = first[own[at]], first[after] if after < len(first) else len(rows)
            yield float(ends[own[last]]), rows[begin:stop]
            later = ends[after] - until if after < len(ends) and ends[after] < inf else 0.0
            at, window = last + 1, self._longer(window, later)

    def _longer(self, window: float, least: float) -> float:
        """Return how long the next window is: ``least``, or longer."""
        if step := self.site.parameter("bf_window_linear", 0):
            return window + step * max(1, ceil((least - window) / step))
        window *= 2
        while window < least:
            window *= 2
        return window

    def _started(self, job: SlurmJob) -> None:
        rows = np.vstack([self._rows, *self._of(job)])
        self._rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    @staticmethod
    def _of(job: SlurmJob) -> list[tuple[float, ...]]:
        end = max(job.left, 1.0)
        return [(end, job.number, node, job.kind, gpus, cpus) for node, (gpus, cpus) in job.on.items()]

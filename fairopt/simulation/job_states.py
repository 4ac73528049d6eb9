"""`JobStates`: the jobs present between two rounds, in columns, and what a round does to them; and `Hosts`."""

from __future__ import annotations

import typing
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairopt.problem import Cluster, Jobs, Queue, Spots, Trace
from fairopt.problem.profile import Course, made, takes
from fairopt.program import INFINITY, Array, Number, cast, objects
from fairopt.simulation.record import JobState


class JobStates(NamedTuple):  # a class of data would take longer to make than a round
    """The columns of `JobState`, one value for each of n jobs present; nothing in it is ever changed in place.

    ``rows`` (n,) are those of the trace, rising. ``lease`` and ``speed`` (work per unit of time on ``last``) count
    where a job is ``running``. ``host`` and ``gpu_type`` are the only ones of ``last``, or -1.
    """

    rows: Array
    gpus: Array
    remaining: Array
    attained: Array
    setup: Array
    lease: Array
    running: Array
    last: Array
    started: Array
    speed: Array
    host: Array
    gpu_type: Array

    @classmethod
    def of(cls, present: Mapping[int, JobState], jobs: Jobs, cluster: Cluster, number: type) -> JobStates:
        """Return the columns of a snapshot's jobs, of ``jobs`` of the whole trace; speeds are 0: not known yet."""
        rows, states = np.array(list(present), dtype=np.int64), list(present.values())
        columns: dict[str, Any] = {
            name: cast(objects(getattr(each, name) for each in states), number)
            for name in ("remaining", "attained", "setup", "lease")
        }
        return cls(
            rows=rows,
            gpus=jobs.gpus[rows],
            running=np.array([each.running for each in states], dtype=bool),
            last=objects([each.last for each in states]),
            started=objects([each.started for each in states]),
            speed=cast(np.zeros(len(states)), number),
            host=np.array([host_and_type(cluster, each.last)[0] for each in states], dtype=np.int64),
            gpu_type=np.array([host_and_type(cluster, each.last)[1] for each in states], dtype=np.int64),
            **columns,
        )

    def states(self, now: Number) -> Iterator[tuple[int, JobState]]:
        """Yield each job's row and state; ``now`` is when the last round ended."""
        columns = (self.remaining, self.attained, self.setup, self.running, self.leases(now))
        listed = (column.tolist() for column in columns)
        for row, left, got, setup, running, lease, last, started in zip(
            self.rows.tolist(), *listed, self.last, self.started, strict=True
        ):
            yield row, JobState(left, got, setup, last, running, lease, started)

    def leases(self, now: Number) -> Array:
        """Return until when each job holds its GPUs, ``now`` where it runs nowhere."""
        there: Any = now
        return np.where(self.running, self.lease, there)

    def going_on(self, now: Number, end: Number) -> JobStates:
        """Return the same in a round in which all go on; a lease that is over becomes one to the ``end``."""
        last: Any = end
        return self._replace(lease=np.where(self.leases(now) > now, self.lease, last))

    def queue(
        self,
        cluster: Cluster,
        jobs: Jobs,
        *,
        index: int,
        now: Number,
        length: Number,
        up: Array,
        held: tuple[frozenset[str], ...],
    ) -> Queue:
        """Return the queue of these ``jobs`` at the beginning of a round."""
        queue = Queue(
            cluster=cluster,
            jobs=jobs,
            index=index,
            now=now,
            length=length,
            remaining=self.remaining,
            attained=self.attained,
            setup=self.setup,
            last=typing.cast("Sequence[Spots]", self.last),
            running=self.running,
            lease=self.leases(now),
            started=typing.cast("Sequence[Number | None]", self.started),
            up=up,
            held=held,
        )
        vars(queue).update(last_host=self.host, last_type=self.gpu_type)
        return queue

    @classmethod
    def new(cls, fresh: range, jobs: Jobs, now: Number) -> JobStates:
        """Return the columns of rows of the trace that just came."""
        count, none = len(fresh), jobs.work[fresh.start : fresh.stop] * 0
        nowhere = np.full(count, -1)
        return cls(
            rows=np.arange(fresh.start, fresh.stop),
            gpus=jobs.gpus[fresh.start : fresh.stop],
            remaining=jobs.work[fresh.start : fresh.stop],
            attained=none,
            setup=none,
            lease=none + now,
            running=np.zeros(count, dtype=bool),
            last=objects([()] * count),
            started=np.full(count, None),
            speed=none,
            host=nowhere,
            gpu_type=nowhere,
        )

    def joined(self, others: JobStates) -> JobStates:
        """Return the same with others, whose rows come after."""
        return JobStates(*map(np.concatenate, zip(self, others, strict=True))) if len(others.rows) else self

    def held(self, hosts: int) -> Array:
        """Return the GPUs of each of so many hosts (H,) that those who run hold."""
        gpus = self.gpus if np.count_nonzero(self.running) == len(self.running) else self.gpus * self.running
        # in the first place, those on no host or on several
        held = np.bincount(self.host + 1, weights=gpus, minlength=hosts + 1)
        apart, held = held[0], held[1:].astype(np.int64)
        if not apart:
            return held
        counts = held.tolist()
        for spots in self.last[self.running & (self.host < 0)]:
            for host, gpus in spots:
                counts[host] += gpus
        return np.array(counts)

    def without(self, gone: Array) -> JobStates:
        """Return the same without the jobs that are ``gone`` (n,)."""
        stay = np.flatnonzero(~gone)
        return JobStates(*[column[stay] for column in self])

    def on_hosts(self, up: Array) -> JobStates:
        """Return the same, where no job runs that has a host that is not ``up`` (H,)."""
        if up.all():
            return self
        works = up.tolist()
        alive = [
            running and all(works[host] for host, _ in last)
            for running, last in zip(self.running.tolist(), self.last, strict=True)
        ]
        return self._replace(running=np.array(alive, dtype=bool))

    def advanced(
        self,
        now: Number,
        end: Number,
        failing: Mapping[int, Number],
        courses: Mapping[int, Course],
        work: Array,
    ) -> tuple[JobStates, dict[int, Number], dict[int, Number]]:
        """Return what a round from ``now`` to ``end`` makes of them, and when rows were completed, or lost by failures.

        A job loads first, then it makes progress at its speed, or at those of its course, by row, where that is not ();
        where one of the hosts that are ``failing``, and when, is under it, the round's work is lost. ``work`` is that
        of the trace.
        """
        at = self.running_at()
        if at is None:
            return self, {}, {}
        over: Any = end  # numpy's types know no Fractions
        left, loading, speed = self.remaining[at], self.setup[at], self.speed[at]
        complete = now + loading + left / speed
        varied = self._courses(at, courses) if courses else {}
        for place, course in varied.items():
            whole = work[self.rows[at][place]]
            complete[place] = now + loading[place] + takes(course, whole - left[place], whole)
        # the order of operations decides the last bit of floats: `WholeRounds` has the same
        till = np.minimum(complete, over)
        if failing:
            at = np.flatnonzero(self.running)
        lost = self._lost(at, till, failing) if failing else {}
        for place, moment in lost.items():
            till[place] = moment
        held = till - now
        spent = np.minimum(loading, held)
        done = complete <= over
        progress = np.where(done, left, (held - spent) * speed)
        for place, course in varied.items():
            if not done[place]:
                whole = work[self.rows[at][place]]
                progress[place] = made(course, whole - left[place], held[place] - spent[place])
        if lost:  # the round's work, and the loading
            places = list(lost)
            done[places] = False
            progress[places] = spent[places] = now * 0
        after = self.progressed(at, left - progress, self.attained[at] + self.gpus[at] * held, loading - spent)
        if lost:
            running = self.running.copy()
            running[at[list(lost)]] = False
            after = after._replace(running=running)
        rows = self.rows[at]
        lost_rows = {int(rows[place]): moment for place, moment in lost.items()}
        if not np.count_nonzero(done):
            return after, {}, lost_rows
        gone = done
        if not isinstance(at, slice):
            gone = np.zeros(len(self.rows), dtype=bool)
            gone[at] = done
        return after.without(gone), dict(zip(rows[done].tolist(), till[done].tolist(), strict=True)), lost_rows

    def progressed(self, at: Any, remaining: Array, attained: Array, setup: Array) -> JobStates:
        """Return the same with other values of those ``at`` a place, as `running_at` says it."""
        if not isinstance(at, slice):
            new = self.remaining.copy(), self.attained.copy(), self.setup.copy()
            for column, values in zip(new, (remaining, attained, setup), strict=True):
                column[at] = values
            remaining, attained, setup = new
        return self._replace(remaining=remaining, attained=attained, setup=setup)

    def running_at(self) -> Any:
        """Return where those are that run, None if nobody does; all at once where all do."""
        count = np.count_nonzero(self.running)
        if not count:
            return None
        return slice(None) if count == len(self.running) else np.flatnonzero(self.running)

    def _courses(self, at: Any, courses: Mapping[int, Course]) -> dict[int, Course]:
        """Return the courses of those that have one, by their place in ``at``."""
        found = enumerate(map(courses.get, self.rows[at].tolist()))
        return {place: course for place, course in found if course}

    def _lost(self, at: Array, till: Array, failing: Mapping[int, Number]) -> dict[int, Number]:
        """Return when a host fails under jobs that still run, by their place in ``at``."""
        lost = {}
        for place, job in enumerate(at.tolist()):
            moments = [failing[host] for host, _ in self.last[job] if host in failing]
            if moments and min(moments) < till[place]:
                lost[place] = min(moments)
        return lost


def host_and_type(cluster: Cluster, spots: Spots) -> tuple[int, int]:
    """Return the host and the type of ``spots``, each -1 where it is not the only one."""
    gpu_types = {cluster.type_of[host] for host, _ in spots}
    return spots[0][0] if len(spots) == 1 else -1, gpu_types.pop() if len(gpu_types) == 1 else -1


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

    def up_before(self, now: Number, length: Number | None) -> Array:
        """Return which hosts (H,) worked in the round of ``length`` that ends at ``now``; all did before the first.

        ``length`` None: just before ``now``.
        """
        if length is None:
            down = {each.host for each in self._outages if each.begin < now <= each.end}
        else:  # not at now - length: in floats that may miss the moment from which now was reached
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

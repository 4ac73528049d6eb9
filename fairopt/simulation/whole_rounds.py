"""`WholeRounds`: the whole record of every round, from what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fairopt.problem import Cluster, Queue, Trace
from fairopt.problem.profile import Course, made
from fairopt.problem.queue import Spots
from fairopt.program import Number
from fairopt.simulation.job_states import Hosts
from fairopt.simulation.record import Change, Changes, JobRun, JobState, Round, Snapshot, begin


class WholeRounds:
    """What each job present did in each round, as a run goes on: give it the run's changes, and take the rounds.

    ``policy`` is the policy's name; the rounds' snapshots do not have its state. ``after`` is the snapshot that the
    changes go on from, None for the beginning.
    """

    def __init__(self, policy: str, trace: Trace, cluster: Cluster, after: Snapshot | None = None) -> None:
        self._policy, self._trace, self._cluster = policy, trace, cluster
        self._zero: Number = Fraction(0) if trace.jobs.exact else 0.0
        first = after or begin(cluster, type(self._zero))
        self._present = dict(first.present)
        self._speed: dict[int, Number] = {}  # of the jobs that run
        self._course: dict[int, Course] = {}  # of those of them whose speed changes
        self._named: dict[Spots, tuple[tuple[tuple[str, int], ...], tuple[str, ...]]] = {}
        there = list(first.present)
        queue = Queue.fresh(trace.jobs.take(there), cluster, length=1)
        self._unschedulable = {there[row]: why for row, why in queue.unschedulable.items()}  # of the jobs present
        self._hosts = Hosts(cluster, trace)
        self._held = list(first.held)
        self._said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
        self._index, self._idle, self._arrived = first.index, first.idle, first.arrived
        self._end, self._length = first.now, self._zero

    def add(self, changes: Changes) -> Iterator[Round]:
        """Yield the rounds up to that of the changes, this one included."""
        yield from self.until(changes.index)
        yield self.round(changes)

    def until(self, index: int) -> Iterator[Round]:
        """Yield the rounds before round ``index`` in which nothing changed; none where nobody was there to run."""
        while self._index < index and len(self._present) > len(self._unschedulable):
            begin = self._end
            nobody = range(self._arrived, self._arrived)
            yield self.round(Changes(self._index, begin, begin + self._length, nobody))

    def round(self, changes: Changes) -> Round:
        """Return the round of the changes."""
        jobs = self._trace.jobs
        before = self._begin(changes)
        ran: list[JobRun] = []
        waiting = []
        for row, one in list(self._present.items()):
            if row not in self._speed:
                waiting.append(jobs.names[row])
                # not dataclasses.replace, which would take a tenth of a run's time
                stays = (one.remaining, one.attained, one.setup, one.last)
                self._present[row] = JobState(*stays, running=False, lease=changes.end, started=one.started)
                continue
            how, last = before.get(row, (Change.STAY, one.last))
            run, after = self._play(row, one, changes, how, last)
            ran.append(run)
            self._present[row] = after
            if jobs.dataset[row]:
                for host, _ in one.last:
                    self._held[host] |= {jobs.dataset[row]}
        return self._record(changes, ran, waiting)

    def _begin(self, changes: Changes) -> dict[int, tuple[Change, Spots]]:
        """Take in what a round begins with; return how jobs came to new GPUs, and where they ran last."""
        for row in changes.arrived:
            work = self._trace.jobs.work[row]
            self._present[row] = JobState(work, self._zero, self._zero, (), False, changes.begin, None)
        self._arrived = changes.arrived.stop
        self._unschedulable |= changes.unschedulable
        said = {"costs": changes.costs, "notes": changes.notes, "backend": changes.backend}
        self._said |= {name: value for name, value in said.items() if value is not None}
        for row in changes.stopped:
            self._speed.pop(row, None)
        before = {placed.row: (placed.how, self._present[placed.row].last) for placed in changes.placed}
        for placed in changes.placed:
            one = self._present[placed.row]
            self._present[placed.row] = replace(one, last=placed.spots, setup=placed.setup)
            self._speed[placed.row], self._course[placed.row] = placed.speed, placed.course
        return before

    def _play(self, row: int, one: JobState, changes: Changes, how: Change, last: Spots) -> tuple[JobRun, JobState]:
        """Return what a job that runs did in a round, and how it stands afterwards."""
        speed = self._speed[row]
        completed, lost = row in changes.completed, row in changes.lost
        end = changes.completed.get(row, changes.lost.get(row, changes.end))
        spent = min(one.setup, end - changes.begin)
        progress = (end - changes.begin - spent) * speed
        if course := self._course[row]:
            done = self._trace.jobs.work[row] - one.remaining
            speed = [each for mark, each in course if mark <= done][-1]
            progress = made(course, done, end - changes.begin - spent)
        progress = one.remaining if completed else progress
        progress = self._zero if lost else progress
        unsaid = one.lease if how is Change.STAY and one.lease > changes.begin else changes.end
        lease = changes.leases.get(row, unsaid)
        spots, types = self._names(one.last)
        run = JobRun(
            job=self._trace.jobs.names[row],
            spots=spots,
            types=types,
            before=self._names(last)[1],
            change=how,
            begin=changes.begin,
            end=end,
            setup=spent,
            speed=speed,
            progress=progress,
            remaining=one.remaining - progress,
            lease=lease,
            completed=completed,
            lost=lost,
        )
        if completed or lost:
            del self._speed[row]
        return run, JobState(
            remaining=run.remaining,
            attained=one.attained + run.gpus * (end - changes.begin),
            setup=one.setup if lost else one.setup - spent,
            last=one.last,
            running=not lost,
            lease=changes.end if lost else lease,
            started=changes.begin if one.started is None else one.started,
        )

    def _names(self, spots: Spots) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
        """Return spots by the names of hosts, and their types; made once for each of the places where jobs run."""
        found = self._named.get(spots)
        if found is None:
            if len(self._named) > 2 * len(self._present) + 100:
                self._named.clear()
            hosts, types, of_type = self._cluster.hosts, self._cluster.types, self._cluster.gpu_type
            named = tuple((hosts[host], gpus) for host, gpus in spots)
            found = named, tuple(types[at] for at in sorted({int(of_type[host]) for host, _ in spots}))
            self._named[spots] = found
        return found

    def _record(self, changes: Changes, ran: list[JobRun], waiting: Sequence[str]) -> Round:
        names, begin, end = self._trace.jobs.names, changes.begin, changes.end
        happens = ran or changes.arrived or self._hosts.change(begin, end)
        self._idle = 0 if happens else self._idle + 1
        up = self._hosts.up(begin)
        for row in changes.completed:
            del self._present[row]
        self._index, self._end, self._length = changes.index + 1, end, end - begin
        present = set(waiting) | {each.job for each in ran}
        gpus = self._cluster.gpus
        return Round(
            index=changes.index,
            begin=begin,
            end=end,
            arrived=names[changes.arrived.start : changes.arrived.stop],
            ran=tuple(ran),
            waiting=tuple(waiting),
            unschedulable={names[row]: why for row, why in self._unschedulable.items()},
            down=tuple(host for host, works in zip(self._cluster.hosts, up, strict=True) if not works),
            usable=int(gpus[up].sum()),
            costs=self._said["costs"],
            notes={names[row]: text for row, text in self._said["notes"].items() if names[row] in present},
            policy=self._policy,
            backend=self._said["backend"],
            after=Snapshot(
                self._index, end, self._arrived, dict(self._present), tuple(self._held), None, True, self._idle
            ),
            changes=changes,
            seconds=changes.seconds,
        )

"""`Engine`: a trace on a cluster under a policy, round after round."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from fairopt.backends import Backend, Method
from fairopt.errors import WrongReturn
from fairopt.policy import Policy, Schedule, decide, session
from fairopt.problem import Cluster, Queue, Trace
from fairopt.problem.profile import Course
from fairopt.problem.queue import any_type
from fairopt.program import Array, Number
from fairopt.simulation import rounds as step
from fairopt.simulation.job_states import Hosts, JobStates
from fairopt.simulation.mechanics import Mechanics, length_of
from fairopt.simulation.record import Changes, Placed, Round, Snapshot, begin
from fairopt.simulation.unasked import MOST_AT_ONCE, Unasked
from fairopt.simulation.whole_rounds import WholeRounds

_log = logging.getLogger(__name__)

#: Seconds after which a round is yielded though nothing changed: who listens may want to say how far the run is.
BEAT = 1.0


class _Moment(NamedTuple):
    """Where a run is between two rounds: what a snapshot holds, and what saves work in the next round.

    ``up`` (H,): the hosts that worked in the round before. ``schedule``: what was decided last, for the rows ``asked``;
    it ``stands`` until then, unless something happens; ``settled``, also when jobs are done. ``said``: the costs, notes
    and backend that were told last, None if that is not known. ``seconds``: what deciding took since the last changes.
    """

    round: int
    now: Number
    arrived: int
    states: JobStates
    held: tuple[frozenset[str], ...]
    state: Any
    started: bool
    idle: int
    up: Array
    schedule: Schedule | None = None
    stands: Number | None = None
    settled: bool = False
    asked: Array | None = None
    said: Mapping[str, Any] | None = None
    seconds: float = 0.0


class _Ahead(NamedTuple):
    """So many rounds after an engine's moment, played in one step: what changed in them, and the moment after them."""

    changes: list[Changes]
    rounds: int
    after: _Moment


class Engine:
    """A run of a policy over a trace; iterate it for the `Changes` of the rounds in which something changed.

    The arguments and the errors are those of `run`. Time and memory follow the jobs present. A round in which nothing
    can change, as the `stands` of the last schedule says, is played without asking the policy; ``ask`` True asks it in
    every round. A policy's state is that of the last round in which it was asked.
    ``length`` None plays continuous time, as `run_continuous` says; the policy is asked in every span.

    An iteration goes on where the last one ended, also where an exception ended it: each round is done, or it is not.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> from fairopt.models import ShortestRemainingTimeFirst
    >>> engine = Engine(ShortestRemainingTimeFirst(), philly_trace().as_(float), philly_cluster(), length=300, rounds=4)
    >>> [(each.index, len(each.placed)) for each in engine], engine.snapshot().now
    ([(0, 1), (1, 7), (2, 1), (3, 1)], 1200.0)
    """

    def __init__(
        self,
        policy: Policy,
        trace: Trace,
        cluster: Cluster,
        *,
        length: object,
        mechanics: Mechanics | None = None,
        backend: Backend | Method | None = None,
        exact: bool = False,
        rounds: int | None = None,
        after: Snapshot | None = None,
        ask: bool = False,
    ) -> None:
        number = trace.jobs.arithmetic.number
        self._length: Number | None = None if length is None else number(length_of(length))
        step.check_matches(trace, cluster)
        if after is not None:
            step.check_goes_on(after, trace, cluster)
        self._policy, self._trace, self._cluster = policy, trace, cluster.as_(number)
        self._mechanics = mechanics or Mechanics()
        kind = type(self._mechanics)
        # another model may change a job's speed or loading while it stays where it is
        self._stays_same = kind.speed is Mechanics.speed and kind.setup is Mechanics.setup
        self._courses: dict[int, Course] = {}  # of jobs whose speed changes, where they run or ran last
        self._varying = trace.jobs.varying
        self._ask = ask or not self._stays_same or self._length is None or self._varying
        self._session = session(policy, backend, exact=exact)
        self._rounds, self._done, self._stopped = rounds, 0, False
        self._arrival: list[Number] = trace.jobs.arrival.tolist()
        self._hosts = Hosts(self._cluster, trace)
        self._whole = Queue.fresh(trace.jobs, self._cluster, length=1)
        self._fits = any_type(self._whole.fits)
        self._unasked = None if self._length is None else Unasked(self._whole, self._mechanics, self._length)
        self._ahead: _Ahead | None = None
        self._told = 0  # how much of what changed in the rounds ahead was told
        self._datasets = trace.jobs.dataset if any(trace.jobs.dataset) else ()
        first = begin(self._cluster, number) if after is None else after
        self._at = _Moment(
            round=first.index,
            now=first.now,
            arrived=first.arrived,
            states=JobStates.of(first.present, trace.jobs, self._cluster, number),
            held=first.held,
            state=first.state,
            started=first.started,
            idle=first.idle,
            up=self._hosts.up_before(first.now, self._length),
            said=None if first.index else {"costs": {}, "notes": {}, "backend": "auto"},
        )
        _log.info("%s by %s: %d jobs", policy.name, self._session.solver.name, len(trace.jobs))

    @property
    def index(self) -> int:
        """The number of the round that comes next."""
        return self._ahead.changes[self._told - 1].index + 1 if self._ahead and self._told else self._at.round

    def stop(self) -> None:
        """Let the run end after the round that it is in; a handler of signals may call it."""
        self._stopped = True

    def snapshot(self) -> Snapshot:
        """Return how to go on from here."""
        at = self._at
        if self._told:  # what was played ahead is played again, up to here
            at = self._unasked_from(at, self.index).after
        present = dict(at.states.states(at.now))
        return Snapshot(at.round, at.now, at.arrived, present, at.held, at.state, at.started, at.idle)

    def __iter__(self) -> Iterator[Changes]:
        """Yield what changes, in rounds where something does, or once a second. Errors: `WrongReturn`, `NotSolved`."""
        return self._changes(BEAT)

    def rounds(self) -> Iterator[Round]:
        """Yield the whole record of every round in which the policy is asked, which is each with ``ask``."""
        whole = WholeRounds(self._policy.name, self._trace, self._cluster, self.snapshot())
        for changes in self._changes(-1):
            record = whole.round(changes)
            _log.debug("%r in %.3f s", record, record.seconds)
            yield replace(record, after=replace(record.after, state=self._at.state))

    def _changes(self, beat: float) -> Iterator[Changes]:
        """Yield what changes, in rounds where something does, or after so many seconds."""
        last = perf_counter()
        while not self._stopped:
            ahead = self._unasked_from(self._at) if self._ahead is None else self._ahead
            if self._told < len(ahead.changes):
                self._ahead, self._told = ahead, self._told + 1
                yield ahead.changes[self._told - 1]
                last = perf_counter()
                continue
            # in one step: an exception from outside comes before these rounds, or after they have been told
            self._done, self._at, self._ahead, self._told = self._done + ahead.rounds, ahead.after, None, 0
            if self._rounds is not None and self._done >= self._rounds:
                return
            if ahead.changes:
                continue
            played = self._played(self._at)
            if played is None:
                return
            after, changes = played
            told = changes.anything or self._stopped or perf_counter() - last > beat
            self._at, self._done = after._replace(seconds=0.0) if told and after.seconds else after, self._done + 1
            if told:
                yield changes
                last = perf_counter()

    def _played(self, before: _Moment) -> tuple[_Moment, Changes] | None:
        """Return the next round's end, and its changes, if there are any; None where no round is left."""
        at = self._skipped(before)
        if at is None:
            return None
        fresh, up = range(at.arrived, bisect_right(self._arrival, at.now, lo=at.arrived)), self._hosts.up(at.now)
        if self._length is not None and not fresh and up is at.up and at.stands is not None and at.now < at.stands:
            changes = Changes(at.round, at.now, at.now + self._length, fresh)
            states = at.states.going_on(at.now, changes.end)
        else:
            at, states, changes = self._asked(at, fresh, up)
        end, failing = changes.end, self._hosts.failing(at.now, changes.end)
        if self._varying:
            self._remember(at.states.rows, changes.placed)
        states, completed, lost = states.advanced(at.now, end, failing, self._courses, self._trace.jobs.work)
        calm = not fresh and not states.running.any() and not completed and not self._hosts.change(at.now, end)
        after = at._replace(
            round=at.round + 1,
            now=end,
            arrived=fresh.stop,
            states=states,
            idle=at.idle + 1 if calm else 0,
            up=up,
            stands=None if lost or (completed and not at.settled) else at.stands,
        )
        if calm:
            self._refuse_stall(after)
        failed, back = ((), ()) if up is before.up else step.host_changes(before.up, up)
        changes = replace(
            changes, arrived=fresh, failed=failed, back=back, completed=completed, lost=lost, seconds=at.seconds
        )
        return after, changes

    def _remember(self, present: Array, placed: Sequence[Placed]) -> None:
        """Keep the courses of those who come to other GPUs, and forget those of jobs that have long been done."""
        if len(self._courses) > 2 * len(present) + 100:
            self._courses = {row: self._courses[row] for row in present.tolist() if row in self._courses}
        self._courses |= {each.row: each.course for each in placed}

    def _unasked_from(self, at: _Moment, to: int | None = None) -> _Ahead:
        """Return the rounds that come in which nobody is asked, played in one step; those before round ``to`` only."""
        unasked, start = self._unasked, None if at.stands is None else self._skipped(at)
        if unasked is None or start is None or start.schedule is None or start.stands is None:
            return _Ahead([], 0, at)
        if self._hosts.up(start.now) is not start.up:
            return _Ahead([], 0, at)
        most = MOST_AT_ONCE if self._rounds is None else min(MOST_AT_ONCE, self._rounds - self._done)
        changes, states, rounds, now = unasked.play(
            start.states,
            start.schedule,
            index=start.round,
            now=start.now,
            arrived=start.arrived,
            stands=start.stands,
            until=self._hosts.next_change(start.now),
            settled=start.settled,
            come=bool(start.up.all()),
            most=most if to is None else to - start.round,
            again=to is not None,
        )
        if not rounds:
            return _Ahead([], 0, at)
        held, arrived = start.held, changes[-1].arrived.stop if changes else start.arrived
        if changes and start.seconds:
            changes[0] = replace(changes[0], seconds=start.seconds)
        for each in changes if self._datasets else ():
            held = step.held(held, each.placed, self._datasets)
        after = start._replace(round=start.round + rounds, now=now, arrived=arrived, states=states, held=held, idle=0)
        return _Ahead(changes, rounds, after._replace(seconds=0.0) if changes else after)

    def _skipped(self, at: _Moment) -> _Moment | None:
        """Return the beginning of the next round in which jobs can run or have just come; None if there is none."""
        arrived, rows = at.arrived, at.states.rows
        left = arrived < len(self._arrival)
        if (left and self._arrival[arrived] <= at.now) or np.count_nonzero(self._fits[rows]):
            return at
        if not left:
            return None
        if self._length is None:
            return at._replace(now=self._arrival[arrived])
        skipped = step.rounds_until(self._arrival[arrived], at.now, self._length)
        return at._replace(round=at.round + skipped, now=at.now + skipped * self._length)

    def _asked(self, at: _Moment, fresh: range, up: Array) -> tuple[_Moment, JobStates, Changes]:
        """Ask the policy; return the moment with its answer, who runs in the round, and what is new by it."""
        before = at.states.joined(JobStates.new(fresh, self._trace.jobs, at.now)) if fresh else at.states
        states = before if up is at.up else before.on_hosts(up)
        queue = self._queue(at, states, up, fresh.stop)
        schedule, seconds = self._decided(at, queue)
        if self._length is None:
            schedule = replace(schedule, queue=queue.until(step.end_of(schedule, self._mechanics)))
        whole = not self._stays_same or at.schedule is None
        after, changes = step.carried_out(schedule, states, before, self._mechanics, whole=whole)
        said = step.said(schedule, states.rows)
        new = said if at.said is None else {name: value for name, value in said.items() if at.said[name] != value}
        moment = at._replace(
            held=step.held(at.held, changes.placed, self._datasets),
            state=schedule.state,
            started=True,
            schedule=schedule,
            asked=states.rows,
            stands=None if self._ask else schedule.stands,
            settled=schedule.settled,
            said=said,
            seconds=at.seconds + seconds,
        )
        why = step.unschedulable(queue, states.rows, len(fresh))
        return moment, after, replace(changes, unschedulable=why, **new) if why or new else changes

    def _queue(self, at: _Moment, states: JobStates, up: Array, arrived: int) -> Queue:
        """Return the queue of those jobs, when so many have ``arrived``."""
        last = None if at.schedule is None else at.schedule.queue
        same = last is not None and states.rows is at.asked
        jobs = last.jobs if last is not None and same else self._trace.jobs.take(states.rows)
        length = at.now * 0 if self._length is None else self._length
        queue = states.queue(self._cluster, jobs, index=at.round, now=at.now, length=length, up=up, held=at.held)
        if last is not None:
            queue.recall(last)
        if not same:
            vars(queue).update({name: getattr(self._whole, name)[states.rows] for name in ("suits", "fits")})
        if self._length is None:  # until the next event that is known
            return queue.until(min([*self._arrival[arrived : arrived + 1], self._hosts.next_change(at.now)]))
        return queue

    def _decided(self, at: _Moment, queue: Queue) -> tuple[Schedule, float]:
        """Return what the policy decides, and how long that took."""
        begun = perf_counter()
        # a fresh session each round, so that a run continues from a snapshot as if it had not stopped
        state = at.state if at.started else None
        told = queue.as_told()
        schedule = decide(self._policy, told, state=state, at=self._session.next())
        seconds = perf_counter() - begun
        if schedule.queue is not told:
            raise WrongReturn(f"{schedule.policy}, round {queue.index}: the schedule is of another queue")
        return schedule if told is queue else replace(schedule, queue=queue), seconds

    def _refuse_stall(self, after: _Moment) -> None:
        """Raise `NotSolved` where nothing will ever happen."""
        names, rows = self._trace.jobs.names, after.states.rows
        waiting = (names[row] for row in rows[self._fits[rows]].tolist())
        now = Snapshot(after.round, after.now, after.arrived, {}, after.held, idle=after.idle)
        step.refuse_stall(now, self._trace, self._policy.name, waiting)

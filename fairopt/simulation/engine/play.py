"""`Engine`: a trace on a cluster under a policy, what changed round after round."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np

from fairopt.backends import Method, Solver
from fairopt.policy import BrokenSchedule, Policy, Schedule, decide, session
from fairopt.problem import Cluster, Queue, Spots, Trace
from fairopt.problem.queue import any_type
from fairopt.program import INFINITY, Array, Number
from fairopt.simulation.changes import BEAT, Changes
from fairopt.simulation.engine.decided import Decided, carried_out, going_on
from fairopt.simulation.engine.hosts import Hosts
from fairopt.simulation.engine.newcomers import Newcomers
from fairopt.simulation.engine.standing import Standing
from fairopt.simulation.mechanics import Mechanics, length_of
from fairopt.simulation.record import Snapshot
from fairopt.simulation.run import begin, check_goes_on, check_matches, refuse_stall, rounds_until

_log = logging.getLogger(__name__)

#: Rounds that are played in one step, at the most: who listens wants to say how far the run is.
MOST_AT_ONCE = 1000


class _Moment(NamedTuple):
    """Where a run is between two rounds: what a snapshot holds, and what saves work in the next round.

    ``up`` (H,): the hosts that worked in the round before. ``schedule``: what was decided last, for the rows ``asked``;
    it ``stands`` until then, unless something happens; ``settled``, also when jobs are done. ``said``: the costs, notes
    and backend that were told last, None if that is not known. ``seconds``: what deciding took since the last changes.
    """

    round: int
    now: Number
    arrived: int
    standing: Standing
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


class Engine:
    """A run of a policy over a trace; iterate it for the `Changes` of the rounds in which something changed.

    The arguments, the errors and what happens are those of `fairopt.simulation.run`, which is the referee: whoever
    runs, moves or completes does so at the same time. Time and memory follow the jobs present. A round in which nothing
    can change, as the `stands` of the last schedule says, is played without asking the policy; ``ask`` True asks it in
    every round. A policy's state is then that of the last round in which it was asked.

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
        backend: Solver | Method | None = None,
        exact: bool = False,
        rounds: int | None = None,
        after: Snapshot | None = None,
        ask: bool = False,
    ) -> None:
        self._number = trace.jobs.arithmetic.number
        self._length: Number = self._number(length_of(length))
        check_matches(trace, cluster)
        if after is not None:
            check_goes_on(after, trace, cluster)
        self._policy, self._trace, self._cluster = policy, trace, cluster.as_(self._number)
        self._mechanics = mechanics or Mechanics()
        kind = type(self._mechanics)
        # another model may change a job's speed or loading while it stays where it is
        self._stays_same = kind.speed is Mechanics.speed and kind.setup is Mechanics.setup
        self._ask = ask or not self._stays_same
        self._session = session(policy, backend, exact=exact)
        self._rounds, self._done, self._stopped = rounds, 0, False
        self._arrival: list[Number] = trace.jobs.arrival.tolist()
        self._hosts = Hosts(self._cluster, trace)
        self._whole = Queue.fresh(trace.jobs, self._cluster, length=self._length)
        self._fits = any_type(self._whole.fits)
        self._newcomers = Newcomers(self._whole, self._mechanics)
        self._datasets = any(trace.jobs.dataset)
        first = begin(self._cluster, self._number) if after is None else after
        self._at = _Moment(
            round=first.index,
            now=first.now,
            arrived=first.arrived,
            standing=Standing.of(first.present, trace.jobs, self._cluster, self._number),
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
        return self._at.round

    def stop(self) -> None:
        """Let the run end after the round that it is in; a handler of signals may call it."""
        self._stopped = True

    def snapshot(self) -> Snapshot:
        """Return how to go on from here, as `fairopt.simulation.run` would."""
        at = self._at
        return Snapshot(
            index=at.round,
            now=at.now,
            arrived=at.arrived,
            present=dict(at.standing.states(at.now)),
            held=at.held,
            state=at.state,
            started=at.started,
            idle=at.idle,
        )

    def __iter__(self) -> Iterator[Changes]:
        """Yield what changes, in rounds where something does, or once a second. Errors: `BrokenSchedule`, `Stalled`."""
        said = perf_counter()
        while not self._stopped and (self._rounds is None or self._done < self._rounds):
            quiet = self._quiet(self._at)
            self._at, self._done = quiet, self._done + quiet.round - self._at.round
            if self._rounds is not None and self._done >= self._rounds:
                return
            played = self._played(quiet)
            if played is None:
                return
            after, changes = played
            told = changes.anything or self._stopped or perf_counter() - said > BEAT
            # in one step: an exception from outside comes before this round, or after it has been told
            self._at, self._done = after._replace(seconds=0.0) if told and after.seconds else after, self._done + 1
            if told:
                yield changes
                said = perf_counter()

    def _played(self, before: _Moment) -> tuple[_Moment, Changes] | None:
        """Return the next round's end, and its changes, if there are any; None where no round is left."""
        at = self._skipped(before)
        if at is None:
            return None
        fresh = range(at.arrived, bisect_right(self._arrival, at.now, lo=at.arrived))
        up, end = self._hosts.up(at.now), at.now + self._length
        if not fresh and up is at.up and at.stands is not None and at.now < at.stands:
            decided = going_on(at.standing, at.now, end)
        else:
            at, decided = self._asked(at, fresh, up)
        standing, completed, lost = decided.standing.advanced(at.now, end, self._hosts.failing(at.now, end))
        calm = not fresh and not decided.standing.running.any() and not self._hosts.change(at.now, end)
        after = at._replace(
            round=at.round + 1,
            now=end,
            arrived=fresh.stop,
            standing=standing,
            idle=at.idle + 1 if calm else 0,
            up=up,
            stands=None if lost or (completed and not at.settled) else at.stands,
        )
        if calm:
            self._refuse_stall(after)
        failed: tuple[int, ...] = ()
        back: tuple[int, ...] = ()
        if up is not before.up:
            failed, back = (tuple(np.flatnonzero(each).tolist()) for each in (before.up & ~up, up & ~before.up))
        changes = Changes(
            index=at.round,
            begin=at.now,
            end=end,
            arrived=fresh,
            failed=failed,
            back=back,
            unschedulable=decided.unschedulable,
            stopped=decided.stopped,
            placed=decided.placed,
            leases=decided.leases,
            completed=completed,
            lost=lost,
            **decided.says,
            seconds=at.seconds,
        )
        return after, changes

    def _quiet(self, at: _Moment) -> _Moment:
        """Return the end of the rounds that come in which nothing happens and nobody is asked, in one step."""
        if at.stands is None or self._hosts.up(at.now) is not at.up:
            return at
        coming = self._arrival[at.arrived] if at.arrived < len(self._arrival) else INFINITY
        until = min(at.stands, coming, self._hosts.next_change(at.now))
        most = MOST_AT_ONCE if self._rounds is None else min(MOST_AT_ONCE, self._rounds - self._done)
        standing, rounds, now = at.standing.undisturbed(at.now, self._length, until, most)
        return at._replace(round=at.round + rounds, now=now, standing=standing, idle=0) if rounds else at

    def _skipped(self, at: _Moment) -> _Moment | None:
        """Return the beginning of the next round in which jobs can run or have just come; None if there is none."""
        arrived, rows = at.arrived, at.standing.rows
        left = arrived < len(self._arrival)
        if (left and self._arrival[arrived] <= at.now) or np.count_nonzero(self._fits[rows]):
            return at
        if not left:
            return None
        skipped = rounds_until(self._arrival[arrived], at.now, self._length)
        return at._replace(round=at.round + skipped, now=at.now + skipped * self._length)

    def _asked(self, at: _Moment, fresh: range, up: Array) -> tuple[_Moment, Decided]:
        """Ask the policy; return the moment with its answer, and what is new by it."""
        if (alone := self._asked_alone(at, fresh, up)) is not None:
            return alone
        before = at.standing.joined(Standing.new(fresh, self._trace.jobs, at.now))
        standing = before if up is at.up else before.on_hosts(up)
        queue = self._queue(at, standing, up)
        schedule, seconds = self._decided(at, queue)
        whole = not self._stays_same or at.schedule is None
        decided = carried_out(schedule, standing, before, self._mechanics, whole=whole)
        said = {
            "costs": dict(schedule.costs),
            "notes": {int(standing.rows[row]): text for row, text in schedule.notes.items()},
            "backend": schedule.backend,
        }
        says = said if at.said is None else {name: value for name, value in said.items() if at.said[name] != value}
        moment = at._replace(
            held=self._held(at.held, decided),
            state=schedule.state,
            started=True,
            schedule=schedule,
            asked=standing.rows,
            stands=None if self._ask else schedule.stands,
            settled=schedule.settled,
            said=said,
            seconds=at.seconds + seconds,
        )
        return moment, decided._replace(unschedulable=_unschedulable(queue, standing.rows, len(fresh)), says=says)

    def _asked_alone(self, at: _Moment, fresh: range, up: Array) -> tuple[_Moment, Decided] | None:
        """Ask the policy about those who just came only; None where it is to be asked about all."""
        if not (at.settled and fresh and up is at.up and at.stands is not None and at.now < at.stands):
            return None
        if at.schedule is not None and up.all():
            decided = self._newcomers.placed(at.schedule, at.standing, fresh, at.now, at.now + self._length)
            if decided is not None:
                return at._replace(held=self._held(at.held, decided)) if self._datasets else at, decided
        new, held = Standing.new(fresh, self._trace.jobs, at.now), at.standing.held(len(up))
        able = self._fits[new.rows]
        queue = self._queue(at, new, up)
        queue.beside(held)
        if new.gpus[able].sum() > queue.room.sum():
            return None
        schedule, seconds = self._decided(at, queue)
        if schedule.stands is None or not schedule.settled or len(schedule.placements) < np.count_nonzero(able):
            return None
        decided = carried_out(schedule, new, new, self._mechanics, whole=True)
        moment = at._replace(
            held=self._held(at.held, decided), stands=min(at.stands, schedule.stands), seconds=at.seconds + seconds
        )
        there = going_on(at.standing, at.now, queue.end).standing.joined(decided.standing)
        return moment, decided._replace(standing=there, unschedulable=_unschedulable(queue, new.rows, len(fresh)))

    def _queue(self, at: _Moment, standing: Standing, up: Array) -> Queue:
        """Return the queue of those who are ``standing``."""
        last = None if at.schedule is None else at.schedule.queue
        same = last is not None and standing.rows is at.asked
        queue = Queue(
            cluster=self._cluster,
            jobs=last.jobs if last is not None and same else self._trace.jobs.take(standing.rows),
            index=at.round,
            now=at.now,
            length=self._length,
            remaining=standing.remaining,
            attained=standing.attained,
            setup=standing.setup,
            last=cast("Sequence[Spots]", standing.last),
            running=standing.running,
            lease=standing.leases(at.now),
            started=cast("Sequence[Number | None]", standing.started),
            up=up,
            held=at.held,
        )
        vars(queue).update(last_host=standing.host, last_type=standing.gpu_type)
        vars(queue).update({name: getattr(self._whole, name)[standing.rows] for name in ("suits", "fits")})
        if last is not None:
            queue.recall(last)
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
            raise BrokenSchedule(f"{schedule.policy}, round {queue.index}: the schedule is of another queue")
        return schedule if told is queue else replace(schedule, queue=queue), seconds

    def _held(self, held: tuple[frozenset[str], ...], decided: Decided) -> tuple[frozenset[str], ...]:
        """Return the datasets on each host once those who are placed have read theirs."""
        if not self._datasets:
            return held
        new = list(held)
        for each in decided.placed:
            name = self._trace.jobs.dataset[each.row]
            for host, _ in each.spots if name else ():
                new[host] |= {name}
        return tuple(new)

    def _refuse_stall(self, after: _Moment) -> None:
        """Raise `Stalled` as the referee does."""
        names, rows = self._trace.jobs.names, after.standing.rows
        waiting = (names[row] for row in rows[self._fits[rows]].tolist())
        stands = Snapshot(after.round, after.now, after.arrived, {}, after.held, idle=after.idle)
        refuse_stall(stands, self._trace, self._policy.name, waiting)


def _unschedulable(queue: Queue, rows: Array, fresh: int) -> dict[int, str]:
    """Return why the last ``fresh`` jobs of a queue, which just came, run on no type; by ``rows`` in the trace."""
    return {int(rows[row]): why for row, why in queue.unschedulable.items() if row >= len(rows) - fresh}

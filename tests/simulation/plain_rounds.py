"""The oracle of the engine: the game played plainly, over all jobs present in each round, one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from time import perf_counter
from typing import Any

import numpy as np
from plain_work import walked

from fairopt.backends import Backend, Method, Session
from fairopt.errors import WrongReturn
from fairopt.policy import Policy, Schedule, decide, session
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Cluster, Outage, Queue, Spots, Trace
from fairopt.program import Number, cast, objects
from fairopt.simulation import Change, JobRun, JobState, Mechanics, Round, Snapshot, begin
from fairopt.simulation.engine import BEAT
from fairopt.simulation.mechanics import length_of
from fairopt.simulation.record import Changes, Placed
from fairopt.simulation.rounds import check_goes_on, check_matches, refuse_stall


def run(
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
) -> Iterator[Round]:
    """Yield the record of each round, as `fairopt.simulation.run` does, but for its ``changes``."""
    number: type = Fraction if trace.jobs.exact else float
    step = length_of(length)
    check_matches(trace, cluster)
    if after is not None:
        check_goes_on(after, trace, cluster)
    own, kept = cluster.as_(number), mechanics or Mechanics()
    snapshot = begin(own, number) if after is None else after
    at = session(policy, backend, exact=exact)
    done = 0
    while rounds is None or done < rounds:
        coming = next_queue(snapshot, trace, own, number(step))
        if coming is None:
            return
        moved, queue = coming
        schedule, seconds = ask(policy, moved, queue, at)
        record = replace(advance(moved, trace, schedule, kept), seconds=seconds)
        refuse_stall(
            record.after, trace, record.policy, (job for job in record.waiting if job not in record.unschedulable)
        )
        yield record
        snapshot, done = record.after, done + 1


def ask(policy: Policy, snapshot: Snapshot, queue: Queue, at: Session) -> tuple[Schedule, float]:
    """Return what ``policy`` decides on the ``queue`` after ``snapshot``, and the seconds that it took."""
    begun = perf_counter()
    # a fresh session each round, so that a run continues from a snapshot as if it had not stopped
    told = queue.as_told()
    schedule = decide(policy, told, state=snapshot.state if snapshot.started else None, at=at.next())
    seconds = perf_counter() - begun
    if schedule.queue is not told:
        raise WrongReturn(f"{schedule.policy}, round {queue.index}: the schedule is of another queue")
    return replace(schedule, queue=queue), seconds


def next_queue(snapshot: Snapshot, trace: Trace, cluster: Cluster, length: Number) -> tuple[Snapshot, Queue] | None:
    """Return the next round in which jobs can run or have just come, as snapshot and queue; None if there is none."""
    queue = present(snapshot, trace, cluster, length)
    if len(queue.unschedulable) < len(queue) or len(queue) > len(snapshot.present):
        return snapshot, queue
    if snapshot.arrived == len(trace.jobs):
        return None
    skipped = rounds_until(trace.jobs.arrival[snapshot.arrived], snapshot.now, length)
    moved = replace(snapshot, index=snapshot.index + skipped, now=snapshot.now + skipped * length)
    return moved, present(moved, trace, cluster, length)


def rounds_until(coming: Number, now: Number, length: Number) -> int:
    """Return how many rounds from ``now`` on are over when a job is ``coming``."""
    skipped = -floor(-(coming - now) / length)
    # a quotient of floats may be off by one round in either direction
    while skipped > 1 and now + (skipped - 1) * length >= coming:
        skipped -= 1
    while now + skipped * length < coming:
        skipped += 1
    return skipped


def present(snapshot: Snapshot, trace: Trace, cluster: Cluster, length: Number) -> Queue:
    """Return the queue of the round after ``snapshot``: the jobs present, new arrivals included."""
    jobs, now = trace.jobs, snapshot.now
    arrived = bisect_right(jobs.arrival, now, lo=snapshot.arrived)
    fresh = range(snapshot.arrived, arrived)
    rows = [*snapshot.present, *fresh]
    there = jobs.take(rows)
    number: type = Fraction if jobs.exact else float
    zero = number(0)
    new = [JobState(jobs.work[row], zero, zero, (), False, now, None) for row in fresh]
    standing = [*snapshot.present.values(), *new]
    down = {outage.host for outage in trace.outages if outage.begin <= now < outage.end}
    up = np.array([host not in down for host in cluster.hosts])
    columns = {
        name: cast(objects(getattr(each, name) for each in standing), number)
        for name in ("remaining", "attained", "setup", "lease")
    }
    # jobs on a failed host neither continue nor hold a lease
    alive = [each.running and all(up[host] for host, _ in each.last) for each in standing]
    columns["lease"][~np.array(alive, dtype=bool)] = now
    return Queue(
        cluster=cluster,
        jobs=there,
        index=snapshot.index,
        now=now,
        length=length,
        last=tuple(each.last for each in standing),
        running=np.array(alive, dtype=bool),
        started=tuple(each.started for each in standing),
        up=up,
        held=snapshot.held,
        **columns,
    )


def advance(snapshot: Snapshot, trace: Trace, schedule: Schedule, mechanics: Mechanics) -> Round:
    """Return the record of the round in which ``schedule`` is carried out. Errors: `WrongReturn`."""
    refuse_broken(schedule)
    queue = schedule.queue
    jobs, hosts = queue.jobs, queue.cluster.hosts
    arrived = snapshot.arrived + len(queue) - len(snapshot.present)
    fresh = range(snapshot.arrived, arrived)
    rows = [*snapshot.present, *fresh]
    held = list(snapshot.held)
    failing = [outage for outage in trace.outages if queue.now < outage.begin < queue.end]
    remaining, attained, setup = queue.remaining.tolist(), queue.attained.tolist(), queue.setup.tolist()
    end, leased = queue.end, queue.leased
    ran: list[JobRun] = []
    after: dict[int, JobState] = {}
    for at, row in enumerate(rows):
        spots = schedule.placements.get(at, ())
        if not spots:
            after[row] = JobState(remaining[at], attained[at], setup[at], queue.last[at], False, end, queue.started[at])
            continue
        unsaid = queue.lease[at] if at in leased else end
        one, next_ = play(queue, at, spots, failing, schedule.leases.get(at, unsaid), mechanics)
        ran.append(one)
        if not one.completed:
            after[row] = next_
        if jobs.dataset[at]:
            for host, _ in spots:
                held[host] |= {jobs.dataset[at]}
    return Round(
        index=queue.index,
        begin=queue.now,
        end=queue.end,
        arrived=jobs.names[len(snapshot.present) :],
        ran=tuple(ran),
        waiting=tuple(jobs.names[at] for at in range(len(queue)) if at not in schedule.placements),
        unschedulable={jobs.names[at]: why for at, why in queue.unschedulable.items()},
        down=tuple(host for host, works in zip(hosts, queue.up, strict=True) if not works),
        usable=int(queue.capacity.sum()),
        costs=dict(schedule.costs),
        notes={jobs.names[at]: text for at, text in schedule.notes.items()},
        policy=schedule.policy,
        backend=schedule.backend,
        after=Snapshot(
            index=queue.index + 1,
            now=queue.end,
            arrived=arrived,
            present=after,
            held=tuple(held),
            state=schedule.state,
            started=True,
            idle=0 if ran or fresh or changes_after(queue, trace) else snapshot.idle + 1,
        ),
        changes=Changes(queue.index, queue.now, queue.end, fresh),
    )


def play(
    queue: Queue, row: int, spots: Spots, failing: Sequence[Outage], lease: Number, mechanics: Mechanics
) -> tuple[JobRun, JobState]:
    """Return a job's run on ``spots`` in this round, where outages are ``failing``, and its state afterwards."""
    hosts, types = queue.cluster.hosts, queue.cluster.types
    setup, speed = mechanics.setup(queue, row, spots), mechanics.speed(queue, row, spots)
    complete = queue.now + setup + walked(queue, row, spots, mechanics, None)
    end = min(complete, queue.end)
    names = {hosts[host] for host, _ in spots}
    fails = min((outage.begin for outage in failing if outage.host in names and outage.begin < end), default=None)
    lost = fails is not None
    end = end if fails is None else fails
    zero = queue.now * 0
    spent = min(setup, end - queue.now)
    completed = not lost and complete <= queue.end
    did = queue.remaining[row] if completed else walked(queue, row, spots, mechanics, end - queue.now - spent)
    progress = zero if lost else did
    ran = JobRun(
        job=queue.jobs.names[row],
        spots=tuple((hosts[host], int(gpus)) for host, gpus in spots),
        types=tuple(types[gpu_type] for gpu_type in queue.gpu_types(spots)),
        before=tuple(types[gpu_type] for gpu_type in queue.gpu_types(queue.last[row])),
        change=change(queue, row, spots),
        begin=queue.now,
        end=end,
        setup=spent,
        speed=speed,
        progress=progress,
        remaining=queue.remaining[row] - progress,
        lease=lease,
        completed=completed,
        lost=lost,
    )
    started = queue.started[row]
    return ran, JobState(
        remaining=ran.remaining,
        attained=queue.attained[row] + ran.gpus * (end - queue.now),
        setup=setup if lost else setup - spent,
        last=spots,
        running=not lost,
        lease=queue.end if lost else lease,
        started=queue.now if started is None else started,
    )


def change(queue: Queue, row: int, spots: Spots) -> Change:
    """Return how a job comes to ``spots``."""
    last = queue.last[row]
    if not last:
        return Change.START
    if queue.running[row] and spots == last:
        return Change.STAY
    return Change.RESUME if {host for host, _ in spots} <= {host for host, _ in last} else Change.MIGRATE


def changes_after(queue: Queue, trace: Trace) -> bool:
    """Whether a host fails or comes back after the round of ``queue`` has begun, and before the next one has."""
    return any(queue.now < moment <= queue.end for each in trace.outages for moment in (each.begin, each.end))


@dataclass
class _Running:
    """How a job that runs goes on, unless something is said of it."""

    lease: Number
    setup: Number
    speed: Number | None  # None: not known


class Differences:
    """What a round adds to what the rounds before it say; it remembers what the last one was like.

    ``after`` is the snapshot that rounds of ``length`` go on from, None for the beginning. What the policy said before
    is not in a snapshot: it is said again.
    """

    def __init__(
        self, trace: Trace, cluster: Cluster, after: Snapshot | None = None, length: Number | None = None
    ) -> None:
        self._row = {name: row for row, name in enumerate(trace.jobs.names)}
        self._host = {name: host for host, name in enumerate(cluster.hosts)}
        self._running: dict[int, _Running] = {}
        self._arrived = 0
        self._down: frozenset[int] = frozenset()
        self._said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
        if after is not None and after.index and length is not None:
            before = after.now - length
            down = (each for each in trace.outages if each.begin <= before < each.end)
            self._down, self._arrived = frozenset(self._host[each.host] for each in down), after.arrived
            there = ((row, one) for row, one in after.present.items() if one.running)
            self._running = {row: _Running(one.lease, one.setup, None) for row, one in there}
            self._said = dict.fromkeys(self._said)

    def of(self, record: Round, seconds: float | None = None) -> Changes:
        """Return what changed in a round; ``seconds`` are what deciding took since the last changes that were used."""
        ran = {self._row[each.job]: each for each in record.ran}
        down, before = frozenset(self._host[name] for name in record.down), self._down
        first, self._arrived, self._down = self._arrived, record.after.arrived, down
        told = {row: each.lease for row, each in ran.items() if each.lease != self._unsaid(row, each, record)}
        stopped = tuple(sorted(self._running.keys() - ran.keys()))
        placed = tuple(self._placed(row, each, record) for row, each in ran.items() if not self._stays(row, each))
        self._running = {
            row: _Running(each.lease, record.after.present[row].setup, each.speed)
            for row, each in ran.items()
            if not each.completed and not each.lost
        }
        arriving = ((name, row) for name in record.arrived if (row := self._row[name]) >= first)
        notes = {self._row[name]: text for name, text in record.notes.items()}
        said: dict[str, Any] = {"costs": dict(record.costs), "notes": notes, "backend": record.backend}
        new = {key: value for key, value in said.items() if value != self._said[key]}
        self._said |= new
        return Changes(
            index=record.index,
            begin=record.begin,
            end=record.end,
            arrived=range(first, record.after.arrived),
            failed=tuple(sorted(down - before)),
            back=tuple(sorted(before - down)),
            unschedulable={row: record.unschedulable[name] for name, row in arriving if name in record.unschedulable},
            stopped=stopped,
            placed=placed,
            leases=told,
            completed={row: each.end for row, each in ran.items() if each.completed},
            lost={row: each.end for row, each in ran.items() if each.lost},
            seconds=record.seconds if seconds is None else seconds,
            **new,
        )

    def _stays(self, row: int, ran: JobRun) -> bool:
        """Whether a job goes on as it did; a model of a cluster of one's own may slow it down, or let it load again."""
        before = self._running.get(row)
        if ran.change is not Change.STAY or before is None or before.speed != ran.speed:
            return False
        return bool(ran.setup == min(before.setup, ran.end - ran.begin))

    def _placed(self, row: int, ran: JobRun, record: Round) -> Placed:
        after = record.after.present.get(row)
        setup = ran.setup if after is None else after.setup if ran.lost else ran.setup + after.setup
        spots: Spots = tuple((self._host[name], gpus) for name, gpus in ran.spots)
        return Placed(row, spots, ran.change, setup, ran.speed)

    def _unsaid(self, row: int, ran: JobRun, record: Round) -> Number:
        """Return the lease of a job of which nothing is said: the one that it has, else the round."""
        before = self._running.get(row)
        goes_on = ran.change is Change.STAY and before is not None and before.lease > record.begin
        return before.lease if before is not None and goes_on else record.end


class Referee:
    """A run with the interface of `fairopt.simulation.engine.Engine`, by the plain loop."""

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
    ) -> None:
        self._rounds = run(
            policy,
            trace,
            cluster,
            length=length,
            mechanics=mechanics,
            backend=backend,
            exact=exact,
            rounds=rounds,
            after=after,
        )
        number: type = Fraction if trace.jobs.exact else float
        self._differences = Differences(trace, cluster, after, number(length_of(length)))
        self._after = begin(cluster, number) if after is None else after
        self._stopped = False

    @property
    def index(self) -> int:
        """The round that comes next."""
        return self._after.index

    def __iter__(self) -> Iterator[Changes]:
        """Yield what changes; also a round without a change where the last one was long ago, and the last of all."""
        last: Changes | None = None
        seconds, said = 0.0, perf_counter()
        for record in self._rounds:
            self._after = record.after
            seconds += record.seconds
            last = self._differences.of(record, seconds)
            if last.anything or self._stopped or perf_counter() - said > BEAT:
                yield last
                last, seconds, said = None, 0.0, perf_counter()
            if self._stopped:
                break
        if last is not None:
            yield last

    def snapshot(self) -> Snapshot:
        """Return how to go on after the last round."""
        return self._after

    def stop(self) -> None:
        """Let the run end after the round that it is in."""
        self._stopped = True

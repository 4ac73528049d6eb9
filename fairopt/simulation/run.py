"""`run`: a trace on a cluster under a policy, round after round."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import floor
from time import perf_counter

import numpy as np

from fairopt.backends import Method, Session, Solver
from fairopt.errors import BadInput, FairoptError
from fairopt.policy import BrokenSchedule, Policy, Schedule, decide, session
from fairopt.policy.policy import require_policy
from fairopt.policy.schedule import refuse_broken
from fairopt.problem.cluster import Cluster
from fairopt.problem.numbers import shown
from fairopt.problem.queue import Queue, Spots
from fairopt.problem.trace import Outage, Trace
from fairopt.program import INFINITY, Number, cast, objects
from fairopt.simulation.mechanics import Mechanics, length_of
from fairopt.simulation.record import Change, JobRun, JobState, Round, Snapshot

_log = logging.getLogger(__name__)

#: After this many rounds in which nothing ran and nothing changed, the run is stalled.
PATIENCE = 10_000


class Stalled(FairoptError, RuntimeError):
    """Jobs wait, but nothing runs and nothing will change; the message names the jobs.

    >>> issubclass(Stalled, RuntimeError)
    True
    """


def run(
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
) -> Iterator[Round]:
    """Yield the record of each round until all jobs that can run are completed, or ``rounds`` of them are done.

    ``length`` is that of a round, in the trace's unit of time. ``backend`` None means the policy's best way; ``exact``
    asks for one in rational numbers. ``after`` continues from a snapshot of the same trace, cluster and policy: the
    rounds are those that the first run would have yielded. Rounds in which no job could run are skipped, but counted.
    Jobs that fit no type are in every record's ``unschedulable`` from their arrival; a run ends when only they are
    left.

    Numbers are those of ``trace``: Fractions, or floats after ``trace.as_(float)``.
    Errors: `BadInput` where trace and cluster name different types or hosts; `BrokenSchedule`; `Stalled`.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> len(record.ran), record.waiting
    (1, ())
    """
    require_policy(policy)
    number = trace.jobs.arithmetic.number
    step = length_of(length)
    check_matches(trace, cluster)
    if after is not None:
        check_goes_on(after, trace, cluster)
    own, kept = cluster.as_(number), mechanics or Mechanics()
    snapshot = begin(own, number) if after is None else after
    at = session(policy, backend, exact=exact)
    _log.info("%s by %s: %d jobs on %d hosts", policy.name, at.solver.name, len(trace.jobs), len(cluster.hosts))
    done = 0
    while rounds is None or done < rounds:
        coming = next_queue(snapshot, trace, own, number(step))
        if coming is None:
            return
        moved, queue = coming
        schedule, seconds = ask(policy, moved, queue, at)
        record = replace(advance(moved, trace, schedule, kept), seconds=seconds)
        _log.debug("%r in %.3f s", record, seconds)
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
        raise BrokenSchedule(f"{schedule.policy}, round {queue.index}: the schedule is of another queue")
    return replace(schedule, queue=queue), seconds


def begin(cluster: Cluster, number: type = Fraction) -> Snapshot:
    """Return the snapshot before anything happened.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> begin(cluster).index
    0
    """
    return Snapshot(0, number(0), 0, {}, (frozenset(),) * len(cluster.hosts))


def check_matches(trace: Trace, cluster: Cluster) -> None:
    """Refuse a trace whose throughputs are for other types, or whose outages are of other hosts."""
    if trace.jobs.types != cluster.types:
        raise BadInput(
            f"throughputs for {', '.join(trace.jobs.types)}; the cluster has {', '.join(cluster.types)}",
            place="types",
            remedy="Read the trace with the cluster's types, in the cluster's order",
        )
    strange = [outage.host for outage in trace.outages if outage.host not in cluster.hosts]
    if strange:
        remedy = f"Hosts: {', '.join(cluster.hosts[:20])}"
        raise BadInput(f"there is no host {strange[0]!r}", place="outages", remedy=remedy)


def check_goes_on(after: Snapshot, trace: Trace, cluster: Cluster) -> None:
    """Refuse a snapshot that clearly is not of this trace on this cluster, or whose numbers are none."""
    told = [after.index, after.idle, after.now]
    for each in after.present.values():
        told += [each.remaining, each.attained, each.setup, each.lease, each.started or 0]
        told += [gpus for _, gpus in each.last]
    strange = [number for number in told if not number >= 0]  # NaN is caught as well
    if strange or not after.now < INFINITY:
        got = shown(strange[0] if strange else after.now)
        remedy = "Go on from what the run has written, or begin anew"
        raise BadInput(f"got {got} for a time, a number of rounds or GPUs, or work", place="snapshot", remedy=remedy)
    hosts = [host for each in after.present.values() for host, _ in each.last]
    rows = list(after.present)
    if (
        len(after.held) != len(cluster.hosts)
        or not 0 <= after.arrived <= len(trace.jobs)
        or not all(0 <= row < after.arrived for row in rows)
        or not all(0 <= host < len(cluster.hosts) for host in hosts)
    ):
        raise BadInput(
            f"it is of {len(after.held)} hosts and {after.arrived} jobs that arrived; "
            f"there are {len(cluster.hosts)} hosts and {len(trace.jobs)} jobs",
            place="snapshot",
            remedy="Go on with the trace and the cluster that the run was begun with",
        )


def next_queue(snapshot: Snapshot, trace: Trace, cluster: Cluster, length: Number) -> tuple[Snapshot, Queue] | None:
    """Return the next round in which jobs can run or have just come, as snapshot and queue; None if there is none.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fractions import Fraction
    >>> moved, queue = next_queue(begin(cluster), trace, cluster, Fraction(300))
    >>> len(queue)
    1
    """
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
    """Return the queue of the round after ``snapshot``: the jobs present, new arrivals included.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fractions import Fraction
    >>> len(present(begin(cluster), trace, cluster, Fraction(300)))
    1
    """
    jobs, now = trace.jobs, snapshot.now
    arrived = bisect_right(jobs.arrival, now, lo=snapshot.arrived)
    fresh = range(snapshot.arrived, arrived)
    rows = [*snapshot.present, *fresh]
    there = jobs.take(rows)
    number = jobs.arithmetic.number
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
    """Return the record of the round in which ``schedule`` is carried out. Errors: `BrokenSchedule`.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fractions import Fraction
    >>> from fairopt import decide
    >>> from fairopt.models import FirstInFirstOut
    >>> queue = present(begin(cluster), trace, cluster, Fraction(300))
    >>> advance(begin(cluster), trace, decide(FirstInFirstOut(), queue), Mechanics()).index
    0
    """
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
    )


def play(
    queue: Queue, row: int, spots: Spots, failing: Sequence[Outage], lease: Number, mechanics: Mechanics
) -> tuple[JobRun, JobState]:
    """Return a job's run on ``spots`` in this round, where outages are ``failing``, and its state afterwards."""
    hosts, types = queue.cluster.hosts, queue.cluster.types
    setup, speed = mechanics.setup(queue, row, spots), mechanics.speed(queue, row, spots)
    complete = queue.now + setup + queue.remaining[row] / speed
    end = min(complete, queue.end)
    names = {hosts[host] for host, _ in spots}
    fails = min((outage.begin for outage in failing if outage.host in names and outage.begin < end), default=None)
    lost = fails is not None
    end = end if fails is None else fails
    zero = queue.now * 0
    spent = min(setup, end - queue.now)
    completed = not lost and complete <= queue.end
    progress = zero if lost else queue.remaining[row] if completed else (end - queue.now - spent) * speed
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


def refuse_stall(after: Snapshot, trace: Trace, policy: str, waiting: Iterable[str]) -> None:
    """Raise `Stalled` where nothing has run for long, no job will arrive and no host will come back."""
    if after.idle < PATIENCE or after.arrived < len(trace.jobs):
        return
    if any(outage.end > after.now and outage.end != float("inf") for outage in trace.outages):
        return
    jobs = ", ".join(islice(waiting, 5))
    raise Stalled(f"{policy} has run nothing for {PATIENCE} rounds, with jobs waiting: {jobs}")

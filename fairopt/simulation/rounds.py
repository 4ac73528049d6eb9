"""What happens in one round: who is there, what the policy decides, and what becomes of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from math import floor
from typing import Any

import numpy as np

from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.numbers import counted
from fairopt.policy import Schedule
from fairopt.policy.schedule import refuse_broken
from fairopt.problem.cluster import Cluster
from fairopt.problem.numbers import shown
from fairopt.problem.queue import Placements, Queue, Spots
from fairopt.problem.trace import Trace
from fairopt.program import INFINITY, Number
from fairopt.simulation.job_states import Hosts, JobStates, host_and_type
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import Change, Changes, Placed, Round, Snapshot
from fairopt.simulation.whole_rounds import WholeRounds

#: After this many rounds in which nothing ran and nothing changed, the run is stalled.
PATIENCE = 10_000


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
            f"it is of {counted(len(after.held), 'host')} and {counted(after.arrived, 'job')} that arrived; "
            f"there are {counted(len(cluster.hosts), 'host')} and {counted(len(trace.jobs), 'job')}",
            place="snapshot",
            remedy="Go on with the trace and the cluster that the run was begun with",
        )


def next_queue(snapshot: Snapshot, trace: Trace, cluster: Cluster, length: Number) -> tuple[Snapshot, Queue] | None:
    """Return the next round in which jobs can run or have just come, as snapshot and queue; None if there is none.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> from fairopt.simulation import begin
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
    >>> from fairopt.simulation import begin
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fractions import Fraction
    >>> len(present(begin(cluster), trace, cluster, Fraction(300)))
    1
    """
    arrived = bisect_right(trace.jobs.arrival, snapshot.now, lo=snapshot.arrived)
    up = Hosts(cluster, trace).up(snapshot.now)
    # jobs on a failed host neither continue nor hold a lease
    states = _states(snapshot, trace, cluster, arrived).on_hosts(up)
    jobs = trace.jobs.take(states.rows)
    at = snapshot
    return states.queue(cluster, jobs, index=at.index, now=at.now, length=length, up=up, held=at.held)


def _states(snapshot: Snapshot, trace: Trace, cluster: Cluster, arrived: int) -> JobStates:
    """Return the jobs of a snapshot and those that have ``arrived`` since, before any host fails."""
    number = trace.jobs.arithmetic.number
    fresh = JobStates.new(range(snapshot.arrived, arrived), trace.jobs, snapshot.now)
    return JobStates.of(snapshot.present, trace.jobs, cluster, number).joined(fresh)


def advance(snapshot: Snapshot, trace: Trace, schedule: Schedule, mechanics: Mechanics) -> Round:
    """Return the record of the round in which ``schedule`` is carried out. Errors: `WrongReturn`.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> from fairopt.simulation import begin
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> from fractions import Fraction
    >>> from fairopt import decide
    >>> from fairopt.models import FirstInFirstOut
    >>> queue = present(begin(cluster), trace, cluster, Fraction(300))
    >>> advance(begin(cluster), trace, decide(FirstInFirstOut(), queue), Mechanics()).index
    0
    """
    queue = schedule.queue
    hosts, fresh = Hosts(queue.cluster, trace), len(queue) - len(snapshot.present)
    arrived = range(snapshot.arrived, snapshot.arrived + fresh)
    before = _states(snapshot, trace, queue.cluster, arrived.stop)
    states, changes = carried_out(schedule, before.on_hosts(queue.up), before, mechanics, whole=True)
    courses = {each.row: each.course for each in changes.placed}
    failing = hosts.failing(queue.now, queue.end)
    _, completed, lost = states.advanced(queue.now, queue.end, failing, courses, trace.jobs.work)
    failed, back = host_changes(hosts.up_before(queue.now, queue.length), queue.up)
    changes = replace(
        changes,
        arrived=arrived,
        failed=failed,
        back=back,
        unschedulable=unschedulable(queue, before.rows, fresh),
        completed=completed,
        lost=lost,
        **said(schedule, before.rows),
    )
    record = WholeRounds(schedule.policy, trace, queue.cluster, snapshot).round(changes)
    return replace(record, after=replace(record.after, state=schedule.state))


def host_changes(before: Any, up: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the hosts that failed and those that came back, by which hosts (H,) worked ``before``, and are ``up``."""
    failed, back = (tuple(np.flatnonzero(each).tolist()) for each in (before & ~up, up & ~before))
    return failed, back


def unschedulable(queue: Queue, rows: Any, fresh: int) -> dict[int, str]:
    """Return why the last ``fresh`` jobs of a queue, which just came, run on no type; by ``rows`` in the trace."""
    return {int(rows[row]): why for row, why in queue.unschedulable.items() if row >= len(rows) - fresh}


def said(schedule: Schedule, rows: Any) -> dict[str, Any]:
    """Return what a policy says of a round, with notes by ``rows`` in the trace."""
    notes = {int(rows[row]): text for row, text in schedule.notes.items()}
    return {"costs": dict(schedule.costs), "notes": notes, "backend": schedule.backend}


def carried_out(
    schedule: Schedule, states: JobStates, before: JobStates, mechanics: Mechanics, *, whole: bool
) -> tuple[JobStates, Changes]:
    """Return what a schedule makes of the jobs at the beginning of its round: their states, and what is new of them.

    ``before``: the same at the end of the round before, when hosts that have failed since still ran jobs. ``whole``:
    check all jobs and work out all speeds, not only those of jobs that come to other GPUs. Errors: `WrongReturn`.
    """
    queue = schedule.queue
    moving = _moving(schedule)
    refuse_broken(schedule, None if whole else moving)
    placements = schedule.placements
    runs = np.zeros(len(queue), dtype=bool)
    if isinstance(placements, Placements):
        runs[placements.stay] = True
    runs[list(placements.moved if isinstance(placements, Placements) else placements)] = True
    last_: Any = queue.end
    unsaid = np.where(queue.holds, queue.lease, last_)
    lease, leases = unsaid, {}
    if schedule.leases:
        named = np.fromiter(schedule.leases, dtype=np.int64, count=len(schedule.leases))
        until = np.array(list(schedule.leases.values()), dtype=unsaid.dtype)
        there = (named >= 0) & (named < len(queue))
        named, until = named[there], until[there]
        new = runs[named] & (until != unsaid[named])
        leases = dict(zip(named[new].tolist(), until[new].tolist(), strict=True))
        lease = unsaid.copy()
        lease[named[new]] = until[new]
    rows, profiles = states.rows, queue.jobs.profiles
    after = states._replace(running=runs, lease=lease)
    placed: list[Placed] = []
    if moving or whole:
        setup, speed, last, started = (
            column.copy() for column in (states.setup, states.speed, states.last, states.started)
        )
        host, gpu_type, gpus = states.host.copy(), states.gpu_type.copy(), states.gpus.copy()
        for row in sorted(placements) if whole else moving:
            spots = placements[row]
            course = mechanics.course(queue, row, spots) if profiles else ()
            setup[row] = mechanics.setup(queue, row, spots)
            speed[row] = course[0][1] if course else mechanics.speed(queue, row, spots)
            gpus[row] = sum(each for _, each in spots)  # an elastic job may have another number than before
            how = change(queue, row, spots)
            if how is Change.STAY and (states.speed[row], states.setup[row]) == (speed[row], setup[row]):
                continue
            on = tuple((int(number), int(gpus)) for number, gpus in spots)
            placed.append(Placed(int(rows[row]), on, how, setup[row], speed[row], course))
            last[row], (host[row], gpu_type[row]) = spots, host_and_type(queue.cluster, spots)
            started[row] = queue.now if started[row] is None else started[row]
        after = after._replace(
            setup=setup, speed=speed, gpus=gpus, last=last, started=started, host=host, gpu_type=gpu_type
        )
    changes = Changes(
        index=queue.index,
        begin=queue.now,
        end=queue.end,
        arrived=range(0),
        stopped=tuple(rows[before.running & ~runs].tolist()),
        placed=tuple(placed),
        leases={int(rows[row]): until for row, until in leases.items()},
    )
    return after, changes


def held(
    before: tuple[frozenset[str], ...], placed: Sequence[Placed], dataset: Sequence[str]
) -> tuple[frozenset[str], ...]:
    """Return datasets on each host once those who are ``placed`` have read theirs, by row; () where no job has any."""
    if not dataset:
        return before
    new = list(before)
    for each in placed:
        for host, _ in each.spots if dataset[each.row] else ():
            new[host] |= {dataset[each.row]}
    return tuple(new)


def _moving(schedule: Schedule) -> list[int]:
    """Return the rows, rising, of the jobs that come to GPUs on which they did not run in the round before."""
    queue, count, placements = schedule.queue, len(schedule.queue), schedule.placements
    if isinstance(placements, Placements) and placements.last is queue.last:
        placements = placements.moved  # all others stay, and have run before
    running, last = queue.running, queue.last
    return sorted(
        row for row, spots in placements.items() if not 0 <= row < count or not running[row] or spots != last[row]
    )


def change(queue: Queue, row: int, spots: Spots) -> Change:
    """Return how a job comes to ``spots``."""
    last = queue.last[row]
    if not last:
        return Change.START
    if queue.running[row] and spots == last:
        return Change.STAY
    return Change.RESUME if {host for host, _ in spots} <= {host for host, _ in last} else Change.MIGRATE


def end_of(schedule: Schedule, mechanics: Mechanics) -> Number:
    """Return the first event after ``schedule`` has begun: what is known to come, or a job that is done.

    Errors: `NotCapable` where the schedule does not stand; `NotSolved` where nothing will ever happen.
    """
    queue, stands = schedule.queue, schedule.stands
    if stands is None or stands <= queue.now:
        raise NotCapable(
            f"at {queue.now}, {schedule.policy} may decide anew before anything happens: "
            "play it with fairopt.simulation.run and a length"
        )
    done = (
        queue.now + mechanics.setup(queue, row, spots) + queue.remaining[row] / mechanics.speed(queue, row, spots)
        for row, spots in schedule.placements.items()
    )
    end: Number = min(queue.end, stands, *done)
    if end < INFINITY:
        return end
    waiting = [queue.jobs.names[row] for row in queue.fitting]
    if waiting:
        raise NotSolved(f"{schedule.policy} runs nothing, with jobs waiting: {', '.join(waiting[:5])}")
    return queue.now


def refuse_stall(after: Snapshot, trace: Trace, policy: str, waiting: Iterable[str]) -> None:
    """Raise `NotSolved` where nothing has run for long, no job will arrive and no host will come back."""
    if after.idle < PATIENCE or after.arrived < len(trace.jobs):
        return
    if any(outage.end > after.now and outage.end != float("inf") for outage in trace.outages):
        return
    jobs = ", ".join(islice(waiting, 5))
    raise NotSolved(f"{policy} has run nothing for {PATIENCE} rounds, with jobs waiting: {jobs}")

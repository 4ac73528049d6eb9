"""`run_continuous`: a trace on a cluster in continuous time, for policies that need no rounds.

A *span* is the time between two events, and its record is a `Round` of that length. The code that plays rounds plays
spans, too: there is one account of what happens to jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairopt.errors import NotCapable
from fairopt.policy import Policy, Schedule, Trait, session
from fairopt.problem.cluster import Cluster
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Trace
from fairopt.program import INFINITY, Number
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import Round, Snapshot
from fairopt.simulation.run import Stalled, advance, ask, begin, check_goes_on, check_matches, play, present


def run_continuous(
    policy: Policy,
    trace: Trace,
    cluster: Cluster,
    *,
    mechanics: Mechanics | None = None,
    after: Snapshot | None = None,
) -> Iterator[Round]:
    """Yield the record of each span between two events, until all jobs that can run are completed.

    Events are: a job comes, a job is done, a host fails or comes back, and the end of a schedule that stands for a
    limited time. At each of them the policy decides anew, and GPUs that a job leaves are given out at once. A host that
    fails takes no work along, because state is saved at events; its jobs load again.

    This is what `run` tends to as rounds get shorter. So the policy must declare `Trait.EVENTS`, and each of its
    schedules must stand (`Schedule.stands`); SRTF's do where every job is on the type that it asks for first.
    With several types FIFO may choose another one where two events fall into one round; shorter rounds part them.

    The ``length`` of the queue is the time until a job comes, or a host fails or comes back: infinity where nothing is
    known to come. ``index`` counts the spans. ``after`` continues from a snapshot, one of `run` included. Where nobody
    is present who could run, there is no record; one of no length names unschedulable jobs that come last.

    Numbers, and the errors, are those of `run`; also `NotCapable` for a policy or a schedule that needs rounds.

    >>> from fairopt.models import ShortestRemainingTimeFirst
    >>> from fairopt.problem import Jobs
    >>> trace = Trace(Jobs.of(types=["T"], gpus=[1, 1], work=[10, 2], arrival=[0, "7/2"]))
    >>> spans = run_continuous(ShortestRemainingTimeFirst(), trace, Cluster.uniform({"T": (1, 1)}))
    >>> [(str(span.begin), str(span.end), span.ran[0].job) for span in spans]
    [('0', '7/2', 'j1'), ('7/2', '11/2', 'j2'), ('11/2', '12', 'j1')]
    """
    if Trait.EVENTS not in policy.traits:
        raise NotCapable(f"{policy.name} needs rounds: play it with fairopt.simulation.run and a length")
    number = trace.jobs.arithmetic.number
    check_matches(trace, cluster)
    if after is not None:
        check_goes_on(after, trace, cluster)
    own, kept, at = cluster.as_(number), mechanics or Mechanics(), session(policy)
    snapshot = begin(own, number) if after is None else after
    while (queue := next_span(snapshot, trace, own)) is not None:
        # a span begins later than the one before ended if nobody was there in between
        snapshot = replace(snapshot, now=queue.now)
        schedule, seconds = ask(policy, snapshot, queue, at)
        schedule = replace(schedule, queue=queue.until(end_of(schedule, kept)))
        record = replace(advance(snapshot, trace, schedule, kept), seconds=seconds)
        yield record
        snapshot = record.after


def next_span(snapshot: Snapshot, trace: Trace, cluster: Cluster) -> Queue | None:
    """Return the queue, until the next event that is known, of the next span with jobs that can run or have just come.

    None if there is none.
    """
    queue = present(snapshot, trace, cluster, snapshot.now * 0)
    if len(queue.unschedulable) == len(queue) == len(snapshot.present):
        if snapshot.arrived == len(trace.jobs):
            return None
        queue = present(replace(snapshot, now=trace.jobs.arrival[snapshot.arrived]), trace, cluster, snapshot.now * 0)
    arrived = snapshot.arrived + len(queue) - len(snapshot.present)
    coming = [*trace.jobs.arrival[arrived : arrived + 1]]
    coming += [moment for each in trace.outages for moment in (each.begin, each.end) if moment > queue.now]
    return queue.until(min(coming, default=INFINITY))


def end_of(schedule: Schedule, mechanics: Mechanics) -> Number:
    """Return the first event after ``schedule`` has begun: what is known to come, or a job that is done.

    Errors: `NotCapable` where the schedule does not stand; `Stalled` where nothing will ever happen.
    """
    queue, stands = schedule.queue, schedule.stands
    if stands is None or stands <= queue.now:
        raise NotCapable(
            f"at {queue.now}, {schedule.policy} may decide anew before anything happens: "
            "play it with fairopt.simulation.run and a length"
        )
    ran = (play(queue, row, spots, (), queue.end, mechanics)[0] for row, spots in schedule.placements.items())
    end = min(queue.end, stands, *(each.end for each in ran if each.completed))
    if end < INFINITY:
        return end
    waiting = [queue.jobs.names[row] for row in queue.fitting]
    if waiting:
        raise Stalled(f"{schedule.policy} runs nothing, with jobs waiting: {', '.join(waiting[:5])}")
    return queue.now

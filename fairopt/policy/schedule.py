"""What a policy of rounds decides: who runs where until the next round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain

import numpy as np

from fairopt.errors import WrongReturn
from fairopt.numbers import counted
from fairopt.policy.decision import Decision
from fairopt.problem.queue import Placements, Queue, Spots
from fairopt.program import Array, Number
from fairopt.report import Grid, Tabular


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(Decision, Tabular):
    """What a policy decided for one round.

    * ``placements``: for each row of ``queue`` that runs, its `Spots`; jobs that hold a lease stay where they are.
    * ``leases``: until when a job that runs holds its GPUs. A job that is not named keeps the lease that it has, or
      else runs to the end of the round.
    * ``costs``: the policy's objective, term by term, in its own unit.
    * ``notes``: remarks of the policy on jobs (row: text), such as why a job was passed over.
    * ``stands``: until when the policy would decide the same, and keep the same state, if nothing happens: nobody
      comes, is done or fails, and no host comes back. A run may then go on without asking. None: ask each round.
      ``settled``: nobody waits. Then jobs may be done, too. State, costs and notes stay.
    * ``newcomers``: where the schedule is settled, and those who come all find room on the types that are fastest for
      them, how they would be decided on: placed as by `fairopt.simulation.Consolidated`, those with equal GPUs by the
      numbers that this returns for a queue of all jobs, then by row; and it would stand as long as before. So a run
      need not ask then. None: it must.

    Units of time are those of the queue. Source: the policy's.

    >>> from fairopt import decide
    >>> from fairopt.problem import Cluster, Jobs, Trace
    >>> from fairopt.simulation import begin, present
    >>> trace = Trace(Jobs.of(names=["a", "b"], types=["T"], arrival=[0, 0], gpus=[1, 2], work=[60, 60]))
    >>> cluster = Cluster.uniform({"T": (1, 2)})
    >>> schedule = decide("srtf", present(begin(cluster), trace, cluster, 300))
    >>> schedule, dict(schedule.placements)
    (<Schedule: srtf, round 0: 1 of 2 jobs run>, {0: ((0, 1),)})
    """

    queue: Queue
    placements: Mapping[int, Spots]
    leases: Mapping[int, Number] = field(default_factory=dict)
    _: KW_ONLY
    costs: Mapping[str, Number] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    stands: Number | None = None
    settled: bool = False
    newcomers: Callable[[Queue], Array] | None = None

    def __repr__(self) -> str:
        run = f"{len(self.placements)} of {counted(len(self.queue), 'job')} run"
        return f"<Schedule: {self.policy}, round {self.queue.index}: {run}>"

    def _table(self) -> Grid:
        queue, spots = self.queue, self.placements
        hosts = [" ".join(f"{queue.cluster.hosts[host]}:{count}" for host, count in each) for each in spots.values()]
        gpus = queue.jobs.gpus[list(spots)].tolist()
        return Grid("job", [queue.jobs.names[row] for row in spots], {"gpus": gpus, "hosts": hosts})


def refuse_broken(schedule: Schedule, rows: Collection[int] | None = None) -> None:
    """Raise `WrongReturn` unless gangs are whole, hosts are up and not overbooked, types fit and leases are kept.

    A lease is kept if its job stays where it is and the lease is not shortened. ``rows`` are those that come to other
    GPUs, where all others are known to stay on GPUs that suit them and that are up; None looks at all.
    """
    looked_at = schedule.placements if rows is None else rows
    for problem in chain(
        (problem for row in looked_at for problem in _of_job(schedule, row)),
        _of_hosts(schedule) if rows is None or rows else (),
        _of_leases(schedule),
    ):
        raise WrongReturn(f"{schedule.policy}, round {schedule.queue.index}: {problem}")


def _of_job(schedule: Schedule, row: int) -> Iterator[str]:
    queue, cluster, spots = schedule.queue, schedule.queue.cluster, schedule.placements[row]
    if not 0 <= row < len(queue):  # Python would take a negative row, or host, for one from the end
        yield f"there is no job in row {row}; there are {len(queue)}"
    sizes = queue.jobs.sizes(row)
    given = sum(gpus for _, gpus in spots)
    if given not in sizes or any(gpus <= 0 or gpus % 1 for _, gpus in spots):
        needed = " or ".join(map(str, sizes))
        yield f"job {queue.jobs.names[row]!r} gets {given} GPUs of the {needed} that it needs at once"
    if len(spots) > 1 and [host for host, _ in spots] != sorted({host for host, _ in spots}):
        yield f"the hosts of job {queue.jobs.names[row]!r} are not rising: {spots}"
    if strange := [host for host, _ in spots if not 0 <= host < len(cluster.hosts)]:
        yield f"job {queue.jobs.names[row]!r} is put on host {strange[0]}; there are {len(cluster.hosts)}"
    profile = queue.jobs.profile(row)
    for gpu_type in queue.gpu_types(spots):
        fast = profile is None or given not in sizes or profile.speed(0, given, len(spots))[gpu_type]
        if not queue.suits[row, gpu_type] or not fast:
            yield f"job {queue.jobs.names[row]!r} cannot run on type {cluster.types[gpu_type]!r}"


def _of_hosts(schedule: Schedule) -> Iterator[str]:
    queue, cluster = schedule.queue, schedule.queue.cluster
    left = queue.free(schedule.placements)
    for host in (left < 0).nonzero()[0]:
        there = int(cluster.gpus[host]) if queue.up[host] else 0
        yield f"host {cluster.hosts[host]!r} gives out {there - int(left[host])} GPUs and has {there}"


def _of_leases(schedule: Schedule) -> Iterator[str]:
    queue, placements, leases = schedule.queue, schedule.placements, schedule.leases
    holding = np.flatnonzero(queue.holds).tolist()
    if isinstance(placements, Placements) and placements.last is queue.last and placements.stays[holding].all():
        holding = [row for row in holding if row in leases or row in placements.moved]
    for row in holding:
        spots = queue.last[row]
        if placements.get(row) != spots:
            yield f"job {queue.jobs.names[row]!r} holds a lease on {spots} until {queue.lease[row]} and was moved"
        if row in leases and leases[row] < queue.lease[row]:
            lease = f"job {queue.jobs.names[row]!r} holds a lease until {queue.lease[row]}"
            yield f"{lease}, cut short to {leases[row]}"

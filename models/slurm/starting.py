"""What a job of Slurm's needs to start: room within limits, free nodes, or jobs that may be stopped for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.models.common.holdings import Holdings, entitlements_of, light
from fairopt.models.slurm.limits import JobLimits
from fairopt.models.slurm.site import SlurmJob, SlurmPartition, SlurmSite, spread, whole_number
from fairopt.problem import Market
from fairopt.program import INFINITY, Array

#: The modes of preemption that take GPUs away; SUSPEND leaves them with the job.
STOPS = frozenset({"CANCEL", "REQUEUE"})
#: Nodes by number, and the GPUs and CPUs that a job takes there.
Place = Mapping[int, tuple[int, int]]
#: A job, and a partition in which it may start.
Entry = tuple[SlurmJob, SlurmPartition]


class JobStarter:
    """A `SlurmSite` whose jobs start and stop; ``room`` has what is held, and what came of each job.

    ``priority`` (job, partition) -> what the queue is sorted by. A job takes GPUs of one type, on as many nodes as it
    asks for: the first that fit, those of the least weight first. Memory, features, topology and reservations are not
    looked at.

    Source: Slurm 22.05.8, src/slurmctld/job_scheduler.c, sort_job_queue2; node_scheduler.c, select_nodes; preempt.c;
    src/plugins/select/cons_common/job_test.c, _run_now; src/plugins/preempt.
    """

    def __init__(
        self, market: Market, priority: Callable[[SlurmJob, SlurmPartition], Any], *, one_partition: bool
    ) -> None:
        """Take the cluster as it is."""
        owed = entitlements_of(market)
        self.room = Holdings.at_first(market)
        gangs = [*self.room.running.values(), *(gang for own in self.room.waiting.values() for gang in own)]
        self.site = SlurmSite(market, sorted(gangs, key=lambda gang: gang.number), one_partition=one_partition)
        self.limits = JobLimits(owed, self.site)
        self._caps = [light(row) for row in owed.cap.tolist()]
        limited = [any(each < INFINITY for each in row) for row in self._caps]
        self._limited = [[over for over in owed.path(user) if limited[over]] for user in range(len(owed.users))]
        self._priority = priority
        self._keys: dict[tuple[int, str], tuple[Any, ...]] = {}  # by job and partition: what the queue is sorted by
        self.makes_room: set[int] = set()  # jobs for which others were stopped in this pass
        self.made_room: set[int] = set()  # those for which others were stopped just before, and no more are now
        # jobs that wait for another reason than too little room, as they were seen last
        self.stays = {job.gang.name for job in self.site.jobs.values() if job.stated}

    # -- who is before whom ------------------------------------------------------------------------------------------
    def line_up(self) -> None:
        """Let those that wait now line up anew: with preemption their order depends on who is among them."""
        before = self.__dict__.pop("queue", None)
        if self.preempts:
            self.__dict__.pop("listed", None)
        elif before is not None:  # nobody comes back, and all keep their order
            self.__dict__["queue"] = [(job, part) for job, part in before if job.gang.on < 0]

    @cached_property
    def queue(self) -> list[Entry]:
        """Pending jobs with each partition that does not refuse them, in their order."""
        return [(job, part) for job, part in self.listed if not part.refuses(job)]

    @cached_property
    def listed(self) -> list[Entry]:
        """Pending jobs with each of their partitions, in their order; backfill counts those that are refused, too."""
        waiting = [job for job in self.site.jobs.values() if job.gang.on < 0 and job.gang.name not in self.room.stopped]
        listed = [(job, part) for job in waiting for part in job.partitions]
        key = self._keys
        for job, part in listed:
            if (job.number, part.name) not in key:
                key[job.number, part.name] = -part.tier, self._priority(job, part)
        if not self.preempts:
            return sorted(listed, key=lambda each: key[each[0].number, each[1].name])

        def first(one: Entry, other: Entry) -> bool:
            if self._goes_before(*one, *other):
                return True
            if self._goes_before(*other, *one):
                return False
            return key[one[0].number, one[1].name] <= key[other[0].number, other[1].name]

        return merged(listed, first)

    @cached_property
    def preempts(self) -> str:
        """By what jobs may stop others: "qos", "partition_prio", or "" where none may."""
        kind = self.site.option("PreemptType", "none").rpartition("/")[2]
        return kind if kind in ("qos", "partition_prio") and self.site.option("PreemptMode", "OFF") != "OFF" else ""

    def _goes_before(self, job: SlurmJob, part: SlurmPartition, other: SlurmJob, where: SlurmPartition) -> bool:
        if self.preempts == "qos":
            return other.qos in self._beneath(job.qos)
        return part.tier > where.tier and bool((part.nodes & where.nodes).any())

    def _beneath(self, qos: str) -> frozenset[str]:
        return frozenset(filter(None, self.site.qos.get(qos, {}).get("Preempt", "").split(",")))

    def waits(self, job: SlurmJob) -> bool:
        """Whether a job is still to be tried: not one that was stopped, nor one that others make room for just now."""
        return job.gang.on < 0 and job.gang.name not in self.room.stopped and job.number not in self.makes_room

    # -- where a job fits --------------------------------------------------------------------------------------------
    def free_for(self, job: SlurmJob, part: SlurmPartition, nodes: Array) -> tuple[str, tuple[int, Place] | None]:
        """Return a type and nodes that are free for a job; else the limit that stops it on each type, "" for none."""
        broken = []
        for kind in job.gang.takes:
            broken.append(self.beyond(job, part, kind))
            if not broken[-1] and (on := self.fits(job, kind, nodes, self.site.free)) is not None:
                return "", (kind, on)
        return (broken[0] if broken and all(broken) else ""), None

    def beyond(self, job: SlurmJob, part: SlurmPartition, kind: int) -> str:
        """Return the limit on what jobs hold that stops a job on a type, in words; "" for none."""
        if not self.limits.enforced:
            return ""
        if why := self.limits.on_amounts(job, part, kind):
            return why
        takes, room = job.gang.takes[kind], self.room
        if gone := self.limits.of_qos_instead(job, part):
            takes = {at: amount for at, amount in takes.items() if self._resource(at) not in gone}
        for node in self._limited[job.gang.queue]:
            column = room.beyond(node, takes, self._caps[node])
            if column is not None:
                held, most = room.held[node][column], self._caps[node][column]
                return f"the limit of {room.names[node]}: {most} {room.columns[column]}, of which it holds {held}"
        return ""

    def _resource(self, column: int) -> str:
        name = self.room.columns[column]
        return f"gres/gpu:{name}" if column < len(self.site.types) else name.rpartition(":")[0]

    def fits(self, job: SlurmJob, kind: int, nodes: Array, free: Array) -> dict[int, tuple[int, int]] | None:
        """Return the nodes on which a job fits, with what it takes there; None where too little is ``free`` (M, k + 1).

        More GPUs than any node has are taken from as many nodes as they need.
        """
        each, cpus = job.on_each
        good = np.flatnonzero(nodes & (free[:, kind] >= each) & (free[:, -1] >= cpus))
        if job.gpus % job.nodes == 0 and len(good) >= job.nodes:
            return {int(node): (each, cpus) for node in good[: job.nodes]}
        if not self.site.by_node or (job.gpus % job.nodes == 0 and each <= self.site.total[nodes, kind].max(initial=0)):
            return None
        some = np.flatnonzero(nodes & (free[:, kind] > 0) & (free[:, -1] > 0))
        enough = np.searchsorted(np.cumsum(free[some, kind]), job.gpus) + 1
        if enough > len(some):
            return None
        chosen = some[: max(int(enough), job.nodes)].tolist()
        return dict(spread(job, chosen, free[chosen, kind].tolist(), alike=False))

    def fits_at_all(self, job: SlurmJob, nodes: Array) -> bool:
        """Whether a job would fit into nodes if nothing else ran."""
        return any(self.fits(job, kind, nodes, self.site.total) is not None for kind in job.gang.takes)

    def start(self, job: SlurmJob, part: SlurmPartition, kind: int, on: Place) -> None:
        """Let a job run."""
        self.room.start(job.gang, kind)
        self.site.place(job, kind, on)
        self.limits.count(job, 1)
        job.left, job.ran = part.seconds(job), 0.0

    # -- preemption --------------------------------------------------------------------------------------------------
    def stop_for(self, job: SlurmJob, part: SlurmPartition, nodes: Array) -> bool:
        """Stop jobs so that a job fits into nodes, and say whether room was made for it, now or just before.

        They are taken away one after another until it fits, and then once more with the last one first, so that those
        that were not needed stay. A job for which others were just stopped waits for their end, and stops no more.
        """
        line = self.may_stop(job, part)
        for kind in job.gang.takes if line else ():
            if self.beyond(job, part, kind):
                continue
            gone, on = self._taken_away(job, kind, nodes, line)
            for _ in range(self.site.parameter("preempt_reorder_count", 1) if on else 0):
                gone, on = self._taken_away(
                    job, kind, nodes, [gone[-1], *(each for each in line if each not in gone[-1:])]
                )
            if on is None:
                continue
            if job.number in self.made_room:
                return True
            self.makes_room.add(job.number)
            self.made_room.add(job.number)
            for other in gone:
                if any(node in on for node in other.on):
                    self.limits.count(other, -1)
                    self.site.remove(other)
                    self.room.stop(other.gang, f"stopped for {job.gang.name} of {self.room.names[job.gang.queue]}")
            return True
        return False

    def _taken_away(
        self, job: SlurmJob, kind: int, nodes: Array, line: list[SlurmJob]
    ) -> tuple[list[SlurmJob], Place | None]:
        """Return the first jobs of a line without which a job fits, and where; all, and None, where it never does."""
        free = self.site.free.copy()
        for at, other in enumerate(line, start=1):
            for node, (gpus, cpus) in other.on.items():
                free[node, other.kind] += gpus
                free[node, -1] += cpus
            if (on := self.fits(job, kind, nodes, free)) is not None:
                return line[:at], on
        return line, None

    def may_stop(self, job: SlurmJob, part: SlurmPartition) -> list[SlurmJob]:
        """Return the running jobs that a job may stop: of the lowest QOS or tier first, then on the fewest nodes."""
        if not self.preempts:
            return []
        whole, found = self.site.option("PreemptMode", "OFF"), []
        for other in self.site.jobs.values():
            if not any(part.nodes[node] for node in other.on):
                continue
            if self.preempts == "qos":
                said = self.site.qos.get(other.qos, {})
                mode, rank = said.get("PreemptMode", whole), whole_number(said, "Priority", 0)
                may = other.qos in self._beneath(job.qos)
            else:
                where = other.partitions[0] if other.partitions else part
                mode, rank, may = where.says.get("PreemptMode", whole), where.tier, where.tier < part.tier
            if may and STOPS & set(mode.upper().split(",")):
                found.append(((rank, len(other.on), other.number), other))
        if self.site.parameter("preempt_youngest_first", 0):
            return sorted((each for _, each in found), key=lambda each: (each.ran, each.number))
        return [each for _, each in sorted(found, key=lambda each: each[0])]


def merged(line: Sequence[Entry], first: Callable[[Entry, Entry], bool]) -> list[Entry]:
    """Return a line sorted by halves, as qsort of glibc does; ``first``: whether one goes before another, or beside it.

    Which of several orders it is matters, since with preemption "before" may go round in a circle: a job goes before
    those that it may stop, and else by its priority.

    Source: glibc 2.36, stdlib/msort.c, msort_with_tmp; Slurm 22.05.8, src/common/list.c, list_sort.
    """
    if len(line) < 2:
        return list(line)
    half = len(line) // 2
    left, right = merged(line[:half], first), merged(line[half:], first)
    out: list[Entry] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if first(left[i], right[j]):
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return [*out, *left[i:], *right[j:]]

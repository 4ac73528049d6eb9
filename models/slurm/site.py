"""What Slurm's files say of a cluster beside amounts, as its rule reads it from a market's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from fairopt.models.common.holdings import QueuedGang
from fairopt.problem import Entitlements, Market
from fairopt.problem.numbers import integer
from fairopt.program import Array

#: What the keys of the whole cluster's settings begin with; the others are options of slurm.conf.
PARTITION, NODE, QOS = "PartitionName=", "NodeName=", "QOS="
#: Seconds that a job without any limit is taken to run for. Source: Slurm 22.05.8, slurm/slurm.h, YEAR_SECONDS.
YEAR = 365 * 86400
#: What is read as a whole number.
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
#: The most of a resource where nobody says how much there is.
PLENTY = 2**40


def words(text: str) -> dict[str, str]:
    """Return the settings in a text KEY=VALUE KEY=VALUE.

    >>> words("State=UP Nodes=n1,n2")
    {'State': 'UP', 'Nodes': 'n1,n2'}
    """
    return {name: value for name, _, value in (each.partition("=") for each in text.split())}


def amounts(text: str) -> dict[str, int]:
    """Return trackable resources by name.

    >>> amounts("gres/gpu:a100=4,cpu=8")
    {'gres/gpu:a100': 4, 'cpu': 8}
    """
    of_each = {name: count for name, _, count in (each.rpartition("=") for each in text.split(",") if each)}
    return {name: whole_number(of_each, name, 0) for name in of_each}


def whole_number(says: Mapping[str, str], name: str, otherwise: Any) -> Any:
    """Return the whole number that settings say under a name. Errors: `BadInput` where it is none.

    >>> whole_number({"Nice": "-10"}, "Nice", 0)
    -10
    """
    text = says.get(name)
    return otherwise if text is None else integer(text, f"settings, {name}")


@dataclass(frozen=True, eq=False)
class SlurmPartition:
    """A partition: its nodes (M,), its tier and factor, the most seconds of a job, and what else ``says`` who may run.

    ``default``: the seconds of a job that gives no limit. ``is_type``: nobody named partitions, and this is a type.
    """

    name: str
    nodes: Array
    says: Mapping[str, str] = field(default_factory=dict)
    tier: int = 1
    factor: int = 1
    most: float = inf
    default: float = inf

    def refuses(self, job: SlurmJob) -> str:
        """Return why a job is not tried here at all, "" where it is.

        Source: Slurm 22.05.8, src/slurmctld/job_mgr.c, job_limits_check and _part_access_check.
        """
        if not self.says:
            return ""
        if self.most < job.limit < inf:
            return f"its time limit is above that of the partition {self.name}"
        nodes = whole_number(self.says, "MaxNodes", job.nodes), whole_number(self.says, "MinNodes", job.nodes)
        if not nodes[1] <= job.nodes <= nodes[0]:
            return f"the partition {self.name} takes jobs of {nodes[1]} to {nodes[0]} nodes"
        state = self.says.get("State", "UP")
        return "" if state in ("UP", "DRAIN") else f"the partition {self.name} is {state}"

    def denies(self, job: SlurmJob) -> str:
        """Return why a job that is tried here does not run whatever is free, "" where it may.

        Source: Slurm 22.05.8, src/slurmctld/node_scheduler.c, select_nodes, as with EnforcePartLimits=NO.
        """
        for what, own in (("Accounts", job.account), ("Qos", job.qos)):
            allowed, denied = (self.says.get(f"{verb}{what}", "").split(",") for verb in ("Allow", "Deny"))
            if (allowed != [""] and own not in allowed) or (own in denied and own):
                return f"the partition {self.name} does not take jobs of {own}"
        return ""

    def seconds(self, job: SlurmJob) -> float:
        """Return for how long a job is expected to run here, by its limit."""
        own = self.default if job.limit == inf and job.left == inf else job.limit
        return min(own, self.most, YEAR)


@dataclass(eq=False, slots=True)
class SlurmJob:
    """A job: what `QueuedGang` has of it, and what Slurm's files say beside.

    ``nodes``: how many it asks for. ``limit``, ``left`` and ``ran``: seconds, of all, from now and until now; infinite
    where nobody says. ``stated``: why it waits, where that stays so until it is tried again.
    ``takes``: GPUs of each allowed type, CPUs. ``on``: of each node (by number) that it runs on, GPUs and CPUs.
    """

    gang: QueuedGang
    account: str
    user: str
    partitions: tuple[SlurmPartition, ...]
    qos: str
    nodes: int
    gpus: int
    cpus: int
    limit: float
    left: float
    nice: int
    stated: str = ""
    on: dict[int, tuple[int, int]] = field(default_factory=dict)
    kind: int = -1
    ran: float = inf
    number: int = field(init=False)

    def __post_init__(self) -> None:
        """Take its number among the market's gangs, which is asked for often."""
        self.number = self.gang.number

    @property
    def on_each(self) -> tuple[int, int]:
        """The GPUs and CPUs that it takes of each of its nodes, rounded up."""
        return -(-self.gpus // self.nodes), -(-self.cpus // self.nodes)


class SlurmSite:
    """A cluster as Slurm's files describe it: nodes, partitions, QOS, jobs; and options of slurm.conf (``said``).

    Where the files name no partitions, all GPUs of a type are one node, and each type is a partition, or with
    ``one_partition`` all are one. ``free`` (M, k + 1) is what nobody holds of each type, and of CPUs, on each node.
    """

    def __init__(self, market: Market, gangs: Iterable[QueuedGang], *, one_partition: bool = False) -> None:
        """Read the settings of a market and of its gangs, which are given as they are moved about."""
        owed = market.entitlements
        assert owed is not None
        self.said: Mapping[str, str] = owed.settings.get("", {})
        self.types = market.types
        self.priorities: dict[tuple[Any, ...], int] = {}  # those that were found
        self.qos = {name[len(QOS) :]: words(text) for name, text in self.said.items() if name.startswith(QOS)}
        named = {name[len(NODE) :]: text for name, text in self.said.items() if name.startswith(NODE)}
        parts = {name[len(PARTITION) :]: words(text) for name, text in self.said.items() if name.startswith(PARTITION)}
        self.by_node = bool(named and parts)
        capacity = [int(each) for each in market.capacity]
        self.names, self.total = _nodes(named, self.types) if self.by_node else (list(self.types), np.diag(capacity))
        if self.by_node:
            self._as_many_as(capacity, owed, parts)
        else:
            self.total = np.hstack([self.total, np.full((len(self.names), 1), PLENTY)])
        self.free = self.total.copy()
        self.partitions = dict(self._partitions(parts, one_partition=one_partition))
        self.jobs = {job.number: job for job in self._jobs(owed, gangs)}
        for job in self.jobs.values() if self.by_node else ():
            if job.gang.on >= 0:
                self._settle(job)
        if not self.by_node:  # what is held without a job, too
            held = [int(each) for each in owed.held[:, : len(capacity)].sum(axis=0)]
            for kind, (all_, each) in enumerate(zip(capacity, held, strict=True)):
                self.free[kind, kind] = all_ - each

    # -- what priorities are made of ---------------------------------------------------------------------------------
    def highest_qos(self, tier: int) -> int:
        """Return the highest priority of a QOS; where none is listed that of a job, and at least ``tier``."""
        return max(self._highest, tier, 1)

    @cached_property
    def _highest(self) -> int:
        listed = [whole_number(own, "Priority", 0) for own in self.qos.values()]
        return max(listed or [job.gang.tier for job in self.jobs.values()], default=0)

    @cached_property
    def highest_factor(self) -> int:
        """The highest PriorityJobFactor of a partition."""
        return max((part.factor for part in self.partitions.values()), default=1) or 1

    def size_of(self, job: SlurmJob) -> Fraction:
        """Return how large a job is: the mean of its parts of all nodes and CPUs, or what is left of 1 (FavorSmall)."""
        nodes, cpus = len(self.names), int(self.total[:, -1].sum())
        part = Fraction(job.nodes, nodes)
        if job.cpus:
            part = (part + Fraction(job.cpus, cpus)) / 2
        return min(max(1 - part if self.option("PriorityFavorSmall") == "Yes" else part, Fraction(0)), Fraction(1))

    def option(self, name: str, otherwise: str = "") -> str:
        """Return an option of slurm.conf, as text."""
        return self.said.get(name, otherwise)

    def parameter(self, name: str, otherwise: int) -> int:
        """Return a number among SchedulerParameters."""
        for each in self.option("SchedulerParameters").split(","):
            key, _, value = each.partition("=")
            if key == name:
                return int(value) if _WHOLE.fullmatch(value) else 1
        return otherwise

    # -- nodes and partitions ----------------------------------------------------------------------------------------
    def _as_many_as(self, capacity: list[int], owed: Entitlements, parts: dict[str, dict[str, str]]) -> None:
        """Let nodes have together what the market has: one more node has what is above, the last ones lose the rest."""
        more = np.array(capacity) - self.total[:, :-1].sum(axis=0)
        for kind, count in enumerate(more.tolist()):
            for node in reversed(range(len(self.names))):
                gone = min(int(self.total[node, kind]), max(-count, 0))
                self.total[node, kind] -= gone
                count += gone
        if (more > 0).any():
            self.names.append("")
            self.total = np.vstack([self.total, [*np.maximum(more, 0), PLENTY]])
            for own in parts.values():
                own["Nodes"] = f"{own.get('Nodes', '')},"

    def _partitions(
        self, parts: dict[str, dict[str, str]], *, one_partition: bool
    ) -> Iterator[tuple[str, SlurmPartition]]:
        if not self.by_node:
            every = np.ones(len(self.names), dtype=bool)
            if one_partition:
                yield "", SlurmPartition("", every)
                return
            for kind, name in enumerate(self.types):
                yield name, SlurmPartition(name, np.arange(len(every)) == kind)
            return
        place = {name: node for node, name in enumerate(self.names)}
        for name, own in parts.items():
            inside = np.zeros(len(self.names), dtype=bool)
            inside[[place[node] for node in own.get("Nodes", "").split(",") if node in place]] = True
            ranks = [whole_number(own, key, 1) for key in ("PriorityTier", "PriorityJobFactor")]
            times = [whole_number(own, key, inf) for key in ("MaxTime", "DefaultTime")]
            yield name, SlurmPartition(name, inside, own, *ranks, *times)

    # -- jobs --------------------------------------------------------------------------------------------------------
    def _jobs(self, owed: Entitlements, gangs: Iterable[QueuedGang]) -> Iterator[SlurmJob]:
        told, nobody = owed.gangs.settings, dict[str, str]()
        place = {name: node for node, name in enumerate(self.names)}
        size = owed.gangs.gpus.tolist()
        named = [(name.partition("/")[0], name.partition("/")[2].partition("/")[0]) for name in owed.users]
        parts: dict[object, tuple[SlurmPartition, ...]] = {}  # by what jobs have in common
        for gang in gangs:
            own = told[gang.number] if told else nobody
            same = own.get("Partition", "") if self.by_node else tuple(gang.takes)
            if same not in parts:
                parts[same] = tuple(self._allowed(gang, own))
            nodes = max(whole_number(own, "NumNodes", 1), 1) if self.by_node else 1
            job = SlurmJob(
                gang,
                *named[gang.queue],
                parts[same],
                own.get("QOS", ""),
                nodes,
                size[gang.number],
                whole_number(own, "NumCPUs", 0) if self.by_node else 0,
                whole_number(own, "TimeLimit", inf),
                whole_number(own, "TimeLeft", inf),
                whole_number(own, "Nice", 0),
                own.get("Reason", ""),
                kind=gang.on,
            )
            job.ran = job.limit - job.left if job.left < inf and job.limit < inf else whole_number(own, "RunTime", inf)
            if gang.on >= 0 and self.by_node:
                on = [place[node] for node in own.get("NodeList", "").split(",") if node in place]
                job.on = dict(spread(job, on, [self.total[node, gang.on] for node in on]))
            elif gang.on >= 0:
                job.on = {gang.on: (job.gpus, 0)}
            yield job

    def _allowed(self, gang: QueuedGang, own: Mapping[str, str]) -> Iterator[SlurmPartition]:
        """Yield the partitions in which a job may start, in their order."""
        if not self.by_node:
            names = [self.types[kind] for kind in gang.takes] if "" not in self.partitions else [""]
        else:
            names = own.get("Partition", "").split(",")
        for name in names:  # one that no file describes has all nodes
            if name not in self.partitions:
                self.partitions[name] = SlurmPartition(name, np.ones(len(self.names), dtype=bool))
        known = [self.partitions[name] for name in names]
        yield from sorted(known, key=lambda each: -each.tier)

    def _settle(self, job: SlurmJob) -> None:
        for node, (gpus, cpus) in job.on.items():
            self.free[node, job.kind] -= gpus
            self.free[node, -1] -= cpus

    def place(self, job: SlurmJob, kind: int, on: Mapping[int, tuple[int, int]]) -> None:
        """Let a job hold GPUs of a type, and CPUs, on nodes."""
        job.on, job.kind = dict(on), kind
        self._settle(job)

    def remove(self, job: SlurmJob) -> None:
        """Let a job hold nothing."""
        for node, (gpus, cpus) in job.on.items():
            self.free[node, job.kind] += gpus
            self.free[node, -1] += cpus
        job.on = {}


def _nodes(named: Mapping[str, str], types: tuple[str, ...]) -> tuple[list[str], Array]:
    """Return the names of nodes and what they have (M, k + 1), those of the least weight first, as Slurm takes them."""
    known = {name: words(text) for name, text in named.items()}
    order = sorted(known, key=lambda name: whole_number(known[name], "Weight", 1))
    rows = [[whole_number(known[name], kind, 0) for kind in types] for name in order]
    cpus = [[whole_number(known[name], "CPUs", PLENTY)] for name in order]
    return order, np.hstack([np.array(rows, dtype=np.int64).reshape(len(order), len(types)), np.array(cpus)])


def spread(
    job: SlurmJob, nodes: list[int], room: list[Any], *, alike: bool = True
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield what a job holds of each of some nodes: ``alike`` where that can be, else as much as there is ``room``."""
    left, cpus = job.gpus, job.cpus
    each = -(-job.gpus // max(len(nodes), 1))
    alike = alike and bool(nodes) and job.gpus % len(nodes) == 0 and all(each <= int(most) for most in room)
    for at, (node, most) in enumerate(zip(nodes, room, strict=True)):
        gpus = each if alike else min(left, int(most))
        own = cpus // (len(nodes) - at)
        left, cpus = left - gpus, cpus - own
        yield node, (gpus, own)

"""What a run begins with: hosts, jobs, outages, costs of moving. It is read here, and nothing is decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from .reading import (
    Number,
    amount,
    choice,
    fields,
    integer,
    items,
    names,
    or_infinity,
    position,
    require,
    text,
    truth,
    within,
)

Spots = tuple[tuple[int, int], ...]  #: where a job runs: (host, GPUs there), hosts by index
JOB = (
    "name tenant arrival gpus work throughput memory state_size pattern dataset dataset_size weight priority"
)
#: More outages than this are refused; each is looked at in a handful of rounds.
MOST_OUTAGES = 200_000


@dataclass(frozen=True)
class Host:
    """A host; ``kind`` is the index of its type."""

    name: str
    kind: int
    gpus: int
    bandwidth: Number


@dataclass(frozen=True)
class Outage:
    """A host, by index, is down from ``begin`` until ``end``."""

    begin: Fraction
    end: Number
    host: int


@dataclass(frozen=True)
class Job:
    """A job as the trace has it."""

    name: str
    arrival: Fraction
    gpus: int
    work: Fraction
    throughput: list[Fraction]
    memory: Fraction
    state_size: Fraction
    pattern: str
    dataset: str
    dataset_size: Fraction


class Setting:
    """The cluster, the outages and the mechanics; ``floats`` says whether numbers may be floats."""

    def __init__(
        self, length: Any, mechanics: Any, cluster: Any, trace: dict[str, Any], floats: bool
    ) -> None:
        self.floats = floats
        self.length = amount(length, "length", positive=True, floats=floats)
        costs = fields(mechanics, "mechanics", "restart launch spread local_data")
        self.restart = amount(costs["restart"], "mechanics, restart", floats=floats)
        self.launch = amount(costs["launch"], "mechanics, launch", floats=floats)
        self.spread = amount(costs["spread"], "mechanics, spread", positive=True, floats=floats)
        require(self.spread <= 1, "mechanics, spread", "above 1")
        self.local_data = truth(costs["local_data"], "mechanics, local_data")
        self._read_cluster(cluster)
        require(trace["types"] == self.types, "trace, types", "not those of the cluster")
        self.tenants = frozenset(self._tenants(trace["tenants"]))
        self.outages = self._outages(trace["outages"])

    def _read_cluster(self, data: Any) -> None:
        told = fields(data, "cluster", "types memory hosts")
        self.types = names(told["types"], "cluster, types")
        sizes = items(told["memory"], "cluster, memory", len(self.types))
        self.memory = [or_infinity(each, "cluster, memory", floats=self.floats) for each in sizes]
        self.hosts = [self._host(each) for each in items(told["hosts"], "cluster, hosts")]
        positive = all(each > 0 for each in [*self.memory, *(host.bandwidth for host in self.hosts)])
        require(positive, "cluster", "a memory or bandwidth is not positive")
        known = names([host.name for host in self.hosts], "cluster, hosts")
        self.host = {name: at for at, name in enumerate(known)}
        self.whole = [0] * len(self.types)
        for host in self.hosts:
            self.whole[host.kind] += host.gpus

    def _host(self, data: Any) -> Host:
        told = fields(data, "host", "name type gpus bandwidth")
        return Host(
            text(told["name"], "host, name"),
            position(told["type"], self.types, "host, type"),
            integer(told["gpus"], "host, gpus", least=1),
            or_infinity(told["bandwidth"], "host, bandwidth", floats=self.floats),
        )

    def _tenants(self, data: Any) -> list[str]:
        told = [fields(each, "tenant", "name weight") for each in items(data, "tenants")]
        for each in told:
            amount(each["weight"], "tenant, weight", positive=True, floats=self.floats)
        return names([each["name"] for each in told], "tenants")

    def _outages(self, data: Any) -> list[Outage]:
        """Return the outages by rising beginning; those of one host that meet are one."""
        within(len(items(data, "outages")), MOST_OUTAGES, "outages", "outages")
        by_host: dict[int, list[Outage]] = {}
        for entry in data:
            told = fields(entry, "outage", "host begin end")
            begin = amount(told["begin"], "outage, begin", floats=self.floats)
            end = or_infinity(told["end"], "outage, end", floats=self.floats)
            require(begin < end, "outage", "it ends before it begins")
            host = position(told["host"], self.host, "outage, host")
            by_host.setdefault(host, []).append(Outage(begin, end, host))
        found = [each for own in by_host.values() for each in _merged(own)]
        return sorted(found, key=lambda each: (each.begin, each.host))

    def job(self, data: Any) -> Job:
        """Return a job that the file describes."""
        told = fields(data, "job", JOB)
        name = names([told["name"]], "job, name")[0]
        place = f"job {name!r}"
        require(told["tenant"] in self.tenants, place, "its tenant is not in the trace")
        integer(told["priority"], f"{place}, priority")
        amount(told["weight"], f"{place}, weight", positive=True, floats=self.floats)
        speeds = items(told["throughput"], f"{place}, throughput", len(self.types))

        def read(key: str, *, positive: bool = False) -> Fraction:
            return amount(told[key], f"{place}, {key}", positive=positive, floats=self.floats)

        return Job(
            name,
            read("arrival"),
            integer(told["gpus"], f"{place}, gpus", least=1),
            read("work", positive=True),
            [amount(each, f"{place}, throughput", floats=self.floats) for each in speeds],
            read("memory"),
            read("state_size"),
            choice(told["pattern"], f"{place}, pattern", ("alone", "intra", "inter")),
            text(told["dataset"], f"{place}, dataset"),
            read("dataset_size"),
        )

    def spots(self, data: Any, place: str) -> Spots:
        """Return where a job runs."""
        pairs = [items(each, place, 2) for each in items(data, place)]
        return tuple(
            (position(host, self.host, place), integer(gpus, place, least=1)) for host, gpus in pairs
        )

    # -- what follows for one job ----------------------------------------------------------------------------
    def suits(self, job: Job, kind: int) -> bool:
        """Return whether a job can run on GPUs of a type."""
        return job.throughput[kind] > 0 and job.memory <= self.memory[kind]

    def fits(self, job: Job) -> bool:
        """Return whether there is a type with GPUs enough on which a job can run."""
        return any(self.suits(job, kind) and job.gpus <= there for kind, there in enumerate(self.whole))

    def kinds(self, spots: Spots) -> list[int]:
        """Return the types of GPUs at ``spots``."""
        return sorted({self.hosts[host].kind for host, _ in spots})

    def speed(self, job: Job, spots: Spots) -> Fraction:
        """Return the work per unit of time: that of the slowest type, less where a gang lies apart."""
        slowest = min(job.throughput[kind] for kind in self.kinds(spots))
        return slowest * self.spread if len(spots) > 1 and job.pattern == "intra" else slowest

    def pace(self, job: Job) -> Fraction:
        """Return the least speed that a job can have, by which its progress is judged while it waits."""
        speeds = [each for each in job.throughput if each > 0]
        return min(speeds, default=Fraction(1)) * self.spread

    def copying(self, size: Fraction, hosts: set[int]) -> Fraction:
        """Return the time to copy gigabytes between hosts and the network: the slowest link decides."""
        link = min(self.hosts[host].bandwidth for host in hosts)
        return Fraction(0) if link == inf else size / Fraction(link)


def _merged(outages: list[Outage]) -> Iterator[Outage]:
    last: Outage | None = None
    for each in sorted(outages, key=lambda each: each.begin):
        if last is not None and each.begin <= last.end:
            last = Outage(last.begin, max(last.end, each.end), each.host)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last

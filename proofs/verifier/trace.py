"""What a run begins with: hosts, jobs, outages, costs of moving. It is read here, and nothing is decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from .profile import Course, Profile
from .reading import Entry, Number, distinct, require, within

Spots = tuple[tuple[int, int], ...]  #: where a job runs: (host, GPUs there), hosts by index
JOB = (
    "name tenant arrival gpus work throughput memory state_size pattern dataset dataset_size weight priority"
)
#: More outages than this are refused; each is looked at in a handful of rounds.
MOST_OUTAGES = 200_000


@dataclass(frozen=True)
class Outage:
    """A host, by index, is down from ``begin`` until ``end``."""

    begin: Fraction
    end: Number
    host: int


class Host:
    """A host; ``kind`` is the index of its type, ``speed`` a factor on the throughput of jobs there."""

    def __init__(self, entry: Entry, types: list[str]) -> None:
        fields = entry.fields("name type gpus bandwidth", "speed")
        self.name, self.kind = fields["name"].name(), fields["type"].position(types)
        self.gpus, self.bandwidth = fields["gpus"].integer(1), fields["bandwidth"].or_infinity()
        self.speed = Fraction(1) if fields["speed"].value is None else fields["speed"].amount(positive=True)


class Job:
    """A job as the trace has it; ``sizes``: numbers of GPUs that it may have."""

    def __init__(self, entry: Entry, setting: Setting) -> None:
        fields = entry.fields(JOB, "profile")
        self.name = fields["name"].name()
        fields = fields.at(f"job {self.name!r}")
        require(fields["tenant"].text() in setting.tenants, fields.place, "its tenant is not in the trace")
        fields["priority"].integer()
        fields["weight"].amount(positive=True)
        self.arrival, self.gpus = fields["arrival"].amount(), fields["gpus"].integer(1)
        self.work, self.memory = fields["work"].amount(positive=True), fields["memory"].amount()
        self.throughput = [each.amount() for each in fields["throughput"].items(len(setting.types))]
        self.pattern = fields["pattern"].choice(("alone", "intra", "inter"))
        self.dataset, self.dataset_size = fields["dataset"].text(), fields["dataset_size"].amount()
        self.state_size = fields["state_size"].amount()
        self.profile = None
        if fields["profile"].value is not None:
            at = fields["profile"].integer()
            require(at < len(setting.profiles), fields.place, "there is no such profile")
            self.profile = setting.profiles[at]
        self.sizes = {self.gpus} if self.profile is None else self.profile.sizes
        require(self.gpus in self.sizes, fields.place, "its number of GPUs is not in its profile")

    def course(self, gpus: int, hosts: int) -> Course:
        """Return the speeds on each type with one of the ``sizes`` on so many hosts, by the work done."""
        if self.profile is None:
            return [(Fraction(0), self.throughput)]
        return [each for each in self.profile.course(gpus, hosts) if each[0] < self.work]


class Setting:
    """The cluster, the outages and the mechanics."""

    def __init__(self, run: Entry, trace: Entry) -> None:
        self.length = run["length"].amount(positive=True)
        costs = run["mechanics"].fields("restart launch spread local_data")
        self.restart, self.launch = costs["restart"].amount(), costs["launch"].amount()
        self.spread = costs["spread"].amount(positive=True)
        require(self.spread <= 1, "mechanics, spread", "above 1")
        self.local_data = costs["local_data"].truth()
        self._read_cluster(run["cluster"].fields("types memory hosts"))
        require(trace["types"].value == self.types, "trace, types", "not those of the cluster")
        self.profiles = [Profile(each, len(self.types)) for each in trace["profiles"].or_none()]
        tenants = [each.fields("name weight") for each in trace["tenants"].items()]
        for each in tenants:
            each["weight"].amount(positive=True)
        self.tenants = frozenset(distinct([each["name"].name() for each in tenants], "tenants"))
        self.outages = self._outages(trace["outages"])

    def _read_cluster(self, fields: Entry) -> None:
        self.types = distinct([each.name() for each in fields["types"].items()], "cluster, types")
        self.memory = [each.or_infinity() for each in fields["memory"].items(len(self.types))]
        self.hosts = [Host(each, self.types) for each in fields["hosts"].items()]
        positive = all(each > 0 for each in [*self.memory, *(host.bandwidth for host in self.hosts)])
        require(positive, "cluster", "a memory or bandwidth is not positive")
        known = distinct([host.name for host in self.hosts], "cluster, hosts")
        self.host = {name: at for at, name in enumerate(known)}
        self.whole = [0] * len(self.types)
        for host in self.hosts:
            self.whole[host.kind] += host.gpus

    def _outages(self, entry: Entry) -> list[Outage]:
        """Return the outages by rising beginning; those of one host that meet are one."""
        entries = entry.items()
        within(len(entries), MOST_OUTAGES, "outages", "outages")
        by_host: dict[int, list[Outage]] = {}
        for each in entries:
            fields = each.fields("host begin end")
            begin, end = fields["begin"].amount(), fields["end"].or_infinity()
            require(begin < end, each.place, "it ends before it begins")
            host = fields["host"].position(self.host)
            by_host.setdefault(host, []).append(Outage(begin, end, host))
        found = [outage for own in by_host.values() for outage in _merged(own)]
        return sorted(found, key=lambda each: (each.begin, each.host))

    def spots(self, entry: Entry) -> Spots:
        """Return where a job runs."""
        pairs = [each.items(2) for each in entry.items()]
        return tuple((host.position(self.host), gpus.integer(1)) for host, gpus in pairs)

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

    def names(self, spots: Spots) -> list[str]:
        """Return the names of the types of GPUs at ``spots``."""
        return [self.types[kind] for kind in self.kinds(spots)]

    def course(self, job: Job, spots: Spots) -> list[tuple[Fraction, Fraction]]:
        """Return the speeds by the work done: those of the slowest host, less where a gang lies apart."""
        gpus, apart = sum(each for _, each in spots), len(spots) > 1 and job.pattern == "intra"
        gpus = gpus if gpus in job.sizes else job.gpus
        apart = apart and (job.profile is None or job.profile.hosts(gpus, len(spots)) == 1)
        hosts = [self.hosts[host] for host, _ in spots]
        slowest = [
            (mark, min(speeds[host.kind] * host.speed for host in hosts))
            for mark, speeds in job.course(gpus, len(spots))
        ]
        return [(mark, speed * self.spread if apart else speed) for mark, speed in slowest]

    def begins(self, job: Job, again: bool) -> Fraction:
        """Return the time to start a job, or to start it once more."""
        common = self.restart if again else self.launch
        return common if job.profile is None or job.profile.restart is None else job.profile.restart

    def pace(self, job: Job) -> Fraction:
        """Return the least speed that a job can have, by which its progress is judged while it waits."""
        known = [job.throughput] if job.profile is None else []
        for gpus, hosts in [] if job.profile is None else job.profile.rows:
            known += [speeds for _, speeds in job.course(gpus, hosts)]
        least = min((x for speeds in known for x in speeds if x > 0), default=Fraction(1))
        return least * min((host.speed for host in self.hosts), default=Fraction(1)) * self.spread

    def copying(self, size: Fraction, hosts: set[int]) -> Fraction:
        """Return the time to copy gigabytes between hosts and the network: the slowest link decides."""
        link = min(self.hosts[host].bandwidth for host in hosts)
        return Fraction(0) if link == inf else size / Fraction(link)


def _merged(outages: list[Outage]) -> Iterator[Outage]:
    last, *more = sorted(outages, key=lambda each: each.begin)
    for each in more:
        if each.begin <= last.end:
            last = Outage(last.begin, max(last.end, each.end), each.host)
        else:
            yield last
            last = each
    yield last

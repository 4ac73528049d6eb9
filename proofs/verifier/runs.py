"""Replay a run of rounds: ``python proofs/verify_run.py FILE... [--tolerance 1e-6]``. Trusts nothing of fairopt.

A run is one JSON document (`fairopt.simulation.document` names its keys): a cluster, a trace of jobs and outages,
what moving costs, and a record of every round. From the trace alone this file works out in fractions who is present in
each round, and from who ran where what came of it: every number of the record must be that one. It decides that

* gangs are whole, no host gives out more GPUs than it has, none that is down gives out any, nobody runs on a type
  that has no throughput or too little memory for it, leases are kept in place and never cut short;
* arrivals, waiting jobs, misfits and hosts that are down are complete lists, and no round is left out in which
  somebody could have run;
* speed, setup, progress, remaining work, the end, completion (once) and loss to a failed host follow from the
  mechanics, and so do the standings after the last round.

It does not decide whether the policy was followed. Not used: ``policy``, ``backend``, ``seconds``, ``costs``,
``notes``, why jobs are misfits, ``measures``, ``outcome``; tenants, weights, priorities, which only policies use.
A lease is the policy's choice. Runs in floats are decided up to ``--tolerance`` (relative, absolute below 1).
Exit status: 0 all accepted, 1 something is rejected, 2 something cannot be read.
"""

import json
import re
from collections import Counter, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .reading import Unreadable, opened

INF, ZERO = float("inf"), Fraction(0)
Spots = tuple[tuple[int, int], ...]  # (host, GPUs there), hosts rising
Ran = dict[int, tuple[Spots, dict[str, Any]]]  # by job: where it ran, and what is told of it
NUMBERS = ("begin", "end", "setup", "speed", "progress", "remaining")


def need(holds: bool, otherwise: str) -> bool:
    """Refuse to read on unless ``holds``."""
    if not holds:
        raise Unreadable(otherwise)
    return holds


JOB = "name tenant arrival gpus work throughput memory state_size pattern dataset dataset_size weight priority"
Host = namedtuple("Host", "name kind gpus bandwidth")  # the kind is the index of its type
Outage = namedtuple("Outage", "host begin end")  # hosts by index


@dataclass
class Standing:
    """How a job stands between two rounds."""

    remaining: Fraction
    lease: Any
    attained: Fraction = ZERO
    setup: Fraction = ZERO
    last: Spots = ()
    running: bool = False
    started: Any = INF


def number(value: Any, place: str) -> Fraction:
    """Return an integer, a string "p/q", or the Fraction that the parser made of a float."""
    written = str(value) if type(value) in (int, str, Fraction) else ""
    need(re.fullmatch(r"-?[0-9]+(/0*[1-9][0-9]*)?", written) is not None, f"{place}: {value!r:.60} is no number")
    return Fraction(written)


def endless(value: Any, place: str) -> Any:
    """Return a number, or infinity for null."""
    return INF if value is None else number(value, place)


def amount(value: Any, place: str, above: bool = False) -> Fraction:
    """Return a number that is not negative, or ``above`` 0."""
    found = number(value, place)
    need(found > 0 or (found == 0 and not above), f"{place}: {found} is too little")
    return found


def of(kind: Any, value: Any, place: str, least: int = 0) -> Any:
    """Return a value that must be of a type and, where it is an integer, at least ``least``."""
    need(type(value) is kind and (kind is not int or value >= least), f"{place}: {value!r:.60} cannot stand there")
    return value


def items(value: Any, place: str, length: int | None = None) -> list[Any]:
    """Return a list, of ``length`` where it is given."""
    need(type(value) is list and length in (None, len(value)), f"{place}: no list of {length or 'any'}")
    return list(value)


def fields(data: Any, keys: str, place: str) -> dict[str, Any]:
    """Return an object that has ``keys``, none missing and no other."""
    need(type(data) is dict and set(data) == set(keys.split()), f"{place}: the keys are not {keys}")
    return dict(data)


def different(names: list[Any], place: str) -> list[str]:
    """Return names, no two of which may be the same."""
    need(all(type(name) is str for name in names) and len(set(names)) == len(names), f"{place}: odd, or there twice")
    return names


class Replay:
    """A document and what follows from it; ``violations`` says where the record departs from that."""

    def __init__(self, data: Any, tolerance: Fraction = ZERO) -> None:
        data = {k: v for k, v in data.items() if k not in ("measures", "outcome")} if type(data) is dict else data
        told = fields(data, "schema policy length mechanics cluster trace rounds standing", "document")
        need(of(int, told["schema"], "schema") == 1, "schema: it is not 1")
        self.policy, self.length = of(str, told["policy"], "policy"), amount(told["length"], "length", above=True)
        self.tolerance = tolerance
        costs = fields(told["mechanics"], "restart launch spread local_data", "mechanics")
        self.restart, self.launch = (amount(costs[key], f"mechanics, {key}") for key in ("restart", "launch"))
        self.spread = amount(costs["spread"], "mechanics, spread", above=True)
        need(self.spread <= 1, "mechanics, spread: above 1")
        self.local_data = of(bool, costs["local_data"], "mechanics, local_data")
        self._read_cluster(told["cluster"])
        self._read_trace(told["trace"])
        self.rounds, self.standing = items(told["rounds"], "rounds"), items(told["standing"], "standing")
        whole = [sum(host.gpus for host in self.hosts if host.kind == kind) for kind in range(len(self.types))]
        fits = [any(self.suits(job, at) and job.gpus <= there for at, there in enumerate(whole)) for job in self.jobs]
        self.misfits = {row for row, fit in enumerate(fits) if not fit}
        self.present: dict[int, Standing] = {}
        self.held: list[set[str]] = [set() for _ in self.hosts]
        self.arrived = self.completed = 0

    def _read_cluster(self, data: Any) -> None:
        told = fields(data, "types memory hosts", "cluster")
        self.types = different(items(told["types"], "cluster, types"), "cluster, types")
        self.memory = [endless(each, "memory") for each in items(told["memory"], "memory", len(self.types))]
        self.hosts, self.outages = list[Host](), list[Outage]()
        for entry in items(told["hosts"], "cluster, hosts"):
            host = fields(entry, "name type gpus bandwidth", "host")
            place = f"host {host['name']!r:.60}"
            need(host["type"] in self.types, f"{place}: type {host['type']!r:.60} is not in the cluster")
            gpus, link = of(int, host["gpus"], f"{place}, gpus", 1), endless(host["bandwidth"], f"{place}, bandwidth")
            self.hosts.append(Host(host["name"], self.types.index(host["type"]), gpus, link))
        need(min([*self.memory, *(host.bandwidth for host in self.hosts)]) > 0, "memory or bandwidth: not positive")
        self.host = {name: at for at, name in enumerate(different([host.name for host in self.hosts], "hosts"))}

    def _read_trace(self, data: Any) -> None:
        told = fields(data, "types tenants jobs outages", "trace")
        need(told["types"] == self.types, "trace, types: not those of the cluster")
        tenants = [fields(each, "name weight", "tenant") for each in items(told["tenants"], "tenants")]
        owners = different([tenant["name"] for tenant in tenants], "tenants")
        need(all(amount(each["weight"], "tenant") for each in tenants), "a tenant weighs nothing")
        self.jobs = [self._job(each, owners) for each in items(told["jobs"], "trace, jobs")]
        self.name = different([job.name for job in self.jobs], "jobs")
        self.job = {name: row for row, name in enumerate(self.name)}
        need(all(a.arrival <= b.arrival for a, b in pairwise(self.jobs)), "the jobs' arrivals are not rising")
        for entry in items(told["outages"], "trace, outages"):
            fails = fields(entry, "host begin end", "outage")
            need(of(str, fails["host"], "outage") in self.host, f"outage: no host {fails['host']!r:.60}")
            begin, end = amount(fails["begin"], "outage, begin"), endless(fails["end"], "outage, end")
            self.outages.append(Outage(self.host[fails["host"]], begin, end))
        need(all(outage.begin < outage.end for outage in self.outages), "outage: it ends before it begins")

    def _job(self, data: Any, owners: list[str]) -> SimpleNamespace:
        told = fields(data, JOB, "job")
        place = f"job {told['name']!r:.60}"
        need(told["tenant"] in owners, f"{place}: no tenant {told['tenant']!r:.60}")
        need(told["pattern"] in ("alone", "intra", "inter"), f"{place}: pattern {told['pattern']!r:.60}")
        for key, kind, least in (("gpus", int, 1), ("priority", int, 0), ("dataset", str, 0)):
            of(kind, told[key], f"{place}, {key}", least)
        for key in ("arrival", "work", "memory", "state_size", "dataset_size", "weight"):
            told[key] = amount(told[key], f"{place}, {key}", above=key in ("work", "weight"))
        speeds = items(told["throughput"], f"{place}, throughput", len(self.types))
        return SimpleNamespace(**told | {"throughput": [amount(each, f"{place}, throughput") for each in speeds]})

    def near(self, one: Any, other: Any) -> bool:
        """Return whether two numbers are the same, up to the tolerance."""
        if INF in (one, other) or not self.tolerance:
            return bool(one == other)
        return bool(abs(one - other) <= self.tolerance * max(1, abs(one), abs(other)))

    def at_most(self, one: Any, other: Any, claimed: bool) -> bool:
        """Return whether ``one`` <= ``other``; where floats are too close to tell, what is claimed."""
        return bool(claimed if self.tolerance and self.near(one, other) else one <= other)

    def suits(self, job: Any, kind: int) -> bool:
        """Return whether a job can run on GPUs of a type."""
        return job.throughput[kind] > 0 and bool(job.memory <= self.memory[kind])

    def kinds(self, spots: Spots) -> list[int]:
        """Return the types of GPUs at ``spots``."""
        return sorted({self.hosts[host].kind for host, _ in spots})

    def spots(self, data: Any, place: str) -> Spots:
        """Return where a job runs, hosts by index."""
        pairs = [items(each, place, 2) for each in items(data, place)]
        need(all(type(host) is str and host in self.host for host, _ in pairs), f"{place}: a host that is not there")
        return tuple((self.host[host], of(int, gpus, place, 1)) for host, gpus in pairs)

    def copying(self, size: Fraction, hosts: set[int]) -> Fraction:
        """Return the time to copy gigabytes between hosts and the network: the slowest link decides."""
        link = min(self.hosts[host].bandwidth for host in hosts)
        return ZERO if link == INF else size / link

    def loading(self, job: Any, one: Standing, spots: Spots) -> Fraction:
        """Return the time that a job loads on ``spots`` before it works."""
        if one.running and one.last == spots:
            return one.setup
        before, now = ({host for host, _ in where} for where in (one.last, spots))
        lacking = {host for host in now if job.dataset not in self.held[host]}
        moved = self.copying(job.state_size, before | now) if before and now - before else ZERO
        read = self.copying(job.dataset_size, lacking) if self.local_data and job.dataset and lacking else ZERO
        return max(self.restart if before else self.launch, one.setup if now <= before else ZERO) + moved + read

    def violations(self) -> Iterator[str]:
        """Yield every departure of the record from what follows; `Unreadable` where it has not the right form."""
        keys = "index begin end arrived ran waiting misfits down usable costs notes backend seconds"
        following = 0
        for row, data in enumerate(self.rounds, 1):
            record = fields(data, keys, f"record {row}")
            index = of(int, record["index"], f"record {row}, index", 0)
            yield from (f"round {index}: {what}" for what in self._round(record, index, following))
            following = index + 1
        yield from (f"standing: {what}" for what in self._last())

    def _round(self, record: dict[str, Any], index: int, following: int) -> Iterator[str]:
        now, end = (number(record[key], f"round {index}, {key}") for key in ("begin", "end"))
        if index < following or not self.near(now, index * self.length) or not self.near(end, now + self.length):
            yield f"it is from {now} to {end}, after round {following - 1}, of length {self.length}"
        stuck, before = self.present.keys() <= self.misfits, (index - 1) * self.length
        next_ = self.jobs[self.arrived].arrival if self.arrived < len(self.jobs) else INF
        if index > following and not (stuck and not self.at_most(next_, before, False)):
            yield f"rounds {following} to {index - 1} have no record, and somebody was there"
        new = [row for row in range(self.arrived, len(self.jobs)) if self.jobs[row].arrival <= now]
        if stuck and not new:
            yield "it has a record, and nobody was there who could run or had just arrived"
        self.arrived += len(new)
        self.present |= {row: Standing(self.jobs[row].work, now) for row in new}
        down = {outage.host for outage in self.outages if outage.begin <= now < outage.end}
        for one in self.present.values():
            if not one.running or any(host in down for host, _ in one.last):
                one.running, one.lease = False, now
        ran = self._places(record["ran"], f"round {index}, ran")
        need(type(record["misfits"]) is dict, f"round {index}, misfits: no object")
        for key, found, right in (
            ("arrived", record["arrived"], [self.name[row] for row in new]),
            ("down", record["down"], [host.name for at, host in enumerate(self.hosts) if at in down]),
            ("usable", record["usable"], sum(host.gpus for at, host in enumerate(self.hosts) if at not in down)),
            ("waiting", record["waiting"], [self.name[row] for row in self.present if row not in ran]),
            ("misfits", [*record["misfits"]], [self.name[row] for row in self.present if row in self.misfits]),
        ):
            if type(found) is not type(right) or found != right:
                yield f"{key} is {found!r:.200} and should be {right!r:.200}"
        yield from self._booked(ran, down, now)
        for row, (spots, told) in ran.items():
            yield from (f"job {told['job']!r}: {what}" for what in self._play(row, spots, told, now, end))
        for row, host in [(row, host) for row, (spots, _) in ran.items() for host, _ in spots]:
            self.held[host].add(self.jobs[row].dataset)  # which is of use from the next round on
        for row, one in [*self.present.items()]:
            if row not in ran:
                one.running, one.lease = False, end
            elif ran[row][1]["completed"]:
                del self.present[row]
                self.completed += 1

    def _places(self, data: Any, place: str) -> Ran:
        keys = "job spots types before change begin end setup speed progress remaining lease completed lost"
        out: Ran = {}
        for entry in items(data, place):
            told = fields(entry, keys, place)
            name = of(str, told["job"], f"{place}, job")
            need(name in self.job and self.job[name] not in out, f"{place}: {name!r:.60} is no job, or ran twice")
            out[self.job[name]] = self.spots(told["spots"], f"{place}, {name!r}"), told
        return out

    def _booked(self, ran: Ran, down: set[int], now: Fraction) -> Iterator[str]:
        """Yield what is wrong with who runs where, the jobs taken together."""
        given = Counter[int]()
        for spots, _ in ran.values():
            given.update(dict(spots))
        for at, gpus in given.items():
            there = 0 if at in down else self.hosts[at].gpus
            if gpus > there:
                yield f"host {self.hosts[at].name!r} gives out {gpus} GPUs and has {there} that work"
        for row, one in self.present.items():
            if one.running and one.lease > now and (row not in ran or ran[row][0] != one.last):
                yield f"job {self.name[row]!r} has a lease until {one.lease} and is not where it was"

    def _play(self, row: int, spots: Spots, told: dict[str, Any], now: Fraction, end: Fraction) -> Iterator[str]:
        """Yield what is wrong with what a job did in a round, and carry on with how it stands then."""
        if row not in self.present:
            yield "it ran and is not present: not arrived, or completed before"
            return
        job, one = self.jobs[row], self.present[row]
        hosts, given = [host for host, _ in spots], sum(gpus for _, gpus in spots)
        if given != job.gpus or hosts != sorted(set(hosts)):
            yield f"it needs {job.gpus} GPUs at once, hosts rising, and gets {told['spots']!r:.200}"
        if not spots or row in self.misfits or not all(self.suits(job, kind) for kind in self.kinds(spots)):
            yield f"it cannot run there: {told['spots']!r:.200}"
            return
        lease = endless(told["lease"], "lease")
        if one.running and now < one.lease and lease < one.lease:
            yield f"its lease until {one.lease} is cut short to {lease}"
        setup, speed = self.loading(job, one, spots), min(job.throughput[kind] for kind in self.kinds(spots))
        speed *= self.spread if len(spots) > 1 and job.pattern == "intra" else 1
        completed, lost = (of(bool, told[key], f"job {job.name!r}, {key}") for key in ("completed", "lost"))
        done = now + setup + one.remaining / speed
        in_time = self.at_most(done, end, completed)
        until = done if in_time else end
        failures = [outage.begin for outage in self.outages if outage.host in hosts and now < outage.begin]
        failed = min((at for at in failures if not self.at_most(until, at, not lost)), default=None)
        until = until if failed is None else failed
        spent = min(setup, until - now)
        progress = ZERO if failed is not None else one.remaining if in_time else (until - now - spent) * speed
        remaining = one.remaining - progress
        paused = "resume" if set(hosts) <= {host for host, _ in one.last} else "migrate"
        for key, right in {
            "types": [self.types[kind] for kind in self.kinds(spots)],
            "before": [self.types[kind] for kind in self.kinds(one.last)],
            "change": "start" if not one.last else "stay" if one.running and spots == one.last else paused,
            "completed": in_time and failed is None,
            "lost": failed is not None,
        }.items():
            if told[key] != right:
                yield f"{key} is {told[key]!r:.80} and should be {right!r}"
        for key, value in zip(NUMBERS, (now, until, spent, speed, progress, remaining), strict=True):
            if not self.near(found := number(told[key], f"job {job.name!r}, {key}"), value):
                yield f"{key} is {found} and should be {value}"
        # floats go on from what is recorded, so that only the error of one round is forgiven
        one.remaining = number(told["remaining"], "remaining") if self.tolerance else remaining
        one.attained += given * (until - now)
        one.setup = setup if failed is not None else setup - spent
        one.last, one.running, one.lease = spots, failed is None, lease if failed is None else end
        one.started = now if one.started == INF else one.started

    def _last(self) -> Iterator[str]:
        """Yield where the standings after the last round are not what was worked out."""
        keys = "job remaining attained setup last running lease started"
        told = [fields(each, keys, "standing") for each in self.standing]
        names = [self.name[row] for row in self.present]
        if [each["job"] for each in told] != names:
            yield f"the jobs under way are {names!r:.200}, not {[each['job'] for each in told]!r:.200}"
            return
        for name, each, one in zip(names, told, self.present.values(), strict=True):
            if self.spots(each["last"], "standing, last") != one.last or each["running"] is not one.running:
                yield f"job {name!r}: where it ran last, or whether it runs, is wrong"
            for key in ("remaining", "attained", "setup", "lease", "started"):
                if not self.near(found := endless(each[key], f"standing, {key}"), value := getattr(one, key)):
                    yield f"job {name!r}: {key} is {found} and should be {value}"

    def statement(self) -> str:
        """Return what has been checked, for a document without violations."""
        stuck = len(self.present.keys() & self.misfits)
        jobs = f"of {len(self.jobs)} jobs {self.arrived} arrived, {self.completed} were completed, {stuck} fit no type"
        record = f"{len(self.rounds)} rounds of {self.policy!r} are what trace, placements and mechanics give"
        return f"{record}: {jobs}, {len(self.present) - stuck} are under way"


def decide(text: str, tolerance: Fraction = ZERO) -> tuple[list[str], str]:
    """Return the violations in a document, none where it is right, and then the statement that has been checked."""

    def of_float(written: str) -> Any:  # without a tolerance it stays a float, which is no number here
        return Fraction(float(written)) if tolerance else float(written)

    def of_object(pairs: list[tuple[str, Any]]) -> Any:
        return need(len(dict(pairs)) == len(pairs), "a key stands twice in an object") and dict(pairs)

    try:
        replay = Replay(json.loads(text, object_pairs_hook=of_object, parse_float=of_float), tolerance)
        found = list(replay.violations())
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Unreadable(f"not the JSON of a run: {error!r:.200}") from error
    return found, "" if found else replay.statement()


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a run."""
    return type(first) is dict and "rounds" in first and "trace" in first


def decide_file(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return the violations in a file, none where it is right, and then the statement that has been checked."""
    with opened(path) as stream:
        return decide(stream.read().decode("utf-8"), tolerance or ZERO)

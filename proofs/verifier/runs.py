"""Recorded runs: from the trace, and from who was put where, every number of the record is worked out again.

A run is a record of changes (JSON lines, ``fairopt run --record``), read as a stream, or a document with the
whole record of every round (``fairopt run --json``). `simulate` says what should be there. It is decided that

* gangs are whole, no host gives out more GPUs than it has, none that is down gives out any, nobody runs on a
  type that has no throughput or too little memory for it, leases are kept in place and never cut short;
* arrivals, starts, stops, unschedulable jobs, failures, completions and losses are those that follow, none is
  left out, and no round is left out in which somebody could have run;
* speed, loading, progress, work left, and the standings after the last round follow from the mechanics.

What is not decided, the statement names. A lease is the policy's choice. Runs in floats are decided within a
tolerance: times by that part of a round, progress by that part of what the job does in a round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from .reading import Entry, Number, Unreadable, brief, digest, document, first, lines, parsed, require, shown
from .simulate import Chosen, JobRun, Played, Simulation
from .trace import Job, Setting

ROUND = "index begin end arrived ran waiting unschedulable down usable costs notes backend seconds"
RAN = "job spots types before change begin end setup speed progress remaining lease completed lost"
PLACED = ("start", "resume", "migrate")
LINE = "failed back unschedulable stop start resume migrate lease complete lost costs notes backend seconds"
STANDING = "job remaining attained setup last running lease started"
#: Beyond this a tolerance would not tell one round from the next.
MOST_TOLERANCE = Fraction(1, 100)
MOST_VIOLATIONS = 1000


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a run, or as the first line of a record."""
    return type(first) is dict and ("run" in first or ("rounds" in first and "trace" in first))


def decide_file(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return the violations in a file, and where there is none the statement that has been checked."""
    begins = first(path)[0]
    if type(begins) is dict and "run" in begins:
        return _decided(Record(lines(path), tolerance or Fraction(0)))
    return _decided(Document(document(path), tolerance or Fraction(0)))


def decide(written: str, tolerance: Fraction = Fraction(0)) -> tuple[list[str], str]:
    """Return the violations in the text of a record or document, and the statement that has been checked."""
    head, _, more = written.partition("\n")
    if head.startswith('{"schema"') and '"run"' in head[:40]:
        return _decided(Record((parsed(each) for each in [head, *more.splitlines()]), tolerance))
    return _decided(Document(parsed(written), tolerance))


def _decided(judge: Judge) -> tuple[list[str], str]:
    found = list(islice(judge.violations(), MOST_VIOLATIONS))
    if len(found) == MOST_VIOLATIONS:
        return [*found, "and more: reading stopped here"], ""
    return found, "" if found else judge.statement()


class Judge:
    """What both forms of a run have in common: how they begin, how numbers are compared, how they end."""

    policy: str
    setting: Setting
    simulation: Simulation
    named = digest = ""

    def __init__(self, tolerance: Fraction) -> None:
        require(0 <= tolerance <= MOST_TOLERANCE, "tolerance", f"it is not from 0 to {MOST_TOLERANCE}")
        self.tolerance, self.floats = tolerance, tolerance > 0
        self.jobs = self.rounds = 0
        self.arrival, self.known = Fraction(0), set[str]()

    def violations(self) -> Iterator[str]:
        """Yield what is wrong; `Unreadable` where the form is."""
        raise NotImplementedError

    def begin(self, run: Entry, trace: Entry) -> None:
        """Read what the run began with."""
        self.policy, self.setting = run["policy"].text(), Setting(run, trace)
        self.named = digest([run[key].value for key in ("length", "mechanics", "cluster")])
        self.simulation = Simulation(self.setting, self.tolerance)

    def job(self, entry: Entry) -> Job:
        """Read a job; they come by rising arrival, no two with one name."""
        job = Job(entry, self.setting)
        require(job.arrival >= self.arrival, f"job {job.name!r}", "the jobs' arrivals are not rising")
        require(job.name not in self.known, f"job {job.name!r}", "the name stands twice")
        self.arrival = job.arrival
        self.known.add(job.name)
        return job

    def off(self, key: str, entry: Entry, right: Number, scale: Fraction) -> Iterator[str]:
        """Yield that a number is not the right one, up to the tolerance times its scale."""
        found = entry.or_infinity()
        alike = found == right
        if not alike and inf not in (found, right):
            alike = abs(Fraction(found) - Fraction(right)) <= self.tolerance * scale
        if not alike:
            yield f"{key} is {shown(found)} and should be {shown(right)}"

    def standings(self, given: list[Entry], index: int) -> Iterator[str]:
        """Yield where jobs do not stand as they should when round ``index`` is over."""
        simulation, length = self.simulation, self.setting.length
        entries = [each.at("standing").fields(STANDING) for each in given]
        names, present = [each["job"].value for each in entries], list(simulation.present)
        if names != present:
            yield f"standing: the jobs under way are {brief(present)}, not {brief(names)}"
            return
        for each, one in zip(entries, simulation.present.values(), strict=True):
            place, work = f"standing: job {one.job.name!r}: ", self.setting.pace(one.job) * length
            remaining, setup, attained = simulation.at(one, index + 1)
            if self.setting.spots(each["last"]) != one.last or each["running"].value is not one.running:
                yield f"{place}where it ran last, or whether it runs, is wrong"
            for key, right, scale in (
                ("remaining", remaining, work),
                ("attained", attained, length * one.job.gpus),
                ("setup", setup, length),
                ("lease", simulation.lease(one, index), length),
                ("started", one.started, length),
            ):
                yield from (place + what for what in self.off(key, each[key], right, scale))

    def outcome(self, entry: Entry) -> Iterator[str]:
        """Yield that a run is said to be complete and is not, or the other way round."""
        if entry.value is None:
            return
        complete = self.simulation.idle and self.simulation.arrived == self.jobs
        if entry.fields("complete", "stopped options")["complete"].truth() is not complete:
            yield f"outcome: complete is {not complete} and should be {complete}"

    def statement(self) -> str:
        """Return what has been checked, for a run without violations."""
        one, setting = self.simulation, self.setting
        kinds = zip(setting.types, setting.whole, strict=True)
        gpus = ", ".join(f"{there} {name!r}" for name, there in kinds)
        jobs = f"of {self.jobs} jobs {one.arrived} arrived, {one.completed} were completed"
        left = f"{len(one.present) - one.able} fit no type, {one.able} are under way"
        within = f", within {float(self.tolerance)} of a round" if self.floats else ""
        trace = f"; the trace has sha256 {self.digest}; length, mechanics and cluster are {self.named}"
        return (
            f"{self.rounds} rounds on {len(setting.hosts)} hosts ({gpus}) are what trace, placements, leases "
            f"and mechanics give{within}: {jobs}, {left}{trace}. Not judged: whether the policy that is said "
            f"to be {self.policy!r} decides so; costs, notes, backend, seconds, measures, "
            "why jobs fit no type"
        )


def differing(found: Mapping[str, Any], right: dict[str, Any]) -> Iterator[str]:
    """Yield which of what is told is not what it should be."""
    for key, value in right.items():
        if type(found[key]) is not type(value) or found[key] != value:
            yield f"{key} is {brief(found[key])} and should be {brief(value)}"


class Record(Judge):
    """A record of changes, read line by line: in memory are the jobs present, and all names."""

    def __init__(self, values: Iterable[Any], tolerance: Fraction) -> None:
        super().__init__(tolerance)
        self.lines = iter(values)
        head = Entry(next(self.lines, None), "line 1", self.floats).fields("schema run")
        if head["schema"].value == 1:
            state = "the state file of an earlier fairopt: give what `run --json` or `--record` wrote"
            raise Unreadable(f"line 1: {state}")
        head["schema"].version(2)
        run = head["run"].fields("policy options backend numbers length mechanics cluster trace")
        trace = run["trace"].fields("types tenants jobs outages sha256", "profiles")
        if run["numbers"].value != "exact" and not self.floats:
            raise Unreadable("a run in floats is decided within a tolerance: give one, as --tolerance 1e-6")
        self.jobs = trace["jobs"].integer()
        self.begin(run, trace)
        hashed = {key: value for key, value in trace.value.items() if key != "sha256" and value is not None}
        self.said, self.hash = trace["sha256"].value, hashlib.sha256(_canonical(hashed))
        self.pending: list[Job] = []
        self.standing: list[Entry] = []

    def violations(self) -> Iterator[str]:
        """Yield what is wrong, line by line."""
        for at, data in enumerate(self.lines, 2):
            line = Entry(data, f"line {at}", self.floats)
            require(type(data) is dict and data, line.place, "it is no object")
            kind = next(iter(data))
            if kind == "job":
                self.hash.update(b"\n" + _canonical(data["job"]))
                self.pending.append(self.job(line["job"]))
            elif kind == "round":
                yield from self._round(line.fields("round", LINE))
            elif kind == "standing":
                self.standing.append(line["standing"])
            elif kind == "end":
                yield from self._end(line.fields("end seconds", "outcome measures"))
                require(next(self.lines, None) is None, line.place, "more follows the end of the run")
                return
            else:
                require(kind == "snapshot", line.place, f"{brief(kind)} is no kind of line")
        raise Unreadable("it breaks off before its last line")

    def _round(self, line: Entry) -> Iterator[str]:
        simulation = self.simulation
        index = line["round"].integer(simulation.index)
        yield from simulation.quiet(index)
        if simulation.idle and not self.pending:
            yield f"round {index} has a line, and nobody was there who could run or had just arrived"
        simulation.coming, self.pending = self.pending, []
        self.rounds += 1 if simulation.idle else index + 1 - simulation.index
        played = simulation.play(index, self._chosen(line))
        yield from (f"round {index}: {what}" for what in [*played.wrong, *self._compared(line, played)])

    def _chosen(self, line: Entry) -> Chosen:
        hosts = self.setting.host
        failed, back = ({name.position(hosts) for name in line[key].or_none()} for key in ("failed", "back"))
        placements = [each for how in PLACED for each in line[how].by_name().items()]
        return Chosen(
            placed={name: self.setting.spots(spots) for name, spots in placements},
            stop={name.text() for name in line["stop"].or_none()},
            lease={name: until.or_infinity() for name, until in line["lease"].by_name().items()},
            complete=set(line["complete"].by_name()),
            lost=set(line["lost"].by_name()),
            down=(self.simulation.down | failed) - back,
        )

    def _compared(self, line: Entry, played: Played) -> Iterator[str]:
        """Yield where the line is not the one that should be there."""
        ended = {"complete": played.complete, "lost": played.lost}
        listed = {"failed": played.failed, "back": played.back, "stop": played.stop}
        named = {key: sorted(ends) for key, ends in ended.items()}
        named["unschedulable"] = sorted(played.unschedulable)
        for how in PLACED:
            named[how] = sorted(name for name, (change, _, _) in played.placed.items() if change == how)
        line["unschedulable"].by_name()  # their form only; that of the others `_told` has seen
        found = {key: line.value[key] or [] for key in listed}
        yield from differing(found | {key: sorted(line.value[key] or ()) for key in named}, listed | named)
        for key, moments in ended.items():
            for name, moment in line[key].by_name().items():
                if name in moments:
                    yield from self.off(f"job {name!r}: {key}", moment, moments[name], self.setting.length)

    def _end(self, line: Entry) -> Iterator[str]:
        simulation = self.simulation
        end = line["end"].integer(simulation.index)
        yield from simulation.quiet(end)
        if simulation.idle and end > simulation.index:
            yield f"end: rounds {simulation.index} to {end - 1} have nobody who could run"
        self.rounds += 0 if simulation.idle else end - simulation.index
        for job in self.pending:
            if end and simulation.at_most(job.arrival, (end - 1) * self.setting.length, False):
                yield f"job {job.name!r} arrived at {shown(job.arrival)}, and no round says so"
        if len(self.known) != self.jobs:
            yield f"trace: {len(self.known)} jobs are told, and there are {self.jobs}"
        self.digest = self.hash.hexdigest()
        if self.digest != self.said:
            yield f"trace: its sha256 is {self.digest}, not {brief(self.said)}"
        yield from self.standings(self.standing, end - 1)
        yield from self.outcome(line["outcome"])


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


class Document(Judge):
    """A document with the whole record of every round."""

    def __init__(self, data: Any, tolerance: Fraction) -> None:
        super().__init__(tolerance)
        keys = "schema policy length mechanics cluster trace rounds standing"
        self.document = Entry(data, floats=self.floats).fields(keys, "outcome measures")
        self.document["schema"].version()
        trace = self.document["trace"].fields("types tenants jobs outages", "profiles")
        self.begin(self.document, trace)
        self.coming = [self.job(each) for each in trace["jobs"].items()]
        self.coming.reverse()
        self.jobs = len(self.coming)
        hashed = [trace.value | {"jobs": self.jobs}, *trace.value["jobs"]]
        hashed[0].pop("profiles") if trace.value["profiles"] is None else None
        self.digest = hashlib.sha256(b"\n".join(map(_canonical, hashed))).hexdigest()

    def violations(self) -> Iterator[str]:
        """Yield what is wrong, round by round."""
        for entry in self.document["rounds"].items():
            record = entry.fields(ROUND)
            index = record["index"].integer()
            require(index >= self.simulation.index, entry.place, f"round {index} comes too late")
            yield from (f"round {index}: {what}" for what in self._round(record.at(f"round {index}"), index))
            self.rounds += 1
        yield from self.standings(self.document["standing"].items(), self.simulation.index - 1)
        yield from self.outcome(self.document["outcome"])

    def _round(self, record: Entry, index: int) -> Iterator[str]:
        simulation, length = self.simulation, self.setting.length
        yield from self.off("begin", record["begin"], index * length, length)
        yield from self.off("end", record["end"], (index + 1) * length, length)
        if index > simulation.index and not simulation.idle:
            yield f"rounds {simulation.index} to {index - 1} have no record, and somebody was there"
        arrived = {brief(each.value) for each in record["arrived"].items()}
        while self.coming and simulation.at_most(
            self.coming[-1].arrival, index * length, brief(self.coming[-1].name) in arrived
        ):
            simulation.coming.append(self.coming.pop())
        if simulation.idle and not simulation.coming:
            yield "it has a record, and nobody was there who could run or had just arrived"
        entries = [each.fields(RAN) for each in record["ran"].items()]
        ran = {each["job"].text(): each for each in entries}
        require(len(ran) == len(entries), record["ran"].place, "a job ran twice")
        played = simulation.play(index, self._chosen(record, ran))
        yield from played.wrong
        yield from self._compared(record, played)
        for name, entry in ran.items():
            if name in played.ran:
                yield from (f"job {name!r}: {what}" for what in self._ran(entry, played.ran[name]))

    def _chosen(self, record: Entry, ran: dict[str, Entry]) -> Chosen:
        simulation = self.simulation
        down = {name.position(self.setting.host) for name in record["down"].items()}
        placed = {name: self.setting.spots(each["spots"]) for name, each in ran.items()}
        stop = simulation.running - placed.keys()
        for name in simulation.running & placed.keys():  # those that go on as they did are not placed again
            spots = placed[name]
            if simulation.present[name].last == spots and not any(host in down for host, _ in spots):
                del placed[name]
        return Chosen(
            placed=placed,
            stop=stop,
            lease={name: each["lease"].or_infinity() for name, each in ran.items()},
            complete={name for name, each in ran.items() if each["completed"].truth()},
            lost={name for name, each in ran.items() if each["lost"].truth()},
            whole=True,
            down=down,
        )

    def _compared(self, record: Entry, played: Played) -> Iterator[str]:
        """Yield where the lists of a record are not those that should be there."""
        simulation, hosts = self.simulation, self.setting.hosts
        right = {
            "arrived": played.arrived,
            "down": [hosts[host].name for host in sorted(simulation.down)],
            "usable": sum(host.gpus for at, host in enumerate(hosts) if at not in simulation.down),
            "waiting": [name for name in [*simulation.present, *played.complete] if name not in played.ran],
            "unschedulable": [name for name, one in simulation.present.items() if not one.fits],
        }
        yield from differing(record.value | {"unschedulable": list(record["unschedulable"].by_name())}, right)

    def _ran(self, entry: Entry, ran: JobRun) -> Iterator[str]:
        """Yield where what is told of a job is not what it did."""
        yield from differing(entry.value, ran.words)
        for key, (value, scale) in ran.numbers.items():
            yield from self.off(key, entry[key], value, scale)

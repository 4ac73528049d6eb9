"""Recorded runs: from the trace, and from who was put where, every number of the record is worked out again.

A run is a record of changes (JSON lines, ``fairopt run --record``), read as a stream, or a document with the
whole record of every round (``fairopt run --json``). `simulate` says what should stand there; here the two are compared. It is
decided that

* gangs are whole, no host gives out more GPUs than it has, none that is down gives out any, nobody runs on a type
  that has no throughput or too little memory for it, leases are kept in place and never cut short;
* arrivals, starts, stops, misfits, failures, completions and losses are those that follow, none is left out, and no
  round is left out in which somebody could have run;
* speed, loading, progress and work left follow from the mechanics, and so do the standings after the last round, and
  whether every job that can run is done.

What is not decided, the statement names: whether the policy decides so, and what nobody can work out. A lease is the
policy's choice. Runs in floats are decided within a tolerance: times by that part of a round, progress by that part of
what the job does in a round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from .reading import (
    Number,
    Unreadable,
    brief,
    document,
    fields,
    first,
    integer,
    items,
    lines,
    or_infinity,
    parsed,
    position,
    require,
    schema,
    shown,
    text,
    truth,
)
from .simulate import Came, Ran, Simulation, Told
from .trace import Job, Setting, Spots

PLACED = ("start", "resume", "migrate")
LINE = "failed back misfits stop start resume migrate lease complete lost costs notes backend seconds"
ROUND = "index begin end arrived ran waiting misfits down usable costs notes backend seconds"
RAN = "job spots types before change begin end setup speed progress remaining lease completed lost"
STANDING = "job remaining attained setup last running lease started"
#: Beyond this a tolerance would not tell one round from the next.
MOST_TOLERANCE = Fraction(1, 100)
MOST_VIOLATIONS = 1000


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a run, or as the first line of a record."""
    return type(first) is dict and ("run" in first or ("rounds" in first and "trace" in first))


def decide_file(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return the violations in a file, none where it is right, and then the statement that has been checked."""
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
    found: list[str] = []
    for what in judge.violations():
        found.append(what)
        if len(found) >= MOST_VIOLATIONS:
            return [*found, "and more: reading stopped here"], ""
    return found, "" if found else judge.statement()


class Judge:
    """What both forms of a run have in common: how they begin, how numbers are compared, how they end."""

    policy: str
    setting: Setting
    simulation: Simulation
    jobs = 0
    digest = ""

    def __init__(self, tolerance: Fraction) -> None:
        require(0 <= tolerance <= MOST_TOLERANCE, "tolerance", f"it is not from 0 to {MOST_TOLERANCE}")
        self.tolerance, self.floats = tolerance, tolerance > 0

    def violations(self) -> Iterator[str]:
        """Yield what is wrong; `Unreadable` where the form is."""
        raise NotImplementedError

    def begin(self, told: dict[str, Any], trace: dict[str, Any]) -> None:
        """Read what the run began with."""
        self.policy = text(told["policy"], "policy")
        self.setting = Setting(told["length"], told["mechanics"], told["cluster"], trace, self.floats)
        self.simulation = Simulation(self.setting, self.tolerance)
        self.rounds, self.arrival, self.known = 0, Fraction(0), set[str]()

    def job(self, data: Any) -> Job:
        """Read a job; they come by rising arrival, no two with one name."""
        job = self.setting.job(data)
        require(job.arrival >= self.arrival, f"job {job.name!r}", "the jobs' arrivals are not rising")
        require(job.name not in self.known, f"job {job.name!r}", "the name stands twice")
        self.arrival = job.arrival
        self.known.add(job.name)
        return job

    # -- numbers ---------------------------------------------------------------------------------------------
    def off(self, key: str, told: Any, right: Number, scale: Fraction) -> Iterator[str]:
        """Yield that a number is not the right one, up to the tolerance times its scale."""
        found = or_infinity(told, key, floats=self.floats)
        alike = found == right
        if not alike and inf not in (found, right):
            alike = abs(Fraction(found) - Fraction(right)) <= self.tolerance * scale
        if not alike:
            yield f"{key} is {shown(found)} and should be {shown(right)}"

    def standings(self, told: list[Any], index: int) -> Iterator[str]:
        """Yield where jobs do not stand as they should when round ``index`` is over."""
        simulation, length = self.simulation, self.setting.length
        entries = [fields(each, "standing", STANDING) for each in told]
        if [each["job"] for each in entries] != list(simulation.present):
            names = brief([each["job"] for each in entries])
            yield f"standing: the jobs under way are {brief(list(simulation.present))}, not {names}"
            return
        for each, one in zip(entries, simulation.present.values(), strict=True):
            place, work = f"standing: job {one.job.name!r}: ", self.setting.pace(one.job) * length
            remaining, setup, attained = simulation.at(one, index + 1)
            if self.setting.spots(each["last"], f"{place}last") != one.last or each["running"] is not one.running:
                yield f"{place}where it ran last, or whether it runs, is wrong"
            for key, right, scale in (
                ("remaining", remaining, work),
                ("attained", attained, length * one.job.gpus),
                ("setup", setup, length),
                ("lease", simulation.lease(one, index), length),
                ("started", one.started, length),
            ):
                yield from (place + what for what in self.off(key, each[key], right, scale))

    def outcome(self, told: Any) -> Iterator[str]:
        """Yield that a run is said to be complete and is not, or the other way round."""
        if told is None:
            return
        data = fields(told, "outcome", "complete", "stopped options")
        complete = self.simulation.idle and self.simulation.arrived == self.jobs
        if truth(data["complete"], "outcome, complete") is not complete:
            yield f"outcome: complete is {not complete} and should be {complete}"

    def statement(self) -> str:
        """Return what has been checked, for a run without violations."""
        one, setting = self.simulation, self.setting
        stuck = len(one.present) - one.able
        gpus = ", ".join(f"{there} {name}" for name, there in zip(setting.types, setting.whole, strict=True))
        jobs = f"of {self.jobs} jobs {one.arrived} arrived, {one.completed} were completed, {stuck} fit no type"
        within = f", within {float(self.tolerance):g} of a round" if self.floats else ""
        trace = f" of the trace with sha256 {self.digest}" if self.digest else ""
        return (
            f"{self.rounds} rounds on {len(setting.hosts)} hosts ({gpus}) are what trace, placements, leases and "
            f"mechanics give{within}: {jobs}, {one.able} are under way{trace}. Not judged: whether the policy that is "
            f"said to be {self.policy!r} decides so; costs, notes, back end, seconds, measures, why jobs are misfits"
        )


class Record(Judge):
    """A record of changes, read line by line: memory holds the jobs present, and a name of each that ever came."""

    def __init__(self, told: Iterable[Any], tolerance: Fraction) -> None:
        super().__init__(tolerance)
        self.lines = iter(told)
        head = fields(next(self.lines, None), "line 1", "schema run")
        if head["schema"] == 1:
            raise Unreadable("line 1: the state file of an earlier fairopt: give what `run --json` or `--record` wrote")
        schema(head["schema"], "", 2)
        run = fields(head["run"], "run", "policy options backend numbers length mechanics cluster trace")
        trace = fields(run["trace"], "trace", "types tenants jobs outages sha256")
        if run["numbers"] != "exact" and not self.floats:
            raise Unreadable("a run in floats is decided within a tolerance; give one, such as --tolerance 1e-6")
        self.jobs = integer(trace["jobs"], "trace, jobs")
        self.begin(run, trace)
        self.said = trace["sha256"]
        self.hash = hashlib.sha256(_canonical({key: trace[key] for key in trace if key != "sha256"}))
        self.pending: list[Job] = []
        self.standing: list[Any] = []

    def violations(self) -> Iterator[str]:
        """Yield what is wrong, line by line."""
        for at, line in enumerate(self.lines, 2):
            require(type(line) is dict and line, f"line {at}", "it is no object")
            kind = next(iter(line))
            if kind == "job":
                self.hash.update(b"\n" + _canonical(line["job"]))
                self.pending.append(self.job(line["job"]))
            elif kind == "round":
                yield from self._round(fields(line, f"line {at}", "round", LINE), f"line {at}")
            elif kind == "standing":
                self.standing.append(line["standing"])
            elif kind == "end":
                yield from self._end(fields(line, f"line {at}", "end seconds", "outcome measures"))
                require(next(self.lines, None) is None, f"line {at}", "it says that the run ends, and more follows")
                return
            else:
                require(kind == "snapshot", f"line {at}", f"{brief(kind)} is no kind of line")
        raise Unreadable("it breaks off before its last line")

    def _round(self, line: dict[str, Any], place: str) -> Iterator[str]:
        index, simulation = integer(line["round"], place, least=self.simulation.index), self.simulation
        yield from simulation.quiet(index)
        if simulation.idle and not self.pending:
            yield f"round {index} has a line, and nobody was there who could run or had just arrived"
        simulation.coming, self.pending = self.pending, []
        self.rounds += 1 if simulation.idle else index + 1 - simulation.index
        came = simulation.play(index, self._told(line, place))
        yield from (f"round {index}: {what}" for what in came.wrong)
        yield from (f"round {index}: {what}" for what in self._compared(line, came))

    def _told(self, line: dict[str, Any], place: str) -> Told:
        placed: dict[str, Spots] = {}
        for how in PLACED:
            for name, spots in _object(line[how], place).items():
                placed[name] = self.setting.spots(spots, place)
        hosts = self.setting.host
        failed, back = ({position(name, hosts, place) for name in _list(line[key], place)} for key in ("failed", "back"))
        return Told(
            placed,
            [text(each, place) for each in _list(line["stop"], place)],
            {
                name: or_infinity(until, place, floats=self.floats)
                for name, until in _object(line["lease"], place).items()
            },
            set(_object(line["complete"], place)),
            set(_object(line["lost"], place)),
            down=(self.simulation.down | failed) - back,
        )

    def _compared(self, line: dict[str, Any], came: Came) -> Iterator[str]:
        """Yield where the line is not the one that should be there."""
        right: dict[str, Any] = {"failed": came.failed, "back": came.back, "stop": came.stop}
        right |= {"misfits": sorted(came.misfits), "complete": sorted(came.complete), "lost": sorted(came.lost)}
        for how in PLACED:
            right[how] = sorted(name for name, (change, _, _) in came.placed.items() if change == how)
        for key, value in right.items():
            told = line[key] if line[key] is not None else []
            found = told if key in ("failed", "back", "stop") else sorted(told)
            if found != value:
                yield f"{key} is {brief(found)} and should be {brief(value)}"
        for key, moments in (("complete", came.complete), ("lost", came.lost)):
            for name in moments.keys() & (line[key] or {}).keys():
                yield from self.off(f"job {name!r}: {key}", line[key][name], moments[name], self.setting.length)

    def _end(self, line: dict[str, Any]) -> Iterator[str]:
        simulation = self.simulation
        end = integer(line["end"], "end", least=simulation.index)
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


class Document(Judge):
    """A document with the whole record of every round."""

    def __init__(self, data: Any, tolerance: Fraction) -> None:
        super().__init__(tolerance)
        keys = "schema policy length mechanics cluster trace rounds standing"
        self.told = fields(data, "document", keys, "outcome measures")
        schema(self.told["schema"], "")
        trace = fields(self.told["trace"], "trace", "types tenants jobs outages")
        self.begin(self.told, trace)
        self.coming = [self.job(each) for each in items(trace["jobs"], "trace, jobs")]
        self.coming.reverse()
        self.jobs = len(self.coming)

    def violations(self) -> Iterator[str]:
        """Yield what is wrong, round by round."""
        for row, data in enumerate(items(self.told["rounds"], "rounds"), 1):
            record = fields(data, f"record {row}", ROUND)
            index = integer(record["index"], f"record {row}, index")
            require(index >= self.simulation.index, f"record {row}", f"round {index} comes too late")
            yield from (f"round {index}: {what}" for what in self._round(record, index))
            self.rounds += 1
        yield from self.standings(items(self.told["standing"], "standing"), self.simulation.index - 1)
        yield from self.outcome(self.told["outcome"])

    def _round(self, record: dict[str, Any], index: int) -> Iterator[str]:
        simulation, length = self.simulation, self.setting.length
        place = f"round {index}"
        yield from self.off("begin", record["begin"], index * length, length)
        yield from self.off("end", record["end"], (index + 1) * length, length)
        if index > simulation.index and not simulation.idle:
            yield f"rounds {simulation.index} to {index - 1} have no record, and somebody was there"
        arrived = set(map(brief, items(record["arrived"], f"{place}, arrived")))
        while self.coming and simulation.at_most(
            self.coming[-1].arrival, index * length, brief(self.coming[-1].name) in arrived
        ):
            simulation.coming.append(self.coming.pop())
        if simulation.idle and not simulation.coming:
            yield "it has a record, and nobody was there who could run or had just arrived"
        ran = {each["job"]: each for each in self._entries(record["ran"], place)}
        came = simulation.play(index, self._decisions(record, ran, place))
        yield from came.wrong
        yield from self._compared(record, came)
        for name, told in ran.items():
            if name in came.ran:
                yield from (f"job {name!r}: {what}" for what in self._ran(told, came.ran[name], came))

    def _entries(self, data: Any, place: str) -> list[dict[str, Any]]:
        entries = [fields(each, f"{place}, ran", RAN) for each in items(data, f"{place}, ran")]
        names = [text(each["job"], f"{place}, ran") for each in entries]
        require(len(set(names)) == len(names), f"{place}, ran", "a job ran twice")
        return entries

    def _decisions(self, record: dict[str, Any], ran: dict[str, dict[str, Any]], place: str) -> Told:
        simulation, hosts = self.simulation, self.setting.host
        spots = {name: self.setting.spots(each["spots"], f"{place}, {name!r}") for name, each in ran.items()}
        goes_on = {name for name in spots.keys() & simulation.running if simulation.present[name].last == spots[name]}
        down = {position(name, hosts, f"{place}, down") for name in items(record["down"], f"{place}, down")}
        goes_on = {name for name in goes_on if not any(host in down for host, _ in spots[name])}
        return Told(
            {name: where for name, where in spots.items() if name not in goes_on},
            [name for name in simulation.running if name not in spots],
            {name: or_infinity(each["lease"], f"{place}, lease", floats=self.floats) for name, each in ran.items()},
            {name for name, each in ran.items() if truth(each["completed"], f"{place}, completed")},
            {name for name, each in ran.items() if truth(each["lost"], f"{place}, lost")},
            whole=True,
            down=down,
        )

    def _compared(self, record: dict[str, Any], came: Came) -> Iterator[str]:
        """Yield where the lists of a record are not those that should be there."""
        simulation, setting = self.simulation, self.setting
        before = [*simulation.present, *came.complete]
        misfits = [name for name, one in simulation.present.items() if not one.fits]
        usable = sum(host.gpus for at, host in enumerate(setting.hosts) if at not in simulation.down)
        right: dict[str, Any] = {
            "arrived": came.arrived,
            "down": [setting.hosts[host].name for host in sorted(simulation.down)],
            "usable": usable,
            "waiting": [name for name in before if name not in came.ran],
            "misfits": misfits,
        }
        for key, value in right.items():
            found = record[key]
            if key == "misfits":
                found = list(_object(found, key))
            if type(found) is not type(value) or found != value:
                yield f"{key} is {brief(found)} and should be {brief(value)}"

    def _ran(self, told: dict[str, Any], ran: Ran, came: Came) -> Iterator[str]:
        """Yield where what is told of a job is not what it did."""
        setting, length = self.setting, self.setting.length
        for key, value in {
            "types": [setting.types[kind] for kind in setting.kinds(ran.spots)],
            "before": [setting.types[kind] for kind in setting.kinds(ran.before)],
            "change": ran.change,
            "completed": ran.completed,
            "lost": ran.lost,
        }.items():
            if told[key] != value:
                yield f"{key} is {brief(told[key])} and should be {value!r}"
        for key, right, scale in (
            ("begin", came.begin, length),
            ("end", ran.until, length),
            ("setup", ran.setup, length),
            ("speed", ran.speed, ran.speed),
            ("progress", ran.progress, ran.speed * length),
            ("remaining", ran.remaining, ran.speed * length),
        ):
            yield from self.off(key, told[key], right, scale)


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _object(value: Any, place: str) -> dict[str, Any]:
    require(value is None or type(value) is dict, place, f"{brief(value)} is no object")
    return value or {}


def _list(value: Any, place: str) -> list[Any]:
    return [] if value is None else items(value, place)

"""Recorded runs: from the trace, and from who was put where, every number of the record is worked out again.

A run is a record of changes (JSON lines, ``fairopt run --record``), read here as a stream, or a document with
the whole record of every round (``fairopt run --json``, see `run_document`). `simulate` says what should be
there; then the two are compared. It is decided that

* gangs are whole, no host gives out more GPUs than it has, none that is down gives out any, nobody runs on a
  type that has no throughput or too little memory for it, leases are kept in place and never cut short;
* arrivals, starts, stops, misfits, failures, completions and losses are those that follow, none is left out,
  and no round is left out in which somebody could have run;
* speed, loading, progress and work left follow from the mechanics, and so do the standings after the last
  round, and whether every job that can run is done.

What is not decided, the statement names: whether the policy decides so, and what nobody can work out. A lease
is the policy's choice. Runs in floats are decided within a tolerance: times by that part of a round, progress
by that part of what the job does in a round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from .judge import Judge, list_, object_
from .reading import (
    Unreadable,
    brief,
    document,
    fields,
    first,
    integer,
    lines,
    or_infinity,
    parsed,
    position,
    require,
    schema,
    shown,
    text,
)
from .rounds import Came, Told
from .run_document import Document
from .trace import Job, Spots

PLACED = ("start", "resume", "migrate")
LINE = "failed back misfits stop start resume migrate lease complete lost costs notes backend seconds"
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
    found: list[str] = []
    for what in judge.violations():
        found.append(what)
        if len(found) >= MOST_VIOLATIONS:
            return [*found, "and more: reading stopped here"], ""
    return found, "" if found else judge.statement()


class Record(Judge):
    """A record of changes, read line by line: in memory are the jobs present, and all names."""

    def __init__(self, told: Iterable[Any], tolerance: Fraction) -> None:
        super().__init__(tolerance)
        self.lines = iter(told)
        head = fields(next(self.lines, None), "line 1", "schema run")
        if head["schema"] == 1:
            raise Unreadable(
                "line 1: the state file of an earlier fairopt: give what `run --json` or `--record` wrote"
            )
        schema(head["schema"], "", 2)
        run = fields(head["run"], "run", "policy options backend numbers length mechanics cluster trace")
        trace = fields(run["trace"], "trace", "types tenants jobs outages sha256")
        if run["numbers"] != "exact" and not self.floats:
            raise Unreadable("a run in floats is decided within a tolerance: give one, as --tolerance 1e-6")
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
                require(
                    next(self.lines, None) is None,
                    f"line {at}",
                    "more follows the end of the run",
                )
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
            for name, spots in object_(line[how], place).items():
                placed[name] = self.setting.spots(spots, place)
        hosts = self.setting.host
        failed, back = (
            {position(name, hosts, place) for name in list_(line[key], place)} for key in ("failed", "back")
        )
        return Told(
            placed,
            [text(each, place) for each in list_(line["stop"], place)],
            {
                name: or_infinity(until, place, floats=self.floats)
                for name, until in object_(line["lease"], place).items()
            },
            set(object_(line["complete"], place)),
            set(object_(line["lost"], place)),
            down=(self.simulation.down | failed) - back,
        )

    def _compared(self, line: dict[str, Any], came: Came) -> Iterator[str]:
        """Yield where the line is not the one that should be there."""
        right: dict[str, Any] = {"failed": came.failed, "back": came.back, "stop": came.stop}
        right |= {
            "misfits": sorted(came.misfits),
            "complete": sorted(came.complete),
            "lost": sorted(came.lost),
        }
        for how in PLACED:
            right[how] = sorted(name for name, (change, _, _) in came.placed.items() if change == how)
        for key, value in right.items():
            told = line[key] if line[key] is not None else []
            found = told if key in ("failed", "back", "stop") else sorted(told)
            if found != value:
                yield f"{key} is {brief(found)} and should be {brief(value)}"
        for key, moments in (("complete", came.complete), ("lost", came.lost)):
            for name in moments.keys() & (line[key] or {}).keys():
                yield from self.off(
                    f"job {name!r}: {key}", line[key][name], moments[name], self.setting.length
                )

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


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

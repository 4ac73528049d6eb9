"""The record of a run read: its trace, and the whole records of its rounds from what changed.

The rounds are played again, with what was decided read from the record instead of decided.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from fairopt.errors import BadInput
from fairopt.policy import BrokenSchedule, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Queue, Spots, Trace, exact
from fairopt.problem.files.storage import naming
from fairopt.program import INFINITY, Number
from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import PLACED, Round
from fairopt.simulation.run import advance, begin, check_matches, next_queue

SCHEMA = 2
_REMEDY = "Give a file that `fairopt run --record` or `--state` wrote"


@dataclass(frozen=True, eq=False)
class Record:
    """A record that was read: what was run, its trace and cluster; its rounds are played when they are asked for."""

    path: Path
    run: Mapping[str, Any]
    trace: Trace
    cluster: Cluster
    mechanics: Mechanics

    def rounds(self) -> Iterator[Round]:
        """Yield the whole record of every round, one at a time. Errors: `BadInput` where the lines are of no run."""
        with naming(str(self.path)):
            yield from self.replayed(line for line in lines(self.path) if line.keys() & {"round", "end"})

    def replayed(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[Round]:
        """Yield what `run` yielded, but for the policy's state, from the ``round`` lines and the ``end`` line.

        ``seconds`` are right in their sum only. Errors: `BadInput` where lines are of no such run.
        """
        trace = self.trace
        check_matches(trace, self.cluster)
        kind: type = Fraction if trace.jobs.exact else float
        own, step = self.cluster.as_(kind), kind(exact(self.run["length"], "length"))
        snapshot, told = begin(own, kind), _Told(self.run["policy"], kind)
        for line in lines:
            last = line.get("round", line.get("end"))
            seconds = float(line.get("seconds", 0.0))  # of this round and of those since the last line, told at once
            while (coming := next_queue(snapshot, trace, own, step)) is not None and coming[1].index <= last:
                moved, queue = coming
                if queue.index == last and "end" in line:
                    break
                schedule = told.schedule(queue, line if queue.index == last else {})
                try:
                    record = replace(advance(moved, trace, schedule, self.mechanics), backend=told.backend)
                except BrokenSchedule as error:
                    remedy = "Give the record as it was written"
                    raise BadInput(str(error), place=f"round {queue.index}", remedy=remedy) from error
                yield replace(record, seconds=seconds)
                snapshot, seconds = record.after, 0.0
            if "round" in line and snapshot.index != last + 1:
                remedy = "Give the trace and the cluster that the run was begun with"
                raise BadInput("nobody is there to run", place=f"round {last}", remedy=remedy)

    @property
    def history(self) -> History:
        """What measures are functions of: all rounds at once, in memory."""
        return History.of(self.trace, self.cluster, self.rounds())


def read_record(path: Path) -> Record:
    """Return the record that a `Recorder` wrote. Errors: `BadInput` where the file is none."""
    with naming(str(path)):
        run = first_line(path)
        try:
            trace = _trace(run["trace"], [line["job"] for line in lines(path) if "job" in line])
            trace = trace if run["numbers"] == "exact" else trace.as_(float)
            return Record(path, run, trace, _cluster(run["cluster"]), Mechanics(**run["mechanics"]))
        except (KeyError, TypeError) as error:
            raise BadInput(f"no run is described there: {error!r}", place="line 1", remedy=_REMEDY) from error


def first_line(path: Path) -> dict[str, Any]:
    """Return what was run, as the first line says it. Errors: `BadInput` for what is no record, or an earlier one."""
    for first in lines(path, torn=True):
        if "run" not in first or first.get("schema") not in (1, SCHEMA):
            break
        if first["schema"] == SCHEMA and isinstance(first["run"], dict):
            return dict(first["run"])
        raise BadInput(
            f"it has schema {first['schema']!r}, and this fairopt reads schema {SCHEMA}",
            place="line 1",
            remedy="Begin the run anew, or go on with the fairopt that wrote it",
        )
    else:
        raise BadInput("the file is empty", remedy=_REMEDY)
    raise BadInput("no run begins there", place="line 1", remedy=_REMEDY)


def lines(path: Path, *, torn: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the lines of a record, packed or not, one at a time; ``torn``: the last line may break off.

    Errors: `BadInput` for what is no line of a record, and where there is no such file.
    """
    number = 0
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if packed else raw as stream:
                for number, text in enumerate(stream, start=1):  # it says where reading stopped
                    try:
                        yield _parsed(text, number)
                    except BadInput:
                        if torn and number > 1 and not text.endswith(b"\n"):
                            return
                        raise
    except (EOFError, zlib.error) as error:
        if not torn:
            raise BadInput(f"it breaks off: {error}", place=f"after line {number}", remedy=_REMEDY) from error
    except FileNotFoundError as error:
        raise BadInput("there is no such file", remedy=_REMEDY) from error
    except OSError as error:
        raise BadInput(f"it cannot be read: {error.strerror or error}", remedy=_REMEDY) from error


def _parsed(text: bytes, number: int) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}", place=f"line {number}", remedy=_REMEDY) from error
    if not isinstance(data, dict) or not data.keys() & {"schema", "job", "round", "snapshot", "standing", "end"}:
        raise BadInput("neither a round nor a snapshot", place=f"line {number}", remedy=_REMEDY)
    if not all(type(data[key]) is int for key in ("round", "end") if key in data):
        raise BadInput("a round has no number", place=f"line {number}", remedy=_REMEDY)
    return data


def _cluster(data: Mapping[str, Any]) -> Cluster:
    hosts = data["hosts"]
    return Cluster.of(
        [host["type"] for host in hosts],
        [host["gpus"] for host in hosts],
        types=data["types"],
        memory=dict(zip(data["types"], data["memory"], strict=True)),
        bandwidth=[host["bandwidth"] for host in hosts],
        hosts=[host["name"] for host in hosts],
        speed=[host.get("speed", 1) for host in hosts],
    )


def _trace(data: Mapping[str, Any], jobs: list[dict[str, Any]]) -> Trace:
    columns = {key: [job[key] for job in jobs] for key in (jobs[0] if jobs else {}) if key != "name"}
    return Trace(
        Jobs.of(
            **columns,
            types=data["types"],
            names=[job["name"] for job in jobs],
            tenant_weight={each["name"]: each["weight"] for each in data["tenants"]},
        ),
        tuple(Outage(each["host"], *(_moment(each[key]) for key in ("begin", "end"))) for each in data["outages"]),
    )


def _moment(value: Any) -> Number:
    return INFINITY if value is None else exact(value, "outage")


class _Told:
    """What the lines so far say that goes on until a line says otherwise."""

    def __init__(self, policy: str, kind: type) -> None:
        self._policy, self._kind = policy, kind
        self._costs: dict[str, Number] = {}
        self._notes: dict[str, str] = {}
        self.backend = "auto"

    def schedule(self, queue: Queue, line: Mapping[str, Any]) -> Schedule:
        """Return the schedule of a round: who ran goes on, but for what the round's line says."""
        row = {name: at for at, name in enumerate(queue.jobs.names)}
        host = {name: at for at, name in enumerate(queue.cluster.hosts)}
        stopped = set(line.get("stop", ()))
        placements: dict[int, Spots] = {
            at: queue.last[at] for name, at in row.items() if queue.running[at] and name not in stopped
        }
        try:
            for how in PLACED:
                for job, spots in line.get(how.value, {}).items():
                    placements[row[job]] = tuple((host[name], int(gpus)) for name, gpus in spots)
            leases = {row[job]: self.number(until) for job, until in line.get("lease", {}).items()}
            if "costs" in line:
                self._costs = {name: self.number(value) for name, value in line["costs"].items()}
            self._notes = line.get("notes", self._notes)
            notes = {row[job]: text for job, text in self._notes.items() if job in row}
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadInput(
                f"it speaks of what is not there: {error!r}",
                place=f"round {queue.index}",
                remedy="Give the trace and the cluster that the run was begun with",
            ) from error
        self.backend = line.get("backend", self.backend)
        return Schedule(self._policy, queue, dict(sorted(placements.items())), leases, costs=self._costs, notes=notes)

    def number(self, value: Any) -> Number:
        """Return a number as the run had it; null is infinity."""
        if value is None or isinstance(value, float):
            return INFINITY if value is None else value
        made: Number = Fraction(value) if isinstance(value, str) else self._kind(value)
        return made

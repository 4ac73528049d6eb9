"""The record of a run read: its trace, and the whole records of its rounds from what changed.

Nothing is played again: what changed is read, and how long jobs load and how fast they are follows from the mechanics.
A snapshot that was changed is not gone on from: what a policy remembers is its own, and nobody else can tell whether it
fits.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from fairopt.codec import decode
from fairopt.errors import BadInput, require
from fairopt.problem import Cluster, Jobs, Outage, Queue, Spots, Trace, exact
from fairopt.problem.files.storage import LARGEST_FILE, naming, require_size
from fairopt.problem.numbers import shown
from fairopt.problem.profile import Profile
from fairopt.program import INFINITY, Number, objects
from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import PLACED, Change, Changes, Placed, Round, Snapshot, snapshot_from_json
from fairopt.simulation.recording import SCHEMA, digest
from fairopt.simulation.rounds import check_goes_on, check_matches
from fairopt.simulation.whole_rounds import WholeRounds

_REMEDY = "Give a file that `fairopt run --record` or `--state` wrote"


@dataclass(eq=False)
class Record:
    """A record that was read: what was run, its trace and cluster; its rounds are played when they are asked for.

    How long jobs load, and how fast they are, follows from the mechanics.
    """

    path: Path
    run: Mapping[str, Any]
    trace: Trace
    cluster: Cluster
    mechanics: Mechanics

    def __post_init__(self) -> None:
        """Stand before the first line."""
        jobs = self.trace.jobs
        check_matches(self.trace, self.cluster)
        self._fresh = Queue.fresh(jobs, self.cluster, length=exact(self.run["length"], "length"))
        self._row = {name: row for row, name in enumerate(jobs.names)}
        self._host = {name: host for host, name in enumerate(self.cluster.hosts)}
        self._present: set[int] = set()
        self._able = 0  # of them, those that fit some type
        self._since: dict[int, Number] = {}  # of the jobs that run, when they came to their GPUs
        self._last: dict[int, Spots] = {}  # of the jobs present that ran
        self._left: dict[int, Number] = {}  # what these had to load then, or have still to load
        self._held = list(self._fresh.held)
        self._index, self._now = 0, self._fresh.now

    def changes(self) -> Iterator[Changes]:
        """Yield what changed, round by round. Errors: `BadInput` where the lines are of no run."""
        with naming(str(self.path)):
            yield from self.told(lines(self.path))

    def told(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[Changes]:
        """Yield what the lines of a record tell, up to its ``end``; in memory are the trace and the jobs present."""
        reading, arrived, first = replace(self), 0, 0  # each begins before the first line
        for line in lines:
            if "job" in line:
                arrived += 1
            elif "round" in line:
                yield reading._round(line, range(first, arrived))
                first = arrived
            elif "end" in line and (last := reading._end(line, first)) is not None:
                yield last

    def rounds(self) -> Iterator[Round]:
        """Yield the whole record of every round, one at a time, as `run` did but for the policy's state.

        ``seconds`` are right in their sum only. Errors: `BadInput` where the lines are of no run.
        """
        whole = WholeRounds(self.run["policy"], self.trace, self.cluster)
        for changes in self.changes():
            yield from whole.add(changes)

    @property
    def history(self) -> History:
        """What measures are functions of: all rounds at once, in memory."""
        return History.of(self.trace, self.cluster, self.rounds())

    def _round(self, line: Mapping[str, Any], arrived: range) -> Changes:
        """Return what a ``round`` line tells, for which jobs ``arrived``. Errors: `BadInput` for what cannot be."""
        index = line["round"]
        if index < self._index or not (arrived or self._able):
            remedy = "Give the trace and the cluster that the run was begun with"
            raise BadInput("no job could run in this round", place=f"round {index}", remedy=remedy)
        try:
            return self._read(line, arrived)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError, ZeroDivisionError) as error:
            raise BadInput(
                f"it speaks of what is not there: {error!r:.200}",
                place=f"round {index}",
                remedy="Give the trace and the cluster that the run was begun with",
            ) from error

    def _end(self, line: Mapping[str, Any], arrived: int) -> Changes | None:
        """Return the last round of a run, where something is left to say of it: that it was played, and its seconds."""
        last = line["end"] - 1
        if last < self._index or not self._able:
            return None
        self._go_to(last)
        seconds = float(line.get("seconds", 0.0))
        return Changes(last, self._now, self._now + self._fresh.length, range(arrived, arrived), seconds=seconds)

    def _go_to(self, index: int) -> None:
        """Go on to a round; the sums are those of a run, round by round where somebody was there."""
        length = self._fresh.length
        if not self.trace.jobs.arithmetic.exact and self._able:
            while self._index < index:
                self._index, self._now = self._index + 1, self._now + length
        self._now += (index - self._index) * length
        self._index = index

    def _read(self, line: Mapping[str, Any], arrived: range) -> Changes:
        self._go_to(line["round"])
        now, row = self._now, self._row
        for each in arrived:
            self._present.add(each)
            self._able += each not in self._fresh.unschedulable
        stopped = tuple(row[name] for name in line.get("stop", ()))
        for each in stopped:
            self._stop(each, now)
        told = {
            row[job]: (how, tuple((self._host[host], int(gpus)) for host, gpus in spots))
            for how in PLACED
            for job, spots in line.get(how.value, {}).items()
        }
        placed = self._placed(dict(sorted(told.items())))
        ends = {key: self._numbers(line.get(key, {})) for key in ("complete", "lost")}
        for each in [*ends["complete"], *ends["lost"]]:
            self._stop(each, now)
        for each in ends["complete"]:
            self._present.remove(each)
            self._able -= 1
            del self._last[each], self._left[each]
        self._index, self._now = self._index + 1, now + self._fresh.length
        costs, notes = line.get("costs"), line.get("notes")
        return Changes(
            index=line["round"],
            begin=now,
            end=self._now,
            arrived=arrived,
            failed=tuple(self._host[name] for name in line.get("failed", ())),
            back=tuple(self._host[name] for name in line.get("back", ())),
            unschedulable={row[job]: str(why) for job, why in line.get("unschedulable", {}).items()},
            stopped=stopped,
            placed=placed,
            leases=self._numbers(line.get("lease", {})),
            completed=ends["complete"],
            lost=ends["lost"],
            costs=None if costs is None else {name: self._number(value) for name, value in costs.items()},
            notes=None if notes is None else {row[job]: str(text) for job, text in notes.items()},
            backend=line.get("backend"),
            seconds=float(line.get("seconds", 0.0)),
        )

    def _stop(self, row: int, now: Number) -> None:
        setup = self._left[row]
        self._left[row] = max(setup - (now - self._since.pop(row)), setup * 0)

    def _placed(self, told: Mapping[int, tuple[Change, Spots]]) -> tuple[Placed, ...]:
        for row in told.keys() & self._since.keys():
            self._stop(row, self._now)
        if not told.keys() <= self._present:
            raise KeyError(*[self._fresh.jobs.names[row] for row in told.keys() - self._present][:1])
        queue = self._queue(list(told))
        placed = []
        for at, (row, (how, spots)) in enumerate(told.items()):
            setup, speed = self.mechanics.setup(queue, at, spots), self.mechanics.speed(queue, at, spots)
            placed.append(Placed(row, spots, how, setup, speed, self.mechanics.course(queue, at, spots)))
        for row, spots, _, setup, _, _ in placed:
            self._since[row], self._left[row], self._last[row] = self._now, setup, spots
            if name := self._fresh.jobs.dataset[row]:
                for host, _ in spots:
                    self._held[host] |= {name}
        return tuple(placed)

    def _queue(self, rows: list[int]) -> Queue:
        """Return what mechanics ask about jobs that are placed: the queue of these jobs only."""
        fresh = Queue.fresh(self._fresh.jobs.take(rows), self._fresh.cluster, length=self._fresh.length)
        left = [self._left.get(row, self._fresh.now * 0) for row in rows]
        last = tuple(self._last.get(row, ()) for row in rows)
        return replace(fresh, setup=self.trace.jobs.arithmetic.cast(objects(left)), last=last, held=tuple(self._held))

    def _numbers(self, told: Mapping[str, Any]) -> dict[int, Number]:
        return {self._row[job]: self._number(value) for job, value in told.items()}

    def _number(self, value: Any) -> Number:
        """Return a number as the run had it; null is infinity."""
        if value is None or isinstance(value, float):
            return INFINITY if value is None else value
        made: Number = Fraction(value) if isinstance(value, str) else self.trace.jobs.arithmetic(value)
        return made


def read_record(path: Path) -> Record:
    """Return the record that a `Recorder` wrote. Errors: `BadInput` where the file is none."""
    with naming(str(path)):
        run = first_line(path)
        try:
            trace = _trace(run["trace"], [line["job"] for line in lines(path) if "job" in line])
            trace = trace if run["numbers"] == "exact" else trace.as_(float)
            record = Record(path, run, trace, _cluster(run["cluster"]), Mechanics(**run["mechanics"]))
            require(isinstance(run["policy"], str), run["policy"], "policy", "Give the policy's name")
            return record
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"it does not describe a run: {error!r}", place="line 1", remedy=_REMEDY) from error


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
    raise BadInput("this is not the beginning of a recorded run", place="line 1", remedy=_REMEDY)


def lines(path: Path, *, torn: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the lines of a record, packed or not, one at a time; ``torn``: the last line may break off.

    Errors: `BadInput` for what is no line of a record, and where there is no such file.
    """
    number = 0
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if packed else raw as stream:
                limited = iter(partial(stream.readline, LARGEST_FILE + 1), b"")
                for number, text in enumerate(limited, start=1):  # it says where reading stopped
                    require_size(len(text), f" in line {number}", most=LARGEST_FILE)
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
    columns = {key: [job[key] for job in jobs] for key in (jobs[0] if jobs else {}) if key not in ("name", "profile")}
    profiles = [Profile.of(**each, place=f"profile {at}") for at, each in enumerate(data.get("profiles", ()))]
    own = [None if job.get("profile") is None else profiles[job["profile"]] for job in jobs]
    return Trace(
        Jobs.of(
            **columns,
            profiles=own,
            types=data["types"],
            names=[job["name"] for job in jobs],
            tenant_weight={each["name"]: each["weight"] for each in data["tenants"]},
        ),
        tuple(Outage(each["host"], *(_moment(each[key]) for key in ("begin", "end"))) for each in data["outages"]),
    )


def _moment(value: Any) -> Number:
    return INFINITY if value is None else exact(value, "outage")


# -- what is gone on from ------------------------------------------------------------------------------------------
def read_journal(
    path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, mechanics: Mechanics, states: Sequence[type]
) -> tuple[Snapshot, Iterator[Changes]]:
    """Return the last snapshot of the journal at ``path``, and what changed before it, read once more when asked for.

    ``run`` is the header of the run that is to go on.

    Errors: `BadInput` where the file is no journal or has no snapshot yet, where the run was begun otherwise, and where
    the snapshot is not as it was written.
    """
    with naming(str(path)):
        _check_same(first_line(path), run)
        found: tuple[int, dict[str, Any]] | None = None
        for number, line in enumerate(lines(path, torn=True)):
            found = (number, line) if "snapshot" in line else found
        if found is None:
            raise BadInput("no snapshot yet", place="the file", remedy="Begin the run anew")
        last, line = found
        snapshot = snapshot_from_json(line["snapshot"], states)
        seconds: float = decode(float, line.get("seconds"), "seconds")
        check_goes_on(snapshot, trace, cluster)
        _check_as_written(line, last + 1)
        return snapshot, _before(snapshot, Record(path, run, trace, cluster, mechanics), last, seconds)


def _before(snapshot: Snapshot, record: Record, last: int, seconds: float) -> Iterator[Changes]:
    """Yield what changed before a snapshot, which is gone on from, on line ``last``."""

    def told() -> Iterator[Mapping[str, Any]]:
        for _, line in zip(range(last), lines(record.path, torn=True), strict=False):
            # an interruption may have come after a round was written down and before its snapshot was taken
            if line.get("round", 0) >= snapshot.index:
                break
            yield line
        yield {"end": snapshot.index, "seconds": seconds}

    with naming(str(record.path)):
        yield from record.told(told())


def _check_as_written(line: Mapping[str, Any], number: int) -> None:
    """Refuse a snapshot whose digest is not the one that was written with it."""
    found, stated = digest({key: each for key, each in line.items() if key != "sha256"}), line.get("sha256")
    if stated != found:
        raise BadInput(
            f"the snapshot is not as it was written: its digest is {found}, and there stands {shown(stated)}",
            place=f"line {number}, key 'sha256'",
            remedy="Go on from the file as `--state` wrote it, or begin anew",
        )


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, value in now.items():
        if before.get(key) != value:
            file = key in ("trace", "cluster")
            what = "another file's contents" if file else shown(before.get(key))
            raise BadInput(
                f"the run was begun with {what}, not with {'this one' if file else shown(value)}",
                place=f"run, {key}",
                remedy="Go on with what the run was begun with, or begin anew",
            )

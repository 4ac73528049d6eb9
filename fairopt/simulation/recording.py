"""The record of a run: what went in, and what changed, a line of JSON at a time, while the run goes on.

A record is a text file of JSON lines, packed by gzip where its name ends in ``.gz``. Each line is an object whose first
key says what it is. In this order:

* ``{"schema": 2, "run": {...}}``: what was run. ``policy``, ``options`` (what was set), ``backend``; ``numbers``:
  "exact" or "float"; ``length``, ``mechanics``, ``cluster`` and ``trace`` as in `fairopt.simulation.document`, but
  ``jobs`` of the trace is how many there are, and ``sha256`` is of it all.
* ``{"job": {...}}``: a job, by rising arrival, each before the line of the round that it arrives for; those that had
  not arrived when the run ended follow the last round.
* ``{"round": 17, ...}``: what changed in the round of that number, which begins at that many lengths. A round in which
  nothing changes has no line. Each key is left out where it would be empty:

  * ``failed``, ``back``: hosts that are down since the round before, and those that work again.
  * ``unschedulable``: jobs that just arrived and can run on no type of the cluster: {job: reason}.
  * ``stop``: jobs that ran to the end of the round before, were neither completed nor lost, and do not run in this one.
  * ``start``, ``resume``, ``migrate``: {job: [[host, GPUs], ...]}, jobs that run on GPUs on which they did not run in
    the round before: for the first time, on hosts that they ran on last, with a host that is new to them. All other
    jobs that ran go on where they are.
  * ``lease``: {job: until}, where it is neither the lease that the job has nor the end of the round; null: for ever.
  * ``complete``, ``lost``: {job: when} it was done, or a host failed and took the round's work along.
  * ``costs``, ``notes`` ({job: text}), ``backend``: what the policy says, where it differs from the round before.
  * ``seconds``: what deciding took, since the last line.
* ``{"snapshot": {...}, "seconds": s, "sha256": "..."}``: in what ``fairopt run --state`` writes, how to go on after the
  round before: at its beginning, every half minute, and whenever it stops. The seconds are what deciding took since the
  last round with a line, and the digest is of the two. The last snapshot and the rounds before it can be read even
  where the program ended while it wrote.
* ``{"standing": {...}}``: at the end, a job that is still present, and how it stands.
* ``{"end": n, "seconds": s}``: the last line. n - 1 is the last round that was played, s what deciding took since the
  last line. ``outcome``: ``complete``, whether every job that can run is done, ``stopped``, why the run ended before.

Jobs, how they stand, and numbers are as in `fairopt.simulation.document`. What a job did between two changes follows
from the mechanics (`fairopt.simulation.mechanics`): `read_record` reads it back, ``proofs/verify.py`` works it out by
itself and compares.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import chain, islice
from json.encoder import encode_basestring_ascii
from math import isfinite
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from fairopt.problem import Cluster, Jobs, Trace, exact
from fairopt.problem.files.storage import require_place
from fairopt.problem.numbers import told
from fairopt.program import Number
from fairopt.replacing import Replacing, writable
from fairopt.simulation.document import (
    cluster_to_json,
    job_columns,
    jobs_to_json,
    mechanics_to_json,
    standing_to_json,
    trace_to_json,
)
from fairopt.simulation.engine import Engine
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import PLACED, Change, Changes, Placed, Snapshot, snapshot_to_json

SCHEMA = 2
#: Lines that are put into the file, and jobs that are made ready for it, in one step, at the most.
MOST_AT_ONCE = 1000
#: Seconds between two snapshots: what an end without warning costs at most.
BETWEEN = 30.0


def header(
    policy: str,
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics,
    options: Sequence[str] = (),
    backend: str = "auto",
) -> dict[str, Any]:
    """Return what was run, as the first line of a record says it; the trace is in the numbers of the run."""
    described = trace_to_json(trace, len(trace.jobs))
    hashed = sha256(_text(described))
    for begin in range(0, len(trace.jobs), MOST_AT_ONCE):
        block = _job_texts(trace.jobs, range(begin, min(begin + MOST_AT_ONCE, len(trace.jobs))), _SORTED)
        hashed.update("".join(["\n" + job for job in block]).encode())
    return {
        "policy": policy,
        "options": sorted(options),
        "backend": backend,
        "numbers": "exact" if trace.jobs.exact else "float",
        "length": told(exact(length, "length")),
        "mechanics": mechanics_to_json(mechanics),
        "cluster": cluster_to_json(cluster),
        "trace": described | {"sha256": hashed.hexdigest()},
    }


def digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of data of JSON, whatever the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return sha256(_text(data)).hexdigest()


def _text(data: Mapping[str, Any]) -> bytes:
    return _SORTED.encode(data).encode()


# `json.dumps` would make one for each line
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_PLAIN = json.JSONEncoder(separators=(",", ":"))
_quoted = encode_basestring_ascii  # a text as JSON, as both write it


def _object(members: Iterable[tuple[str, str]]) -> str:
    """Return an object as JSON, of names and of what is JSON already."""
    return "{" + ",".join([f"{_quoted(name)}:{value}" for name, value in members]) + "}"


def _number(value: Number) -> str:
    """Return a number as JSON, as `told` has it."""
    return repr(value) if type(value) is float and isfinite(value) else _PLAIN.encode(told(value))


def _job_texts(jobs: Jobs, rows: range, how: json.JSONEncoder) -> Iterator[str]:
    """Yield each job as ``how`` writes what `jobs_to_json` says of it: column by column, which is faster."""
    if jobs.profiles:
        yield from map(how.encode, jobs_to_json(jobs, rows))
        return
    columns = job_columns(jobs, rows)
    names = sorted(columns) if how.sort_keys else list(columns)
    form = "{" + ",".join(f'"{name}":%s' for name in names) + "}"
    for job in zip(*(_texts(columns[name]) for name in names), strict=True):
        yield form % job


def _texts(column: list[Any]) -> list[str]:
    """Return the JSON of each of the values: texts, numbers, or lists of numbers, exact ones as "p/q"."""
    if column.count(column[0]) == len(column):  # most traces leave most columns as they are by default
        return [_PLAIN.encode(column[0])] * len(column)
    if isinstance(column[0], list):
        return [f"[{each}]" for each in _PLAIN.encode(column)[2:-2].split("],[")]
    if str in {*map(type, column)}:
        return [_quoted(each) if isinstance(each, str) else _PLAIN.encode(each) for each in column]
    return _PLAIN.encode(column)[1:-1].split(",")


class Recorder:
    """A record that is being written as the run goes on; a context manager, which closes the file.

    ``run`` is its `header`. `add` takes what changes, `keep` puts the file in place once it holds what is gone on from,
    and `end` writes how the run ended. ``state_of`` is the run whose snapshots are written too, None for none.
    ``place`` is what a `BadInput` names: the option, or the argument, by which the path was given. In memory is what
    the policy said last.
    """

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        trace: Trace,
        cluster: Cluster,
        *,
        state_of: Engine | None = None,
        place: str = "record",
    ) -> None:
        require_place(path, place)
        self._play, self._kept, self._snapped = state_of, False, perf_counter()
        self._path, self._place, self._trace, self._cluster = path, place, trace, cluster
        self._arrived, self._seconds, self._hosts = 0, 0.0, [_quoted(host) for host in cluster.hosts]
        self._block, self._ready = -1, list[str]()  # jobs as they are written, a block of rows
        self._said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
        with writable(self._path, self._place), ExitStack() as on_error:
            # without a buffer: a line is there whole or not at all, also where an interruption comes between two
            self._file = on_error.enter_context(Replacing(path))
            raw = self._file.stream
            self._stream: Any = gzip.GzipFile("", "wb", 3, raw) if path.suffix == ".gz" else raw
            self._write([{"schema": SCHEMA, "run": run}])
            on_error.pop_all()

    def __enter__(self) -> Self:
        return self

    def keep(self) -> None:
        """Put the file in place; the one that is gone on from may be there: this one holds as much."""
        self._snapshot()
        self._kept = True
        with writable(self._path, self._place):
            self._file.keep()

    def add(self, changes: Changes) -> None:
        """Add a round: the jobs that arrived for it, and what changed; nothing where nothing did."""
        self._seconds += changes.seconds
        line = self._changed(changes) | {name: _PLAIN.encode(said) for name, said in self._policys(changes).items()}
        if line or changes.arrived:
            said = {"round": str(changes.index), **line, "seconds": _number(self._seconds)}
            self._write(chain(self._jobs(changes.arrived.stop), (_object(said.items()),)))
            self._seconds = 0.0
        if self._play is not None and self._kept and perf_counter() - self._snapped > BETWEEN:
            self._snapshot()

    def end(self, snapshot: Snapshot, outcome: Mapping[str, Any] | None = None) -> None:
        """Write the jobs that did not arrive, how those stand that are present, and how the run ended."""
        self._snapshot()
        names, said = self._trace.jobs.names, {} if outcome is None else {"outcome": dict(outcome)}
        present = snapshot.present.items()
        standing = ({"standing": standing_to_json(names[row], one, self._cluster)} for row, one in present)
        last = {"end": snapshot.index, "seconds": self._seconds, **said}
        self._write(chain(self._jobs(len(names)), standing, (last,)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # in the midst of a round, which is where Ctrl-C may come, there is no snapshot
        if self._kept and kind is not None and not issubclass(kind, KeyboardInterrupt):
            self._snapshot()
        with self._file:
            self._stream.close()

    def _snapshot(self) -> None:
        """Write how to go on from here, where that is asked for."""
        if self._play is not None:
            told = {"snapshot": snapshot_to_json(self._play.snapshot()), "seconds": self._seconds}
            self._write([{**told, "sha256": digest(told)}])
            self._stream.flush()
            self._snapped = perf_counter()

    def _changed(self, changes: Changes) -> dict[str, str]:
        """Return what changed, by key, as JSON: as the encoder would, but for a dict and a list of each job."""
        names, hosts = self._trace.jobs.names, self._cluster.hosts
        line: dict[str, str] = {}
        for key, those in (("failed", changes.failed), ("back", changes.back)):
            if those:
                line[key] = _PLAIN.encode([hosts[host] for host in sorted(those)])
        if changes.unschedulable:
            line["unschedulable"] = _PLAIN.encode({names[row]: why for row, why in changes.unschedulable.items()})
        if changes.stopped:
            line["stop"] = _PLAIN.encode([names[row] for row in sorted(changes.stopped)])
        if changes.placed:
            line |= self._comers(changes.placed)
        for key, numbers in (("lease", changes.leases), ("complete", changes.completed), ("lost", changes.lost)):
            if numbers:
                line[key] = _object((names[row], _number(numbers[row])) for row in sorted(numbers))
        return line

    def _comers(self, placed: Sequence[Placed]) -> dict[str, str]:
        """Return where jobs come to other GPUs, by how they come there."""
        names, hosts = self._trace.jobs.names, self._hosts
        came: dict[Change, list[tuple[str, str]]] = {}
        for row, spots, how, *_ in sorted(placed, key=itemgetter(0)):
            on = ",".join([f"[{hosts[host]},{gpus}]" for host, gpus in spots])
            came.setdefault(how, []).append((names[row], f"[{on}]"))
        return {way.value: _object(came[way]) for way in PLACED if way in came}

    def _policys(self, changes: Changes) -> dict[str, Any]:
        """Return what the policy says of a round, where it says something else than of the one before."""
        if changes.costs is None and changes.notes is None and changes.backend is None:
            return {}
        names, notes = self._trace.jobs.names, changes.notes
        said = {
            "costs": None if changes.costs is None else told(changes.costs),
            "notes": None if notes is None else {names[row]: text for row, text in notes.items()},
            "backend": changes.backend,
        }
        new = {name: value for name, value in said.items() if value is not None and value != self._said[name]}
        self._said |= new
        return new

    def _write(self, lines: Iterable[Mapping[str, Any] | str]) -> None:
        """Write lines, many at once; a text is a line that is JSON already."""
        left = iter(lines)
        while some := list(islice(left, MOST_AT_ONCE)):
            texts = [line if isinstance(line, str) else _PLAIN.encode(line) for line in some]
            self._stream.write(("\n".join(texts) + "\n").encode())

    def _jobs(self, until: int) -> Iterator[str]:
        """Yield the lines of the jobs that are not written yet, up to a row."""
        row, self._arrived = self._arrived, until
        while row < until:
            block, at = divmod(row, MOST_AT_ONCE)
            ready = self._ready_jobs(block)[at : at + until - row]
            yield from ready
            row += len(ready)

    def _ready_jobs(self, block: int) -> list[str]:
        """Return the lines of a block of jobs; few come for each round, and to make each anew would take most time."""
        if block != self._block:
            first, jobs = block * MOST_AT_ONCE, self._trace.jobs
            texts = _job_texts(jobs, range(first, min(first + MOST_AT_ONCE, len(jobs))), _PLAIN)
            self._ready, self._block = [f'{{"job":{each}}}' for each in texts], block
        return self._ready


def write_record(path: Path, run: Mapping[str, Any], trace: Trace, cluster: Cluster, play: Engine) -> None:
    """Play a run to its end, and write its record; ``run`` is its `header`."""
    with Recorder(path, run, trace, cluster) as book:
        book.keep()
        for changes in play:
            book.add(changes)
        book.end(play.snapshot())

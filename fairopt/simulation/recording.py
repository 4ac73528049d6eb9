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
  * ``misfits``: jobs that just arrived and can run on no type of the cluster: {job: reason}.
  * ``stop``: jobs that ran to the end of the round before, were neither completed nor lost, and do not run in this one.
  * ``start``, ``resume``, ``migrate``: {job: [[host, GPUs], ...]}, jobs that run on GPUs on which they did not run in
    the round before: for the first time, on hosts that they ran on last, with a host that is new to them. All other
    jobs that ran go on where they are.
  * ``lease``: {job: until}, where it is neither the lease that the job has nor the end of the round; null: for ever.
  * ``complete``, ``lost``: {job: when} it was done, or a host failed and took the round's work along.
  * ``costs``, ``notes`` ({job: text}), ``backend``: what the policy says, where it differs from the round before.
  * ``seconds``: what deciding took, since the last line.
* ``{"snapshot": {...}}``: in what ``fairopt run --state`` writes, how to go on after the round before.
* ``{"standing": {...}}``: at the end, a job that is still present, and how it stands.
* ``{"end": n, "seconds": s}``: the last line. n - 1 is the last round that was played, s what deciding took since the
  last line. ``outcome``: ``complete``, whether every job that can run is done, ``stopped``, why the run ended before.

Jobs, how they stand, and numbers are as in `fairopt.simulation.document`. What a job did between two changes follows
from the mechanics (`fairopt.simulation.mechanics`): `read_record` plays it again, ``proofs/verify.py`` works it out by
itself and compares.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace, exact
from fairopt.problem.files.storage import require_place
from fairopt.problem.numbers import told
from fairopt.program import Number
from fairopt.simulation.document import cluster_to_json, job_to_json, mechanics_to_json, standing_to_json, trace_to_json
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import PLACED, Change, Round
from fairopt.simulation.replay import SCHEMA


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
    digest = sha256(_text(described))
    for row in range(len(trace.jobs)):
        digest.update(b"\n" + _text(job_to_json(trace.jobs, row)))
    return {
        "policy": policy,
        "options": sorted(options),
        "backend": backend,
        "numbers": "exact" if trace.jobs.exact else "float",
        "length": told(exact(length, "length")),
        "mechanics": mechanics_to_json(mechanics),
        "cluster": cluster_to_json(cluster),
        "trace": described | {"sha256": digest.hexdigest()},
    }


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


class Changes:
    """What a round adds to what trace, placements and mechanics say; it remembers what the last round was like."""

    def __init__(self) -> None:
        self._lease: dict[str, Number] = {}  # of the jobs that run
        self._last: dict[str, Any] = {"down": (), "costs": {}, "notes": {}, "backend": "auto"}
        self.seconds = 0.0

    def of(self, record: Round) -> dict[str, Any] | None:
        """Return what changed in a round, as JSON; None where nothing did. ``seconds`` gathers until it is said."""
        self.seconds += record.seconds
        changes = {name: value for name, value in self._changes(record).items() if value}
        changes |= {name: value for name, value in self._policys(record).items() if value is not None}
        if not changes and not record.arrived:
            return None
        seconds, self.seconds = self.seconds, 0.0
        return {"round": record.index, **changes, "seconds": seconds}

    def _changes(self, record: Round) -> dict[str, Any]:
        ran = {each.job: each for each in record.ran}
        down = self._last["down"]
        self._last["down"] = record.down
        changes: dict[str, Any] = {
            "failed": [host for host in record.down if host not in down],
            "back": [host for host in down if host not in record.down],
            "misfits": {job: record.misfits[job] for job in record.arrived if job in record.misfits},
            "stop": [job for job in self._lease if job not in ran],
        }
        for how in PLACED:
            changes[how.value] = {each.job: told(each.spots) for each in record.ran if each.change is how}
        changes["lease"] = {
            each.job: told(each.lease)
            for each in record.ran
            if each.lease != self._unsaid(each.job, record, stays=each.change is Change.STAY)
        }
        changes["complete"] = {each.job: told(each.end) for each in record.ran if each.completed}
        changes["lost"] = {each.job: told(each.end) for each in record.ran if each.lost}
        self._lease = {each.job: each.lease for each in record.ran if not each.completed and not each.lost}
        return changes

    def _unsaid(self, job: str, record: Round, *, stays: bool) -> Number:
        """Return the lease of a job of which nothing is said: the one that it has, else the round."""
        lease = self._lease.get(job, record.begin)
        return lease if stays and lease > record.begin else record.end

    def _policys(self, record: Round) -> dict[str, Any]:
        """Return what the policy says of a round, where it says something else than of the one before."""
        said = {"costs": told(record.costs), "notes": dict(record.notes), "backend": record.backend}
        changed = {name: value for name, value in said.items() if self._last[name] != value}
        self._last |= changed
        return changed


class Recorder:
    """A record that is being written as the run goes on; a context manager, which writes the end.

    ``run`` is its `header`; ``before`` are the rounds of a run that is gone on from. ``outcome`` may be set at the end.
    ``place`` is what a `BadInput` names: the option, or the argument, by which the path was given.
    """

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        trace: Trace,
        cluster: Cluster,
        *,
        before: Iterable[Round] = (),
        place: str = "record",
    ) -> None:
        require_place(path, place)
        self.outcome: Mapping[str, Any] | None = None
        self._trace, self._cluster, self._arrived, self._changes = trace, cluster, 0, Changes()
        self._last: Round | None = None
        beginning = path.with_name(path.name + ".new")
        try:
            # without a buffer: a line is there whole or not at all, also where an interruption comes between two
            self._raw = beginning.open("wb", buffering=0)
            self._stream: Any = gzip.GzipFile("", "wb", 6, self._raw) if path.suffix == ".gz" else self._raw
            self._line({"schema": SCHEMA, "run": run})
            self.begin(before)
            # the file that is gone on from may be this one: it is replaced once the new one holds as much
            os.replace(beginning, path)
        except OSError as error:
            remedy = "Check the folder"
            raise BadInput(f"{path} cannot be written: {error.strerror}", place=place, remedy=remedy) from error

    def __enter__(self) -> Self:
        return self

    def begin(self, before: Iterable[Round]) -> None:
        """Write the rounds of the run that is gone on from."""
        for record in before:
            self.add(record)

    def add(self, record: Round) -> None:
        """Add a round: the jobs that arrived for it, and what changed."""
        self._jobs(self._arrived + len(record.arrived))
        changed = self._changes.of(record)
        if changed is not None:
            self._line(changed)
        self._last = record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._end()
        finally:
            self._stream.close()
            self._raw.close()

    def _line(self, data: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(data, separators=(",", ":")).encode() + b"\n")

    def _jobs(self, until: int) -> None:
        for row in range(self._arrived, until):
            self._line({"job": job_to_json(self._trace.jobs, row)})
        self._arrived = until

    def _end(self) -> None:
        self._jobs(len(self._trace.jobs))
        if self._last is not None:
            for row, one in self._last.after.present.items():
                self._line({"standing": standing_to_json(self._trace.jobs.names[row], one, self._cluster)})
        after = 0 if self._last is None else self._last.after.index
        outcome = {} if self.outcome is None else {"outcome": dict(self.outcome)}
        self._line({"end": after, "seconds": self._changes.seconds, **outcome})

"""What a benchmark writes: a line of JSON for each measurement, and for the environment that it was made in.

A file of results (``*.jsonl``) holds one object a line. ``kind`` is "environment" or "measurement"; a measurement names
its environment by digest, and the environment's line stands before it. Lines are only ever appended.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from os import PathLike
from typing import Any, ClassVar

from fairopt.bench.journal import Records, read_records, record_in
from fairopt.codec import encode


class MeasurementStatus(Enum):
    """How a measurement ended."""

    SOLVED = "solved"  # an answer that the task's own code accepted
    WRONG = "wrong"  # an answer that it did not accept; the times are kept and must not be counted
    TIMEOUT = "timeout"  # no answer within the limit
    MEMORY = "memory"  # stopped at the memory limit
    ERROR = "error"  # it ended without an answer: an exception, a crash, the solver's own status
    MISSING = "missing"  # a library that it needs is not installed
    SKIPPED = "skipped"  # not tried, for the reason that the message gives


#: Statuses that may differ when the same is tried later on the same machine.
PASSING = (MeasurementStatus.MISSING, MeasurementStatus.SKIPPED)


@dataclass(frozen=True)
class Clock:
    """Seconds of one stage: wall time, and processor time of all threads and of child processes that have ended."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Stages:
    """Seconds of each stage; None for one that was not reached, and for certify without evidence."""

    build: Clock | None = None
    solve: Clock | None = None
    certify: Clock | None = None

    def wall(self, stage: str) -> float | None:
        """Return the wall seconds of a stage by name; None where it was not reached."""
        clock: Clock | None = getattr(self, stage)
        return None if clock is None else clock.wall

    @property
    def cpu(self) -> float | None:
        """Processor seconds of all stages; None where none was reached."""
        taken = [clock.cpu for clock in vars(self).values() if clock is not None]
        return math.fsum(taken) if taken else None


@dataclass(frozen=True)
class InstanceKey:
    """Which instance it was: as `fairopt.bench.kinds.Instance`, without the problem itself."""

    family: str
    name: str
    size: int
    seed: int
    parameters: Mapping[str, Any]
    digest: str


@dataclass(frozen=True)
class Judged:
    """What the task's own code found: as `fairopt.bench.kinds.Judgement`; NaN (null in the file) where unknown."""

    violation: float
    gap: float
    objective: float
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One contender on one instance, once, and its limits: what is measured.

    ``contender`` is the registered name, ``label`` what tables call it ("": the name); ``settings`` are all of its
    options, defaults included; ``concurrent`` measurements may have run at once, this one included.
    """

    spec: str
    task: str
    contender: str
    settings: Mapping[str, Any]
    instance: InstanceKey
    repeat: int
    label: str = ""
    spec_digest: str = ""
    time_limit: float = float("inf")
    memory_limit: int | None = None
    threads: int = 1
    concurrent: int = 1

    @property
    def called(self) -> str:
        """What tables call the contender."""
        return self.label or self.contender

    @property
    def condition(self) -> str:
        """Task, contender, settings and limits, as text."""
        limits = self.time_limit, self.memory_limit, self.threads
        return json.dumps([self.task, self.contender, dict(self.settings), *limits], sort_keys=True)

    @property
    def identity(self) -> str:
        """What makes two trials the same, as text: specifications may share a file, and enter a contender twice."""
        return json.dumps([self.condition, self.spec, self.called, self.instance.digest, self.repeat])


@dataclass(frozen=True, kw_only=True)
class Measurement(Trial):
    """A trial and its outcome; ``judgement`` is None where there is no answer.

    ``base_bytes`` is the resident memory of the process right before "build", with the instance and the libraries
    loaded, ``peak_bytes`` the most from there on, processes started by it included. ``reference_job`` is a small job,
    always the same, done right before each measurement.
    """

    kind: ClassVar[str] = "measurement"

    libraries: Mapping[str, str]
    status: MeasurementStatus
    message: str
    seconds: Stages
    peak_bytes: int | None
    base_bytes: int | None
    judgement: Judged | None
    reference_job: Clock | None
    started: str
    environment: str

    @property
    def solved(self) -> bool:
        """Whether there is an answer that was accepted: only then do the seconds count."""
        return self.status is MeasurementStatus.SOLVED

    @property
    def to_answer(self) -> float | None:
        """Wall seconds from the plain problem to the answer: build and solve; None where there is no answer."""
        build, solve = self.seconds.wall("build"), self.seconds.wall("solve")
        return None if build is None or solve is None else build + solve

    @property
    def to_evidence(self) -> float | None:
        """Wall seconds to the answer and its evidence: certify too, where the contender gives any."""
        return None if self.to_answer is None else self.to_answer + (self.seconds.wall("certify") or 0.0)

    @property
    def added_bytes(self) -> int | None:
        """How far the peak is above the memory before "build"; None where either is unknown."""
        if self.peak_bytes is None or self.base_bytes is None:
            return None
        return max(self.peak_bytes - self.base_bytes, 0)


@dataclass(frozen=True)
class Environment:
    """Where measurements were made. ``digest`` is the hash of everything else.

    ``threads`` are the variables that pin threads; ``libraries`` the versions of all libraries that contenders of the
    specification name, as installed; ``commit`` and ``dirty`` the state of the checkout, "" and False without one.
    """

    kind: ClassVar[str] = "environment"

    digest: str
    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    threads: Mapping[str, str]
    libraries: Mapping[str, str]
    commit: str
    dirty: bool
    spec_text: str
    command: str

    @classmethod
    def of(cls, **parts: Any) -> Environment:
        """Return the environment with its digest."""
        text = json.dumps(encode(parts, finite=True), sort_keys=True)
        return cls(digest=sha256(text.encode()).hexdigest(), **parts)


Record = Measurement | Environment
#: The classes of what a file of results holds.
KINDS = (Measurement, Environment)


def record_of(line: str, place: str = "") -> Record:
    """Return the record in a line; errors as `fairopt.bench.journal.record_in`."""
    record: Record = record_in(line, KINDS, place)
    return record


def read_results(path: str | PathLike[str]) -> Records:
    """Return what a file of results holds; errors as `fairopt.bench.journal.read_records`."""
    return read_records(path, KINDS)


def measurements(records: Iterable[Record]) -> list[Measurement]:
    """Return the measurements among the records."""
    return [each for each in records if isinstance(each, Measurement)]


def environments(records: Iterable[Record]) -> dict[str, Environment]:
    """Return the environments among the records, by digest."""
    return {each.digest: each for each in records if isinstance(each, Environment)}

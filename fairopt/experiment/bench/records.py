"""What a benchmark writes: a line of JSON for each measurement, and for the environment that it was made in.

A file of results (``*.jsonl``) holds one object a line. ``kind`` is "environment" or "measurement"; a measurement names
its environment by digest, and the environment's line stands before it. Lines are only ever appended.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

from fairopt.codec import UNWRITTEN, encode
from fairopt.experiment.bench.kinds import Instance, Judgement
from fairopt.experiment.journal import TrialStatus, read_records
from fairopt.experiment.machine import Clock, Environment

#: Statuses that may differ when the same is tried later on the same machine.
PASSING = (TrialStatus.MISSING, TrialStatus.SKIPPED)

#: The stages of a measurement, in order.
STAGES = ("build", "solve", "certify")
#: What a report calls each status.
WORDS: Mapping[TrialStatus, str] = {each: each.value for each in TrialStatus} | {
    TrialStatus.TIMEOUT: "time-out",
    TrialStatus.MEMORY: "out of memory",
    TrialStatus.MISSING: "not installed",
}


def status_words(statuses: Mapping[TrialStatus, int]) -> str:
    """Return how often each status but "solved" came, such as "time-out 2, wrong"."""
    found = {WORDS[each]: statuses.get(each, 0) for each in TrialStatus if each is not TrialStatus.SOLVED}
    return ", ".join(word if often == 1 else f"{word} {often}" for word, often in found.items() if often)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One contender on one instance, once: what is measured within which limits, and the outcome, if there is one.

    ``contender`` is the registered name, ``label`` what tables call it ("": the name); ``settings`` are all of its
    options, defaults included; ``concurrent`` measurements may have run at once, this one included. ``seconds`` are
    those of each stage: None for one that was not reached, and for certify without evidence. ``judgement`` is None
    where there is no answer.

    ``base_bytes`` is the resident memory of the process right before "build", with the instance and the libraries
    loaded, ``peak_bytes`` the most from there on, processes started by it included. ``reference_job`` is a small job,
    always the same, done right before each measurement. ``number`` is its place among the records that a report is
    made from, from 1 (the line, where they are of one file).
    """

    kind: ClassVar[str] = "measurement"

    spec: str
    task: str
    contender: str
    settings: Mapping[str, Any]
    instance: Instance
    repeat: int
    label: str = ""
    spec_digest: str = ""
    time_limit: float = float("inf")
    memory_limit: int | None = None
    threads: int = 1
    concurrent: int = 1
    libraries: Mapping[str, str]
    status: TrialStatus
    message: str
    seconds: Mapping[str, Clock | None]
    peak_bytes: int | None
    base_bytes: int | None
    judgement: Judgement | None
    reference_job: Clock | None
    started: str
    environment: str
    number: int = field(default=0, compare=False, metadata=UNWRITTEN)

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
        """What makes two of them the same, as text: specifications may share a file, and enter a contender twice."""
        return json.dumps([self.condition, self.spec, self.called, self.instance.digest, self.repeat])

    @property
    def solved(self) -> bool:
        """Whether there is an answer that was accepted: only then do the seconds count."""
        return self.status is TrialStatus.SOLVED

    def wall(self, stage: str) -> float | None:
        """Return the wall seconds of a stage by name; None where it was not reached."""
        clock = self.seconds.get(stage)
        return None if clock is None else clock.wall

    @property
    def cpu(self) -> float | None:
        """Processor seconds of all stages; None where none was reached."""
        taken = [clock.cpu for clock in self.seconds.values() if clock is not None]
        return math.fsum(taken) if taken else None

    @property
    def to_answer(self) -> float | None:
        """Wall seconds from the plain problem to the answer: build and solve; None where there is no answer."""
        build, solve = self.wall("build"), self.wall("solve")
        return None if build is None or solve is None else build + solve

    @property
    def to_evidence(self) -> float | None:
        """Wall seconds to the answer and its evidence: certify too, where the contender gives any."""
        return None if self.to_answer is None else self.to_answer + (self.wall("certify") or 0.0)

    @property
    def why(self) -> str:
        """What it says of how it ended: its message, and the judge's note; "" for nothing."""
        note = "" if self.judgement is None else self.judgement.note
        return "; ".join(part for part in (self.message, note) if part)

    @property
    def added_bytes(self) -> int | None:
        """How far the peak is above the memory before "build"; None where either is unknown."""
        if self.peak_bytes is None or self.base_bytes is None:
            return None
        return max(self.peak_bytes - self.base_bytes, 0)


Record = Measurement | Environment
#: The classes of what a file of results holds.
KINDS = (Measurement, Environment)


def read_results(path: str | PathLike[str], say: Callable[[str], None] = lambda text: None) -> list[Record]:
    """Return what a file of results holds; errors as `fairopt.experiment.journal.read_records`."""
    return read_records(path, KINDS, say)


def measurements(records: Iterable[Record]) -> list[Measurement]:
    """Return the measurements among the records."""
    return [each for each in records if isinstance(each, Measurement)]


def environments(records: Iterable[Record]) -> dict[str, Environment]:
    """Return the environments among the records, by digest."""
    return {each.digest: each for each in records if isinstance(each, Environment)}


# -- Parquet -----------------------------------------------------------------------------------------------------------
#: The columns of ``--parquet``, one row a measurement: name, Arrow type, meaning. A stage that was not reached, and
#: what does not apply, is null. Objects are JSON texts.
COLUMNS = (
    ("spec", "string", "name of the specification"),
    ("spec_digest", "string", "SHA-256 of its text"),
    ("task", "string", "what was asked"),
    ("contender", "string", "registered name of who answered"),
    ("label", "string", "what tables call it"),
    ("settings", "string", "all of its options, JSON"),
    ("contender_libraries", "string", "versions of the libraries that it names, JSON"),
    ("family", "string", "family of the instance"),
    ("instance", "string", "name of the instance"),
    ("size", "int64", "what growth is fitted over: users, jobs"),
    ("seed", "int64", "seed that it was drawn with"),
    ("parameters", "string", "parameters of the family, JSON"),
    ("instance_digest", "string", "hash of its content"),
    ("repeat", "int64", "which repetition, from 0"),
    ("status", "string", "solved, wrong, timeout, memory, error, missing or skipped"),
    ("message", "string", "why, where it is not solved"),
    ("build_wall", "float64", "seconds to write the model down"),
    ("build_cpu", "float64", "seconds of the processor for that"),
    ("solve_wall", "float64", "seconds to the answer"),
    ("solve_cpu", "float64", "seconds of the processor for that"),
    ("certify_wall", "float64", "seconds to the evidence"),
    ("certify_cpu", "float64", "seconds of the processor for that"),
    ("peak_bytes", "int64", "most resident memory from build on"),
    ("base_bytes", "int64", "resident memory before build"),
    ("violation", "float64", "largest relative violation of a constraint"),
    ("gap", "float64", "how far the objective is below what is proven possible, as a part of it"),
    ("objective", "float64", "what the answer reaches"),
    ("note", "string", "what the judge says"),
    ("reference_wall", "float64", "seconds of the reference job before the measurement"),
    ("reference_cpu", "float64", "seconds of the processor for that"),
    ("started", "string", "when, ISO 8601, UTC"),
    ("time_limit", "float64", "seconds allowed for build and solve"),
    ("memory_limit", "int64", "bytes allowed"),
    ("threads", "int64", "threads that libraries were pinned to"),
    ("concurrent", "int64", "measurements that may have been under way at once"),
    ("environment", "string", "digest of the environment"),
    ("environment_json", "string", "the environment, JSON"),
)


def rows(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield what the measurements among records say, by the names of `COLUMNS`."""
    records = list(records)
    known = environments(records)
    return (_row(each, known.get(each.environment)) for each in measurements(records))


def _row(of: Measurement, where: Record | None) -> dict[str, Any]:
    row: dict[str, Any] = encode(of, finite=True)
    instance, judged, seconds = row["instance"], row["judgement"] or {}, row["seconds"]
    clocks = {**seconds, "reference": row["reference_job"]}
    row |= {name: instance[name] for name in ("family", "size", "seed")}
    row |= {f"{stage}_{clock}": took and took[clock] for stage, took in clocks.items() for clock in ("wall", "cpu")}
    row |= {name: judged.get(name) for name in ("violation", "gap", "objective", "note")}
    row |= {
        "instance": instance["name"],
        "instance_digest": instance["digest"],
        "parameters": _json(instance["parameters"]),
        "settings": _json(row["settings"]),
        "contender_libraries": _json(row["libraries"]),
        "environment_json": None if where is None else _json(encode(where, finite=True)),
    }
    return row


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)

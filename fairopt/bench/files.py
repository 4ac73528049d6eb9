"""Results of a benchmark as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from fairopt.bench.journal import RecordsFile
from fairopt.bench.records import KINDS, Measurement, Record, environments, measurements
from fairopt.codec import encode


class ResultsFile(RecordsFile):
    """The file of results that a benchmark continues."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        super().__init__(path, KINDS, say, place="--json")


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

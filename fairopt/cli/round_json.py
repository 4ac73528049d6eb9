"""A run as JSON, and as a table for columnar tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairopt.errors import BadInput, NotInstalled
from fairopt.properties.verdict import plain
from fairopt.simulation import History, Mechanics
from fairopt.simulation.document import document
from fairopt.simulation.measures import UNITS, Measures


def result(
    history: History,
    measures: Measures,
    *,
    policy: str,
    options: list[str],
    mechanics: Mechanics,
    length: object,
    stopped: str | None,
) -> dict[str, Any]:
    """Return what ``run --json`` prints: the document that `proofs/verify.py` replays, and what was measured.

    Keys besides those of `fairopt.simulation.document`: ``outcome`` with ``options`` (from --set), ``complete`` (every
    job that can run is done) and ``stopped`` (why the run ended before that, else null); ``measures`` with ``row``, the
    numbers that compare policies, and ``units``. Measures are floats: exact ones can have thousands of digits.
    """
    done = measures.jobs == len(history.trace.jobs) and not measures.unfinished
    return {
        **document(history, mechanics, length, policy),
        "outcome": {"options": options, "complete": done, "stopped": stopped},
        "measures": {**plain(measures), "row": measures.row(), "units": dict(UNITS)},
    }


#: The columns of ``run --parquet``, one row for each job present in each round: name, Arrow type, meaning.
COLUMNS = (
    ("round", "int64", "the round's number"),
    ("begin", "float64", "when the round begins"),
    ("end", "float64", "when it ends"),
    ("job", "string", "the job"),
    ("tenant", "string", "whose it is"),
    ("gpus", "int64", "GPUs that it wants"),
    ("status", "string", "ran, waited, or misfit: it fits no type of the cluster"),
    ("hosts", "list<string>", "where it ran; empty where it did not, as all that follows is null"),
    ("host_gpus", "list<int64>", "its GPUs on each of the hosts"),
    ("types", "list<string>", "the types that it ran on"),
    ("change", "string", "stay, start, resume or migrate"),
    ("held_until", "float64", "when it was done, its host failed, or the round ended"),
    ("setup", "float64", "time spent on loading"),
    ("speed", "float64", "work per unit of time after that"),
    ("progress", "float64", "work done"),
    ("remaining", "float64", "work left"),
    ("lease", "float64", "until when the GPUs are its own"),
    ("completed", "bool", "whether it is done"),
    ("lost", "bool", "whether a host failed and took the round's work along"),
)


def write_parquet(history: History, path: Path) -> None:
    """Write a run as a Parquet file with `COLUMNS`, in floats. Errors: `NotInstalled`, `BadInput` for the place."""
    pyarrow, parquet = require_parquet()
    kinds = {
        **{name: getattr(pyarrow, name)() for name in ("int64", "float64", "string")},
        "bool": pyarrow.bool_(),
        "list<string>": pyarrow.list_(pyarrow.string()),
        "list<int64>": pyarrow.list_(pyarrow.int64()),
    }
    described = [pyarrow.field(name, kinds[kind], metadata={"says": says}) for name, kind, says in COLUMNS]
    rows = list(_rows(history))
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in COLUMNS]
    schema = pyarrow.schema(described)
    table = pyarrow.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
    try:
        parquet.write_table(table, path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error}", place="--parquet", remedy="Check the folder") from error


def require_parquet() -> tuple[Any, Any]:
    """Return pyarrow and its part for Parquet. Errors: `NotInstalled`, to be known before anything is computed."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise NotInstalled("--parquet needs pyarrow: pip install 'fairopt[tables]'") from error
    return pyarrow, pyarrow.parquet


def _rows(history: History) -> Iterator[tuple[Any, ...]]:
    jobs = history.trace.jobs
    whose = {
        name: (jobs.tenants[tenant], int(size))
        for name, tenant, size in zip(jobs.names, jobs.tenant, jobs.gpus, strict=True)
    }
    nothing: tuple[Any, ...] = ([], [], [], *(None,) * 9)
    for record in history.rounds:
        when = (record.index, float(record.begin), float(record.end))
        for ran in record.ran:
            yield (
                *(*when, ran.job, *whose[ran.job], "ran"),
                *([host for host, _ in ran.spots], [count for _, count in ran.spots], list(ran.types)),
                ran.change.value,
                *(float(value) for value in (ran.end, ran.setup, ran.speed, ran.progress, ran.remaining, ran.lease)),
                *(ran.completed, ran.lost),
            )
        for name in record.waiting:
            yield (*when, name, *whose[name], "misfit" if name in record.misfits else "waited", *nothing)

"""Bad input: changed journals of benchmarks and of studies, which a run that was stopped goes on from."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from inputs import Reader, attempt, prepared
from trials import Kind

from fairopt.experiment.bench.records import KINDS as MEASURED
from fairopt.experiment.journal import Kinds, TrialStatus, line_of, read_records
from fairopt.experiment.studies.cells import KINDS as PLAYED
from fairopt.experiment.studies.cells import StudyCell
from fairopt.experiment.studies.playing import Observed

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from bench_records import environment, made_up

#: Where a cell of the samples stands.
CELL = {"study": "small", "trace": "philly", "cluster": "c", "load": 0.5, "error": "", "mechanics": "", "key": "k" * 64}


def benchmarks() -> dict[str, bytes]:
    """Return the beginning of a benchmark's journal."""
    return {"bench.jsonl": written(made_up(environment())[:6])}


def studies() -> dict[str, bytes]:
    """Return a study's journal: a cell that was played, and one that failed."""
    seen = Observed({"mean_jct": 3.5, "makespan": None}, {"jct": (1.0, 2.0, 6.0)}, measured=3, course=(1.5, 2.0))
    played = StudyCell(**CELL, policy="srtf", seed=0, status=TrialStatus.PLAYED, observed=seen, seconds=0.2)
    failed = StudyCell(**CELL, policy="fifo", seed=1, status=TrialStatus.FAILED, message="no GPUs")
    return {"study.jsonl": written([environment(), played, failed])}


def written(records: list[Any]) -> bytes:
    """Return the lines of a journal."""
    return "".join(line_of(each) + "\n" for each in records).encode()


def read(kinds: Kinds, path: Path) -> list[Any]:
    """Return the whole records of a journal."""
    return read_records(path, kinds)


def write(records: list[Any], path: Path) -> None:
    """Write the records as a journal."""
    path.write_bytes(written(records))


READERS = {
    "bench journal": Reader(partial(read, MEASURED), benchmarks, write),
    "study journal": Reader(partial(read, PLAYED), studies, write),
}
KINDS = [
    Kind("a", f"read {name}", partial(attempt, reader), 10, reader.cost, partial(prepared, reader))
    for name, reader in READERS.items()
]

"""A run as JSON, and as a table for columnar tools; written while it goes on, a round at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairopt.cli.forms import POLICY_NAME
from fairopt.cli.listing import json_text
from fairopt.cli.parquet import ParquetTable
from fairopt.problem import Cluster, Trace
from fairopt.program import Number
from fairopt.report import SCHEMA_KEY, Key, ResultForm, listed, plain
from fairopt.simulation import Round
from fairopt.simulation.document import round_to_json
from fairopt.simulation.gpu_time import Window
from fairopt.simulation.measures import UNITS, Measures
from fairopt.simulation.record import Changes
from fairopt.simulation.whole_rounds import WholeRounds

OPTIONS_SET = Key("options", list[str], "What --set gave.")
RUN = ResultForm(
    "A run.",
    SCHEMA_KEY,
    POLICY_NAME,
    Key("length", Number, "Seconds of a round."),
    Key("mechanics", dict, "What starting and moving jobs costs."),
    Key("cluster", dict, "Types and hosts."),
    Key("trace", dict, "Tenants, jobs and outages."),
    Key("rounds", listed(dict), "What happened in each round."),
    Key("standing", listed(dict), "How the jobs that are still there stand."),
    Key(
        "outcome",
        ResultForm(
            "How the run ended.",
            OPTIONS_SET,
            Key("complete", bool, "Whether every job that can run is done."),
            Key("stopped", str | None, "Why the run ended before that."),
        ),
        "How the run ended.",
    ),
    Key("measures", dict, "What was measured; `row` compares policies, in the units of `units`."),
)


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


class WrittenRounds:
    """The whole record of each round, as a run goes on: printed as a document, written as a table, or neither.

    ``begun`` is the beginning of the document that ``run --json`` prints, which `proofs/verify.py` decides; None for no
    document. Keys besides those of `fairopt.simulation.document`: ``outcome`` with ``options`` (from --set),
    ``complete`` (every job that can run is done) and ``stopped`` (why the run ended before that, else null);
    ``measures`` with ``row``, the numbers that compare policies, ``units``, and the ``window`` that was measured, or
    null. Measures are floats: exact ones can have thousands of digits. ``table`` takes the rows of `COLUMNS`.
    """

    def __init__(
        self,
        policy: str,
        trace: Trace,
        cluster: Cluster,
        begun: Mapping[str, Any] | None = None,
        table: ParquetTable | None = None,
    ) -> None:
        jobs = trace.jobs
        owners = zip(jobs.names, jobs.tenant.tolist(), jobs.gpus.tolist(), strict=True)
        self._whose = {name: (jobs.tenants[tenant], size) for name, tenant, size in owners}
        self._begun, self._table, self._printed = begun, table, 0
        asked = begun is not None or table is not None
        self._rounds = WholeRounds(policy, trace, cluster) if asked else None

    def add(self, changes: Changes) -> None:
        """Take a round in."""
        self._write(() if self._rounds is None else self._rounds.add(changes))

    def end(self, index: int) -> None:
        """Write the rounds up to the last, in which nothing changed."""
        self._write(() if self._rounds is None else self._rounds.until(index))

    def end_document(self, **rest: Any) -> None:
        """Print what follows the rounds."""
        self._begin_document()
        print(f"], {json_text(rest)[1:]}")

    def _write(self, rounds: Iterable[Round]) -> None:
        for record in rounds:
            if self._begun is not None:
                self._begin_document()
                sys.stdout.write(f"{', ' if self._printed else ''}{json_text(round_to_json(record))}")
                self._printed += 1
            if self._table is not None:
                self._table.add(self._rows(record))

    def _begin_document(self) -> None:
        if self._begun:
            sys.stdout.write(f'{json_text(self._begun)[:-1]}, "rounds": [')
            self._begun = {}

    def _rows(self, record: Round) -> Iterator[dict[str, Any]]:
        """Yield what happened to each job in a round, by the names of `COLUMNS`, in floats."""
        names = [name for name, _, _ in COLUMNS]
        return (dict(zip(names, row, strict=True)) for row in self._cells(record))

    def _cells(self, record: Round) -> Iterator[tuple[Any, ...]]:
        nothing: tuple[Any, ...] = ([], [], [], *(None,) * 9)
        when = (record.index, float(record.begin), float(record.end))
        for ran in record.ran:
            yield (
                *(*when, ran.job, *self._whose[ran.job], "ran"),
                *([host for host, _ in ran.spots], [count for _, count in ran.spots], list(ran.types)),
                ran.change.value,
                *(float(value) for value in (ran.end, ran.setup, ran.speed, ran.progress, ran.remaining, ran.lease)),
                *(ran.completed, ran.lost),
            )
        for name in record.waiting:
            yield (*when, name, *self._whose[name], "misfit" if name in record.unschedulable else "waited", *nothing)


def measured(measures: Measures, window: Window | None) -> dict[str, Any]:
    """Return measures as JSON."""
    said = None if window is None else [None if end == float("inf") else float(end) for end in window]
    return {**plain(measures), "row": measures.row(), "units": dict(UNITS), "window": said}

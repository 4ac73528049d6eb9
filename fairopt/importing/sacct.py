"""Slurm's accounting as a trace: the jobs that `sacct` lists, when they came, what they took and for how long."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, Places
from fairopt.importing.slurm_records import SlurmCommand, lines_of, table_rows, text_records
from fairopt.importing.slurm_values import UNTYPED, duration, gpus_of, moment, said, tres
from fairopt.problem import Jobs, Trace
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming

_USED = frozenset(
    ["jobid", "user", "account", "submit", "start", "end", "elapsed", "elapsedraw", "state", "reqtres", "alloctres"]
)


class TraceRows:
    """Jobs as they are read, one after another, and what was left out, counted by the reason."""

    def __init__(self, source: str) -> None:
        """Begin with no jobs of ``source``."""
        self.columns: dict[str, list[Any]] = {n: [] for n in ("names", "tenant", "submit", "gpus", "work", "type")}
        self._source, self._places = source, Places()

    def add(self, name: str, tenant: str, submit: Fraction, gpus: int, work: Fraction, kind: str) -> None:
        """Take a job; ``kind`` is its GPU type, `UNTYPED` where it takes any."""
        for column, value in zip(self.columns.values(), (name, tenant, submit, gpus, work, kind), strict=True):
            column.append(value)

    def leave(self, what: str, value: str, why: str) -> None:
        """Leave something out."""
        self._places.note(f"{self._source}, {what}", "", value, why)

    def imported(self) -> Imported:
        """Return the trace, from the first submission on. Errors: `BadInput` where no job is left."""
        rows, left = self.columns, self._places.listed
        if not rows["names"]:
            reasons = "; ".join(map(str, left)) or "the table has no rows"
            remedy = f"Give jobs that ran, and asked for GPUs ({reasons[:300]})"
            raise BadInput("no jobs", place="the file", remedy=remedy)
        types = [kind for kind in dict.fromkeys(rows["type"]) if kind != UNTYPED] or [UNTYPED]
        begin = min(rows["submit"])
        jobs = Jobs.of(
            names=rows["names"],
            types=types,
            gpus=rows["gpus"],
            work=rows["work"],
            arrival=[each - begin for each in rows["submit"]],
            tenant=rows["tenant"],
            throughput=None if len(types) == 1 else [[int(t in (own, UNTYPED)) for own in types] for t in rows["type"]],
        )
        return Imported(Trace(jobs), left)


def read(path: AnyPath) -> Imported:
    """Read what ``sacct -aXP -o JobID,Account,User,Submit,Elapsed,State,AllocTRES`` printed, as a trace.

    A job's work is the time that it ran, in seconds, on every GPU type that it may take; its tenant is its account.
    Times are seconds since the first submission. Rows are read one at a time. Left out, and counted: steps, jobs that
    never ran, jobs without GPUs and on several types. Jobs that were cancelled, failed or still run have the time so
    far. Errors: `BadInput` that names the file, the line, the value and what to do.

    Source: Slurm, doc/man/man1/sacct.1; states: src/common/slurm_protocol_defs.c.
    """
    rows = TraceRows("sacct")
    names: set[str] = set()
    with naming(path):
        kind, first = next(text_records(path), (None, ObjectPart("line 1", {})))
        missing = {"submit", "account"} - first.value.keys()
        if kind is not SlurmCommand.JOB or missing:
            remedy = "Give what sacct -aXP -o JobID,Account,User,Submit,Elapsed,State,AllocTRES printed"
            raise BadInput(f"no column {', '.join(sorted(missing)) or 'JobID'}", place="line 1", remedy=remedy)
        for name in sorted(first.value.keys() - _USED):
            rows.leave(name, first.value[name], "the trace has no such column")
        for place, row in table_rows(lines_of(path)):
            _take(rows, names, place, row)
        return rows.imported()


def _take(rows: TraceRows, names: set[str], place: str, row: dict[str, str]) -> None:
    name, state = said(row["jobid"]), (said(row.get("state", "")).split() or ["COMPLETED"])[0]
    if "." in name:
        return rows.leave("JobID", name, "a step of a job")
    submit = moment(row["submit"], f"{place}, Submit")
    elapsed = _elapsed(row, place)
    if submit is None or not elapsed:
        return rows.leave("State", state, "a job that never ran has no work")
    asked = tres(row.get("alloctres", ""), f"{place}, AllocTRES") or tres(row.get("reqtres", ""), f"{place}, ReqTRES")
    gpus = gpus_of(asked, f"{place}, TRES")
    if not gpus:
        return rows.leave("AllocTRES", name, "a job without GPUs")
    if len(gpus) > 1:
        return rows.leave("AllocTRES", ", ".join(gpus), "a job on several GPU types; a job of a trace has one")
    if name in names:
        return rows.leave("JobID", name, "a job that was put into the queue again; its first run is in the trace")
    if state not in ("COMPLETED", "TIMEOUT"):
        rows.leave("State", state, "its work is the time that it ran, which is less than it asked for")
    names.add(name)
    ((kind, count),) = gpus.items()
    tenant = said(row["account"]) or said(row.get("user", "")) or "nobody"
    return rows.add(name, tenant, submit, count, elapsed, kind)


def _elapsed(row: dict[str, str], place: str) -> Fraction | None:
    if "elapsedraw" in row and said(row["elapsedraw"]):
        return moment(row["elapsedraw"], f"{place}, ElapsedRaw")
    if "elapsed" in row:
        return duration(row["elapsed"], f"{place}, Elapsed")
    start, end = (moment(row.get(name, ""), f"{place}, {name.title()}") for name in ("start", "end"))
    if start is None or end is None:
        return None
    if end < start:
        raise BadInput(f"it ends {start - end} s before it starts", place=place, remedy="Give Start and End in order")
    return end - start

"""Slurm's accounting as a trace: the jobs that `sacct` lists, when they came, what they took and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.importing.lines import lines_of
from fairopt.importing.slurm_records import table_rows, text_records
from fairopt.importing.slurm_values import UNTYPED, duration, gpus_of, moment, said, tres
from fairopt.importing.unplaced import Places
from fairopt.problem import Jobs, Trace
from fairopt.problem.files.cells import column_of, say_which
from fairopt.problem.files.storage import AnyPath, naming

_USED = frozenset(
    ["jobid", "user", "account", "submit", "start", "end", "elapsed", "elapsedraw", "state", "reqtres", "alloctres"]
)


#: sacct's names of what other tables of jobs say.
_KEYS: Mapping[str, str] = {"job": "jobid", "tenant": "account", "duration": "elapsed", "gpus": "alloctres"}
#: A job of a table: its name, tenant, submission, GPUs and work, and its GPU type, `UNTYPED` where it takes any.
TableJob = tuple[str, str, Fraction, int, Fraction, str]


def trace_of(jobs: Iterable[TableJob], places: Places, cluster: Sequence[str] = ()) -> Imported:
    """Return the trace of jobs, from the first submission on; ``places`` has what was left out, counted by the reason.

    ``cluster``: the types of the cluster that it is for, as the cluster writes them; where jobs are of types, all are
    types of the trace. Jobs are taken one at a time. Errors: `BadInput` where there is none.
    """
    columns: tuple[list[Any], ...] = tuple([] for _ in range(6))
    for job in jobs:
        for column, value in zip(columns, job, strict=True):
            column.append(value)
    names, tenants, submits, gpus, work, told = columns
    known = {kind.lower(): kind for kind in cluster}
    kinds = [kind if kind == UNTYPED else known.get(kind.lower(), kind) for kind in told]
    left = places.listed
    if not names:
        reasons = "; ".join(map(str, left)) or "the table has no rows"
        remedy = f"Give jobs that ran, and asked for GPUs ({reasons[:300]})"
        raise BadInput("no jobs", place="the file", remedy=remedy)
    typed = [kind for kind in dict.fromkeys(kinds) if kind != UNTYPED]
    types = list(dict.fromkeys([*typed, *cluster])) if typed else [UNTYPED]
    begin = min(submits)
    made = Jobs.of(
        names=names,
        types=types,
        gpus=gpus,
        work=work,
        arrival=[each - begin for each in submits],
        tenant=tenants,
        throughput=None if len(types) == 1 else [[int(kind in (own, UNTYPED)) for own in types] for kind in kinds],
    )
    return Imported(Trace(made), left)


def read(path: AnyPath, columns: Mapping[str, str] | None = None) -> Imported:
    """Read what ``sacct -aXP -o JobID,Account,User,Submit,Elapsed,State,AllocTRES`` printed, as a trace.

    ``columns`` says which column is which where a table was renamed, as {"submit": "when"}.

    A job's work is the time that it ran, in seconds, on every GPU type that it may take; its tenant is its account.
    Times are seconds since the first submission. Rows are read one at a time. Left out, and counted: steps, jobs that
    never ran, jobs without GPUs and on several types. Jobs that were cancelled, failed or still run have the time so
    far. Errors: `BadInput` that names the file, the line, the value and what to do.

    Source: Slurm, doc/man/man1/sacct.1; states: src/common/slurm_protocol_defs.c.
    """
    places = Places()
    with naming(path):
        header = next((line for _, line in lines_of(path) if line.strip()), "")
        if "|" not in header:
            next(text_records(path), None)  # says what the file is, and how it is printed
        first = next(_rows(path, columns or {}), ("line 1", {}))[1]
        missing = {"jobid", "submit", "account"} - first.keys()
        if missing:
            remedy = "Give what sacct -aXP -o JobID,Account,User,Submit,Elapsed,State,AllocTRES printed"
            remedy += f". {say_which(min(missing), list(first))}" if first else ""
            raise BadInput(f"no column {', '.join(sorted(missing))}", place="line 1", remedy=remedy)
        for name in sorted(first.keys() - _USED):
            places.note(f"sacct, {name}", "", first[name], "the trace has no such column")
        return trace_of(_jobs(_rows(path, columns or {}), places), places)


def _rows(path: AnyPath, columns: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of the table by column; ``columns`` says what some are called."""
    known = {name.lower(): _KEYS.get(key.lower(), key.lower()) for key, name in columns.items()}
    for place, row in table_rows(lines_of(path)):
        for name in known:
            column_of(name, list(row), "line 1")
        yield place, {known.get(name, name): value for name, value in row.items()}


def _jobs(rows: Iterable[tuple[str, dict[str, str]]], places: Places) -> Iterator[TableJob]:
    """Yield the jobs that ran, and note the others."""

    def leave(what: str, value: str, why: str) -> None:
        places.note(f"sacct, {what}", "", value, why)

    names: set[str] = set()
    for place, row in rows:
        name, state = said(row["jobid"]), (said(row.get("state", "")).split() or ["COMPLETED"])[0]
        if "." in name:
            leave("JobID", name, "a step of a job")
            continue
        submit = moment(row["submit"], f"{place}, Submit")
        elapsed = _elapsed(row, place)
        if submit is None or not elapsed:
            leave("State", state, "a job that never ran has no work")
            continue
        asked = tres(row.get("alloctres", ""), f"{place}, AllocTRES")
        gpus = gpus_of(asked or tres(row.get("reqtres", ""), f"{place}, ReqTRES"), f"{place}, TRES")
        if not gpus:
            leave("AllocTRES", name, "a job without GPUs")
        elif len(gpus) > 1:
            leave("AllocTRES", ", ".join(gpus), "a job on several GPU types; a job of a trace has one")
        elif name in names:
            leave("JobID", name, "a job that was put into the queue again; its first run is in the trace")
        else:
            if state not in ("COMPLETED", "TIMEOUT"):
                leave("State", state, "its work is the time that it ran, which is less than it asked for")
            names.add(name)
            ((kind, count),) = gpus.items()
            tenant = said(row["account"]) or said(row.get("user", "")) or "nobody"
            yield name, tenant, submit, count, elapsed, kind


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

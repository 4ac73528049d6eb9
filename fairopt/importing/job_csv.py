"""Tables of jobs as a trace: any columns that say who came when, for how long, with how many GPUs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, Places
from fairopt.importing.sacct import TableJob, trace_of
from fairopt.importing.slurm_records import lines_of
from fairopt.importing.slurm_values import UNTYPED, duration, gres, moment, said
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import amount, shown, whole

#: What columns are called, the usual name first.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "jobid", "id", "name", "jobname"),
    "tenant": ("tenant", "account", "user", "vc", "group", "project", "queue"),
    "submit": ("submit", "submittime", "submitted", "arrival", "arrivaltime", "submittedtime", "timestamp"),
    "duration": ("duration", "elapsed", "runtime", "elapsedraw", "runtimes", "seconds"),
    "gpus": ("gpus", "gpu", "numgpus", "ngpus", "gpunum", "gpucount", "gres", "alloctres"),
    "type": ("type", "gputype", "gpumodel"),
}
_NEEDED = ("submit", "duration", "gpus")


def read(path: AnyPath, columns: Mapping[str, str] | None = None) -> Imported:
    """Read a CSV of jobs (also with ; tab or |) as a trace.

    The columns are recognised by their names (`KNOWN`), or ``columns`` names them: job, tenant, submit, duration, gpus,
    type. Times are seconds or as Slurm writes them (2026-11-22T08:30:00; 00:30:00, 1-02:03:04), GPUs a number or
    "gpu:a100:4". Jobs of no duration or no GPUs are left out and counted. Rows are read one at a time. Errors:
    `BadInput` that names the file, the line, the column, the value and what to do.

    Source: none; the traces of Philly, Helios, PAI and ElasticFlow have such tables.
    """
    places = Places()
    with naming(path):
        lines = _cells(path)
        place, header = next(lines, ("line 1", []))
        names = [cell.strip() for cell in header]
        found = _columns(names, dict(columns or {}), place)
        for name in names:
            if names.index(name) not in found.values():
                why = "the trace has no such column, or another was recognised first"
                places.note(f"job-csv, {name}", "", "the column", why)
        return trace_of(_jobs(lines, names, found, places), places)


def _jobs(
    lines: Iterable[tuple[str, list[str]]], names: Sequence[str], found: Mapping[str, int], places: Places
) -> Iterator[TableJob]:
    """Yield the jobs that ran, and note the others."""
    for number, (place, cells) in enumerate(lines, start=1):
        if len(cells) != len(names):
            remedy = "Give one for each column"
            raise BadInput(f"{len(cells)} cells for {len(names)} columns", place=place, remedy=remedy)
        row = {what: cells[at].strip() for what, at in found.items()}
        submit = Fraction(0) if row["submit"] == "0" else moment(row["submit"], f"{place}, submit")
        text = row["duration"]
        time = duration(text, f"{place}, duration") if ":" in text or "-" in text[1:] else _number(text, place)
        if submit is None or not time:
            places.note("job-csv, duration", "", text, "a job that never ran has no work")
            continue
        if row["gpus"].lower().replace("gres/", "").startswith("gpu"):
            gpus = gres(row["gpus"].replace("=", ":"), f"{place}, gpus")
        else:
            count = whole(row["gpus"] or 0, f"{place}, gpus", least=0)
            gpus = {said(row.get("type", "")) or UNTYPED: count} if count else {}
        if len(gpus) != 1:
            places.note("job-csv, gpus", "", row["gpus"], "a job without GPUs, or on several types")
            continue
        ((kind, count),) = gpus.items()
        yield row.get("job") or f"j{number}", row.get("tenant") or "tenant", submit, count, time, kind


def _number(text: str, place: str) -> Fraction | None:
    return amount(text, f"{place}, duration") if said(text) else None


def _columns(names: list[str], given: dict[str, str], place: str) -> dict[str, int]:
    plain = [name.lower().replace("_", "").replace(" ", "").replace("-", "") for name in names]
    found: dict[str, int] = {}
    for what, usual in KNOWN.items():
        if what in given:
            wanted = given.pop(what)
            if wanted not in names:
                raise BadInput(f"no column {shown(wanted)}", place=place, remedy=nearest(wanted, names, "column"))
            found[what] = names.index(wanted)
            continue
        at = next((plain.index(name) for name in usual if name in plain), None)
        if at is not None:
            found[what] = at
    if given:
        raise BadInput(f"got {shown(min(given))}", place="columns", remedy=f"Name some of {', '.join(KNOWN)}")
    for what in _NEEDED:
        if what not in found:
            remedy = f"Call one {what}, or give columns={{{what!r}: ...}}; there are {', '.join(names)[:200]}"
            raise BadInput(f"no column says the {what}", place=place, remedy=remedy)
    return found


def _cells(path: AnyPath) -> Iterator[tuple[str, list[str]]]:
    """Yield the cells of each line that is not blank; the separator is the one that the first line has most of."""
    lines = ((place, line) for place, line in lines_of(path) if line.strip())
    separator = ""
    for place, line in lines:
        separator = separator or max(",;\t|", key=line.count)
        try:
            yield place, next(csv.reader([line], delimiter=separator, strict=True))
        except csv.Error as error:
            raise BadInput(f"not CSV: {error}", place=place, remedy="Correct the quotes there") from error

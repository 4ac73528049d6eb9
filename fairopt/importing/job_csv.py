"""Tables of jobs as a trace: any columns that say who came when, for how long, with how many GPUs.

Among the names that are known are those of Slurm's sacct, of the traces of Philly and Helios, of Alibaba's tables (PAI
2020: start and end, GPUs in percent for each instance; openb 2023) and of Gavel's and Shockwave's traces.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from math import ceil

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.importing.lines import lines_of
from fairopt.importing.sacct import TableJob, trace_of
from fairopt.importing.slurm_values import UNTYPED, duration, gpus_of, gres, moment, said, tres
from fairopt.importing.unplaced import Places
from fairopt.problem.files.cells import column_of, say_which
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import amount, shown, whole

#: What columns are called, the usual name first, in small letters without signs and without the unit ``_s``.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "jobid", "id", "name", "jobname"),
    "tenant": ("tenant", "account", "vc", "virtualcluster", "team", "user", "group", "project", "queue"),
    "submit": (
        *("submit", "submittime", "submitted", "submission", "arrival", "arrivaltime", "submittedtime"),
        *("creationtime", "timestamp"),
    ),
    "start": ("start", "starttime", "started", "scheduled", "scheduledtime"),
    "end": ("end", "endtime", "finished", "finishtime", "deleted", "deletiontime"),
    "duration": ("duration", "elapsed", "runtime", "run", "elapsedraw", "seconds"),
    "gpus": (
        *("gpus", "gpu", "numgpus", "numgpu", "ngpus", "gpunum", "gpucount", "scalefactor"),
        *("gres", "alloctres", "allocgres", "reqtres", "reqgres"),
    ),
    "percent": ("percent", "plangpu"),
    "instances": ("instances", "instnum", "numinst"),
    "type": ("type", "gputype", "gpumodel", "gpuspec"),
}
#: What must be said, and the columns that say it together where none says it alone.
_NEEDED: Mapping[str, tuple[str, ...]] = {"submit": ("start",), "duration": ("start", "end"), "gpus": ("percent",)}


def read(path: AnyPath, columns: Mapping[str, str] | None = None, cluster: Sequence[str] = ()) -> Imported:
    """Read a CSV of jobs (also with ; tab or |) as a trace.

    The columns are recognised by their names (`KNOWN`), or ``columns`` names them, as {"submit": "start_time"}. Times
    are seconds or as Slurm writes them (2026-11-22T08:30:00; 00:30:00, 1-02:03:04), GPUs a number or "gpu:a100:4".
    Where no column says when jobs arrived, each is taken to arrive when it starts. The duration may be that from start
    to end. Parts of GPUs (percent, for each of the instances) are rounded up. Jobs of no duration or no GPUs are left
    out and counted. A job of a type runs on that type alone; the types of the ``cluster`` are types of the trace, too.
    Rows are read one at a time, also of a compressed file (.gz). Errors: `BadInput` that names the file, the line, the
    column, the value and what to do.

    Source: none; the traces of Philly, Helios, PAI and ElasticFlow have such tables.
    """
    places = Places()
    with naming(path):
        lines = table_cells(path)
        place, names = next(lines, ("line 1", []))
        found = _columns(names, dict(columns or {}), place)
        for name in names:
            if names.index(name) not in found.values():
                why = "the trace has no such column, or another was recognised first"
                places.note(f"job-csv, {name}", "", "the column", why)
        if "submit" not in found:
            places.note("job-csv, submit", "", "no column holds it", "each job is taken to arrive when it starts")
        if "tenant" not in found:
            why = "all jobs are of one tenant; --column tenant=NAME says whose they are"
            places.note("job-csv, tenant", "", "no column holds it", why)
        return trace_of(_jobs(lines, found, places), places, cluster)


def _jobs(lines: Iterable[tuple[str, list[str]]], found: Mapping[str, int], places: Places) -> Iterator[TableJob]:
    """Yield the jobs that ran, and note the others."""
    for number, (place, cells) in enumerate(lines, start=1):
        row = {what: cells[at] for what, at in found.items()}
        submit, time = _moment(row, "submit" if "submit" in row else "start", place), _seconds(row, place)
        if submit is None or not time:
            places.note("job-csv, duration", "", row.get("duration", ""), "a job that never ran has no work")
            continue
        gpus = _gpus(row, place)
        if len(gpus) != 1:
            asked = row.get("gpus", row.get("percent", ""))
            places.note("job-csv, gpus", "", asked, "a job without GPUs, or on several types")
            continue
        ((kind, count),) = gpus.items()
        yield row.get("job") or f"j{number}", row.get("tenant") or "tenant", submit, count, time, kind


def _moment(row: Mapping[str, str], what: str, place: str) -> Fraction | None:
    return Fraction(0) if row[what] == "0" else moment(row[what], f"{place}, {what}")


def _seconds(row: Mapping[str, str], place: str) -> Fraction | None:
    """Return how long a job ran; None where nothing is said."""
    if (text := row.get("duration")) is not None:
        if ":" in text or "-" in text[1:]:
            return duration(text, f"{place}, duration")
        return amount(text, f"{place}, duration") if said(text) else None
    start, end = _moment(row, "start", place), _moment(row, "end", place)
    return None if start is None or end is None or end <= start else end - start


def _gpus(row: Mapping[str, str], place: str) -> dict[str, int]:
    """Return the GPUs of a job by type."""
    text = row.get("gpus", "")
    if text.lower().startswith("gpu"):
        return gres(text.replace("=", ":"), f"{place}, gpus")
    if "=" in text or "gres/" in text:
        among = tres(text, f"{place}, gpus") if "=" in text else {}
        return gpus_of(among, f"{place}, gpus") if among else gres(text, f"{place}, gpus")
    if "gpus" in row:
        count = whole(text or 0, f"{place}, gpus", least=0)
    else:
        parts = amount(row["percent"] or 0, f"{place}, percent") * amount(row.get("instances") or 1, place)
        count = ceil(parts / 100)
    return {said(row.get("type", "")) or UNTYPED: count} if count else {}


def meant(name: str, known: Mapping[str, tuple[str, ...]] = KNOWN) -> str | None:
    """Return what a column of that name says, of those ``known``; None where its name is not.

    >>> meant("submit_time"), meant("Submit_s"), meant("JobID"), meant("colour")
    ('submit', 'submit', 'job', None)
    """
    return next((what for what, usual in known.items() if plain_name(name) in usual), None)


def plain_name(name: str) -> str:
    """Return the name of a column in small letters, without signs and without the unit seconds.

    >>> plain_name("Submit Time_s")
    'submittime'
    """
    return "".join(sign for sign in name.lower().removesuffix("_s") if sign.isalnum())


def columns_of(
    names: Sequence[str], given: Mapping[str, str], known: Mapping[str, tuple[str, ...]], place: str
) -> dict[str, int]:
    """Return where the columns stand that say something, by what they say: as ``given`` has it, else by their names.

    >>> columns_of(["Id", "when"], {"submit": "when"}, KNOWN, "line 1")
    {'job': 0, 'submit': 1}
    """
    plain, wanted = [plain_name(name) for name in names], {}
    for key, name in given.items():
        what = meant(key, known)
        if what is None:
            raise BadInput(f"got {shown(key)}", place="columns", remedy=f"Name some of {', '.join(known)}")
        wanted[what] = column_of(name, names, place)
    usual = [(what, plain.index(name)) for what, each in known.items() for name in each if name in plain]
    return dict(reversed(usual)) | wanted  # of several names the first


def _columns(names: list[str], given: Mapping[str, str], place: str) -> dict[str, int]:
    """Return where the columns of jobs stand. Errors: `BadInput` where one is missing."""
    found = columns_of(names, given, KNOWN, place)
    for what, instead in _NEEDED.items():
        if what not in found and not found.keys() >= {*instead}:
            raise BadInput(f"no column holds {what!r}", place=place, remedy=say_which(what, names))
    return found


def recognised(path: AnyPath) -> bool:
    """Whether a CSV is a table of jobs whose columns are known by their names, and is none of fairopt's own traces."""
    with suppress(BadInput, OSError, StopIteration):  # who reads it says what is wrong with it
        place, names = next(table_cells(path))
        ours = "submit_s" in names or any(name.startswith("throughput ") for name in names)
        return not ours and bool(_columns(names, {}, place))
    return False


def table_cells(path: AnyPath) -> Iterator[tuple[str, list[str]]]:
    """Yield the cells of each line that is not blank, one for each column, without blanks around them.

    The separator is the one that the first line has most of.
    """
    lines = ((place, line) for place, line in lines_of(path) if line.strip())
    separator, columns = "", 0
    for place, line in lines:
        separator = separator or max(",;\t|", key=line.count)
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator, strict=True))]
        except csv.Error as error:
            raise BadInput(f"not CSV: {error}", place=place, remedy="Correct the quotes there") from error
        columns = columns or len(cells)
        if len(cells) != columns:
            remedy = "Give one for each column"
            raise BadInput(f"{len(cells)} cells for {columns} columns", place=place, remedy=remedy)
        yield place, cells

"""Measured throughputs of jobs on GPU types, and a table of who runs what, as a market."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.importing.job_csv import columns_of, table_cells
from fairopt.importing.unplaced import Places
from fairopt.problem import market_from_dict
from fairopt.problem.files.cells import say_which
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import amount, shown, whole
from fairopt.program import Number

#: What columns are called, the usual name first, as `plain_name` has it.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "user": ("user", "tenant", "team", "account", "name"),
    "job": ("job", "jobtype", "model", "jobname"),
    "batch": ("batch", "batchsize", "globalbatchsize"),
    "gpus": ("gpus", "scalefactor", "numgpus", "ngpus"),
    "weight": ("weight", "priority", "priorityweight"),
    "demand": ("demand",),
    "type": ("type", "gputype", "workertype"),
    "throughput": ("throughput", "stepsper", "itersper", "samplesper", "stepspersecond", "speed"),
    "placement": ("placement",),
}
_OF_USERS = ("user", "job", "batch", "gpus", "weight", "demand")
_OF_MEASUREMENTS = ("job", "batch", "gpus", "type", "throughput", "placement")
CAPACITY = "capacity"
#: More digits of a measurement are noise, and make exact numbers long.
DIGITS = 6

#: By job and by how many GPUs it runs on together: its throughput on each type, by the type's name in small letters.
Measured = dict[tuple[str, int], dict[str, Fraction]]
Row = tuple[str, dict[str, str]]


def read(throughputs: AnyPath, users: AnyPath, columns: Mapping[str, str] | None = None) -> Imported:
    """Read measured throughputs and a table of who runs what, as a market of throughputs per GPU.

    ``throughputs`` is JSON as Gavel has it ({type: {"('LM', 1)": {"null": steps per second}}}), or {job: {type:
    number}}, or {type: {job: number}}; or a table with a row for each job and a column for each type, or a row for each
    measurement (job, type, throughput, and batch_size and scale_factor where they matter). ``users`` is a table with a
    row for each job that a user runs (user, job, and scale_factor, weight and demand where they matter), a column for
    each GPU type, and a row of the user "capacity" that says how many GPUs of each there are. ``columns`` says which
    column is which, as {"job": "model"}. A throughput on several GPUs is divided by their number, and rounded to
    `DIGITS` digits.

    Errors: `BadInput` that names the file, the line, the job, the type and what to do; also for a job that was not
    measured on a type that there is.

    Source: Gavel (OSDI 2020), scheduler/utils.py (read_all_throughputs_json_v2), simulation_throughputs.json.
    """
    places = Places()
    named = dict(columns or {})
    if unknown := [key for key in named if key not in KNOWN]:
        raise BadInput(f"got {shown(unknown[0])}", place="columns", remedy=f"Name some of {', '.join(KNOWN)}")
    with naming(users):
        rows, _, others = _table(users, named, _OF_USERS, ("user", "job"))
        capacity, types = _capacity(rows, others, places)
    with naming(throughputs):
        json = Path(throughputs).suffix.lower() == ".json"
        measured = _of_json(throughputs, types) if json else _of_table(throughputs, named, types, places)
    with naming(users):
        told = _users(rows, measured, types, places)
    market = {"schema": 1, "types": types, "capacity": capacity, "user": told}
    return Imported(market_from_dict(market), places.listed)


# -- tables --------------------------------------------------------------------------------------------------------
def _table(
    path: AnyPath, named: Mapping[str, str], known: Iterable[str], needed: Iterable[str]
) -> tuple[list[Row], list[str], list[str]]:
    """Return the rows with their places, by what columns say and by their names; these names; and all others."""
    lines = table_cells(path)
    place, header = next(lines, ("line 1", []))
    given = {what: name for what, name in named.items() if what in known and (name in header or what in needed)}
    found = columns_of(header, given, {what: KNOWN[what] for what in known}, place)
    for what in needed:
        if what not in found:
            raise BadInput(f"no column holds {what!r}", place=place, remedy=say_which(what, header))
    rows: list[Row] = [
        (place, dict(zip(header, row, strict=True)) | {what: row[at] for what, at in found.items()})
        for place, row in lines
    ]
    return rows, [*found], [name for at, name in enumerate(header) if at not in found.values()]


def _capacity(rows: list[Row], others: Sequence[str], places: Places) -> tuple[list[Number], list[str]]:
    """Take the row "capacity" out of ``rows``; return how many GPUs there are of each type, and the types."""
    at = next((at for at, (_, row) in enumerate(rows) if row["user"].lower() == CAPACITY), None)
    if at is None:
        remedy = f"Add the row {CAPACITY},... with the GPUs of each type, in a column for each"
        raise BadInput(f"no row is called {CAPACITY!r}", place="the table", remedy=remedy)
    place, row = rows.pop(at)
    types = [name for name in others if row[name]]
    for name in others:
        if name not in types:
            places.note(
                f"throughputs, {name}", "", "the column", "the market has no such column, or no GPUs of the type"
            )
    if not types:
        raise BadInput("no GPU types", place=place, remedy="Add a column for each type, with its GPUs in this row")
    return [amount(row[name], f"{place}, {name}") for name in types], types


def _users(rows: Iterable[Row], measured: Measured, types: Sequence[str], places: Places) -> list[dict[str, Any]]:
    """Return the users of a market file."""
    told: dict[str, dict[str, Any]] = {}
    for place, row in rows:
        user = told.setdefault(row["user"], {"name": row["user"], "job": []})
        for what in ("weight", "demand"):
            if not row.get(what):
                continue
            value = amount(row[what], f"{place}, {what}", above=True)
            if user.setdefault(what, value) != value:
                wrong = f"{row['user']} has the {what} {shown(value)}, and {shown(user[what])} above"
                raise BadInput(wrong, place=place, remedy="Say the same in each of its rows, or leave it blank")
        name, gpus = _job(row), whole(row.get("gpus") or 1, f"{place}, gpus", least=1)
        speeds = _speeds(name, gpus, measured, types, place)
        twice = any(each["name"] == name for each in user["job"])
        user["job"].append(
            {"name": f"{name} on {gpus}" if twice else name, "speedup": [short(each, places) for each in speeds]}
        )
    if not told:
        raise BadInput("no users", place="the table", remedy="Give a row for each job that a user runs")
    return [user if len(user["job"]) > 1 else _alone(user) for user in told.values()]


def _alone(user: dict[str, Any]) -> dict[str, Any]:
    (job,) = user.pop("job")
    return user | {"speedup": job["speedup"]}


def _job(row: Mapping[str, str]) -> str:
    """Return the job as Gavel writes it: "ResNet-18 (batch size 64)" also where the size has a column."""
    return f"{row['job']} (batch size {row['batch']})" if row.get("batch") else row["job"]


# -- throughputs ---------------------------------------------------------------------------------------------------
def _of_json(path: AnyPath, types: Sequence[str]) -> Measured:
    data = parse_json(read_text(path))
    wanted = {name.lower() for name in types}
    by_type = bool(wanted & {key.lower() for key in data})
    measured: Measured = {}
    for outer, inside in data.items():
        if not isinstance(inside, Mapping):
            raise BadInput(f"got {shown(inside)}", place=outer, remedy="Give {type: {job: throughput}}")
        for inner, value in inside.items():
            place = f"{outer}, {inner}"
            name, kind = (inner, outer) if by_type else (outer, inner)
            if isinstance(value, Mapping):  # beside "null", alone, are those of two jobs on one GPU
                value = value.get("null", 0)
            measured.setdefault(job_and_gpus(name), {})[kind.lower()] = amount(value, place)
    if not wanted & {kind for speeds in measured.values() for kind in speeds}:
        remedy = f"Name the types of the row {CAPACITY}: {', '.join(types)}"
        raise BadInput("no throughput is on a GPU type that there is", place="the top level", remedy=remedy)
    return measured


def job_and_gpus(name: str) -> tuple[str, int]:
    """Return a job and its GPUs: Gavel writes "('LM (batch size 5)', 2)"."""
    try:
        job, gpus = ast.literal_eval(name) if name.startswith("(") and len(name) < 500 else (name, 1)
        return str(job), int(gpus)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, 1


def _of_table(path: AnyPath, named: Mapping[str, str], types: Sequence[str], places: Places) -> Measured:
    rows, found, others = _table(path, named, _OF_MEASUREMENTS, ("job",))
    by_name = {name.lower(): name for name in others}
    wide = [name for name in types if name.lower() in by_name]
    if not wide and not {*found} >= {"type", "throughput"}:
        remedy = f"Give a column for each of {', '.join(types)}. Or: {say_which('throughput', others)}"
        raise BadInput("no column holds a throughput", place="line 1", remedy=remedy)
    measured: Measured = {}
    for place, row in rows:
        if row.get("placement", "").lower() == "unconsolidated":
            places.note("throughputs, placement", "", "unconsolidated", "a market has one throughput on each type")
            continue
        speeds = measured.setdefault((_job(row), whole(row.get("gpus") or 1, f"{place}, gpus", least=1)), {})
        for kind, text in _cells(row, wide, by_name):
            value = amount(text, f"{place}, throughput")
            if speeds.setdefault(kind, value) != value:
                wrong = f"{_job(row)} has {float(value):.6g} on {kind}, and {float(speeds[kind]):.6g} above"
                raise BadInput(wrong, place=place, remedy="Keep one measurement of each job, GPUs and type")
    return measured


def _cells(row: Mapping[str, str], wide: Sequence[str], by_name: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not wide:
        yield row["type"].lower(), row["throughput"]
    for name in wide:
        if text := row[by_name[name.lower()]]:
            yield name.lower(), text


def _speeds(name: str, gpus: int, measured: Measured, types: Sequence[str], place: str) -> list[Fraction]:
    """Return the throughputs per GPU of a job on each type. Errors: `BadInput` for what was not measured."""
    known = {(job.lower(), count): speeds for (job, count), speeds in measured.items()}
    speeds = known.get((name.lower(), gpus))
    if speeds is None:
        sizes = sorted(count for job, count in measured if job.lower() == name.lower())
        near = nearest(name, dict.fromkeys(job for job, _ in measured), "job")
        remedy = f"It was on {', '.join(map(str, sizes))}" if sizes else near
        raise BadInput(f"{name} was not measured on {gpus} together", place=place, remedy=remedy)
    for kind in types:
        if kind.lower() not in speeds:
            remedy = "Give a throughput, 0 where it cannot run; or leave out the type or the job"
            raise BadInput(f"{name} was not measured on {kind}", place=place, remedy=remedy)
    return [speeds[kind.lower()] / gpus for kind in types]


def short(value: Fraction, places: Places) -> Fraction:
    """Return a measurement without the digits that are noise."""
    if not value:
        return value
    leading = (Decimal(value.numerator) / Decimal(value.denominator)).adjusted()
    near = round(value, DIGITS - 1 - leading)
    if near != value:
        places.note("throughputs, digits", "", float(value), f"rounded to {DIGITS} digits")
    return near

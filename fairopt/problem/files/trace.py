"""Trace files: jobs as .csv or .csv.gz, with failures of hosts besides as .toml or .json.

A CSV table has a header and a row for each job. Its columns, in any order, are those of `JOB`, with ``job_id`` for the
name, ``tenant_weight`` for that of the job's tenant, and a column ``throughput <TYPE>`` for each type of the cluster,
or for none. Throughputs on types that the cluster has not got are not used. Columns that public traces have and fairopt
has no use for (`UNUSED`) may stand there; any other is an error.

A .toml or .json file has the keys of `TRACE`: tables ``[[job]]``, ``[[tenant]]`` and ``[[outage]]``, and ``types`` for
throughputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.checks import check_name, listed_rows
from fairopt.problem.files.cells import filled, read_cells, read_csv, say_which
from fairopt.problem.files.schema import (
    NAME,
    NAMES,
    NUMBER,
    NUMBERS,
    TEXT,
    TOP,
    UNCHECKED,
    Column,
    ObjectPart,
    TableType,
    ValueType,
    check_unique,
    document_type,
    json_schema,
    positive,
    read_document,
    tables,
    write_document,
)
from fairopt.problem.files.storage import AnyPath, csv_text, read_file, write_file
from fairopt.problem.jobs import MOST_JOBS, Jobs, usual_pattern
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown
from fairopt.problem.profile import Profile
from fairopt.problem.trace import Outage, Trace
from fairopt.program import INFINITY

#: Columns of public traces (Philly, Helios, PAI and openb, as published or as prepared by others) without a use here.
UNUSED = (
    *("status", "gpu_type", "model", "user", "attempts", "wall_span_s", "orig_id", "source", "duration_censored"),
    *("pai_job", "pai_task", "gpu_type_spec33", "gpu_milli", "cpu_milli", "memory_mib", "qos", "scheduled_s"),
    "deleted_s",
)
_ROWS = ValueType(
    lambda given, _: listed_rows(given),
    lambda given, place: [NUMBERS.write(row, place) for row in given],
    {"type": "array", "items": {**NUMBERS.schema, "minItems": 3}},
)
LENGTH = positive("number", "Give a positive number; leave out jobs that never ran")
_TENANT = ValueType(lambda value, place: check_name(TEXT.read(value, place), place), TEXT.write, NAME.schema)
_UNSENT = "Leave out jobs that were never submitted, or give the time"
_UNRUN = "Leave out jobs that never ran, or give their "
JOB = TableType(
    (
        Column("name", NAME, "The name of the job, which no other has."),
        Column("tenant", _TENANT, 'Whose job it is; "unknown" where left out.', None),
        Column("submit_s", NUMBER, "When it arrives, in seconds.", blank=_UNSENT),
        Column(
            "duration_s",
            LENGTH,
            "Its running time in seconds where its throughput is 1.",
            None,
            _UNRUN + "length",
        ),
        Column("work", LENGTH, "Its work, in its own unit.", None, _UNRUN + "work"),
        Column("gpus", NUMBER, "The GPUs that it runs on, all or none."),
        Column("memory", UNCHECKED, "Gigabytes that it needs on each GPU.", 0),
        Column("state_size", UNCHECKED, "Gigabytes that move with it.", 0),
        Column("pattern", TEXT, "How its workers talk: alone, intra or inter; intra for gangs where left out.", None),
        Column("dataset", TEXT, "The name of its data set.", ""),
        Column("dataset_size", UNCHECKED, "Gigabytes of its data set.", 0),
        Column("weight", UNCHECKED, "Its weight among its tenant's jobs.", 1),
        Column("priority", UNCHECKED, "Its priority; larger is more urgent.", 0),
        Column("estimate", LENGTH, "Its work, or duration, as policies are told; the truth where left out.", None),
        Column("throughput", NUMBERS, "Work per second on each of the types; for every job or for none.", None),
        Column("profile", TEXT, "The name of what it can do with GPUs; None for as throughput and gpus say.", None),
    ),
    called="jobs",
    most=MOST_JOBS,
    one_of=("work", "duration_s", "Give one of them: work in the job's own unit, or its seconds at a throughput of 1"),
)
TENANT = TableType(
    (
        Column("name", NAME, "The name of a tenant that has jobs."),
        Column("weight", positive("weight"), "Its tickets, or its quota."),
    ),
    called="tenants",
)
OUTAGE = TableType(
    (
        Column("host", NAME, "The host that is down."),
        Column("begin", NUMBER, "From when, in seconds."),
        Column("end", NUMBER, "Until when, in seconds; for good where left out.", INFINITY),
    ),
    called="outages",
    label=("host",),
)
PROFILE = TableType(
    (
        Column("name", NAME, "The name by which jobs say that they are so."),
        Column("throughput", _ROWS, "Rows of GPUs, hosts, batch, and the throughput on each type."),
        Column("efficiency", _ROWS, "Rows of work done, batch, and the work that a unit of throughput is then.", ()),
        Column(
            "restart", UNCHECKED, "The time to stop and start it again; that of the mechanics where left out.", None
        ),
    ),
    called="profiles",
)
TRACE = document_type(
    Column("types", NAMES, "The GPU types that throughputs are for.", None),
    Column("tenant", tables(TENANT), "The tenants whose weight is not 1.", ()),
    Column("job", tables(JOB), "The jobs."),
    Column("outage", tables(OUTAGE), "When hosts are down.", ()),
    Column("profile", tables(PROFILE), "What jobs can do with GPUs.", ()),
)
#: The columns that are called alike in `Jobs`, and hold the same.
_SAME = ("gpus", "memory", "state_size", "dataset", "dataset_size", "weight", "priority")
_PROFILE = ("throughput", "efficiency", "restart")
_SPEED = "throughput "
_CSV = (".csv", ".csv.gz")
_WEIGHT = Column("tenant_weight", positive("weight"), "Its tenant's tickets, the same for all of its jobs.", None)
#: The columns of a CSV table that are no throughputs.
_CELLS = TableType((*JOB.columns[1:-2], _WEIGHT), one_of=JOB.one_of)


def trace_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of trace files, for other programs.

    >>> trace_schema()["type"]
    'object'
    """
    return json_schema(TRACE, "trace", "Jobs that arrive over time, weights of tenants, and failures of hosts.")


def read_trace(path: AnyPath, types: Sequence[str]) -> Trace:
    """Return the trace in a .csv, .csv.gz, .toml or .json file, for a cluster of ``types``; decimals are read exactly.

    Errors: `BadInput` that names the file, the job, the column, the value and the remedy, also for jobs of no duration.

    Units: seconds, gigabytes. The format: docs/formats/trace.md.

    Shapes: those of `Jobs`. Source: the format is ours.

    >>> from fairopt import read_trace
    >>> from fairopt.datasets import dataset_path
    >>> read_trace(dataset_path("philly_1000.csv"), ["K80", "P100", "V100"])
    <Trace: <Jobs: 1000 of 8 tenants, types K80, P100, V100>, 0 outages>
    """
    from_csv = partial(trace_from_csv, types=list(types))
    return read_file(path, partial(trace_from_dict, types=list(types)), dict.fromkeys(_CSV, from_csv))


def write_trace(trace: Trace, path: AnyPath) -> None:
    """Write a trace so that `read_trace` with the trace's types gives it back exactly, but for the order of tenants.

    An existing file is replaced. Errors: `BadInput` for another suffix, and for outages in CSV.

    >>> from tempfile import TemporaryDirectory
    >>> from fairopt.problem import Jobs
    >>> trace = Trace(Jobs.of(types=["K80"], arrival=[0], gpus=[1], work=[60]))
    >>> with TemporaryDirectory() as folder:
    ...     write_trace(trace, f"{folder}/trace.csv")
    ...     print(read_trace(f"{folder}/trace.csv", ["K80"]))
    <Trace: <Jobs: 1 of 1 tenant, types K80>, 0 outages>
    """
    write_file(path, trace, trace_to_dict, dict.fromkeys(_CSV, trace_to_csv))


def _jobs(
    rows: Sequence[ObjectPart], types: Sequence[str], speeds: Any, weights: Mapping[str, Any], profiles: Any = None
) -> Jobs:
    """Return the jobs in rows of `JOB`; ``speeds`` (n, k): their throughputs, None where they have none."""
    columns = {name: [row[name] for row in rows] for name in JOB.names[1:-2]}
    return Jobs.of(
        names=[row.name for row in rows],
        places=[row.place for row in rows],
        types=types,
        arrival=columns["submit_s"],
        work=[row["duration_s"] if row["work"] is None else row["work"] for row in rows],
        tenant=_owners(rows),
        throughput=speeds,
        tenant_weight=weights,
        profiles=profiles,
        **{name: columns[name] for name in ("pattern", "estimate", *_SAME)},
    )


def _owners(rows: Sequence[ObjectPart]) -> list[str]:
    return ["unknown" if row["tenant"] is None else row["tenant"] for row in rows]


# -- CSV -----------------------------------------------------------------------------------------------------------
def trace_from_csv(text: str, types: Sequence[str]) -> Trace:
    """Return the trace in a CSV text, for a cluster of ``types``."""
    line, header, lines = read_csv(text, "job_id", partial(_check_column, types))
    for name in _CELLS.required:
        if name not in header:
            raise BadInput(f"no column is called {name!r}", place=f"line {line}", remedy=say_which(name, header))
    there = [name.removeprefix(_SPEED) for name in header if name.startswith(_SPEED)]
    for name in types if there else ():
        if name not in there:
            raise BadInput(
                f"no column is called {shown(_SPEED + name)}, and the cluster has that type",
                place=f"line {line}",
                remedy=f"Add it, with 0 for jobs that cannot run there; there are columns for {', '.join(there)}",
            )
    _CELLS.check_one_of(header, f"line {line}")
    if not lines:
        raise BadInput("no jobs", place=f"line {line}", remedy="Give a row for each job")
    speeds = [[filled(row, f"{_SPEED}{name}") for name in types] for row in lines] if there else None
    rows = read_cells(lines, _CELLS)
    return Trace(_jobs(rows, types, speeds, _weights_of_cells(rows)))


def _weights_of_cells(rows: Sequence[ObjectPart]) -> dict[str, Fraction]:
    """Return the tenants' weights that rows of jobs say; `BadInput` where two jobs of a tenant say different ones."""
    said: dict[str, ObjectPart] = {}
    for row, owner in zip(rows, _owners(rows), strict=True):
        if row["tenant_weight"] is None:
            continue
        first = said.setdefault(owner, row)
        if first["tenant_weight"] != row["tenant_weight"]:
            raise BadInput(
                f"tenant {owner!r} weighs {shown(row['tenant_weight'])}, and {shown(first['tenant_weight'])} in "
                f"{first.place}",
                place=row.place_of("tenant_weight"),
                remedy="Give every job of a tenant the same, or leave it blank",
            )
    return {owner: row["tenant_weight"] for owner, row in said.items()}


def _check_column(types: Sequence[str], name: str, place: str) -> None:
    known = ("job_id", *_CELLS.names)
    if name in known or name in UNUSED or (name.startswith(_SPEED) and name.removeprefix(_SPEED).strip()):
        return
    # columns that are ignored are not suggested
    wanted = [*known, *(f"{_SPEED}{kind}" for kind in types)]
    remedy = nearest(name if name.startswith(_SPEED) else name.lower(), wanted, "column")
    remedy += "" if remedy.endswith("?") else "."
    remedy += " Of another table of jobs, say which column is which: --column submit=NAME"
    raise BadInput(f"unknown column {shown(name)}", place=place, remedy=remedy)


def trace_to_csv(trace: Trace) -> str:
    """Return the CSV text of a trace; `BadInput` where it has what CSV cannot hold."""
    elsewhere = "Write it as .toml or .json"
    if trace.outages:
        raise BadInput(f"{len(trace.outages)} outages", place="outages", remedy=f"{elsewhere}; CSV has jobs only")
    document = trace_to_dict(trace)
    if trace.jobs.profiles:
        remedy = f"{elsewhere}; CSV has no place for profiles"
        raise BadInput("there are jobs with profiles", place="profiles", remedy=remedy)
    jobs, weight = document["job"], {tenant["name"]: tenant["weight"] for tenant in document.get("tenant", ())}
    for job in jobs:
        if job.get("tenant") in weight:
            job["tenant_weight"] = weight[job["tenant"]]
    for job in jobs:
        for key in ("name", "tenant", "dataset"):
            if job.get(key, "") != str(job.get(key, "")).strip():
                raise BadInput(f"the {key} {shown(job[key])}", place=f"job {job['name']!r}", remedy=elsewhere)
    columns = [name for name in ("name", *_CELLS.names) if any(name in job for job in jobs)]
    speeds = [f"{_SPEED}{name}" for name in trace.jobs.types] if any("throughput" in job for job in jobs) else []
    header = ["job_id" if name == "name" else name for name in columns]
    rows = [[*(job.get(name, "") for name in columns), *job.get("throughput", [])] for job in jobs]
    return csv_text(header + speeds, rows)


# -- TOML and JSON -------------------------------------------------------------------------------------------------
def trace_from_dict(data: Mapping[str, Any], types: Sequence[str]) -> Trace:
    """Return the trace that a dictionary of the file schema describes, for a cluster of ``types``."""
    top = read_document(data, "trace", TRACE)
    jobs = top["job"]
    check_unique(jobs, "job")
    weights = _weights(top["tenant"], _owners(jobs))
    profiles = _profiles(top["profile"], top["types"], jobs, types)
    speeds = _speeds(top["types"], jobs, types)
    return Trace(_jobs(jobs, types, speeds, weights, profiles), tuple(_outage(row) for row in top["outage"]))


def _profiles(
    rows: Sequence[ObjectPart], own: list[str] | None, jobs: Sequence[ObjectPart], types: Sequence[str]
) -> list[Profile | None]:
    """Return the profile of each job, for ``types``."""
    check_unique(rows, "profile")
    columns = _columns(own, types) if rows else []
    known: dict[str | None, Profile | None] = {None: None}
    for row in rows:
        made = Profile.of(row["throughput"], row["efficiency"], row["restart"], place=row.place)
        if made.types != len(own or ()):
            problem = f"{counted(made.types, 'throughput')} for {counted(len(own or ()), 'type')}"
            raise BadInput(problem, place=row.place, remedy="Give one for each of the trace's types")
        known[row.name] = made.take(columns)
    for job in jobs:
        if job["profile"] not in known:
            remedy = nearest(job["profile"], [str(name) for name in known if name], "profile")
            raise BadInput(f"there is no profile {shown(job['profile'])}", place=job.place_of("profile"), remedy=remedy)
    return [known[job["profile"]] for job in jobs]


def _speeds(own: list[str] | None, jobs: Sequence[ObjectPart], types: Sequence[str]) -> list[list[Any] | None] | None:
    """Return the throughputs of each job on ``types``, out of lists in the order of ``own``; None if there are none."""
    if all(job["throughput"] is None for job in jobs):
        return None
    columns = _columns(own, types)
    for job in jobs:
        given = job["throughput"]
        if given is None and job["profile"] is not None:
            continue
        if given is None:
            remedy = "Give it for every job, or for none"
            raise BadInput("the key 'throughput' is missing", place=job.place, remedy=remedy)
        if len(given) != len(own or ()):
            remedy = f"Give one for each of {', '.join((own or [])[:20])}; 0 where the job cannot run"
            raise BadInput(
                f"{counted(len(given), 'throughput')} for {counted(len(own or ()), 'type')}",
                place=job.place_of("throughput"),
                remedy=remedy,
            )
    tables = (job["throughput"] for job in jobs)
    return [None if table is None else [table[column] for column in columns] for table in tables]


def _columns(own: list[str] | None, types: Sequence[str]) -> list[int]:
    """Return where each of ``types`` stands in a list of throughputs."""
    if own is None:
        raise BadInput("the key 'types' is missing", place=TOP, remedy="Say which types the throughputs are for")
    for name in types:
        if (count := own.count(name)) != 1:
            raise BadInput(
                f"{shown(name)}, a type of the cluster, is {f'given {count} times' if count else 'missing'}",
                place="types",
                remedy=f"Give each type once; the cluster has {', '.join(types)}",
            )
    return [own.index(name) for name in types]


def _weights(rows: Sequence[ObjectPart], owners: Sequence[str]) -> dict[str, Fraction]:
    check_unique(rows, "tenant")
    known = list(dict.fromkeys(owners))
    for row in rows:
        if row.name not in known:
            raise BadInput("it has no jobs", place=row.place, remedy=nearest(row.name, known, "tenant"))
    return {row.name: row["weight"] for row in rows}


def _outage(row: ObjectPart) -> Outage:
    try:
        return Outage(row["host"], row["begin"], row["end"])
    except BadInput as error:
        raise BadInput(error.problem, place=row.place, remedy=error.remedy) from error


def trace_to_dict(trace: Trace) -> dict[str, Any]:
    """Return the dictionary of the file schema that `trace_from_dict`, with the trace's types, turns back into it."""
    jobs = trace.jobs
    names = {id(each): f"profile{at}" for at, each in enumerate(jobs.distinct(), 1)}
    with_speeds = bool(names or (jobs.throughput != 1).any())
    weights = zip(jobs.tenants, jobs.tenant_weight, strict=True)
    top = {
        "types": jobs.types if with_speeds else None,
        "tenant": tuple({"name": name, "weight": weight} for name, weight in weights if weight != 1),
        "job": [_job(jobs, row, with_speeds, names) for row in range(len(jobs))],
        "profile": tuple(
            {"name": names[id(each)]} | {key: getattr(each, key) for key in _PROFILE} for each in jobs.distinct()
        ),
        "outage": tuple(vars(each) for each in trace.outages),
    }
    return write_document(top, TRACE)


def _job(jobs: Jobs, row: int, with_speeds: bool, profiles: Mapping[int, str]) -> dict[str, Any]:
    """Return the columns of one job; the duration is its work where it has no throughputs of its own."""
    pattern = jobs.pattern[row]
    return {
        "name": jobs.names[row],
        "tenant": jobs.tenants[jobs.tenant[row]],
        "submit_s": jobs.arrival[row],
        "work" if with_speeds else "duration_s": jobs.work[row],
        "pattern": None if pattern is usual_pattern(jobs.gpus[row]) else pattern.value,
        "throughput": jobs.throughput[row].tolist() if with_speeds and not jobs.profile(row) else None,
        "profile": profiles[id(jobs.profile(row))] if jobs.profile(row) else None,
        "estimate": None if jobs.estimate is None or jobs.estimate[row] == jobs.work[row] else jobs.estimate[row],
        **{name: getattr(jobs, name)[row] for name in _SAME},
    }

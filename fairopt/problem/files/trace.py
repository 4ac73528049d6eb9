"""Trace files: jobs as .csv or .csv.gz, with tenants' weights and failures of hosts besides as .toml or .json.

A CSV table has a header and a row for each job. Its columns, in any order:

* ``job_id``, ``gpus``; ``submit_s``: when it arrives, in seconds.
* ``work``, in the job's own unit; or ``duration_s``: its running time in seconds where its throughput is 1, which is
  everywhere if there are no columns of throughputs.
* ``throughput <TYPE>``: work per second of the whole gang on a type, 0 where it cannot run; for each type of the
  cluster, or for none. Columns of types that the cluster has not got are not used.
* optional, with what a blank cell means: ``tenant`` ("unknown"), ``memory`` (GB on each GPU; 0), ``state_size`` (GB;
  0), ``pattern`` (alone, intra, inter; intra for gangs), ``dataset`` (none), ``dataset_size`` (GB; 0), ``weight`` (1),
  ``priority`` (0).

Columns that public traces have and fairopt has no use for (`UNUSED`) may stand there; any other is an error.

A .toml or .json file has ``schema = 1``, ``types`` (for throughputs), and tables: ``[[job]]`` with the same columns as
keys, but ``name`` for job_id and one list ``throughput``, in the order of ``types``; ``[[tenant]]`` with ``name`` and
``weight``; ``[[outage]]`` with ``host``, ``begin`` and ``end`` in seconds (no end: for good).
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem.checks import check_name, listed
from fairopt.problem.files.file_type import check_kind
from fairopt.problem.files.market import LARGEST_FILE, decoded, read_bytes, write_bytes
from fairopt.problem.files.market_csv import Row, csv_records
from fairopt.problem.files.market_schema import check_table, check_version, named, naming, tables
from fairopt.problem.files.toml_json import json_text, parse_json, parse_toml, toml_text
from fairopt.problem.files.trace_text import trace_to_csv, trace_to_dict
from fairopt.problem.jobs import Jobs
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import exact, shown
from fairopt.problem.trace import Outage, Trace
from fairopt.program import INFINITY

#: Columns of public traces (Philly, Helios, PAI and openb, as published or as prepared by others) without a use here.
UNUSED = (
    *("status", "gpu_type", "model", "user", "attempts", "wall_span_s", "orig_id", "source", "duration_censored"),
    *("pai_job", "pai_task", "gpu_type_spec33", "gpu_milli", "cpu_milli", "memory_mib", "qos", "scheduled_s"),
    "deleted_s",
)
#: What a blank cell, or a key that is not there, means; None: there is no such thing, the cell must be filled.
BLANK: Mapping[str, object] = MappingProxyType(
    {
        **{"tenant": "unknown", "memory": 0, "state_size": 0, "pattern": None, "dataset": "", "dataset_size": 0},
        **{"weight": 1, "priority": 0},
    }
)
_LENGTHS = ("work", "duration_s")
_NEEDED = ("submit_s", "gpus")
_SPEED = "throughput "
_TOP = ("schema", "types", "tenant", "job", "outage")
_JOB = ("name", *_NEEDED, *_LENGTHS, "throughput", *BLANK)


def read_trace(path: str | PathLike[str], types: Sequence[str]) -> Trace:
    """Return the trace in a .csv, .csv.gz, .toml or .json file, for a cluster of ``types``; decimals are read exactly.

    Errors: `BadInput` that names the file, the job by line or position, the column, the value and what to do. A job of
    no duration is refused: a trace of jobs that never ran needs a decision by whoever reads it.
    """
    with naming(str(fspath(path))):
        text = _text(path)
        return _format(path).read(text, list(types))


def write_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace so that `read_trace` with the trace's types gives it back exactly; an existing file is replaced.

    The order of tenants is not written: it becomes that in which their first jobs arrive.

    Errors: `BadInput` for another suffix, and for what CSV cannot hold: weights of tenants, outages.
    """
    with naming(str(fspath(path))):
        data = _format(path).write(trace).encode("utf-8")
        # no time in the header, so that the same trace gives the same bytes
        write_bytes(path, gzip.compress(data, mtime=0) if _suffix(path).endswith(".gz") else data)


class _Format(NamedTuple):
    read: Callable[[str, list[str]], Trace]
    write: Callable[[Trace], str]


def _suffix(path: str | PathLike[str]) -> str:
    name = Path(path).name.lower()
    suffix = next((each for each in _FORMATS if name.endswith(each)), None)
    if suffix is None:
        raise BadInput(
            f"the suffix {shown(Path(path).suffix)}" if Path(path).suffix else "no suffix",
            place="the file's name",
            remedy=f"Give a file that ends in {', '.join(_FORMATS)}",
        )
    return suffix


def _format(path: str | PathLike[str]) -> _Format:
    return _FORMATS[_suffix(path)]


def _text(path: str | PathLike[str]) -> str:
    packed = _suffix(path).endswith(".gz")
    data = read_bytes(path)
    if not packed:
        return decoded(data)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(
            f"not gzip: {error}", place="the file", remedy="Give the whole file, or unpack it to .csv"
        ) from error
    if len(data) > LARGEST_FILE:
        raise BadInput(f"more than {LARGEST_FILE >> 20} MB unpacked", place="the file", remedy="Give a smaller one")
    return decoded(data)


# -- CSV -----------------------------------------------------------------------------------------------------------
def trace_from_csv(text: str, types: Sequence[str]) -> Trace:
    """Return the trace in a CSV text, for a cluster of ``types``."""
    (line, header), *records = csv_records(text) or [(1, [""])]
    length = _check_header(header, line, types)
    speeds = [f"{_SPEED}{name}" for name in types] if any(name.startswith(_SPEED) for name in header) else []
    rows: list[Row] = []
    seen: dict[str, int] = {}
    for number, cells in records:
        if len(cells) != len(header):
            raise BadInput(
                f"{len(cells)} cells for {len(header)} columns",
                place=f"line {number} ({shown(cells[0])})",
                remedy="Give one cell for each column",
            )
        named_cells = dict(zip(header, cells, strict=True))
        name = check_name(named_cells["job_id"], f"line {number}, column 'job_id'")
        if name in seen:
            raise BadInput(
                f"{shown(name)} stands in line {seen[name]} too",
                place=f"line {number}, column 'job_id'",
                remedy="Give each job a name of its own",
            )
        seen[name] = number
        rows.append(Row(number, name, named_cells))
    if not rows:
        raise BadInput("no jobs", place=f"line {line}", remedy="Give a row for each job")
    columns = _Columns([row.name for row in rows], [row.place() for row in rows])
    for column in ("gpus", "submit_s"):
        columns.numbers(column, [_filled(row, column) for row in rows])
    columns.lengths([(f"column {length!r}", _filled(row, length)) for row in rows])
    for column in speeds:
        columns.numbers(column, [_filled(row, column) for row in rows])
    for column in BLANK:
        if column in header or column == "tenant":
            columns.texts(column, [row.cells.get(column) or None for row in rows])
    return Trace(columns.jobs(types, speeds))


def _check_header(header: list[str], line: int, types: Sequence[str]) -> str:
    """Refuse columns that are unknown, missing or there twice; return the one that says how long a job is."""
    known = ("job_id", *_NEEDED, *_LENGTHS, *BLANK, *UNUSED)
    for number, name in enumerate(header, start=1):
        place = f"line {line}, column {number}"
        check_name(name, place)
        if name in header[: number - 1]:
            raise BadInput(f"the column {shown(name)} stands twice", place=place, remedy="Rename or drop one")
        if name not in known and not (name.startswith(_SPEED) and name.removeprefix(_SPEED).strip()):
            raise BadInput(
                f"unknown column {shown(name)}",
                place=place,
                remedy=nearest(
                    name if name.startswith(_SPEED) else name.lower(),
                    # not `UNUSED`: whoever means something by a column is not helped by one that says nothing
                    [*(each for each in known if each not in UNUSED), *(f"{_SPEED}{kind}" for kind in types)],
                    "column",
                ),
            )
    for name in ("job_id", *_NEEDED):
        if name not in header:
            raise BadInput(f"no column is called {name!r}", place=f"line {line}", remedy=f"Add {name}")
    speeds = [name.removeprefix(_SPEED) for name in header if name.startswith(_SPEED)]
    for kind in types if speeds else ():
        if kind not in speeds:
            raise BadInput(
                f"no column is called {shown(_SPEED + kind)}, and the cluster has that type",
                place=f"line {line}",
                remedy=f"Add it, with 0 for jobs that cannot run there; there are columns for {', '.join(speeds)}",
            )
    return _one_length([name for name in _LENGTHS if name in header], f"line {line}", "column")


def _one_length(given: Sequence[str], place: str, what: str) -> str:
    if len(given) != 1:
        raise BadInput(
            f"{'both' if given else 'neither'} 'work' {'and' if given else 'nor'} 'duration_s'",
            place=place,
            remedy=f"Give one {what}: work in the job's own unit, or its seconds at a throughput of 1",
        )
    return given[0]


def _filled(row: Row, column: str) -> str:
    if not row.cells[column]:
        remedy = {
            "duration_s": "Leave out jobs that never ran, or give their length",
            "submit_s": "Leave out jobs that were never submitted, or give the time",
        }
        raise BadInput(
            "the cell is blank",
            place=row.place(column),
            remedy=remedy.get(column, "Write a number; 0 where there is none"),
        )
    return row.cells[column]


class _Columns:
    """The columns of jobs as they are collected from a file, and the jobs that they make."""

    def __init__(self, names: list[str], places: list[str]) -> None:
        self.names, self.places = names, places
        self.values: dict[str, list[Any]] = {}

    def numbers(self, column: str, values: list[Any]) -> None:
        """Keep a column of numbers, each exact."""
        self.values[column] = [
            exact(value, f"{place}, column {column!r}") for place, value in zip(self.places, values, strict=True)
        ]

    def lengths(self, given: Sequence[tuple[str, Any]]) -> None:
        """Keep how long each job is, as its work; ``given`` are pairs (where it stands, value)."""
        self.values["work"] = []
        for place, (name, value) in zip(self.places, given, strict=True):
            length = exact(value, f"{place}, {name}")
            if length <= 0:
                raise BadInput(
                    f"got {shown(length)}",
                    place=f"{place}, {name}",
                    remedy="Give a positive number; leave out jobs that never ran",
                )
            self.values["work"].append(length)

    def texts(self, column: str, values: list[Any]) -> None:
        """Keep a column in which None has a meaning."""
        blank = BLANK[column]
        if column == "pattern":  # what a blank means depends on the gang
            gangs = [size != 1 for size in self.values["gpus"]]
            usual = ["intra" if gang else "alone" for gang in gangs]
            values = [own if value is None else value for own, value in zip(usual, values, strict=True)]
        self.values[column] = [blank if value is None else value for value in values]

    def jobs(self, types: Sequence[str], speeds: Sequence[str]) -> Jobs:
        """Return the jobs; ``speeds`` are the columns of throughputs."""
        return Jobs.of(
            names=self.names,
            places=self.places,
            types=types,
            gpus=self.values["gpus"],
            arrival=self.values["submit_s"],
            work=self.values["work"],
            throughput=list(zip(*(self.values[name] for name in speeds), strict=True)) if speeds else None,
            tenant_weight=self.values.get("tenant_weight", [None])[0],
            **{name: self.values[name] for name in BLANK if name in self.values},
        )


# -- TOML and JSON -------------------------------------------------------------------------------------------------
def trace_from_dict(data: Mapping[str, object], types: Sequence[str]) -> Trace:
    """Return the trace that a dictionary of the file schema describes, for a cluster of ``types``."""
    place = "the top level"
    check_table(data, place)
    check_kind(data, "trace", place)
    check_version(data, place)
    check_keys(data, _TOP, ["schema", "job"], place)
    jobs = tables(data["job"], "job", "jobs")
    called = [named(job, f"job {number}", _JOB) for number, job in enumerate(jobs, start=1)]
    seen: dict[str, str] = {}
    for where, name in called:
        if seen.setdefault(name, where) != where:
            raise BadInput(f"{seen[name]} has the same name", place=where, remedy="Give each job a name of its own")
    lengths = [
        _one_length([key for key in _LENGTHS if key in job], where, "key")
        for job, (where, _) in zip(jobs, called, strict=True)
    ]
    columns = _Columns([name for _, name in called], [where for where, _ in called])
    for job, (where, _) in zip(jobs, called, strict=True):
        check_keys(job, _JOB, _NEEDED, where)
    for key in _NEEDED:
        columns.numbers(key, [job[key] for job in jobs])
    columns.lengths([(length, job[length]) for job, length in zip(jobs, lengths, strict=True)])
    speeds = _speeds(data, jobs, columns, types)
    for key in BLANK:
        columns.texts(key, [_typed(job, key, where) for job, (where, _) in zip(jobs, called, strict=True)])
    if "tenant" in data:
        columns.values["tenant_weight"] = [_weights(data["tenant"], columns.values["tenant"])]
    outages = tables(data["outage"], "outage", "outages") if "outage" in data else ()
    return Trace(
        columns.jobs(types, speeds),
        tuple(_outage(table, f"outage {number}") for number, table in enumerate(outages, start=1)),
    )


def _typed(job: Mapping[str, object], key: str, place: str) -> object:
    """Return a value, None where there is none; a text where a text must stand."""
    value = job.get(key)
    if key in ("tenant", "pattern", "dataset") and key in job and not isinstance(value, str):
        raise BadInput(f"got {shown(value)}", place=f"{place}, {key}", remedy="Give a string")
    return check_name(value, f"{place}, {key}") if key == "tenant" and key in job else value


def _speeds(
    data: Mapping[str, object], jobs: Sequence[Mapping[str, object]], columns: _Columns, types: Sequence[str]
) -> list[str]:
    """Keep the throughputs by type, and return what their columns are called; [] where no job has any."""
    if not any("throughput" in job for job in jobs):
        return []
    if "types" not in data:
        raise BadInput(
            "the key 'types' is missing", place="the top level", remedy="Say which types the throughputs are for"
        )
    own = [check_name(name, f"types, entry {at}") for at, name in enumerate(listed(data["types"], "types"), 1)]
    for kind in types:
        if own.count(kind) != 1:
            raise BadInput(
                f"{shown(kind)}, a type of the cluster, stands there {own.count(kind)} times",
                place="types",
                remedy=f"Give each type once; the cluster has {', '.join(types)}",
            )
    rows = []
    for job, place in zip(jobs, columns.places, strict=True):
        if "throughput" not in job:
            raise BadInput("the key 'throughput' is missing", place=place, remedy="Give it for every job, or for none")
        rows.append(listed(job["throughput"], f"{place}, throughput"))
        if len(rows[-1]) != len(own):
            raise BadInput(
                f"{len(rows[-1])} throughputs for {len(own)} types",
                place=f"{place}, throughput",
                remedy=f"Give one for each of {', '.join(own[:20])}; 0 where the job cannot run",
            )
    for kind in types:
        columns.numbers(f"{_SPEED}{kind}", [row[own.index(kind)] for row in rows])
    return [f"{_SPEED}{kind}" for kind in types]


def _weights(value: object, owners: Sequence[str]) -> dict[str, object]:
    weights: dict[str, object] = {}
    known = list(dict.fromkeys(owners))
    for number, table in enumerate(tables(value, "tenant", "tenants"), start=1):
        place, name = named(table, f"tenant {number}", ("name", "weight"))
        if name in weights:
            raise BadInput("another tenant has the same name", place=place, remedy="Give each a name of its own")
        if name not in known:
            raise BadInput("it has no jobs", place=place, remedy=nearest(name, known, "tenant"))
        check_keys(table, ("name", "weight"), ["weight"], place)
        weights[name] = exact(table["weight"], f"{place}, weight")
        if weights[name] <= 0:  # type: ignore[operator]
            raise BadInput(
                f"got {shown(weights[name])}",
                place=f"{place}, weight",
                remedy="Give a positive weight, or leave it out",
            )
    return weights


def _outage(table: Mapping[str, object], place: str) -> Outage:
    check_table(table, place)
    check_keys(table, ("host", "begin", "end"), ("host", "begin"), place)
    host = check_name(table["host"], f"{place}, host")
    begin = exact(table["begin"], f"{place}, begin")
    end = exact(table["end"], f"{place}, end") if "end" in table else INFINITY
    try:
        return Outage(host, begin, end)
    except BadInput as error:
        raise BadInput(error.problem, place=f"{place} ({shown(host)})", remedy=error.remedy) from error


_FORMATS: Mapping[str, _Format] = MappingProxyType(
    {
        ".csv": _Format(trace_from_csv, trace_to_csv),
        ".csv.gz": _Format(trace_from_csv, trace_to_csv),
        ".toml": _Format(
            lambda text, types: trace_from_dict(parse_toml(text), types), lambda trace: toml_text(trace_to_dict(trace))
        ),
        ".json": _Format(
            lambda text, types: trace_from_dict(parse_json(text), types), lambda trace: json_text(trace_to_dict(trace))
        ),
    }
)

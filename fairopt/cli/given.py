"""What a command is given: a file, ``-`` for standard input, or ``@NAME`` for a data set that is installed.

The last two become files of a temporary folder, so that every reader takes them; messages call them what they are.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Any, BinaryIO, get_type_hints

import typer

from fairopt import discovery
from fairopt.cli.app import READ
from fairopt.cli.completing import files_and
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Market, Trace, read_cluster, write_trace
from fairopt.problem.files.cells import column_of
from fairopt.problem.files.problem import KINDS, kind_of, name_of
from fairopt.problem.files.storage import (
    DOCUMENTS,
    LARGEST_FILE,
    SEPARATORS,
    csv_text,
    naming,
    read_text,
    read_up_to,
    require_place,
    require_size,
    separator,
    suffix_to_read,
    unpacked,
    write_text,
)
from fairopt.problem.ranges import relative_error, with_error

STDIN = Path("-")
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="NAME", help="Of a .csv market: this column is a GPU type. May be repeated."),
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error",
        metavar="PART",
        help="Of a market: the relative error of its speedups, such as 5%; verdicts are for all within it.",
    ),
]
Normalise = Annotated[
    bool, typer.Option("--normalise", help="Measure each user in its throughput on the slowest type first.")
]
#: Where a command's context keeps what --column says.
COLUMNS = "fairopt.columns"


def _keep_columns(context: typer.Context, parameter: typer.CallbackParam, given: list[str] | None) -> list[str] | None:
    """Keep which column says what for the tables that the command reads; each KEY once."""
    said: dict[str, str] = {}
    for text in given or ():
        key, equals, name = (part.strip() for part in text.partition("="))
        if not (key and equals and name):
            raise BadInput(f"got {text!r}", place="--column", remedy="Write KEY=NAME, as --column submit=start_time")
        if key in said:
            raise BadInput(f"{key} is given twice", place="--column", remedy="Give each once")
        said[key] = name
    context.meta[COLUMNS] = said
    return given


#: Read before files are, whatever the order on the command line.
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="KEY=NAME",
        help="Of a table: the column NAME says KEY, as submit=start_time (jobs: job, tenant, submit, start, end, "
        "duration, gpus, type; a market: user, weight, demand, or a GPU type). May be repeated.",
        callback=_keep_columns,
        is_eager=True,
    ),
]
Pairs = Annotated[
    bool, typer.Option("--pairs", help="Say of each pair of policies who is better, and how sure that is.")
]
Html = Annotated[Path | None, typer.Option(metavar="PAGE", help="Write all of it to this file, as an HTML page.")]
Certificates = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the evidence here, for `fairopt check DIR`.")
]


def require_page(html: Path | None, *needed: str) -> None:
    """Refuse, before anything is computed, a page that cannot be written; ``needed``: libraries beside Jinja2.

    Errors: `BadInput` for the place; `NotInstalled`.
    """
    require_place(html, "--html")
    for each in () if html is None else ("jinja2", *needed):
        discovery.library(each, "a page")


_TOML = re.compile(r"""\[|[\w."'-]+\s*=""")
_YAML = re.compile(r"---|[\w.-]+:(\s|$)")


class StandIn(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A temporary file, which messages call what it stands for."""

    called = ""

    @classmethod
    def write(cls, context: typer.Context, called: str, suffix: str, write: Callable[[Path], Any]) -> Path:
        """Return a file that is there until the command ends; ``write`` fills it."""
        folder = context.find_root().with_resource(TemporaryDirectory(prefix="fairopt-"))
        file = cls.of(Path(folder, f"given{suffix}"), called)
        write(file)
        return file

    @classmethod
    def of(cls, path: Path, called: str) -> Path:
        """Return a file that is there, to be called otherwise."""
        file = cls(path)
        file.called = called
        return file

    def __str__(self) -> str:
        return self.called or str(super().__str__())

    def __fspath__(self) -> str:
        return str(super().__str__())


def input_file(metavar: str, about: str, *kinds: type) -> Any:
    """Return the argument of a file, of one of ``kinds`` of problems, or of something else where there are none."""
    return typer.Argument(metavar=metavar, help=f"{about} {_also(kinds)}", **resolving(kinds))


def input_option(about: str, *kinds: type) -> Any:
    """Return the option of a file; ``kinds`` as in `input_file`."""
    eager = Cluster in kinds  # a table of jobs is read for its types
    return typer.Option(metavar="FILE", help=f"{about} {_also(kinds)}", is_eager=eager, **resolving(kinds))


def _also(kinds: Sequence[type]) -> str:
    return "- is standard input, @NAME a data set." if kinds else "- is standard input."


def resolving(kinds: Sequence[type] = ()) -> dict[str, Any]:
    """Return the callback of a parameter, which replaces what stands for a file by one, and what shells propose."""

    def resolve(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        if context.resilient_parsing or value is None:
            return value
        context.meta.setdefault(READ, set()).add(parameter.name)
        if isinstance(value, list | tuple):
            return [_file(context, each, parameter, kinds) for each in value]
        file = _file(context, value, parameter, kinds)
        named = context.meta.get(COLUMNS) if {Market, Trace} & {*kinds} else None
        return _with_columns(context, file, named or {}, kinds) if named or _recognised(file, kinds) else file

    return {"callback": resolve, "autocompletion": files_and(lambda: names_of(kinds) if kinds else {})}


def _file(context: typer.Context, path: Path, parameter: typer.CallbackParam, kinds: Sequence[type]) -> Path:
    text = str(path)
    if path == STDIN:
        if context.meta.setdefault("fairopt.stdin", parameter) is not parameter:
            raise BadInput("standard input is taken already", place=parameter.opts[0], remedy="Give a file")
        return _read_once(context, sys.stdin.buffer, "standard input")
    if path.is_fifo():  # what comes through a pipe is there once, and is looked at more often
        with path.open("rb") as pipe:
            return _read_once(context, pipe, text, path.suffix)
    if kinds and text.startswith("@") and not path.exists():
        name = data_set(text[1:], kinds)
        problem = discovery.load(discovery.DATASETS, name)()
        kind = kind_of(problem, f"data set {name!r}")
        return StandIn.write(context, f"@{name}", ".json", lambda file: KINDS[kind](problem, file))
    return path


def _read_once(context: typer.Context, stream: BinaryIO, called: str, suffix: str = "") -> Path:
    """Return a file of what a stream holds; without a ``suffix`` the contents tell which it has."""
    with naming(called):
        data = read_up_to(stream, LARGEST_FILE + 1)
        require_size(len(data))
    return StandIn.write(context, called, suffix or suffix_told(data), lambda file: file.write_bytes(data))


def _recognised(file: Path, kinds: Sequence[type]) -> bool:
    """Whether it is a table of jobs of another tool, whose columns are known by their names."""
    from fairopt.importing import job_csv  # here, so that other commands begin sooner

    table = Trace in kinds and file.is_file() and file.name.lower().endswith((".csv", ".csv.gz"))
    return table and job_csv.recognised(file)


def _with_columns(context: typer.Context, file: Path, named: Mapping[str, str], kinds: Sequence[type]) -> Path:
    """Return a table in whose place one stands whose columns are called as in files of fairopt.

    A table of jobs is read as the importer job-csv reads it; one that has throughputs is a trace of fairopt, and a
    market, but for what columns are called.
    """
    from fairopt.importing import job_csv  # here, so that other commands begin sooner

    with naming(file):
        if suffix_to_read(file, (*DOCUMENTS, ".csv", ".csv.gz")) in DOCUMENTS:
            wrong = f"--column is for tables, and this is {file.suffix}"
            raise BadInput(wrong, remedy="Leave --column out, or give a .csv")
        markets = Market in kinds and not named.keys().isdisjoint(("user", "weight", "demand"))
        jobs = Trace in kinds and not markets and all(map(job_csv.meant, named))
        if Market not in kinds and not jobs:
            unknown = next(key for key in named if not job_csv.meant(key))
            raise BadInput(f"got {unknown}", place="--column", remedy=f"Say which is {', '.join(job_csv.KNOWN)}")
        text = read_text(file)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator(text)))
        header = [name.strip() for name in rows[0]]
        if jobs and not any(name.startswith("throughput ") for name in header):
            cluster = context.params.get("cluster")
            types = () if cluster is None else read_cluster(cluster).types
            problem, unplaced, *_ = job_csv.read(file, named, types)
            for each in unplaced:
                print(f"fairopt: {file}: not taken over: {each}", file=sys.stderr)
            return StandIn.write(context, str(file), ".csv", lambda made: write_trace(problem, made))
        for key, name in named.items():
            known = _IN_TRACES.get(str(job_csv.meant(key)), key) if jobs else key
            header[column_of(name, header, "line 1")] = known
        first = header.index("user") if "user" in header and not jobs else 0  # a market begins with it
        order = [first, *(at for at in range(len(header)) if at != first)]
        moved = ([row[at] for at in order] if len(row) == len(order) else row for row in rows[1:])
        table = csv_text([header[at] for at in order], moved)
    return StandIn.write(context, str(file), ".csv", lambda made: write_text(made, table))


#: What columns of traces are called in files of fairopt, where it is not what the importer calls them.
_IN_TRACES: Mapping[str, str] = MappingProxyType({"job": "job_id", "submit": "submit_s", "duration": "duration_s"})


def suffix_told(data: bytes) -> str:
    """Return the suffix of a file with this content. Errors: `BadInput` where the content does not tell."""
    if data[:2] == b"\x1f\x8b":
        with naming("standard input"):
            return f"{suffix_told(unpacked(data))}.gz"
    if data[:4] == b"PK\x03\x04":
        return ".zip"
    lines = [line for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    first = next((line.strip() for line in lines if not line.lstrip().startswith("#")), "")
    if first.startswith("{"):  # a line that ends what it begins, before others, is one of JSON lines
        return ".jsonl" if first.endswith("}") and len(lines) > 1 else ".json"
    if _TOML.match(first):
        return ".toml"
    if _YAML.match(first):
        return ".yaml"
    if first.startswith("<"):
        return ".xml"
    if any(separator in first for separator in SEPARATORS):
        return ".csv"
    if "|" in first:  # what Slurm's commands print
        return ".txt"
    problem = f"{first[:40]!r} begins no TOML, JSON, YAML or CSV" if first else "it is empty"
    remedy = "Save it as a file whose ending says what it is, and give that" if first else "Send a file to it"
    raise BadInput(problem, file="standard input", remedy=remedy)


def names_of(kinds: Sequence[type] = tuple(KINDS)) -> dict[str, str]:
    """Return what each installed data set of one of ``kinds`` is about, by name; of those that do not say, too."""
    wanted = {"", *map(name_of, kinds)}
    found = [described(name) for name in discovery.names(discovery.DATASETS)]
    return {each["name"]: each["about"] for each in found if each["kind"] in wanted}


def data_set(text: str, kinds: Sequence[type]) -> str:
    """Return the data set of this name, or the one of ``kinds`` whose name goes on after it: gavel, gavel-example."""
    if text in discovery.names(discovery.DATASETS):
        return text
    fit = names_of(kinds)
    several = [name for name in fit if name.startswith(f"{text}-")]
    if len(several) == 1:
        return several[0]
    near = [] if several else get_close_matches(text, [*fit, *(name.partition("-")[0] for name in fit)])
    names = " or @".join(dict.fromkeys(near or several or fit))
    remedy = f"Did you mean @{names}?" if near else f"Give @{names}; `fairopt datasets` lists all"
    wanted = f"no data set of that name is a {' or a '.join(map(name_of, kinds))}"
    none = "there is no such data set" if set(kinds) == set(KINDS) else wanted
    problem = f"{len(several)} data sets begin so" if several else none
    raise BadInput(problem, file=f"@{text}", remedy=remedy)


def described(name: str) -> dict[str, str]:
    """Return what is known of a data set without making it."""
    made: Callable[[], Any] = discovery.load(discovery.DATASETS, name)
    returned = get_type_hints(made).get("return")
    kind = next((name_of(each) for each in KINDS if each is returned), "")
    about = (getdoc(made) or "").partition("\n\n")[0].replace("\n", " ").removeprefix("Return ")
    return {"name": name, "kind": kind, "about": about[:1].upper() + about[1:]}


def ranged(market: Market, error: str | None) -> Market:
    """Return the market with the relative error of ``--error``, where it is given."""
    if error is None:
        return market
    return with_error(market, relative_error(error, "--error"))


def require_different(paths: Mapping[str, object]) -> None:
    """Refuse one file for two purposes: the second would overwrite the first."""
    taken: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None or str(path) == "-":
            continue
        file = Path(str(path)).resolve()
        if file in taken:
            raise BadInput(f"{path} is the file of {taken[file]} as well", place=option, remedy="Name another file")
        taken[file] = option

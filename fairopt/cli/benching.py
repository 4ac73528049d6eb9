"""The commands ``bench``: run a specification of a benchmark, list what there is, write a report of results."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fairopt import discovery
from fairopt.cli import completing
from fairopt.cli.app import PLAIN, Once
from fairopt.cli.exits import Exit
from fairopt.cli.given import STDIN, input_file, require_different, resolving
from fairopt.cli.listing import AsJson, print_json
from fairopt.cli.parquet import require_parquet, write_parquet
from fairopt.cli.tables import say as print_table
from fairopt.cli.tables import table_of, texts, working
from fairopt.codec import encode
from fairopt.errors import BadInput, NotCapable
from fairopt.experiment.bench.kinds import Instance, contenders, summaries
from fairopt.experiment.bench.records import (
    COLUMNS,
    KINDS,
    Measurement,
    Record,
    environments,
    measurements,
    read_results,
    rows,
)
from fairopt.experiment.bench.spec import Spec, specifications
from fairopt.experiment.journal import RecordsFile, TrialStatus, line_of
from fairopt.experiment.page import write_page
from fairopt.experiment.spec import Specification
from fairopt.problem.files.storage import naming, require_place
from fairopt.report import SCHEMA_KEY, VERSION, Key, ResultForm, listed

if TYPE_CHECKING:
    from fairopt.experiment.bench.export import Exported

FILES = ResultForm("Files that were written.", SCHEMA_KEY, Key("written", list[str], "The files."), name="files")


LINE = ResultForm("A line of results.", SCHEMA_KEY, Key("kind", str, "environment or measurement."))
INSTALLED = ResultForm(
    "What is installed.",
    SCHEMA_KEY,
    *(
        Key(name, listed(dict), "By name.")
        for name in ("specifications", "tasks", "families of instances", "contenders")
    ),
)
REPORT = ResultForm(
    "A page that was written, and the means in it.",
    SCHEMA_KEY,
    Key("written", list[str], "The files."),
    Key("means", listed(dict), "Shifted geometric means."),
)
EXPORTED = ResultForm(
    "Files of instances.",
    SCHEMA_KEY,
    Key("folder", str, "Where they are."),
    Key("instances", listed(dict), "The metadata of each file."),
    Key("skipped", listed(dict), "What is left out, and why."),
)


class RunByDefault(TyperGroup):
    """A group in which `bench SPEC` is `bench run SPEC`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``run`` in front of arguments that do not begin with a command."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=RunByDefault, no_args_is_help=True, help="Measure solvers beside each other.", **PLAIN)


def spec_argument(kind: type[Specification]) -> Any:
    """Return the argument of a specification of a kind."""
    return typer.Argument(
        metavar="SPEC",
        help="A specification: a TOML file, a shipped one's name, or - for standard input.",
        **resolving() | {"autocompletion": completing.proposing(lambda _: dict.fromkeys(kind.shipped(), ""))},
    )


SpecFile = Annotated[Path, spec_argument(Spec)]


@app.command("run", cls=Once)
def run_command(
    spec: SpecFile,
    json_: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Append each measurement to a file of JSON lines as it is made, and go on from what it holds; "
            "- is standard output.",
        ),
    ] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all results as a table.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all results as an HTML page.")] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Measure in so many processes at once, which disturb each other.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Measure on a Dask cluster: a scheduler's address, or local:N."),
    ] = None,
) -> None:
    """Measure what a specification asks for.

    `fairopt bench SPEC` is the same. Without --json a table is printed at the end. Interrupted, it keeps what is
    measured and ends with status 130.
    """
    from fairopt.experiment.bench.run import run_spec  # here and below, so that all commands begin sooner
    from fairopt.experiment.runner import place

    if workers < 1:
        raise BadInput(f"got {workers}", place="--workers", remedy="Give a whole number, at least 1")
    asked = Spec.read(spec)
    require_different({"SPEC": spec, "--json": json_, "--parquet": parquet, "--report": report})
    if parquet is not None:
        require_parquet(parquet)
    if report is not None:
        from fairopt.experiment.bench.page import require_libraries

        require_place(report, "--report")
        require_libraries()
    records: list[Record] = []
    cells = sum(len(block.combinations()) for block in asked.instances) * asked.repeats * len(asked.contenders)
    done: set[str] = set()
    interrupted = False
    with ExitStack() as stack:
        file = None
        if json_ not in (None, STDIN):
            file = stack.enter_context(RecordsFile(json_, KINDS, say, place="--json"))
        if file is not None:
            records.extend(file.before)
            if file.before:
                say(f"going on from {len(measurements(file.before))} measurements in {json_}")
        before = len(records)
        try:
            executor, concurrent = stack.enter_context(place(workers, dask))
            for record in run_spec(asked, executor, concurrent=concurrent, before=list(records), say=say):
                records.append(record)
                if file is not None:
                    file.add(record)
                elif json_ == STDIN:
                    print(line_of(record), flush=True)
                if isinstance(record, Measurement):
                    done.add(record.identity)
                    say(f"  [{len(done)}/{cells}] {_ended(record)}")
        except KeyboardInterrupt:  # what is measured is kept, and the status says that it is not all
            interrupted = True
    made = len(measurements(records[before:]))
    if before and not made and not interrupted:
        say("nothing is left to be measured")
    if parquet is not None:
        write_parquet(rows(records), COLUMNS, parquet)
    if report is not None and (measurements(records) or not interrupted):
        _write_report(records, report, asked.title)
    if json_ is None:
        _print_results(measurements(records))
    if interrupted:
        again = "" if file is None else "; the same command goes on from there"
        say(f"interrupted after {made} measurements{again}")
        raise typer.Exit(Exit.INTERRUPTED)


@app.command("report", cls=Once)
def report_command(
    results: Annotated[list[Path], input_file("RESULTS", "Files of JSON lines that --json wrote.")],
    output: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The HTML page to write.")],
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The page's title; the specification's by default.")
    ] = None,
    json_: AsJson = False,
) -> None:
    """Write one HTML page with tables and pictures of results."""
    require_place(output, "--out")
    records = _read(results)
    titles = dict.fromkeys(Spec.parse(each.spec_text, "the results").title for each in environments(records).values())
    _write_report(records, output, title or " and ".join(titles) or "fairopt bench")
    if json_:
        from fairopt.experiment.bench.tables import means_told

        print_json({"schema": VERSION, "written": [str(output)], "means": means_told(records)})


@app.command("figures", cls=Once)
def figures_command(
    results: Annotated[list[Path], input_file("RESULTS", "Files of JSON lines that --json wrote.")],
    into: Annotated[
        list[Path],
        typer.Option("--into", metavar="FILE", help="A Markdown file with places for them; may be repeated."),
    ],
    made_by: Annotated[str, typer.Option(metavar="COMMAND", help="What made the results, as the text says it.")] = "",
    json_: AsJson = False,
) -> None:
    """Write goals and ratios into Markdown files.

    They stand between <!-- bench NAME: begin --> and <!-- bench NAME: end -->. NAME is goals (asked, measured, reached)
    or speed (ratios to others, and where they are faster).
    """
    from fairopt.experiment.bench.figures import write_figures

    records = _read(results)
    commands = dict.fromkeys(each.command for each in environments(records).values())
    for path in into:
        write_figures(records, path, made_by or "; ".join(commands))
        say(f"wrote {path}")
    _print_written(into, json_)


@app.command("export", cls=Once)
def export_command(
    spec: SpecFile,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write: a new one, or an earlier export's.")],
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds to find one optimum; checks are not counted.")
    ] = 60.0,
    json_: AsJson = False,
) -> None:
    """Write a specification's instances as MPS files with proven optima.

    Anybody's solver can be measured with them: the folder's README.md says how. What is there is kept, so that the same
    command goes on where it was interrupted.
    """
    from fairopt.experiment.bench.export import Exported, export

    if not 0 < time_limit < float("inf"):
        raise BadInput(f"got {time_limit:g}", place="--time-limit", remedy="Give seconds above 0")
    asked = Spec.read(spec)
    made: list[tuple[Instance, Exported | NotCapable]] = []
    many = sum(len(block.combinations()) for block in asked.instances)
    with naming(place="--out"):
        for instance, found in export(asked, out, time_limit=time_limit, say=say):
            made.append((instance, found))
            said = f"{found.file}: {_optimum(found)}" if isinstance(found, Exported) else f"left out: {found}"
            say(f"  [{len(made)}/{many}] {instance.name}: {said}")
    written = [found for _, found in made if isinstance(found, Exported)]
    skipped = [{"instance": each.name, "why": str(why)} for each, why in made if isinstance(why, NotCapable)]
    if json_:
        listed = {"instances": encode(written, finite=True), "skipped": skipped}
        return print_json({"schema": VERSION, "folder": str(out), **listed})
    _print_exported(written)
    left_out = f", {len(skipped)} left out" if skipped else ""
    say(f"{len(written)} in {out}{left_out}; `fairopt check {out / 'certificates'}` decides what is proven")


@app.command("list", cls=Once)
def list_command(json_: AsJson = False) -> None:
    """List specifications, tasks, families and contenders."""
    listed = {
        "specifications": (("name", "task", "title"), specifications()),
        "tasks": (("name", "what is asked"), summaries(discovery.TASKS)),
        "families of instances": (("name", "what they are"), summaries(discovery.FAMILIES)),
        "contenders": (("name", "tasks", "here"), contenders()),
    }
    if json_:
        found = {
            title: [dict(zip(heads, row, strict=True)) for row in lines] for title, (heads, lines) in listed.items()
        }
        return print_json({"schema": VERSION, **found})
    for title, (heads, lines) in listed.items():
        print_table(f"{title}:")
        print_table(table_of(texts(*heads), lines))


def _print_written(paths: Sequence[Path], json_: bool) -> None:
    if json_:
        print_json(FILES.json({}, written=[str(path) for path in paths]))


def _read(results: list[Path]) -> list[Record]:
    """Return the records of all files, which must have at least one measurement."""
    records: list[Record] = []
    for path in results:
        records.extend(read_results(path, say))
    if not measurements(records):
        raise BadInput(
            "there are no measurements", file=str(results[0]), remedy="`fairopt bench SPEC --json FILE` makes some"
        )
    return records


def _write_report(records: list[Record], path: Path, title: str) -> None:
    from fairopt.experiment.bench.page import report

    with working(f"writing {path}"):
        write_page(report(records, title), path)
    say(f"wrote {path}")


def say(text: str) -> None:
    """Print a line on standard error."""
    print(f"fairopt: {text}", file=sys.stderr, flush=True)


# -- what people read --------------------------------------------------------------------------------------------------
def _ended(of: Measurement) -> str:
    """Return in words how a measurement ended."""
    took = "" if of.to_evidence is None else f" in {of.to_evidence:.4g} s"
    why = f": {of.message}" if of.message else ""
    return f"{of.called} on {of.instance.name}: {of.status.value}{took}{why}"


def _print_results(measured: Sequence[Measurement]) -> None:
    """Print a table for each instance, in the order measured: medians of wall seconds, of verified answers only."""
    groups: dict[tuple[str, str], dict[str, list[Measurement]]] = {}
    for each in measured:
        by_name = groups.setdefault((each.instance.name, each.instance.digest), {})
        by_name.setdefault(each.called, []).append(each)
    for (instance, _), by_name in groups.items():
        heads: list[Any] = [*texts("contender", "status"), "build", "solve", "certify", "CPU", "MB", "gap"]
        print_table(f"{instance}: seconds, medians")
        print_table(table_of(heads, ((called, *_cells(several)) for called, several in by_name.items())))


def _cells(several: Sequence[Measurement]) -> list[str]:
    solved = [each for each in several if each.solved]
    # skipped repeats are left out if another one was measured
    tried = [each for each in several if each.status is not TrialStatus.SKIPPED] or several
    return [
        ", ".join(dict.fromkeys(each.status.value for each in tried)),
        *(_shown([each.wall(stage) for each in solved], ".3g") for stage in ("build", "solve", "certify")),
        _shown([each.cpu for each in solved], ".3g"),
        _shown([each.peak_bytes and each.peak_bytes / 1e6 for each in solved], ".0f"),
        _shown([each.judgement.gap for each in solved if each.judgement is not None], ".1e"),
    ]


def _print_exported(written: Sequence[Exported]) -> None:
    """Print a table of the files that were written."""
    rows = (
        (each.instance.name, each.file, f"{each.rows:,}", f"{each.variables:,}", _optimum(each)) for each in written
    )
    print_table(table_of(["instance", "file", "rows", "variables", "optimum"], rows))


def _optimum(of: Exported) -> str:
    """Return the optimum if it is proven, else the closest bounds; most methods' are of the numbers before rounding."""
    known = of.optimum.decimals
    if of.optimum.exact is not None and known is not None:
        return f"{known[0]:.12g}, proven"
    low, high = known or (-math.inf, math.inf)
    method = of.method
    if method is not None and not method.of_file:
        return f"from {method.lower:.12g} to {method.upper:.12g} before rounding"
    if method is not None:
        low, high = max(low, float(method.lower)), min(high, float(method.upper))
    return f"from {low:.12g} to {high:.12g}" if low > -math.inf or high < math.inf else "not known"


def _shown(values: Iterable[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(median(known), form) if known else "-"

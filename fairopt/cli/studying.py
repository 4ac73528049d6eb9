"""The commands ``study``: play a study, or a shard of it; put shards together; write tables and the page."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from fairopt.cli import study_tables
from fairopt.cli.app import PLAIN, Once
from fairopt.cli.benching import RunByDefault, say, spec_argument
from fairopt.cli.exits import Exit, go_on_unread
from fairopt.cli.given import Pairs, input_file, require_different
from fairopt.cli.listing import AsJson, print_json, show
from fairopt.cli.tables import listing, working
from fairopt.errors import BadInput
from fairopt.experiment.bench.records import environments
from fairopt.experiment.journal import RecordsFile, TrialStatus, read_records
from fairopt.experiment.machine import Environment
from fairopt.experiment.page import write_page
from fairopt.experiment.runner import place
from fairopt.experiment.studies.cells import KINDS, WHOLE, StudyCell, planned, progress_text, run_study, shard_of
from fairopt.experiment.studies.results import StudyResults, require_whole
from fairopt.experiment.studies.spec import StudySpec, studies
from fairopt.problem.files.storage import require_place
from fairopt.report import VERSION

app = typer.Typer(cls=RunByDefault, no_args_is_help=True, help="Compare policies of rounds over many runs.", **PLAIN)

Tables = Annotated[
    list[Path] | None,
    typer.Option("--table", metavar="FILE", help="Write the cells as .csv, .parquet or .tex. May be repeated."),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Play in so many processes at once; all cores by default.", min=1)
]

#: Seconds between two lines that say how far a study is.
BETWEEN = 5.0
#: Cells that a Dask cluster is given at once, at the least.
AHEAD = 256


@app.command("run", cls=Once)
def run_command(
    spec: Annotated[Path, spec_argument(StudySpec)],
    cells: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Append each cell as it ends, and go on from what it holds; NAME.jsonl by default."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The HTML page; NAME.html by default, none for a shard.")
    ] = None,
    table: Tables = None,
    json_: AsJson = False,
    jobs: Jobs = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Play on a Dask cluster: a scheduler's address, or local:N.")
    ] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="Play the I-th of N parts only.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Play cells that failed once more.")] = False,
    pairs: Pairs = False,
) -> None:
    """Play a study; say which policy is better, and how sure that is.

    `fairopt study SPEC` is the same. Exit status: 3 some cells failed; 130 interrupted: the same command goes on from
    there; else 0.
    """
    from fairopt.experiment.studies.page import require_libraries

    go_on_unread()
    asked = StudySpec.read(spec)
    part = WHOLE if shard is None else shard_of(shard)
    name = asked.name if shard is None else f"{asked.name}-{part.start + 1}-of-{part.step}"
    into = cells or Path(f"{name}.jsonl")
    page = Path(f"{name}.html") if page is None and shard is None else page
    written = {f"--table {each}": each for each in table or ()}
    require_different({"SPEC": spec, "--cells": into, "--page": page, **written})
    if jobs is not None and dask is not None:
        raise BadInput(f"got --jobs {jobs} with --dask", place="--jobs", remedy="Give one of the two")
    _check_outputs(page, table)
    require_libraries()
    with ExitStack() as stack:
        file = stack.enter_context(RecordsFile(into, KINDS, say, place="--cells"))
        records = [*file.before]
        finished = [each for each in records if isinstance(each, StudyCell) and each.ended]
        done = {each.key for each in finished if not (retry and each.status is TrialStatus.FAILED)}
        every = planned(asked)
        _refuse_others(finished, asked.name, {each.key for each in every}, into)
        mine = every[part]
        todo = [each for each in mine if each.key not in done]
        if len(todo) < len(mine):
            say(f"going on from {len(mine) - len(todo)} of {len(mine)} cells in {into}")
        interrupted = False
        try:
            if todo:
                workers = min(jobs or os.cpu_count() or 1, len(todo)) if dask is None else 1
                executor, concurrent = stack.enter_context(place(workers, dask, "--jobs"))
                if dask is not None:  # a cluster that adapts starts workers for what it is given
                    concurrent = max(concurrent, AHEAD)
                # a specification that has changed is written down again: the last one in a file is what it holds
                known = environments(records).keys() if _last_text(records) == asked.source else ()
                how: dict[str, Any] = {"concurrent": concurrent, "done": done, "known": known}
                began = said = monotonic()
                ended: list[StudyCell] = []
                for record in run_study(asked, executor, shard=part, **how):
                    file.add(record)
                    records.append(record)
                    if not isinstance(record, StudyCell):
                        continue
                    ended.append(record)
                    if record.status is TrialStatus.FAILED:
                        say(f"failed: {record.called}: {record.message}")
                    if monotonic() - said > BETWEEN or len(ended) in (1, len(todo)):
                        said = monotonic()
                        failed = sum(each.status is TrialStatus.FAILED for each in ended)
                        done_now = len(mine) - len(todo) + len(ended)
                        say(progress_text(done_now, len(mine), failed, said - began, len(ended)))
        except KeyboardInterrupt:  # what is played is kept, and the status says that it is not all
            interrupted = True
        # the workers are still there; they end first, so that nothing is played behind the tables
        stack.close()
    if interrupted:
        kept = sum(isinstance(each, StudyCell) for each in records)
        say(f"interrupted; {into} holds {kept} cells, and the same command goes on from there")
        raise typer.Exit(Exit.INTERRUPTED)
    say(f"wrote {into}")
    _tell(StudyResults(asked, records), json_, page, table, pairs=pairs)


@app.command("merge", cls=Once)
def merge_command(
    cells: Annotated[list[Path], input_file("CELLS", "Files that shards wrote.")],
    output: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file of all cells to write.")],
    json_: AsJson = False,
) -> None:
    """Put the files of all shards together, each cell once.

    Exit status 2: cells are missing, or the files are of different studies.
    """
    require_place(output, "--out")
    if output.exists():
        raise BadInput(f"{output} is there already", place="--out", remedy="Name a new file")
    spec, records = _read(cells)
    results = StudyResults(spec, records)
    require_whole(results, len(cells))
    with RecordsFile(output, KINDS, say, place="--out") as file:
        where = sorted(environments(records).values(), key=lambda each: each.spec_text == spec.source)
        for record in [*where, *results.cells]:
            file.add(record)
    say(f"wrote {output}: {len(results.cells)} cells")
    if json_:
        print_json({"schema": VERSION, "written": [str(output)], "cells": len(results.cells)})


@app.command("report", cls=Once)
def report_command(
    cells: Annotated[list[Path], input_file("CELLS", "Files of cells.")],
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="The HTML page to write.")] = None,
    table: Tables = None,
    json_: AsJson = False,
    pairs: Pairs = False,
) -> None:
    """Report on cells that were played. Nothing is played; cells that are missing are named."""
    _check_outputs(page, table)
    _tell(StudyResults(*_read(cells)), json_, page, table, pairs=pairs)


@app.command("list", cls=Once)
def list_command(json_: AsJson = False) -> None:
    """List the studies that come with fairopt."""
    listed = [{"schema": VERSION, "name": name, "title": title} for name, title in studies()]
    show(json_, listed, lambda: listing({"name": "name", "title": "title"}, listed))


def _check_outputs(page: Path | None, table: Sequence[Path] | None) -> None:
    require_place(page, "--page")
    for path in table or ():
        study_tables.require_table(path)


def _tell(results: StudyResults, json_: bool, page: Path | None, table: Sequence[Path] | None, *, pairs: bool) -> None:
    """Print what was found, write it, and leave with status 3 where cells failed."""
    from fairopt.experiment.studies import page as pages

    for path in table or ():
        study_tables.write_table(results, path)
        say(f"wrote {path}")
    if page is not None:
        with working(f"writing {page}"):
            write_page(pages.page(results), page)
        say(f"wrote {page}")
    if json_:
        print_json(StudyResults.form.json(results))
    else:
        study_tables.results(results, pairs=pairs)
    if results.failed:
        say(f"{len(results.failed)} cells failed; --retry plays them once more")
        raise typer.Exit(Exit.NOT_SOLVED)


def _read(paths: Sequence[Path]) -> tuple[StudySpec, list[Any]]:
    """Return the study that cells are of, which is the one last played in each file, and the records of all files."""
    records: list[Any] = []
    texts: list[str] = []
    for path in paths:
        found = read_records(path, KINDS, say)
        records.extend(found)
        texts.append(_last_text(found))
    if not any(isinstance(each, StudyCell) for each in records):
        raise BadInput("there are no cells", file=str(paths[0]), remedy="`fairopt study SPEC` writes them")
    for path, text in zip(paths, texts, strict=True):
        if text != texts[0]:
            problem, remedy = f"{path} is of another specification than {paths[0]}", "Give files of one specification"
            raise BadInput(problem, place="CELLS", remedy=remedy)
    spec = StudySpec.parse(texts[0])
    spec.check()
    return spec, records


def _last_text(records: Sequence[Any]) -> str:
    """Return the text of the specification that was played last, "" where none was."""
    return next((each.spec_text for each in reversed(records) if isinstance(each, Environment)), "")


def _refuse_others(cells: Iterable[StudyCell], study: str, keys: Container[str], file: Path) -> None:
    for each in cells:
        if each.study != study and each.key not in keys:
            problem = f"{file} holds cells of the study {each.study!r}, and this is {study!r}"
            raise BadInput(problem, place="--cells", remedy="Name another file")

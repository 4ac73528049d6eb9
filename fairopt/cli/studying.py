"""The commands ``study``: play a study, or a shard of it; put shards together; write tables and the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from fairopt.bench.executors import place
from fairopt.bench.journal import RecordsFile, read_records
from fairopt.bench.reading import shipped_in
from fairopt.bench.records import Environment, environments
from fairopt.cli import completing, study_tables
from fairopt.cli.app import PLAIN, Once
from fairopt.cli.as_json import SCHEMA
from fairopt.cli.benching import RunByDefault, require_different, say
from fairopt.cli.exits import Exit
from fairopt.cli.given import input_file, resolving
from fairopt.cli.listing import AsJson, print_json, show
from fairopt.cli.tables import working
from fairopt.errors import BadInput
from fairopt.problem.files.storage import require_place
from fairopt.studies.cells import KINDS, CellStatus, PlayedCell, tasks
from fairopt.studies.results import StudyResults, require_whole
from fairopt.studies.running import Shard, progress_text, run_study
from fairopt.studies.spec import SHIPPED, StudySpec, studies

#: Seconds between two lines that say how far a study is.
BETWEEN = 5.0

app = typer.Typer(cls=RunByDefault, no_args_is_help=True, help="Compare policies of rounds over many runs.", **PLAIN)

Tables = Annotated[
    list[Path] | None,
    typer.Option("--table", metavar="FILE", help="Write the cells as .csv, .parquet or .tex. May be repeated."),
]
Jobs = Annotated[int | None, typer.Option(help="Play in so many processes at once; all cores by default.", min=1)]


@app.command("run", cls=Once)
def run_command(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC",
            help="A specification: a TOML file, a shipped one's name, or - for standard input.",
            **resolving() | {"autocompletion": completing.proposing(lambda _: dict.fromkeys(shipped_in(SHIPPED), ""))},
        ),
    ],
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
) -> None:
    """Play what a specification asks for, and say who is better, by how much, and how sure that is.

    `fairopt study SPEC` is the same. Exit status: 3 some cells failed; 130 interrupted: the same command goes on from
    there; else 0.
    """
    from fairopt.studies.page import require_libraries

    asked = StudySpec.read(spec)
    part = Shard() if shard is None else Shard.parse(shard)
    name = asked.name if shard is None else f"{asked.name}-{part.number}-of-{part.of}"
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
        finished = [each for each in records if isinstance(each, PlayedCell)]
        done = {each.key for each in finished if not (retry and each.status is CellStatus.FAILED)}
        mine = part(list(tasks(asked)))
        todo = [each for each in mine if each.cell.key not in done]
        if len(todo) < len(mine):
            say(f"going on from {len(mine) - len(todo)} of {len(mine)} cells in {into}")
        interrupted = False
        try:
            if todo:
                workers = min(jobs or os.cpu_count() or 1, len(todo)) if dask is None else 1
                executor, concurrent = stack.enter_context(place(workers, dask, "--jobs"))
                how: dict[str, Any] = {"concurrent": concurrent, "done": done, "known": environments(records).keys()}
                progress = _Progress(len(mine), len(mine) - len(todo))
                for record in run_study(asked, executor, shard=part, **how):
                    file.add(record)
                    records.append(record)
                    progress.tell(record)
        except KeyboardInterrupt:  # what is played is kept, and the status says that it is not all
            interrupted = True
        # the workers are still there; they end first, so that nothing is played behind the tables
        stack.close()
    if interrupted:
        kept = sum(isinstance(each, PlayedCell) for each in records)
        say(f"interrupted; {into} holds {kept} cells, and the same command goes on from there")
        raise typer.Exit(Exit.INTERRUPTED)
    say(f"wrote {into}")
    _tell(StudyResults(asked, records), json_, page, table)


@app.command("merge", cls=Once)
def merge_command(
    cells: Annotated[list[Path], input_file("CELLS...", "Files that shards wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file of all cells to write.")],
    json_: AsJson = False,
) -> None:
    """Put the files of all shards together, each cell once.

    Exit status 2: cells are missing, or the files are of different studies.
    """
    require_place(output, "--output")
    if output.exists():
        raise BadInput(f"{output} is there already", place="--output", remedy="Name a new file")
    spec, records = _read(cells)
    results = StudyResults(spec, records)
    require_whole(results, len(cells))
    with RecordsFile(output, KINDS, say, place="--output") as file:
        for record in [*environments(records).values(), *results.cells]:
            file.add(record)
    say(f"wrote {output}: {len(results.cells)} cells")
    if json_:
        print_json({"schema": SCHEMA, "written": [str(output)], "cells": len(results.cells)})


@app.command("report", cls=Once)
def report_command(
    cells: Annotated[list[Path], input_file("CELLS...", "Files of cells.")],
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="The HTML page to write.")] = None,
    table: Tables = None,
    json_: AsJson = False,
) -> None:
    """Say what cells that are played tell; nothing is played. Cells that are missing are noted."""
    _check_outputs(page, table)
    _tell(StudyResults(*_read(cells)), json_, page, table)


@app.command("list", cls=Once)
def list_command(json_: AsJson = False) -> None:
    """List the studies that come with fairopt."""
    listed = [{"schema": SCHEMA, "name": name, "title": title} for name, title in studies()]
    show(json_, listed, lambda: study_tables.listing(listed))


class _Progress:
    """Says how far a study is, now and then."""

    def __init__(self, total: int, before: int) -> None:
        self._total, self._before, self._fresh, self._failed = total, before, 0, 0
        self._began = monotonic()
        self._said = self._began - BETWEEN

    def tell(self, record: Environment | PlayedCell) -> None:
        """Count a cell that ended; a failed one is said at once."""
        if not isinstance(record, PlayedCell):
            return
        self._fresh += 1
        if record.status is CellStatus.FAILED:
            self._failed += 1
            say(f"failed: {record.called}: {record.message}")
        done = self._before + self._fresh
        if monotonic() - self._said > BETWEEN or done == self._total:
            self._said = monotonic()
            say(progress_text(done, self._total, self._failed, self._said - self._began, self._fresh))


def _check_outputs(page: Path | None, table: Sequence[Path] | None) -> None:
    require_place(page, "--page")
    for path in table or ():
        study_tables.require_table(path)


def _tell(results: StudyResults, json_: bool, page: Path | None, table: Sequence[Path] | None) -> None:
    """Print what was found, write it, and leave with status 3 where cells failed."""
    from fairopt.studies.page import write_page

    if json_:
        print_json({"schema": SCHEMA, **results.as_json()})
    else:
        study_tables.results(results)
    for path in table or ():
        study_tables.write_table(results, path)
        say(f"wrote {path}")
    if page is not None:
        with working(f"writing {page}"):
            write_page(results, page)
        say(f"wrote {page}")
    if results.failed:
        say(f"{len(results.failed)} cells failed; --retry plays them once more")
        raise typer.Exit(Exit.NOT_SOLVED)


def _read(paths: Iterable[Path]) -> tuple[StudySpec, list[Any]]:
    """Return the study that cells are of, and the records of all files."""
    records: list[Any] = []
    for path in paths:
        found = read_records(path, KINDS)
        records.extend(found.records)
        if found.torn:
            say(f"{path}: the last line was cut off, and is left out")
    texts = list(dict.fromkeys(each.spec_text for each in records if isinstance(each, Environment)))
    if not any(isinstance(each, PlayedCell) for each in records):
        raise BadInput("there are no cells", file=str(next(iter(paths))), remedy="`fairopt study SPEC` writes them")
    if len(texts) > 1:
        raise BadInput(
            f"they are of {len(texts)} specifications", place="CELLS", remedy="Give those of one, or play it again"
        )
    spec = StudySpec.parse(texts[0])
    spec.check()
    return spec, records

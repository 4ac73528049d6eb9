"""The commands ``study``: play a study, or a shard of it; put shards together; write tables and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairopt.cli import completing
from fairopt.cli.app import PLAIN, Once
from fairopt.cli.benching import RunByDefault
from fairopt.cli.given import Pairs, input_file, resolving
from fairopt.cli.listing import AsJson

app = typer.Typer(cls=RunByDefault, no_args_is_help=True, help="Compare policies of rounds over many runs.", **PLAIN)

Tables = Annotated[
    list[Path] | None,
    typer.Option("--table", metavar="FILE", help="Write the cells as .csv, .parquet or .tex. May be repeated."),
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Play in so many processes at once; all cores by default.", min=1)
]


def _shipped(_: object) -> dict[str, str]:
    from fairopt.experiment.studies.spec import StudySpec

    return dict.fromkeys(StudySpec.shipped(), "")


@app.command("run", cls=Once)
def run_command(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC",
            help="A specification: a TOML file, a shipped one's name, or - for standard input.",
            **resolving() | {"autocompletion": completing.proposing(_shipped)},
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
    pairs: Pairs = False,
) -> None:
    """Play a study; say which policy is better, and how sure that is.

    `fairopt study SPEC` is the same. Exit status: 3 some cells failed; 130 interrupted: the same command goes on from
    there; else 0.
    """
    from fairopt.cli import study_cells  # here, so that help comes sooner

    study_cells.play(spec, cells, page, table, json_=json_, jobs=jobs, dask=dask, shard=shard, retry=retry, pairs=pairs)


@app.command("merge", cls=Once)
def merge_command(
    cells: Annotated[list[Path], input_file("CELLS", "Files that shards wrote.")],
    output: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file of all cells to write.")],
    json_: AsJson = False,
) -> None:
    """Put the files of all shards together, each cell once.

    Exit status 2: cells are missing, or the files are of different studies.
    """
    from fairopt.cli import study_cells  # here, so that help comes sooner

    study_cells.merge(cells, output, json_=json_)


@app.command("report", cls=Once)
def report_command(
    cells: Annotated[list[Path], input_file("CELLS", "Files of cells.")],
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="The HTML page to write.")] = None,
    table: Tables = None,
    json_: AsJson = False,
    pairs: Pairs = False,
) -> None:
    """Report on cells that were played. Nothing is played; cells that are missing are named."""
    from fairopt.cli import study_cells  # here, so that help comes sooner

    study_cells.report(cells, page, table, json_=json_, pairs=pairs)


@app.command("list", cls=Once)
def list_command(json_: AsJson = False) -> None:
    """List the studies that come with fairopt."""
    from fairopt.cli import study_cells  # here, so that help comes sooner

    study_cells.say_studies(json_=json_)

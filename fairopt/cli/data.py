"""`fairopt datasets` and `fairopt import`: problems that packages bring, and files of other tools, as our files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fairopt import discovery
from fairopt.cli import as_json, completing, listing, tables
from fairopt.cli.given import data_set, described, input_file, names_of
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, read_with
from fairopt.problem.files.problem import KINDS, kind_of

Name = typer.Argument(
    metavar="NAME",
    help="A data set; without one, all are listed.",
    autocompletion=completing.proposing(lambda _: names_of()),
)
Out = typer.Option("--out", metavar="FILE", help="Where to write it; the ending says the format.")


def datasets(
    name: Annotated[str | None, Name] = None, out: Annotated[Path | None, Out] = None, json_: listing.AsJson = False
) -> None:
    """List the data sets that are installed, or write one to a file for the other commands."""
    if name is not None:
        name = data_set(name.removeprefix("@"), tuple(KINDS))
        if out is None:
            raise BadInput("there is no place for the data set", place="--out", remedy=f"Give --out {name}.toml")
        made = discovery.load(discovery.DATASETS, name)
        return _write(lambda: Imported(made()), out, f"data set {name!r}", json_)
    if out is not None:
        raise BadInput(f"no data set to write to {out}", place="--out", remedy="Name one; `fairopt datasets` has all")
    found = listing.chosen(None, discovery.DATASETS, described)
    columns = {"name": "data set", "kind": "what", "about": "about"}
    listing.show(json_, [{"schema": as_json.SCHEMA, **each} for each in found], lambda: tables.listing(columns, found))


def import_(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="An importer; `fairopt plugins` lists them.",
            autocompletion=completing.registered(discovery.IMPORTERS),
        ),
    ],
    files: Annotated[list[Path], input_file("FILE", "Files, or a folder, of another tool.")],
    out: Annotated[Path, Out],
    json_: listing.AsJson = False,
) -> None:
    """Read files of another tool and write them as a file of fairopt's; what it has no place for is listed."""
    importer = discovery.load(discovery.IMPORTERS, name)
    _write(lambda: read_with(importer, files), out, f"importer {name!r}", json_)


def _write(make: Callable[[], Imported], out: Path, place: str, json_: bool) -> None:
    with tables.working(f"writing {out}"):
        problem, unplaced = make()[:2]
        kind = kind_of(problem, place)
        kind.write(problem, out)
    said = {"schema": as_json.SCHEMA, "file": str(out), "kind": kind.name, "holds": repr(problem)}
    if unplaced:
        said["unplaced"] = [each._asdict() for each in unplaced]
    lines = [f"{out}: {kind.name}, {problem!r}", *(f"  not taken over: {each}" for each in unplaced)]
    listing.show(json_, said, lambda: tables.say("\n".join(lines)))

"""`fairopt datasets` and `fairopt import`: problems that packages bring, and files of other tools, as our files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fairopt import discovery
from fairopt.cli import completing, listing, tables
from fairopt.cli.given import COLUMNS, Columns, data_set, described, input_file, names_of
from fairopt.cli.settings import NAME
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, read_with
from fairopt.problem.files.problem import KINDS, kind_of, name_of
from fairopt.report import ABSENT, SCHEMA_KEY, Key, ResultForm, keys_of, listed

Name = typer.Argument(
    metavar="NAME",
    help="A data set; without one, all are listed.",
    autocompletion=completing.proposing(lambda _: names_of()),
)
Out = typer.Option("--out", metavar="FILE", help="Where to write it; the ending says the format.")


DATASET = ResultForm(
    "A data set.",
    SCHEMA_KEY,
    NAME,
    Key("kind", str, "What it is."),
    Key("about", str, "What it is about."),
    name="dataset",
)

_WRITTEN = (
    Key("file", str, "The file that was written."),
    Key("kind", str, "What it is: a market, a trace, a cluster, a batch or a program."),
    Key("holds", str, "What it holds, in short."),
)
WRITTEN = ResultForm(
    "A file that was written.",
    SCHEMA_KEY,
    *_WRITTEN,
    beside=[
        Key(
            "unplaced",
            listed(ResultForm("What was not taken over.", *keys_of(str, "place value why", "In words."))),
            "What the file says and the problem has no place for.",
        )
    ],
    name="written",
)


def datasets(
    name: Annotated[str | None, Name] = None, out: Annotated[Path | None, Out] = None, json_: listing.AsJson = False
) -> None:
    """List the data sets that are installed, or write one to a file for the other commands."""
    if name is not None:
        name = data_set(name.removeprefix("@"), tuple(KINDS))
        if out is None:
            raise BadInput("nothing says where to write the data set", place="--out", remedy=f"Give --out {name}.toml")
        made = discovery.load(discovery.DATASETS, name)
        return _write(lambda: Imported(made()), out, f"data set {name!r}", json_)
    if out is not None:
        raise BadInput(f"no data set is named for {out}", place="--out", remedy="Name one; `fairopt datasets` has all")
    found = listing.chosen(None, discovery.DATASETS, described)
    columns = {"name": "data set", "kind": "what", "about": "about"}
    listing.show(json_, DATASET.list(found), lambda: tables.listing(columns, found))


def import_(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"An importer: {', '.join(discovery.names(discovery.IMPORTERS))}.",
            autocompletion=completing.registered(discovery.IMPORTERS),
        ),
    ],
    files: Annotated[list[Path], input_file("FILE", "Files, or a folder, of another tool.")],
    out: Annotated[Path, Out],
    json_: listing.AsJson = False,
    columns: Columns = None,
) -> None:
    """Convert files of another tool into a file of fairopt's, and list what has no place in it."""
    importer = discovery.load(discovery.IMPORTERS, name)
    named = context.meta[COLUMNS]
    _write(lambda: read_with(importer, files, named), out, f"importer {name!r}", json_)


def _write(make: Callable[[], Imported], out: Path, place: str, json_: bool) -> None:
    with tables.working(f"writing {out}"):
        problem, unplaced = make()[:2]
        kind = kind_of(problem, place)
        KINDS[kind](problem, out)
    said = WRITTEN.json(
        {},
        file=str(out),
        kind=name_of(kind),
        holds=repr(problem),
        unplaced=[*unplaced] or ABSENT,
    )
    lines = [f"{out}: {name_of(kind)}, {problem!r}", *(f"  not taken over: {each}" for each in unplaced)]
    listing.show(json_, said, lambda: tables.say("\n".join(lines)))

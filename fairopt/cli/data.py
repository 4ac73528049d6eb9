"""`fairopt datasets` and `fairopt import`: problems that packages bring, and files of other tools, as our files."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fairopt import discovery
from fairopt.cli import listing, tables
from fairopt.errors import BadInput
from fairopt.problem.files.problem import KINDS, kind_of

Name = typer.Argument(metavar="[NAME]", help="A data set; without one, all are listed.")
Out = typer.Option("--out", metavar="FILE", help="Where to write it; the ending says the format.")


def datasets(
    name: Annotated[str | None, Name] = None, out: Annotated[Path | None, Out] = None, json_: listing.AsJson = False
) -> None:
    """List the data sets that are installed, or write one to a file for the other commands."""
    if name is not None:
        if out is None:
            raise BadInput("there is no place for the data set", place="--out", remedy=f"Give --out {name}.toml")
        return _write(discovery.load(discovery.DATASETS, name)(), out, f"data set {name!r}")
    if out is not None:
        raise BadInput(f"no data set to write to {out}", place="--out", remedy="Name one; `fairopt datasets` has all")
    found = listing.chosen(None, discovery.DATASETS, _described)
    columns = {"name": "data set", "kind": "what", "about": "about"}
    listing.show(json_, found, lambda: tables.listing(columns, found))


def import_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An importer; `fairopt plugins` lists them.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file, or a folder, of another tool.")],
    out: Annotated[Path, Out],
) -> None:
    """Read a file of another tool and write it as a file of fairopt's."""
    _write(discovery.load(discovery.IMPORTERS, name)(file), out, f"importer {name!r}")


def _write(problem: Any, out: Path, place: str) -> None:
    kind = kind_of(problem, place)
    kind.write(problem, out)
    tables.say(f"{out}: {kind.name}, {problem!r}")


def _described(name: str) -> dict[str, str]:
    """Return what is known of a data set without making it."""
    made: Callable[[], Any] = discovery.load(discovery.DATASETS, name)
    returned = get_type_hints(made).get("return")
    kind = next((kind.name for each, kind in KINDS.items() if each is returned), "")
    about = (getdoc(made) or "").partition("\n\n")[0].replace("\n", " ")
    return {"name": name, "kind": kind, "about": about}

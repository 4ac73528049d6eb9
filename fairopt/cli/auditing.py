"""`fairopt audit`: who is starved, who borrows and why, of a scheduler's files or of a market with entitlements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairopt import discovery
from fairopt.audit import audit as audited
from fairopt.cli import audit_tables, completing, evidence_files, tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import input_file, input_option
from fairopt.cli.listing import AsJson, print_json
from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.problem.files.storage import require_place

Files = Annotated[list[Path], input_file("FILE...", "A scheduler's own files, or a market with entitlements.", Market)]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="NAME",
        help="The importer that reads the files; by default the only one that can.",
        autocompletion=completing.registered(discovery.IMPORTERS),
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        help="A policy whose answer is shown beside what is held; by default those that decide by entitlements, and of "
        "many users only the scheduler's own. May be repeated.",
        autocompletion=completing.policies(Market),
    ),
]
Speedups = Annotated[
    Path | None, input_option("A .csv table of users and types: the throughput of each user on one GPU of each type.")
]
Rates = Annotated[
    Path | None, input_option("A .toml or .json file: what one GPU of each type counts for, for every user.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Every user, and all that the market has no place for.")]


def audit(
    files: Files,
    importer: From = "",
    policies: Policies = None,
    speedups: Speedups = None,
    rates: Rates = None,
    json_: AsJson = False,
    html: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a page here that shows all of it.")] = None,
    certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the evidence of the verdicts here, for `fairopt check DIR`."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Say who is starved and who borrows on a cluster, why, and the smallest reclaim that mends it.

    Exit status: 1 a guarantee is broken by others' borrowing, or a cap is; 4 neither, and a property is undecided.
    """
    require_place(html, "--html")
    evidence_files.require_empty(certificates)
    if speedups is not None and rates is not None:
        raise BadInput(f"got {rates}, and --speedups too", place="--rates", remedy="Give one of them")
    with tables.working("reading") as watch:
        found = audited(files, importer=importer, policies=policies, speedups=speedups, rates=rates, watch=watch)
    if json_:
        print_json(found.to_json())
    else:
        audit_tables.audit(found, in_full=verbose)
    if certificates is not None:
        evidence_files.write_verdicts(found.market, found.held, found.verdicts, list(found.properties), certificates)
    raise typer.Exit(Exit.FAILS if found.violated else Exit.UNDECIDED if found.undecided else Exit.FINE)

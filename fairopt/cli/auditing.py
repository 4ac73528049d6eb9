"""`fairopt audit`, `explain` and `whatif`: who is starved or borrows, why, and what would change it."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import completing, evidence_files, tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import STDIN, Certificates, Html, StandIn, input_file, input_option, require_page
from fairopt.cli.listing import AsJson, print_json, show
from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.problem.files.storage import naming, require_place, write_text

#: As in `fairopt.cli.app`: an audit makes next to no garbage, and looking for it takes a twentieth of the time.
COLLECTED = (10_000_000, 50, 100)

Files = Annotated[
    list[Path] | None,
    input_file("FILE", "A scheduler's own files, a folder of them, or a market; without any, --from asks.", Market),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="NAME",
        help="The importer that reads the files; by default the only one that can. Without files its commands are run.",
        autocompletion=completing.registered(discovery.IMPORTERS),
    ),
]
PrintCommands = Annotated[
    bool, typer.Option("--print-commands", help="Only print the commands that --from would run, to paste.")
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A policy whose shares are compared with the GPUs held; by default those that decide by entitlements, "
        "with many users only the scheduler's own. May be repeated.",
        autocompletion=completing.policies(Market),
    ),
]
Speedups = Annotated[
    Path | None, input_option("A .csv table of users and types: the throughput of each user on one GPU of each type.")
]
Rates = Annotated[
    Path | None, input_option("A .toml or .json file: what one GPU of each type is worth, the same for every user.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Show every user, reason and remedy, and every entry of the files that has no place in the market.",
    ),
]


def files_or_live(context: typer.Context, files: list[Path] | None, importer: str, *, only_print: bool) -> list[Path]:
    """Return the files that are given, or what the commands of ``importer`` print now; these only read the cluster.

    They are there until the command of the command line ends. With ``only_print`` they are printed, and that is all.
    """
    if files and not only_print:
        return files
    if files:
        raise BadInput("it does not go with files", place="--print-commands", remedy="Leave them out")
    if not importer:
        remedy = "Give a scheduler's own files, or say whom to ask: --from NAME"
        raise BadInput("no file", place="FILE", remedy=remedy)
    from fairopt.importing.live import as_lines, fetched, source  # here, since few ask a cluster

    commands = source(importer)
    if only_print:
        print(as_lines(commands), end="")
        raise typer.Exit(Exit.FINE)
    folder = context.find_root().with_resource(TemporaryDirectory(prefix="fairopt-"))
    with tables.working("asking the cluster") as watch:
        written = fetched(importer, folder, watch=watch)
    return [StandIn.of(path, shlex.join(commands[path.name])) for path in written]


def audit(
    context: typer.Context,
    files: Files = None,
    importer: From = "",
    print_commands: PrintCommands = False,
    policies: Policies = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME",
            help="A property of the GPUs held; by default those of entitlements, or none if users are many. "
            "May be repeated.",
            autocompletion=completing.PROPERTIES,
        ),
    ] = None,
    speedups: Speedups = None,
    rates: Rates = None,
    json_: AsJson = False,
    html: Html = None,
    certificates: Certificates = None,
    over_time: Annotated[
        bool,
        typer.Option(
            "--over-time",
            help="Each FILE or folder is one moment, dated by its name (2026-11-28T10:30) or when it was written; of a "
            "single folder, each file or folder in it. Without this option all files together are one moment.",
        ),
    ] = False,
    metrics: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write numbers for Prometheus here; - is standard output.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Show which users starve and which borrow on a cluster, why, and the smallest reclaim that ends it.

    With --over-time: who starved for how long, who borrowed how much, and when verdicts changed.

    Exit status 1: others' borrowing breaks a guarantee, or a cap is broken; 4: neither, but a property is undecided.
    With --over-time it is that of the last moment.
    """
    from fairopt.audit import audit as audited  # here, so that help comes sooner
    from fairopt.cli import audit_tables

    require_place(html, "--html")
    files = files_or_live(context, files, importer, only_print=print_commands)
    evidence_files.require_empty(certificates)
    if speedups is not None and rates is not None:
        raise BadInput(f"got {rates}, and --speedups too", place="--rates", remedy="Give one of them")
    if metrics is not None and metrics != STDIN:
        require_place(metrics, "--metrics")
    how: dict[str, Any] = {"policies": policies, "properties": properties, "speedups": speedups, "rates": rates}
    if over_time and certificates is not None:
        raise BadInput("got --certificates", place="--over-time", remedy="Audit the moment whose evidence you want")
    with tables.working("reading") as watch:
        if over_time:
            from fairopt.audit.series import audit_over_time, moments_of  # here, since few have several

            found: Any = audit_over_time(moments_of(files), importer=importer, watch=watch, **how)
        else:
            found = audited(files, importer=importer, watch=watch, **how)
            if json_ or verbose or html is not None:
                watch("looking for what would mend it")
                _ = found.reasons, found.mends
    _write_page(found, files, html)
    if certificates is not None:
        evidence_files.write_verdicts(found.market, found.held, found.verdicts, list(found.properties), certificates)
    _write_metrics(found, metrics)
    if json_:
        print_json(found.to_json())
    elif metrics != STDIN:
        (audit_tables.series if over_time else audit_tables.audit)(found, in_full=verbose)
    raise typer.Exit(Exit.FAILS if found.violated else Exit.UNDECIDED if found.undecided else Exit.FINE)


def _write_page(found: Any, files: list[Path], html: Path | None) -> None:
    """Write a page about what was found, where one is asked for."""
    if html is not None:
        from fairopt.audit.page import page  # here, so that what has no page begins sooner
        from fairopt.audit.series_page import series_page
        from fairopt.experiment.page import write_page

        write_page(series_page(found) if hasattr(found, "moments") else page(found, files), html)


def _write_metrics(found: Any, path: Path | None) -> None:
    if path is None:
        return
    from fairopt.audit.metrics import metrics as told  # here, since few ask for it

    if path == STDIN:
        print(told(found), end="")
    else:
        with naming(place="--metrics"):
            write_text(path, told(found))


def explain(
    context: typer.Context,
    files: Files = None,
    *,
    user: Annotated[str, typer.Argument(metavar="USER", help="A user or a group.")],
    importer: From = "",
    print_commands: PrintCommands = False,
    policies: Policies = None,
    json_: AsJson = False,
    graphml: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tree of groups here, and who envies whom.")
    ] = None,
    html: Html = None,
) -> None:
    """Explain the status of one user or group, what would let its gangs run, and what one GPU more would give it."""
    from fairopt.audit import explain as explained  # here, so that help comes sooner
    from fairopt.cli import audit_tables

    require_place(graphml, "--graphml")
    require_page(html)
    if not (files or importer) and Path(user).exists():  # the only word was taken for the user
        raise BadInput("Missing argument 'USER'", remedy="A user or a group.")
    files = files_or_live(context, files, importer, only_print=print_commands)
    with tables.working("reading") as watch:
        found = explained(files, user, importer=importer, policies=policies, watch=watch)
    if graphml is not None:
        from fairopt.properties.graphs import as_graphml, envy_graph, group_tree  # here, since few ask for it

        market = found.found.market
        graphs = {"in": group_tree(found.found.accounts.said)}
        if market.known.all():  # else nobody knows what another's GPUs are worth to it
            graphs["envy"] = envy_graph(market, found.found.held)
        with naming(place="--graphml"):
            write_text(graphml, as_graphml(graphs))
    _write_page(found, files, html)
    show(json_, found.to_json, lambda: audit_tables.explanation(found))


def whatif(
    context: typer.Context,
    files: Files = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="CHANGE",
            help="NAME.TYPE.quota=8 (or cap, reserve), NAME.weight=2 (or priority), TYPE.capacity=64; += adds. May be "
            "repeated. Without it, two files are compared.",
        ),
    ] = None,
    importer: From = "",
    print_commands: PrintCommands = False,
    policies: Policies = None,
    emit: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Print only the change, as objects that this scheduler takes.",
            autocompletion=completing.registered(discovery.EMITTERS),
        ),
    ] = "",
    json_: AsJson = False,
    html: Html = None,
) -> None:
    """Say what a change of quotas, caps, weights or capacities would do.

    It prints how each user's status changes, why gangs wait before and after, and what policies would give.

    Exit status 1: the change breaks a guarantee or a cap that was not broken before.
    """
    from fairopt.audit import WhatIf
    from fairopt.audit import whatif as what_if  # here, so that help comes sooner
    from fairopt.cli import audit_tables

    require_place(html, "--html")
    emitter = discovery.load(discovery.EMITTERS, emit) if emit else None
    files = files_or_live(context, files, importer, only_print=print_commands)
    if not settings and len(files) != 2:
        raise BadInput("nothing says what is to change", place="--set", remedy="Give --set, or two files to compare")
    how: dict[str, Any] = {"importer": importer, "policies": policies}
    with tables.working("reading") as watch:
        if settings:
            found = what_if(files, settings, watch=watch, **how)
        else:
            found = what_if(files[:1], after=files[1:], watch=watch, **how)
        if json_:
            _ = found.after.alternatives
    _write_page(found, files, html)
    if emitter is not None:
        written = emitter(found.before.market, found.after.market)
        show(json_, partial(WhatIf.form.json, found, emitted=written), lambda: print(written, end=""))
        if written == emitter(found.before.market, found.before.market):
            print(f"fairopt: --emit: {emit} has no object that says what changes here", file=sys.stderr)
    else:
        show(json_, found.to_json, lambda: audit_tables.what_if(found))
    raise typer.Exit(Exit.FAILS if found.broken else Exit.FINE)

"""`fairopt plan`: what a scheduler is told so that users have what a policy gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import completing, tables
from fairopt.cli.auditing import Files, From, PrintCommands, files_or_live
from fairopt.cli.given import input_option
from fairopt.cli.listing import AsJson, print_json
from fairopt.cli.tables import say, table_of, texts
from fairopt.errors import BadInput
from fairopt.numbers import counted, four_digits
from fairopt.problem import Market
from fairopt.problem.files.storage import naming, write_text
from fairopt.program import number_text
from fairopt.properties.verdict import MARKS

if TYPE_CHECKING:
    from fairopt.audit import SchedulerPlan


def plan(
    context: typer.Context,
    files: Files = None,
    *,
    policy: Annotated[
        str,
        typer.Option(metavar="NAME", help="The policy that decides.", autocompletion=completing.policies(Market)),
    ],
    throughput: Annotated[
        Path,
        input_option("A .csv table of users or groups and GPU types: throughput on one GPU, and weight if you like."),
    ],
    emit: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The scheduler that is told; by default the one whose files are given.",
            autocompletion=completing.registered(discovery.PLANNERS),
        ),
    ] = "",
    importer: From = "",
    print_commands: PrintCommands = False,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME",
            help="A property to check; by default all of allocations. May be repeated.",
            autocompletion=completing.PROPERTIES,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the files apply and undo here, instead of printing.")
    ] = None,
    json_: AsJson = False,
) -> None:
    """Turn a policy's decision into quotas, weights or limits of the scheduler, with what is lost by it.

    Nothing is applied: what is printed, or written with --out, is for you to apply, and to undo.
    """
    from fairopt.audit import plan as planned  # here, so that help comes sooner

    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out} is no folder", place="--out", remedy="Name a folder")
    files = files_or_live(context, files, importer, only_print=print_commands)
    with tables.working("reading") as watch:
        how = {"importer": importer, "properties": properties, "watch": watch}
        found = planned(files, policy, throughput, emit, **how)  # type: ignore[arg-type]
    written = _write(found, out) if out is not None else {}
    if json_:
        print_json(found.to_json())
        return
    _show(found)
    for name, file in written.items():
        say(f"{name}: {found.how.format(file=file)}")
    if out is None:
        say(f"What {found.scheduler} is told ({found.how.format(file='FILE')}); --out DIR writes it and its undoing:")
        print(found.apply or "nothing: all is as it is planned", end="" if found.apply else "\n")


def _write(found: SchedulerPlan, folder: Path) -> dict[str, Path]:
    written = {}
    with naming(place="--out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("apply", found.apply), ("undo", found.undo)):
            written[name] = folder / f"{name}{found.suffix}"
            write_text(written[name], text)
    return written


def _show(found: SchedulerPlan) -> None:
    market = found.market
    gpus = ", ".join(f"{number_text(n)} {kind}" for n, kind in zip(market.capacity, market.types, strict=True))
    whose = f"{found.policy} for {counted(len(market.users), 'user')} of {gpus}"
    say(f"{whose}, by {found.scheduler}. Today is what is {found.today_is}.")
    sides = (found.today, found.shares, found.held)
    heads: list[Any] = ["user", "weight", *texts("type"), "today", "policy", "plan"]
    rows = [
        (
            user if j == 0 else "",
            four_digits(market.weight[i]) if j == 0 else "",
            kind,
            *(four_digits(each[i, j]) for each in sides),
        )
        for i, user in enumerate(market.users)
        for j, kind in enumerate(market.types)
    ]
    say(table_of(heads, rows))
    equal = market.fair_utility()
    worth = [market.utility(each) for each in sides]
    heads = ["throughput of", "equal share", "today", "policy", "plan", "plan/equal"]
    worths = (
        (user, *(four_digits(each[i]) for each in (equal, *worth)), f"{float(worth[2][i] / equal[i]):.3f}")
        for i, user in enumerate(market.users)
    )
    say(table_of(heads, worths))
    shown = [
        (name, *(MARKS[each.answer] for each in verdicts), verdicts[2].shown_by)
        for name, verdicts in found.verdicts.items()
    ]
    say(table_of(texts("property", "today", "policy", "plan", "what shows it under the plan"), shown))
    say("What is lost, or differs:")
    for words in found.lost:
        say(f"  {words}")

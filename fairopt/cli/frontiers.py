"""`fairopt frontier`: what each property costs of each goal on a market, and where policies are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fairopt import discovery
from fairopt.cli import comparison_tables, completing, evidence_files, tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import Certificates, Columns, Html, Normalise, Types, input_file, require_page
from fairopt.cli.listing import AsJson, SharePolicies, compared_policies, print_json
from fairopt.experiment.page import write_page
from fairopt.frontier import GOALS, RELAXED, Curve, Frontier, frontier
from fairopt.frontier.frontiers import decimal
from fairopt.numbers import counted
from fairopt.problem import Market, read_market
from fairopt.problem.files.storage import require_place
from fairopt.program import number_text
from fairopt.replacing import replacing

#: The most breakpoints of a line of the table; of others, the first and the last are shown.
MOST_SHOWN = 5


_GOALS = {each.name: each.says for each in GOALS}
_PROPERTIES = {each.name: each.says for each in RELAXED}


def _choice(option: str, among: Mapping[str, str]) -> typer.models.OptionInfo:
    proposed = completing.proposing(lambda _: among)
    listed = f"{', '.join(among)}; all by default. May be repeated."
    info: typer.models.OptionInfo = typer.Option(option, metavar="NAME", help=listed, autocompletion=proposed)
    return info


def frontier_command(
    market: Annotated[Path, input_file("MARKET", "A market file: .toml, .json or .csv.", Market)],
    goals: Annotated[list[str] | None, _choice("--goal", _GOALS)] = None,
    against: Annotated[list[str] | None, _choice("--property", _PROPERTIES)] = None,
    policy_names: SharePolicies = None,
    gap: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="Follow curves up to this part of the goal (1%); by default linear ones exactly, others to 1/1000.",
        ),
    ] = None,
    normalise: Normalise = False,
    limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="Most seconds for each curve, and each policy.", min=0),
    ] = None,
    json_: AsJson = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it here: .png, .svg or .pdf.")] = None,
    html: Html = None,
    certificates: Certificates = None,
    types: Types = None,
    columns: Columns = None,
) -> None:
    """Compute the largest value of each goal where a property may fail by epsilon, and place policies beside it.

    Curves of linear goals are exact: all breakpoints. Exit status: 3 a policy or a curve could not be computed; 4 a
    curve was not followed to its end in time; 130 interrupted, after what is known is printed; else 0.
    """
    require_place(out, "--out", dict.fromkeys((".png", ".svg", ".pdf")))
    require_page(html, "matplotlib")
    if out is not None:
        discovery.library("matplotlib", "a picture", "plot")
    evidence_files.require_empty(certificates)
    problem = read_market(market, types or ())
    problem = problem.normalised() if normalise else problem
    chosen, others = compared_policies(policy_names, Market, problem)
    parts = len(goals or _GOALS) * len(against or _PROPERTIES)
    kept: list[Frontier] = []
    interrupted = False
    try:
        with tables.progress(2 * parts + len(chosen)) as advance:
            found = frontier(
                problem, goals, against, policies=chosen, gap=gap, limit=limit, watch=advance, keep=kept.append
            )
    except KeyboardInterrupt:  # what is known by then is said
        if not kept or not kept[-1].curves:
            raise
        found, interrupted = kept[-1], True
    found = replace(found, left_out=others)
    if out is not None:
        from fairopt.experiment.plot import frontier as drawn  # here, so that a table begins sooner

        with replacing(out) as file:
            drawn(found).savefig(file.beside)
    if html is not None:
        from fairopt.experiment.frontier_page import page  # here, so that a table begins sooner

        write_page(page(found, f"Frontier of {Path(str(market)).name}"), html)
    if certificates is not None:
        evidence_files.write_items(((item.name, item) for item in found.certificates()), certificates)
    if json_:
        print_json(found.to_json())
    else:
        _say(found)
    if interrupted:
        curves = f"{len(found.curves)} of {counted(parts, 'curve')}"
        done = f"{curves}, {len(found.policies)} of {counted(len(chosen), 'policy')} done"
        print(f"interrupted: {done}", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED)
    if found.failed or any(each.error is not None for each in found.policies):
        raise typer.Exit(Exit.NOT_SOLVED)
    raise typer.Exit(Exit.UNDECIDED if any(curve.stopped for curve in found.curves) else Exit.FINE)


def _say(found: Frontier) -> None:
    """Print the curves of each goal, then the policies beside them."""
    market = found.market
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    tables.say(f"{len(market.users)} {'user shares' if len(market.users) == 1 else 'users share'} {gpus}.")
    for goal in dict.fromkeys(curve.goal for curve in found.curves):
        _say_goal(goal, [curve for curve in found.curves if curve.goal == goal], found)
    for curve in found.curves:
        if curve.stopped:
            tables.say(f"  {curve.goal} against {curve.against}: stopped: {curve.stopped}")
    for (goal, name), error in found.failed.items():
        tables.say(f"  {goal} against {name}: no curve: {error}")
    for each in found.policies:
        reasons = each.reasons if each.error is None else {"stopped": str(each.error)}
        for what, why in reasons.items():
            tables.say(f"  {each.policy}, {what}: {why}" if each.error is None else f"  {each.policy}: {what}: {why}")
    comparison_tables.left_out(found.left_out)
    for relaxed in RELAXED:
        if any(curve.against == relaxed.name for curve in found.curves):
            tables.say(f"{relaxed.short} {relaxed.name}: {relaxed.says}")
    if not found.curves:
        return
    if any(curve.against != "pareto_efficiency" for curve in found.curves):
        tables.say("also PE: what Pareto-efficient allocations are known to reach: the curve, or a value at epsilon 0.")
    tables.say("below: by how many percent of the curve the policy is under it, at its epsilon; ~ in floats.")


def _say_goal(goal: str, curves: Sequence[Curve], found: Frontier) -> None:
    tables.say(f"{goal}: {_GOALS[goal]}")
    grid = tables.table_of(["against", "known", "also PE", "epsilon: largest value"])
    for curve in curves:
        known = "exactly" if curve.exact else f"to {float(curve.gap):.1g}"
        efficient = curve.efficient_at(0)
        first = "all" if curve.settled else "-" if efficient is None else f"{number_text(efficient)} at 0"
        grid.add_row(curve.against, known, first, ", ".join(_corners(curve)))
    tables.say(grid)
    short = {each.name: each.short for each in RELAXED}
    heads = [f"{short.get(curve.against, curve.against)}\n{what}" for curve in curves for what in ("epsilon", "below")]
    placed = tables.table_of(["policy", goal.replace("_", "\n"), *heads])
    for each in found.policies:
        cells = [decimal(each.values.get(goal))]
        for curve in curves:
            cells += [decimal(each.epsilons.get(curve.against)), curve.over(each)]
        placed.add_row(each.policy, *cells)
    if found.policies:
        tables.say(placed)


def _corners(curve: Curve) -> list[str]:
    told = [f"{number_text(point.epsilon)}: {number_text(point.value)}" for point in curve.points]
    return told if len(told) <= MOST_SHOWN else [*told[:2], f"{len(told) - 3} more", told[-1]]

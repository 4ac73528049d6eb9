"""The command ``incentives``: by how many times a lie multiplies what users get, policy by policy and kind by kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairopt.backends.solution import Interval
from fairopt.cli import comparison_tables, tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import Columns, Types, input_file
from fairopt.cli.listing import AsJson, SharePolicies, compared_policies, print_json
from fairopt.compare.incentives import Incentives, incentives
from fairopt.errors import NotCapable, NotSolved
from fairopt.numbers import counted
from fairopt.problem import Market, market_to_dict, read_market
from fairopt.program import INFINITY, Number, number_text
from fairopt.properties import Effort
from fairopt.properties.misreports.kinds import MisreportKind, every_kind, kind_of
from fairopt.report import ABSENT, LEFT_OUT, SCHEMA_KEY, Key, ResultForm, Statement

INCENTIVES = ResultForm(
    "How much lies pay.",
    SCHEMA_KEY,
    Key("policies", dict, "By name: the best lie found of each kind, and what is proved of all reports."),
    beside=[LEFT_OUT],
)


def incentives_command(
    market: Annotated[Path, input_file("MARKET", "A market file: .toml, .json or .csv.", Market)],
    policy_names: SharePolicies = None,
    kind_names: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="A kind of lie: larger, smaller, any (reports of speedups), together, split, copies, weight, demand; "
            "all by default. May be repeated.",
        ),
    ] = None,
    evaluations: Annotated[int, typer.Option(metavar="N", help="Lies to try, for each policy and kind.", min=1)] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search.", min=0)] = 0,
    json_: AsJson = False,
    types: Types = None,
    columns: Columns = None,
) -> None:
    """Show by what factor a lie multiplies what its user gets, for every policy: the largest found, and a proved bound.

    The table is the answer, whatever it says. That no lie was found proves nothing; "at most" is a proof. Exit status:
    3 a policy could not be decided; else 0.
    """
    problem = read_market(market, types or ())
    every = every_kind(problem)
    kinds = [kind_of(name, problem, "--kind") for name in dict.fromkeys(kind_names)] if kind_names else every
    effort = Effort(evaluations=evaluations, seed=seed)
    rows: list[Incentives] = []
    failed: list[str] = []
    policies, others = compared_policies(policy_names, Market, problem)
    interrupted = False
    for policy in policies:
        try:
            with tables.working(policy.name):
                rows.append(incentives(policy, problem, kinds, effort))
        except NotCapable as error:
            if policy_names:
                raise
            others[policy.name] = str(error)
        except NotSolved as error:  # the others' rows stand
            failed.append(f"{policy.name}: {error}")
        except KeyboardInterrupt:  # and so do those before it
            interrupted = True
            break
    if json_:
        print_json(
            INCENTIVES.json(
                {}, policies={row.policy.name: _json(row, problem) for row in rows}, left_out=others or ABSENT
            )
        )
    else:
        if rows:
            _print(rows, kinds, problem)
        comparison_tables.left_out(others)
    if failed:
        print("\n".join(("Stopped:", *(f"  {why}" for why in failed))), file=sys.stderr)
    if interrupted:
        print(f"interrupted: {len(rows)} of {counted(len(policies), 'policy')} done", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED)
    if failed:
        raise typer.Exit(Exit.NOT_SOLVED)


def _print(rows: Sequence[Incentives], kinds: Sequence[MisreportKind], market: Market) -> None:
    columns = [(kind, kind in row.bounds) for row in rows[:1] for kind in kinds]
    heads = [head for kind, bounded in columns for head in (kind.name, *(["at most"] if bounded else []))]
    table = tables.table_of(["policy", *heads])
    for row in rows:
        cells = []
        for kind, bounded in columns:
            cells.append(_times(row.misreports[kind]))
            cells += [_number(row.bounds[kind].upper, "no bound")] if bounded else []
        table.add_row(row.policy.name, *cells)
    tables.say("The best lie found multiplies what the liar gets by (-: none was found that pays):")
    tables.say(table)
    if any(row.bounds for row in rows):
        tables.say("at most: proved of all such lies, as far as the policy's claims hold")
    for kind in kinds:
        tables.say(f"{kind.name}: {kind.words}")
    for row in rows:
        # who may enter as two with all of its weight mostly gains most, and there is little to see in it
        found = [lie for lie in row.misreports.values() if lie is not None]
        best = max(found, key=lambda lie: (lie.kind.is_report, lie.factor), default=None)
        if best is not None:
            tables.say(f"{row.policy.name}, {best.kind.name}: {_told(best, market)}")


def _told(best: Statement, market: Market) -> str:
    """Return in words what the liars say."""
    told, said = best.told, []
    for user, rows in best.rows.items():
        for row in rows:
            speedups = ", ".join(map(number_text, told.speedup[row]))
            what = [f"speedups {speedups}"] if (told.speedup[row] != market.speedup[user]).any() else []
            what += [f"weight {number_text(told.weight[row])}"] if told.weight[row] != market.weight[user] else []
            what += [f"demand {number_text(told.limit[row])}"] if told.limit[row] != market.limit[user] else []
            said.append(f"{told.users[row]} says {' and '.join(what) or 'the truth'}")
    return "; ".join(said)


def _times(best: Statement | None) -> str:
    """Return a factor; from nothing to something it is infinite."""
    return "-" if best is None else _number(best.factor, "infinite") + ("" if best.exact else " (floats)")


def _number(value: Number, endless: str) -> str:
    return endless if value == INFINITY else f"{float(value):.4g}"


def _json(row: Incentives, market: Market) -> dict[str, Any]:
    found = {kind.name: None if lie is None else _lie(lie, market) for kind, lie in row.misreports.items()}
    return {"lies": found, "at_most": {kind.name: _bound(bound) for kind, bound in row.bounds.items()}}


def _lie(best: Statement, market: Market) -> dict[str, Any]:
    return {
        "factor": _plain(best.factor),
        "exact": best.exact,
        "users": {market.users[user]: _plain(factor) for user, factor in best.factors.items()},
        "told": market_to_dict(best.told),
    }


def _bound(bound: Interval) -> dict[str, Any]:
    return {"factor": _plain(bound.upper), "why": bound.by}


def _plain(value: Number) -> str | float | None:
    """Return a fraction as text, a float as it is, and None for a factor without end."""
    return None if value == INFINITY else value if isinstance(value, float) else str(value)

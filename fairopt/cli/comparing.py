"""`fairopt compare`: policies side by side on a market, on a trace and a cluster, or on a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial, singledispatch
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from fairopt.cli import comparison_tables, evidence_files, forms, tables
from fairopt.cli.app import EVERY
from fairopt.cli.exits import Exit
from fairopt.cli.given import Columns, Error, Html, Pairs, Types, input_file, input_option, ranged, require_page
from fairopt.cli.listing import (
    AsJson,
    PropertyNames,
    compared_policies,
    policies_option,
    print_json,
    wanted_policies,
    wanted_properties,
)
from fairopt.cli.settings import Playing, grouped, read_trace_on
from fairopt.compare import Row, decided_on
from fairopt.compare import compare as compared
from fairopt.compare.answer import answer, together
from fairopt.errors import BadInput, NotSolved
from fairopt.experiment.page import write_page
from fairopt.numbers import counted
from fairopt.policy import Policy
from fairopt.problem import Cluster, Market, Queue, Trace, exact, read_market
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import read_batch
from fairopt.problem.files.storage import file_type
from fairopt.properties import Effort, Property
from fairopt.report import ABSENT, plain
from fairopt.simulation import Setting
from fairopt.simulation.measures import UNITS

#: Seconds for each cell of a batch: the offline optimum of four jobs can take minutes, and of more jobs days.
BATCH_LIMIT = 10.0


@grouped
def compare(
    context: typer.Context,
    file: Annotated[
        Path,
        input_file(
            "FILE", "A market; a trace, with --cluster; or a batch. The contents say which.", Market, Trace, Batch
        ),
    ],
    policy_names: Annotated[list[str] | None, policies_option()] = None,
    property_names: PropertyNames = None,
    json_: AsJson = False,
    floats: Annotated[bool, typer.Option("--floats", help="Decide in floats, within a tolerance: faster.")] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Most seconds for each decision and for each property; the search for lies has --seconds on top. "
            f"Default: {BATCH_LIMIT:g} for a batch, else none.",
            min=0,
        ),
    ] = None,
    error: Error = None,
    types: Types = None,
    columns: Columns = None,
    evaluations: Annotated[
        int, typer.Option(metavar="N", help="Misreports to try for each policy.", min=1)
    ] = Effort.evaluations,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search for misreports that pay.", min=0)] = 0,
    seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help=f"Most seconds to search for misreports, for each policy; {BATCH_LIMIT:g} for a batch.",
        ),
    ] = 60.0,
    normalise: Annotated[
        bool,
        typer.Option("--normalise", help="Of a market: measure each user in its throughput on the slowest type first."),
    ] = False,
    unique: Annotated[
        bool, typer.Option("--unique", help="Of a market: ask whether each decision is the only optimum.")
    ] = False,
    every_optimum: Annotated[
        bool,
        typer.Option("--every-optimum", help="Of a market: where optima differ, say what holds for some and for all."),
    ] = False,
    certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Of a market: write the evidence here, for `fairopt check DIR`."),
    ] = None,
    allocations: Annotated[
        bool, typer.Option("--allocations", help="Of a market: print each policy's allocation too.")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            metavar=f"POLICY|{EVERY}",
            help="Show the evidence of each failure of one policy; --why alone: of all.",
        ),
    ] = None,
    html: Html = None,
    pairs: Pairs = False,
    *,
    playing: Annotated[Playing, "Of a trace: "],
    cluster: Annotated[Path | None, input_option("Of a trace: the cluster file, .toml or .json.", Cluster)] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of a trace: play it and traces drawn from it, N in all and in floats, and say which policy is better "
            "and how sure that is; properties are not asked.",
            min=3,
        ),
    ] = None,
) -> None:
    """Compare policies: what each costs, which properties hold, and what shows it where one fails.

    Sentences come first, then a table, in which policies that give the same share a line. Exit status 3: a policy could
    not be computed; 4: nothing fails, but a property could not be decided; else 0.
    """
    given = _given(context)
    require_page(html)
    found = file_type(file)
    _refuse_strange(context, file, found, given)
    if seeds is not None:
        if strange := sorted(given & _NOT_SEEDED.keys()):
            remedy = "Leave out one of the two"
            raise BadInput("it means nothing with --seeds", place=_NOT_SEEDED[strange[0]], remedy=remedy)
        from fairopt.cli.seeding import seeded  # here, so that the other comparisons begin sooner

        return seeded(file, wanted_policies(policy_names, Queue), playing, cluster, seeds, json_, pairs=pairs)
    if pairs:
        raise BadInput("it says who is better over seeds", place="--pairs", remedy="Give --seeds N as well")
    # exact numbers of a long run may have more digits than Python prints by default
    sys.set_int_max_str_digits(0)
    problem, how = READERS[found](file, context.params, playing)
    policies, others = compared_policies(policy_names, decided_on(problem), problem)
    wanted = wanted_properties(property_names, problem)
    names = [each.name for each in policies]
    if why not in (None, EVERY, *names):
        raise BadInput(f"{why} is not compared", place="--why", remedy=f"Here: {', '.join(names)}; or leave it out")
    usual = BATCH_LIMIT if isinstance(problem, Batch) else None
    searched = seconds if usual is None or "seconds" in given else usual
    effort = Effort(evaluations=evaluations, seed=seed, seconds=searched)
    how |= {"limit": usual if limit is None else limit, "effort": effort}
    rows, interrupted = _rows(problem, policies, wanted, how)
    if certificates is not None:
        evidence_files.write_certificates(rows, wanted, certificates)
    if html is not None:
        from fairopt.experiment.comparison_page import page  # here, so that a table begins sooner

        write_page(page(problem, rows, wanted, Path(str(file)).name), html)
    if json_:
        said = {row.policy.name: _row_json(problem, row) for row in rows}
        alike = [[row.policy.name for row in group] for group in together(problem, rows)]
        said_of_all = answer(problem, rows, wanted)
        print_json(forms.COMPARISON.json({}, policies=said, answer=said_of_all, alike=alike, left_out=others or ABSENT))
    else:
        comparison_tables.compared(problem, rows, wanted, why or "")
        if allocations:
            tables.allocations(row.outcome for row in rows if row.outcome is not None)
        comparison_tables.left_out(others)
        if took := comparison_tables.seconds_of(rows, wanted):
            print(took, file=sys.stderr)
    if interrupted:
        print(f"interrupted: {len(rows)} of {counted(len(policies), 'policy')} done", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED)
    if any(row.error is not None for row in rows):
        raise typer.Exit(Exit.NOT_SOLVED)
    status = tables.status_of(verdict for row in rows for verdict in row.verdicts.values())
    raise typer.Exit(Exit.FINE if status is Exit.FAILS else status)


def _given(context: typer.Context) -> set[str]:
    """Return the names of the parameters that somebody gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _refuse_strange(context: typer.Context, file: Path, found: str, given: set[str]) -> None:
    """Refuse a file on which nothing is compared, and an option that means nothing for its type."""
    if found not in OPTIONS:
        raise BadInput(f"it is a {found}", place=str(file), remedy="Give a market, a batch, or a trace with --cluster")
    for options in OPTIONS.values():
        if strange := sorted((options - OPTIONS[found]) & given):
            called = {each.name: each.opts[0] for each in context.command.params}
            raise BadInput(f"it means nothing for a {found}", place=called[strange[0]], remedy="Leave it out")


#: What is not asked of a comparison over seeds.
_NOT_SEEDED = {"property_names": "--property", "limit": "--time-limit", "why": "--why", "html": "--html"}


def _rows(
    problem: Any, policies: Sequence[Policy], wanted: Sequence[Property], how: Mapping[str, Any]
) -> tuple[list[Any], bool]:
    """Return the rows, and whether somebody interrupted: what is computed is kept."""
    rows: list[Row[Any]] = []
    try:
        known = partial(comparison_tables.table, problem, rows, wanted)
        with tables.progress(len(policies) * (1 + len(wanted)), known) as advance:
            told = {"watch": lambda policy, cell: advance(policy.name, cell)}
            for row in compared(problem, policies, wanted, **told, **how):
                rows.append(row)
    except KeyboardInterrupt:
        return rows, True
    return rows, False


def _market(file: Path, given: Mapping[str, Any], _: Playing) -> tuple[Market, dict[str, Any]]:
    """Return a market, and how it is decided: see `fairopt.compare.compare`."""
    evidence_files.require_empty(given["certificates"])
    market = read_market(file, given["types"] or ())
    market = ranged(market.normalised() if given["normalise"] else market, given["error"])
    return market, {"exact": not given["floats"], "unique": given["unique"], "every_optimum": given["every_optimum"]}


def _setting(file: Path, given: Mapping[str, Any], playing: Playing) -> tuple[Setting, dict[str, Any]]:
    if given["cluster"] is None:
        raise BadInput(
            f"{file} is a trace, and nothing says on which cluster it is played",
            place="--cluster",
            remedy="Give a cluster file: fairopt compare TRACE --cluster FILE",
        )
    trace, cluster = read_trace_on(file, given["cluster"])
    setting = Setting(cluster, trace, playing.mechanics, exact(playing.length, "--length"))
    return setting.as_(float) if given["floats"] else setting, {"rounds": playing.rounds}


def _batch(file: Path, given: Mapping[str, Any], _: Playing) -> tuple[Batch, dict[str, Any]]:
    return read_batch(file), {}


#: What reads a problem, by type of file.
READERS: Mapping[str, Callable[[Path, Mapping[str, Any], Playing], tuple[Any, dict[str, Any]]]] = MappingProxyType(
    {"market": _market, "trace": _setting, "batch": _batch}
)
_SEARCH = frozenset({"evaluations", "seed", "seconds"})
_OF_MARKETS = ("normalise", "unique", "every_optimum", "certificates", "allocations", "floats", "error", "types")
#: The options that not every type of file has, by type.
OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "market": _SEARCH | {*_OF_MARKETS},
        "trace": frozenset({"floats", "cluster", "seeds", "pairs", *(each.name for each in fields(Playing))}),
        "batch": _SEARCH,
    }
)


# -- what --json prints -----------------------------------------------------------------------------------------------
@singledispatch
def _row_json(problem: Any, row: Row[Any]) -> dict[str, Any]:
    """Return what ``compare`` says of a policy on a problem: a `Market`, a `Setting` or a `Batch`."""
    raise TypeError(f"there is no form for a {type(problem).__name__}")


@_row_json.register(Market)
def _(market: Market, row: Row[Any]) -> dict[str, Any]:
    if row.outcome is not None:
        said = forms.decision(row.outcome, row.unique)
    elif isinstance(row.error, NotSolved):
        said = forms.unsolved(row.policy, market, row.error)
    else:
        said = {"status": "failed"}
    over = {name: {"by_optimum": plain(each)} for name, each in row.over_optima.items()}
    verdicts = {name: {**verdict.to_json(), **over.get(name, {})} for name, verdict in row.verdicts.items()}
    return _row(row, **said, properties=verdicts, metrics=row.metrics or {})


@_row_json.register(Setting)
def _(setting: Setting, row: Row[Any]) -> dict[str, Any]:
    """Return its measures in floats and counts, with their units."""
    done = row.metrics.jobs == len(setting.trace.jobs) and not row.metrics.unfinished
    status = "failed" if row.error is not None else "complete" if done else "stopped"
    return _row(row, status=status, measures={**row.numbers, "units": dict(UNITS)})


@_row_json.register(Batch)
def _(batch: Batch, row: Row[Any]) -> dict[str, Any]:
    plan = row.outcome
    if plan is None:
        return _row(row, backend=None, status="failed", measures={})
    measures = {
        **row.numbers,
        "gains": dict(zip(batch.tenants, plan.gains, strict=True)),
        "unscheduled": [batch.jobs.names[job] for job in plan.unscheduled],
    }
    return _row(row, backend=plan.backend, status="decided", measures=measures)


def _row(row: Row[Any], **said: Any) -> dict[str, Any]:
    """Return what is said of every policy that is compared, whatever it decides on."""
    said = {"properties": row.verdicts, **said, "policy": row.policy.name, "cell_seconds": row.seconds}
    return forms.COMPARED.json({}, **{**said, "error": ABSENT if row.error is None else str(row.error)})

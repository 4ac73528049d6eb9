"""`fairopt compare`: policies side by side on a market, on a trace and a cluster, or on a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer

from fairopt.cli import comparison_tables, completing, evidence_files, forms, tables
from fairopt.cli.exits import Exit
from fairopt.cli.given import Certificates, Error, Normalise, Types, input_file, input_option, ranged
from fairopt.cli.listing import AsJson, PropertyNames, compared_policies, print_json, wanted_policies, wanted_properties
from fairopt.cli.settings import Playing, grouped, read_trace_on
from fairopt.compare import Row
from fairopt.compare import compare as compared
from fairopt.errors import BadInput
from fairopt.policy import Policy
from fairopt.problem import Cluster, Market, Queue, Trace, exact, read_market
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import read_batch
from fairopt.problem.files.storage import file_type
from fairopt.properties import Effort, Property
from fairopt.report import ABSENT
from fairopt.simulation import Setting

#: Seconds for each cell of a batch: the offline optimum of four jobs can take minutes, and of more jobs days.
BATCH_LIMIT = 10.0


@dataclass(frozen=True)
class Searching:
    """How misreports are searched for."""

    evaluations: Annotated[int, typer.Option(metavar="N", help="Misreports to try for each policy.", min=1)] = (
        Effort.evaluations
    )
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search for misreports that pay.", min=0)] = 0
    seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help=f"Most seconds to search for misreports, for each policy; {BATCH_LIMIT:g} of a batch.",
        ),
    ] = 60.0


@dataclass(frozen=True)
class ComparedOnMarket:
    """What is asked of policies on a market."""

    normalise: Normalise = False
    unique: Annotated[bool, typer.Option("--unique", help="Ask whether each decision is the only optimum.")] = False
    every_optimum: Annotated[
        bool, typer.Option("--every-optimum", help="Where optima differ, say what holds for some and for all.")
    ] = False
    certificates: Certificates = None
    allocations: Annotated[bool, typer.Option("--allocations", help="Print each policy's allocation too.")] = False


@dataclass(frozen=True)
class ComparedOnTrace(Playing):
    """How policies of rounds are compared."""

    cluster: Annotated[Path | None, input_option("The cluster file, .toml or .json.", Cluster)] = None
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Play so many traces, it and draws from it, in floats, and say who is better and how sure that is; no "
            "properties.",
            min=3,
        ),
    ] = None


@grouped
def compare(
    context: typer.Context,
    file: Annotated[
        Path,
        input_file(
            "FILE", "A market; a trace, with --cluster; or a batch. The contents say which.", Market, Trace, Batch
        ),
    ],
    policy_names: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="A policy by name; all by default. May be repeated.",
            autocompletion=completing.policies(),
        ),
    ] = None,
    property_names: PropertyNames = None,
    json_: AsJson = False,
    floats: Annotated[bool, typer.Option("--floats", help="Decide in floats, within a tolerance: faster.")] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Most seconds for each cell: a decision, or a property of it; a search has --seconds more. "
            f"By default {BATCH_LIMIT:g} of a batch, else no limit.",
            min=0,
        ),
    ] = None,
    error: Error = None,
    types: Types = None,
    *,
    searching: Searching,
    market: Annotated[ComparedOnMarket, "Of a market: "],
    trace: Annotated[ComparedOnTrace, "Of a trace: "],
) -> None:
    """Decide under every policy and say which properties hold, by how much, and what shows it.

    The table is the answer, whatever it says. Exit status: 3 a policy could not be computed; 4 nothing fails, but a
    property could not be decided; else 0.
    """
    given = _given(context)
    kind = _kind(context, file, given)
    if trace.seeds is not None:
        if strange := sorted(given & _NOT_SEEDED.keys()):
            remedy = "Leave out one of the two"
            raise BadInput("it means nothing with --seeds", place=_NOT_SEEDED[strange[0]], remedy=remedy)
        from fairopt.cli.seeding import seeded  # here, so that the other comparisons begin sooner

        return seeded(file, wanted_policies(policy_names, kind.decided), trace, trace.cluster, trace.seeds, json_)
    # exact numbers of a long run may have more digits than Python prints by default
    sys.set_int_max_str_digits(0)
    problem = kind.read(file, context.params, trace)
    policies, others = compared_policies(policy_names, kind.decided, problem)
    wanted = wanted_properties(property_names, problem)
    searched = searching.seconds if kind.limit is None or "seconds" in given else kind.limit
    effort = Effort(evaluations=searching.evaluations, seed=searching.seed, seconds=searched)
    how = {"effort": effort, "limit": kind.limit if limit is None else limit, **kind.how(context.params)}
    rows, interrupted = _rows(problem, policies, wanted, how)
    if market.certificates is not None:
        evidence_files.write_certificates(rows, wanted, market.certificates)
    if json_:
        said = {row.policy.name: kind.json(row, problem) for row in rows}
        print_json(forms.COMPARISON.json({}, policies=said, left_out=others or ABSENT))
    else:
        kind.table(rows, problem, wanted)
        if market.allocations:
            tables.allocations(row.decision for row in rows if row.decision is not None)
        comparison_tables.left_out(others)
        if took := comparison_tables.seconds_of(rows, wanted):
            print(took, file=sys.stderr)
    if interrupted:
        print(f"interrupted: {len(rows)} of {len(policies)} policies done", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED)
    if any(row.error is not None for row in rows):
        raise typer.Exit(Exit.NOT_SOLVED)
    status = tables.status_of(verdict for row in rows for verdict in row.verdicts.values())
    raise typer.Exit(Exit.FINE if status is Exit.FAILS else status)


def _given(context: typer.Context) -> set[str]:
    """Return the names of the parameters that somebody gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _kind(context: typer.Context, file: Path, given: set[str]) -> ComparedKind:
    """Return what is compared on a file. Errors: `BadInput` for an option that means nothing there."""
    found = file_type(file)
    if found not in KINDS:
        raise BadInput(f"it is a {found}", place=str(file), remedy="Give a market, a batch, or a trace with --cluster")
    kind = KINDS[found]
    for each in KINDS.values():
        if strange := sorted((each.options - kind.options) & given):
            called = {each.name: each.opts[0] for each in context.command.params}
            raise BadInput(f"it means nothing for a {found}", place=called[strange[0]], remedy="Leave it out")
    return kind


#: What is not asked of a comparison over seeds.
_NOT_SEEDED = {"property_names": "--property", "limit": "--time-limit"}


def _rows(
    problem: Any, policies: Sequence[Policy], wanted: Sequence[Property], how: Mapping[str, Any]
) -> tuple[list[Any], bool]:
    """Return the rows, and whether somebody interrupted: what is computed is kept."""
    rows: list[Row] = []
    try:
        with tables.progress(len(policies) * (1 + len(wanted))) as advance:
            told = {"watch": lambda policy, cell: advance(policy.name, cell)}
            for row in compared(problem, policies, wanted, **told, **how):
                rows.append(row)
    except KeyboardInterrupt:
        return rows, True
    return rows, False


class ComparedKind(NamedTuple):
    """One kind of problem on the command line: what decides on it, and how it is read, decided and shown.

    ``limit``: most seconds for each cell, where the user says nothing. ``options``: those that not every kind has.
    ``read`` returns the problem, from its file and the options. ``how`` returns how it is decided, see
    `fairopt.compare.compare`. ``json`` returns what is said of one policy, by its row and the problem. ``table``
    prints the comparison.
    """

    decided: type
    limit: float | None
    options: frozenset[str]
    read: Callable[[Path, Mapping[str, Any], ComparedOnTrace], Any]
    how: Callable[[Mapping[str, Any]], dict[str, Any]]
    json: Callable[[Any, Any], dict[str, Any]]
    table: Callable[[list[Any], Any, Sequence[Property]], None]


def _options(*groups: type) -> frozenset[str]:
    return frozenset(each.name for group in groups for each in fields(group))


def _market(file: Path, given: Mapping[str, Any], _: ComparedOnTrace) -> Market:
    evidence_files.require_empty(given["certificates"])
    market = read_market(file, given["types"] or ())
    return ranged(market.normalised() if given["normalise"] else market, given["error"])


def _setting(file: Path, given: Mapping[str, Any], asked: ComparedOnTrace) -> Setting:
    if asked.cluster is None:
        raise BadInput(
            f"{file} is a trace, and nothing says on which cluster it is played",
            place="--cluster",
            remedy="Give a cluster file: fairopt compare TRACE --cluster FILE",
        )
    trace, cluster = read_trace_on(file, asked.cluster)
    setting = Setting(cluster, trace, asked.mechanics, exact(asked.length, "--length"))
    return setting.as_(float) if given["floats"] else setting


#: By type of file.
KINDS: Mapping[str, ComparedKind] = MappingProxyType(
    {
        "market": ComparedKind(
            Market,
            None,
            _options(Searching, ComparedOnMarket) | {"floats", "error", "types"},
            _market,
            lambda given: {
                "exact": not given["floats"],
                "unique": given["unique"],
                "every_optimum": given["every_optimum"],
            },
            forms.market_row,
            comparison_tables.markets,
        ),
        "trace": ComparedKind(
            Queue,
            None,
            _options(ComparedOnTrace) | {"floats"},
            _setting,
            lambda given: {"rounds": given["rounds"]},
            forms.run_row,
            comparison_tables.runs,
        ),
        "batch": ComparedKind(
            Batch,
            BATCH_LIMIT,
            _options(Searching),
            lambda file, given, _: read_batch(file),
            lambda given: {},
            forms.plan_row,
            comparison_tables.plans,
        ),
    }
)

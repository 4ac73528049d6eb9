"""The command ``lie``: look for a misreport that pays, and shrink it until a person can check it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from fairopt import discovery
from fairopt.cli import tables
from fairopt.cli.evidence_files import write
from fairopt.cli.exits import Exit
from fairopt.cli.given import Columns, Types, input_file
from fairopt.cli.listing import AsJson, policy_option, show
from fairopt.errors import NotCapable
from fairopt.numbers import counted
from fairopt.policy import Policy
from fairopt.problem import Market, market_to_dict
from fairopt.problem.files.market import FORMATS, read_market, require_writable, write_market
from fairopt.problem.files.storage import naming, require_place
from fairopt.properties import Answer, Effort, SlackCase, StrategyProofness, shrinking_misreports
from fairopt.properties.misreports.kinds import REPORTS
from fairopt.report import SCHEMA_KEY, Key, ResultForm

#: The kinds of misreports to look for.
Kind: TypeAlias = Literal["larger", "smaller", "any"]
MISREPORT = ResultForm(
    "A misreport that pays, if one was found.",
    SCHEMA_KEY,
    Key("found", bool, "Whether one was found; that none was proves nothing."),
    Key("effort", str, "What was looked at."),
    beside=[
        Key("policy", str, "The policy."),
        Key("market", dict, "The market, as in a market file."),
        Key("misreport", dict, "Who reports what, and what it gains."),
    ],
)


def lie(
    market: Annotated[Path, input_file("MARKET", "A market file: .toml, .json or .csv.", Market)],
    policy: Annotated[str, policy_option("A policy", Market)],
    kind: Annotated[Kind, typer.Option(help="No entry below the truth, none above it, or any.")] = "any",
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Go on to the smallest market found on which such a lie pays.")
    ] = False,
    evaluations: Annotated[
        int, typer.Option(metavar="N", help="Misreports to try, a third of each kind.", min=1)
    ] = Effort.evaluations,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search.", min=0)] = 0,
    markets: Annotated[int, typer.Option(metavar="N", help="Smaller markets to look at.", min=1)] = 1000,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the proof here.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the market of the lie here.")] = None,
    json_: AsJson = False,
    types: Types = None,
    columns: Columns = None,
) -> None:
    """Search for one misreport of speedups that pays under one policy; `incentives` compares policies and other lies.

    Exit status 1: a lie that pays was found; 0: none was, which proves nothing.
    """
    problem, rule = read_market(market, types or ()), discovery.policy(policy, Market)
    require_place(certificate, "--certificate")
    require_place(out, "--out", FORMATS)
    if out is not None:  # what cannot be written is not searched for
        require_writable(problem, out)
    with tables.working("searching"), naming(market, only="guarantee"):
        found = StrategyProofness().search(rule, problem, effort=Effort(evaluations=evaluations, seed=seed))
    verdict = found.by_misreport[kind]
    if verdict.answer is not Answer.FAILS:
        none = MISREPORT.json(verdict, found=False)
        return show(json_, none, lambda: print(f"no lie that pays was found: {verdict.effort}"))
    witness: SlackCase = verdict.witness
    if shrink:
        if not verdict.exact:
            raise NotCapable("the lie pays in decisions in floats; only one that pays exactly is shrunk")
        problem, witness = _smallest(rule, problem, witness, kind, markets)
    if out is not None:
        write_market(problem, out)
    if certificate is not None:
        from fairopt.evidence import certify_misreport  # here, so that help comes sooner

        write(certify_misreport(rule, problem, witness), certificate)
    said = MISREPORT.json(
        verdict, exact=True, found=True, policy=rule.name, market=market_to_dict(problem), misreport=witness
    )
    show(json_, said, lambda: tables.lie(rule, problem, witness))
    raise typer.Exit(Exit.FAILS)


def _smallest(policy: Policy, market: Market, witness: SlackCase, kind: Kind, markets: int) -> tuple[Market, SlackCase]:
    """Return the smallest market found, with its misreport; an interrupted search returns the best so far."""
    kinds = {each.name: each for each in REPORTS}
    best = market, witness
    try:
        effort = Effort(evaluations=markets)
        found = shrinking_misreports(policy, market, witness, kind=kinds[kind], effort=effort)
        for number, smaller in enumerate(found):
            best = smaller.market, smaller.witness
            if number and sys.stderr.isatty():
                n, k = smaller.market.shape
                print(f"smaller: {counted(n, 'user')}, {counted(k, 'type')}: {smaller.witness}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; the smallest so far:", file=sys.stderr)
    return best

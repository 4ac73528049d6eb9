"""`fairopt solve` and `verify`: allocations of a market's GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairopt import discovery
from fairopt.backends.solver import answers_in_floats
from fairopt.by_name import allocate
from fairopt.cli import evidence_files, forms, tables
from fairopt.cli.given import Columns, Error, Html, Normalise, Types, input_file, ranged, require_page
from fairopt.cli.listing import AsJson, Backend, PropertyNames, outcome_properties, policy_option, print_json
from fairopt.cli.settings import Settings
from fairopt.compare import Row
from fairopt.compare import verify as verified
from fairopt.configuring import configured
from fairopt.deadline import time_limit as within
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.experiment.page import write_page
from fairopt.policy import Allocation, Policy, uniqueness
from fairopt.policy.decision import DecisionReason
from fairopt.policy.optima import UNKNOWN
from fairopt.problem import Market, read_allocation, read_market
from fairopt.problem import exact as rational
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import is_batch_file
from fairopt.problem.files.storage import naming, require_place
from fairopt.problem.gangs import PENDING
from fairopt.problem.ranges import stand_ins
from fairopt.properties import TOLERANCE, AllocationProperty, Answer, Feasibility, ParetoEfficiency
from fairopt.properties.metrics import metrics

if TYPE_CHECKING:
    from fairopt.report import Statement

#: How the name of the record of a run ends.
RECORDS = (".jsonl", ".jsonl.gz")
#: The most gangs that are said to start, to stop or to wait.
GANGS = 12


def solve(
    market: Annotated[Path, input_file("MARKET", "A market file: .toml, .json or .csv.", Market)],
    policy: Annotated[str, policy_option("A policy", Market)],
    backend: Backend = "auto",
    settings: Settings = None,
    json_: AsJson = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide in rational arithmetic; numbers print as p/q.")
    ] = False,
    unique: Annotated[
        bool, typer.Option("--unique", help="Ask whether the allocation is the only optimum: it may take longer.")
    ] = False,
    normalise: Normalise = False,
    error: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="The relative error of the market's speedups, such as 5%. Robust policies and --at-worst use it.",
        ),
    ] = None,
    at_worst: Annotated[
        str | None,
        typer.Option(metavar="USER", help="Say what USER truly gets at least, where reports err within the ranges."),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the proof here, for `fairopt check FILE`; implies --exact."),
    ] = None,
    types: Types = None,
    columns: Columns = None,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Where optima differ, take the lexicographic one.")
    ] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Most seconds to decide.", min=0)] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The solver's feasibility tolerance.", min=0)
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The solver's random seed.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Most threads for the solver.")] = None,
    program: evidence_files.Write = None,
    graphml: evidence_files.GraphML = None,
    html: Html = None,
) -> None:
    """Compute the allocation that one policy decides on a market."""
    if program is not None:
        strange = {"--certificate": certificate, "--at-worst": at_worst, "--graphml": graphml, "--html": html}
        _refuse(strange | {"--unique": unique or None}, "--write solves nothing")
    exact = exact or certificate is not None
    require_place(certificate, "--certificate")
    require_place(graphml, "--graphml")
    require_page(html)
    problem = read_market(market, types or ())
    problem = ranged(problem.normalised() if normalise else problem, error)
    rule = configured(discovery.policy(policy, Market), settings or [])
    if program is not None:
        with naming(market, only="guarantee"):
            return evidence_files.write_program(rule, lambda asked: allocate(rule, problem, asked), program, json_)
    if at_worst is not None and problem.known.all():
        wrong = "no report can err: the market states its speedups without ranges"
        raise BadInput(wrong, place="--at-worst", remedy="Give --error 5%, or ranges in the market")
    asked = "--exact" if certificate is None else "--certificate"
    solver = discovery.solver(rule, backend)
    if exact and solver is not None and answers_in_floats(solver):
        wrong = f"{asked} asks for rational numbers, which {backend!r} does not compute in"
        raise NotCapable(f"{wrong}; leave --backend out, or name exact")
    how: dict[str, Any] = {"time_limit": time_limit, "tolerance": tolerance, "seed": seed, "threads": threads}
    try:
        with tables.working(f"{policy} decides"), naming(market, only="guarantee"):
            decision = allocate(rule, problem, solver, exact=exact, canonical=canonical, **how)
    except NotSolved as error:
        if certificate is not None:
            evidence_files.write_bound(rule, problem, error, certificate)
        if json_:
            print_json(forms.unsolved(rule, problem, error))
        raise
    with tables.working("looking for other optima"):
        only = uniqueness(rule, decision) if unique else None
    worst = None if at_worst is None else _at_worst(rule, problem, at_worst, time_limit)
    if certificate is not None:
        with tables.working("certifying"):
            evidence_files.write(rule.certify(decision), certificate)
    if graphml is not None:
        evidence_files.write_graphs(problem, decision.shares, graphml)
    if html is not None:
        from fairopt.experiment.comparison_page import page  # here, so that a table begins sooner

        got = metrics(problem, decision.shares)
        row = Row(policy=rule, outcome=decision, metrics=got, numbers={"total_efficiency": got.total_efficiency})
        write_page(page(problem, [row], (), market.name), html)
    if json_:
        print_json(forms.decision(decision, only or UNKNOWN, worst, exact=exact))
    else:
        tables.decision(decision, only)
        _gangs(decision)
        fits = Feasibility().check(problem, decision.shares)
        if fits.answer is Answer.FAILS:  # of a policy that somebody else wrote
            tables.say(f"These shares are not feasible: {fits.witness}.")
        if said := stand_ins(problem):
            tables.say(said)
        if worst is not None:
            tables.say(f"{worst}.")


def _gangs(decided: Allocation) -> None:
    """Print which gangs a scheduler's rule starts and stops, and why others wait; of each at most `GANGS`."""
    grounds, owed = decided.evidence, decided.market.entitlements
    if not isinstance(grounds, DecisionReason) or owed is None:
        return
    changes = zip(grounds.gangs.names, owed.gangs.on.tolist(), grounds.gangs.on.tolist(), strict=True)
    starts = {name: owed.types[now] for name, was, now in changes if was == PENDING != now}
    told = (
        ("starts", {name: f"on {kind}" for name, kind in starts.items()}),
        ("stops", grounds.stopped),
        ("waits", {name: why for name, why in grounds.waits.items() if name not in grounds.stopped}),
    )
    for what, rows in told:
        for name, why in islice(rows.items(), GANGS):
            tables.say(f"{what}: {name}: {why}" if what != "starts" else f"{what}: {name} {why}")
        if len(rows) > GANGS:
            tables.say(f"{what}: {len(rows) - GANGS} more: --json has all")


def _at_worst(rule: Policy, market: Market, user: str, time_limit: float | None) -> Statement:
    from fairopt.properties.worst_reports import worst_share  # here, since few ask for it

    with tables.working("trying reports"), within(time_limit), naming(place="--at-worst"):
        return worst_share(rule, market, user)


def verify(
    market: Annotated[
        Path,
        input_file(
            "FILE", "A market; a batch, .toml or .json; or the record of a run, .jsonl or .jsonl.gz.", Market, Batch
        ),
    ],
    allocation: Annotated[
        Path | None,
        input_file(
            "OUTCOME", "Of a market, an allocation by anyone, .csv or .json; of a batch, a schedule by anyone, .json."
        ),
    ] = None,
    property_names: PropertyNames = None,
    json_: AsJson = False,
    error: Error = None,
    tolerance: Annotated[
        float, typer.Option(metavar="NUMBER", help="Relative error that is allowed.", min=0)
    ] = TOLERANCE,
    exact: Annotated[bool, typer.Option("--exact", help="Allow no error, and print numbers as p/q.")] = False,
    certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the evidence here, for `fairopt check DIR`; implies --exact."),
    ] = None,
    types: Types = None,
    columns: Columns = None,
    graphml: evidence_files.GraphML = None,
) -> None:
    """Check an allocation, a schedule or a recorded run, made by anyone.

    Exit status 1: a property or a constraint fails; 4: none fails, but a property could not be decided.
    """
    slack = Fraction(0) if exact or certificates is not None else rational(tolerance, "--tolerance")
    if market.name.endswith(RECORDS):
        strange = {"OUTCOME": allocation, "--certificates": certificates, "--error": error, "--graphml": graphml}
        _refuse(strange, f"{market} is the record of a run")
        return _verify_record(market, property_names, json_=json_, tolerance=slack, exact=exact)
    if allocation is None:
        remedy = "Give an allocation; of a batch, a schedule"
        raise BadInput(f"nothing says what is to be checked on {market}", place="OUTCOME", remedy=remedy)
    if is_batch_file(market):
        _refuse({"--certificates": certificates, "--error": error, "--graphml": graphml}, f"{market} is a batch")
        from fairopt.cli import scheduling  # here, so that the other commands of this file begin sooner

        return scheduling.verify(market, allocation, property_names, json_=json_, tolerance=slack, exact=exact)
    require_place(graphml, "--graphml")
    problem = ranged(read_market(market, types or ()), error)
    shares = read_allocation(allocation, problem)
    asked = outcome_properties(property_names, problem)
    exact = exact or certificates is not None
    evidence_files.require_empty(certificates)
    with tables.working("checking"):
        verdicts = verified(problem, shares, asked, tolerance=slack)
    fits = Feasibility().check(problem, shares, tolerance=slack)
    if fits.answer is Answer.FAILS:  # nothing else means anything if GPUs are given out twice
        verdicts = {Feasibility.name: fits, **verdicts}
    numbers = metrics(problem, shares)
    if certificates is not None:
        certified = [each for each in asked if isinstance(each, AllocationProperty)]
        evidence_files.write_verdicts(problem, shares, verdicts, [*certified, Feasibility()], certificates)
    if graphml is not None:
        evidence_files.write_graphs(problem, shares, graphml)
    if json_:
        print_json(forms.VERIFIED.json({}, properties=verdicts, metrics=numbers, exact=exact))
    else:
        tables.verdicts(verdicts, numbers, problem)
        efficient = verdicts.get(ParetoEfficiency.name)
        feasible = fits.answer is not Answer.FAILS
        inefficient = feasible and efficient is not None and efficient.answer is Answer.FAILS
        if trades := evidence_files.trades_in_words(problem, shares) if inefficient else "":
            tables.say(f"Nobody loses and somebody gains if {trades}.")
    raise typer.Exit(tables.status_of(verdicts.values()))


def _refuse(given: Mapping[str, object], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise BadInput(f"got {value}; {why}", place=name, remedy="Leave it out")


def _verify_record(
    path: Path, property_names: list[str] | None, *, json_: bool, tolerance: Fraction, exact: bool
) -> None:
    """Print the verdicts on a recorded run, as it is recorded; `fairopt check` decides whether it can have been so."""
    from fairopt.simulation import Setting  # here, so that the other commands of this file begin sooner
    from fairopt.simulation.replay import read_record

    of_runs = outcome_properties(property_names, Setting)
    record = read_record(path)
    history = record.history
    setting = Setting(history.cluster, history.trace, record.mechanics, rational(record.run["length"], "length"))
    slack = tolerance if not history.trace.jobs.exact and not exact else Fraction(0)
    with tables.working("checking"):
        verdicts = verified(setting, history, of_runs, tolerance=slack)
    if json_:
        print_json(forms.VERIFIED.json({}, properties=verdicts, exact=exact))
    else:
        tables.answers(verdicts)
        print(f"of the run as it is recorded; `fairopt check {path}` decides whether it can have been so")
    raise typer.Exit(tables.status_of(verdicts.values()))

"""The command ``schedule``: a batch under a policy of schedules; and ``verify`` where it is given a batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import evidence_files, schedule_tables, tables
from fairopt.cli.exits import Exit
from fairopt.cli.forms import POLICY_NAME, SECONDS, VERIFIED
from fairopt.cli.given import input_file
from fairopt.cli.listing import AsJson, Backend, outcome_properties, policy_option, print_json
from fairopt.cli.round_json import OPTIONS_SET
from fairopt.cli.settings import Settings
from fairopt.compare import verify as verified
from fairopt.configuring import configured
from fairopt.errors import BadInput
from fairopt.policy import Plan, decide
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import read_batch
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.schema import check_version
from fairopt.problem.files.storage import naming, read_text
from fairopt.problem.labels import check_keys
from fairopt.problem.numbers import told
from fairopt.program import Number
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.proofs.verifier.plan import BESIDE
from fairopt.report import SCHEMA_KEY, Key, ResultForm, listed
from fairopt.schedules.document import SCHEMA, document, plan_from

#: Keys that a schedule from outside may leave out.
UNTOLD: Mapping[str, Any] = {"schema": SCHEMA, "policy": "unknown", "bases": [], "admissions": [], "payments": []}


SCHEDULE = ResultForm(
    "A plan.",
    SCHEMA_KEY,
    POLICY_NAME,
    Key("batch", dict, "The batch."),
    Key("bases", listed(dict), "The bases of posted prices."),
    Key("schedules", listed(dict), "Which job runs where and when."),
    Key("admissions", listed(dict), "Each decision, in order."),
    Key("payments", listed(dict), "Who pays whom."),
    OPTIONS_SET,
    Key("backend", str | None, "The backend that was asked for, or auto."),
    Key("revenue", Number, "The total utility of the jobs that run."),
    Key("gains", dict[str, Number], "Utility less payments, by tenant."),
    Key("unscheduled", list[str], "The jobs that do not run."),
    Key("proven", str, "What is proven of the plan."),
    Key("seconds", SECONDS, "What it took."),
)


def schedule_command(
    batch: Annotated[Path, input_file("BATCH", "A batch file: .toml or .json.", Batch)],
    policy: Annotated[str, policy_option("A policy of schedules", Batch)],
    settings: Settings = None,
    backend: Backend = "auto",
    json_: AsJson = False,
    program: evidence_files.Write = None,
) -> None:
    """Decide which jobs of a batch run where and when, and which tenant pays which."""
    problem = read_batch(batch)
    rule = configured(discovery.policy(policy, Batch), settings or [])
    if program is not None:
        return evidence_files.write_program(rule, lambda asked: decide(rule, problem, asked), program, json_)
    with tables.working(f"{policy} decides"):
        plan = decide(rule, problem, discovery.solver(rule, backend))
    if json_:
        print_json(result(plan, settings or []))
    else:
        schedule_tables.plan(plan)


def result(plan: Plan, options: list[str]) -> dict[str, Any]:
    """Return what ``schedule --json`` prints: the document that is verified, and derived numbers."""
    return SCHEDULE.json(
        document(plan),
        options=options,
        backend=plan.backend,
        revenue=told(plan.revenue),
        gains=dict(zip(plan.batch.tenants, told(plan.gains), strict=True)),
        unscheduled=[plan.batch.jobs.names[job] for job in plan.unscheduled],
        proven=plan.proven,
        seconds=plan.seconds,
    )


def verify(
    batch: Path, schedule: Path, property_names: list[str] | None, *, json_: bool, tolerance: Fraction, exact: bool
) -> None:
    """Judge anyone's schedule of a batch: its constraints, as `proofs/verify.py`, and if they hold its properties."""
    asked = outcome_properties(property_names, Batch)
    problem = read_batch(batch)
    with naming(str(schedule)):
        data = _judged(problem, parse_json(read_text(schedule)))
        try:
            violations, statement = verify_schedule.decide(json.dumps(data), tolerance)
        except verify_schedule.Unreadable as error:
            raise BadInput(str(error), remedy="`fairopt schedule BATCH --json` shows the form") from error
    # no property means anything of a plan that cannot be carried out
    with tables.working("checking"):
        verdicts = {} if violations else verified(problem, plan_from(data, problem), asked, tolerance=tolerance)
    if json_:
        said = {"accepted": not violations, "violations": violations, "statement": statement or None}
        print_json(VERIFIED.json({}, properties=verdicts, exact=exact, **said))
    else:
        schedule_tables.verdict(violations, statement)
        if verdicts:
            tables.answers(verdicts)
    raise typer.Exit(Exit.FAILS if violations else tables.status_of(verdicts.values()))


def _judged(batch: Batch, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to be verified: the given schedules, on the batch of the batch file."""
    ours = document(Plan(policy="", batch=batch, schedules=()))
    check_keys(data, [*ours, *BESIDE.split()], ["schedules"], "the top level")
    told = {**UNTOLD, **{key: data[key] for key in ours if key in data}}
    check_version(told)
    plain = json.loads(json.dumps(told, default=float))  # decimals, as the floats that they were written for
    if plain.get("batch", ours["batch"]) != ours["batch"]:
        print("fairopt: the schedule was made for another batch; it is judged on this one", file=sys.stderr)
    return {**plain, "batch": ours["batch"]}

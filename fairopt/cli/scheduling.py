"""The command ``schedule``: a batch under a policy of schedules; and ``verify`` where it is given a batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import schedule_tables
from fairopt.cli.exits import Exit
from fairopt.cli.listing import AsJson, print_json
from fairopt.cli.settings import configured
from fairopt.errors import BadInput
from fairopt.policy import Plan, decide
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import read_batch
from fairopt.problem.files.columns import check_version
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.storage import naming, read_text
from fairopt.problem.labels import check_keys
from fairopt.problem.numbers import told
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.proofs.verifier.plan import BESIDE
from fairopt.schedules.document import SCHEMA, document

#: Keys that a schedule from outside may leave out.
UNTOLD: Mapping[str, Any] = {"schema": SCHEMA, "policy": "unknown", "bases": [], "admissions": [], "payments": []}


def schedule_command(
    batch: Annotated[Path, typer.Argument(metavar="BATCH", help="A batch file: .toml or .json.")],
    policy: Annotated[str, typer.Option(help="A policy of schedules by name; `fairopt policies` lists them.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="An option of the policy. May be repeated."),
    ] = None,
    backend: Annotated[str, typer.Option(help="A back end by name; auto: the policy's own choice.")] = "auto",
    json_: AsJson = False,
) -> None:
    """Say which jobs of a batch run where and when, and who pays whom."""
    problem = read_batch(batch)
    rule = configured(discovery.policy(policy, Batch), settings or [])
    plan = decide(rule, problem, discovery.solver(rule, backend))
    if json_:
        print_json(result(plan, settings or []))
    else:
        schedule_tables.plan(plan)


def result(plan: Plan, options: list[str]) -> dict[str, Any]:
    """Return what ``schedule --json`` prints: the document that is verified, and derived numbers.

    Beside the keys of `fairopt.schedules.document`: ``options`` (what --set gave), ``backend``, ``revenue`` (the total
    utility of the jobs that run, counted from their arrivals), ``gains`` of tenants, ``unscheduled`` jobs, ``seconds``.
    """
    return {
        **document(plan),
        "options": options,
        "backend": plan.backend,
        "revenue": told(plan.revenue),
        "gains": dict(zip(plan.batch.tenants, told(plan.gains), strict=True)),
        "unscheduled": [plan.batch.jobs.names[job] for job in plan.unscheduled],
        "proven": plan.proven,
        "seconds": asdict(plan.seconds),
    }


def verify(batch: Path, schedule: Path, *, json_: bool, tolerance: Fraction) -> None:
    """Judge anyone's schedule of a batch, as `proofs/verify.py` does; exit status 1 where it is wrong."""
    problem = read_batch(batch)
    with naming(str(schedule)):
        text = _judged(problem, parse_json(read_text(schedule)))
        try:
            violations, statement = verify_schedule.decide(text, tolerance)
        except verify_schedule.Unreadable as error:
            raise BadInput(str(error), remedy="`fairopt schedule BATCH --json` shows the form") from error
    if json_:
        said = {"schema": SCHEMA, "accepted": not violations, "violations": violations, "statement": statement or None}
        print_json(said)
    else:
        schedule_tables.verdict(violations, statement)
    if violations:
        raise typer.Exit(Exit.FAILS)


def _judged(batch: Batch, data: Mapping[str, Any]) -> str:
    """Return the document to be verified: the given schedules, on the batch of the batch file."""
    ours = document(Plan(policy="", batch=batch, schedules=()))
    check_keys(data, [*ours, *BESIDE.split()], ["schedules"], "the top level")
    told = {**UNTOLD, **{key: data[key] for key in ours if key in data}}
    check_version(told)
    plain = json.loads(json.dumps(told, default=float))  # decimals, as the floats that they were written for
    if plain.get("batch", ours["batch"]) != ours["batch"]:
        print("fairopt: the schedule was made for another batch; it is judged on this one", file=sys.stderr)
    return json.dumps({**plain, "batch": ours["batch"]})

"""Results as JSON for other programs; keys are added, never renamed (``SCHEMA`` is the version)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from fairopt.backends import Highs
from fairopt.cli.settings import options_of
from fairopt.errors import FairoptError, NotSolved
from fairopt.numbers import arithmetic
from fairopt.problem import Market, Queue
from fairopt.problem.batch import Batch
from fairopt.report import plain

if TYPE_CHECKING:
    from fairopt.backends.solution import Solution
    from fairopt.compare import AllocationRow, PlanRow, Row, RunRow
    from fairopt.policy import Allocation, Policy, Uniqueness
    from fairopt.properties import Property, Verdict
    from fairopt.properties.metrics import Metrics
    from fairopt.properties.worst_reports import WorstShare
    from fairopt.simulation import Setting
    from fairopt.workloads import Workload

SCHEMA = 1
#: What policies decide, by the type of their problem.
DECIDES: Mapping[type, str] = {Market: "shares", Queue: "rounds", Batch: "schedules"}


def decision(
    decision: Allocation, unique: Uniqueness, worst: WorstShare | None = None, *, exact: bool = False
) -> dict[str, Any]:
    """Return what ``solve --json`` prints."""
    return {
        "schema": SCHEMA,
        "policy": decision.policy,
        "backend": decision.backend,
        "status": decision.status.value,
        "objective": plain(decision.objective, exact=exact),
        **_names(decision.market),
        "allocation": plain(decision.shares, exact=exact),
        "utilities": plain(decision.utilities, exact=exact),
        "unique": unique.shares,
        "unique_utilities": unique.utilities,
        **({} if worst is None else {"at_worst": plain(worst, exact=exact)}),
        # a method's proof is the evidence, unless the decision has more
        "evidence": plain(decision.evidence or (decision.method and _proven(decision.solution)), exact=exact),
        "solver": None if decision.solver is None else decision.solver.name,
        "proven": plain(_proven(decision.solution), exact=exact),
        "seconds": asdict(decision.seconds),
    }


def _proven(solution: Solution | None) -> dict[str, Any] | None:
    """Return the proven bounds on the optimum, with the multipliers that prove them; None without proof."""
    return None if solution is None or solution.lower is None else solution.summary()


def unsolved(policy: Policy, market: Market, error: NotSolved) -> dict[str, Any]:
    """Return what ``solve --json`` prints when there is no optimum: the status, and the incumbent if there is one."""
    solution = error.solution
    return {
        "schema": SCHEMA,
        "policy": policy.name,
        "backend": solution.backend if solution else None,
        "status": solution.status.value if solution else "failed",
        "raw_status": solution.raw_status if solution else None,
        "objective": plain(solution.objective) if solution else None,
        **_names(market),
        "allocation": None,
        "utilities": None,
        "unique": None,
        "incumbent": plain(solution.values.get("share") if solution.x is None else solution.x) if solution else None,
        "bound": plain(solution.bound) if solution else None,
        "gap": plain(solution.gap) if solution else None,
        "proven": plain(_proven(solution)),
        "conflict": list(solution.conflict) if solution else [],
        "error": str(error),
        "seconds": {"build": 0.0, "solve": solution.seconds if solution else 0.0, "certify": 0.0},
    }


def verdicts(
    verdicts: Mapping[str, Verdict], numbers: Metrics, market: Market, *, exact: bool = False
) -> dict[str, Any]:
    """Return what ``verify --json`` prints."""
    return of_properties(verdicts, exact=exact) | {"metrics": _metrics_json(numbers, market, exact=exact)}


def of_properties(verdicts: Mapping[str, Verdict], *, exact: bool = False) -> dict[str, Any]:
    """Return what ``verify --json`` prints of a recorded run."""
    return {"schema": SCHEMA, "properties": _properties_json(verdicts, exact=exact)}


def table(rows: Mapping[str, Mapping[str, Any]], others: Mapping[str, str]) -> dict[str, Any]:
    """Return what is said of each policy, by name, and why others are left out, where any are."""
    return {"schema": SCHEMA, "policies": dict(rows), **({"left_out": dict(others)} if others else {})}


def market_row(row: AllocationRow, market: Market) -> dict[str, Any]:
    """Return what ``compare`` says of a policy on a market."""
    if row.decision is None:
        return _error_json(row.policy, market, row.error)
    return {
        **decision(row.decision, row.unique),
        "properties": {
            name: {**verdict.to_json(), **_optima_json(row, name)} for name, verdict in row.verdicts.items()
        },
        "metrics": {} if row.metrics is None else _metrics_json(row.metrics, market),
        **_stopped(row),
    }


def run_row(row: RunRow, _: Setting) -> dict[str, Any]:
    """Return what ``compare`` says of a policy's run: its measures in floats and counts, with their units."""
    from fairopt.simulation.measures import UNITS  # here, so that what is about no run begins sooner

    found, history = row.measures, row.history
    done = found.jobs == len(history.trace.jobs) and not found.unfinished
    return {
        "schema": SCHEMA,
        "policy": row.policy.name,
        "status": "failed" if row.error is not None else "complete" if done else "stopped",
        "properties": _properties_json(row.verdicts),
        "measures": {**found.row(), "units": dict(UNITS)},
        **_stopped(row),
    }


def plan_row(row: PlanRow, _: Batch) -> dict[str, Any]:
    """Return what ``compare`` says of a policy on a batch."""
    plan = row.plan
    said: dict[str, Any] = {"schema": SCHEMA, "policy": row.policy.name, "backend": None, "status": "failed"}
    measures: dict[str, Any] = {}
    if plan is not None:
        said |= {"backend": plan.backend, "status": "decided"}
        measures = {
            "jobs_run": len(plan.schedules),
            "revenue": plain(plan.revenue),
            "gains": dict(zip(plan.batch.tenants, plain(plan.gains), strict=True)),
            "unscheduled": [plan.batch.jobs.names[job] for job in plan.unscheduled],
        }
    return {**said, "properties": _properties_json(row.verdicts), "measures": measures, **_stopped(row)}


def _stopped(row: Row) -> dict[str, str]:
    return {} if row.error is None else {"error": str(row.error)}


def _properties_json(verdicts: Mapping[str, Verdict], *, exact: bool = False) -> dict[str, Any]:
    return {name: verdict.to_json(exact=exact) for name, verdict in verdicts.items()}


def _optima_json(row: AllocationRow, name: str) -> dict[str, Any]:
    over = row.over_optima.get(name)
    return {} if over is None else {"by_optimum": {"some": over.some.to_json(), "every": over.every.to_json()}}


def _error_json(policy: Policy, market: Market, error: FairoptError | None) -> dict[str, Any]:
    failed = {"schema": SCHEMA, "policy": policy.name, "status": "failed", "error": str(error)}
    said = unsolved(policy, market, error) if isinstance(error, NotSolved) else failed
    return {**said, "properties": {}, "metrics": {}}


def _names(market: Market) -> dict[str, Any]:
    names: dict[str, Any] = {"users": list(market.users), "types": list(market.types)}
    return names if market.owner == market.users else {**names, "owners": list(market.owner)}


def _metrics_json(numbers: Metrics, market: Market, *, exact: bool = False) -> dict[str, Any]:
    by_user = {
        name: dict(zip(market.users, plain(getattr(numbers, name), exact=exact), strict=True))
        for name in ("efficiency", "ratio_to_equal_split")
    }
    return {
        "total_efficiency": plain(numbers.total_efficiency, exact=exact),
        **by_user,
        "jain_index": plain(numbers.jain_index, exact=exact),
        "utilisation": dict(zip(market.types, plain(numbers.utilisation, exact=exact), strict=True)),
        "price_of_fairness": plain(numbers.price_of_fairness, exact=exact),
    }


def policies(policies: Sequence[Policy]) -> list[dict[str, Any]]:
    """Return what ``policies --json`` prints."""
    return [
        {
            "schema": SCHEMA,
            "name": policy.name,
            "decides": DECIDES[policy.problem],
            "source": policy.source,
            "own_algorithm": bool(policy.methods),
            "methods": [method.name for method in policy.methods],
            "program": policy.has_program,
            "available": bool(policy.methods) or Highs.available(),
            "options": [option._asdict() for option in options_of(policy)],
            "claims": [
                {
                    "property": claim.said(),
                    "checkable": bool(claim.property),
                    "source": claim.source,
                    "assumes": claim.assumes,
                    "misreport": claim.misreport,
                    "refuted": claim.refuted_by is not None,
                }
                for claim in policy.claims
            ],
        }
        for policy in policies
    ]


def workloads(workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Return what ``generate --json`` prints of generators."""
    return [
        {
            "schema": SCHEMA,
            "name": workload.name,
            "about": (getdoc(type(workload)) or "").partition("\n\n")[0].replace("\n", " ").rstrip("."),
            "cluster": workload.home,
            "source": workload.source,
            "options": [option._asdict() for option in options_of(workload)],
        }
        for workload in workloads
    ]


def backends(backends: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what ``backends --json`` prints."""
    return [
        {
            "schema": SCHEMA,
            "name": backend.name,
            "available": backend.available(),
            "missing": list(backend.missing()),
            "capabilities": sorted(capability.name.lower() for capability in backend.capabilities),
            "numbers": arithmetic(backend.number).name,
        }
        for backend in backends
    ]


def properties(properties: Sequence[Property]) -> list[dict[str, Any]]:
    """Return what ``properties --json`` prints."""
    keys = ("name", "of", "definition", "source")
    return [{"schema": SCHEMA} | {key: getattr(each, key) for key in keys} for each in properties]

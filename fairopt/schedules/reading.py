"""A plan from its JSON document: what `fairopt.schedules.document` wrote, or anybody."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairopt.policy import Admission, Payment, Plan
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Number
from fairopt.schedules import Bases


def plan_from(data: Mapping[str, Any], batch: Batch) -> Plan:
    """Return the plan that a document describes, on ``batch``; it is one that `proofs/verify.py` can read there."""
    return Plan(
        policy=data["policy"],
        batch=batch,
        schedules=tuple(_schedule(batch, each) for each in data["schedules"]),
        admissions=tuple(_admission(batch, each) for each in data["admissions"]),
        payments=tuple(_payment(batch, each) for each in data["payments"]),
        evidence=tuple(_bases(each) for each in data["bases"]) or None,
    )


def _schedule(batch: Batch, data: Mapping[str, Any]) -> JobSchedule:
    servers = batch.servers
    return JobSchedule(
        job=batch.jobs.names.index(data["job"]),
        first=data["first"],
        last=data["last"],
        workers=tuple((servers.names.index(name), count) for name, count in data["workers"]),
        ps=tuple((servers.names.index(name), count) for name, count in data["ps"]),
        worker_type=servers.worker_types.index(data["worker_type"]),
        ps_type=servers.ps_types.index(data["ps_type"]),
    )


def _admission(batch: Batch, data: Mapping[str, Any]) -> Admission:
    schedule = None if data["schedule"] is None else _schedule(batch, data["schedule"])
    numbers = {name: _number(data[name]) for name in ("worker_cost", "ps_cost", "utility")}
    return Admission(**{**data, **numbers, "job": batch.jobs.names.index(data["job"]), "schedule": schedule})


def _payment(batch: Batch, data: Mapping[str, Any]) -> Payment:
    numbers = {name: Fraction(data[name]) for name in ("workers", "ps")}
    incomes = tuple(map(Fraction, data["incomes"]))
    return Payment(**{**data, **numbers, "job": batch.jobs.names.index(data["job"]), "incomes": incomes})


def _bases(data: Mapping[str, Any]) -> Bases:
    numbers = {name: tuple(float(Fraction(each)) for each in data[name]) for name in ("workers", "ps")}
    return Bases(**{**data, **numbers})


def _number(given: Any) -> Number:
    return given if isinstance(given, float) else Fraction(given)

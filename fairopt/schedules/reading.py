"""A plan from its JSON document: what `fairopt.schedules.document` wrote, or anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.policy import Admission, Payment, Plan
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Number
from fairopt.schedules.prices import Bases


def plan_from(data: Mapping[str, Any], batch: Batch) -> Plan:
    """Return the plan that a document describes, on ``batch``, whatever batch the document names.

    ``data`` has the keys of `fairopt.schedules.document` and is one that `proofs/verify.py` can read on this batch:
    names are those of the batch, and numbers are integers, strings "p/q" or floats.
    """
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
    return Admission(
        job=batch.jobs.names.index(data["job"]),
        interval=data["interval"],
        round=data["round"],
        own=data["own"],
        schedule=None if data["schedule"] is None else _schedule(batch, data["schedule"]),
        worker_cost=_number(data["worker_cost"]),
        ps_cost=_number(data["ps_cost"]),
        utility=_number(data["utility"]),
        origin=data["origin"],
        admitted=data["admitted"],
    )


def _payment(batch: Batch, data: Mapping[str, Any]) -> Payment:
    return Payment(
        job=batch.jobs.names.index(data["job"]),
        slot=data["slot"],
        workers=Fraction(data["workers"]),
        ps=Fraction(data["ps"]),
        incomes=tuple(map(Fraction, data["incomes"])),
    )


def _bases(data: Mapping[str, Any]) -> Bases:
    return Bases(**{**data, "workers": _numbers(data["workers"]), "ps": _numbers(data["ps"])})


def _numbers(given: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(Fraction(each)) for each in given)


def _number(given: Any) -> Number:
    return given if isinstance(given, float) else Fraction(given)

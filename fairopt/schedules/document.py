"""A plan as one self-contained JSON document, which ``proofs/verify.py`` checks without fairopt.

Its keys:

* ``schema``: 1. ``policy``: name.
* ``batch``: ``worker_types`` and ``ps_types``: each ``name``, ``bandwidth``; ``tenants`` and ``servers``: each
  ``name``, ``workers``, ``ps`` (what it owns or holds, one a type); ``jobs``: each ``name``, ``tenant``, ``arrival``,
  ``epochs``, ``chunks``, ``minibatches``, ``minibatch_time`` (one a worker type), ``update_time`` (one a type of PS),
  ``gradient``, ``utility``: ``form`` and its numbers (linear: ``slope``, ``height``; power: ``scale``, ``exponent``;
  steps: ``values``).
* ``bases``: the bases of posted prices, empty where there are none: each ``interval``, ``rounds``, ``slots``,
  ``workers``, ``ps`` (`Bases`).
* ``schedules``: each ``job``, ``first``, ``last``, ``workers``, ``ps`` (lists [server, how many]), ``worker_type``,
  ``ps_type``, ``together``.
* ``admissions``: each decision in order, with the fields of `Admission`; ``schedule`` as above or null.
* ``payments``: each ``job``, ``slot``, ``workers``, ``ps``, ``incomes`` (one a tenant).

Numbers: an integer or a string "p/q" if exact; else a JSON float (costs at irrational prices), which stands for its
exact value.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairopt.policy import Admission, Payment, Plan
from fairopt.problem.batch import JOB_NUMBERS, Batch, JobSchedule
from fairopt.problem.numbers import told, told_fields
from fairopt.problem.utilities import CompletionUtility, form_of
from fairopt.program import Number
from fairopt.schedules import Bases

SCHEMA = 1


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON. Errors: `BadInput` where a utility is of another class, which no verifier knows."""
    batch = plan.batch
    bases = plan.evidence if isinstance(plan.evidence, tuple) else ()
    return {
        "schema": SCHEMA,
        "policy": plan.policy,
        "batch": _batch(batch),
        "bases": [told(each) for each in bases if isinstance(each, Bases)],
        "schedules": [_schedule(batch, each) for each in plan.schedules],
        "admissions": [_admission(batch, each) for each in plan.admissions],
        "payments": [told_fields(each) | {"job": batch.jobs.names[each.job]} for each in plan.payments],
    }


def _batch(batch: Batch) -> dict[str, Any]:
    jobs = batch.jobs
    return {
        "tenants": _holdings(batch.tenants, batch.worker_quota, batch.ps_quota),
        "worker_types": _types(batch.worker_types, batch.worker_bandwidth),
        "ps_types": _types(batch.ps_types, batch.ps_bandwidth),
        "servers": _holdings(batch.servers, batch.workers, batch.ps),
        "jobs": [
            {
                "name": name,
                "tenant": batch.tenants[jobs.tenant[row]],
                **{key: told(getattr(jobs, key)[row]) for key in JOB_NUMBERS},
                "utility": _utility(name, jobs.utility[row]),
            }
            for row, name in enumerate(jobs.names)
        ],
    }


def _holdings(names: tuple[str, ...], workers: Any, ps: Any) -> list[dict[str, Any]]:
    return [{"name": name, "workers": workers[row].tolist(), "ps": ps[row].tolist()} for row, name in enumerate(names)]


def _types(names: tuple[str, ...], bandwidth: Any) -> list[dict[str, Any]]:
    return [{"name": name, "bandwidth": told(each)} for name, each in zip(names, bandwidth, strict=True)]


def _utility(job: str, utility: CompletionUtility) -> dict[str, Any]:
    form = form_of(utility, f"job {job!r}, utility", "a verifier cannot know a class of your own")
    return {"form": form} | told_fields(utility)


def _schedule(batch: Batch, each: JobSchedule) -> dict[str, Any]:
    return told_fields(each) | {
        "job": batch.jobs.names[each.job],
        "workers": [[batch.servers[server], count] for server, count in each.workers],
        "ps": [[batch.servers[server], count] for server, count in each.ps],
        "worker_type": batch.worker_types[each.worker_type],
        "ps_type": batch.ps_types[each.ps_type],
        "together": each.together,
    }


def _admission(batch: Batch, each: Admission) -> dict[str, Any]:
    schedule = None if each.schedule is None else _schedule(batch, each.schedule)
    return told_fields(each) | {"job": batch.jobs.names[each.job], "schedule": schedule}


def plan_from(data: Mapping[str, Any], batch: Batch) -> Plan:
    """Return the plan that a document describes, on ``batch``; it is one that `proofs/verify.py` can read there."""
    return Plan(
        policy=data["policy"],
        batch=batch,
        schedules=tuple(_read_schedule(batch, each) for each in data["schedules"]),
        admissions=tuple(_read_admission(batch, each) for each in data["admissions"]),
        payments=tuple(_read_payment(batch, each) for each in data["payments"]),
        evidence=tuple(_read_bases(each) for each in data["bases"]) or None,
    )


def _read_schedule(batch: Batch, data: Mapping[str, Any]) -> JobSchedule:
    return JobSchedule(
        job=batch.jobs.names.index(data["job"]),
        first=data["first"],
        last=data["last"],
        workers=tuple((batch.servers.index(name), count) for name, count in data["workers"]),
        ps=tuple((batch.servers.index(name), count) for name, count in data["ps"]),
        worker_type=batch.worker_types.index(data["worker_type"]),
        ps_type=batch.ps_types.index(data["ps_type"]),
    )


def _read_admission(batch: Batch, data: Mapping[str, Any]) -> Admission:
    schedule = None if data["schedule"] is None else _read_schedule(batch, data["schedule"])
    numbers = {name: _read_number(data[name]) for name in ("worker_cost", "ps_cost", "utility")}
    return Admission(**{**data, **numbers, "job": batch.jobs.names.index(data["job"]), "schedule": schedule})


def _read_payment(batch: Batch, data: Mapping[str, Any]) -> Payment:
    numbers = {name: Fraction(data[name]) for name in ("workers", "ps")}
    incomes = tuple(map(Fraction, data["incomes"]))
    return Payment(**{**data, **numbers, "job": batch.jobs.names.index(data["job"]), "incomes": incomes})


def _read_bases(data: Mapping[str, Any]) -> Bases:
    numbers = {name: tuple(float(Fraction(each)) for each in data[name]) for name in ("workers", "ps")}
    return Bases(**{**data, **numbers})


def _read_number(given: Any) -> Number:
    return given if isinstance(given, float) else Fraction(given)

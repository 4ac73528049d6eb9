"""A run as one self-contained JSON document, which ``proofs/verify_run.py`` replays without anything of fairopt.

The document holds what went in (cluster, trace, mechanics, length of a round) and every record that came out. Its keys:

* ``schema``: 1. ``policy``: name. ``length``: of a round, in the trace's unit of time.
* ``mechanics``: ``restart``, ``launch``, ``spread``, ``local_data``; for a model of one's own ``model``, its class,
  besides: the verifier then refuses the document, since it would have to know that class.
* ``cluster``: ``types``, ``memory`` (one a type), ``hosts``: each ``name``, ``type``, ``gpus``, ``bandwidth``.
* ``trace``: ``types``; ``tenants``: each ``name``, ``weight``; ``jobs``, by rising arrival: each ``name``, ``tenant``,
  ``arrival``, ``gpus``, ``work``, ``throughput`` (one a type), ``memory``, ``state_size``, ``pattern``, ``dataset``,
  ``dataset_size``, ``weight``, ``priority``; ``outages``: each ``host``, ``begin``, ``end``.
* ``rounds``: each ``index``, ``begin``, ``end``, ``arrived``, ``ran``, ``waiting``, ``misfits`` (job: reason),
  ``down``, ``usable``, ``costs``, ``notes``, ``backend``, ``seconds``; each of ``ran``: the fields of `Ran`, with
  ``spots`` as lists [host, GPUs].
* ``standing``: how the jobs that are still present stand after the last round: each ``job`` and the fields of
  `Standing`, with ``last`` as lists [host, GPUs].

Numbers: an integer or a string "p/q" where the run was exact, a JSON float where it was not; null is infinity (and, for
``started``, never).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Jobs, Spots, Trace, exact
from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import Ran, Round

SCHEMA = 1


def document(history: History, mechanics: Mechanics, length: object, policy: str) -> dict[str, Any]:
    """Return the JSON document of a run from its beginning; ``length`` is that of a round, as `run` was given it.

    Errors: `BadInput` where the history begins in the middle of a run: what came before cannot be replayed.
    """
    rounds = history.rounds
    first = set(rounds[0].arrived) if rounds else set()
    if rounds and first != {*rounds[0].waiting, *(ran.job for ran in rounds[0].ran)}:
        raise BadInput(
            f"the first record is that of round {rounds[0].index}, and jobs were present before it",
            place="history",
            remedy="Give the records of the whole run, those before the snapshot included",
        )
    return {
        "schema": SCHEMA,
        "policy": policy,
        "length": number(exact(length, "length")),
        "mechanics": _mechanics(mechanics),
        "cluster": _cluster(history.cluster),
        "trace": _trace(history.trace),
        "rounds": [_round(record) for record in rounds],
        "standing": _standing(history),
    }


def number(value: Any) -> int | float | str | None:
    """Return a number as the document holds it; infinity is null, and so is None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    return float(value) if isfinite(value) else None


def numbers(values: Iterable[Any]) -> list[int | float | str | None]:
    """Return numbers as the document holds them."""
    return [number(value) for value in values]


def _mechanics(mechanics: Mechanics) -> dict[str, Any]:
    known = {
        "restart": number(mechanics.restart),
        "launch": number(mechanics.launch),
        "spread": number(mechanics.spread),
        "local_data": mechanics.local_data,
    }
    kind = type(mechanics)
    return known if kind is Mechanics else known | {"model": f"{kind.__module__}.{kind.__qualname__}"}


def _cluster(cluster: Cluster) -> dict[str, Any]:
    columns = zip(cluster.hosts, cluster.kind, cluster.gpus, cluster.bandwidth, strict=True)
    return {
        "types": list(cluster.types),
        "memory": numbers(cluster.memory),
        "hosts": [
            {"name": name, "type": cluster.types[kind], "gpus": int(gpus), "bandwidth": number(bandwidth)}
            for name, kind, gpus, bandwidth in columns
        ],
    }


def _trace(trace: Trace) -> dict[str, Any]:
    jobs = trace.jobs
    return {
        "types": list(jobs.types),
        "tenants": [
            {"name": name, "weight": number(weight)}
            for name, weight in zip(jobs.tenants, jobs.tenant_weight, strict=True)
        ],
        "jobs": [_job(jobs, row) for row in range(len(jobs))],
        "outages": [
            {"host": each.host, "begin": number(each.begin), "end": number(each.end)} for each in trace.outages
        ],
    }


def _job(jobs: Jobs, row: int) -> dict[str, Any]:
    return {
        "name": jobs.names[row],
        "tenant": jobs.tenants[jobs.tenant[row]],
        "arrival": number(jobs.arrival[row]),
        "gpus": int(jobs.gpus[row]),
        "work": number(jobs.work[row]),
        "throughput": numbers(jobs.throughput[row]),
        "memory": number(jobs.memory[row]),
        "state_size": number(jobs.state_size[row]),
        "pattern": jobs.pattern[row].value,
        "dataset": jobs.dataset[row],
        "dataset_size": number(jobs.dataset_size[row]),
        "weight": number(jobs.weight[row]),
        "priority": int(jobs.priority[row]),
    }


def _round(record: Round) -> dict[str, Any]:
    return {
        "index": record.index,
        "begin": number(record.begin),
        "end": number(record.end),
        "arrived": list(record.arrived),
        "ran": [_ran(ran) for ran in record.ran],
        "waiting": list(record.waiting),
        "misfits": dict(record.misfits),
        "down": list(record.down),
        "usable": record.usable,
        "costs": {name: number(value) for name, value in record.costs.items()},
        "notes": dict(record.notes),
        "backend": record.backend,
        "seconds": record.seconds,
    }


def _ran(ran: Ran) -> dict[str, Any]:
    return {
        "job": ran.job,
        "spots": [[host, int(gpus)] for host, gpus in ran.spots],
        "types": list(ran.types),
        "before": list(ran.before),
        "change": ran.change.value,
        "begin": number(ran.begin),
        "end": number(ran.end),
        "setup": number(ran.setup),
        "speed": number(ran.speed),
        "progress": number(ran.progress),
        "remaining": number(ran.remaining),
        "lease": number(ran.lease),
        "completed": bool(ran.completed),
        "lost": bool(ran.lost),
    }


def _standing(history: History) -> list[dict[str, Any]]:
    if not history.rounds:
        return []
    return [
        {
            "job": history.trace.jobs.names[row],
            "remaining": number(each.remaining),
            "attained": number(each.attained),
            "setup": number(each.setup),
            "last": _named(history.cluster, each.last),
            "running": bool(each.running),
            "lease": number(each.lease),
            "started": number(each.started),
        }
        for row, each in history.rounds[-1].after.present.items()
    ]


def _named(cluster: Cluster, spots: Spots) -> list[list[Any]]:
    return [[cluster.hosts[host], int(gpus)] for host, gpus in spots]

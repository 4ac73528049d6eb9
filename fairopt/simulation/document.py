"""A run as one JSON document with the whole record of every round: what ``fairopt run --json`` prints.

It grows with rounds times jobs; `recording` writes the changes only. ``proofs/verify.py`` decides both.

The document holds what went in (cluster, trace, mechanics, length of a round) and every record that came out. Its keys:

* ``schema``: 1. ``policy``: name. ``length``: of a round, in the trace's unit of time.
* ``mechanics``: ``restart``, ``launch``, ``spread``, ``local_data``; for a model of one's own ``model``, its class,
  besides: the verifier then refuses the document, since it would have to know that class.
* ``cluster``: ``types``, ``memory`` (one a type), ``hosts``: each ``name``, ``type``, ``gpus``, ``bandwidth``,
  and where hosts of a type differ in it ``speed``.
* ``trace``: ``types``; ``tenants``: each ``name``, ``weight``; ``jobs``, by rising arrival: each ``name``, ``tenant``,
  ``arrival``, ``gpus``, ``work``, ``throughput`` (one a type), ``memory``, ``state_size``, ``pattern``, ``dataset``,
  ``dataset_size``, ``weight``, ``priority``, and where some job has a profile ``profile``, its index or null; then
  ``profiles``: each ``throughput``, ``efficiency``, ``restart`` (`fairopt.problem.profile`);
  ``outages``: each ``host``, ``begin``, ``end``.
* ``rounds``: each ``index``, ``begin``, ``end``, ``arrived``, ``ran``, ``waiting``, ``unschedulable`` (job: reason),
  ``down``, ``usable``, ``costs``, ``notes``, ``backend``, ``seconds``; each of ``ran``: the fields of `JobRun`, with
  ``spots`` as lists [host, GPUs].
* ``standing``: how the jobs that are still present stand after the last round: each ``job`` and the fields of
  `JobState`, with ``last`` as lists [host, GPUs].

Numbers: an integer or a string "p/q" where the run was exact, a JSON float where it was not; null is infinity (and, for
``started``, never).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Jobs, Trace, exact
from fairopt.problem.numbers import told, told_fields
from fairopt.problem.profile import Profile
from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.record import JobRun, JobState, Round, Snapshot

SCHEMA = 1


def document(history: History, mechanics: Mechanics, length: object, policy: str) -> dict[str, Any]:
    """Return a run's JSON document; ``length`` as `run` has it. Errors: `BadInput` for one without its beginning."""
    rounds = history.rounds
    first = set(rounds[0].arrived) if rounds else set()
    if rounds and first != {*rounds[0].waiting, *(ran.job for ran in rounds[0].ran)}:
        raise BadInput(
            f"the first record is that of round {rounds[0].index}, and jobs were present before it",
            place="history",
            remedy="Give the records of the whole run, those before the snapshot included",
        )
    return {
        **begun(history.trace, history.cluster, mechanics, length, policy),
        "rounds": [round_to_json(record) for record in rounds],
        "standing": standings(rounds[-1].after if rounds else None, history.trace, history.cluster),
    }


def begun(trace: Trace, cluster: Cluster, mechanics: Mechanics, length: object, policy: str) -> dict[str, Any]:
    """Return what a run begins with: the document but for its rounds and standings."""
    return {
        "schema": SCHEMA,
        "policy": policy,
        "length": told(exact(length, "length")),
        "mechanics": mechanics_to_json(mechanics),
        "cluster": cluster_to_json(cluster),
        "trace": trace_to_json(trace, list(jobs_to_json(trace.jobs, range(len(trace.jobs))))),
    }


def round_to_json(record: Round) -> dict[str, Any]:
    """Return the whole record of a round."""
    ran = {"ran": [_run_to_json(each) for each in record.ran]}
    names = (name for name in Round.__dataclass_fields__ if name not in ("policy", "after", "changes"))
    return {name: ran[name] if name in ran else told(getattr(record, name)) for name in names}


def _run_to_json(ran: JobRun) -> dict[str, Any]:
    """Return what `told_fields` would: nothing else is told as often."""
    said = dict(vars(ran))
    for key in _NUMBERS:
        said[key] = told(said[key])
    where = {"spots": [list(each) for each in ran.spots], "types": list(ran.types), "before": list(ran.before)}
    return said | where | {"change": ran.change.value, "completed": bool(ran.completed), "lost": bool(ran.lost)}


_NUMBERS = ("begin", "end", "setup", "speed", "progress", "remaining", "lease")


def standings(after: Snapshot | None, trace: Trace, cluster: Cluster) -> list[dict[str, Any]]:
    """Return how the jobs that are still present stand after the last round."""
    present = {} if after is None else after.present
    return [standing_to_json(trace.jobs.names[row], one, cluster) for row, one in present.items()]


def mechanics_to_json(mechanics: Mechanics) -> dict[str, Any]:
    """Return a model of a cluster by its options, and by its class where that is not `Mechanics`."""
    known = {each.name: told(getattr(mechanics, each.name)) for each in fields(Mechanics) if each.name != "label"}
    kind = type(mechanics)
    return known if kind is Mechanics else known | {"model": f"{kind.__module__}.{kind.__qualname__}"}


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster, host by host."""
    columns = zip(cluster.hosts, cluster.gpu_type, cluster.gpus, cluster.bandwidth, strict=True)
    speeds = [{}] * len(cluster.hosts) if cluster.speed is None else [{"speed": told(each)} for each in cluster.speed]
    return {
        "types": list(cluster.types),
        "memory": told(cluster.memory),
        "hosts": [
            {"name": name, "type": cluster.types[gpu_type], "gpus": int(gpus), "bandwidth": told(bandwidth)} | speed
            for (name, gpu_type, gpus, bandwidth), speed in zip(columns, speeds, strict=True)
        ],
    }


def trace_to_json(trace: Trace, jobs: Any) -> dict[str, Any]:
    """Return a trace with what is to be said of its ``jobs``."""
    whose = zip(trace.jobs.tenants, trace.jobs.tenant_weight, strict=True)
    return {
        "types": list(trace.jobs.types),
        "tenants": [{"name": name, "weight": told(weight)} for name, weight in whose],
        "jobs": jobs,
        "outages": told(trace.outages),
    } | ({"profiles": [profile_to_json(each) for each in trace.jobs.distinct()]} if trace.jobs.profiles else {})


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """Return what a job can do with GPUs, row by row."""
    return {key: told(getattr(profile, key)) for key in ("throughput", "efficiency", "restart")}


def jobs_to_json(jobs: Jobs, rows: range) -> Iterator[dict[str, Any]]:
    """Yield jobs of a trace, the rows from one to another."""
    columns = job_columns(jobs, rows)
    which: dict[int, int | None] = {id(each): at for at, each in enumerate(jobs.distinct())}
    if which:
        which[id(None)] = None
    for row, job in zip(rows, zip(*columns.values(), strict=True), strict=True):
        known = dict(zip(columns, job, strict=True))
        yield known | ({"profile": which[id(jobs.profiles[row])]} if which else {})


def job_columns(jobs: Jobs, rows: range) -> dict[str, list[Any]]:
    """Return what is said of jobs, but for profiles, by name: a list of the values of these rows each."""
    at = slice(rows.start, rows.stop)
    tenants = [jobs.tenants[each] for each in jobs.tenant[at].tolist()]
    own = {name: told(getattr(jobs, name)[at]) for name in _OF_JOB if name != "pattern"}
    own["pattern"] = [each._value_ for each in jobs.pattern[at]]  # as `told` has them, which asks a descriptor
    return {"name": list(jobs.names[at]), "tenant": tenants} | {name: own[name] for name in _OF_JOB}


_OF_JOB = (
    *("arrival", "gpus", "work", "throughput", "memory", "state_size", "pattern", "dataset", "dataset_size"),
    *("weight", "priority"),
)


def standing_to_json(job: str, one: JobState, cluster: Cluster) -> dict[str, Any]:
    """Return how a job stands between two rounds."""
    return {"job": job} | told_fields(one) | {"last": [[cluster.hosts[host], int(gpus)] for host, gpus in one.last]}

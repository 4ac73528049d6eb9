"""Traces as they are written: a CSV text, or a dictionary of the file schema of `fairopt.problem.files.trace`."""

from __future__ import annotations

import csv
import io
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.jobs import Jobs, Pattern
from fairopt.problem.numbers import shown, written
from fairopt.problem.trace import Outage, Trace
from fairopt.program import INFINITY

VERSION = 1


def trace_to_csv(trace: Trace) -> str:
    """Return the CSV text of a trace; `BadInput` where it has what CSV cannot hold."""
    jobs = trace.jobs
    elsewhere = "Write it as .toml or .json"
    if trace.outages:
        raise BadInput(f"{len(trace.outages)} outages", place="outages", remedy=f"{elsewhere}; CSV has jobs only")
    if any(jobs.tenant_weight != 1):
        raise BadInput("weights of tenants", place="tenant_weight", remedy=f"{elsewhere}; CSV has jobs only")
    with_speeds = _has_throughput(jobs)
    tables = [_job(jobs, row, with_speeds) for row in range(len(jobs))]
    for table in tables:
        for key in ("name", "tenant", "dataset"):
            if table.get(key, "") != str(table.get(key, "")).strip():
                raise BadInput(f"the {key} {shown(table[key])}", place=f"job {table['name']!r}", remedy=elsewhere)
    columns = [key for key in _KEYS if any(key in table for table in tables)]
    speeds = [f"throughput {name}" for name in jobs.types] if with_speeds else []
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["job_id" if key == "name" else key for key in columns] + speeds)
    for table in tables:
        writer.writerow([*(table.get(key, "") for key in columns), *table.get("throughput", [])])
    return out.getvalue()


def trace_to_dict(trace: Trace) -> dict[str, Any]:
    """Return the dictionary of the file schema that `trace_from_dict`, with the trace's types, turns back into it."""
    jobs = trace.jobs
    data: dict[str, Any] = {"schema": VERSION}
    with_speeds = _has_throughput(jobs)
    if with_speeds:
        data["types"] = list(jobs.types)
    weights = [
        {"name": name, "weight": written(weight, f"tenant {name!r}, weight")}
        for name, weight in zip(jobs.tenants, jobs.tenant_weight, strict=True)
        if weight != 1
    ]
    if weights:
        data["tenant"] = weights
    data["job"] = [_job(jobs, row, with_speeds) for row in range(len(jobs))]
    if trace.outages:
        data["outage"] = [_outage(each) for each in trace.outages]
    return data


_KEYS = (
    *("name", "tenant", "submit_s", "duration_s", "work", "gpus", "memory", "state_size", "pattern", "dataset"),
    *("dataset_size", "weight", "priority"),
)


def _has_throughput(jobs: Jobs) -> bool:
    return bool((jobs.throughput != 1).any())


def _job(jobs: Jobs, row: int, with_speeds: bool) -> dict[str, Any]:
    """Return the table of one job; what is as it would be without being said is left out."""
    place = f"job {jobs.names[row]!r}"
    table: dict[str, Any] = {
        "name": jobs.names[row],
        "tenant": jobs.tenants[jobs.tenant[row]],
        "submit_s": written(jobs.arrival[row], place),
        ("work" if with_speeds else "duration_s"): written(jobs.work[row], place),
        "gpus": int(jobs.gpus[row]),
    }
    for key, default in (("memory", 0), ("state_size", 0), ("dataset_size", 0), ("weight", 1), ("priority", 0)):
        value = getattr(jobs, key)[row]
        if value != default:
            table[key] = written(value, place)
    if jobs.dataset[row]:
        table["dataset"] = jobs.dataset[row]
    if jobs.pattern[row] is not (Pattern.ALONE if jobs.gpus[row] == 1 else Pattern.INTRA):
        table["pattern"] = jobs.pattern[row].value
    if with_speeds:
        table["throughput"] = [written(speed, place) for speed in jobs.throughput[row]]
    return table


def _outage(outage: Outage) -> dict[str, Any]:
    place = f"outage of {outage.host!r}"
    end = {} if outage.end == INFINITY else {"end": written(outage.end, place)}
    return {"host": outage.host, "begin": written(outage.begin, place), **end}

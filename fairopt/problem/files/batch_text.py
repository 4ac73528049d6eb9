"""Batches as the dictionaries and the text that batch files are made of; the readers are in `batch_files`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.files.toml_json import toml_text
from fairopt.problem.numbers import written
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.program import Array

VERSION = 1
_FORM_OF: Mapping[type[CompletionUtility], str] = MappingProxyType({Linear: "linear", Power: "power", Steps: "steps"})


def batch_to_dict(batch: Batch) -> dict[str, Any]:
    """Return the dictionary of the file schema that `batch_from_dict` turns back into exactly this batch."""
    if not batch.jobs.names:
        raise BadInput("it has no jobs", place="job", remedy="Write a batch with one job at least")
    servers = batch.servers
    return {
        "schema": VERSION,
        "worker_types": list(servers.worker_types),
        "ps_types": list(servers.ps_types),
        "bandwidth": {
            "worker": _plain(servers.worker_bandwidth, "bandwidth, worker"),
            "ps": _plain(servers.ps_bandwidth, "bandwidth, ps"),
        },
        "tenant": [
            {"name": name, "workers": _plain(workers, name), "ps": _plain(ps, name)}
            for name, workers, ps in zip(batch.tenants, batch.worker_quota, batch.ps_quota, strict=True)
        ],
        "server": _groups(batch),
        "job": [_job(batch, row) for row in range(len(batch.jobs))],
    }


def _plain(values: Array, place: str) -> Any:
    """Return a number where there is one type, else a list with one for each."""
    numbers = [written(each, place) for each in values.tolist()]
    return numbers[0] if len(numbers) == 1 else numbers


def _job(batch: Batch, row: int) -> dict[str, Any]:
    jobs, name = batch.jobs, batch.jobs.names[row]
    place, utility = f"job {name!r}", jobs.utility[row]
    if type(utility) not in _FORM_OF:
        raise BadInput(
            f"got a {type(utility).__name__}",
            place=f"{place}, utility",
            remedy="Write it as Steps, slot by slot: a file cannot hold a class of your own",
        )
    numbers = utility.values if isinstance(utility, Steps) else astuple(utility)  # type: ignore[call-overload]
    return {
        "name": name,
        "tenant": batch.tenants[jobs.tenant[row]],
        **{key: int(getattr(jobs, key)[row]) for key in ("arrival", "epochs", "chunks", "minibatches")},
        "minibatch_time": _plain(jobs.minibatch_time[row], f"{place}, minibatch_time"),
        "update_time": _plain(jobs.update_time[row], f"{place}, update_time"),
        "gradient": written(jobs.gradient[row], f"{place}, gradient"),
        "utility": {_FORM_OF[type(utility)]: [written(each, f"{place}, utility") for each in numbers]},
    }


def _groups(batch: Batch) -> list[dict[str, Any]]:
    """Return the groups of servers that stand together, are alike, and have the names that a group gives."""
    servers = batch.servers
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(servers.names):
        base = servers.names[at].removesuffix("-1")
        runs = {"": _alike(batch, at, None)}
        if base != servers.names[at] and base.strip():
            runs[base] = _alike(batch, at, base)
        name, count = max(runs.items(), key=lambda run: run[1])
        if count < 2:
            name, count = servers.names[at], 1
        group: dict[str, Any] = {"name": name} if name else {}
        group["workers"] = _plain(servers.workers[at], servers.names[at])
        group["ps"] = _plain(servers.ps[at], servers.names[at])
        found.append(group | ({"count": count} if count > 1 else {}))
        at += count
    return found


def _alike(batch: Batch, first: int, base: str | None) -> int:
    """Return how many servers from this one on a single group of that name, or of none, stands for."""
    servers, count = batch.servers, 0
    for at in range(first, len(servers.names)):
        called = f"s{at + 1}" if base is None else f"{base}-{count + 1}"
        same = (servers.workers[at] == servers.workers[first]).all() and (servers.ps[at] == servers.ps[first]).all()
        if not same or servers.names[at] != called:
            break
        count += 1
    return count


def _dotted(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the keys of the tables in it written out, "utility.linear"; TOML reads them as tables."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat.update({f"{key}.{below}": each for below, each in inner} or {key: value})
    return flat


def toml_of(data: Mapping[str, Any]) -> str:
    """Return the TOML text of the dictionary of a batch."""
    jobs = [_dotted(job) for job in data["job"]]
    return toml_text(_dotted(data) | {"job": jobs})

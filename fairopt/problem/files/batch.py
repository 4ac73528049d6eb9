"""Batch files: tenants, servers and jobs over time slots, as .toml or .json, read and written by suffix.

::

    schema = 1
    worker_types = ["V100"]         # "worker" and "ps", one type of each, where they are left out
    ps_types     = ["cpu"]

    [bandwidth]                     # what one reserves, in data units per slot; with several types, one for each
    worker = 1
    ps     = 1

    [[tenant]]
    name    = "u1"
    workers = 4                     # its fair share; the tenants' shares add up to what the servers hold
    ps      = 2

    [[server]]
    name    = "s"                   # with a count: s-1, s-2, ...; without a name, s and the server's number
    workers = 2
    ps      = 1
    count   = 4                     # 1 where it is left out

    [[job]]
    name           = "j1"
    tenant         = "u1"
    arrival        = 3              # slot; 0, before the first slot, where it is left out
    epochs         = 2
    chunks         = 3              # of the data set; no more workers than chunks
    minibatches    = 1              # in one chunk
    minibatch_time = 1              # slots on one worker; with several worker types, one for each
    update_time    = 0              # slots on one PS, by type likewise; 0 where it is left out
    gradient       = 0.5            # data units; 0 where it is left out
    utility        = {linear = [-2, 100]}   # k t + g; or {power = [e, kappa]}, or {steps = [value, ...]}

Where there are several types, one number stands for all of them. Numbers are exact: decimals, or strings "p/q".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import partial
from os import fspath
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.batch import JOB_NUMBERS, Batch
from fairopt.problem.checks import listed
from fairopt.problem.cluster import MOST_HOSTS
from fairopt.problem.files.cluster import expanded, grouped
from fairopt.problem.files.schema import (
    NAME,
    NAMES,
    NUMBERS,
    Column,
    TableType,
    ValueType,
    by_type,
    check_unique,
    count,
    document_type,
    json_schema,
    nested,
    number_schema,
    read_document,
    tables,
    write_document,
)
from fairopt.problem.files.storage import AnyPath, file_type, read_file, write_file
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import amount, exact, shown, written
from fairopt.problem.utilities import FORMS, CompletionUtility, Steps, form_of


def _read_utility(value: Any, place: str) -> CompletionUtility:
    """Return the utility that a table of one key describes: its form, with its numbers."""
    if not isinstance(value, Mapping):
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give a table of keys and values")
    check_keys(value, list(FORMS), [], place)
    if len(value) != 1:
        remedy = f"Give one of {', '.join(FORMS)}: linear = [-2, 100]"
        raise BadInput(f"{len(value)} forms", place=place, remedy=remedy)
    form, numbers = next(iter(value.items()))
    given, kind = listed(numbers, f"{place}, {form}"), FORMS[form]
    if kind is not Steps and len(given) != 2:
        raise BadInput(f"{len(given)} numbers", place=f"{place}, {form}", remedy="Give 2")
    read = [exact(each, f"{place}, {form}, number {at}") for at, each in enumerate(given, start=1)]
    try:
        return Steps(tuple(read)) if kind is Steps else kind(*read)
    except BadInput as error:  # it knows what is wrong, and we know where
        raise BadInput(error.problem, place=f"{place}: {error.place}", remedy=error.remedy) from error


def _written_utility(utility: Any, place: str) -> dict[str, Any]:
    form = form_of(utility, place, "a file cannot hold a class of your own")
    numbers = utility.values if isinstance(utility, Steps) else astuple(utility)
    return {form: [written(each, place) for each in numbers]}


def _read_types(values: Any, place: str) -> list[str]:
    names: list[str] = NAMES.read(values, place)
    if not names:
        raise BadInput("no types", place=place, remedy="Give at least one, or leave the key out")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{shown(twice)} stands twice", place=place, remedy="Give each type a name of its own")
    return names


_TYPES = ValueType(_read_types, NAMES.write, NAMES.schema)
_FORM_SCHEMAS = {form: {"type": "array", "minItems": 1, "items": number_schema()} for form in FORMS}
_UTILITY = ValueType(
    _read_utility,
    _written_utility,
    {"type": "object", "properties": _FORM_SCHEMAS, "minProperties": 1, "maxProperties": 1},
)
_AMOUNT = ValueType(amount, written, NUMBERS.schema["items"])
_ABOVE = ValueType(partial(amount, above=True), written, NUMBERS.schema["items"])
_DEFAULT_TYPES = (("worker",), ("ps",))


def batch_table(worker_types: Sequence[str], ps_types: Sequence[str]) -> TableType:
    """Return the columns of a batch file whose numbers are by these types."""
    owned = (
        Column("workers", by_type(count(0), worker_types), "Workers, one number or one for each worker type."),
        Column("ps", by_type(count(0), ps_types), "Parameter servers (PS), one number or one for each type of PS."),
    )
    bandwidth = (
        Column("worker", by_type(_ABOVE, worker_types), "What a worker reserves, in data units per slot."),
        Column("ps", by_type(_ABOVE, ps_types), "What a PS reserves, in data units per slot."),
    )
    tenant = (Column("name", NAME, "The name of the tenant, which no other has."), *owned)
    server = (
        Column("name", NAME, "The server's name; with a count, servers are called name-1, name-2, ...", None),
        *owned,
        Column("count", count(), "How many servers of this kind there are.", 1),
    )
    job = (
        Column("name", NAME, "The name of the job, which no other has."),
        Column("tenant", NAME, "The tenant whose job it is."),
        Column("arrival", count(0), "The slot in which it arrives.", 0),
        Column("epochs", count(), "Epochs of training."),
        Column("chunks", count(), "Chunks of its data set, and the most workers that it can use."),
        Column("minibatches", count(), "Mini-batches in one chunk."),
        Column("minibatch_time", by_type(_ABOVE, worker_types), "Slots that a worker takes for a mini-batch."),
        Column("update_time", by_type(_AMOUNT, ps_types), "Slots that a PS takes for an update.", [0] * len(ps_types)),
        Column("gradient", _AMOUNT, "Size of its gradients, in data units.", 0),
        Column("utility", _UTILITY, "What completing it is worth, by the slots that it takes."),
    )
    return document_type(
        Column("worker_types", _TYPES, "The names of the worker types.", _DEFAULT_TYPES[0]),
        Column("ps_types", _TYPES, "The names of the types of PS.", _DEFAULT_TYPES[1]),
        Column("bandwidth", nested(TableType(bandwidth)), "What one worker and one PS reserve."),
        Column("tenant", tables(TableType(tenant, "tenants")), "The tenants and what each owns."),
        Column("server", tables(TableType(server, "servers", MOST_HOSTS)), "The servers, in groups of the same kind."),
        Column("job", tables(TableType(job, "jobs")), "The jobs."),
    )


def batch_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of batch files, for other programs."""
    about = "Tenants, servers with workers and parameter servers, and jobs over time slots."
    return json_schema(batch_table(*_DEFAULT_TYPES), "batch", about)


def read_batch(path: AnyPath) -> Batch:
    """Return the batch in a .toml or .json file. Errors: `BadInput` naming the file, the place, and the remedy.

    >>> from fairopt.datasets import dataset_path
    >>> read_batch(dataset_path("astraea_example.toml"))
    <Batch: 4 jobs of 2 tenants on 4 servers>
    """
    return read_file(path, batch_from_dict)


def write_batch(batch: Batch, path: AnyPath) -> None:
    """Write a batch so that `read_batch` gives it back exactly; an existing file is replaced.

    Errors: `BadInput` for another suffix, a batch without jobs, and a utility of a class of one's own.
    """
    write_file(path, batch, batch_to_dict)


def is_batch_file(path: AnyPath) -> bool:
    """Whether a .toml or .json file describes a batch: it has servers. Errors as `read_batch`, where it is neither."""
    return str(fspath(path)).lower().endswith((".toml", ".json")) and file_type(path) == "batch"


def batch_from_dict(data: Mapping[str, Any]) -> Batch:
    """Return the batch that a dictionary of the file schema describes."""
    worker_types, ps_types = (
        _read_types(data[key], key) if isinstance(data, Mapping) and key in data else list(default)
        for key, default in zip(("worker_types", "ps_types"), _DEFAULT_TYPES, strict=True)
    )
    top = read_document(data, "batch", batch_table(worker_types, ps_types))
    tenants, jobs = top["tenant"], top["job"]
    check_unique(tenants, "tenant")
    check_unique(jobs, "job")
    owners = [tenant.name for tenant in tenants]
    for job in jobs:
        if job["tenant"] not in owners:
            remedy = nearest(job["tenant"], owners, "tenant")
            raise BadInput(f"got {shown(job['tenant'])}", place=job.place_of("tenant"), remedy=remedy)
    servers = list(expanded(top["server"], "server", lambda _: "s"))
    return Batch.of(
        worker_types=worker_types,
        ps_types=ps_types,
        worker_bandwidth=top["bandwidth"]["worker"],
        ps_bandwidth=top["bandwidth"]["ps"],
        worker_quota={tenant.name: tenant["workers"] for tenant in tenants},
        ps_quota={tenant.name: tenant["ps"] for tenant in tenants},
        servers=[name for _, name in servers],
        workers=[server["workers"] for server, _ in servers],
        ps=[server["ps"] for server, _ in servers],
        names=[job.name for job in jobs],
        **{key: [job[key] for job in jobs] for key in _JOB_COLUMNS},
    )


#: The columns of jobs, besides their names.
_JOB_COLUMNS = ("tenant", *JOB_NUMBERS, "utility")


def batch_to_dict(batch: Batch) -> dict[str, Any]:
    """Return the dictionary of the file schema that `batch_from_dict` turns back into exactly this batch."""
    if not batch.jobs.names:
        raise BadInput("it has no jobs", place="job", remedy="Write a batch with one job at least")
    jobs = batch.jobs
    workers, ps = batch.workers.tolist(), batch.ps.tolist()
    columns = {key: _listed(getattr(jobs, key)) for key in _JOB_COLUMNS}
    columns["tenant"] = [batch.tenants[owner] for owner in jobs.tenant]
    quotas = zip(batch.tenants, batch.worker_quota.tolist(), batch.ps_quota.tolist(), strict=True)
    top = {
        "worker_types": batch.worker_types,
        "ps_types": batch.ps_types,
        "bandwidth": {"worker": batch.worker_bandwidth, "ps": batch.ps_bandwidth},
        "tenant": [{"name": name, "workers": owned, "ps": also} for name, owned, also in quotas],
        "server": [
            {"name": name, "workers": workers[at], "ps": ps[at], "count": many}
            for at, many, name in grouped(batch.servers, list(map(str, zip(workers, ps, strict=True))), "s")
        ],
        "job": [{"name": name} | {key: columns[key][row] for key in columns} for row, name in enumerate(jobs.names)],
    }
    return write_document(top, batch_table(batch.worker_types, batch.ps_types))


def _listed(column: Any) -> list[Any]:
    return list(column) if isinstance(column, tuple) else list(column.tolist())

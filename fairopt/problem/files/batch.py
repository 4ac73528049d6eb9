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

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.checks import MOST_ROWS, check_name, listed
from fairopt.problem.cluster import MOST_HOSTS
from fairopt.problem.columns import amounts, checked_counts
from fairopt.problem.files.batch_text import batch_to_dict, toml_of
from fairopt.problem.files.market import read_text, suffix_of, write_text
from fairopt.problem.files.market_schema import check_table, check_version, named, naming, tables
from fairopt.problem.files.toml_json import json_text, parse_json, parse_toml
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import exact, shown
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps

_TOP = ("schema", "worker_types", "ps_types", "bandwidth", "tenant", "server", "job")
_BANDWIDTH = ("worker", "ps")
_TENANT = ("name", "workers", "ps")
_SERVER = ("name", "workers", "ps", "count")
#: What a key of a job that is not there means.
_BLANK: Mapping[str, object] = MappingProxyType({"arrival": 0, "update_time": 0, "gradient": 0})
_WANTED = ("name", "tenant", "epochs", "chunks", "minibatches", "minibatch_time", "utility")
_JOB = (*_WANTED, *_BLANK)
_READERS = MappingProxyType({".toml": parse_toml, ".json": parse_json})
_WRITERS = MappingProxyType({".toml": toml_of, ".json": json_text})


class _Form(NamedTuple):
    """A form of utility: what makes it from its numbers, and how many these are; None for one or more."""

    make: Callable[..., CompletionUtility]
    numbers: int | None


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "linear": _Form(Linear, 2),
        "power": _Form(Power, 2),
        "steps": _Form(lambda *values: Steps(values), None),
    }
)


def read_batch(path: str | PathLike[str]) -> Batch:
    """Return the batch in a .toml or .json file; decimals are read exactly.

    Errors: `BadInput` that names the file, the tenant, server or job, the key, the value and what to do.
    """
    with naming(str(fspath(path))):
        return batch_from_dict(_READERS[suffix_of(path, _READERS)](read_text(path)))


def write_batch(batch: Batch, path: str | PathLike[str]) -> None:
    """Write a batch so that `read_batch` gives it back exactly; an existing file is replaced.

    Errors: `BadInput` for another suffix, for a batch without jobs, and for a utility of a class of one's own.
    """
    with naming(str(fspath(path))):
        write_text(path, _WRITERS[suffix_of(path, _WRITERS)](batch_to_dict(batch)))


def is_batch_file(path: str | PathLike[str]) -> bool:
    """Whether a .toml or .json file describes a batch: it has servers. Errors as `read_batch`, where it is neither."""
    suffix = str(fspath(path)).lower().rpartition(".")[2]
    if f".{suffix}" not in _READERS:
        return False
    with naming(str(fspath(path))):
        text = read_text(path)
        # a large file of another kind is not read twice
        return "server" in text and "server" in _READERS[f".{suffix}"](text)


def batch_from_dict(data: Mapping[str, object]) -> Batch:
    """Return the batch that a dictionary of the file schema describes."""
    place = "the top level"
    check_table(data, place)
    check_version(data, place)
    check_keys(data, _TOP, ["schema", "bandwidth", "tenant", "server", "job"], place)
    worker_types, ps_types = (_types(data, f"{kind}_types", kind) for kind in _BANDWIDTH)
    bandwidth = _table(data["bandwidth"], "bandwidth")
    check_keys(bandwidth, _BANDWIDTH, _BANDWIDTH, "bandwidth")
    owners = _Tenants(data["tenant"], worker_types, ps_types)
    hosts = _Hosts(data["server"], worker_types, ps_types)
    jobs = _Tasks(data["job"], owners, worker_types, ps_types)
    return Batch.of(
        worker_types=worker_types,
        ps_types=ps_types,
        worker_bandwidth=_numbers(bandwidth["worker"], "bandwidth", "worker", worker_types, above=True),
        ps_bandwidth=_numbers(bandwidth["ps"], "bandwidth", "ps", ps_types, above=True),
        worker_quota=owners.workers,
        ps_quota=owners.ps,
        servers=hosts.names,
        workers=hosts.workers,
        ps=hosts.ps,
        **jobs.columns,
    )


class _Tenants:
    """The tenants' tables, checked one by one; quotas by name."""

    def __init__(self, data: object, worker_types: list[str], ps_types: list[str]) -> None:
        self.workers: dict[str, list[int]] = {}
        self.ps: dict[str, list[int]] = {}
        for at, table in enumerate(tables(data, "tenant", "tenants"), start=1):
            place, name = named(table, f"tenant {at}", _TENANT)
            check_keys(table, _TENANT, _TENANT, place)
            if name in self.workers:
                raise BadInput(
                    "another tenant has the same name", place=place, remedy="Give each tenant a name of its own"
                )
            self.workers[name] = _counts(table["workers"], place, "workers", worker_types)
            self.ps[name] = _counts(table["ps"], place, "ps", ps_types)


class _Hosts:
    """The tables of servers, checked one by one; a row for each server."""

    def __init__(self, data: object, worker_types: list[str], ps_types: list[str]) -> None:
        self.names: list[str] = []
        self.workers: list[list[int]] = []
        self.ps: list[list[int]] = []
        first: dict[str, str] = {}  # where each server's name stands
        for at, table in enumerate(tables(data, "server", "servers"), start=1):
            check_table(table, f"server {at}")
            place = f"server {at} ({shown(table['name'])})" if isinstance(table.get("name"), str) else f"server {at}"
            check_keys(table, _SERVER, ["workers", "ps"], place)
            name = check_name(table["name"], f"{place}, name") if "name" in table else None
            count = int(checked_counts([table.get("count", 1)], [place], "count", "server")[0])
            if len(self.names) + count > MOST_HOSTS:
                raise BadInput(
                    f"{len(self.names) + count} servers up to here",
                    place=f"{place}, count",
                    remedy=f"Give at most {MOST_HOSTS}",
                )
            workers = _counts(table["workers"], place, "workers", worker_types)
            ps = _counts(table["ps"], place, "ps", ps_types)
            for called in _called(name, count, len(self.names)):
                if called in first:
                    raise BadInput(
                        f"a server of {first[called]} is called {shown(called)} too",
                        place=place,
                        remedy="Give each group a name of its own",
                    )
                first[called] = place
                self.names.append(called)
            self.workers += [workers] * count
            self.ps += [ps] * count


def _called(name: str | None, count: int, before: int) -> list[str]:
    """Return the names of a group's servers; ``before`` counts the servers that came earlier."""
    if name is None:
        return [f"s{number}" for number in range(before + 1, before + count + 1)]
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


class _Tasks:
    """The tables of jobs, checked one by one; the columns that `Batch.of` takes."""

    def __init__(self, data: object, owners: _Tenants, worker_types: list[str], ps_types: list[str]) -> None:
        given = tables(data, "job", "jobs")
        if len(given) > MOST_ROWS:
            raise BadInput(f"{len(given)} jobs", place="job", remedy=f"Give at most {MOST_ROWS}")
        names: dict[str, str] = {}
        keys = ("tenant", "arrival", "epochs", "chunks", "minibatches", "minibatch_time", "update_time", "gradient")
        self.columns: dict[str, Any] = {key: [] for key in (*keys, "utility")}
        for at, table in enumerate(given, start=1):
            place, name = named(table, f"job {at}", _JOB)
            check_keys(table, _JOB, _WANTED, place)
            if name in names:
                raise BadInput(
                    f"{names[name]} has the same name", place=place, remedy="Give each job a name of its own"
                )
            names[name] = f"job {at}"
            full = {**_BLANK, **table}
            tenant = check_name(full["tenant"], f"{place}, tenant")
            if tenant not in owners.workers:
                raise BadInput(
                    f"got {shown(tenant)}", place=f"{place}, tenant", remedy=nearest(tenant, owners.workers, "tenant")
                )
            row: dict[str, object] = {"tenant": tenant}
            row["arrival"] = int(checked_counts([full["arrival"]], [place], "arrival", "job", least=0)[0])
            for key in ("epochs", "chunks", "minibatches"):
                row[key] = int(checked_counts([full[key]], [place], key, "job")[0])
            row["minibatch_time"] = _numbers(full["minibatch_time"], place, "minibatch_time", worker_types, above=True)
            row["update_time"] = _numbers(full["update_time"], place, "update_time", ps_types)
            row["gradient"] = amounts([full["gradient"]], [place], "gradient")[0]
            row["utility"] = _utility(full["utility"], f"{place}, utility")
            for key, value in row.items():
                self.columns[key].append(value)
        self.columns["names"] = list(names)


def _table(value: object, place: str) -> Mapping[str, object]:
    check_table(value, place)
    table: Mapping[str, object] = value  # type: ignore[assignment]
    return table


def _types(data: Mapping[str, object], key: str, single: str) -> list[str]:
    if key not in data:
        return [single]
    names = [check_name(name, f"{key}, entry {at}") for at, name in enumerate(listed(data[key], key), start=1)]
    if not names:
        raise BadInput("no types", place=key, remedy="Give at least one, or leave the key out")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{shown(twice)} stands twice", place=key, remedy="Give each type a name of its own")
    return names


def _by_type(value: object, place: str, types: Sequence[str]) -> tuple[list[object], list[str]]:
    """Return one value for each type, a single one for all of them, and what messages call each."""
    given: list[object] = list(value) if isinstance(value, list | tuple) else [value] * len(types)
    if len(given) != len(types):
        raise BadInput(
            f"{len(given)} values for {len(types)} types",
            place=place,
            remedy=f"Give one number, or one for each of {', '.join(types)}",
        )
    return given, [f", type {name!r}" if len(types) > 1 else "" for name in types]


def _counts(value: object, place: str, key: str, types: Sequence[str]) -> list[int]:
    given, called = _by_type(value, f"{place}, {key}", types)
    return [
        int(checked_counts([each], [place], f"{key}{name}", "type", least=0)[0])
        for each, name in zip(given, called, strict=True)
    ]


def _numbers(value: object, place: str, key: str, types: Sequence[str], *, above: bool = False) -> list[object]:
    given, called = _by_type(value, f"{place}, {key}", types)
    return [
        amounts([each], [place], f"{key}{name}", "type", above=above)[0]
        for each, name in zip(given, called, strict=True)
    ]


def _utility(value: object, place: str) -> CompletionUtility:
    """Return the utility that a table of one key describes: its form, with its numbers."""
    table = _table(value, place)
    check_keys(table, list(_FORMS), [], place)
    if len(table) != 1:
        raise BadInput(
            f"{len(table)} forms",
            place=place,
            remedy=f"Give one of {', '.join(_FORMS)}: linear = [-2, 100]",
        )
    form, numbers = next(iter(table.items()))
    given = listed(numbers, f"{place}, {form}")
    make, many = _FORMS[form]
    if many is not None and len(given) != many:
        raise BadInput(f"{len(given)} numbers", place=f"{place}, {form}", remedy=f"Give {many}")
    read = [exact(each, f"{place}, {form}, number {at}") for at, each in enumerate(given, start=1)]
    try:
        return make(*read)
    except BadInput as error:  # it knows what is wrong, and we know where
        raise BadInput(error.problem, place=f"{place}: {error.place}", remedy=error.remedy) from error

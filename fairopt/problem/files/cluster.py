"""Cluster files: hosts in groups, as .toml or .json, read and written by suffix.

::

    schema = 1
    types  = ["K80", "V100"]   # their order; as they first appear, where it is left out

    [[host]]
    name      = "old"          # with a count: old-1, old-2; without a name, the type with a number
    type      = "K80"
    gpus      = 4
    count     = 2              # 1 where it is left out
    memory    = 12             # gigabytes on one GPU, the same for all hosts of a type; no limit where left out
    bandwidth = 1.25           # gigabytes a second between the host and the network; no limit where left out
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.checks import check_name, listed
from fairopt.problem.cluster import MOST_HOSTS, Cluster
from fairopt.problem.columns import checked_counts, positive
from fairopt.problem.files.file_type import check_kind
from fairopt.problem.files.market import read_text, suffix_of, write_text
from fairopt.problem.files.market_schema import check_table, check_version, naming, tables
from fairopt.problem.files.toml_json import json_text, parse_json, parse_toml, toml_text
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown, written
from fairopt.program import INFINITY, Number

VERSION = 1
_TOP = ("schema", "types", "host")
_HOST = ("name", "type", "gpus", "count", "memory", "bandwidth")
_READERS = MappingProxyType({".toml": parse_toml, ".json": parse_json})
_WRITERS = MappingProxyType({".toml": toml_text, ".json": json_text})


def read_cluster(path: str | PathLike[str]) -> Cluster:
    """Return the cluster in a .toml or .json file; decimals are read exactly.

    Errors: `BadInput` that names the file, the group of hosts, the key, the value and what to do.
    """
    with naming(str(fspath(path))):
        return cluster_from_dict(_READERS[suffix_of(path, _READERS)](read_text(path)))


def write_cluster(cluster: Cluster, path: str | PathLike[str]) -> None:
    """Write a cluster so that `read_cluster` gives it back exactly; an existing file is replaced."""
    with naming(str(fspath(path))):
        write_text(path, _WRITERS[suffix_of(path, _WRITERS)](cluster_to_dict(cluster)))


def cluster_from_dict(data: Mapping[str, object]) -> Cluster:
    """Return the cluster that a dictionary of the file schema describes."""
    place = "the top level"
    check_table(data, place)
    check_kind(data, "cluster", place)
    check_version(data, place)
    check_keys(data, _TOP, ["schema", "host"], place)
    groups = tables(data["host"], "host", "groups of hosts")
    given = None
    if "types" in data:
        given = [check_name(name, f"types, entry {at}") for at, name in enumerate(listed(data["types"], "types"), 1)]
    kind: list[str] = []
    gpus: list[int] = []
    names: list[str] = []
    bandwidth: list[Number] = []
    memory: dict[str, tuple[Number, str]] = {}
    first: dict[str, str] = {}  # where each host's name stands
    for at, table in enumerate(groups, start=1):
        group = _Group(table, at)
        group.check(given, memory)
        if len(names) + group.count > MOST_HOSTS:
            raise BadInput(
                f"{len(names) + group.count} hosts up to here", place=group.place, remedy=f"Give at most {MOST_HOSTS}"
            )
        for name in group.names(kind.count(group.kind)):
            if name in first:
                raise BadInput(
                    f"a host of {first[name]} is called {shown(name)} too",
                    place=f"{group.place}, name",
                    remedy="Give each group a name of its own",
                )
            first[name] = group.place
            names.append(name)
        kind += [group.kind] * group.count
        gpus += [group.gpus] * group.count
        bandwidth += [group.bandwidth] * group.count
    limits = {name: limit for name, (limit, _) in memory.items() if limit != INFINITY}
    return Cluster.of(kind, gpus, types=given, memory=limits, bandwidth=bandwidth, hosts=names)


class _Group:
    """One table of hosts, its values checked one by one."""

    def __init__(self, table: Mapping[str, object], at: int) -> None:
        check_table(table, f"host {at}")
        called = table.get("name", table.get("type"))
        self.place = f"host {at} ({shown(called)})" if isinstance(called, str) else f"host {at}"
        check_keys(table, _HOST, ["type", "gpus"], self.place)
        self.kind = check_name(table["type"], f"{self.place}, type")
        self.name = check_name(table["name"], f"{self.place}, name") if "name" in table else None
        self.gpus = self._count(table["gpus"], "gpus")
        self.count = self._count(table["count"], "count") if "count" in table else 1
        self.memory = self._amount(table, "memory")
        self.bandwidth = self._amount(table, "bandwidth")
        self.has_memory = "memory" in table

    def _count(self, value: object, key: str) -> int:
        return int(checked_counts([value], [self.place], key, "host")[0])

    def _amount(self, table: Mapping[str, object], key: str) -> Number:
        if key not in table:
            return INFINITY
        amount: Number = positive([Fraction(0) if table[key] is None else table[key]], [self.place], key, "host")[0]
        return amount

    def check(self, types: list[str] | None, memory: dict[str, tuple[Number, str]]) -> None:
        """Refuse a type that the file does not list, and memory that contradicts another group's."""
        if types is not None and self.kind not in types:
            raise BadInput(
                f"got {shown(self.kind)}", place=f"{self.place}, type", remedy=nearest(self.kind, types, "type")
            )
        before, where = memory.setdefault(self.kind, (self.memory, self.place))
        if before != self.memory:
            raise BadInput(
                f"{_gigabytes(self.memory)} on a GPU of type {shown(self.kind)}; {where} says {_gigabytes(before)}",
                place=f"{self.place}, memory",
                remedy="Give all hosts of a type the same memory, or two types of GPUs two names",
            )

    def names(self, before: int) -> list[str]:
        """Return the names of the group's hosts; ``before`` counts those of its type that came earlier."""
        if self.name is None:
            return [f"{self.kind}-{number}" for number in range(before + 1, before + self.count + 1)]
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


def _gigabytes(amount: Number) -> str:
    return "no limit" if amount == INFINITY else f"{amount} GB"


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return the dictionary of the file schema that `cluster_from_dict` turns back into exactly this cluster.

    Errors: `BadInput` where a type has a memory but no hosts, for which a file has no place.
    """
    empty = [
        name
        for name, limit, gpus in zip(cluster.types, cluster.memory, cluster.capacity, strict=True)
        if not gpus and limit != INFINITY
    ]
    if empty:
        raise BadInput("it has a memory but no hosts", place=f"type {empty[0]!r}", remedy="Leave out one or the other")
    groups: list[dict[str, Any]] = []
    host = 0
    while host < len(cluster.hosts):
        count = _alike(cluster, host)
        name, kind = cluster.hosts[host], int(cluster.kind[host])
        group: dict[str, Any] = {"name": name if count == 1 else name.removesuffix("-1"), "type": cluster.types[kind]}
        group["gpus"] = int(cluster.gpus[host])
        if count > 1:
            group["count"] = count
        for key, amount in (("memory", cluster.memory[kind]), ("bandwidth", cluster.bandwidth[host])):
            if amount != INFINITY:
                group[key] = written(amount, f"host {name!r}, {key}")
        groups.append(group)
        host += count
    return {"schema": VERSION, "types": list(cluster.types), "host": groups}


def _alike(cluster: Cluster, host: int) -> int:
    """Return how many hosts from this one on a single group can name: alike, and numbered from 1."""
    base = cluster.hosts[host].removesuffix("-1")
    if base == cluster.hosts[host] or not base.strip():
        return 1
    same, count = (cluster.kind[host], cluster.gpus[host], cluster.bandwidth[host]), 1
    for other in range(host + 1, len(cluster.hosts)):
        here = (cluster.kind[other], cluster.gpus[other], cluster.bandwidth[other])
        if here != same or cluster.hosts[other] != f"{base}-{count + 1}":
            break
        count += 1
    return count

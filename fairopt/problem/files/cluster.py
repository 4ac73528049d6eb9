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
    rack      = "r1"           # the rack that the hosts stand in; none where left out
    speed     = 0.95           # a factor on the throughput of jobs on these hosts; 1 where left out
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem.cluster import MOST_HOSTS, Cluster
from fairopt.problem.files.schema import (
    NAME,
    NAMES,
    Column,
    ObjectPart,
    TableType,
    count,
    document_type,
    json_schema,
    positive,
    read_document,
    tables,
    write_document,
)
from fairopt.problem.files.storage import AnyPath, read_file, write_file
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import shown
from fairopt.program import INFINITY, Number

HOST = TableType(
    (
        Column("name", NAME, "The host's name; with a count, hosts are called name-1, name-2, ...", None),
        Column("type", NAME, "The type of its GPUs."),
        Column("gpus", count(), "GPUs on each host."),
        Column("count", count(), "How many hosts of this kind there are.", 1),
        Column("memory", positive(), "Gigabytes on one GPU, the same for all hosts of a type.", INFINITY),
        Column("bandwidth", positive(), "Gigabytes a second between the host and the network.", INFINITY),
        Column("rack", NAME, "The rack that the hosts stand in.", None),
        Column("speed", positive(), "A factor on the throughput of jobs on these hosts.", 1),
    ),
    called="groups of hosts",
    most=MOST_HOSTS,
    label=("name", "type"),
)
CLUSTER = document_type(
    Column("types", NAMES, "The names of the GPU types in order; as they first appear where left out.", None),
    Column("host", tables(HOST), "The hosts, in groups of the same kind."),
)


def cluster_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of cluster files, for other programs.

    >>> cluster_schema()["type"]
    'object'
    """
    return json_schema(CLUSTER, "cluster", "Hosts with GPUs of one type each, and what lies between them.")


def read_cluster(path: AnyPath) -> Cluster:
    """Return the cluster in a .toml or .json file. Errors: `BadInput` naming the file, the place, and the remedy.

    Units: gigabytes, and GPUs by host. The format: docs/formats/cluster.md.

    Shapes: those of `Cluster`. Source: the format is ours.

    >>> from fairopt import read_cluster
    >>> from fairopt.datasets import dataset_path
    >>> read_cluster(dataset_path("philly_cluster.toml"))
    <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>
    """
    return read_file(path, cluster_from_dict)


def write_cluster(cluster: Cluster, path: AnyPath) -> None:
    """Write a cluster so that `read_cluster` gives it back exactly; an existing file is replaced.

    Errors: `BadInput` for another suffix, and a path that cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> cluster = Cluster.uniform({"K80": (2, 4)})
    >>> with TemporaryDirectory() as folder:
    ...     write_cluster(cluster, f"{folder}/cluster.toml")
    ...     print(read_cluster(f"{folder}/cluster.toml"))
    <Cluster: 2 hosts, GPUs: 8 K80>
    """
    write_file(path, cluster, cluster_to_dict)


def cluster_from_dict(data: Mapping[str, Any]) -> Cluster:
    """Return the cluster that a dictionary of the file schema describes."""
    top = read_document(data, "cluster", CLUSTER)
    memory: dict[str, ObjectPart] = {}
    for group in top["host"]:
        _check_group(group, top["types"], memory.setdefault(group["type"], group))
    hosts = list(expanded(top["host"], "host", lambda group: f"{group['type']}-"))
    return Cluster.of(
        [group["type"] for group, _ in hosts],
        [group["gpus"] for group, _ in hosts],
        types=top["types"],
        memory={name: group["memory"] for name, group in memory.items() if group["memory"] != INFINITY},
        bandwidth=[group["bandwidth"] for group, _ in hosts],
        hosts=[name for _, name in hosts],
        rack=[group["rack"] or "" for group, _ in hosts],
        speed=[group["speed"] for group, _ in hosts],
    )


def _check_group(group: ObjectPart, types: list[str] | None, before: ObjectPart) -> None:
    """Refuse a type that the file does not list, and memory that contradicts an earlier group of the type."""
    name, memory = group["type"], group["memory"]
    if types is not None and name not in types:
        raise BadInput(f"got {shown(name)}", place=group.place_of("type"), remedy=nearest(name, types, "type"))
    if before["memory"] != memory:
        said = f"{before.place} says {_gigabytes(before['memory'])}"
        raise BadInput(
            f"{_gigabytes(memory)} on a GPU of type {shown(name)}; {said}",
            place=group.place_of("memory"),
            remedy="Give all hosts of a type the same memory, or two types of GPUs two names",
        )


def _gigabytes(amount: Number) -> str:
    return "no limit" if amount == INFINITY else f"{amount} GB"


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return what `cluster_from_dict` turns back into this cluster; `BadInput` where a type has memory but no hosts."""
    for name, limit, gpus in zip(cluster.types, cluster.memory, cluster.capacity, strict=True):
        if not gpus and limit != INFINITY:
            raise BadInput("it has a memory but no hosts", place=f"type {name!r}", remedy="Leave out one or the other")
    groups = []
    racks = cluster.rack or ("",) * len(cluster.hosts)
    speeds = [1] * len(racks) if cluster.speed is None else cluster.speed.tolist()
    columns = (cluster.gpu_type.tolist(), cluster.gpus.tolist(), cluster.bandwidth.tolist(), racks, speeds)
    alike = list(zip(*columns, strict=True))
    for host, many, called in grouped(cluster.hosts, alike):
        kind, gpus, bandwidth, rack, speed = alike[host]
        values = {"name": called, "type": cluster.types[kind], "gpus": gpus, "count": many, "bandwidth": bandwidth}
        groups.append(values | {"memory": cluster.memory[kind], "rack": rack or None, "speed": speed})
    return write_document({"types": cluster.types, "host": groups}, CLUSTER)


# -- groups of hosts that are alike and numbered: "old" with a count of 2 stands for old-1 and old-2 -------------------
def expanded(
    groups: Sequence[ObjectPart], called: str, prefix: Callable[[ObjectPart], str]
) -> Iterator[tuple[ObjectPart, str]]:
    """Yield each group as often as it has hosts, with the host's name; ``called`` is what messages call a host.

    In a group without a name, a host is called ``prefix`` and its number among all hosts of that prefix.
    """
    where: dict[str, str] = {}
    before: Counter[str] = Counter()
    for group in groups:
        name, many = group["name"], group["count"]
        if len(where) + many > MOST_HOSTS:
            remedy = f"Give at most {MOST_HOSTS}"
            raise BadInput(f"{len(where) + many} {called}s up to here", place=group.place_of("count"), remedy=remedy)
        start = f"{name}-" if name else prefix(group)
        first = 1 if name else before[start] + 1
        before[prefix(group)] += many
        for number in range(first, first + many):
            host = name if name and many == 1 else f"{start}{number}"
            if host in where:
                raise BadInput(
                    f"a {called} of {where[host]} is called {shown(host)} too",
                    place=group.place_of("name"),
                    remedy="Give each group a name of its own",
                )
            where[host] = group.place
            yield group, host


def grouped(
    names: Sequence[str], alike: Sequence[Hashable], prefix: str | None = None
) -> Iterator[tuple[int, int, str | None]]:
    """Yield (first host, count, name or None for ``prefix``) of the longest groups of `alike` hosts for `expanded`."""
    at = 0
    while at < len(names):
        runs: list[tuple[int, str | None]] = []
        if prefix is not None:
            runs.append((_run(names, alike, at, prefix, at + 1), None))
        base = names[at].removesuffix("-1")
        if base != names[at] and base.strip():
            runs.append((_run(names, alike, at, f"{base}-", 1), base))
        many, name = max(runs, key=lambda run: run[0], default=(1, None))
        yield (at, many, name) if many > 1 else (at, 1, names[at])
        at += max(many, 1)


def _run(names: Sequence[str], alike: Sequence[Hashable], first: int, start: str, number: int) -> int:
    """Return how many hosts from ``first`` on are alike and called ``start`` with ``number``, ``number`` + 1, ..."""
    for host in range(first, len(names)):
        if alike[host] != alike[first] or names[host] != f"{start}{number + host - first}":
            return host - first
    return len(names) - first

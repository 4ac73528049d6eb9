"""A `Cluster`: hosts with GPUs of one type each, and what lies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic, counted
from fairopt.problem.checks import Frozen, amounts, check_name, checked_counts, checked_names, column, limits, listed
from fairopt.problem.numbers import whole
from fairopt.program import INFINITY, Array, Number, cast

#: More hosts than this are taken for a mistake.
MOST_HOSTS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Cluster(Frozen):
    """The hosts of a cluster, in columns; validated and frozen. Make one with `Cluster.of`, `uniform` or a reader.

    Shapes, for H hosts and k types:

    * ``types`` (k,): names, from the oldest generation to the newest where that matters (Gandiva_fair's rank).
    * ``memory`` (k,): gigabytes on one GPU of a type; infinity where it is not known to bind.
    * ``hosts`` (H,): names. ``gpu_type`` (H,): index of each host's type. ``gpus`` (H,): how many it has.
    * ``bandwidth`` (H,): gigabytes per unit of time between a host and the network; infinity for no limit.
    * ``rack`` (H,): the name of each host's rack, "" for none; () where no host is in one.
    * ``speed`` (H,): a factor on the throughput of jobs on each host, for GPUs of one type that differ; None for 1.

    The unit of time is that of the trace which the cluster is used with: seconds in files. Errors: `BadInput` of the
    functions that make one.

    Source: FFT Sec. 4.1 (M types of Y_i GPUs), 4.2.3 and 4.4.1 (bandwidth, memory); Gandiva_fair Sec. 3.2 (g_l).

    >>> Cluster.uniform({"K80": (2, 4), "V100": (1, 4)}).capacity.tolist()
    [8, 4]
    """

    types: tuple[str, ...]
    memory: Array
    hosts: tuple[str, ...]
    gpu_type: Array
    gpus: Array
    bandwidth: Array
    rack: tuple[str, ...] = ()
    speed: Array | None = None

    @classmethod
    def of(
        cls,
        gpu_type: Sequence[str],
        gpus: Sequence[object],
        *,
        types: Sequence[str] | None = None,
        memory: Mapping[str, object] | None = None,
        bandwidth: Sequence[object] | None = None,
        hosts: Sequence[str] | None = None,
        rack: Sequence[str] | None = None,
        speed: Sequence[object] | None = None,
    ) -> Cluster:
        """Validate and return a cluster; ``gpu_type`` (H,) names each host's type, ``gpus`` (H,) counts its GPUs.

        ``types`` gives the order of types (default: as they first appear), ``memory`` gigabytes by type,
        ``bandwidth`` (H,) gigabytes per unit of time; None or infinity for no limit. ``rack`` (H,) names racks, None or
        "" for none, ``speed`` (H,) factors on throughput.
        Errors: `BadInput` that names the host or type, the value and what to do.
        """
        gpu_types = [str(name) for name in listed(gpu_type, "gpu_type", "names")]
        if not gpu_types:
            raise BadInput("no hosts", place="hosts", remedy="Give at least one host")
        if len(gpu_types) > MOST_HOSTS:
            raise BadInput(counted(len(gpu_types), "host"), place="hosts", remedy=f"Give at most {MOST_HOSTS}")
        wanted = list(dict.fromkeys(gpu_types)) if types is None else types
        order = checked_names(wanted, len(list(wanted)), "type", "T")
        unknown = [name for name in gpu_types if name not in order]
        if unknown:
            raise BadInput(f"got {unknown[0]!r}", place="gpu_type", remedy=f"The types are {', '.join(order)}")
        names = checked_names(hosts, len(gpu_types), "host", "h")
        places = [f"host {name!r}" for name in names]
        given = dict(memory or {})
        strange = given.keys() - set(order)
        if strange:
            raise BadInput(f"got {min(strange)!r}", place="memory", remedy=f"The types are {', '.join(order)}")
        return cls(
            types=order,
            memory=limits([given.get(name) for name in order], [f"type {name!r}" for name in order], "memory", "type"),
            hosts=names,
            gpu_type=np.array([order.index(name) for name in gpu_types], dtype=np.int64),
            gpus=checked_counts(gpus, places, "gpus", "host"),
            bandwidth=limits(bandwidth, places, "bandwidth", "host"),
            rack=_racks(rack, places),
            speed=_speeds(speed, places),
        )

    @classmethod
    def uniform(
        cls,
        hosts: Mapping[str, tuple[int, int]],
        *,
        memory: Mapping[str, object] | None = None,
        bandwidth: object = None,
    ) -> Cluster:
        """Return a cluster of, for each type, (hosts, GPUs on each); ``bandwidth`` is the same for all hosts."""
        for name, (count, _) in hosts.items():
            whole(count, f"hosts of type {name!r}", least=0)
        gpu_type = [name for name, (count, _) in hosts.items() for _ in range(count)]
        gpus = [each for count, each in hosts.values() for _ in range(count)]
        names = [f"{name}-{number}" for name, (count, _) in hosts.items() for number in range(1, count + 1)]
        return cls.of(
            gpu_type, gpus, types=list(hosts), memory=memory, bandwidth=[bandwidth] * len(gpu_type), hosts=names
        )

    def as_(self, number: type | Arithmetic) -> Cluster:
        """Return the same cluster in ``float`` or in ``Fraction``; counts stay integers."""
        speed = None if self.speed is None else cast(self.speed, number)
        return replace(self, memory=cast(self.memory, number), bandwidth=cast(self.bandwidth, number), speed=speed)

    def __repr__(self) -> str:
        parts = [f"{count} {name}" for name, count in zip(self.types, self.capacity.tolist(), strict=True)]
        return f"<Cluster: {counted(len(self.hosts), 'host')}, GPUs: {', '.join(parts)}>"

    @cached_property
    def capacity(self) -> Array:
        """GPUs of each type (k,), every host counted (Y_i)."""
        capacity = self.by_type(self.gpus)
        capacity.setflags(write=False)
        return capacity

    @cached_property
    def type_of(self) -> list[int]:
        """The type of each host (H,), as a list, which is read faster than an array."""
        gpu_types: list[int] = self.gpu_type.tolist()
        return gpu_types

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each host, by name."""
        return {host: number for number, host in enumerate(self.hosts)}

    @cached_property
    def hosts_by_type(self) -> list[Array]:
        """The hosts of each type (k), rising."""
        return [np.flatnonzero(self.gpu_type == gpu_type) for gpu_type in range(len(self.types))]

    def by_type(self, gpus: Array) -> Array:
        """Return the sums by type (k,) of GPUs by host (H,)."""
        return np.bincount(self.gpu_type, weights=gpus, minlength=len(self.types)).astype(np.int64)

    def of_type(self, gpu_type: int) -> list[int]:
        """Return the hosts of a type, by index."""
        return list(self.hosts_by_type[gpu_type].tolist())

    def link(self, hosts: Sequence[int]) -> Number:
        """Return the bandwidth that moving data to or from ``hosts`` has: that of the slowest; infinity for none."""
        least: Number = min((self.bandwidth[host] for host in hosts), default=INFINITY)
        return least


def _racks(rack: Sequence[str] | None, places: Sequence[str]) -> tuple[str, ...]:
    names = column(rack, places, "rack", "host", lambda name, at: check_name(name, at) if name else "", blank="")
    return tuple(names) if any(names) else ()


def _speeds(speed: Sequence[object] | None, places: Sequence[str]) -> Array | None:
    given = amounts(speed, places, "speed", "host", above=True, blank=1)
    return given if (given != 1).any() else None

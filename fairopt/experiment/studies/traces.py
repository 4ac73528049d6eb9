"""Where the traces of a study come from: files and data sets, which seeds resample, and generators, which seeds draw.

The seed 0 of a file or data set is the trace as it is. Any other is a draw from it by a circular block bootstrap:
blocks of jobs that follow each other, with the times between their arrivals, are drawn with replacement until there are
as many jobs as before. What happens within a block, bursts of arrivals and users who send many jobs, stays together.
Source: Politis and Romano, A circular block-resampling procedure for stationary data, 1992; that the blocks are of
jobs, and not of hours, is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from inspect import signature
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.codec import decode
from fairopt.errors import BadInput
from fairopt.experiment.spec import check_entry
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.cluster import read_cluster
from fairopt.problem.files.trace import read_trace
from fairopt.problem.numbers import within
from fairopt.simulation.rounds import check_matches
from fairopt.workloads import WorkEstimates, Workload


@dataclass(frozen=True)
class Source:
    """A trace of a study: a file or data set (@NAME), or a generator with parameters.

    ``jobs``: of a file, so many of the first; ``block``: jobs in a block of a resampled trace, 0 for the square root of
    their number. A generator that draws nothing is resampled where it has a ``block``: seed 0 is its trace, others are
    draws by blocks, and all count alike, as traces of days that are made of such blocks. ``grid``: arrivals are rounded
    up to multiples of this, in which a scheduler sees them; 0 for as they are. ``clusters``: the labels of those that
    it is played on, () for all.
    """

    label: str
    file: str = ""
    generator: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    jobs: int | None = within(None, least=1)
    block: int = within(0, least=0)
    grid: float = within(0, least=0)
    clusters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_entry(self)

    def __hash__(self) -> int:  # parameters are compared, and cannot be hashed
        return hash((self.label, self.file, self.generator))

    @property
    def resampled(self) -> bool:
        """Whether seeds resample one trace, and do not draw independent ones."""
        return bool(self.file)

    def content(self) -> str:
        """Return what decides the traces: a hash of the file, or the generator and its parameters."""
        if self.generator:
            made = type(_generator(self.generator, self.parameters))
            what: tuple[Any, ...] = (
                "generator",
                self.generator,
                sorted(self.parameters.items()),
                origin(made.__module__),
            )
        else:
            what = (_digest(self.file), self.jobs)
        return repr((*what, self.block, self.grid))

    def check(self) -> None:
        """Refuse a file that cannot be read, and a generator that cannot be made. Errors: `BadInput`."""
        if bool(self.file) == bool(self.generator):
            raise BadInput("got both" if self.file else "got neither", remedy="Give file, or generator")
        if self.generator:
            _generator(self.generator, self.parameters)
        else:
            _digest(self.file)


@dataclass(frozen=True)
class Place:
    """A cluster of a study: a file or data set (@NAME), or ``hosts``: for each type [hosts, GPUs on each]."""

    label: str
    file: str = ""
    hosts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.label, self.file))

    @lru_cache(maxsize=64)  # noqa: B019 - there are few
    def made(self) -> Cluster:
        """Return the cluster, in floats. Errors: `BadInput`."""
        if bool(self.file) == bool(self.hosts):
            raise BadInput("got both" if self.file else "got neither", remedy="Give file, or hosts")
        if self.hosts:
            return Cluster.uniform(self.hosts).as_(float)
        made = _data_set(self.file) if self.file.startswith("@") else read_cluster(self.file)
        if not isinstance(made, Cluster):
            raise BadInput(f"{self.file} is a {type(made).__name__}", remedy="Give a cluster")
        return made.as_(float)

    def content(self) -> str:
        """Return what the cluster consists of."""
        made = self.made()  # of which more is known once it has been used
        return repr([np.asarray(getattr(made, each.name)).tolist() for each in fields(made)])


@lru_cache(maxsize=4)
def drawn(source: Source, place: Place, load: float | None, error: WorkEstimates, seed: int) -> Trace:
    """Return the trace of a seed on a cluster, in floats; the policies of a grid share it: common random numbers.

    ``load`` is a factor on the rate of arrivals of a file, and a generator's option of that name; None: its own.
    """
    cluster = place.made()
    if source.generator:
        made = _generator(source.generator, source.parameters if load is None else {**source.parameters, "load": load})
        trace: Trace = made.trace(0 if source.block else seed, cluster).as_(float)
        trace = resample(trace, seed, source.block) if source.block else trace
    else:
        trace = resample(_first(_read(source.file, cluster.types), source.jobs), seed, source.block)
        trace = compress(trace, 1.0 if load is None else load)
    check_matches(trace, cluster)
    return error.applied(seen_at(trace, source.grid), seed)


def seen_at(trace: Trace, grid: float) -> Trace:
    """Return a trace in which jobs arrive at the next multiples of ``grid``; 0: as they do."""
    if not grid:
        return trace
    return Trace(replace(trace.jobs, arrival=np.ceil(trace.jobs.arrival / grid) * grid), trace.outages)


def compress(trace: Trace, load: float) -> Trace:
    """Return a trace in floats in which jobs arrive ``load`` times as fast; outages stay when they are."""
    jobs = trace.as_(float).jobs
    return Trace(replace(jobs, arrival=jobs.arrival / load), trace.outages)


def resample(trace: Trace, seed: int, block: int = 0) -> Trace:
    """Return a trace in floats, drawn from another as this module says; 0 is the trace itself.

    ``block`` is the number of jobs in a block; 0: the square root of their number, rounded up.
    """
    jobs = trace.as_(float).jobs
    count = len(jobs)
    if seed == 0 or count < 2:
        return trace.as_(float)
    length = min(block or ceil(sqrt(count)), count)
    begins = np.random.default_rng(seed).integers(count, size=-(-count // length))
    rows = ((begins[:, None] + np.arange(length)) % count).ravel()[:count]
    gaps = np.diff(jobs.arrival, prepend=0.0)
    gaps[0] = gaps[1:].mean()  # the first job follows the last one in the circle
    arrival = np.cumsum(gaps[rows])
    # each draw of a job is a job of its own
    names = tuple(f"{jobs.names[row]}.{number}" for number, row in enumerate(rows.tolist()))
    return Trace(replace(jobs.take(rows), names=names, arrival=arrival), trace.outages)


def _first(trace: Trace, count: int | None) -> Trace:
    return trace if count is None else Trace(trace.jobs.take(range(min(count, len(trace.jobs)))), trace.outages)


@lru_cache(maxsize=4)
def _read(file: str, types: tuple[str, ...]) -> Trace:
    made = _data_set(file, types) if file.startswith("@") else read_trace(file, types)
    if not isinstance(made, Trace):
        raise BadInput(f"{file} is a {type(made).__name__}", remedy="Give a trace")
    return made


def _data_set(name: str, types: tuple[str, ...] = ()) -> Any:
    made = discovery.load(discovery.DATASETS, name[1:])
    return made(types) if types and signature(made).parameters else made()


@cache
def origin(module: str) -> str:
    """Return the hash of a module that the hash of the code does not cover; "" for those of fairopt that it covers."""
    if module.partition(".")[0] == "fairopt" and not module.startswith("fairopt.benchmarks."):
        return ""
    found = find_spec(module)
    return sha256(Path(found.origin).read_bytes()).hexdigest() if found is not None and found.origin else module


@lru_cache(maxsize=64)
def _digest(file: str) -> str:
    if file.startswith("@"):  # the hash of the code covers fairopt's own
        return file + origin(discovery.load(discovery.DATASETS, file[1:]).__module__)
    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=file, remedy="Give a trace, or @NAME") from error


def _generator(name: str, parameters: Mapping[str, Any]) -> Workload:
    found = discovery.named(name) if ":" in name else discovery.load(discovery.WORKLOADS, name)
    if not (isinstance(found, type) and issubclass(found, Workload) and is_dataclass(found)):
        raise BadInput(f"{name!r} is no generator", remedy="Name a `Workload`, or one that `fairopt generate` lists")
    made: Workload = decode(found, dict(parameters), f"{name}, parameters")
    return made

"""Batches for posted-price packing: workloads with the paper's parameters over Philly's jobs."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fairopt.datasets.tables import dataset_path
from fairopt.errors import BadInput, require
from fairopt.numbers import counted
from fairopt.problem.batch import Batch
from fairopt.problem.numbers import exact
from fairopt.problem.utilities import Linear, Power

#: A slot is an hour.
SECONDS = 3600
#: The start of the dense part of Philly's trace (2017-10-03), in seconds from its first job.
DENSE = 4_888_734
#: Philly's 552 machines by GPUs, as listed: 321 with two of 12 GB, 231 with eight of 24 GB.
MACHINES = ((2, 321), (8, 231))
#: Megabits in a megabyte, and in a gigabit as the paper counts: 5 Gbps are 5 * 1024 Mbps.
MEGABYTE, GIGABIT = 8, 1024
#: A range of equally likely numbers: low, low + step, ..., high.
Span = tuple[str, str, str]


@dataclass(frozen=True)
class Ranges:
    """The ranges of the random parameters of a cluster and its jobs; the ranges are the paper's, the steps are ours.

    Units: ``minibatch_time`` m_j hours, ``update_time`` G_j milliseconds, ``gradient`` epsilon_j megabytes,
    ``worker_bandwidth`` b_w Mbps, ``ps_bandwidth`` b_p Gbps (one of each for a cluster). ``slope`` and ``height`` are
    k_j and g_j of linear utilities, ``scale`` and ``exponent`` e_j and kappa_j of convex ones, in slots.

    Source: Astraea (posted prices) Sec. 5.1.
    """

    epochs: Span = ("50", "100", "1")
    chunks: Span = ("20", "50", "1")
    minibatches: Span = ("10", "50", "1")
    minibatch_time: Span = ("0.001", "0.05", "0.001")
    update_time: Span = ("10", "100", "1")
    gradient: Span = ("30", "575", "1")
    worker_bandwidth: Span = ("100", "5120", "1")
    ps_bandwidth: Span = ("5", "20", "0.1")
    slope: Span = ("-2", "-0.1", "0.01")
    height: Span = ("100", "1000", "1")
    scale: Span = ("100", "1000", "1")
    exponent: Span = ("1", "2", "0.01")


#: The ranges that are drawn from once for a cluster; the others are drawn from for each job, in the order above.
_CLUSTER = ("worker_bandwidth", "ps_bandwidth")
#: A tenth of the epochs and chunks, so that optima can be computed; the paper does not say how it reduced its input.
SMALL = Ranges(epochs=("5", "10", "1"), chunks=("2", "5", "1"))


class _Job(NamedTuple):
    name: str
    tenant: str
    submit: Fraction  # seconds
    gpus: int
    held: Fraction  # GPU-seconds


def astraea_workload(
    *,
    jobs: int = 100,
    servers: int = 100,
    users: int | None = None,
    seed: int = 0,
    ranges: Ranges | None = None,
    convex: bool = False,
    chunks_are_gpus: bool = False,
    data: str | PathLike[str] | None = None,
) -> Batch:
    """Return a batch of consecutive jobs of Philly's trace; data that the trace does not have is random.

    From the trace are the jobs, their tenants and their times of submission: ``jobs`` consecutive jobs of the ``users``
    tenants with the most jobs (None: of all known tenants), starting at a random job. Slot t holds the jobs submitted
    in the t-th hour. A server has one PS and, as workers, the GPUs of one of Philly's machines, two or eight in the
    proportion of all machines. The trace does not say which machines a tenant owned. So servers are dealt out whole,
    in proportion to the GPU-time of the tenants' jobs in the table, at least one to each.

    Sec. 5.1 takes the GPUs that a job asked for as its demand for workers. Here chunks are drawn, and GPUs only
    determine the tenants' shares; with ``chunks_are_gpus`` a job has as many chunks as it had GPUs, and the
    mini-batches drawn are divided among them, so that the work is the same, up to rounding. Utilities are linear, or
    ``convex``: the two forms that Sec. 5 compares.

    ``data``: the folder with jobs_philly.csv.gz, whose jobs from `DENSE` on are used; None for the thousand jobs of
    eight tenants that are part of fairopt. The same arguments give the same batch; the jobs' parameters depend only on
    ``seed``, not on the numbers of servers and users.

    Errors: `BadInput` for more jobs or users than there are, and for fewer servers than users.

    Source: Astraea (posted prices) Sec. 5.1.

    >>> astraea_workload(jobs=50, servers=20, users=5)
    <Batch: 50 jobs of 5 tenants on 20 servers>
    """
    _check(jobs, "jobs")
    _check(servers, "servers")
    drawn = ranges or Ranges()
    table = _excerpt() if data is None else _table(Path(data))
    tenants, used = _tenants(table, users)
    _check(servers, "servers", len(tenants))
    window = _window([job for job in table if job.tenant in used], jobs, Random(f"window {seed}"))
    cluster = Random(f"cluster {seed}")
    workers = _machines(servers, cluster)
    owner = _dealt(servers, [used[name] for name in tenants])
    random = Random(f"jobs {seed}")
    made = [_drawn(job, drawn, random, convex=convex, chunks_are_gpus=chunks_are_gpus) for job in window]
    begin = window[0].submit
    return Batch.of(
        workers=workers,
        ps=[1] * servers,
        worker_quota={
            name: sum(count for count, whose in zip(workers, owner, strict=True) if whose == at)
            for at, name in enumerate(tenants)
        },
        ps_quota={name: owner.count(at) for at, name in enumerate(tenants)},
        worker_bandwidth=_draw(drawn.worker_bandwidth, cluster) * SECONDS,
        ps_bandwidth=_draw(drawn.ps_bandwidth, cluster) * GIGABIT * SECONDS,
        names=[job.name for job in window],
        tenant=[job.tenant for job in window],
        arrival=[ceil((job.submit - begin) / SECONDS) for job in window],
        **{name: [each[name] for each in made] for name in made[0]},
    )


def astraea_small(*, jobs: int = 10, servers: int = 15, seed: int = 0, convex: bool = False) -> Batch:
    """Return a batch of the sizes of Fig. 5 (5 to 15 jobs of two users, 5 to 45 servers), with jobs as in `SMALL`.

    Source: Astraea (posted prices) Sec. 5.2, "Performance Ratio".

    >>> astraea_small(jobs=5, servers=5)
    <Batch: 5 jobs of 2 tenants on 5 servers>
    """
    return astraea_workload(jobs=jobs, servers=servers, users=2, seed=seed, ranges=SMALL, convex=convex)


# -- the trace -----------------------------------------------------------------------------------------------------
def _excerpt() -> list[_Job]:
    with dataset_path("philly_1000.csv").open(encoding="utf-8", newline="") as stream:
        return list(_rows(stream, 0))


def _table(folder: Path) -> list[_Job]:
    path = folder / "jobs_philly.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            return list(_rows(stream, DENSE))
    except (OSError, EOFError, UnicodeDecodeError, KeyError) as error:
        remedy = "Give the folder with the table of Philly's jobs"
        raise BadInput(f"cannot be read: {error!r}", remedy=remedy, file=str(path)) from error


def _rows(lines: Iterable[str], since: int) -> Iterator[_Job]:
    for row in csv.DictReader(lines):
        submit, gpus = Fraction(row["submit_s"]), int(row["gpus"])
        if submit >= since and row["tenant"] not in ("", "unknown"):
            yield _Job(row["job_id"], row["tenant"], submit, gpus, gpus * Fraction(row["duration_s"]))


def _tenants(table: Sequence[_Job], users: int | None) -> tuple[list[str], dict[str, Fraction]]:
    """Return the tenants with the most jobs, and the GPU-time of each."""
    order = [name for name, _ in sorted(Counter(job.tenant for job in table).items(), key=lambda one: (-one[1], one))]
    if users is not None:
        _check(users, "users")
        if users > len(order):
            remedy = "Give fewer, or the folder with the whole table (data=...)"
            raise BadInput(
                f"{counted(users, 'user')}, and {counted(len(order), 'tenant')} have jobs there",
                place="users",
                remedy=remedy,
            )
        order = order[:users]
    used = dict.fromkeys(order, Fraction(0))
    for job in table:
        if job.tenant in used:
            used[job.tenant] += job.held
    return order, used


def _window(table: Sequence[_Job], jobs: int, random: Random) -> list[_Job]:
    """Return consecutive jobs, from a random one on, in order of submission."""
    if jobs > len(table):
        remedy = "Give fewer, or the folder with the whole table (data=...)"
        raise BadInput(f"{counted(jobs, 'job')}, and the tenants have {len(table)} there", place="jobs", remedy=remedy)
    begin = int(random.random() * (len(table) - jobs + 1))
    return sorted(table, key=lambda job: (job.submit, job.name))[begin : begin + jobs]


# -- random parameters ---------------------------------------------------------------------------------------------
def _drawn(job: _Job, ranges: Ranges, random: Random, *, convex: bool, chunks_are_gpus: bool) -> dict[str, Any]:
    """Return a job's parameters, in slots and megabits; the count of random draws does not depend on the form."""
    drawn: dict[str, Any] = {name: _draw(span, random) for name, span in vars(ranges).items() if name not in _CLUSTER}
    slope, height, scale, exponent = (drawn.pop(name) for name in ("slope", "height", "scale", "exponent"))
    drawn |= {name: int(drawn[name]) for name in ("epochs", "chunks", "minibatches")}
    if chunks_are_gpus:
        work = drawn["chunks"] * drawn["minibatches"]
        drawn |= {"chunks": job.gpus, "minibatches": ceil(Fraction(work, job.gpus))}
    drawn["update_time"] /= 1000 * SECONDS
    drawn["gradient"] *= MEGABYTE
    return {**drawn, "utility": Power(scale, exponent) if convex else Linear(slope, height)}


def _draw(span: Span, random: Random) -> Fraction:
    low, high, step = (exact(number, "ranges") for number in span)
    if step <= 0 or low > high:
        raise BadInput(f"got {span}", place="ranges", remedy="Give (low, high, step), low at most high, step positive")
    return low + step * random.randint(0, int((high - low) / step))


def _machines(servers: int, random: Random) -> list[int]:
    """Return the GPUs of each server: of both kinds in the proportion of all machines, in random order."""
    parts = _dealt(servers, [Fraction(count) for _, count in MACHINES], least=0)
    gpus = [MACHINES[kind][0] for kind in parts]
    random.shuffle(gpus)
    return gpus


def _dealt(count: int, weights: Sequence[Fraction], least: int = 1) -> list[int]:
    """Return the owners of ``count`` things: in proportion to weights by largest remainders, ``least`` to each."""
    total, left = sum(weights), count - least * len(weights)
    due = [left * weight / total if total else Fraction(left, len(weights)) for weight in weights]
    parts = [int(part) for part in due]
    rest = sorted(range(len(weights)), key=lambda at: (parts[at] - due[at], at))[: left - sum(parts)]
    return [at for at in range(len(weights)) for _ in range(least + parts[at] + (at in rest))]


def _check(value: int, what: str, least: int = 1) -> None:
    require(type(value) is int and value >= least, repr(value), what, f"Give a whole number from {least} on")

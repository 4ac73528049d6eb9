"""What Pollux and Sia measured of jobs that adapt, as profiles: a folder of tables for each application.

A folder has ``placements*.csv`` and ``scalability*.csv`` (the time of a step and of its synchronisation, by placement,
or by hosts and GPUs, and by batch on each GPU) and ``validation-BATCH.csv`` (progress and gradient statistics, epoch by
epoch, of a run with that batch). Work is their progress: steps at the smallest batch.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.later import library
from fairopt.problem import Jobs, Trace
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.profile import Profile
from fairopt.program import Array

#: Batches that are tried between the smallest and the largest; the source tries 50.
BATCHES = 20
#: A job is measured on at most so many hosts more than it needs.
MORE_HOSTS = 2
_EPS = 1e-8


@dataclass(frozen=True)
class Measured:
    """The tables of an application on one type of GPU, ``per_host`` of which are on a host.

    ``suffix`` is that of the tables of the type, such as "-aws". ``epochs`` are those of a whole job. ``most_local``:
    the largest batch on a GPU; that of the tables where it is None.

    Source: applications.py and job.py of Pollux's simulator (github.com/petuum/adaptdl, branch osdi21-artifact, commit
    c793c70) and of Sia's (github.com/siasosp23/artifacts, commit aaf7a0d).
    """

    folder: Path
    epochs: int
    per_host: int
    suffix: str = ""
    most_local: int | None = None

    @cached_property
    def placements(self) -> dict[str, Array]:
        """Batch on a GPU, time of a step and of its synchronisation (m, 3), rising, by placement, as "144"."""
        found: dict[str, list[list[float]]] = {}
        for row in _rows(self.folder / f"placements{self.suffix}.csv", ("placement", *_TIMES)):
            found.setdefault(row["placement"], []).append([float(row[name]) for name in _TIMES])
        return {name: np.array(sorted(rows)) for name, rows in found.items()}

    @cached_property
    def runs(self) -> dict[int, Array]:
        """Progress and gradient statistics (epochs, 3), by batch."""
        found = {}
        for path in self.folder.glob("validation-*.csv"):
            columns = ("progress", "grad_sqr", "grad_var")
            rows = [[float(row[name]) for name in columns] for row in _rows(path, columns)]
            found[int(path.stem.split("-")[1])] = np.array(rows[: self.epochs])
        if not found:
            raise BadInput("no validation-BATCH.csv", place=str(self.folder), remedy="Give a checkout of the artefact")
        return dict(sorted(found.items()))

    @property
    def locals(self) -> tuple[int, int]:
        """The smallest and the largest batch on a GPU."""
        every = [row[0] for table in self.placements.values() for row in table]
        return int(min(every)), self.most_local or int(max(every))

    @cached_property
    def marks(self) -> list[float]:
        """The progress at the end of each epoch."""
        return [min(run[epoch, 0] for run in self.runs.values()) for epoch in range(self.epochs)]

    @cached_property
    def _between(self) -> Any:
        """The times of what no placement was measured for, by hosts, GPUs and batch on a GPU."""
        interpolate = library("scipy.interpolate", "an importer of measured jobs", "rounds")
        points: dict[tuple[float, ...], list[Array]] = {}
        for name, table in self.placements.items():
            gpus = sum(map(int, name))
            for local, *times in table:
                points.setdefault((len(name), gpus, local), []).append(np.array(times))
        for row in _rows(self.folder / f"scalability{self.suffix}.csv", ("num_nodes", "num_replicas", *_TIMES)):
            local, *times = (float(row[name]) for name in _TIMES)
            points.setdefault((float(row["num_nodes"]), float(row["num_replicas"]), local), []).append(np.array(times))
        return interpolate.LinearNDInterpolator(
            np.array(list(points)), np.array([np.mean(each, axis=0) for each in points.values()])
        )

    def times(self, gpus: int, hosts: int, local: Array) -> Array:
        """Return the time of a step and of its synchronisation (n, 2) for batches on a GPU; NaN where none is known."""
        spread = [gpus // hosts + (at >= hosts - gpus % hosts) for at in range(hosts)]
        if hosts == ceil(gpus / self.per_host):  # filled, host by host, as the sources place it
            rest = gpus % self.per_host
            spread = [rest] * bool(rest) + [self.per_host] * (gpus // self.per_host)
        table = self.placements.get("".join(map(str, spread)))
        if table is None:
            return np.asarray(
                self._between(np.stack([np.full(len(local), hosts), np.full(len(local), gpus), local], 1))
            )
        inside = (local >= table[0, 0]) & (local <= table[-1, 0])
        found = [np.where(inside, np.interp(local, table[:, 0], column), np.nan) for column in table[:, 1:].T]
        return np.stack(found, axis=1)

    def speeds(self, gpus: int, hosts: int, batches: Array) -> Array:
        """Return steps a second (n,) with so many GPUs on so many hosts, for whole batches; 0 where it cannot run.

        A batch that does not fit is accumulated over several passes; one GPU accumulates at least two beyond the
        smallest batch. Source: job.py, `update_local_bsz`.
        """
        least, most = self.locals
        local = np.ceil(batches / gpus - _EPS)
        more = np.ceil(local / most - _EPS) - 1
        if gpus == 1:
            more = np.where(batches > min(self.runs), np.maximum(more, 1), more)
        atomic = np.ceil(local / (more + 1) - _EPS)
        atomic = np.minimum(atomic, max(self.runs) // (gpus * (more + 1)))
        step, sync = self.times(gpus, hosts, np.clip(atomic, least, most)).T
        took = step + (step - sync) * more
        return np.where((least <= atomic) & (atomic <= most) & (took > 0), 1 / took, 0.0)

    def gain(self, epoch: int, batches: Array) -> Array:
        """Return the progress (n,) of a step with each batch in an epoch: AdaScale's gain."""
        known = list(self.runs)
        sqr, var = (np.interp(batches, known, [run[epoch, at] for run in self.runs.values()]) for at in (1, 2))
        return np.asarray((var + sqr) / (var * known[0] / batches + sqr))


def profile_of(
    types: Sequence[Measured],
    sizes: Sequence[Sequence[int]],
    batches: Sequence[int] | None = None,
    slowdown: float = 1,
    restart: object = None,
) -> Profile:
    """Return the profile of an application, measured on each of ``types``, with the ``sizes`` on each of them.

    ``batches`` None: those between the smallest and the largest. A number of GPUs that is no size on a type has
    throughput 0 there, and one on fewer hosts than it takes there, that on as many as it takes.
    """
    first = types[0]
    if batches is None:
        drawn = np.geomspace(min(first.runs), max(first.runs), BATCHES).round().astype(int)
        batches = sorted({*drawn.tolist(), *first.runs})
    whole = np.array(batches, dtype=float)
    rows: dict[tuple[int, int], Array] = {}
    for at, (one, own) in enumerate(zip(types, sizes, strict=True)):
        for gpus in own:
            least = ceil(gpus / one.per_host)
            there = {hosts: one.speeds(gpus, hosts, whole) for hosts in range(least, min(gpus, least + MORE_HOSTS) + 1)}
            for hosts in range(1, max(there) + 1):
                column = rows.setdefault((gpus, hosts), np.zeros((len(whole), len(types))))
                column[:, at] = there[max(hosts, least)] / slowdown
    table = [
        (gpus, hosts, batch, *map(_short, speeds))
        for (gpus, hosts), each in rows.items()
        for batch, speeds in zip(batches, each.tolist(), strict=True)
        if any(speeds)
    ]
    gains = [first.gain(epoch, whole).tolist() for epoch in range(first.epochs)]
    efficiency = [
        (_short(mark), batch, _short(worth))
        for mark, each in zip([0.0, *first.marks[:-1]], gains, strict=True)
        for batch, worth in zip(batches, each, strict=True)
    ]
    kept = {batch for _, _, batch, *_ in table}
    return Profile.of(table, [row for row in efficiency if row[1] in kept], restart, place=first.folder.name)


def workload(path: AnyPath) -> list[dict[str, str]]:
    """Return the rows of a workload of either artefact."""
    return list(_rows(Path(path), ("name", "time", "application", "num_replicas", "batch_size")))


def trace_of(
    rows: Sequence[Mapping[str, str]], types: Sequence[str], gpus: Sequence[int], work: Mapping[str, float],
    profiles: Sequence[Profile],
) -> Trace:  # fmt: skip
    """Return the trace of a workload's rows; ``work``: of a whole job, by application. Each job is a tenant's own."""
    names = [row["name"] for row in rows]
    return Trace(
        Jobs.of(
            names=names,
            tenant=names,
            types=types,
            arrival=[row["time"] for row in rows],
            gpus=gpus,
            work=[_short(work[row["application"]]) for row in rows],
            profiles=profiles,
            pattern=["intra"] * len(rows),
        )
    )


#: How many folders above a workload the measurements of its applications may lie.
NEAR = 3


def traces_of(path: AnyPath) -> Path:
    """Return the folder of the measurements that lie beside the folders of workloads."""
    for above in Path(path).resolve().parents[:NEAR]:
        if (above / "traces").is_dir():
            return above / "traces"
    remedy = "Give a workload inside a checkout of the artefact"
    raise BadInput("no folder traces lies beside its folder, or above", place=str(path), remedy=remedy)


def known(application: str, names: Mapping[str, Any], place: str) -> str:
    """Return the name of an application that has measurements; `BadInput` for others."""
    if application not in names:
        raise BadInput(f"got {application!r}", place=place, remedy=f"The applications are {', '.join(names)}")
    return application


_TIMES = ("local_bsz", "step_time", "sync_time")
_NUMBER = re.compile(r"[-+.\deE]+")


def _rows(path: Path, needed: Sequence[str]) -> Iterator[dict[str, str]]:
    with naming(str(path)):
        for number, row in enumerate(csv.DictReader(read_text(path).splitlines()), 2):
            if missing := [name for name in needed if not row.get(name)]:
                remedy = "Give the tables as the artefact has them"
                raise BadInput(f"no value in {', '.join(missing)}", place=f"line {number}", remedy=remedy)
            for name in needed:
                if name not in ("name", "application") and not _NUMBER.fullmatch(row[name]):
                    raise BadInput(f"got {row[name]!r}", place=f"line {number}, {name}", remedy="Give a number")
            yield row


def _short(value: float) -> float:
    return float(f"{value:.6g}")

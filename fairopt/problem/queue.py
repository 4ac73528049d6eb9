"""A `Queue`: the jobs present at one instant on a cluster, and where each stands; and `Placements` of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic, arithmetic, counted
from fairopt.problem.checks import Frozen
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.program import Array, Number, cast

#: Where a job runs: pairs (host, GPUs there), hosts rising; () where it runs nowhere.
Spots = tuple[tuple[int, int], ...]


class Placements(Mapping[int, Spots]):
    """Placements in which most jobs stay: those of the rows ``stay`` where they ran ``last``, the others at ``moved``.

    All of ``stay`` ran in the round before.
    """

    def __init__(self, last: Sequence[Spots], stay: Array, moved: Mapping[int, Spots]) -> None:
        self.last, self.stay, self.moved = last, stay, moved

    @cached_property
    def stays(self) -> Array:
        """Whether each row stays (n,)."""
        stays = np.zeros(len(self.last), dtype=bool)
        stays[self.stay] = True
        return stays

    def __getitem__(self, row: int) -> Spots:
        if row in self.moved:
            return self.moved[row]
        if not 0 <= row < len(self.stays) or not self.stays[row]:
            raise KeyError(row)
        return self.last[row]

    def __iter__(self) -> Iterator[int]:
        return chain(self.stay.tolist(), self.moved)

    def __len__(self) -> int:
        return len(self.stay) + len(self.moved)


@dataclass(frozen=True, eq=False, repr=False)
class Queue(Frozen):
    """The problem of one round: who runs on which GPUs from ``now`` for ``length``; frozen, in columns.

    Shapes, for the n jobs present (arrived and not completed), k types and H hosts; rows are those of ``jobs``:

    * ``cluster``, ``jobs``: what there is, and what is asked. ``index``: the round's number, from 0.
    * ``now``, ``length``: when the round begins and how long it takes, in the trace's unit of time.
    * ``remaining`` (n,): work left. ``attained`` (n,): GPU-time received so far (GPUs times time held).
    * ``setup`` (n,): time that a job which goes on where it ran has still to spend on loading before it makes progress;
      also if it was stopped meanwhile.
    * ``last``: the `Spots` of each job when it ran last, () if it never did. ``running`` (n,) bool: whether it ran in
      the round before, so that it can go on there at no cost.
    * ``lease`` (n,): until when a job holds its GPUs; later than ``now`` means that it must not be touched.
    * ``started``: when each job first ran, None if it never did.
    * ``up`` (H,) bool: hosts that work. ``held`` (H): the datasets on each host's own storage.

    Numbers are Fractions; ``as_(float)`` gives the same queue in floats. Counts of GPUs are integers.

    Source: FFT Sec. 4.1 (A(t), theta, Y_i); Gandiva_fair Sec. 3; ASTRAEA Sec. 5.1 (leases).

    >>> from fairopt.problem import Cluster, Jobs, Trace
    >>> from fairopt.simulation import begin, present
    >>> trace = Trace(Jobs.of(types=["T"], arrival=[0, 900], gpus=[1, 2], work=[60, 60]))
    >>> cluster = Cluster.uniform({"T": (1, 2)})
    >>> queue = present(begin(cluster), trace, cluster, 300)
    >>> len(queue), queue.remaining.tolist()
    (1, [Fraction(60, 1)])
    """

    cluster: Cluster
    jobs: Jobs
    index: int
    now: Number
    length: Number
    remaining: Array
    attained: Array
    setup: Array
    last: Sequence[Spots]
    running: Array
    lease: Array
    started: Sequence[Number | None]
    up: Array
    held: tuple[frozenset[str], ...]

    @classmethod
    def fresh(cls, jobs: Jobs, cluster: Cluster, *, length: Number, now: Number = 0, index: int = 0) -> Queue:
        """Return the queue of jobs that have not run; `BadInput` unless types are equal and ``length`` is positive."""
        if jobs.types != cluster.types:
            raise BadInput(
                f"throughputs for {', '.join(jobs.types)}; the cluster has {', '.join(cluster.types)}",
                place="types",
                remedy="Give jobs with the cluster's types, in the cluster's order",
            )
        if not length > 0:
            raise BadInput(f"got {length}", place="length", remedy="Give the length of a round, positive")
        number = jobs.arithmetic
        zero = cast(np.zeros(len(jobs)), number)
        return cls(
            cluster=cluster.as_(number),
            jobs=jobs,
            index=index,
            now=number(now),
            length=number(length),
            remaining=jobs.work,
            attained=zero,
            setup=zero,
            last=((),) * len(jobs),
            running=np.zeros(len(jobs), dtype=bool),
            lease=cast(np.full(len(jobs), now), number),
            started=(None,) * len(jobs),
            up=np.ones(len(cluster.hosts), dtype=bool),
            held=(frozenset(),) * len(cluster.hosts),
        )

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        waiting = len(self) - int(self.running.sum())
        jobs = counted(len(self), "job")
        return f"<Queue: round {self.index} at {float(self.now):g}, {jobs}, {waiting} did not run before>"

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: floats or rationals."""
        return self.jobs.arithmetic

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.arithmetic.exact

    @property
    def number(self) -> type:
        """The type of the numbers: Fraction or float."""
        return self.arithmetic.number

    def as_told(self) -> Queue:
        """Return what a policy is told: the work of jobs, and what remains of it, as estimated; all else is the truth.

        Of jobs whose speed changes it is told the throughput of now (`Jobs.profiles`). What remains has the same part
        of the estimate as it has of the work. Rows and cluster are the same, so that a schedule of one queue is one of
        the other.
        """
        told = self.jobs.estimate
        jobs, remaining = self.jobs.after(self.remaining), self.remaining
        if told is not None:
            jobs, remaining = replace(jobs, work=told, estimate=None), remaining * told / jobs.work
        elif jobs is self.jobs:
            return self
        made = replace(self, jobs=jobs, remaining=remaining)
        made.recall(self)
        return made

    @cached_property
    def end(self) -> Number:
        """When the round ends."""
        return self.now + self.length

    def until(self, end: Number) -> Queue:
        """Return the same queue for a round that ends at ``end``: at this very number, also in floats."""
        made = replace(self, length=end - self.now)
        made.recall(self)
        vars(made)["end"] = end
        return made

    @cached_property
    def capacity(self) -> Array:
        """GPUs of each type (k,) on hosts that work: Y_i."""
        return self.cluster.by_type(self.working)

    @cached_property
    def room(self) -> Array:
        """GPUs of each type (k,) on hosts that work and that no lease holds."""
        held = np.flatnonzero(self.holds)
        return self.cluster.by_type(self.working - self.held_at(held) if len(held) else self.working)

    @cached_property
    def working(self) -> Array:
        """GPUs of each host (H,), none where it does not work."""
        return np.where(self.up, self.cluster.gpus, 0)

    @cached_property
    def suits(self) -> Array:
        """Whether job j can run on type i at all (n, k): throughput, and memory that fits. Source: FFT Sec. 4.4.1."""
        runs = np.asarray(self.jobs.throughput.astype(bool))  # it is not negative
        needs = np.flatnonzero(self.jobs.memory.astype(bool))
        if len(needs):  # few traces say what a job needs, and comparing fractions is slow
            runs[needs] &= np.asarray(self.jobs.memory[needs, None] <= self.cluster.memory[None, :], dtype=bool)
        return runs

    @cached_property
    def allowed(self) -> Array:
        """Whether job j could run on type i now (n, k): it suits, and the hosts that work have the GPUs."""
        if self.up.all():
            return self.fits
        return np.asarray(self.suits & (self.jobs.gpus[:, None] <= self.capacity[None, :]))

    @cached_property
    def fits(self) -> Array:
        """Whether job j fits type i with all hosts up (n, k)."""
        return np.asarray(self.suits & (self.jobs.gpus[:, None] <= self.cluster.capacity[None, :]))

    @cached_property
    def able(self) -> list[int]:
        """The jobs that could run now on some type."""
        return np.flatnonzero(self.can).tolist()

    @cached_property
    def can(self) -> Array:
        """Whether each job could run now on some type (n,)."""
        return any_type(self.allowed)

    @cached_property
    def fitting(self) -> list[int]:
        """The jobs that fit some type: all but the `unschedulable`."""
        return np.flatnonzero(any_type(self.fits)).tolist()

    @cached_property
    def unschedulable(self) -> Mapping[int, str]:
        """The jobs that can never run on one type of this cluster, all hosts up, each with the reason."""
        return {int(row): self._why(int(row)) for row in np.flatnonzero(~any_type(self.fits))}

    def _why(self, row: int) -> str:
        gpus, memory = int(self.jobs.gpus[row]), self.jobs.memory[row]
        reasons = []
        for name, there, speed, total in zip(
            self.cluster.types, self.cluster.memory, self.jobs.throughput[row], self.cluster.capacity, strict=True
        ):
            if speed == 0:
                reasons.append(f"{name}: no throughput")
            elif memory > there:
                reasons.append(f"{name}: needs {float(memory):g} GB on a GPU of {float(there):g} GB")
            else:
                reasons.append(f"{name}: needs {gpus} GPUs of {total}")
        return "; ".join(reasons)

    @cached_property
    def holds(self) -> Array:
        """Whether a job holds GPUs beyond now (n,): a decision leaves it there."""
        return np.asarray(self.running & np.asarray(self.lease > self.now, dtype=bool))

    @cached_property
    def leased(self) -> Mapping[int, Spots]:
        """The jobs that hold GPUs beyond now, and where."""
        return {row: self.last[row] for row in np.flatnonzero(self.holds).tolist()}

    @cached_property
    def last_host(self) -> Array:
        """The host that each job ran on last (n,); -1 where it was on several, or never ran."""
        return np.array([spots[0][0] if len(spots) == 1 else -1 for spots in self.last], dtype=np.int64)

    @cached_property
    def last_type(self) -> Array:
        """The type that each job ran on last (n,); -1 where there were several, or where it never ran."""
        own = (self.gpu_types(spots) for spots in self.last)
        return np.array([gpu_types[0] if len(gpu_types) == 1 else -1 for gpu_types in own], dtype=np.int64)

    def held_at(self, rows: Array) -> Array:
        """Return the GPUs of each host (H,) that the jobs of ``rows`` held where they ran last."""
        if not len(rows):
            return np.zeros(len(self.cluster.hosts), dtype=np.int64)
        hosts = self.last_host[rows]
        alone = (hosts >= 0) & (not self.jobs.profiles)  # an elastic job may have had another number than its own
        if np.count_nonzero(alone) == len(alone):
            return np.bincount(hosts, weights=self.jobs.gpus[rows], minlength=len(self.up)).astype(np.int64)
        held = np.bincount(hosts[alone], weights=self.jobs.gpus[rows[alone]], minlength=len(self.cluster.hosts))
        for row in rows[~alone].tolist():
            for host, gpus in self.last[row]:
                held[host] += gpus
        return held.astype(np.int64)

    def free(self, placements: Mapping[int, Spots] | Iterable[Spots] = ()) -> Array:
        """Return the GPUs of each host (H,) that work and that ``placements`` leave free."""
        if isinstance(placements, Placements):
            there: Array = self.working - self.held_at(placements.stay)
            for spots in placements.moved.values():
                for host, gpus in spots:
                    there[host] -= gpus
            return there
        left = self.working.tolist()
        for spots in placements.values() if isinstance(placements, Mapping) else placements:
            for host, gpus in spots:
                left[host] -= gpus
        return np.array(left, dtype=np.int64)

    def held_by(self, placements: Iterable[Spots]) -> Array:
        """Return the GPUs of each type (k,) that ``placements`` hold."""
        held = np.zeros(len(self.cluster.types), dtype=np.int64)
        for spots in placements:
            for host, gpus in spots:
                held[self.cluster.type_of[host]] += gpus
        return held

    def hosts(self, gpu_type: int) -> list[int]:
        """Return the hosts of a type that work."""
        return np.flatnonzero((self.cluster.gpu_type == gpu_type) & self.up).tolist()

    def open_to(self, row: int) -> list[int]:
        """Return the types that a job may run on now."""
        return [gpu_type for gpu_type, may in enumerate(self.allowed[row].tolist()) if may]

    def by_speed(self, row: int) -> list[int]:
        """Return the types that a job may run on now, the fastest for it first; ties keep the order of types."""
        gpu_types = self.open_to(row)
        if len(gpu_types) > 1:
            speeds = self.jobs.throughput[row].tolist()
            gpu_types.sort(key=lambda gpu_type: -speeds[gpu_type])
        return gpu_types

    def gpu_types(self, spots: Spots) -> tuple[int, ...]:
        """Return the types that ``spots`` lie on, rising."""
        own = self.cluster.type_of
        return (own[spots[0][0]],) if len(spots) == 1 else tuple(sorted({own[host] for host, _ in spots}))

    def last_gpu_type(self, row: int) -> int:
        """Return the type that a job ran on last, -1 if it never ran; the slowest for it where there were several."""
        return self.slowest(row, self.last[row]) if self.last[row] else -1

    def slowest(self, row: int, spots: Spots) -> int:
        """Return the type of ``spots`` on which a job is slowest."""
        gpu_types = self.gpu_types(spots)
        return min(gpu_types, key=lambda each: self.jobs.throughput[row, each]) if len(gpu_types) > 1 else gpu_types[0]

    def recall(self, before: Queue) -> None:
        """Take from the queue of the round before what follows from the same jobs and hosts, instead of anew."""
        kept = ["last_host", "last_type"] if before.last is self.last else []
        if before.cluster is self.cluster and before.up is self.up:
            kept += ["capacity", "working"]
            if before.jobs is self.jobs:
                kept += ["suits", "fits", "unschedulable", "fitting", "allowed", "able", "can"]
        vars(self).update({name: vars(before)[name] for name in kept if name in vars(before)})

    def as_(self, number: type | Arithmetic) -> Queue:
        """Return the same queue in ``float`` or in ``Fraction``."""
        if self.arithmetic is arithmetic(number):
            return self
        columns: dict[str, Any] = {
            name: cast(getattr(self, name), number) for name in ("remaining", "attained", "setup", "lease")
        }
        return replace(
            self,
            cluster=self.cluster.as_(number),
            jobs=self.jobs.as_(number),
            now=number(self.now),
            length=number(self.length),
            started=tuple(None if value is None else number(value) for value in self.started),
            **columns,
        )


def any_type(table: Array) -> Array:
    """Return the rows (n,) of ``table`` (n, k) in which some type is true."""
    return reduce(np.logical_or, table.T)  # over few columns, faster than along each row

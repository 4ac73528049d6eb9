"""The GPUs of each type as one pool, with the jobs that share it and their tickets there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fairopt.models.gandiva_fair.tickets import effective_tickets, in_units, tickets_per_gpu
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Array, Number

#: Chooses a type for a job, among those that it may run on now, given the GPUs that jobs on each type already want.
Assign = Callable[[Queue, int, Sequence[int], Array], int]


def least_crowded(queue: Queue, row: int, gpu_types: Sequence[int], wanted: Array) -> int:
    """Return the type on which a job would be fastest if all jobs there shared the time equally.

    Its speed is its throughput; where the jobs there, this one included, want more GPUs than there are, it is scaled
    down by that ratio. Ties go to the type that comes first.
    """
    gpus = int(queue.jobs.gpus[row])
    if all(wanted[gpu_type] + gpus <= queue.capacity[gpu_type] for gpu_type in gpu_types):
        return fastest(queue, row, gpu_types, wanted)

    def speed(gpu_type: int) -> Number:
        there, asked = int(queue.capacity[gpu_type]), int(wanted[gpu_type]) + gpus
        alone = exact(queue.jobs.throughput[row, gpu_type], "throughput")  # rounding would decide ties
        return alone if asked <= there else alone * Fraction(there, asked)

    return max(gpu_types, key=lambda gpu_type: (speed(gpu_type), -gpu_type))


def fastest(queue: Queue, row: int, gpu_types: Sequence[int], wanted: Array) -> int:
    """Return the type on which a job has the largest throughput; ties go to the type that comes first."""
    return max(gpu_types, key=lambda gpu_type: (queue.jobs.throughput[row, gpu_type], -gpu_type))


@dataclass(frozen=True)
class Pool:
    """The jobs that share the GPUs of one type.

    ``rows``: the jobs without a lease, as rows of the queue, rising; ``leased``: those with one. ``free``: GPUs that no
    lease holds. ``tickets``: those of every job, by row, in 1/`UNIT`.
    """

    gpu_type: int
    rows: tuple[int, ...]
    leased: tuple[int, ...]
    free: int
    tickets: Mapping[int, int]


def assigned(queue: Queue, before: Array, assign: Assign) -> Array:
    """Return the type of each job that can run now (n,), -1 for the others.

    A job keeps its type ``before`` (n,) while it can run there; one with a lease keeps the type on which it runs. New
    jobs, and those that can no longer run on their type, are assigned in the order of rows.
    """
    gpu_types = before.copy()
    held = np.flatnonzero(queue.holds)
    gpu_types[held] = [queue.last_gpu_type(row) for row in held.tolist()]
    kept = (gpu_types >= 0) & queue.allowed[np.arange(len(queue)), gpu_types]
    kept[held] = True
    gpu_types[~kept] = -1
    wanted = queue.capacity * 0
    np.add.at(wanted, gpu_types[kept], queue.jobs.gpus[kept])
    for row in np.flatnonzero(queue.can & ~kept).tolist():
        gpu_types[row] = assign(queue, row, queue.open_to(row), wanted)
        wanted[gpu_types[row]] += queue.jobs.gpus[row]
    return gpu_types


def types_before(queue: Queue, before: Mapping[str, str]) -> Array:
    """Return the type of each job (n,) in ``before``, a state's, -1 where it has none."""
    number: dict[str | None, int] = {None: -1} | {name: at for at, name in enumerate(queue.cluster.types)}
    return np.fromiter(map(number.__getitem__, map(before.get, queue.jobs.names)), dtype=np.int64, count=len(queue))


def by_name(queue: Queue, gpu_types: Array) -> dict[str, str]:
    """Return the types of jobs (n,) as states have them, without those of -1."""
    types = queue.cluster.types
    return {name: types[at] for name, at in zip(queue.jobs.names, gpu_types.tolist(), strict=True) if at >= 0}


def pools(queue: Queue, gpu_types: Array, *, by_weight: bool, readjust: bool) -> list[Pool]:
    """Return the pool of each type that has jobs; ``gpu_types`` is from `assigned`, the options are the policy's.

    Source: Gandiva_fair Eq. (1) and (3), taken over the jobs on a type.
    """
    out = []
    holds = queue.holds
    for gpu_type in range(len(queue.cluster.types)):
        rows = np.flatnonzero(gpu_types == gpu_type)
        if not len(rows):
            continue
        tickets = (
            {row: in_units(queue.jobs.weight[row]) for row in rows.tolist()}
            if by_weight
            else tickets_by_user(queue, rows, int(queue.capacity[gpu_type]), readjust=readjust)
        )
        out.append(
            Pool(
                gpu_type=gpu_type,
                rows=tuple(rows[~holds[rows]].tolist()),
                leased=tuple(rows[holds[rows]].tolist()),
                free=int(queue.room[gpu_type]),
                tickets=tickets,
            )
        )
    return out


@lru_cache(maxsize=1024)
def _exactly(weights: tuple[Number, ...]) -> tuple[tuple[Fraction, ...], Fraction]:
    """Return weights of users in fractions, and their sum; in most rounds the users are those of the round before."""
    own = tuple(exact(each, "tenant_weight") for each in weights)
    return own, sum(own, Fraction(0))


def tickets_by_user(queue: Queue, rows: Array, gpus: int, *, readjust: bool) -> dict[int, int]:
    """Return the tickets of the jobs in ``rows``, which share ``gpus``: their user's, in proportion to their GPUs.

    Source: Gandiva_fair Eq. (1) and (3).
    """
    jobs = queue.jobs
    users, sizes = jobs.tenant[rows], jobs.gpus[rows]
    wanted = np.bincount(users, weights=sizes).tolist()
    demand = {user: int(wanted[user]) for user in dict.fromkeys(users.tolist())}
    weights = tuple(jobs.tenant_weight[list(demand)].tolist())
    own, whole = _exactly(weights)
    if readjust and sum(demand.values()) <= gpus and all(weights):
        # all demands are met, so that effective tickets are in proportion to them: the same for each GPU
        each = dict.fromkeys(demand, in_units(whole / sum(demand.values())))
    else:
        tickets = dict(zip(demand, own, strict=True))
        per_gpu = tickets_per_gpu(effective_tickets(tickets, demand, gpus) if readjust else tickets, demand)
        each = {user: in_units(one) for user, one in per_gpu.items()}
    return {
        row: each[user] * size for row, user, size in zip(rows.tolist(), users.tolist(), sizes.tolist(), strict=True)
    }

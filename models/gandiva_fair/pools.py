"""The GPUs of each type as one pool, with the jobs that share it and their tickets there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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


def assigned(queue: Queue, before: Mapping[str, str], assign: Assign) -> dict[int, int]:
    """Return the type of each job that can run now, by row.

    A job keeps its type in ``before`` while it can run there; one with a lease keeps the type on which it runs. New
    jobs, and those that can no longer run on their type, are assigned in the order of rows.
    """
    known = {name: gpu_type for gpu_type, name in enumerate(queue.cluster.types)}
    allowed, sizes = queue.allowed.tolist(), queue.jobs.gpus.tolist()
    gpu_types: dict[int, int] = {}
    new = []
    wanted = queue.capacity * 0
    for row, name in enumerate(queue.jobs.names):
        kept = queue.last_gpu_type(row) if row in queue.leased else known[before[name]] if name in before else -1
        if row in queue.leased or (kept >= 0 and allowed[row][kept]):
            gpu_types[row] = kept
            wanted[kept] += sizes[row]
        elif any(allowed[row]):
            new.append(row)
    for row in new:
        gpu_types[row] = assign(queue, row, queue.open_to(row), wanted)
        wanted[gpu_types[row]] += sizes[row]
    return dict(sorted(gpu_types.items()))


def pools(queue: Queue, gpu_types: Mapping[int, int], *, by_weight: bool, readjust: bool) -> list[Pool]:
    """Return the pool of each type that has jobs; ``gpu_types`` is from `assigned`, the options are the policy's.

    Source: Gandiva_fair Eq. (1) and (3), taken over the jobs on a type.
    """
    out = []
    for gpu_type in sorted(set(gpu_types.values())):
        rows = [row for row, of in gpu_types.items() if of == gpu_type]
        tickets = (
            {row: in_units(queue.jobs.weight[row]) for row in rows}
            if by_weight
            else tickets_by_user(queue, rows, int(queue.capacity[gpu_type]), readjust=readjust)
        )
        out.append(
            Pool(
                gpu_type=gpu_type,
                rows=tuple(row for row in rows if row not in queue.leased),
                leased=tuple(row for row in rows if row in queue.leased),
                free=int(queue.room[gpu_type]),
                tickets=tickets,
            )
        )
    return out


def tickets_by_user(queue: Queue, rows: Sequence[int], gpus: int, *, readjust: bool) -> dict[int, int]:
    """Return the tickets of the jobs in ``rows``, which share ``gpus``: their user's, in proportion to their GPUs.

    Source: Gandiva_fair Eq. (1) and (3).
    """
    jobs = queue.jobs
    users, sizes = jobs.tenant[rows].tolist(), jobs.gpus[rows].tolist()
    demand: Counter[int] = Counter()
    for user, size in zip(users, sizes, strict=True):
        demand[user] += size
    own = {user: exact(jobs.tenant_weight[user], "tenant_weight") for user in demand}
    per_gpu = tickets_per_gpu(effective_tickets(own, demand, gpus) if readjust else own, demand)
    each = {user: in_units(tickets) for user, tickets in per_gpu.items()}
    return {row: each[user] * size for row, user, size in zip(rows, users, sizes, strict=True)}

"""The GPUs of each type as one pool, with the jobs that share it and their tickets there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.models.gandiva_fair.tickets import effective_tickets, job_tickets, tickets_per_gpu
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
        whole: Number = queue.jobs.throughput[row, gpu_type]
        return whole if asked <= there else whole * there / asked

    return max(gpu_types, key=lambda gpu_type: (speed(gpu_type), -gpu_type))


def fastest(queue: Queue, row: int, gpu_types: Sequence[int], wanted: Array) -> int:
    """Return the type on which a job has the largest throughput; ties go to the type that comes first."""
    return max(gpu_types, key=lambda gpu_type: (queue.jobs.throughput[row, gpu_type], -gpu_type))


@dataclass(frozen=True)
class Pool:
    """The jobs that share the GPUs of one type.

    ``rows``: the jobs without a lease, as rows of the queue, rising; ``leased``: those with one. ``free``: GPUs that no
    lease holds. ``tickets``: those of every job, by row.
    """

    gpu_type: int
    rows: tuple[int, ...]
    leased: tuple[int, ...]
    free: int
    tickets: Mapping[int, Number]


def assigned(queue: Queue, before: Mapping[str, str], assign: Assign) -> dict[int, int]:
    """Return the type of each job that can run now, by row.

    A job keeps its type in ``before`` while it can run there; one with a lease keeps the type on which it runs. New
    jobs, and those that can no longer run on their type, are assigned in the order of rows.
    """
    types = queue.cluster.types
    gpu_types: dict[int, int] = {}
    new = []
    wanted = queue.capacity * 0
    for row, name in enumerate(queue.jobs.names):
        kept = queue.last_gpu_type(row) if row in queue.leased else types.index(before[name]) if name in before else -1
        if row in queue.leased or (kept >= 0 and queue.allowed[row, kept]):
            gpu_types[row] = kept
            wanted[kept] += queue.jobs.gpus[row]
        elif row not in queue.misfits:
            new.append(row)
    for row in new:
        if able := queue.open_to(row):
            gpu_types[row] = assign(queue, row, able, wanted)
            wanted[gpu_types[row]] += queue.jobs.gpus[row]
    return dict(sorted(gpu_types.items()))


def pools(queue: Queue, gpu_types: Mapping[int, int], *, by_weight: bool, readjust: bool) -> list[Pool]:
    """Return the pool of each type that has jobs; ``gpu_types`` is from `assigned`, the options are the policy's.

    Source: Gandiva_fair Eq. (1) and (3), taken over the jobs on a type.
    """
    out = []
    for gpu_type in sorted(set(gpu_types.values())):
        rows = [row for row, of in gpu_types.items() if of == gpu_type]
        tickets = (
            {row: queue.jobs.weight[row] for row in rows}
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


def tickets_by_user(queue: Queue, rows: Sequence[int], gpus: int, *, readjust: bool) -> dict[int, Number]:
    """Return the tickets of the jobs in ``rows``, which share ``gpus``: their user's, in proportion to their GPUs."""
    jobs = queue.jobs
    demand: Counter[str] = Counter()
    for row in rows:
        demand[jobs.tenant_of(row)] += int(jobs.gpus[row])
    own = {user: queue.number(jobs.tenant_weight[jobs.tenants.index(user)]) for user in demand}
    per_gpu = tickets_per_gpu(effective_tickets(own, demand, gpus) if readjust else own, demand)
    return {row: job_tickets(per_gpu[jobs.tenant_of(row)], int(jobs.gpus[row])) for row in rows}

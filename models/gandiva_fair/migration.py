"""Gandiva_fair's migrations: from the most loaded server to the least, or to a type where a job is faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairopt.models.gandiva_fair.servers import ServerLoads
from fairopt.program import INFINITY, Number

#: Whether a user's jobs have been profiled on a type (an index).
Known = Callable[[str, int], bool]


@dataclass(frozen=True)
class Move:
    """A job that is to move: its ``row``, the type and the host (-1: as Algorithm 2 chooses), and the ``gain``.

    ``gain`` is the decrease of the difference between loads, or the relative speedup of the job.
    """

    row: int
    gpu_type: int
    host: int
    gain: Number


def carry_out(servers: ServerLoads, move: Move) -> None:
    """Give the job its new home."""
    if move.host < 0:
        servers.leave(move.row)
        servers.allocate(move.row, move.gpu_type)
    else:
        servers.settle(move.row, ((move.host, int(servers.queue.jobs.gpus[move.row])),))


def to_balance(servers: ServerLoads, threshold: Number) -> Move | None:
    """Return the move from the most to the least loaded server of a type that brings the two closest; None for none.

    There is a move only where their loads per GPU differ by more than ``threshold``, and the move reduces the
    difference. Of several types, the one with the largest difference is taken. Large jobs and jobs with a lease stay.

    Source: Gandiva_fair Sec. 3.5 (Migration).
    """
    best: Move | None = None
    widest = threshold
    for gpu_type in range(len(servers.queue.cluster.types)):
        loads = servers.loads(gpu_type, per_gpu := servers.per_gpu(gpu_type))
        if len(loads) < 2:
            continue
        high = max(loads, key=lambda host: (loads[host], -host))
        low = min(loads, key=lambda host: (loads[host], host))
        gap = loads[high] - loads[low]
        if not gap > widest:
            continue
        own, room = (int(servers.queue.cluster.gpus[host]) for host in (high, low))
        for row, gpus in sorted(servers.rows_on[high].items()):
            if servers.large(row) or row in servers.queue.leased or gpus > room:
                continue
            tickets = gpus * per_gpu[servers.queue.jobs.tenant_of(row)]
            gain = gap - abs(gap - tickets / own - tickets / room)
            if gain > 0 and (best is None or best.gpu_type != gpu_type or gain > best.gain):
                best, widest = Move(row, gpu_type, low, gain), gap
    return best


def to_faster_type(servers: ServerLoads, known: Known, threshold: Number) -> Move | None:
    """Return the move to another type with the largest relative speedup above ``threshold``; None if there is none.

    A job's effective performance on a type is its throughput there times the part of the time that its user's tickets
    per GPU give it; at the destination, those after the move. (The paper divides by tickets per GPU, which would move
    jobs to where their user has least; all its examples agree with the product.) Of a user's jobs on a type with one
    size, only the first is considered. On a type that is not ``known`` the speed of the job is unknown. It moves there,
    before all others, if it would get a larger part of the time there.

    Source: Gandiva_fair Sec. 3.4 (Assigning jobs), 3.5 (Migration).
    """
    queue = servers.queue
    seen: set[tuple[str, int, int]] = set()
    now = [servers.per_gpu(gpu_type) for gpu_type in range(len(queue.cluster.types))]
    best: Move | None = None
    for row in sorted(servers.home):
        source, user, gpus = servers.gpu_type(row), queue.jobs.tenant_of(row), int(queue.jobs.gpus[row])
        if row in queue.leased or (user, source, gpus) in seen:
            continue
        seen.add((user, source, gpus))
        before = queue.jobs.throughput[row, source] * now[source][user]
        for gpu_type in queue.open_to(row):
            if gpu_type == source:
                continue
            part = servers.per_gpu(gpu_type, user, gpus)[user]
            after = queue.jobs.throughput[row, gpu_type] * part
            if not known(user, gpu_type):
                gain: Number = INFINITY if part > now[source][user] else 0
            else:
                gain = after / before - 1 if before > 0 else INFINITY if after > 0 else 0
            if gain > threshold and (best is None or gain > best.gain):
                best = Move(row, gpu_type, -1, gain)
    return best

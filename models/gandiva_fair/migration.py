"""Which job Gandiva_fair moves: from the most loaded server to the least, or to a type where it gets on faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairopt.models.gandiva_fair.pools import tenant_of
from fairopt.models.gandiva_fair.servers import Servers
from fairopt.program import INFINITY, Number

#: Whether a user's jobs have been profiled on a type, which is given by its index.
Known = Callable[[str, int], bool]


@dataclass(frozen=True)
class Move:
    """A job that is to move: its ``row``, the type and the host (-1: as Algorithm 2 chooses), and the ``gain``.

    ``gain`` is by how much loads come closer together, or the part by which the job gets on faster.
    """

    row: int
    kind: int
    host: int
    gain: Number


def carry_out(servers: Servers, move: Move) -> None:
    """Give the job its new home."""
    if move.host < 0:
        servers.leave(move.row)
        servers.allocate(move.row, move.kind)
    else:
        servers.settle(move.row, ((move.host, int(servers.queue.jobs.gpus[move.row])),))


def to_balance(servers: Servers, threshold: Number) -> Move | None:
    """Return the move from the most to the least loaded server of a type that brings the two closest; None for none.

    Only where their loads per GPU differ by more than ``threshold``, and the move makes the difference less. Of several
    types the one with the largest difference is taken. Large jobs and jobs with a lease stay.

    Source: Gandiva_fair Sec. 3.5 (Migration).
    """
    best: Move | None = None
    widest = threshold
    for kind in range(len(servers.queue.cluster.types)):
        loads = servers.loads(kind, per_gpu := servers.per_gpu(kind))
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
            tickets = gpus * per_gpu[tenant_of(servers.queue, row)]
            gain = gap - abs(gap - tickets / own - tickets / room)
            if gain > 0 and (best is None or best.kind != kind or gain > best.gain):
                best, widest = Move(row, kind, low, gain), gap
    return best


def to_faster_type(servers: Servers, known: Known, threshold: Number) -> Move | None:
    """Return the move of a job to another type that speeds it up most, by more than the part ``threshold``; or None.

    A job's effective performance on a type is its throughput there times the part of the time that its user's tickets
    per GPU give it, those after the move at the destination. (The paper divides by tickets per GPU, and so would move
    jobs to where their user has least; it says of all examples what the product says.) Of the jobs that a user has on
    a type, those of one size, the first stands for all. On a type that is not ``known`` its speed is not known either:
    it moves there, before all others, if it would get more of the time there.

    Source: Gandiva_fair Sec. 3.4 (Assigning jobs), 3.5 (Migration).
    """
    queue = servers.queue
    seen: set[tuple[str, int, int]] = set()
    now = [servers.per_gpu(kind) for kind in range(len(queue.cluster.types))]
    best: Move | None = None
    for row in sorted(servers.home):
        source, user, gpus = servers.kind(row), tenant_of(queue, row), int(queue.jobs.gpus[row])
        if row in queue.leased or (user, source, gpus) in seen:
            continue
        seen.add((user, source, gpus))
        before = queue.jobs.throughput[row, source] * now[source][user]
        for kind in range(len(queue.cluster.types)):
            if kind == source or not servers.places(row, kind):
                continue
            part = servers.per_gpu(kind, user, gpus)[user]
            after = queue.jobs.throughput[row, kind] * part
            if not known(user, kind):
                gain: Number = INFINITY if part > now[source][user] else 0
            else:
                gain = after / before - 1 if before > 0 else INFINITY if after > 0 else 0
            if gain > threshold and (best is None or gain > best.gain):
                best = Move(row, kind, -1, gain)
    return best

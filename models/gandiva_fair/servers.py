"""The servers of each job, the load of each server, the greedy choice of servers for a new job, and migrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.models.gandiva_fair.tickets import entitled, load_per_gpu, tickets_per_gpu
from fairopt.problem.queue import Queue, Spots
from fairopt.program import INFINITY, Number

#: The servers of a job by name: (host, GPUs there), for states.
Home = tuple[tuple[str, int], ...]


class ServerLoads:
    """The working table of one round: the homes of jobs, and the resulting loads.

    A job's *home* is the set of servers to which it was allocated, whether it runs or pauses. ``tickets`` (type by
    index, then user) are in GPUs: a user's entitlement on a type, before it gets any that others do not use. With
    effective tickets, the tickets per GPU of Eq. (1) over the user's jobs on a type are the part of the time to which
    they are entitled, at most 1. The load per GPU of Eq. (2) is 1 for a server that can just serve its jobs'
    entitlements.

    Source: Gandiva_fair Sec. 3.2, 3.5.
    """

    def __init__(self, queue: Queue, tickets: Sequence[Mapping[str, Number]], homes: Mapping[str, Home]) -> None:
        self.queue = queue
        self.tickets = tickets
        self.home: dict[int, Spots] = {}
        self.demand: list[Counter[str]] = [Counter() for _ in queue.cluster.types]
        self.on: list[Counter[str]] = [Counter() for _ in queue.cluster.hosts]
        self.rows_on: list[dict[int, int]] = [{} for _ in queue.cluster.hosts]
        at = {host: index for index, host in enumerate(queue.cluster.hosts)}
        for row, name in enumerate(queue.jobs.names):
            spots = tuple((at[host], gpus) for host, gpus in homes.get(name, ()))
            if row in queue.leased:
                self.settle(row, queue.leased[row])
            elif spots and all(queue.up[host] for host, _ in spots):
                self.settle(row, spots)

    def homes(self) -> dict[str, Home]:
        """Return the home of every job, by names, for the state."""
        hosts, names = self.queue.cluster.hosts, self.queue.jobs.names
        return {
            names[row]: tuple((hosts[host], int(gpus)) for host, gpus in spots)
            for row, spots in sorted(self.home.items())
        }

    def settle(self, row: int, spots: Spots) -> None:
        """Make ``spots`` the home of a job."""
        self.leave(row)
        self.home[row] = spots
        self._count(row, spots, 1)
        for host, gpus in spots:
            self.rows_on[host][row] = int(gpus)

    def leave(self, row: int) -> None:
        """Remove a job's home, if it has one."""
        spots = self.home.pop(row, ())
        self._count(row, spots, -1)
        for host, _ in spots:
            del self.rows_on[host][row]

    def _count(self, row: int, spots: Spots, sign: int) -> None:
        user = self.queue.jobs.tenant_of(row)
        for host, gpus in spots:
            for counter in (self.on[host], self.demand[int(self.queue.cluster.gpu_type[host])]):
                counter[user] += sign * int(gpus)
                if not counter[user]:
                    del counter[user]

    def gpu_type(self, row: int) -> int:
        """Return the type of a job's home, -1 for none; where a lease spans types, that of the first host."""
        spots = self.home.get(row, ())
        return int(self.queue.cluster.gpu_type[spots[0][0]]) if spots else -1

    def large(self, row: int) -> bool:
        """Whether a job's home spans servers, so that the central scheduler runs it."""
        return len(self.home[row]) > 1

    # -- tickets and loads -------------------------------------------------------------------------------------------
    def per_gpu(self, gpu_type: int, user: str | None = None, gpus: int = 0) -> dict[str, Number]:
        """Return the effective tickets per GPU of users with jobs on a type, as if ``user`` had ``gpus`` more there.

        Source: Gandiva_fair Eq. (1), Sec. 3.2 (effective tickets).
        """
        demand = dict(self.demand[gpu_type])
        if user is not None:
            demand[user] = demand.get(user, 0) + gpus
        share = entitled(self.tickets[gpu_type], demand, int(self.queue.capacity[gpu_type]))
        return tickets_per_gpu(share, demand)

    def loads(self, gpu_type: int, per_gpu: Mapping[str, Number]) -> dict[int, Number]:
        """Return the load per GPU of every working host of a type: Eq. (2)."""
        sizes = self.queue.cluster.gpus
        return {
            host: load_per_gpu([(gpus, per_gpu[user]) for user, gpus in self.on[host].items()], int(sizes[host]))
            for host in self.queue.hosts(gpu_type)
        }

    def widest_gap(self) -> Number:
        """Return the largest difference between the loads of two servers of a type; 0 where no type has two."""
        zero = self.queue.now * 0
        types = range(len(self.queue.cluster.types))
        of_types = [self.loads(gpu_type, self.per_gpu(gpu_type)).values() for gpu_type in types]
        return max((max(loads) - min(loads) for loads in of_types if loads), default=zero) + zero

    # -- the greedy choice -------------------------------------------------------------------------------------------
    def spans(self, row: int, gpu_type: int) -> bool:
        """Whether a job is large for a type: no working host of it has enough GPUs."""
        return bool(self.queue.jobs.gpus[row] > self.queue.cluster.gpus[self.queue.hosts(gpu_type)].max(initial=0))

    def allocate(self, row: int, gpu_type: int) -> None:
        """Give a job the least loaded servers of a type: one for a small job, as many as needed for a large one.

        Loads count the job in its user's demand on the type, but not yet on any server. Ties go to the first server. A
        large job fills its servers in that order, the last one as far as needed.

        Source: Gandiva_fair Algorithm 2, lines 9-11; Sec. 3.2.
        """
        queue = self.queue
        gpus = int(queue.jobs.gpus[row])
        loads = self.loads(gpu_type, self.per_gpu(gpu_type, queue.jobs.tenant_of(row), gpus))
        order = sorted(loads, key=lambda host: (loads[host], host))
        if not self.spans(row, gpu_type):
            host = next(host for host in order if queue.cluster.gpus[host] >= gpus)
            self.settle(row, ((host, gpus),))
            return
        spots = []
        for host in order:
            here = min(gpus, int(queue.cluster.gpus[host]))
            spots.append((host, here))
            gpus -= here
            if not gpus:
                break
        self.settle(row, tuple(sorted(spots)))

    def next_jobs(self) -> list[int]:
        """Return the jobs that have no home and could have one, in the order of allocation.

        The next job is always of the user with the fewest GPUs for its tickets so far, counted over all types. Among
        its jobs it is the one of the highest priority, then the first.

        Source: Gandiva_fair Algorithm 2, lines 2-3.
        """
        queue, jobs = self.queue, self.queue.jobs
        waiting: dict[str, list[int]] = {}
        for row in queue.able:
            if row not in self.home:
                waiting.setdefault(queue.jobs.tenant_of(row), []).append(row)
        for rows in waiting.values():
            rows.sort(key=lambda row: (-int(jobs.priority[row]), row))
        weight = {user: jobs.tenant_weight[jobs.tenants.index(user)] for user in waiting}
        held: Counter[str] = Counter()
        for demand in self.demand:
            held.update(demand)
        order = []
        while waiting:
            user = min(waiting, key=lambda user: (held[user] / weight[user], jobs.tenants.index(user)))
            row = waiting[user].pop(0)
            held[user] += int(jobs.gpus[row])
            order.append(row)
            if not waiting[user]:
                del waiting[user]
        return order


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

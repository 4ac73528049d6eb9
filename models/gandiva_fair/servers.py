"""The servers of each job, the load of each server, the greedy choice of servers for a new job, and migrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace

import numpy as np

from fairopt.models.gandiva_fair.tickets import Level, load_per_gpu
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Placements, Queue, Spots
from fairopt.program import INFINITY, Array, Number

#: The servers of a job by name: (host, GPUs there), for states.
Home = tuple[tuple[str, int], ...]
#: Numbers in floats that differ by less are compared in Fractions.
NEAR = 1e-9


class ServerLoads:
    """The working table of one round: the homes of jobs, and the resulting loads.

    A job's *home* is the set of servers to which it was allocated, whether it runs or pauses. ``tickets`` (type by
    index, then user) are in GPUs: a user's entitlement on a type, before it gets any that others do not use. With
    effective tickets, the tickets per GPU of Eq. (1) over the user's jobs on a type are the part of the time to which
    they are entitled, at most 1. The load per GPU of Eq. (2) is 1 for a server that can just serve its jobs'
    entitlements.

    Source: Gandiva_fair Sec. 3.2, 3.5.
    """

    def __init__(self, queue: Queue, tickets: Sequence[Mapping[str, Fraction]], homes: Mapping[str, Home]) -> None:
        self.queue, cluster = queue, queue.cluster
        self.users: list[str] = list(map(queue.jobs.tenants.__getitem__, queue.jobs.tenant.tolist()))
        self.sizes: list[int] = queue.jobs.gpus.tolist()
        self.home: dict[int, Spots] = {}
        self._named: dict[int, Home] = {}
        self._user = {user: at for at, user in enumerate(queue.jobs.tenants)}
        self._working = cluster.hosts_by_type if queue.up.all() else [h[queue.up[h]] for h in cluster.hosts_by_type]
        at, down = cluster.numbers, set(np.flatnonzero(~queue.up).tolist())
        for row, home in enumerate(map(homes.get, queue.jobs.names)):
            if home is not None:
                spots = (
                    tuple([(at[host], gpus) for host, gpus in home])
                    if len(home) > 1
                    else ((at[home[0][0]], home[0][1]),)
                )
                if not down or not any(host in down for host, _ in spots):
                    self.home[row], self._named[row] = spots, home
        for row, spots in queue.leased.items():
            self.home[row] = spots
            self._named.pop(row, None)
        each = [(row, *spot) for row, spots in self.home.items() for spot in spots]
        rows, hosts, gpus = np.array(each, dtype=np.int64).reshape(-1, 3).T
        #: The server of each small job (n,); -1 for the others.
        self.host = np.full(len(queue), -1)
        self.host[rows] = np.where(np.bincount(rows, minlength=len(queue))[rows] == 1, hosts, -1)
        user, count = queue.jobs.tenant[rows], len(self._user)
        # (H, T): GPUs, by host and user
        self._wanted = np.bincount(hosts * count + user, weights=gpus, minlength=len(cluster.hosts) * count).reshape(
            -1, count
        )
        demand = np.bincount(cluster.gpu_type[hosts] * count + user, weights=gpus, minlength=len(tickets) * count)
        self._level = []
        for own, there, wanted in zip(tickets, queue.capacity.tolist(), demand.reshape(-1, count), strict=True):
            some = np.flatnonzero(wanted).tolist()
            self._level.append(Level(own, there, {queue.jobs.tenants[each]: int(wanted[each]) for each in some}))

    def homes(self) -> dict[str, Home]:
        """Return the home of every job, by names, for the state."""
        hosts, names = self.queue.cluster.hosts, self.queue.jobs.names
        new = {row: tuple((hosts[host], int(gpus)) for host, gpus in self.home[row]) for row in self.changed()}
        return {names[row]: home for row, home in (self._named | new).items()}

    def changed(self) -> list[int]:
        """Return the jobs that have another home than they were given, or a new one."""
        return sorted(self.home.keys() - self._named.keys())

    def large_jobs(self) -> list[int]:
        """Return the jobs whose homes span servers, rising."""
        return [row for row in np.flatnonzero(self.host < 0).tolist() if row in self.home]

    def wanted(self) -> Array:
        """Return the GPUs of each host (H,) that the jobs want whose home it is."""
        return np.asarray(self._wanted.sum(axis=1))

    def wanted_by_type(self) -> Array:
        """Return the same for each type (k,)."""
        return np.array([sum(each.demand.values()) for each in self._level])

    def placements(self, rows: Array) -> Placements:
        """Return the placements of these jobs, rising, at home."""
        queue = self.queue
        # where a job may have another number of GPUs than its own, that of its home is compared
        stays = queue.running & (self.host == queue.last_host) & (self.host >= 0) & (not queue.jobs.profiles)
        others = rows[~stays[rows]].tolist()
        for row in others:
            stays[row] = queue.running[row] and queue.last[row] == self.home[row]
        moved = {row: self.home[row] for row in others if not stays[row]}
        return Placements(queue.last, rows[stays[rows]], moved)

    def settle(self, row: int, spots: Spots) -> None:
        """Make ``spots`` the home of a job."""
        if row in self.home:
            self.leave(row)
        self.home[row] = spots
        self.host[row] = spots[0][0] if len(spots) == 1 else -1
        self._count(row, spots, 1)

    def leave(self, row: int) -> None:
        """Remove a job's home, if it has one."""
        spots = self.home.pop(row, ())
        self._named.pop(row, None)
        self.host[row] = -1
        self._count(row, spots, -1)

    def rows_on(self, host: int) -> Iterator[tuple[int, int]]:
        """Yield the jobs whose home is on a host, rising, and their GPUs there."""
        for row, spots in sorted(self.home.items()):
            yield from ((row, int(gpus)) for on, gpus in spots if on == host)

    def _count(self, row: int, spots: Spots, sign: int) -> None:
        user = self.users[row]
        for host, gpus in spots:
            self._wanted[host, self._user[user]] += sign * gpus
            self._level[self.queue.cluster.type_of[host]].add(user, sign * int(gpus))

    def gpu_type(self, row: int) -> int:
        """Return the type of a job's home, -1 for none; where a lease spans types, that of the first host."""
        spots = self.home.get(row, ())
        return self.queue.cluster.type_of[spots[0][0]] if spots else -1

    def large(self, row: int) -> bool:
        """Whether a job's home spans servers, so that the central scheduler runs it."""
        return len(self.home[row]) > 1

    # -- tickets and loads -------------------------------------------------------------------------------------------
    def held(self) -> Counter[str]:
        """Return the GPUs that each user's jobs with a home want, over all types."""
        total: Counter[str] = Counter()
        for each in self._level:
            total.update(each.demand)
        return total

    def part(self, gpu_type: int, row: int, *, more: int = 0) -> Fraction:
        """Return the tickets per GPU of a job's user on a type, as if its jobs there wanted so many GPUs ``more``."""
        return self._level[gpu_type].part(self.users[row], more)

    def per_gpu(self, gpu_type: int, row: int | None = None) -> dict[str, Fraction]:
        """Return the effective tickets per GPU of users with jobs on a type, as if job ``row`` was there, too.

        Source: Gandiva_fair Eq. (1), Sec. 3.2 (effective tickets).
        """
        own = () if row is None else (self.users[row], self.sizes[row])
        return self._level[gpu_type].parts(*own)

    def load(self, host: int, per_gpu: Mapping[str, Fraction]) -> Fraction:
        """Return the load per GPU of a host: Eq. (2)."""
        there = np.flatnonzero(self._wanted[host])
        wanted = self._wanted[host, there].tolist()
        names = self.queue.jobs.tenants
        return Fraction(
            load_per_gpu(
                [(int(w), per_gpu[names[u]]) for w, u in zip(wanted, there, strict=True)],
                int(self.queue.cluster.gpus[host]),
            )
        )

    def loads(self, gpu_type: int, per_gpu: Mapping[str, Fraction]) -> dict[int, Fraction]:
        """Return the load per GPU of every working host of a type."""
        return {host: self.load(host, per_gpu) for host in self._working[gpu_type].tolist()}

    def extreme(
        self,
        gpu_type: int,
        per_gpu: Mapping[str, Fraction],
        *,
        most: bool = False,
        gpus: int = 0,
        without: Sequence[int] = (),
    ) -> int:
        """Return the working host of a type, of ``gpus`` or more, with the least load per GPU, or the ``most``.

        Ties go to the first. Floats say which hosts are near; Fractions decide among those.
        """
        hosts, sign = self._working[gpu_type], -1 if most else 1
        hosts = hosts[self.queue.cluster.gpus[hosts] >= gpus] if gpus else hosts
        hosts = hosts[np.isin(hosts, without, invert=True)] if without else hosts
        wanted, sizes = self._wanted[hosts], self.queue.cluster.gpus[hosts]
        if all(part == 1 for part in per_gpu.values()):  # quotients of small whole numbers are equal in floats, too
            return int(hosts[(wanted.sum(axis=1) / sizes * sign).argmin()])
        loads = wanted @ np.array([float(per_gpu.get(name, 0)) for name in self._user]) / sizes * sign
        least = loads.min()
        near = np.flatnonzero(loads <= least + NEAR * (1 + abs(least)))
        if len(near) == 1:
            return int(hosts[near[0]])
        # users with equal tickets per GPU count as one, and hosts on which these want the same have the same load
        place: dict[tuple[int, int], int] = {}
        parts = map(per_gpu.get, self._user)
        same = [-1 if each is None else place.setdefault(each.as_integer_ratio(), len(place)) for each in parts]
        together = np.array(same)[:, None] == np.arange(len(place))[None, :]
        kinds = np.column_stack([wanted[near] @ together, sizes[near]])
        if (kinds == kinds[0]).all():
            return int(hosts[near[0]])
        first = np.unique(kinds, axis=0, return_index=True)[1]
        candidates: list[int] = hosts[near[first]].tolist()
        return min(candidates, key=lambda host: (sign * self.load(host, per_gpu), host))

    def widest_gap(self) -> Number:
        """Return the largest difference between the loads of two servers of a type; 0 where no type has two."""
        gaps = [self.gap(gpu_type, self.per_gpu(gpu_type)) for gpu_type in range(len(self._level))]
        widest: Number = self.queue.number(max(gap for gap, _, _ in gaps))
        return widest

    def gap(self, gpu_type: int, per_gpu: Mapping[str, Fraction]) -> tuple[Fraction, int, int]:
        """Return the largest difference between the loads of servers of a type, and the most and the least loaded."""
        if not len(self._working[gpu_type]):
            return Fraction(0), -1, -1
        high, low = (self.extreme(gpu_type, per_gpu, most=most) for most in (True, False))
        return self.load(high, per_gpu) - self.load(low, per_gpu), high, low

    # -- the greedy choice -------------------------------------------------------------------------------------------
    def spans(self, row: int, gpu_type: int) -> bool:
        """Whether a job is large for a type: no working host of it has enough GPUs."""
        return bool(self.sizes[row] > self.queue.cluster.gpus[self._working[gpu_type]].max(initial=0))

    def allocate(self, row: int, gpu_type: int) -> None:
        """Give a job the least loaded servers of a type: one for a small job, as many as needed for a large one.

        Loads count the job in its user's demand on the type, but not yet on any server. Ties go to the first server. A
        large job fills its servers in that order, the last one as far as needed.

        Source: Gandiva_fair Algorithm 2, lines 9-11; Sec. 3.2.
        """
        gpus, per_gpu = self.sizes[row], self.per_gpu(gpu_type, row)
        if not self.spans(row, gpu_type):
            self.settle(row, ((self.extreme(gpu_type, per_gpu, gpus=gpus), gpus),))
            return
        spots: dict[int, int] = {}
        while gpus:
            host = self.extreme(gpu_type, per_gpu, without=list(spots))
            spots[host] = min(gpus, int(self.queue.cluster.gpus[host]))
            gpus -= spots[host]
        self.settle(row, tuple(sorted(spots.items())))

    def next_jobs(self) -> list[int]:
        """Return the jobs that have no home and could have one, in the order of allocation.

        The next job is always of the user with the fewest GPUs for its tickets so far, counted over all types. Among
        its jobs it is the one of the highest priority, then the first.

        Source: Gandiva_fair Algorithm 2, lines 2-3.
        """
        jobs, new = self.queue.jobs, [row for row in self.queue.able if row not in self.home]
        if not new:
            return []
        tenant, priority = jobs.tenant.tolist(), jobs.priority.tolist()
        waiting: dict[int, list[int]] = {}
        for row in new:
            waiting.setdefault(tenant[row], []).append(row)
        for rows in waiting.values():
            rows.sort(key=lambda row: (priority[row], -row))  # the last one is the next
        weight = {user: exact(jobs.tenant_weight[user], "tenant_weight") for user in waiting}
        held = self.held()
        users = [(held[jobs.tenants[user]] / weight[user], user) for user in waiting]
        heapify(users)
        order = []
        while users:
            ratio, user = users[0]
            row = waiting[user].pop()
            order.append(row)
            if waiting[user]:
                heapreplace(users, (ratio + self.sizes[row] / weight[user], user))
            else:
                heappop(users)
        return order


#: Whether a user's jobs have been profiled on a type (an index).
Known = Callable[[str, int], bool]


def to_balance(servers: ServerLoads, threshold: Number) -> tuple[int, int] | None:
    """Return the job that is to move, and the host: what brings the most and the least loaded server of a type closest.

    There is a move only where their loads per GPU differ by more than ``threshold``, and the move reduces the
    difference. Of several types, the one with the largest difference is taken. Large jobs and jobs with a lease stay.

    Source: Gandiva_fair Sec. 3.5 (Migration).
    """
    best: tuple[int, int] | None = None
    widest = threshold
    for gpu_type in range(len(servers.queue.cluster.types)):
        per_gpu = servers.per_gpu(gpu_type)
        gap, high, low = servers.gap(gpu_type, per_gpu)
        if not gap > widest:
            continue
        most: Number = 0
        own, room = (int(servers.queue.cluster.gpus[host]) for host in (high, low))
        for row, gpus in servers.rows_on(high):
            if servers.large(row) or row in servers.queue.leased or gpus > room:
                continue
            tickets = gpus * per_gpu[servers.users[row]]
            gain = gap - abs(gap - tickets / own - tickets / room)
            if gain > most:
                best, most, widest = (row, low), gain, gap
    return best


def to_faster_type(servers: ServerLoads, known: Known, threshold: Number) -> tuple[int, int] | None:
    """Return the job that is to move, and the type: the largest relative speedup above ``threshold``; None for none.

    A job's effective performance on a type is its throughput there times the part of the time that its user's tickets
    per GPU give it; at the destination, those after the move. (The paper divides by tickets per GPU, which would move
    jobs to where their user has least; all its examples agree with the product.) Of a user's jobs on a type with one
    size, only the first is considered. On a type that is not ``known`` the speed of the job is unknown. It moves there,
    before all others, if it would get a larger part of the time there.

    Source: Gandiva_fair Sec. 3.4 (Assigning jobs), 3.5 (Migration).
    """
    queue = servers.queue
    seen: set[tuple[str, int, int]] = set()
    best: tuple[int, int] | None = None
    most = threshold
    allowed, throughput = queue.allowed.tolist(), queue.jobs.throughput.tolist()
    for row in sorted(servers.home):
        source, user, gpus = servers.gpu_type(row), servers.users[row], servers.sizes[row]
        if row in queue.leased or (user, source, gpus) in seen:
            continue
        seen.add((user, source, gpus))
        now = servers.part(source, row)
        for gpu_type, able in enumerate(allowed[row]):
            if gpu_type == source or not able:
                continue
            part = servers.part(gpu_type, row, more=gpus)
            if not known(user, gpu_type):
                gain: Number = INFINITY if part > now else 0
            elif now > 0 and throughput[row][source] > 0:
                faster = exact(throughput[row][gpu_type], "throughput") / exact(throughput[row][source], "throughput")
                gain = faster * part / now - 1
            else:
                gain = INFINITY if part > 0 else 0
            if gain > most:
                best, most = (row, gpu_type), gain
    return best

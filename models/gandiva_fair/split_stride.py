"""Split stride: each server schedules its small jobs, a central scheduler the large ones and the servers' turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import leases_end
from fairopt.models.gandiva_fair.servers import ServerLoads
from fairopt.models.gandiva_fair.stride import Assign, Strides, entered, gang_aware, least_crowded
from fairopt.models.gandiva_fair.tickets import UNIT, in_units, stride, turn
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Placements, Queue
from fairopt.program import Number


@dataclass(frozen=True)
class SplitStride(Policy):
    """Each round is a quantum of `quantum`; jobs stay on the servers that they came to.

    A new job goes to the servers with the least load per GPU (Algorithm 2): a small job to one, a large one to as many
    as it needs. A job is large if no working server of its type has enough GPUs. It runs or pauses on its servers, so
    that jobs only migrate from servers that fail.

    Choices where the paper leaves something open:

    * A job's tickets are effective and follow Eq. (3), as for `GangAwareStride`; its stride is its GPUs over them.
    * The stride of a server's aggregate job is GPUs over the tickets of its small jobs. With ``whole`` the GPUs are
      those of the server, as in the paper's drawing. Without, they are those that the small jobs got in the quantum, as
      under one stride for the whole cluster. The two agree where small jobs fill their server.
    * A large job has the same servers as long as they work. Large and small jobs share servers: each may use the GPUs
      that the others leave free. ``shared`` False gives a server to one or the other.
    * With several types each has a central scheduler; ``assign`` chooses a new job's type.

    Source: Gandiva_fair Sec. 3.1 (Large jobs), Fig. 3; Algorithm 2.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(SplitStride(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of split-stride, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "split-stride"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.1"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (
        Claim("", "Sec. 3.1", "equal tickets on all servers", words="shares as under one stride for the cluster"),
    )
    states = (Strides,)
    whole: bool = False
    shared: bool = True
    assign: Assign = least_crowded

    def decide(self, problem: Queue, state: Strides, solve: Session) -> Schedule:
        """Allocate new jobs, and run one quantum; see `Policy.decide`."""
        servers = ServerLoads(problem, fair_tickets(problem), state.homes)
        wanted = servers.wanted_by_type()
        for row in servers.next_jobs():
            gpu_type = self.assign(problem, row, problem.open_to(row), wanted)
            wanted[gpu_type] += servers.sizes[row]
            servers.allocate(row, gpu_type)
        placements, after, same = quantum(servers, state, whole=self.whole, shared=self.shared)
        return Schedule(self.name, problem, placements, state=after, stands=leases_end(problem) if same else None)


def fair_tickets(queue: Queue) -> list[Mapping[str, Fraction]]:
    """Return the GPUs of each type that each user present is entitled to: in proportion to its tickets.

    Jobs that fit no type do not count. Numbers are Fractions also where the queue's are floats, so that ties stay.

    Source: Gandiva_fair Sec. 1 (a proportional share of each generation), 2.1.
    """
    jobs = queue.jobs
    present = np.flatnonzero(np.bincount(jobs.tenant[queue.fitting])).tolist()
    weights = tuple(jobs.tenant_weight[present].tolist())
    return list(_fair(tuple(jobs.tenants[user] for user in present), weights, tuple(queue.capacity.tolist())))


@lru_cache(maxsize=64)  # most often the users are those of the round before
def _fair(users: Sequence[str], weights: Sequence[Number], capacity: Sequence[int]) -> list[Mapping[str, Fraction]]:
    weight = {user: exact(each, "tenant_weight") for user, each in zip(users, weights, strict=True)}
    whole = sum(weight.values())
    return [{user: own * gpus / whole for user, own in weight.items()} for gpus in capacity]


def quantum(servers: ServerLoads, before: Strides, *, whole: bool, shared: bool) -> tuple[Placements, Strides, bool]:
    """Return the placements of one quantum, the next state, and whether it stays so; options as in `SplitStride`.

    On each type the central scheduler takes the large jobs, and the servers with small jobs, by rising pass; ties go to
    servers, then to the first. A large job runs if all its servers have its GPUs left. On its turn a server runs its
    own small jobs by `gang_aware`. The pass of a job that runs rises by GPUs over tickets. Jobs without tickets (their
    user has sold them all) have no pass and come last, on their server or in the central scheduler.

    A job that is new on a server enters at the least pass there. Large jobs and servers' aggregates enter the central
    scheduler in the same way. Jobs that hold a lease run anyway, and their passes rise.

    Passes are less one ticket per GPU for each quantum: who has a ticket for each of its GPUs, and runs, keeps its own.
    So servers on which all do, as most do, need not be looked at.

    Source: Gandiva_fair Sec. 3.1 (Large jobs), Fig. 3.
    """
    queue, names, host = servers.queue, servers.queue.jobs.names, servers.host
    homes, cluster = servers.homes(), queue.cluster
    # a job whose home has changed is new on its servers
    moved = {names[row] for row in servers.changed() if before.homes.get(names[row]) != homes[names[row]]}
    known = {name: value for name, value in before.passes.items() if name not in moved} if moved else before.passes
    per_gpu = [servers.per_gpu(gpu_type) for gpu_type in range(len(cluster.types))]
    rows: list[list[int]] = [[] for _ in cluster.types]
    for row in servers.large_jobs():
        rows[servers.gpu_type(row)].append(row)
    # servers, the last of which is none, on which somebody may wait, or enter, or has tickets for part of the time
    busy = np.append(servers.wanted() > queue.working, True)
    busy[host[np.array([name not in known for name in names], dtype=bool)]] = True
    for gpu_type, parts in enumerate(per_gpu):
        if whole or queue.leased or any(part != 1 for part in parts.values()):
            busy[cluster.hosts_by_type[gpu_type]] = True
    if not shared:
        for each, _ in (spot for large in rows for row in large for spot in servers.home[row]):
            busy[each] = True
    calm = np.flatnonzero(~busy[host])
    for row in np.flatnonzero(busy[host] & (host >= 0)).tolist():
        rows[servers.gpu_type(row)].append(row)
    free = queue.free(queue.leased) - np.bincount(
        host[calm], weights=queue.jobs.gpus[calm], minlength=len(cluster.hosts)
    )
    left: list[int] = free.astype(np.int64).tolist()
    passes = {names[row]: known[names[row]] for row in calm.tolist()}
    aggregates: dict[str, int] = {}
    on = np.flatnonzero(np.bincount(host[calm], minlength=len(cluster.hosts)))
    ran, leased, stands = list(queue.leased), list(queue.leased), True
    for gpu_type, own in enumerate(rows):
        same = {
            cluster.hosts[each]: before.servers[cluster.hosts[each]]
            for each in on[cluster.gpu_type[on] == gpu_type].tolist()
        }
        one = _Type(servers, per_gpu[gpu_type], sorted(own), replace(before, passes=known), same.values())
        entering, there = dict(one.passes), dict(one.aggregates)
        run = one.run(left, shared)
        one.charge([*run, *leased], whole)
        stands = stands and one.passes == entering and one.aggregates == there
        passes |= one.passes
        aggregates |= same | one.aggregates
        ran += run
    placements = servers.placements(np.sort(np.array([*calm.tolist(), *ran], dtype=np.int64)))
    after = Strides(passes, homes=homes, servers=aggregates)
    return placements, before if after == before else after, stands and len(placements) == len(homes)


class _Type:
    """The central and the local schedulers of one type, with the jobs of it that are looked at, ``rows``.

    ``others`` are the passes of other servers' aggregates in the central scheduler.
    """

    def __init__(
        self,
        servers: ServerLoads,
        per_gpu: Mapping[str, Fraction],
        rows: Sequence[int],
        before: Strides,
        others: Iterable[int],
    ) -> None:
        queue, known = servers.queue, before.passes
        self.servers, self.leased = servers, queue.leased
        self.per_gpu = {user: in_units(each) for user, each in per_gpu.items()}
        self.names, self.hosts, self.gpus = queue.jobs.names, queue.cluster.hosts, servers.sizes
        users, home, names, gpus = servers.users, servers.home, self.names, self.gpus
        self.tickets: dict[int, int] = {}
        self.passes: dict[str, int] = {}
        self.large: list[int] = []
        self.small: dict[int, list[int]] = {}
        self.on_server: dict[int, int] = {}
        new: set[int] = set()  # servers with jobs that have no pass yet
        for row in rows:
            spots = home[row]
            own = self.tickets[row] = self.per_gpu[users[row]] * gpus[row]
            if len(spots) > 1:
                self.large.append(row)
                continue
            host = spots[0][0]
            if host in self.small:
                self.small[host].append(row)
                self.on_server[host] += own
            else:
                self.small[host], self.on_server[host] = [row], own
            if own > 0:
                value = known.get(names[row])
                if value is None:
                    new.add(host)
                else:
                    self.passes[names[row]] = value
        for host in new:
            here = [names[row] for row in self.small[host] if self.tickets[row] > 0]
            self.passes |= zip(here, entered([known.get(name) for name in here]), strict=True)
        # large jobs and aggregates are on one scale
        whole = [self.hosts[host] for host, tickets in self.on_server.items() if tickets > 0]
        large = [names[row] for row in self.large if self.tickets[row] > 0]
        there = [before.servers[host] for host in whole if host in before.servers]
        least = min([*others, *there, *(known[name] for name in large if name in known)], default=0)
        self.aggregates = {host: before.servers.get(host, least) for host in whole}
        self.passes |= {name: known.get(name, least) for name in large}

    def run(self, left: list[int], shared: bool) -> list[int]:
        """Return the jobs that run, on GPUs of each host that are ``left`` (H), which are taken."""
        running: list[int] = []
        busy: set[int] = set()
        apart = {host for row in self.large for host, _ in self.servers.home[row]}
        turns: list[tuple[Number, bool, int]] = [
            (turn(self.passes.get(self.names[row])), True, row) for row in self.large if row not in self.leased
        ]
        for host, here in self.small.items():
            if host in apart:
                turns.append((turn(self.aggregates.get(self.hosts[host])), False, host))
            else:  # no large job takes any of its GPUs, so that it does not matter when it is its turn
                running += self.local(host, here, left)
        for _, is_large, which in sorted(turns):
            spots = self.servers.home[which] if is_large else ((which, 0),)
            hosts = {host for host, _ in spots}
            if busy & hosts or any(left[host] < gpus for host, gpus in spots):
                continue
            chosen = [which] if is_large else self.local(which, self.small[which], left)
            if is_large:
                for on, gpus in spots:
                    left[on] -= gpus
            running += chosen
            if chosen and not shared:
                busy |= hosts
        return running

    def local(self, host: int, here: Sequence[int], left: list[int]) -> Sequence[int]:
        """Return which of a server's own jobs, ``here``, run on its GPUs that are ``left``, which are taken."""
        sizes = self.gpus
        rows = [row for row in here if row not in self.leased] if self.leased else here
        chosen, wanted = rows, sum([sizes[row] for row in rows])
        if wanted > left[host]:
            passes = [turn(self.passes.get(self.names[row])) for row in rows]
            places = gang_aware(passes, [sizes[row] for row in rows], left[host])
            chosen = [rows[at] for at in places]
            wanted = sum([sizes[row] for row in chosen])
        left[host] -= wanted
        return chosen

    def charge(self, rows: Sequence[int], whole: bool) -> None:
        """Let a quantum go by: the passes of the jobs here that run and have tickets rise, and of their servers."""
        used: dict[int, int] = {}
        users, home = self.servers.users, self.servers.home
        # GPUs over tickets: the same for each of a user's jobs
        rise = {user: stride(1, each) for user, each in self.per_gpu.items() if each > 0}
        self.passes = {name: value - UNIT for name, value in self.passes.items()}
        self.aggregates = {host: value - UNIT for host, value in self.aggregates.items()}
        for row in rows:
            if not self.tickets.get(row, 0) > 0:
                continue
            self.passes[self.names[row]] += rise[users[row]]
            spots = home[row]
            if len(spots) == 1:
                used[spots[0][0]] = used.get(spots[0][0], 0) + self.gpus[row]
        for host, gpus in used.items():
            size = int(self.servers.queue.cluster.gpus[host]) if whole else gpus
            self.aggregates[self.hosts[host]] += stride(size, self.on_server[host])

"""Split stride: each server schedules its small jobs, a central scheduler the large ones and the servers' turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import leases_end
from fairopt.models.gandiva_fair.servers import ServerLoads
from fairopt.models.gandiva_fair.stride import Assign, Strides, entered, gang_aware, least_crowded
from fairopt.models.gandiva_fair.tickets import in_units, stride
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue, Spots
from fairopt.program import INFINITY, Array, Number


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
        new = servers.next_jobs()
        wanted = problem.capacity * 0
        for row in servers.home if new else ():
            wanted[servers.gpu_type(row)] += servers.sizes[row]
        for row in new:
            gpu_type = self.assign(problem, row, problem.open_to(row), wanted)
            wanted[gpu_type] += servers.sizes[row]
            servers.allocate(row, gpu_type)
        running, after = quantum(servers, state, whole=self.whole, shared=self.shared)
        stands = leases_end(problem) if after.stands else None
        return Schedule(self.name, problem, dict(problem.leased) | running, state=after, stands=stands)


def fair_tickets(queue: Queue) -> list[Mapping[str, Fraction]]:
    """Return the GPUs of each type that each user present is entitled to: in proportion to its tickets.

    Jobs that fit no type do not count. Numbers are Fractions also where the queue's are floats, so that ties stay.

    Source: Gandiva_fair Sec. 1 (a proportional share of each generation), 2.1.
    """
    jobs = queue.jobs
    present = np.unique(jobs.tenant[queue.fitting]).tolist()
    weights = tuple(jobs.tenant_weight[present].tolist())
    return list(_fair(tuple(jobs.tenants[user] for user in present), weights, tuple(queue.capacity.tolist())))


@lru_cache(maxsize=64)  # most often the users are those of the round before
def _fair(users: Sequence[str], weights: Sequence[Number], capacity: Sequence[int]) -> list[Mapping[str, Fraction]]:
    weight = {user: exact(each, "tenant_weight") for user, each in zip(users, weights, strict=True)}
    whole = sum(weight.values())
    return [{user: own * gpus / whole for user, own in weight.items()} for gpus in capacity]


def quantum(servers: ServerLoads, before: Strides, *, whole: bool, shared: bool) -> tuple[dict[int, Spots], Strides]:
    """Return the placements of one quantum, without leases, and the next state; options as in `SplitStride`.

    On each type the central scheduler takes the large jobs, and the servers with small jobs, by rising pass; ties go to
    servers, then to the first. A large job runs if all its servers have its GPUs left. On its turn a server runs its
    own small jobs by `gang_aware`. The pass of a job that runs rises by GPUs over tickets. Jobs without tickets (their
    user has sold them all) have no pass and come last, on their server or in the central scheduler.

    A job that is new on a server enters at the least pass there. Large jobs and servers' aggregates enter the central
    scheduler in the same way. Jobs that hold a lease run anyway, and their passes rise.

    Source: Gandiva_fair Sec. 3.1 (Large jobs), Fig. 3.
    """
    queue = servers.queue
    running: dict[int, Spots] = {}
    passes: dict[str, int] = {}
    aggregates: dict[str, int] = {}
    entered_: dict[str, int] = {}
    there: dict[str, int] = {}
    left = queue.free(queue.leased)
    homes, known = servers.homes(), before.before(queue.index)
    # a job whose home has changed is new on its servers
    if homes != before.homes and (moved := {name for name, home in homes.items() if before.homes.get(name) != home}):
        known = replace(known, passes={name: value for name, value in known.passes.items() if name not in moved})
    rows: list[list[int]] = [[] for _ in queue.cluster.types]
    of_host = queue.cluster.type_of
    for row, spots in sorted(servers.home.items()):
        rows[of_host[spots[0][0]]].append(row)
    leased = list(queue.leased)
    for gpu_type, own_rows in enumerate(rows):
        one = _Type(servers, gpu_type, own_rows, known, left)
        entered_ |= one.passes
        there |= one.aggregates
        running |= (ran := one.run(shared))
        one.charge([*ran, *leased], whole)
        passes |= one.passes
        aggregates |= one.aggregates
    after = Strides(passes, homes=homes, servers=aggregates)
    if len(running) + len(queue.leased) == len(homes):  # nobody waits
        strides = {name: value - entered_[name] for name, value in passes.items()}
        own = {name: value - there[name] for name, value in aggregates.items()}
        same = strides == before.strides and own == before.server_strides and homes == before.homes
        after = before if same else replace(after, since=queue.index, strides=strides, server_strides=own)
    return running, after


class _Type:
    """The central and the local schedulers of one type, with its jobs, ``rows``; ``left`` (H,) is used up in place."""

    def __init__(self, servers: ServerLoads, gpu_type: int, rows: Sequence[int], before: Strides, left: Array) -> None:
        queue, known = servers.queue, before.passes
        self.servers, self.left, self.leased = servers, left, queue.leased
        self.names, self.hosts, self.gpus = queue.jobs.names, queue.cluster.hosts, servers.sizes
        self.per_gpu = {user: in_units(each) for user, each in servers.per_gpu(gpu_type).items()}
        users, home, names, gpus, per_gpu = servers.users, servers.home, self.names, self.gpus, self.per_gpu
        self.tickets: dict[int, int] = {}
        self.passes: dict[str, int] = {}
        self.large: list[int] = []
        self.small: dict[int, list[int]] = {}
        self.on_server: dict[int, int] = {}
        new: set[int] = set()  # servers with jobs that have no pass yet
        for row in rows:
            spots = home[row]
            own = self.tickets[row] = per_gpu[users[row]] * gpus[row]
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
        least = min([*there, *(known[name] for name in large if name in known)], default=0)
        self.aggregates = {host: before.servers.get(host, least) for host in whole}
        self.passes |= {name: known.get(name, least) for name in large}

    def run(self, shared: bool) -> dict[int, Spots]:
        """Return the placements of the jobs that run."""
        running: dict[int, Spots] = {}
        busy: set[int] = set()
        apart = {host for row in self.large for host, _ in self.servers.home[row]}
        left: list[int] = self.left.tolist()
        turns: list[tuple[Number, bool, int]] = [
            (self.passes.get(self.names[row], INFINITY), True, row) for row in self.large if row not in self.leased
        ]
        for host, here in self.small.items():
            if host in apart:
                turns.append((self.aggregates.get(self.hosts[host], INFINITY), False, host))
            else:  # no large job takes any of its GPUs, so that it does not matter when it is its turn
                running |= self.local(host, here, left)
        for _, is_large, which in sorted(turns):
            spots = self.servers.home[which] if is_large else ((which, 0),)
            hosts = {host for host, _ in spots}
            if busy & hosts or any(left[host] < gpus for host, gpus in spots):
                continue
            chosen = {which: spots} if is_large else self.local(which, self.small[which], left)
            if is_large:
                for on, gpus in spots:
                    left[on] -= gpus
            running |= chosen
            if chosen and not shared:
                busy |= hosts
        self.left[:] = left
        return running

    def local(self, host: int, here: Sequence[int], left: list[int]) -> dict[int, Spots]:
        """Return which of a server's own jobs, ``here``, run on its GPUs that are ``left``, which are taken."""
        sizes, home = self.gpus, self.servers.home
        rows = [row for row in here if row not in self.leased] if self.leased else here
        chosen, wanted = rows, sum([sizes[row] for row in rows])
        if wanted > left[host]:
            passes = [self.passes.get(self.names[row], INFINITY) for row in rows]
            places = gang_aware(passes, [sizes[row] for row in rows], left[host])
            chosen = [rows[at] for at in places]
            wanted = sum([sizes[row] for row in chosen])
        left[host] -= wanted
        return {row: home[row] for row in chosen}

    def charge(self, rows: Sequence[int], whole: bool) -> None:
        """Raise the passes of the jobs here that run and have tickets, and of their servers."""
        used: dict[int, int] = {}
        users, home = self.servers.users, self.servers.home
        # GPUs over tickets: the same for each of a user's jobs
        rise = {user: stride(1, each) for user, each in self.per_gpu.items() if each > 0}
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

"""Gandiva_fair: split stride on balanced servers, with trades of fast GPUs for slow ones between users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import lease_length, leases_end
from fairopt.models.gandiva_fair.second_price_trading import SecondPriceTrading, Trade
from fairopt.models.gandiva_fair.servers import Known, ServerLoads, to_balance, to_faster_type
from fairopt.models.gandiva_fair.split_stride import fair_tickets, quantum
from fairopt.models.gandiva_fair.stride import Strides
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number


@dataclass(frozen=True)
class Shared:
    """The state of Gandiva_fair: that of ``split`` stride, the types on which users are ``profiled``, and the trades.

    Trades in force are kept with the inputs that they were made from: ``present`` are the users that were present then,
    ``users`` and ``capacity`` the traders with their tickets and the GPUs of each type. ``tickets`` maps each trader to
    its GPUs of each type afterwards, in the order of types. Numbers are Fractions.
    """

    split: Strides = field(default_factory=Strides)
    profiled: Mapping[str, frozenset[str]] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    users: Mapping[str, Fraction] = field(default_factory=dict)
    capacity: tuple[int, ...] = ()
    tickets: Mapping[str, tuple[Fraction, ...]] = field(default_factory=dict)
    trades: tuple[Trade, ...] = ()


@dataclass(frozen=True)
class GandivaFair(Policy):
    """Each round: trades, homes for new jobs, at most ``migrations`` moves a quantum, and a quantum of split stride.

    1. *Tickets.* A user is entitled to its part, by tickets, of every type; tickets are counted in GPUs of the type.
       Trades change these entitlements (`traded`). They last until users come or go, and are then undone and
       made afresh. ``trading`` False keeps fair shares. On a type, GPUs that small users do not need go to the others
       (`fairopt.models.gandiva_fair.tickets.entitled`).
    2. *Allocation*, Algorithm 2: user by user, to the type where the time of a mini-batch over the user's tickets per
       GPU is least, this job included; ties go to the type where it gets more of the time, then to the newer one,
       which is the later of ``cluster.types``. Then to the least loaded servers. Speeds are known on types where a job
       of the user has run. Where the user's allocation on those is used up, a new job goes to the newest of the others
       on which it is not: "the jobs are scheduled on the V100s until the user exhausts their V100 allocation (based on
       their tickets). The next job the user submits is scheduled on the second fastest GPU" (Sec. 3.5, Profiling).
       Once all are used up and no speed is known, it goes where it gets most of the time. With ``profiling`` False
       speeds are known from the start.
    3. *Migration*: the job that gains most from another type moves, if its relative speedup is above ``improvement``.
       The moves that are left go from the most to the least loaded server of a type, if loads per GPU differ by more
       than ``threshold``. A load per GPU of 1 is what a server can just serve. The paper gives neither number. "Job
       migration options are evaluated every time quantum", which "is set to one/two minutes" (Sec. 3.5): where rounds
       are longer, ``quantum``, in the trace's unit of time, allows ``migrations`` moves for each that a round has; None
       takes a round for a quantum.
    4. *Split stride* with ``whole`` and ``shared`` as in `SplitStride`.

    Large jobs, and jobs with a lease, stay on their servers while these work, except for moves to another type.

    ``costs`` of a schedule: ``load_gap``, the largest difference between loads of two servers of a type after the
    moves; the number of ``moves``; the number of ``trades`` in force. Notes say why a job was moved.

    Source: Gandiva_fair Sec. 3, Algorithms 1 and 2.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(GandivaFair(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of gandiva-fair, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "gandiva-fair"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.5"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    states = (Shared, Strides, Trade)
    trading: bool = True
    profiling: bool = True
    migrations: int = within(1, least=0)
    quantum: object = within(None, above=0)
    threshold: Fraction = within(Fraction(1, 10), least=0)
    improvement: Fraction = within(Fraction(1, 10), least=0)
    whole: bool = False
    shared: bool = True

    def decide(self, problem: Queue, state: Shared, solve: Session) -> Schedule:
        """Trade, allocate, move, and run one quantum; see `Policy.decide`."""
        types = problem.cluster.types

        def known(user: str, gpu_type: int) -> bool:
            return not self.profiling or types[gpu_type] in state.profiled.get(user, frozenset())

        trades = traded(problem, state, known) if self.trading and len(types) > 1 else Shared()
        tickets = [
            {user: trades.tickets[user][gpu_type] if user in trades.tickets else own for user, own in fair.items()}
            for gpu_type, fair in enumerate(fair_tickets(problem))
        ]
        servers = ServerLoads(problem, tickets, state.split.homes)
        for row in servers.next_jobs():
            servers.allocate(row, best_type(servers, row, known))
        notes = self.migrate(servers, known)
        placements, split, stands = quantum(servers, state.split, whole=self.whole, shared=self.shared)
        profiled = {
            user: state.profiled.get(user, frozenset()) | ran
            for user, ran in kinds_by_user(problem, placements).items()
        }
        same = stands and not notes and profiled == state.profiled
        after = replace(trades, split=split, profiled=profiled)
        return Schedule(
            self.name,
            problem,
            placements,
            state=state if same and after == state else after,
            costs={"load_gap": servers.widest_gap(), "moves": len(notes), "trades": len(trades.trades)},
            notes=notes,
            stands=leases_end(problem) if same else None,
        )

    def migrate(self, servers: ServerLoads, known: Known) -> dict[int, str]:
        """Move up to ``migrations`` jobs, each at most once; return why, by row."""
        notes: dict[int, str] = {}
        cluster = servers.queue.cluster
        quanta = max(1, int(servers.queue.length // lease_length(servers.queue, self.quantum)))
        for _ in range(self.migrations * quanta):
            faster = to_faster_type(servers, known, exact(self.improvement, "improvement"))
            move = faster or to_balance(servers, exact(self.threshold, "threshold"))
            if move is None or move[0] in notes:
                break
            row, to = move
            old = servers.home[row][0][0]
            if faster is not None:
                servers.leave(row)
                servers.allocate(row, to)
            else:
                servers.settle(row, ((to, servers.sizes[row]),))
            why, new = "load balance" if faster is None else "faster type", servers.home[row][0][0]
            notes[row] = f"moved from {cluster.hosts[old]} to {cluster.hosts[new]}: {why}"
        return notes


def best_type(servers: ServerLoads, row: int, known: Known) -> int:
    """Return the type of a job without a home. Source: Gandiva_fair Algorithm 2, lines 4-7; Sec. 3.5 (Profiling)."""
    user, gpu_types = servers.users[row], servers.queue.open_to(row)
    part = {gpu_type: servers.part(gpu_type, row, more=servers.sizes[row]) for gpu_type in gpu_types}
    seen = [gpu_type for gpu_type in gpu_types if known(user, gpu_type)]
    # "until the user exhausts their V100 allocation": until not even one more GPU would be theirs all of the time
    open_ = [gpu_type for gpu_type in gpu_types if servers.part(gpu_type, row, more=1) == 1]
    unseen = [gpu_type for gpu_type in open_ if gpu_type not in seen]
    if unseen and not set(seen) & set(open_):
        return max(unseen)
    if not seen:
        return max(gpu_types, key=lambda gpu_type: (part[gpu_type], gpu_type))

    def performance(gpu_type: int) -> tuple[Number, Number, int]:
        speed = exact(servers.queue.jobs.throughput[row, gpu_type], "throughput")
        return speed * part[gpu_type], part[gpu_type], gpu_type

    return max(seen, key=performance)


def kinds_by_user(queue: Queue, placements: Mapping[int, Spots]) -> dict[str, set[str]]:
    """Return the types that each user who is present runs on in a round, by names."""
    jobs, types = queue.jobs, queue.cluster.types
    ran: dict[int, set[str]] = {tenant: set() for tenant in dict.fromkeys(jobs.tenant.tolist())}
    for tenant, spots in zip(jobs.tenant[list(placements)].tolist(), placements.values(), strict=True):
        ran[tenant] |= {types[gpu_type] for gpu_type in queue.gpu_types(spots)}
    return {jobs.tenants[tenant]: gpu_types for tenant, gpu_types in ran.items()}


def traded(queue: Queue, before: Shared, known: Known) -> Shared:
    """Return the state with the trades of this round: those in force if no user came or went, else all of them afresh.

    All trades are undone, and made again from the fair shares, when a user comes or goes, when hosts fail or come back,
    or when a user begins or ceases to be a trader. Traders are the users whose jobs that fit want at least as many GPUs
    as their fair shares together. The paper speaks of users that keep the cluster busy; a user with little work gains
    nothing from many slow GPUs. The others keep their fair shares.

    A user's speedup on a type is the mean over its jobs of their throughput relative to their fastest type, weighted by
    GPUs. If its jobs are alike, as in the paper, ratios between types are those of each job. Numbers are Fractions.

    Source: Gandiva_fair Sec. 3.4, 3.5 (Trading).
    """
    fair = fair_tickets(queue)
    present = tuple(fair[0])
    jobs, owner = queue.jobs, queue.jobs.tenant[queue.fitting]
    demand = np.bincount(owner, weights=jobs.gpus[queue.fitting], minlength=len(jobs.tenants)).tolist()
    useful = queue.suits[queue.fitting] & (queue.capacity > 0)
    needed = [set(owner[of_type].tolist()) for of_type in useful.T]
    at = {user: tenant for tenant, user in enumerate(jobs.tenants)}
    users = {
        user: exact(jobs.tenant_weight[at[user]], "tenant_weight")
        for user in present
        if demand[at[user]] >= sum(tickets[user] for tickets in fair)
        and all(known(user, gpu_type) for gpu_type, of_type in enumerate(needed) if at[user] in of_type)
    }
    capacity = tuple(int(gpus) for gpus in queue.capacity)
    if (present, users, capacity) == (before.present, dict(before.users), before.capacity):
        return before
    market = market_of(queue, users, [sum((of[user] for user in users), Fraction(0)) for of in fair])
    if market is None:
        return replace(before, present=present, users=users, capacity=capacity, tickets={}, trades=())
    shares, trades = SecondPriceTrading().compute(market, None)
    rows = dict(zip(market.users, shares, strict=True))
    used = [queue.cluster.types.index(name) for name in market.types]
    tickets = {}
    for user, row in rows.items():
        own = [of_type[user] for of_type in fair]
        for gpu_type, share in zip(used, row, strict=True):
            own[gpu_type] = max(share, share * 0)  # a share below 0 is a rounding error
        tickets[user] = tuple(own)
    return replace(before, present=present, users=users, capacity=capacity, tickets=tickets, trades=trades)


def market_of(queue: Queue, users: Mapping[str, Fraction], shares: list[Fraction]) -> Market | None:
    """Return the market of the traders, who together have ``shares`` of each type; None where nobody can trade.

    Types without GPUs are left out, and so are users that can run on no other type.
    """
    relative = np.array([relative_speed(queue, user) for user in users], dtype=object)
    gpu_types = [gpu_type for gpu_type, share in enumerate(shares) if share > 0]
    rows = [place for place in range(len(users)) if any(relative[place, gpu_type] > 0 for gpu_type in gpu_types)]
    if len(rows) < len(users) or len(users) < 2 or len(gpu_types) < 2:
        return None
    return Market.of(
        relative[:, gpu_types].tolist(),
        [shares[gpu_type] for gpu_type in gpu_types],
        weight=list(users.values()),
        users=list(users),
        types=[queue.cluster.types[gpu_type] for gpu_type in gpu_types],
    )


def relative_speed(queue: Queue, user: str) -> list[Fraction]:
    """Return a user's speedup on each type: see `traded`."""
    jobs = queue.jobs
    own = jobs.tenant == jobs.tenants.index(user)
    own &= queue.fits.any(axis=1)
    alike: Counter[tuple[Number, ...]] = Counter()
    for speeds, gpus in zip(np.where(queue.suits, jobs.throughput, 0)[own].tolist(), jobs.gpus[own], strict=True):
        alike[tuple(speeds)] += int(gpus)
    total = [Fraction(0)] * len(jobs.types)
    for speeds, gpus in alike.items():
        known = [exact(speed, "throughput") for speed in speeds]
        total = [before + speed * gpus / max(known) for before, speed in zip(total, known, strict=True)]
    gpus = sum(alike.values())
    return [value / gpus for value in total]

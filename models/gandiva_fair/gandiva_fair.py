"""Gandiva_fair: split stride on balanced servers, with trades of fast GPUs for slow ones between users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.gandiva_fair.second_price_trading import SecondPriceTrading, Trade
from fairopt.models.gandiva_fair.servers import Known, Move, ServerLoads, carry_out, to_balance, to_faster_type
from fairopt.models.gandiva_fair.split_stride import Split, fair_tickets, quantum
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.market import Market
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number


@dataclass(frozen=True)
class Traded:
    """The trades in force, and the inputs that they were made from.

    ``users`` and ``capacity`` are the traders with their tickets and the GPUs of each type when the trades were made;
    ``tickets`` maps each trader to its GPUs of each type afterwards, in the order of types. ``present`` are the users
    that were present then.
    """

    present: tuple[str, ...] = ()
    users: Mapping[str, Number] = field(default_factory=dict)
    capacity: tuple[int, ...] = ()
    tickets: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)
    trades: tuple[Trade, ...] = ()


@dataclass(frozen=True)
class Shared:
    """The state of Gandiva_fair: that of ``split`` stride, the trades, and the types on which users are profiled."""

    split: Split = field(default_factory=Split)
    traded: Traded = field(default_factory=Traded)
    profiled: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class GandivaFair(Policy):
    """Each round: trades, homes for new jobs, at most ``migrations`` moves, and one quantum of split stride.

    1. *Tickets.* A user is entitled to its part, by tickets, of every type; tickets are counted in GPUs of the type.
       Trades change these entitlements (`traded`). They last until users come or go, and are then undone and
       made afresh. ``trading`` False keeps fair shares. On a type, GPUs that small users do not need go to the others
       (`fairopt.models.gandiva_fair.tickets.entitled`).
    2. *Allocation*, Algorithm 2: user by user, to the type where the time of a mini-batch over the user's tickets per
       GPU is least, this job included; ties go to the type where it gets more of the time, then to the newer one,
       which is the later of ``cluster.types``. Then to the least loaded servers. Speeds are known on types where a job
       of the user has run; where the user's tickets on those are used up, a new job goes to the newest of the others
       (Sec. 3.5, Profiling). With ``profiling`` False speeds are known from the start.
    3. *Migration*: the job that gains most from another type moves, if its relative speedup is above ``improvement``.
       The moves that are left go from the most to the least loaded server of a type, if loads per GPU differ by more
       than ``threshold``. A load per GPU of 1 is what a server can just serve. The paper gives neither number.
    4. *Split stride* with ``whole`` and ``shared`` as in `SplitStride`.

    Large jobs, and jobs with a lease, stay on their servers while these work, except for moves to another type.

    ``costs`` of a schedule: ``load_gap``, the largest difference between loads of two servers of a type after the
    moves; the number of ``moves``; the number of ``trades`` in force. Notes say why a job was moved.

    Source: Gandiva_fair Sec. 3, Algorithms 1 and 2.
    """

    problem = Queue
    name = "gandiva-fair"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.5"
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS})
    states = (Shared, Split, Traded, Trade)
    trading: bool = True
    profiling: bool = True
    migrations: int = 1
    threshold: Fraction = Fraction(1, 10)
    improvement: Fraction = Fraction(1, 10)
    whole: bool = False
    shared: bool = True

    def __post_init__(self) -> None:
        for option in ("migrations", "threshold", "improvement"):
            value = getattr(self, option)
            require(value >= 0, value, f"{self.name}, {option}", "Give a number, not negative")

    def decide(self, problem: Queue, state: Shared, solve: Session) -> Schedule:
        """Trade, allocate, move, and run one quantum; see `Policy.decide`."""
        types = problem.cluster.types

        def known(user: str, gpu_type: int) -> bool:
            return not self.profiling or types[gpu_type] in state.profiled.get(user, frozenset())

        trades = traded(problem, state.traded, known) if self.trading and len(types) > 1 else Traded()
        tickets = [
            {user: trades.tickets[user][gpu_type] if user in trades.tickets else own for user, own in fair.items()}
            for gpu_type, fair in enumerate(fair_tickets(problem))
        ]
        servers = ServerLoads(problem, tickets, state.split.homes)
        for row in servers.next_jobs():
            servers.allocate(row, best_type(servers, row, known))
        notes = self.migrate(servers, known)
        running, split = quantum(servers, state.split, whole=self.whole, shared=self.shared)
        placements = dict(problem.leased) | running
        profiled = {
            user: state.profiled.get(user, frozenset()) | ran
            for user, ran in kinds_by_user(problem, placements).items()
        }
        return Schedule(
            self.name,
            problem,
            placements,
            state=Shared(split, trades, profiled),
            costs={"load_gap": servers.widest_gap(), "moves": len(notes), "trades": len(trades.trades)},
            notes=notes,
        )

    def migrate(self, servers: ServerLoads, known: Known) -> dict[int, str]:
        """Move up to ``migrations`` jobs, each at most once; return why, by row."""
        notes: dict[int, str] = {}
        number, cluster = servers.queue.number, servers.queue.cluster
        for _ in range(self.migrations):
            move: Move | None = to_faster_type(servers, known, number(self.improvement))
            why = "faster type"
            if move is None:
                move, why = to_balance(servers, number(self.threshold)), "load balance"
            if move is None or move.row in notes:
                break
            old = servers.home[move.row][0][0]
            carry_out(servers, move)
            new = servers.home[move.row][0][0]
            notes[move.row] = f"moved from {cluster.hosts[old]} to {cluster.hosts[new]}: {why}"
        return notes


def best_type(servers: ServerLoads, row: int, known: Known) -> int:
    """Return the type of a job without a home. Source: Gandiva_fair Algorithm 2, lines 4-7; Sec. 3.5 (Profiling)."""
    queue = servers.queue
    user, gpus = queue.jobs.tenant_of(row), int(queue.jobs.gpus[row])
    gpu_types = queue.open_to(row)
    part = {gpu_type: servers.per_gpu(gpu_type, user, gpus)[user] for gpu_type in gpu_types}
    seen = [gpu_type for gpu_type in gpu_types if known(user, gpu_type)]
    unseen = [gpu_type for gpu_type in gpu_types if not known(user, gpu_type)]
    if unseen and all(part[gpu_type] < 1 for gpu_type in seen):
        return max(unseen)
    return max(
        seen, key=lambda gpu_type: (queue.jobs.throughput[row, gpu_type] * part[gpu_type], part[gpu_type], gpu_type)
    )


def kinds_by_user(queue: Queue, placements: Mapping[int, Spots]) -> dict[str, set[str]]:
    """Return the types that each user who is present runs on in a round, by names."""
    gpu_types: dict[str, set[str]] = {queue.jobs.tenant_of(row): set() for row in range(len(queue))}
    for row, spots in placements.items():
        gpu_types[queue.jobs.tenant_of(row)] |= {queue.cluster.types[gpu_type] for gpu_type in queue.gpu_types(spots)}
    return gpu_types


def traded(queue: Queue, before: Traded, known: Known) -> Traded:
    """Return the trades of this round: those in force if no user came or went, else all of them afresh.

    All trades are undone, and made again from the fair shares, when a user comes or goes, when hosts fail or come back,
    or when a user begins or ceases to be a trader. Traders are the users whose jobs that fit want at least as many GPUs
    as their fair shares together. The paper speaks of users that keep the cluster busy; a user with little work gains
    nothing from many slow GPUs. The others keep their fair shares.

    A user's speedup on a type is the mean over its jobs of their throughput relative to their fastest type, weighted by
    GPUs. If its jobs are alike, as in the paper, ratios between types are those of each job. The number type is that of
    the queue.

    Source: Gandiva_fair Sec. 3.4, 3.5 (Trading).
    """
    fair = fair_tickets(queue)
    present = tuple(fair[0])
    demand: Counter[str] = Counter()
    needed: dict[str, set[int]] = {user: set() for user in present}
    for row in queue.fitting:
        user = queue.jobs.tenant_of(row)
        demand[user] += int(queue.jobs.gpus[row])
        needed[user] |= set(np.flatnonzero(queue.suits[row] & (queue.capacity > 0)).tolist())
    weight = dict(zip(queue.jobs.tenants, queue.jobs.tenant_weight, strict=True))
    users = {
        user: weight[user]
        for user in present
        if demand[user] >= sum(tickets[user] for tickets in fair)
        and all(known(user, gpu_type) for gpu_type in needed[user])
    }
    capacity = tuple(int(gpus) for gpus in queue.capacity)
    if (present, users, capacity) == (before.present, dict(before.users), before.capacity):
        return before
    market = market_of(queue, users, [sum(tickets[user] for user in users) for tickets in fair])
    if market is None:
        return Traded(present, users, capacity)
    shares, trades = SecondPriceTrading().compute(market, None)
    rows = dict(zip(market.users, shares, strict=True))
    used = [queue.cluster.types.index(name) for name in market.types]
    tickets = {}
    for user, row in rows.items():
        own = [of_type[user] for of_type in fair]
        for gpu_type, share in zip(used, row, strict=True):
            own[gpu_type] = max(share, share * 0)  # a share below 0 is a rounding error
        tickets[user] = tuple(own)
    return Traded(present, users, capacity, tickets, trades)


def market_of(queue: Queue, users: Mapping[str, Number], shares: list[Number]) -> Market | None:
    """Return the market of the traders, who together have ``shares`` of each type; None where nobody can trade.

    Types without GPUs are left out, and so are users that can run on no other type.
    """
    relative = np.array([relative_speed(queue, user) for user in users], dtype=object)
    gpu_types = [gpu_type for gpu_type, share in enumerate(shares) if share > 0]
    rows = [place for place in range(len(users)) if any(relative[place, gpu_type] > 0 for gpu_type in gpu_types)]
    if len(rows) < len(users) or len(users) < 2 or len(gpu_types) < 2:
        return None
    market = Market.of(
        relative[:, gpu_types].tolist(),
        [shares[gpu_type] for gpu_type in gpu_types],
        weight=list(users.values()),
        users=list(users),
        types=[queue.cluster.types[gpu_type] for gpu_type in gpu_types],
    )
    return market if queue.exact else market.as_(float)


def relative_speed(queue: Queue, user: str) -> list[Number]:
    """Return a user's speedup on each type: see `traded`."""
    rows = [row for row in queue.fitting if queue.jobs.tenant_of(row) == user]
    able, gpus = np.where(queue.suits[rows], queue.jobs.throughput[rows], 0), queue.jobs.gpus[rows]
    parts = able * gpus[:, None] / able.max(axis=1)[:, None]
    return [value / queue.number(sum(gpus.tolist())) for value in parts.sum(axis=0).tolist()]

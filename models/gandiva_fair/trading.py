"""Trades between users between rounds: from fair shares of each type to the tickets after trading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fairopt.models.gandiva_fair.second_price_trading import SecondPriceTrading, Trade
from fairopt.models.gandiva_fair.servers import Known
from fairopt.models.gandiva_fair.split_stride import fair_tickets
from fairopt.problem.market import Market
from fairopt.problem.queue import Queue
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

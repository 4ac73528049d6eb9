"""The smallest reclaim: which running gangs to stop so that a number of GPUs of a type become free.

Only whole preemptible gangs are stopped, and only of users that borrow. Of all such sets the one that takes the fewest
GPUs below what users and groups are owed (none, mostly) is best, then the one of the fewest GPUs, then of the fewest
gangs. It is found exactly, in whole numbers, by dynamic programming up the tree: for each node and each number of GPUs
the best way to stop that many inside it. Where that choice leaves too little of CPU, memory or another good for those
that are to start, `GoodsSearch` looks for the best one that leaves enough. Where either is too much work, a choice that
does is taken, and said not to be known as the smallest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fairopt.audit.accounts import BOUNDLESS, EntitlementAccounts
from fairopt.audit.goods_search import Chosen, GoodsSearch
from fairopt.audit.spare_goods import Limit, goods_of
from fairopt.program import Array, Number

#: The most users whose gangs a sentence names.
NAMED = 20
#: A GPU below what is owed outweighs any number of gangs.
BELOW = 1 << 24
#: The most numbers that are computed for the best ways to stop GPUs; beyond it a way is taken that does.
MOST_NUMBERS = 30_000_000
NEVER = np.int64(1) << 60


class Stopped(NamedTuple):
    """A gang to stop, or ("") GPUs of a user that no listed gang holds."""

    gang: str
    user: str
    gpus: int

    def __str__(self) -> str:
        return self.gang or f"{self.gpus} GPUs of no listed gang"


@dataclass(frozen=True)
class Reclaim:
    """What frees ``needed`` GPUs of a type: what to stop, None where nothing does.

    ``below``: by user or group, how many GPUs it is left short of what it is owed, since gangs are whole. ``told``:
    those of them that are left short of more than their members. ``is_smallest``: False where there are too many other
    choices to know whether one takes less.
    """

    type: str
    needed: int
    stops: tuple[Stopped, ...] | None
    gpus: int = 0
    below: Mapping[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    is_smallest: bool = True

    def by_user(self) -> dict[str, list[str]]:
        """Return the gangs to stop, by user."""
        found: dict[str, list[str]] = {}
        for each in self.stops or ():
            found.setdefault(each.user, []).append(str(each))
        return found

    def __str__(self) -> str:
        if self.stops is None:
            return f"no choice of whole preemptible gangs of those who borrow frees {self.needed} {self.type}"
        if not self.stops:
            return f"stop nothing: {self.needed} {self.type} are free"
        whose = [f"{', '.join(gangs)} of {user}" for user, gangs in self.by_user().items()]
        whom = "; ".join(whose[:NAMED]) + f"; and of {len(whose) - NAMED} other users" * (len(whose) > NAMED)
        said = f"reclaim {self.gpus} {self.type}: stop {whom}"
        many = "there are too many other choices to know whether one takes less"
        if not self.below:
            return said if self.is_smallest else f"{said}; {many}"
        told = [f"{self.below[name]} of what {name} is owed" for name in self.told]
        more = f" and some of what {len(told) - NAMED} others are owed" * (len(told) > NAMED)
        left = " and ".join(told[:NAMED]) + more
        least = "no choice takes less" + " in all" * (len(told) > 1) if self.is_smallest else many
        return f"{said}. Gangs are whole, so this takes {left}; {least}"


def smallest(
    accounts: EntitlementAccounts,
    gpu_type: int,
    needed: int,
    users: Collection[int],
    granted: Mapping[int, int],
    missing: Mapping[Limit, Number] | None = None,
) -> Reclaim:
    """Return the smallest reclaim of ``needed`` GPUs of a type from ``users``.

    ``granted``: GPUs of the type that each node gets in exchange, by node; they count as held. ``missing``: how much of
    goods must be set free too, which all preemptible gangs of the users together do.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["B", "B"], [4, 2], users=["B"], types=["H100"], names=["b", "c"], on=["H100", "H100"])
    >>> owed = Entitlements.of(["B"], ["H100"], guarantee={"B": [4]}, gangs=gangs)
    >>> accounts = EntitlementAccounts(Market.of([[1]], [6], users=["B"], types=["H100"], entitlements=owed))
    >>> print(smallest(accounts, 0, 2, [0], {}))
    reclaim 2 H100: stop c of B
    """
    kind, gangs, needed = accounts.market.types[gpu_type], accounts.gangs, max(0, needed)
    if not needed and not missing:
        return Reclaim(kind, 0, ())
    may = {user: _parts(accounts, user, gpu_type) for user in users}
    may = {user: parts for user, parts in may.items() if parts}
    if sum(part.gpus for parts in may.values() for part in parts) < needed:
        return Reclaim(kind, needed, None)
    slack = {
        node: _slack(accounts, node, gpu_type, granted)
        for node in {each for user in may for each in accounts.around(user)}
    }
    search = GoodsSearch(accounts, gpu_type, missing or {}, slack, BELOW)
    chosen, is_smallest = _by_gpus(accounts, may, needed, slack), True
    if chosen is None:
        chosen, is_smallest = search.enough(may, needed), False
    elif missing and not _frees(accounts, gpu_type, chosen, missing):
        chosen, is_smallest = search.best(may, needed, chosen)
    chosen.sort(key=lambda each: (each.user, each.gang is None, each.gang))
    gpus = sum(each.gpus for each in chosen)
    names = ((gangs.names[each.gang] if each.gang is not None else "", each.user, each.gpus) for each in chosen)
    stops = tuple(Stopped(gang, accounts.market.users[user], count) for gang, user, count in names)
    below = _below(accounts, chosen, slack)
    return Reclaim(kind, needed, stops, gpus, below, _told(accounts, below), is_smallest)


def _by_gpus(
    accounts: EntitlementAccounts, may: Mapping[int, Sequence[Chosen]], needed: int, slack: Mapping[int, int]
) -> list[Chosen] | None:
    """Return the best choice that frees so many GPUs, whatever else it sets free; None where that is too much work."""
    sizes = [part.gpus for parts in may.values() for part in parts if part.gang is not None]
    # of a set that frees more than this, some gang can be left out
    most = needed + max(sizes, default=1) - 1
    singles = sum(min(needed, part.gpus) for parts in may.values() for part in parts if part.gang is None)
    if (len(sizes) + singles) * (most + 1) > MOST_NUMBERS:
        return None
    tables = _up_the_tree(
        accounts, {user: [_table_of(part, needed) for part in parts] for user, parts in may.items()}, slack, most
    )
    top = _merged([tables[node] for node in accounts.said.tops if node in tables], most)
    gpus = min(range(needed, len(top.cost)), key=lambda t: (top.cost[t] // BELOW, t, top.cost[t]))
    return top.chosen(gpus)


def _frees(
    accounts: EntitlementAccounts, gpu_type: int, chosen: Sequence[Chosen], missing: Mapping[Limit, Number]
) -> bool:
    """Return whether a choice sets all that is missing free."""
    freed = goods_of(accounts, [each.gang for each in chosen if each.gang is not None], gpu_type)
    return all(freed.get(limit, 0) >= amount for limit, amount in missing.items())


def reclaimable(accounts: EntitlementAccounts, gpu_type: int, users: Collection[int]) -> int:
    """Return how many GPUs of a type may be taken from users at most."""
    return sum(part.gpus for user in users for part in _parts(accounts, user, gpu_type))


def _parts(accounts: EntitlementAccounts, user: int, gpu_type: int) -> list[Chosen]:
    """Return what may be stopped of a user: each preemptible gang, and single GPUs that it holds beside its gangs.

    First stand those that are chosen where choices are equal: of low priority, then young, then listed last,
    as the pods of a gang beyond those that it needs are.
    """
    gangs, runs = accounts.gangs, accounts.running.get((user, gpu_type), [])
    listed = sum(int(gangs.gpus[each]) for each in runs)
    fixed = sum(int(gangs.gpus[each]) for each in runs if not gangs.preemptible[each])
    held, kept = accounts.held[user, gpu_type], accounts.fixed[user, gpu_type]
    single = int((held - listed - max(0, kept - fixed)) // 1)
    may = sorted(
        (each for each in runs if gangs.preemptible[each]),
        key=lambda each: (gangs.tier[each], -gangs.since[each], -each),
    )
    parts = [Chosen(user, each, int(gangs.gpus[each])) for each in may]
    return [*parts, Chosen(user, None, single)] if single > 0 else parts


def _slack(accounts: EntitlementAccounts, node: int, gpu_type: int, granted: Mapping[int, int]) -> int:
    """Return how many GPUs can be taken from a node, that is granted some, before it lacks what it holds and is owed.

    A part of a GPU does not count.
    """
    held, owed = accounts.held[node, gpu_type], accounts.owed[node, gpu_type]
    return int(min(BOUNDLESS, max(0, held - owed) // 1)) + granted.get(node, 0)


def _below(accounts: EntitlementAccounts, chosen: Sequence[Chosen], slack: Mapping[int, int]) -> dict[str, int]:
    taken: dict[int, int] = {}
    for each in chosen:
        for node in accounts.around(each.user):
            taken[node] = taken.get(node, 0) + each.gpus
    return {accounts.said.nodes[node]: gpus - slack[node] for node, gpus in taken.items() if gpus > slack[node]}


def _told(accounts: EntitlementAccounts, below: Mapping[str, int]) -> tuple[str, ...]:
    """Return who is left short of more than those inside."""
    least: dict[int, int] = {}
    told = []
    for node in accounts.said.upwards if below else ():
        inside = sum(least.get(child, 0) for child in accounts.said.children[node])
        short = below.get(accounts.said.nodes[node], 0)
        least[node] = max(inside, short)
        told += [accounts.said.nodes[node]] * (short > inside)
    return tuple(told)


class _Table(NamedTuple):
    """The least cost of stopping t GPUs (most + 1,), and how: the tables it is made of, and how many of the second.

    One that is made of no others is of a user's gang, or (None) of GPUs that it holds beside its gangs.
    """

    cost: Array
    first: _Table | None = None
    second: _Table | None = None
    of_second: Array | None = None
    user: int = -1
    gang: int | None = None

    def chosen(self, gpus: int) -> list[Chosen]:
        """Return what is stopped for so many GPUs."""
        found, table = [], self
        while table.first is not None and table.second is not None and table.of_second is not None:
            part = int(table.of_second[gpus])
            found += table.second.chosen(part)
            table, gpus = table.first, gpus - part
        return [*found, Chosen(table.user, table.gang, gpus)] if gpus else found


def _up_the_tree(
    accounts: EntitlementAccounts, may: Mapping[int, list[_Table]], slack: Mapping[int, int], most: int
) -> dict[int, _Table]:
    tables: dict[int, _Table] = {}
    for node in accounts.said.upwards:
        inside = [tables[child] for child in accounts.said.children[node] if child in tables]
        if parts := may.get(node, inside):
            found = _merged(parts, most)
            below = np.maximum(np.arange(len(found.cost)) - slack[node], 0)
            tables[node] = found._replace(cost=np.minimum(found.cost + BELOW * below, NEVER))
    return tables


def _table_of(part: Chosen, needed: int) -> _Table:
    """Return the table of a gang, or of single GPUs, of which no more than ``needed`` are stopped."""
    if part.gang is None:
        return _Table(np.arange(min(needed, part.gpus) + 1), user=part.user)
    cost = np.full(part.gpus + 1, NEVER)
    cost[0], cost[part.gpus] = 0, 1
    return _Table(cost, user=part.user, gang=part.gang)


def _merged(parts: Sequence[_Table], most: int) -> _Table:
    """Return the table of all parts together, for at most ``most`` GPUs."""
    whole = parts[0]._replace(cost=parts[0].cost[: most + 1])
    for part in parts[1:]:
        length = min(most, len(whole.cost) + len(part.cost) - 2) + 1
        cost, of_second = np.full(length, NEVER), np.zeros(length, dtype=np.int32)
        for taken in np.flatnonzero(part.cost < NEVER).tolist():
            end = min(length, taken + len(whole.cost))
            if end <= taken:
                continue
            here = whole.cost[: end - taken] + part.cost[taken]
            better = here < cost[taken:end]
            cost[taken:end][better] = here[better]
            of_second[taken:end][better] = taken
        whole = _Table(cost, whole, part, of_second)
    return whole

"""What is broken: guarantees by others' borrowing, and caps; with the smallest reclaim that mends it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts, users_in
from fairopt.audit.mending import Reclaim, reclaimable, smallest
from fairopt.audit.reasons import MOST_HOLDERS, NAMED, named
from fairopt.audit.spare_goods import Lack, SpareGoods, beside_served, freed_by, goods_of
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Number, number_text
from fairopt.report import SAYS, Key, ResultForm


@dataclass(frozen=True)
class BrokenGuarantee:
    """A user or group whose gangs wait for GPUs that it is owed, while others hold more than they are owed.

    ``holders``: those that hold most beyond that, of ``of``.
    """

    name: str
    type: str
    short: int
    holders: tuple[tuple[str, int], ...]
    of: int

    form = ResultForm(
        "A broken guarantee.",
        Key("holders", dict[str, int], "Who holds how much too much.", lambda it: dict(it.holders)),
        SAYS,
        in_full=True,
    )

    def __str__(self) -> str:
        some = ", ".join(f"{name} holds {gpus}" for name, gpus in self.holders[:NAMED])
        more = f", and {self.of - NAMED} others hold some" if self.of > NAMED else ""
        owed = f"{self.name} waits for {self.short} {self.type} that it is owed"
        return f"{owed}; beyond what they are owed, {some}{more}"


@dataclass(frozen=True)
class BrokenCap:
    """A user or group that holds more of a type or good than it may; ``mend`` is None for a good."""

    name: str
    type: str
    holds: Number
    cap: Number
    mend: Reclaim | None = None

    form = ResultForm("A broken cap.", SAYS, in_full=True)

    def __str__(self) -> str:
        return f"{self.name} holds {number_text(self.holds)} {self.type} and may hold {number_text(self.cap)}"


@dataclass(frozen=True)
class Mend:
    """The smallest reclaim on a type that lets starving gangs run: ``gangs``, of all that could (``of``).

    ``resources``: what else they take, of which there is enough then. ``lacks``: the gangs for which there is not.
    ``unread``: what the files say of ``gangs`` and the scheduler's rule does not read, which must let them run, too.
    """

    type: str
    gangs: tuple[str, ...]
    of: int
    reclaim: Reclaim
    resources: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()
    unread: tuple[str, ...] = ()

    form = ResultForm("A reclaim, and what it lets run.", SAYS, in_full=True)

    def __str__(self) -> str:
        more = f"; and {len(self.lacks) - NAMED} more wait for such goods" * (len(self.lacks) > NAMED)
        lacks = "; ".join(map(str, self.lacks[:NAMED])) + more
        if not self.gangs and lacks:
            return f"{self.type}: {lacks}"
        if self.reclaim.stops is None or not self.gangs:
            return f"{self.type}: {self.reclaim}"
        some = ", ".join(self.gangs[:NAMED]) + (f" and {len(self.gangs) - NAMED} more" * (len(self.gangs) > NAMED))
        runs = "runs" if len(self.gangs) == 1 else "run"
        count = f" ({len(self.gangs)} of {self.of} that starve)" if len(self.gangs) < self.of else ""
        *others, last = self.resources or ("",)
        enough = f", with enough {', '.join(others)}{' and ' * bool(others)}{last}" if last else ""
        lets = f", if what the rule does not read lets {'it' if len(self.gangs) == 1 else 'them'}: {named(self.unread)}"
        return f"{self.reclaim}. Then {some} {runs}{enough}{count}{lets * bool(self.unread)}" + f"; {lacks}" * bool(
            lacks
        )

    def as_far_as_read(self, unread: Callable[[str], Sequence[str]]) -> Mend:
        """Return the same with what a rule does not read of its gangs: ``unread`` says it of one, by its name."""
        return replace(self, unread=tuple(dict.fromkeys(each for gang in self.gangs for each in unread(gang))))


def broken_guarantees(accounts: EntitlementAccounts) -> Iterator[BrokenGuarantee]:
    """Yield the guarantees that others' borrowing breaks.

    A starving gang that no free GPUs serve and that no cap stops counts for its user where it fits into what that is
    owed, else for the first group around it. A part by weight is no promise.
    """
    if accounts.by_weight:
        return
    short: dict[tuple[int, int], int] = {}
    for gang, (node, j) in accounts.owed_at.items():
        if gang in accounts.served or not accounts.below_caps(gang, j, but_of_pool=True):
            continue
        short[node, j] = short.get((node, j), 0) + accounts.gangs.size(gang)
    for (node, j), gpus in sorted(short.items()):
        holders = accounts.borrowers(node, j)
        if not holders:
            continue
        names = tuple((accounts.said.nodes[user], borrowed) for user, borrowed in islice(holders.items(), MOST_HOLDERS))
        yield BrokenGuarantee(accounts.said.nodes[node], accounts.market.types[j], gpus, names, len(holders))


def broken_caps(accounts: EntitlementAccounts) -> Iterator[BrokenCap]:
    """Yield the caps that are broken, each with the smallest reclaim inside that mends it."""
    said = accounts.said
    for node, column in np.argwhere(accounts.over_cap).tolist():
        holds, cap = accounts.held[node, column], said.cap[node, column]
        mend = None
        if column < accounts.k:
            inside = users_in(accounts.said, node)
            mend = smallest(accounts, column, ceil(holds - cap), inside, {})
        yield BrokenCap(said.nodes[node], said.columns[column], holds, cap, mend)


def mends(accounts: EntitlementAccounts, only: int | None = None) -> Iterator[Mend]:
    """Yield, type by type, the smallest reclaim that lets all starving gangs run; of the gangs of one node, ``only``.

    Where not enough can be reclaimed for all, or caps leave no room for all, gangs of high priority, and then those
    that asked first, come first. CPU, memory and other goods are looked at where the file has stocks and needs of them.
    """
    spare, on_free = beside_served(accounts)
    for j in range(accounts.k):
        gangs = [
            gang
            for gang, (node, on) in accounts.owed_at.items()
            if on == j and only in (None, node) and accounts.below_caps(gang, j, but_of_pool=True)
        ]
        gangs.sort(key=accounts.place.__getitem__)
        pools: dict[int, list[int]] = {}
        for gang in gangs:
            pools.setdefault(accounts.pools.of(int(accounts.gangs.user[gang]), j), []).append(gang)
        for pool, inside in pools.items():
            owed = {accounts.owed_at[gang][0] for gang in inside}
            users = sorted(accounts.borrowers_for(owed, j))
            if pool != TOP:
                users = [user for user in users if accounts.pools.of(user, j) == pool]
            if users:
                for gang in on_free.keys() & set(inside):
                    spare.stop(on_free[gang])
                yield from _on_type(accounts, j, inside, users, spare, only)


def _on_type(
    accounts: EntitlementAccounts, j: int, gangs: list[int], users: list[int], spare: SpareGoods, only: int | None
) -> Iterator[Mend]:
    """Yield the mend on one type; none where what is free is enough. ``spare`` is left as it is after it."""
    pool = accounts.pools.of(int(accounts.gangs.user[gangs[0]]), j)
    free = accounts.pools.left_in(pool, j) if only is None else accounts.free_for(only, j)
    helped, granted, lacks = _helped(accounts, j, gangs, free + reclaimable(accounts, j, users), spare, users)
    total = sum(accounts.gangs.size(gang) for gang in helped)
    kind, first = accounts.market.types[j], accounts.gangs.size(gangs[0])
    taken = goods_of(accounts, helped, j)
    missing = spare.missing(taken)
    spare.start(taken)
    if helped and (total > free or missing):
        found = smallest(accounts, j, total - free, users, granted, missing)
        stopped = [accounts.gang_called[each.gang] for each in found.stops or () if each.gang]
        spare.stop(goods_of(accounts, stopped, j))
        names = tuple(accounts.gangs.names[gang] for gang in helped)
        yield Mend(kind, names, len(gangs), found, spare.resources(helped, j), lacks)
    elif lacks or not helped:
        yield Mend(kind, (), len(gangs), Reclaim(kind, max(0, first - free), None), lacks=lacks)


def _helped(
    accounts: EntitlementAccounts, j: int, gangs: list[int], there: Number, spare: SpareGoods, users: list[int]
) -> tuple[list[int], dict[int, int], tuple[Lack, ...]]:
    """Return the gangs that can run if all is reclaimed, what GPUs each node gets, and what others lack of goods."""
    helped: list[int] = []
    lacks: list[Lack] = []
    granted: dict[int, int] = defaultdict(int)
    total, freed = 0, freed_by(accounts, j, users)
    for gang in gangs:
        gpus, user = accounts.gangs.size(gang), int(accounts.gangs.user[gang])
        path = accounts.around(user)
        pool = accounts.pools.of(user, j)  # of which ``there`` has what can be reclaimed
        rooms = (granted[node] + gpus > accounts.cap_room[node, j] for node in path if node != pool)
        if total + gpus > there or any(rooms):
            continue
        lack = spare.lack(gang, j, freed)
        if lack is not None:
            lacks.append(lack)
            continue
        helped.append(gang)
        total += gpus
        granted |= {node: granted[node] + gpus for node in path}
        for limit, amount in goods_of(accounts, [gang], j).items():
            freed[limit] = freed.get(limit, 0) - amount
    return helped, granted, tuple(lacks)

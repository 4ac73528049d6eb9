"""What is broken: guarantees by others' borrowing, and caps; with the smallest reclaim that mends it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts, users_in
from fairopt.audit.mending import reclaim, reclaimable, smallest
from fairopt.audit.reasons import MOST_HOLDERS, NAMED, named
from fairopt.audit.spare_goods import SpareGoods, beside_served, freed_by, goods_of
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Number, number_text
from fairopt.report import SAYS, Key, ResultForm, Statement


def _broken_guarantee(it: Statement) -> str:
    some = ", ".join(f"{name} holds {gpus}" for name, gpus in it.holders[:NAMED])
    more = f", and {it.of - NAMED} others hold some" if it.of > NAMED else ""
    owed = f"{it.name} waits for {it.short} {it.type} that it is owed"
    return f"{owed}; beyond what they are owed, {some}{more}"


def _broken_cap(it: Statement) -> str:
    return f"{it.name} holds {number_text(it.holds)} {it.type} and may hold {number_text(it.cap)}"


def _mend(it: Statement) -> str:
    more = f"; and {len(it.lacks) - NAMED} more wait for such goods" * (len(it.lacks) > NAMED)
    lacks = "; ".join(map(str, it.lacks[:NAMED])) + more
    if not it.gangs and lacks:
        return f"{it.type}: {lacks}"
    if it.reclaim.stops is None or not it.gangs:
        return f"{it.type}: {it.reclaim}"
    some = ", ".join(it.gangs[:NAMED]) + (f" and {len(it.gangs) - NAMED} more" * (len(it.gangs) > NAMED))
    runs = "runs" if len(it.gangs) == 1 else "run"
    count = f" ({len(it.gangs)} of {it.of} that starve)" if len(it.gangs) < it.of else ""
    *others, last = it.resources or ("",)
    enough = f", with enough {', '.join(others)}{' and ' * bool(others)}{last}" if last else ""
    lets = f", if what the rule does not read lets {'it' if len(it.gangs) == 1 else 'them'}: {named(it.unread)}"
    return f"{it.reclaim}. Then {some} {runs}{enough}{count}{lets * bool(it.unread)}" + f"; {lacks}" * bool(lacks)


#: A user or group, its ``name``, whose gangs wait for GPUs of a ``type`` that it is owed, ``short`` of them, while
#: others hold more than they are owed. ``holders``: those that hold most beyond that, of ``of``.
BROKEN_GUARANTEE = ResultForm(
    "A broken guarantee.",
    Key("holders", dict[str, int], "Who holds how much too much.", lambda it: dict(it.holders)),
    SAYS,
    in_full=True,
    sentence=_broken_guarantee,
)
#: A user or group, its ``name``, that ``holds`` more of a ``type`` or good than its ``cap``. ``mend``: the `RECLAIM`
#: that mends it, None for a good.
BROKEN_CAP = ResultForm("A broken cap.", SAYS, in_full=True, sentence=_broken_cap)
#: The smallest ``reclaim`` on a ``type`` that lets starving gangs run: ``gangs``, of all that could (``of``).
#: ``resources``: what else they take, of which there is enough then. ``lacks``: the gangs for which there is not.
#: ``unread``: what the files say of ``gangs`` and the scheduler's rule does not read, which must let them run, too.
MEND = ResultForm("A reclaim, and what it lets run.", SAYS, in_full=True, sentence=_mend)


def let_by(mend: Statement, unread: Callable[[str], Sequence[str]]) -> Statement:
    """Return a `MEND` with what a rule does not read of its gangs: ``unread`` says it of one, by its name."""
    found = dict.fromkeys(each for gang in mend.gangs for each in unread(gang))
    return replace(mend, parts={**mend.parts, "unread": tuple(found)})


def broken_guarantees(accounts: EntitlementAccounts) -> Iterator[Statement]:
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
        yield BROKEN_GUARANTEE.of(
            name=accounts.said.nodes[node],
            type=accounts.market.types[j],
            short=gpus,
            holders=names,
            of=len(holders),
        )


def broken_caps(accounts: EntitlementAccounts) -> Iterator[Statement]:
    """Yield the caps that are broken, each with the smallest reclaim inside that mends it."""
    said = accounts.said
    for node, column in np.argwhere(accounts.over_cap).tolist():
        holds, cap = accounts.held[node, column], said.cap[node, column]
        mend = None
        if column < accounts.k:
            inside = users_in(accounts.said, node)
            mend = smallest(accounts, column, ceil(holds - cap), inside, {})
        yield BROKEN_CAP.of(name=said.nodes[node], type=said.columns[column], holds=holds, cap=cap, mend=mend)


def mends(accounts: EntitlementAccounts, only: int | None = None) -> Iterator[Statement]:
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
) -> Iterator[Statement]:
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
        resources = spare.resources(helped, j)
        yield MEND.of(type=kind, gangs=names, of=len(gangs), reclaim=found, resources=resources, lacks=lacks, unread=())
    elif lacks or not helped:
        nothing = reclaim(kind, max(0, first - free), None)
        yield MEND.of(type=kind, gangs=(), of=len(gangs), reclaim=nothing, resources=(), lacks=lacks, unread=())


def _helped(
    accounts: EntitlementAccounts, j: int, gangs: list[int], there: Number, spare: SpareGoods, users: list[int]
) -> tuple[list[int], dict[int, int], tuple[Statement, ...]]:
    """Return the gangs that can run if all is reclaimed, what GPUs each node gets, and what others lack of goods."""
    helped: list[int] = []
    lacks: list[Statement] = []
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
        for limit, amount in accounts.pools.goods_of(gang, j):
            freed[limit] = freed.get(limit, 0) - amount
    return helped, granted, tuple(lacks)

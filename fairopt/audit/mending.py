"""The smallest reclaim: which running gangs to stop so that a number of GPUs of a type become free.

Only whole preemptible gangs are stopped, and only of users that borrow. Of all such sets the one that takes the fewest
GPUs below what users and groups are owed (none, mostly) is best, then the one of the fewest GPUs, then of the fewest
gangs, among those that set enough of CPU, memory and every other good free for those that are to start. Of choices
alike in all this, it is one that takes least from the user or group that is listed last, then from the one before it.

What is best for each number of GPUs is found for each user, and put together group by group. Where what that stops sets
too little of a good free, an integer program of how many gangs to stop of each kind is solved for one after the other.
Where that is too much work, a choice that does is taken, and said not to be known as the smallest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, gcd
from operator import mul
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.pools import plain, whole
from fairopt.audit.spare_goods import Limit, goods_of
from fairopt.backends import Highs
from fairopt.backends.solution import Solution, Status
from fairopt.program import Array, Formulation, Number, Program, objects
from fairopt.report import ResultForm, Statement

#: The most users whose gangs a sentence names.
NAMED = 20
#: The most nodes of branch and bound for each of the three programs; beyond them a way is taken that does.
NODES = 5_000
#: Where more GPUs are needed, tables by the number of GPUs are too much work.
TABLED = 20_000
#: What no choice of gangs costs.
_NEVER = 2**60
#: Two tables are put together in steps of so many pairs of entries.
ENTRIES = 50_000


class Stopped(NamedTuple):
    """A gang to stop, or ("") GPUs of a user that no listed gang holds."""

    gang: str
    user: str
    gpus: Number

    def __str__(self) -> str:
        return self.gang or f"{self.gpus} GPUs of no listed gang"


def _reclaimed(it: Statement) -> str:
    if it.stops is None:
        return f"no choice of whole preemptible gangs of those who borrow frees {it.needed} {it.type}"
    if not it.stops:
        return f"stop nothing: {it.needed} {it.type} are free"
    by_user: dict[str, list[str]] = {}
    for each in it.stops:
        by_user.setdefault(each.user, []).append(str(each))
    whose = [f"{', '.join(gangs)} of {user}" for user, gangs in by_user.items()]
    whom = "; ".join(whose[:NAMED]) + f"; and of {len(whose) - NAMED} other users" * (len(whose) > NAMED)
    said = f"reclaim {it.gpus} {it.type}: stop {whom}"
    many = "there are too many other choices to know whether one takes less"
    if not it.below:
        return said if it.is_smallest else f"{said}; {many}"
    told = [f"{it.below[name]} of what {name} is owed" for name in it.told]
    more = f" and some of what {len(told) - NAMED} others are owed" * (len(told) > NAMED)
    left = " and ".join(told[:NAMED]) + more
    least = "no choice takes less" + " in all" * (len(told) > 1) if it.is_smallest else many
    return f"{said}. Gangs are whole, so this takes {left}; {least}"


RECLAIM = ResultForm("What frees GPUs of a type.", in_full=True, sentence=_reclaimed)


def reclaim(
    gpu_type: str,
    needed: Number,
    stops: tuple[Stopped, ...] | None,
    gpus: Number = 0,
    below: Mapping[str, Number] = MappingProxyType({}),
    told: tuple[str, ...] = (),
    *,
    is_smallest: bool = True,
) -> Statement:
    """Return what frees ``needed`` GPUs of a type: what to stop, None where nothing does.

    ``below``: by user or group, how many GPUs it is left short of what it is owed, since gangs are whole. ``told``:
    those of them that are left short of more than their members. ``is_smallest``: False where there are too many other
    choices to know whether one takes less.
    """
    parts = {"type": gpu_type, "needed": needed, "stops": stops, "gpus": gpus}
    return RECLAIM.of(**parts, below=below, told=told, is_smallest=is_smallest)


def smallest(
    accounts: EntitlementAccounts,
    gpu_type: int,
    needed: Number,
    users: Collection[int],
    granted: Mapping[int, Number],
    missing: Mapping[Limit, Number] | None = None,
) -> Statement:
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
    kind, needed, missing = accounts.market.types[gpu_type], max(0, needed), missing or {}
    if not needed and not missing:
        return reclaim(kind, 0, ())
    parts = [(user, part) for user in users for part in _parts(accounts, user, gpu_type)]
    if sum(part.gpus for _, part in parts) < needed:
        return reclaim(kind, needed, None)
    kinds: dict[_Kind, list[Stopped]] = defaultdict(list)
    alike, kind_of = dict[tuple[int, int], list[Stopped]](), accounts.gangs.kinds
    for user, part in parts:
        gang = accounts.gang_called[part.gang] if part.gang else -1
        same = user, int(kind_of[gang]) if part.gang else -1
        if same not in alike:
            taken = goods_of(accounts, [gang] if part.gang else [], gpu_type)
            freed = tuple(taken.get(limit, 0) for limit in missing)
            alike[same] = kinds[_Kind(user, part.gpus if part.gang else 1, freed, not part.gang)]
        alike[same].append(part)
    around: dict[int, list[int]] = defaultdict(list)
    for at, each in enumerate(kinds):
        for node in accounts.around(each.user):
            around[node].append(at)
    slack = {node: _slack(accounts, node, gpu_type, granted) for node in around}
    there = [min(ceil(needed), int(own[0].gpus)) if each.single else len(own) for each, own in kinds.items()]
    owed = [(own, int(slack[node] * accounts.gangs.parts)) for node, own in around.items()]
    counts, is_smallest = _fewest(list(kinds), there, (needed, *missing.values()), owed, accounts.gangs.parts)
    gpus = [each.gpus * count for each, count in zip(kinds, counts, strict=True)]
    stops: list[Stopped] = []
    for each, own, count in zip(kinds, kinds.values(), counts, strict=True):
        stops += [own[0]._replace(gpus=count)] * bool(count) if each.single else own[:count]
    place = accounts.gang_called
    stops.sort(key=lambda each: (accounts.said.node(each.user), not each.gang, place.get(each.gang, 0)))
    took = {node: sum(gpus[at] for at in inside) for node, inside in around.items()}
    below = {accounts.said.nodes[node]: most - slack[node] for node, most in took.items() if most > slack[node]}
    left = _told(accounts, below)
    return reclaim(kind, needed, tuple(stops), sum(gpus), below, left, is_smallest=is_smallest)


class _Kind(NamedTuple):
    """What is alike in what may be stopped: whose it is, its GPUs, and how much of the missing goods it sets free.

    ``single``: GPUs that no listed gang holds, one by one.
    """

    user: int
    gpus: Number
    freed: tuple[Number, ...]
    single: bool


#: Of each node the places of the kinds that are inside it, and how many parts of a GPU it loses without harm.
_Owed = Sequence[tuple[list[int], int]]


def _fewest(
    kinds: Sequence[_Kind], there: Sequence[int], needs: Sequence[Number], owed: _Owed, parts: int
) -> tuple[list[int], bool]:
    """Return how many to stop of each of ``kinds``, at most as many as are ``there``, and whether nothing is better.

    ``needs``: how many GPUs must be free, and how much of each good. Tables and programs count in ``parts`` of a GPU.
    """
    gpus, needed = [int(each.gpus * parts) for each in kinds], ceil(needs[0] * parts)
    known = _tabled(gpus, there, needed, owed)
    if known is not None and _spare(kinds, known, needs) is not None:
        return known, True
    counts, proved = _programmed(kinds, np.array(gpus), there, needed, needs[1:], owed)
    enough = _spare(kinds, counts, needs) is not None
    if enough and proved:
        return counts, True
    return _without_spare(kinds, counts if enough else list(there), needs), False


class _Table(NamedTuple):
    """By number of GPUs, what the best choice of gangs costs that have so many: those of a ``kind``, or of ``parts``.

    ``shares``: by the number of GPUs that the first parts have with the next one, how many this next one has.
    """

    costs: Array
    kind: int = -1
    parts: Sequence[_Table] = ()
    shares: Sequence[Array] = ()


def _tabled(gpus: Sequence[int], there: Sequence[int], needed: int, owed: _Owed) -> list[int] | None:
    """Return how many to stop of each kind so that nothing is better, goods left aside; None where it is too much work.

    A GPU below what a node is owed costs more than all gangs. First choices are sought that need none.
    """
    unit, above = gcd(*gpus), 1 + sum(there)
    sizes, least = [each // unit for each in gpus], -(-needed // unit)
    most = least + max(sizes) - 1  # a choice of more can do without one of its gangs
    if most > TABLED or above * most * unit * len(owed) > _NEVER:
        return None
    for harmless in (True, False):
        tables = {at: _of_kind(at, size, there[at], most) for at, size in enumerate(sizes)}
        within = list(tables)
        for inside, spare in sorted(owed, key=lambda each: len(each[0])):
            some = [tables.pop(each) for each in dict.fromkeys(within[at] for at in inside)]
            limit = min(most, spare // unit) if harmless else most
            # a part of which nothing can be taken within the limit changes nothing
            fit = [each for each in some if len(each.costs) > 1 and (each.parts or sizes[each.kind] <= limit)]
            table = _joined(fit or some[:1], limit)
            below = np.maximum(np.arange(len(table.costs)) * unit - spare, 0)
            tables[inside[0]] = table._replace(costs=np.minimum(table.costs + above * below, _NEVER))
            for at in inside:
                within[at] = inside[0]
        table = _joined([*tables.values()], most)
        enough = table.costs[least:] // above
        if len(enough) and enough.min() < _NEVER // above:
            chosen = dict(_choice(table, least + int(enough.argmin())))
            return [chosen.get(at, 0) // size for at, size in enumerate(sizes)]
    return None


def _of_kind(kind: int, size: int, there: int, most: int) -> _Table:
    """Return the table of gangs of one kind."""
    count = min(there, most // size)
    costs = np.full(count * size + 1, _NEVER)
    costs[::size] = range(count + 1)
    return _Table(costs, kind)


def _joined(parts: Sequence[_Table], most: int) -> _Table:
    """Return the table of choices from all ``parts`` together, up to ``most`` GPUs."""
    costs, shares = parts[0].costs[: most + 1], list[Array]()
    for each in parts[1:]:
        own = each.costs[: most + 1]
        size = min(len(costs) + len(own) - 1, most + 1)
        before = len(own) - 1
        padded = np.full(before + size, _NEVER)
        padded[before : before + len(costs)] = costs
        # a row for each number of GPUs that this part has: those of the parts before it, moved by so many
        moved = np.ndarray(
            (len(own), size), padded.dtype, padded, before * padded.itemsize, (-padded.itemsize, padded.itemsize)
        )
        costs, share = np.full(size, _NEVER), np.zeros(size, dtype=np.int64)
        step = max(1, ENTRIES // size)
        for first in range(0, len(own), step):
            both = moved[first : first + step] + own[first : first + step, None]
            best = both.argmin(axis=0)
            cost = both.min(axis=0)
            better = cost < costs
            costs[better], share[better] = cost[better], first + best[better]
        shares.append(share)
    return _Table(costs, parts=parts, shares=shares)


def _choice(table: _Table, gpus: int) -> Iterator[tuple[int, int]]:
    """Yield how many GPUs of each kind are in the best choice of so many."""
    if not table.parts:
        yield table.kind, gpus
    for number in reversed(range(len(table.parts))):
        own = int(table.shares[number - 1][gpus]) if number else gpus
        yield from _choice(table.parts[number], own)
        gpus -= own


def _programmed(
    kinds: Sequence[_Kind], gpus: Array, there: Sequence[int], needed: int, goods: Sequence[Number], owed: _Owed
) -> tuple[list[int], bool]:
    """Return the same by integer programs, with enough of goods, and whether it is known as the best."""
    counts = list(there)
    risky = [(own, spare) for own, spare in owed if sum(gpus[at] * there[at] for at in own) > spare]
    p = Formulation("smallest reclaim")
    stop = p.variable("stop", gpus.shape, lower=0, upper=np.array(there), integer=True)
    below = p.variable("below", (len(risky),), lower=0)
    ranks = [*[below.sum()] * bool(risky), (gpus * stop).sum(), stop.sum()]
    p.minimize(ranks[0])
    p.constrain("gpus", (gpus * stop).sum() >= needed)
    for at, amount in enumerate(goods):
        freed = np.array([each.freed[at] / amount for each in kinds], dtype=float)
        p.constrain(f"good {at}", (freed * stop).sum() >= 1)
    for number, (own, spare) in enumerate(risky):
        p.constrain(f"owed {number}", (gpus[own] * stop[own]).sum() - below[number] <= spare)
    for number, rank in enumerate(ranks):
        p.constrain(f"rank {number}", rank <= (gpus * there).sum() * (1 + len(risky)))
    known: tuple[int, ...] = ()
    program, proved = p.program().as_(float), True
    least = (*[0] * bool(risky), needed)  # mostly the first ranks are this, and the last one is left
    while proved and len(known) < len(ranks):  # as small as can be, and then the next one, where this one is no larger
        for before in dict.fromkeys(((*known, *least[len(known) :]), known)):
            found = _ranked(program, before)
            if found.x is not None:
                counts = [round(each) for each in program.variable("stop", found.x).tolist()]
            if proved := found.status is Status.OPTIMAL and found.objective is not None:
                known = (*before, round(found.objective or 0))
                break
    return counts, proved


def _ranked(program: Program, before: Sequence[int]) -> Solution:
    """Return the answer of least rank where the ranks before that one are no larger than ``before``."""
    cost, upper = np.zeros(len(program.cost)), program.rows.upper.copy()
    for number, most in enumerate(before):
        upper[program.row_block(f"rank {number}").first] = most
    inside = program.rows.row == program.row_block(f"rank {len(before)}").first
    cost[program.rows.column[inside]] = program.rows.value[inside]
    asked = replace(program, cost=cost, rows=replace(program.rows, upper=upper))
    return Highs(NODES, thorough=False).solve(asked, gap=0)  # where there is no point, nobody asks why


def _spare(kinds: Sequence[_Kind], counts: Sequence[int], needs: Sequence[Number]) -> tuple[Number, ...] | None:
    """Return what is stopped beyond what is needed, of GPUs and of each good; None where it is not enough."""
    columns = zip(*((each.gpus, *each.freed) for each in kinds), strict=True)
    spare = tuple(sum(map(mul, values, counts)) - least for least, values in zip(needs, columns, strict=True))
    return spare if min(spare) >= 0 else None


def _without_spare(kinds: Sequence[_Kind], counts: list[int], needs: Sequence[Number]) -> list[int]:
    """Return as many of each kind without what it can do without, the largest left out first."""
    spare = list(_spare(kinds, counts, needs) or ())
    for at in sorted(range(len(kinds)), key=lambda at: -kinds[at].gpus):
        pairs = list(zip(spare, (kinds[at].gpus, *kinds[at].freed), strict=True))
        without = min([counts[at], *(int(more // value) for more, value in pairs if value)])
        counts[at] -= without
        spare = [more - without * value for more, value in pairs]
    return counts


def reclaimable(accounts: EntitlementAccounts, gpu_type: int, users: Collection[int]) -> Number:
    """Return how many GPUs of a type may be taken from users at most."""
    total: Number = 0
    for user in users:
        may, single = _loose(accounts, user, gpu_type)
        total += sum(map(accounts.gangs.size, may)) + max(0, single)
    return total


def _parts(accounts: EntitlementAccounts, user: int, gpu_type: int) -> list[Stopped]:
    """Return what may be stopped of a user: each preemptible gang, and single GPUs that it holds beside its gangs.

    First stand those that are chosen where choices are equal: of low priority, then young, then listed last,
    as the pods of a gang beyond those that it needs are.
    """
    gangs, (may, single) = accounts.gangs, _loose(accounts, user, gpu_type)
    may.sort(key=lambda each: (gangs.tier[each], -gangs.since[each], -each))
    name = accounts.market.users[user]
    parts = [Stopped(gangs.names[each], name, gangs.size(each)) for each in may]
    return [*parts, Stopped("", name, single)] if single > 0 else parts


def _loose(accounts: EntitlementAccounts, user: int, gpu_type: int) -> tuple[list[int], int]:
    """Return the preemptible gangs of a user on a type, and how many GPUs it holds beside its gangs."""
    gangs, runs = accounts.gangs, accounts.running.get((user, gpu_type), [])
    may = [each for each in runs if gangs.preemptible[each]]
    listed = sum(map(gangs.size, runs))
    fixed = listed - sum(map(gangs.size, may)) if len(may) < len(runs) else 0
    held, kept = accounts.held[user, gpu_type], accounts.fixed[user, gpu_type]
    return may, int((held - listed - max(0, kept - fixed)) // 1)


def _slack(accounts: EntitlementAccounts, node: int, gpu_type: int, granted: Mapping[int, Number]) -> Number:
    """Return how many GPUs can be taken from a node, that is granted some, before it lacks what it holds and is owed.

    What is less than the parts of GPUs that gangs take does not count.
    """
    held, owed = accounts.held[node, gpu_type], accounts.owed[node, gpu_type]
    spare: Number = plain(whole(objects([max(0, held - owed)]), accounts.gangs.parts)[0])
    return spare + granted.get(node, 0)


def _told(accounts: EntitlementAccounts, below: Mapping[str, Number]) -> tuple[str, ...]:
    """Return who is left short of more than those inside."""
    least: dict[int, Number] = {}
    told = []
    above = {each for name in below for each in accounts.said.path(accounts.said.node(name))}
    for node in (each for each in accounts.said.upwards if each in above) if below else ():
        inside = sum(least.get(child, 0) for child in accounts.said.children[node])
        short = below.get(accounts.said.nodes[node], 0)
        least[node] = max(inside, short)
        told += [accounts.said.nodes[node]] * (short > inside)
    return tuple(told)

"""How users and groups stand: what each holds, is guaranteed and may take, and how much more of a type it could use."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fairopt.numbers import arithmetic
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Array, Number, number_text
from fairopt.properties.shares.feasibility import sizes

#: GPUs that a user asks for, by the types that serve: (0, 2) for those that may be of the first or the third type.
Asked: TypeAlias = dict[tuple[int, ...], Number]
#: In floats, GPUs relative to a type's that are none, and that do not keep a gang from its last GPU.
NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class HeldAndOwed:
    """What shares mean to every user and group of a market with entitlements.

    Shapes, for N nodes (users, then groups) and c columns: the k types. Where the shares are what users hold now, the
    further goods are columns too.

    * ``held`` (N, c): what each holds. ``more`` (N, c): how much more of one column it could use, the others staying as
      they are: what it asks for beside what it holds, within its cap and those of the groups and users in it.
    * ``guarantee`` (N, c): at most what there is. ``cap`` (N, c). ``movable`` (N, c): what can be taken back.
    * ``free`` (c,): what nobody holds. ``size`` (c,): to what a tolerance is relative.

    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [6], "B": [2]}, held={"A": [1], "B": [7]})
    >>> HeldAndOwed.of(Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed), owed.held).free
    array([Fraction(0, 1)], dtype=object)
    """

    market: Market
    entitlements: Entitlements
    held: Array
    more: Array
    guarantee: Array
    cap: Array
    movable: Array
    free: Array
    size: Array

    @classmethod
    def of(cls, market: Market, shares: Array) -> HeldAndOwed:
        """Return how everybody stands with ``shares`` (n, k) of a market that has entitlements."""
        owed, k = market.entitlements, len(market.types)
        assert owed is not None
        now = bool((owed.held[:, :k] == shares).all())
        mine = owed.held if now else shares
        columns = slice(0, k + len(owed.goods) if now else k)
        there = np.concatenate([market.capacity, owed.stock])[columns]
        held, cap = owed.total(mine), owed.cap[:, columns]
        # what is held now and is not in the shares was taken back already
        fixed = owed.total(np.minimum(owed.fixed[:, columns], mine))
        size = np.concatenate([sizes(market), np.where(owed.stock > 0, owed.stock, 1)])[columns]
        return cls(
            market=market,
            entitlements=owed,
            held=held,
            more=_more(owed, _unserved(market, owed, mine), cap - held),
            guarantee=np.minimum(owed.guarantee[:, columns], there),
            cap=cap,
            movable=held - fixed,
            free=there - mine.sum(axis=0),
            size=size,
        )

    @property
    def short(self) -> Array:
        """How much each is below what it is owed (N, c): the guarantee, or what it could use if that is less."""
        return np.asarray(np.minimum(np.maximum(self.guarantee - self.held, 0), self.more))

    @cached_property
    def beyond(self) -> Array:
        """How much each user (n, c) holds beyond its guarantee that could be taken back."""
        n = len(self.entitlements.users)
        return np.asarray(np.maximum(np.minimum(self.held - self.guarantee, self.movable), 0)[:n])

    @cached_property
    def lent_in_all(self) -> Array:
        """How much can be taken back for each (N, c) from all others at once, within the caps of its groups."""
        return self._had(0 * self.free)

    @cached_property
    def reach(self) -> Array:
        """How much each (N, c) could have more of a column, of what is idle and lent, within the caps of its groups."""
        return self._had(self.free)

    def _had(self, idle: Array) -> Array:
        """Return how much each (N, c) could have of what is ``idle`` (c,) and what all others lend.

        A group gives no more than it holds beyond its guarantee, and takes in no more than its cap leaves.
        """
        owed, above, room = self.entitlements, np.maximum(self.held - self.guarantee, 0), self.cap - self.held
        gives = np.concatenate([self.beyond, 0 * above[len(self.beyond) :]])
        for node in owed.upwards:
            if owed.children[node]:
                gives[node] = np.minimum(gives[list(owed.children[node])].sum(axis=0), above[node])
        out = 0 * gives
        out[list(owed.tops)] = idle + gives[list(owed.tops)].sum(axis=0) - gives[list(owed.tops)]
        for node in reversed(owed.upwards):
            if rows := list(owed.children[node]):
                came = np.minimum(out[node], np.maximum(room[node], 0))
                out[rows] = came + gives[rows].sum(axis=0) - gives[rows]
        return out

    def sources(self, node: int, column: int, amount: Number) -> tuple[tuple[str, Number], ...]:
        """Return from whom ``node`` can have an amount: what is idle first ("" for nobody's), then what users lend.

        Who holds most beyond its guarantee comes first. A group that a lender is in and ``node`` is not gives no more
        than it holds beyond its own guarantee, and one that ``node`` is in takes in no more than its cap leaves. It may
        be less than ``amount``.
        """
        owed, own = self.entitlements, list(self.entitlements.path(node))
        left = self.held[:, column] - self.guarantee[:, column]
        left[own] = np.maximum(self.cap[own, column] - self.held[own, column], 0)
        # of whom, what it has, and what bounds it: the groups that it leaves, and those that it comes into
        lenders: list[tuple[str, Number, list[int]]] = []
        for user in np.flatnonzero(self.beyond[:, column] > 0).tolist():
            path = list(owed.path(user))
            if node not in path:
                around = [each for each in (*own[1:], *path) if (each in own) != (each in path)]
                lenders.append((owed.users[user], self.beyond[user, column], around))
        lenders.sort(key=lambda each: -min(each[1], *left[each[2]]))
        found: list[tuple[str, Number]] = []
        for name, most, around in [("", self.free[column], own[1:]), *lenders]:
            taken = min(amount, most, *left[around])
            if taken > 0:
                left[around] -= taken
                amount -= taken
                found.append((name, taken))
        return tuple(found)

    def tightest(self, slack: Array) -> tuple[int, int]:
        """Return at which node and column ``slack`` (N, c) is least for the size of the column."""
        node, column = divmod(int(np.argmin(slack / self.size)), slack.shape[1])
        return node, column

    def place(self, node: str, column: str) -> tuple[int, int]:
        """Return the places of a user or group and of a type or good, given their names."""
        return self.entitlements.node(node), self.entitlements.columns.index(column)

    def unit(self, column: int) -> str:
        """Return the unit of a column: a type's is GPUs, a good's is its own."""
        name = self.entitlements.columns[column]
        return f"GPUs of {name}" if column < len(self.market.types) else name

    def goods(self, gang: int, gpu_type: int) -> list[tuple[int, Number]]:
        """Return what a gang takes beside GPUs of a type: columns, and how much; nothing where shares do not say."""
        return self.entitlements.goods_of(gang, gpu_type) if len(self.free) > len(self.market.types) else []

    def goods_are_free(self, gang: int, gpu_type: int) -> bool:
        """Return whether what a gang takes beside GPUs is free, within the caps above it; as far as shares say."""
        room = np.minimum(self.free, self.room(int(self.entitlements.gangs.user[gang]))) + self.noise
        return all(amount <= room[column] for column, amount in self.goods(gang, gpu_type))

    @cached_property
    def noise(self) -> Array:
        """What counts as nothing (c,): 0, but in floats."""
        return np.asarray(self.size * arithmetic(self.size).tolerance(NOISE))

    def room(self, user: int) -> Array:
        """Return how much more (c,) the caps of a user and of its groups leave it."""
        path = list(self.entitlements.path(user))
        return np.asarray((self.cap[path] - self.held[path]).min(axis=0))


def says_who_asks(owed: Entitlements) -> bool:
    """Return whether the entitlements say of anybody how many GPUs it holds or asks for."""
    return bool((owed.held[:, : len(owed.types)] > 0).any() or (owed.gangs.gpus > 0).any())


def asks(market: Market) -> list[Asked]:
    """Return what each user asks for: what it holds, of that type, and its pending gangs.

    Where the market says of nobody what it holds or asks for, everybody asks for its demand of the types where it runs.
    """
    owed, k = market.entitlements, len(market.types)
    assert owed is not None
    gangs = owed.gangs
    if not says_who_asks(owed):
        runs = market.ends[1] > 0
        return [{tuple(np.flatnonzero(row).tolist()): most} for row, most in zip(runs, market.limit, strict=True)]
    asked: list[Asked] = [{(j,): there for j, there in enumerate(row) if there} for row in owed.held[:, :k].tolist()]
    waiting = gangs.select(np.flatnonzero(gangs.pending))
    for user, gpus, row in zip(waiting.user.tolist(), waiting.gpus.tolist(), waiting.allowed.tolist(), strict=True):
        types = tuple(j for j, fits in enumerate(row) if fits)
        asked[user][types] = asked[user].get(types, 0) + gpus
    return asked


def most_served(asked: Mapping[tuple[int, ...], Number], room: Sequence[Number]) -> Number:
    """Return how much of what a user asks for runs on ``room`` (k,), finite: a maximum flow by shortest paths.

    >>> most_served({(0, 1): 4, (1,): 2}, [3, 3])
    6
    """
    left = [max(0, each) for each in room]
    given: dict[tuple[int, ...], dict[int, Number]] = {types: {} for types in asked}
    total: Number = 0
    for types, amount in sorted(asked.items(), key=lambda each: len(each[0])):
        while amount > 0:
            came: dict[int, tuple[int, tuple[int, ...]] | None] = dict.fromkeys(types)
            queue = deque(types)
            while queue and left[queue[0]] <= 0:
                full = queue.popleft()
                for other, uses in given.items():
                    for j in other if uses.get(full, 0) > 0 else ():
                        if j not in came:
                            came[j] = (full, other)
                            queue.append(j)
            if not queue:
                break
            end, moves = queue[0], []
            while (step := came[end]) is not None:
                moves.append((end, *step))
                end = step[0]
            amount_now = min(amount, left[queue[0]], *(given[other][full] for _, full, other in moves))
            left[queue[0]] -= amount_now
            for j, full, other in moves:
                given[other][full] -= amount_now
                given[other][j] = given[other].get(j, 0) + amount_now
            given[types][end] = given[types].get(end, 0) + amount_now
            amount, total = amount - amount_now, total + amount_now
    return total


def uses_of(asked: Mapping[tuple[int, ...], Number], speeds: Array, bundle: Array) -> Array:
    """Return which of a bundle's GPUs (k,) serve what a user asks for: the fastest first, none at speedup 0.

    >>> uses_of({(0, 1): 2, (0,): 2}, np.array([1, 3]), np.array([4, 1])).tolist()
    [3, 1]
    """
    out, before = 0 * bundle, 0 * bundle[0]
    room: list[Number] = [0] * len(bundle)
    for j in sorted(np.flatnonzero(speeds > 0).tolist(), key=lambda j: -speeds[j]):
        room[j] = bundle[j]
        now = most_served(asked, room)
        out[j], before = now - before, now
    return out


def _unserved(market: Market, owed: Entitlements, mine: Array) -> Array:
    """Return how much more of one column each user (n, c) could use, the others staying as they are."""
    k, out = len(market.types), arithmetic(mine).zeros(mine.shape)
    for user, asked in enumerate(asks(market)):
        row = mine[user, :k].tolist()
        if all(len(types) == 1 for types in asked):
            for (j,), amount in asked.items():
                out[user, j] = max(0, amount - max(0, row[j]))
            continue
        now = most_served(asked, row)
        for j in {j for types in asked for j in types}:
            here = sum(amount for types, amount in asked.items() if j in types)
            rest = {types: amount for types, amount in asked.items() if j not in types}
            out[user, j] = here + most_served(rest, row) - now
    gangs, waits = owed.gangs, defaultdict[tuple[int, int], list[Number]](list)
    for gang in np.flatnonzero(gangs.pending) if mine.shape[1] > k else ():
        for resource, amount in zip(gangs.resources, gangs.other[gang], strict=True):
            for column in {owed.good(resource, j) for j in np.flatnonzero(gangs.allowed[gang]).tolist()}:
                if column is not None:
                    waits[int(gangs.user[gang]), column].append(amount)
    for place, amounts in waits.items():
        out[place] = _sum(amounts)
    return out


def _sum(amounts: list[Number]) -> Number:
    """Return a sum, of halves: of long fractions, only the last few sums are longer still."""
    if len(amounts) <= 2:
        return sum(amounts)
    half = len(amounts) // 2
    return _sum(amounts[:half]) + _sum(amounts[half:])


def _more(owed: Entitlements, unserved: Array, room: Array) -> Array:
    """Return what users and groups could use more (N, c): members' within what the caps leave."""
    more = np.concatenate([unserved, arithmetic(unserved).zeros((len(room) - len(unserved), room.shape[1]))])
    for node in owed.upwards:
        more[node] = np.maximum(np.minimum(more[node], room[node]), 0)
        if owed.parent[node] != TOP:
            more[owed.parent[node]] += more[node]
    return more


def action(sources: tuple[tuple[str, Number], ...], type_: str, node: str) -> str:
    """Return in words what to do: "reclaim 6 H100 from batch for team-a"."""
    idle = [f"give {node} {number_text(amount)} idle {type_}" for name, amount in sources if not name]
    lent = [f"{number_text(amount)} {type_} from {name}" for name, amount in sources if name]
    reclaim = [f"reclaim {' and '.join(lent)} for {node}"] if lent else []
    return " and ".join(idle + reclaim)

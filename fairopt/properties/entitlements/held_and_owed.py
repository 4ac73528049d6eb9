"""How users and groups stand: what each holds, is guaranteed and may take, and how much more of a type it could use."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Array, Number, cast
from fairopt.properties.entitlements.whole_gangs import fullest
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
        """How much can be taken back for each (N, c) from all others at once: the sum of `lent`."""
        owed, above = self.entitlements, np.maximum(self.held - self.guarantee, 0)
        gives = np.concatenate([self.beyond, 0 * above[len(self.beyond) :]])
        for node in owed.upwards:
            if owed.children[node]:
                gives[node] = np.minimum(gives[list(owed.children[node])].sum(axis=0), above[node])
        out = 0 * gives
        for family in (owed.tops, *(owed.children[node] for node in reversed(owed.upwards))):
            rows = list(family)
            out[rows] = gives[rows].sum(axis=0) - gives[rows]
            for node in rows:
                if owed.parent[node] != TOP:
                    out[node] += out[owed.parent[node]]
        return out

    def lent(self, node: int, column: int) -> dict[int, Number]:
        """Return what can be taken back for ``node``, by user and all at once: who holds most too much comes first.

        A group that a lender is in and ``node`` is not gives no more than it holds beyond its own guarantee.
        """
        owed, own = self.entitlements, set(self.entitlements.path(node))
        left = self.held[:, column] - self.guarantee[:, column]
        lenders = {}
        for user in np.flatnonzero(self.beyond[:, column] > 0).tolist():
            path = list(owed.path(user))
            if node not in path:
                around = [over for over in path if over not in own]
                lenders[user] = around, min(self.beyond[user, column], *left[around])
        found: dict[int, Number] = {}
        for user, (around, _) in sorted(lenders.items(), key=lambda each: -each[1][1]):
            most = min(self.beyond[user, column], *left[around])
            if most > 0:
                left[around] -= most
                found[user] = most
        return found

    def starved(self, user: int, column: int) -> tuple[Number, tuple[int, ...]]:
        """Return how much more of a column a user is owed that can be had, and the sizes of the gangs that run with it.

        Nothing is, unless others lend it some. It is owed no more than its guarantee, its cap, and what it would have
        with all that is idle or lent. Within that, what it holds now comes first, GPU by GPU, and then pending gangs
        that may run on the type, each with all of its GPUs: those that take most together. So of a guarantee of 6 a
        user with gangs of 4 is owed 4. Where nobody says who asks, it is owed any part. A gang counts if what it takes
        of other columns can be had too; of a further good, all that count and fit one by one are added up.

        Errors: `NotCapable` where gangs are to be chosen for more than `MOST_ROOM` GPUs
        (`fairopt.properties.entitlements.whole_gangs`).
        """
        lent, noise = self.lent_in_all[user, column], self._noise[column]
        held, more = self.held[user, column], self.more[user, column]
        limit = min(self.guarantee[user, column], self.cap[user, column], held + self.free[column] + lent)
        if lent <= noise or min(limit - held, more) <= noise:
            return 0 * held, ()
        sizes: tuple[int, ...] = ()
        if column >= len(self.market.types):
            fitting = (amount for amount in self._waits(user)[column] if amount <= limit - held + noise)
            limit = min(limit, held + sum(fitting))
        elif says_who_asks(self.entitlements):
            first = min(self.entitlements.held[user, column], limit)
            sizes = fullest(self._waits(user)[column], int((limit - first + noise) // 1))
            limit = first + sum(sizes)
        amount = min(max(limit - held, 0 * held), more)
        return amount, sizes if amount > 0 else ()

    def goods(self, gang: int, gpu_type: int) -> list[tuple[int, Number]]:
        """Return what a gang takes beside GPUs of a type: columns, and how much; nothing where shares do not say."""
        owed = self.entitlements
        if len(self.free) == len(owed.types):
            return []
        needs = zip(owed.gangs.resources, owed.gangs.other[gang], strict=True)
        found = [(owed.good(resource, gpu_type), amount) for resource, amount in needs]
        return [(column, amount) for column, amount in found if column is not None and amount]

    def _waits(self, user: int) -> Mapping[int, list[Number]]:
        """Return how much a user's pending gangs take of each column, those that can have what they take of others."""
        if user not in self._waiting:
            gangs, found = self.entitlements.gangs, defaultdict[int, dict[int, Number]](dict)
            reach = np.minimum((self.cap - self.held)[user], self.free + self.lent_in_all[user]) + self._noise
            for gang, j in self._pending[user]:
                goods, gpus = self.goods(gang, j), int(gangs.gpus[gang])
                if all(amount <= reach[column] for column, amount in goods):
                    found[j][gang] = gpus
                    for column, amount in goods if gpus <= reach[j] else ():
                        found[column][gang] = amount
            self._waiting[user] = defaultdict(list, {column: list(each.values()) for column, each in found.items()})
        return self._waiting[user]

    @cached_property
    def _waiting(self) -> dict[int, Mapping[int, list[Number]]]:
        """What `_waits` returned."""
        return {}

    @cached_property
    def _pending(self) -> Mapping[int, list[tuple[int, int]]]:
        """The pending gangs of each user, with each type on which they may run."""
        gangs, found = self.entitlements.gangs, defaultdict[int, list[tuple[int, int]]](list)
        for gang, j in np.argwhere(gangs.allowed & gangs.pending[:, None]).tolist():
            found[int(gangs.user[gang])].append((gang, j))
        return found

    @cached_property
    def _noise(self) -> Array:
        """What counts as nothing (c,): 0, but in floats."""
        return np.asarray(self.size * (0 if self.size.dtype == object else NOISE))

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
    k, out = len(market.types), cast(np.zeros(mine.shape), _number(mine))
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
    gangs = owed.gangs
    for gang in np.flatnonzero(gangs.pending) if mine.shape[1] > k else ():
        for resource, amount in zip(gangs.resources, gangs.other[gang], strict=True):
            for column in {owed.good(resource, j) for j in np.flatnonzero(gangs.allowed[gang]).tolist()} - {None}:
                out[gangs.user[gang], column] += amount
    return out


def _more(owed: Entitlements, unserved: Array, room: Array) -> Array:
    """Return what users and groups could use more (N, c): members' within what the caps leave."""
    more = np.concatenate([unserved, cast(np.zeros((len(room) - len(unserved), room.shape[1])), _number(unserved))])
    for node in owed.upwards:
        more[node] = np.maximum(np.minimum(more[node], room[node]), 0)
        if owed.parent[node] != TOP:
            more[owed.parent[node]] += more[node]
    return more


def _number(array: Array) -> type:
    return Fraction if array.dtype == object else float

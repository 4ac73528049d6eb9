"""`EntitlementAccounts`: what every user and group holds, is owed, may take and asks for, in whole GPUs.

No scheduler's rule is used.

A user is owed its guarantee. Where a file guarantees nothing to anybody, it is owed its part by weight, down the tree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.audit.pools import Pools, finite, whole
from fairopt.audit.starving import starving
from fairopt.errors import BadInput
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Array, objects

#: What depends on gangs, on what is held, and on who is in which group, and on nothing else.
OF_GANGS = ("held", "fixed", "asks", "all_held", "order", "place", "gang_called", "waiting", "_of_groups", "running")


def users_in(owed: Entitlements, node: int) -> list[int]:
    """Return the users in a group; of a user, itself."""
    return [node] if node < len(owed.users) else [user for at in owed.children[node] for user in users_in(owed, at)]


@dataclass(frozen=True, eq=False)
class EntitlementAccounts:
    """What stands in the accounts of a market with entitlements, for N nodes, k types and g goods.

    Errors: `BadInput` for a market without entitlements.

    >>> from fairopt.problem import Gangs
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [6], "B": [2]}, held={"A": [0], "B": [5]},
    ...     gangs=Gangs.of(["A"], [4], users=["A", "B"], types=["H100"]))
    >>> accounts = EntitlementAccounts(Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed))
    >>> accounts.free.tolist(), accounts.borrowed[:, 0].tolist(), accounts.short[:, 0].tolist()
    ([3], [0, 3], [4, 0])
    """

    market: Market

    def __post_init__(self) -> None:
        if self.market.entitlements is None:
            remedy = "Import a scheduler's file, or write guarantees and holdings into the market"
            raise BadInput("the market says nothing of entitlements", place="entitlements", remedy=remedy)

    @cached_property
    def said(self) -> Entitlements:
        """The entitlements."""
        assert self.market.entitlements is not None
        return self.market.entitlements.as_(Fraction)

    @property
    def gangs(self) -> Gangs:
        """The gangs."""
        return self.said.gangs

    @property
    def k(self) -> int:
        """How many GPU types there are."""
        return len(self.market.types)

    def sharing(self, known: EntitlementAccounts) -> EntitlementAccounts:
        """Return the same, with what other accounts have found of gangs and holdings where both markets say the same.

        That is so where one is the other with changed quotas, weights or capacities.
        """
        one, other = self.market.entitlements, known.market.entitlements
        if all(getattr(one, name) is getattr(other, name) for name in ("gangs", "held", "fixed", "parent")):
            self.__dict__.update({name: known.__dict__[name] for name in OF_GANGS if name in known.__dict__})
        return self

    def alike(self, known: EntitlementAccounts) -> list[bool]:
        """Return on which types nothing differs in other accounts, where only what is owed, capped or kept does (k,).

        Why a gang waits is then the same on these types, if it is served, and owed what it is, where it was before.
        """
        one, other, rows = self.market.entitlements, known.market.entitlements, ("guarantee", "cap", "reserve")
        rest = (each.name for each in fields(Entitlements) if each.name not in rows)
        same = np.full(self.said.guarantee.shape[1], not (self.by_weight or known.by_weight))
        same &= self.market.capacity is known.market.capacity
        same &= all(getattr(one, name) is getattr(other, name) for name in rest)
        for ours, theirs in ((getattr(one, name), getattr(other, name)) for name in rows if same.any()):
            same &= ours is theirs or np.asarray(ours == theirs).all(axis=0)
        found: list[bool] = np.logical_and(same[: self.k], same[self.k :].all()).tolist()
        return found

    # -- what is owed and held -----------------------------------------------------------------------------------
    @cached_property
    def by_weight(self) -> bool:
        """Whether nobody has a guarantee, so that parts by weight are what is owed."""
        return Entitled.GUARANTEES not in self.said.said

    @cached_property
    def owed(self) -> Array:
        """What each node is owed (N, k + g)."""
        return self._parts_by_weight() if self.by_weight else self.said.guarantee

    def _parts_by_weight(self) -> Array:
        there = objects([*map(Fraction, self.market.capacity.tolist()), *self.said.stock.tolist()])
        return np.asarray(np.multiply.outer(self.parts, there))

    @cached_property
    def parts(self) -> Array:
        """Which part of everything each node is owed by weight (N,), down the tree."""
        parts = objects([Fraction(0)] * len(self.said.nodes))
        below: list[tuple[Sequence[int], Fraction]] = [(self.said.tops, Fraction(1))]
        while below:
            nodes, part = below.pop()
            weights = [self.said.borrow_weight[node] for node in nodes]
            total = sum(weights, Fraction(0))
            for node, weight in zip(nodes, weights, strict=True):
                parts[node] = part * (weight / total if total else Fraction(1, len(nodes)))
                below.append((self.said.children[node], parts[node]))
        return parts

    @cached_property
    def past_use(self) -> Array:
        """Which part of all past use was each node's (N,); of no length where nobody used anything."""
        total = sum((self.said.usage[node] for node in self.said.tops), Fraction(0))
        return objects([used / total for used in self.said.usage] if total else [])

    @cached_property
    def held(self) -> Array:
        """What each node holds (N, k + g)."""
        return self.said.total(self.said.held)

    @cached_property
    def fixed(self) -> Array:
        """What of that cannot be taken back (N, k + g)."""
        return self.said.total(self.said.fixed)

    @cached_property
    def asks(self) -> Array:
        """The GPUs of pending gangs that may run on each type (N, k); a gang that may choose counts for each."""
        gangs = self.gangs
        asked = np.zeros((len(self.said.users), self.k), dtype=self.gangs.gpus.dtype)
        waits = gangs.pending
        np.add.at(asked, gangs.user[waits], gangs.gpus[waits, None] * gangs.allowed[waits])
        return self.said.total(asked)

    @cached_property
    def used(self) -> Array:
        """Whether a node holds GPUs of each type, or asks for any (N, k)."""
        return np.asarray((self.held[:, : self.k] != 0) | (self.asks != 0), dtype=bool)

    @cached_property
    def listed(self) -> Array:
        """Whether there is anything to say of a node on each type: that, what it is owed, or a cap (N, k)."""
        bound = self.said.cap[:, : self.k] < INFINITY
        return np.asarray(self.used | (self.owed[:, : self.k] != 0) | bound, dtype=bool)

    @cached_property
    def free(self) -> Array:
        """The whole GPUs of each type that nobody holds (k,); 0 where more are held than there are."""
        return np.maximum(self.left, 0)

    @cached_property
    def left(self) -> Array:
        """The same, negative where more are held than there are: so many must go before any is free (k,)."""
        return whole(self.market.capacity - self.all_held, self.gangs.parts)

    @cached_property
    def all_held(self) -> Array:
        """The GPUs of each type that users hold together (k,); more than there are, say, where nodes were lost."""
        return np.asarray(self.held[list(self.said.tops), : self.k].sum(axis=0))

    @cached_property
    def goods_left(self) -> Array:
        """What nobody holds of each good (g,); negative where more is held than there is."""
        return np.asarray(self.said.stock - self.held[list(self.said.tops), self.k :].sum(axis=0))

    @cached_property
    def pools(self) -> Pools:
        """What is left for whom, where not everybody may have what is left of a type."""
        return Pools(self.said, self.market.capacity, self.held, self.left)

    @cached_property
    def borrowed(self) -> Array:
        """Whole GPUs that each node holds beyond what it is owed (N, k)."""
        return np.maximum(-whole(finite(self.owed[:, : self.k] - self.held[:, : self.k]), self.gangs.parts), 0)

    @cached_property
    def over_cap(self) -> Array:
        """What each node holds beyond its cap (N, k + g)."""
        over, some = objects([Fraction(0)] * self.held.size).reshape(self.held.shape), np.nonzero(self.held)
        over[some] = np.maximum(self.held[some] - self.said.cap[some], objects([Fraction(0)]))
        return over

    @cached_property
    def cap_room(self) -> Array:
        """Whole GPUs of each type that the cap of each node leaves (N, k)."""
        return np.maximum(whole(self.said.cap[:, : self.k] - self.held[:, : self.k], self.gangs.parts), 0)

    @cached_property
    def owed_room(self) -> Array:
        """Whole GPUs that each node may hold on top, within what it is owed and its cap (N, k)."""
        owed = whole(self.owed[:, : self.k] - self.held[:, : self.k], self.gangs.parts)
        return np.minimum(np.maximum(owed, 0), self.cap_room)

    # -- who waits -----------------------------------------------------------------------------------------------
    @cached_property
    def order(self) -> list[int]:
        """All gangs, by tier, highest first, then by when they were asked for."""
        ordered: list[int] = self.gangs.order().tolist()
        return ordered

    @cached_property
    def place(self) -> dict[int, int]:
        """The place of each gang in that order."""
        return {gang: number for number, gang in enumerate(self.order)}

    @cached_property
    def gang_called(self) -> dict[str, int]:
        """The place of each gang among all, by its name."""
        return {name: gang for gang, name in enumerate(self.gangs.names)}

    @cached_property
    def waiting(self) -> dict[int, list[int]]:
        """The pending gangs of GPUs of each user, those of high tiers and those that asked first before others."""
        found: dict[int, list[int]] = defaultdict(list)
        gangs, waits = self.gangs, self.gangs.pending & (self.gangs.gpus > 0)
        for gang in self.order:
            if waits[gang]:
                found[int(gangs.user[gang])].append(gang)
        return dict(found)

    @cached_property
    def first_waiting(self) -> dict[str, int]:
        """By user that waits, its first pending gang: of those that fit into what it is owed, if any."""
        found = {}
        for user, waiting in self.waiting.items():
            owed = self.starving.get(user, {})
            found[self.market.users[user]] = next((gang for gang in waiting if gang in owed), waiting[0])
        return found

    @property
    def starving(self) -> dict[int, dict[int, int]]:
        """Of each user or group, the gangs that wait though they fit into what it is owed, each with its type.

        Gangs are gone through in order; each takes its room on the first type where it fits, types on which free GPUs
        serve it first. A group's gangs must fit below the caps of the groups and users inside it.
        """
        return self._starving_and_served[0]

    @property
    def served(self) -> frozenset[int]:
        """The starving gangs for which enough GPUs are free, after those of high tiers and those that asked first."""
        return self._starving_and_served[1]

    @cached_property
    def _starving_and_served(self) -> tuple[dict[int, dict[int, int]], frozenset[int]]:
        return starving(self.pools, self.owed, self.owed_room, self.cap_room)

    def below_caps(self, gang: int, gpu_type: int, *, but_of_pool: bool = False) -> bool:
        """Return whether the caps of its user and of the groups around, ``but_of_pool``, leave room for a gang."""
        user = int(self.gangs.user[gang])
        pool = self.pools.of(user, gpu_type) if but_of_pool else TOP
        gpus, room = self.gangs.size(gang), self._cap_rows
        return all(gpus <= room[node][gpu_type] or node == pool for node in self.around(user))

    @cached_property
    def _cap_rows(self) -> list[list[Any]]:
        """The rows of `cap_room`, whose single numbers are had sooner from lists."""
        return [*self.cap_room.tolist()]

    @cached_property
    def owed_at(self) -> dict[int, tuple[int, int]]:
        """Where each starving gang is owed its GPUs: its user, else the first group around it, and the type."""
        found: dict[int, tuple[int, int]] = {}
        for node in reversed(self.said.upwards):  # the innermost last: it stays
            found |= {gang: (node, j) for gang, j in self.starving.get(node, {}).items()}
        return found

    def is_owed(self, gang: int, gpu_type: int) -> bool:
        """Return whether a gang fits on a type into what its user, or a group, is owed."""
        return gang in self.owed_at and self.owed_at[gang][1] == gpu_type

    def free_for(self, node: int, gpu_type: int) -> Any:
        """Return what is left of a type for a node, less what serves starving gangs of others."""
        others = [gang for gang in self.served if self.owed_at[gang] != (node, gpu_type)]

        def left(pool: int) -> Any:
            taken = (self.gangs.size(gang) for gang in others if self._takes(gang, gpu_type, pool))
            return self.pools.left_in(pool, gpu_type) - sum(taken)

        return min(map(left, {TOP, self.pools.of(node, gpu_type)}))

    def _takes(self, gang: int, gpu_type: int, pool: int) -> bool:
        """Return whether a served gang takes its GPUs of a type, and in a pool."""
        inside = pool == TOP or self.pools.of(int(self.gangs.user[gang]), gpu_type) == pool
        return inside and self.owed_at[gang][1] == gpu_type

    def waiting_below(self, node: int) -> list[int]:
        """Return the pending gangs of GPUs of a user, or of all users in a group, in the same order."""
        if node < len(self.said.users):
            return self.waiting.get(node, [])
        return self._of_groups.get(node, [])

    @cached_property
    def _of_groups(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for user, gangs in self.waiting.items():
            for group in self.above(user):
                found[group] += gangs
        return {group: sorted(gangs, key=self.place.__getitem__) for group, gangs in found.items()}

    @cached_property
    def short(self) -> Array:
        """GPUs of each node's gangs that starve, by the type on which they fit (N, k)."""
        missing = np.zeros((len(self.said.nodes), self.k), dtype=self.gangs.gpus.dtype)
        for node, gangs in self.starving.items():
            for gang, j in gangs.items():
                missing[node, j] += self.gangs.gpus[gang]
        return missing

    # -- who has it ----------------------------------------------------------------------------------------------
    def above(self, node: int) -> tuple[int, ...]:
        """Return the groups that a user or group is in, from the inside outwards."""
        return self.pools.paths[node][1:]

    def around(self, node: int) -> tuple[int, ...]:
        """Return a user or group, and those that it is in, from the inside outwards."""
        return self.pools.paths[node]

    def borrowers(self, node: int, gpu_type: int) -> Mapping[int, int]:
        """Return how many GPUs of a type that others are owed each user holds, as seen from a node: most first.

        Seen from a node, a user borrows what it and every group around it, up to where the node is, holds too much.
        """
        inside = set(users_in(self.said, node))
        seen = self._seen_beside(node, gpu_type)
        if inside.isdisjoint(seen):  # of thousands of users most
            return seen
        return {user: gpus for user, gpus in seen.items() if user not in inside}

    def borrowers_for(self, nodes: Iterable[int], gpu_type: int) -> set[int]:
        """Return all users that borrow GPUs of a type, as seen from any of several nodes."""
        groups: dict[int, list[int]] = {}
        for node in nodes:
            groups.setdefault(int(self.said.parent[node]), []).append(node)
        found = set[int]()
        for first, *others in groups.values():  # of several in a group, who is inside one is seen from another
            found |= (self._seen_beside if others else self.borrowers)(first, gpu_type).keys()
        return found

    def _seen_beside(self, node: int, gpu_type: int) -> dict[int, int]:
        around = int(self.said.parent[node])
        if (around, gpu_type) not in self._seen:
            self._seen[around, gpu_type] = self.pools.seen_beside(self.borrowed[:, gpu_type], around)
        return self._seen[around, gpu_type]

    @cached_property
    def _seen(self) -> dict[tuple[int, int], dict[int, int]]:
        """What `Pools.seen_beside` returned; members of one group see the same."""
        return {}

    @cached_property
    def running(self) -> dict[tuple[int, int], list[int]]:
        """The gangs that run, by user and type."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        gangs = self.gangs
        for gang in np.flatnonzero(~gangs.pending & (gangs.gpus > 0)).tolist():
            found[int(gangs.user[gang]), int(gangs.on[gang])].append(gang)
        return dict(found)

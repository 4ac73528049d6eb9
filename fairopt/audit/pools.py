"""`Pools`: what is left of a type for whom, where groups keep some for themselves or may have only their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any

import numpy as np

from fairopt.numbers import is_rational, whole_as_int
from fairopt.problem import Entitlements
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Array, objects

#: What stands for no limit among whole numbers.
BOUNDLESS = 1 << 40


def whole(amounts: Array, parts: int = 1) -> Array:
    """Return amounts rounded down to whole GPUs, `BOUNDLESS` for infinity; shapes: any, which is kept.

    With several ``parts`` of a GPU, as gangs take them (`Gangs.parts`), down to whole parts.
    """
    if parts == 1:
        flat = [
            # a Fraction is slow to compare, and infinity has no floor
            min(BOUNDLESS, floor(value)) if is_rational(value) or value < BOUNDLESS else BOUNDLESS
            for value in amounts.ravel().tolist()
        ]
        return np.array(flat, dtype=np.int64).reshape(amounts.shape)
    rounded = [
        BOUNDLESS if value == INFINITY else whole_as_int(Fraction(floor(value * parts), parts))
        for value in amounts.ravel().tolist()
    ]
    return objects(rounded).reshape(amounts.shape)


def plain(amount: Any) -> Any:
    """Return GPUs as an int where they are whole, else as a Fraction."""
    return int(amount) if amount == int(amount) else amount


def finite(amounts: Array) -> Array:
    """Return amounts with numbers that are as good as infinite for infinities."""
    return np.clip(amounts, -BOUNDLESS, BOUNDLESS)


@dataclass(frozen=True, eq=False)
class Pools:
    """What is left of each of k types for the members of each group, for N nodes and g goods.

    ``capacity`` and ``left`` (k,): GPUs that there are, and whole ones that nobody holds, negative where more are held.
    ``held`` (N, k + g): what each node holds.
    """

    said: Entitlements
    capacity: Array
    held: Array
    left: Array

    @cached_property
    def locked(self) -> Array:
        """What each node keeps for itself of its reserve, unused (N, k); of a group, at least what its members keep."""
        parts = self.said.gangs.parts
        kept = np.zeros((len(self.said.nodes), k := len(self.capacity)), dtype=np.int64 if parts == 1 else object)
        unused = np.maximum(-whole(-finite(self.said.reserve[:, :k] - self.held[:, :k]), parts), 0)
        for node in self.said.upwards:
            kept[node] = np.maximum(kept[node], unused[node])
            if self.said.parent[node] != TOP:
                kept[self.said.parent[node]] += kept[node]
        return kept

    def of(self, user: int, gpu_type: int) -> int:
        """Return the group at the top around a user if it may have less than all of a type; `TOP` if there is none.

        Its members share its quota, which is its cap, as the ClusterQueues of one cohort do, and nothing of the rest.
        """
        return self._of_tops[self.paths[user][-1]][gpu_type]

    def left_in(self, pool: int, gpu_type: int) -> Any:
        """Return what is left of a type in a `pool`, in GPUs or parts, as gangs take; negative where more is held."""
        if pool == TOP:
            return plain(self.left[gpu_type])
        room = whole(objects([self.said.cap[pool, gpu_type] - self.held[pool, gpu_type]]), self.said.gangs.parts)
        return plain(min(self.left[gpu_type], room[0]))

    def left_for(self, user: int, gpu_type: int) -> tuple[int, dict[int, int], int]:
        """Return what is left of a type for a user, what others keep of it, most first, and in which `pool` it is."""
        pool = self.of(user, gpu_type)
        found = [(self.left_in(at, gpu_type), self.kept(user, gpu_type, at), at) for at in dict.fromkeys((pool, TOP))]
        return min(found, key=lambda each: each[0] - sum(each[1].values()))

    def kept(self, user: int, gpu_type: int, pool: int) -> dict[int, int]:
        """Return how many free GPUs of a type in a pool users and groups keep for themselves, as seen from a user."""
        if not self._locks[gpu_type]:
            return {}
        if (user, gpu_type, pool) not in self._known_kept:
            self._known_kept[user, gpu_type, pool] = self._kept_in(user, gpu_type, pool)
        return self._known_kept[user, gpu_type, pool]

    @cached_property
    def _known_kept(self) -> dict[tuple[int, int, int], dict[int, int]]:
        """What `_kept_in` returned."""
        return {}

    @cached_property
    def _locks(self) -> list[bool]:
        """Whether anybody keeps anything of each type."""
        found: list[bool] = np.asarray((self.locked > 0).any(axis=0)).tolist()
        return found

    def _kept_in(self, user: int, gpu_type: int, pool: int) -> dict[int, int]:
        path = self.paths[user]
        path = path if pool == TOP else path[: path.index(pool) + 1]
        beside = [self.said.children[group] for group in path[1:]] + ([self.said.tops] if pool == TOP else [])
        path = path if pool == TOP else path[:-1]
        others = {each for node, nodes in zip(path, beside, strict=True) for each in set(nodes) - {node}}
        kept = [(node, plain(self.locked[node, gpu_type])) for node in others if self.locked[node, gpu_type]]
        return dict(sorted(kept, key=lambda each: (-each[1], each[0])))

    def goods_of(self, gang: int, gpu_type: int) -> Sequence[tuple[tuple[int, int], Any]]:
        """Return what a gang on a type takes of goods, by limit: whose (`TOP`: the cluster's), and the column.

        Its user and each group around it that has a cap on the good is a limit. Whole amounts are ints.
        """
        user = self._users[gang]
        key = user, self._kinds[gang], gpu_type
        if key not in self._known_goods:
            taken, cap = self.said.goods_of(gang, gpu_type), self.said.cap
            self._known_goods[key] = [
                ((node, column), whole_as_int(amount))  # ints are added sooner than Fractions
                for column, amount in taken
                for node in (TOP, *(each for each in self.paths[user] if cap[each, column] < INFINITY))
            ]
        return self._known_goods[key]

    @cached_property
    def _known_goods(self) -> dict[tuple[int, int, int], list[tuple[tuple[int, int], Any]]]:
        """What `goods_of` returned, by user, kind of gang and type."""
        return {}

    @cached_property
    def _users(self) -> list[int]:
        users: list[int] = self.said.gangs.user.tolist()
        return users

    @cached_property
    def _kinds(self) -> list[int]:
        kinds: list[int] = self.said.gangs.kinds.tolist()
        return kinds

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """Each node, and the groups that it is in, from the inside outwards."""
        return [tuple(self.said.path(node)) for node in range(len(self.said.nodes))]

    def seen_beside(self, borrowed: Array, group: int) -> dict[int, Any]:
        """Return what users borrow of a type as seen from a member of a group (of none: `TOP`), most first.

        ``borrowed`` (N,): what each node borrows of it. A user borrows what it and every group around it do, but for
        those that the member is in, too.
        """
        own = np.append(borrowed, BOUNDLESS)  # what stands for no node bounds nothing
        own[list(self.paths[group] if group != TOP else ())] = BOUNDLESS
        most = own[self._around].min(axis=1)
        users = np.flatnonzero(most > 0)
        users = users[np.argsort(-most[users], kind="stable")]
        return dict(zip(users.tolist(), map(plain, most[users].tolist()), strict=True))

    @cached_property
    def _around(self) -> Array:
        """Each user and the groups that it is in (n, D), the last node for none more."""
        own = self.paths[: len(self.said.users)]
        deepest = max(map(len, own), default=1)
        return np.array([(*path, *[len(self.paths)] * (deepest - len(path))) for path in own]).reshape(-1, deepest)

    @cached_property
    def _of_tops(self) -> dict[int, list[int]]:
        """By node at the top, itself for each type on which it is a pool, else `TOP` (k,)."""
        k = len(self.capacity)
        cap, own = self.said.cap[:, :k], self.said.guarantee[:, :k]
        pools = (cap == own) & (cap > 0) & (cap < self.capacity)
        groups = range(len(self.said.users), len(self.said.nodes))
        return {top: [top if top in groups and each else TOP for each in pools[top].tolist()] for top in self.said.tops}

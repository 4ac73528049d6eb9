"""Who starves: which gangs wait though they fit into what their user or a group around it is owed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairopt.audit.pools import Pools, plain
from fairopt.numbers import whole_as_int
from fairopt.program import Array

#: Of a gang on a type: by column, GPUs first, the amount that it takes, and how much must be left for it.
_Needs = Sequence[tuple[int, Any, Any]]


class _Asking(NamedTuple):
    """What gangs ask for that are of one user and kind: GPUs, and by type the pool, and whether caps leave room.

    ``needs``: by node around them and type. ``nodes``: those nodes where they may still find room in what is owed, each
    after the nodes inside it, with these before it.
    """

    gpus: Any
    pools: dict[int, int]
    below_caps: dict[int, bool]
    needs: dict[tuple[int, int], _Needs]
    nodes: list[tuple[tuple[int, ...], int]]


class _Room:
    """What is left of what nodes are owed, as gangs take of it one after another; arguments as those of `starving`.

    ``left``: by node, whole GPUs of each type, and of goods what was asked for. ``taken``: by node, by node inside it
    and by type, how many GPUs of the former are taken below the latter.
    """

    def __init__(self, pools: Pools, owed: Array, owed_room: Array, cap_room: Array) -> None:
        self._held, self._owed = pools.held, owed
        self._caps: list[list[Any]] = cap_room.tolist()
        columns = range(len(pools.capacity))
        self.left: list[dict[int, Any]] = [
            dict(zip(columns, map(plain, row), strict=True)) for row in owed_room.tolist()
        ]
        self._taken: Counter[tuple[int, int, int]] = Counter()

    def below_caps(self, path: Sequence[int], gpu_type: int, gpus: Any) -> bool:
        """Return whether the caps of nodes leave room for a gang, beside what is held."""
        return all(gpus <= self._caps[node][gpu_type] for node in path)

    def take(self, node: int, needs: _Needs, inside: Sequence[int]) -> bool:
        """Take what a gang ``needs`` of what a node is owed; False where it does not fit.

        ``inside``: the nodes around the gang that this one is around, below whose caps it must fit beside what was
        taken there.
        """
        left, taken, caps = self.left[node], self._taken, self._caps
        (j, gpus, _), *_ = needs
        for at, _, least in needs:
            if at not in left:
                left[at] = whole_as_int(self._owed[node, at] - self._held[node, at])
            if least > left[at]:
                return False
        for each in inside:
            if taken[node, each, j] + gpus > caps[each][j]:
                return False
        for at, amount, _ in needs:
            left[at] -= amount
        for each in inside:
            taken[node, each, j] += gpus
        return True


def starving(
    pools: Pools, owed: Array, owed_room: Array, cap_room: Array
) -> tuple[dict[int, dict[int, int]], frozenset[int]]:
    """Return the gangs that starve at each node, each with its type, and those of them that free GPUs serve.

    ``owed`` (N, k + g): what each node is owed. ``owed_room`` and ``cap_room`` (N, k): whole GPUs that it may hold on
    top, within that and its cap, and within its cap.
    """
    gangs, at_first = pools.said.gangs, np.maximum(pools.left, 0).tolist()
    free, in_pools = list(at_first), dict[tuple[int, int], int]()
    room, counts = _Room(pools, owed, owed_room, cap_room), np.asarray((owed > 0).any(axis=0)).tolist()
    found, served = defaultdict[int, dict[int, int]](dict), list[int]()
    waits, users, kinds = gangs.pending & (gangs.gpus > 0), gangs.user.tolist(), gangs.kinds.tolist()
    asking, order, alone = dict[tuple[int, int], _Asking](), gangs.order(), dict[int, dict[int, _Needs]]()
    for gang in order[waits[order]].tolist():
        key = users[gang], kinds[gang]
        asked = asking.get(key)
        if asked is None:
            if kinds[gang] not in alone:
                alone[kinds[gang]] = _alone(pools, gang, counts)
            asked = asking[key] = _asking(pools, gang, room, alone[kinds[gang]])
            for on, pool in asked.pools.items():
                if (pool, on) not in in_pools:
                    in_pools[pool, on] = pools.left_in(pool, on)
        if not asked.nodes:
            continue
        gpus, fits = asked.gpus, asked.below_caps
        where = list(asked.pools)
        if len(where) > 1:
            capped = {j: not fits[j] or gpus > in_pools[pool, j] for j, pool in asked.pools.items()}
            where.sort(key=lambda j: (gpus > free[j] or capped[j], capped[j], at_first[j] == 0))
        first = True
        for inside, node in list(asked.nodes):
            for j in where:
                own = asked.needs.get((node, j))
                if own and room.take(node, own, inside):
                    break
            else:  # room only gets less: no other gang of this kind will find any
                asked.nodes.remove((inside, node))
                continue
            if first:
                first = False
                where.sort(key=lambda each: each != j)
                if gpus <= free[j] and fits[j] and gpus <= in_pools[asked.pools[j], j]:
                    free[j] -= gpus
                    in_pools[asked.pools[j], j] -= gpus
                    served.append(gang)
            found[node][gang] = j
    return {node: found[node] for node in sorted(found) if found[node]}, frozenset(served)


def _alone(pools: Pools, gang: int, counts: Sequence[bool]) -> dict[int, _Needs]:
    """Return what gangs of the kind of one need by type; ``counts``: whether anybody is owed any of a column."""
    gpus, allowed, found = pools.said.gangs.size(gang), pools.said.gangs.allowed[gang].tolist(), dict[int, _Needs]()
    for j in (j for j, may in enumerate(allowed) if may and gpus <= plain(pools.capacity[j])):
        goods = [(at, whole_as_int(n), whole_as_int(n)) for at, n in pools.said.goods_of(gang, j) if counts[at]]
        found[j] = [(j, gpus, gpus), *goods]
    return found


def _asking(pools: Pools, gang: int, room: _Room, where: Mapping[int, _Needs]) -> _Asking:
    """Return what gangs of the user and kind of one ask for; ``where``: what one needs by type, as `_alone` says."""
    gangs = pools.said.gangs
    gpus, user = gangs.size(gang), int(gangs.user[gang])
    path, needs = pools.paths[user], dict[tuple[int, int], _Needs]()
    nodes = list[int]()
    for place, node in enumerate(path):
        left = room.left[node]
        for j, alone in where.items():
            if gpus > left[j]:  # nor later
                continue
            kept = pools.kept(user, j, node) if place else None  # a group's members have not what one of them keeps
            needs[node, j] = [(j, gpus, gpus + sum(kept.values())), *alone[1:]] if kept else alone
            if not nodes or nodes[-1] != node:
                nodes.append(node)
    if not nodes:  # mostly there is no room, and nobody asks further
        return _NOBODY
    below_caps = {j: room.below_caps(path, j, gpus) for j in where}
    around = [(path[: path.index(node)], node) for node in nodes]
    return _Asking(gpus, {j: pools.of(user, j) for j in where}, below_caps, needs, around)


#: What asks of nobody.
_NOBODY = _Asking(0, {}, {}, {}, [])

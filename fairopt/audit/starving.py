"""Who starves: which gangs wait though they fit into what their user or a group around it is owed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fairopt.audit.pools import plain
from fairopt.numbers import whole_as_int

if TYPE_CHECKING:
    from fairopt.audit.accounts import EntitlementAccounts

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
    """What is left of what nodes are owed, as gangs take of it one after another.

    ``left``: by node and column, as far as that was asked for. ``taken``: by node, by node inside it and by type, how
    many GPUs of the former are taken below the latter.
    """

    def __init__(self, accounts: EntitlementAccounts) -> None:
        self._accounts = accounts
        self._left: dict[tuple[int, int], Any] = {}
        self._taken: Counter[tuple[int, int, int]] = Counter()

    def take(self, node: int, needs: _Needs, inside: Sequence[int]) -> bool:
        """Take what a gang ``needs`` of what a node is owed; False where it does not fit.

        ``inside``: the nodes around the gang that this one is around, below whose caps it must fit beside what was
        taken there.
        """
        left, taken, caps = self._left, self._taken, self._accounts.cap_rows
        (j, gpus, _), *_ = needs
        for at, _, least in needs:
            if (node, at) not in left:
                left[node, at] = self._owed(node, at)
            if least > left[node, at]:
                return False
        if any(taken[node, each, j] + gpus > caps[each][j] for each in inside):
            return False
        for at, amount, _ in needs:
            left[node, at] -= amount
        for each in inside:
            taken[node, each, j] += gpus
        return True

    def _owed(self, node: int, column: int) -> Any:
        """Return what a node may take of a column within what it is owed: of a type, whole GPUs."""
        if column < self._accounts.k:
            return plain(self._accounts.owed_room[node, column])
        return whole_as_int(self._accounts.owed[node, column] - self._accounts.held[node, column])


def starving(accounts: EntitlementAccounts) -> tuple[dict[int, dict[int, int]], frozenset[int]]:
    """Return `EntitlementAccounts.starving` and `EntitlementAccounts.served`."""
    gangs, free, at_first = accounts.gangs, accounts.free.tolist(), accounts.free.tolist()
    in_pools, room = dict[tuple[int, int], int](), _Room(accounts)
    found, served = defaultdict[int, dict[int, int]](dict), list[int]()
    waits, users, kinds = gangs.pending & (gangs.gpus > 0), gangs.user.tolist(), gangs.kinds.tolist()
    asking = dict[tuple[int, int], _Asking]()
    for gang in (each for each in accounts.order if waits[each]):
        key = users[gang], kinds[gang]
        asked = asking.get(key)
        if asked is None:
            asked = asking[key] = _asking(accounts, gang, in_pools)
        if not asked.nodes:
            continue
        gpus, pools, fits = asked.gpus, asked.pools, asked.below_caps
        capped = {j: not fits[j] or gpus > in_pools[pool, j] for j, pool in pools.items()}
        where = sorted(pools, key=lambda j: (gpus > free[j] or capped[j], capped[j], at_first[j] == 0))
        first = True
        for inside, node in list(asked.nodes):
            j = next((j for j in where if room.take(node, asked.needs[node, j], inside)), None)
            if j is None:  # room only gets less: no other gang of this kind will find any
                asked.nodes.remove((inside, node))
                continue
            if first:
                first = False
                where.sort(key=lambda each: each != j)
                if gpus <= free[j] and not capped[j]:
                    free[j] -= gpus
                    in_pools[pools[j], j] -= gpus
                    served.append(gang)
            found[node][gang] = j
    return {node: found[node] for node in sorted(found) if found[node]}, frozenset(served)


def _asking(accounts: EntitlementAccounts, gang: int, in_pools: dict[tuple[int, int], int]) -> _Asking:
    """Return what gangs of the user and kind of one ask for; note what is left ``in_pools`` that they need."""
    gangs, pools_of = accounts.gangs, accounts.pools
    gpus, user, allowed = gangs.size(gang), int(gangs.user[gang]), gangs.allowed[gang].tolist()
    where = [j for j, may in enumerate(allowed) if may and gpus <= plain(accounts.market.capacity[j])]
    pools = {j: pools_of.of(user, j) for j in where}
    for on, pool in pools.items():
        if (pool, on) not in in_pools:
            in_pools[pool, on] = pools_of.left_in(pool, on)
    path, needs = accounts.around(user), dict[tuple[int, int], _Needs]()
    for j in where:
        counted = [(at, whole_as_int(n)) for at, n in accounts.said.goods_of(gang, j) if accounts.is_good_owed[at]]
        goods = [(at, amount, amount) for at, amount in counted]
        for place, node in enumerate(path):  # a group's members have not what one of them keeps
            kept = sum(pools_of.kept(user, j, node).values()) if place else 0
            needs[node, j] = [(j, gpus, gpus + kept), *goods]
    nodes = [(path[:place], node) for place, node in enumerate(path)] if where else []
    return _Asking(gpus, pools, {j: accounts.below_caps(gang, j) for j in where}, needs, nodes)

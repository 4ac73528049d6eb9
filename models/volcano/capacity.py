"""Volcano's plugin "capacity": what queues deserve is given by type, in a tree of queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairopt.models.common.holdings import Amounts, Holdings, QueuedGang, entitlements_of, light
from fairopt.models.volcano.actions import Left, Reclaiming, session, share, within
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Array, objects

#: The queue above all others, where there is one: it is no ancestor in the sense of ``ancestorReclaimLevel``.
ROOT = "root"


def quotas(
    total: Sequence[Any], parent: Sequence[int], order: Sequence[int], deserved: Any, guarantee: Any, cap: Any
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return what each node (N, W) deserves, and may have at most; ``order`` has each node after its parent.

    A node deserves at least its guarantee. It may have at most what the one above may have, without the guarantees of
    the others there, and at most its capability. With a tree, nothing else bounds those at the top: Volcano's root has
    no limit, since jobs may be submitted that are larger than the cluster of now. Without one, the total does, and
    nobody deserves more than it may have.

    Source: volcano at ed72c7c8, pkg/scheduler/plugins/capacity/capacity.go, checkHierarchicalQueue and (no tree)
    buildQueueAttrs.

    >>> quotas([10], [-1, -1], [0, 1], [[8], [4]], [[2], [3]], [[9], [float("inf")]])[1]
    [[7], [8]]
    """
    width, nodes = len(total), range(len(parent))
    flat = all(over == TOP for over in parent)
    kept = [list(row) for row in guarantee]
    owed = [[max(deserved[q][c], kept[q][c]) for c in range(width)] for q in nodes]
    below: dict[int, list[Any]] = {}
    for q in nodes:
        sums = below.setdefault(parent[q], [0] * width)
        for c in range(width):
            sums[c] += kept[q][c]
    most: list[list[Any]] = [[] for _ in nodes]
    for q in order:
        over = parent[q]
        whole = most[over] if over != TOP else list(total) if flat else [INFINITY] * width
        bound = [whole[c] - below[over][c] + kept[q][c] if whole[c] < INFINITY else INFINITY for c in range(width)]
        most[q] = [min(max(bound[c], kept[q][c]), cap[q][c]) for c in range(width)]
        if flat:
            owed[q] = [max(min(owed[q][c], most[q][c]), kept[q][c]) for c in range(width)]
    return owed, most


@dataclass(frozen=True)
class VolcanoCapacity(Computed):
    """Queues start jobs up to their capability; the queue with the smallest part of what it deserves goes first.

    ``guarantee`` is ``deserved``, ``reserve`` ``guarantee.resource``, ``cap`` ``capability``. A queue that deserves
    nothing goes after all that hold less than they deserve. In a tree, queues are compared where their paths part; what
    the groups held at the start of the session counts, as in Volcano, where only the share of the leaf is updated.
    ``reclaim`` plays that action too, which the plugin's guide adds to the default configuration, and ``preempt`` that
    one (`preempt`), before it; None is what the market's `settings` say of actions. ``ancestor_reclaim_level`` demands
    that so many groups above a victim hold more than they deserve.

    Source: volcano-sh/volcano at ed72c7c8, pkg/scheduler/plugins/capacity/capacity.go.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(VolcanoCapacity(), market, exact=True).shares[:, 0])
    4 0
    """

    reclaim: bool | None = None
    preempt: bool | None = None
    ancestor_reclaim_level: int = 0

    name = "volcano-capacity"
    source = "Volcano, pkg/scheduler/plugins/capacity"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.GUARANTEES, Entitled.CAPS, Entitled.GROUPS, Entitled.TIERS})
    claims = (
        Claim(
            "",
            "docs/design/capacity-scheduling.md, Proposal",
            words="Under no circumstance can the total resource for any resource type in a queue exceed this limit",
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each queue holds after a session, and why."""
        owed, room = entitlements_of(problem), Holdings.at_first(problem)
        due, kept, cap = ([light(row) for row in table.tolist()] for table in (owed.guarantee, owed.reserve, owed.cap))
        total, tier = light([*problem.capacity.tolist(), *owed.stock.tolist()]), owed.tier.tolist()
        deserved, most = quotas(total, room.parent, owed.upwards[::-1], due, kept, cap)
        opening = [_standing(room, deserved, q) for q in range(len(owed.nodes))]

        def key(queue: int) -> tuple[Any, ...]:
            above = [opening[node] for node in list(room.above(queue))[:0:-1]]
            return -tier[queue], *above, _standing(room, deserved, queue)

        def refused(queue: int, takes: Amounts) -> str:
            """Source: checkQueueAllocatableHierarchically."""
            return next((why for q in room.above(queue) if (why := within(room, q, most[q], takes, "may have"))), "")

        def reclaiming() -> Reclaiming:
            return _ByCapacity(room, deserved, kept, most, self.ancestor_reclaim_level, key)

        session(room, owed, key, refused, lambda queue: "", reclaiming, preempt=self.preempt, reclaim=self.reclaim)
        k = len(owed.types)
        share = {name: each[0] for name, each in zip(owed.nodes, opening, strict=True)}
        owes = objects(part for row in deserved for part in row[:k]).reshape(-1, k)
        return room.decided(problem, "allocated / deserved", share, owed=owes)


def _standing(room: Holdings, deserved: list[list[Any]], node: int) -> tuple[Any, bool, int]:
    """Return what nodes beside each other are compared by: the share, whether it deserves nothing, and the place.

    Source: capacity.go, updateQueueAttrShare (without ``deserved`` the share is 1) and compareShareWithDeserved.
    """
    owed = deserved[node]
    bare = not any(owed)
    return 1 if bare else share(room.held[node], owed), bare, node


class _ByCapacity(Reclaiming):
    """What the plugin says of reclaiming; ``level`` is ``ancestorReclaimLevel``."""

    def __init__(
        self,
        room: Holdings,
        deserved: list[list[Any]],
        guarantee: list[list[Any]],
        most: list[list[Any]],
        level: int,
        key: Callable[[int], tuple[Any, ...]],
    ) -> None:
        self.guarantee, self.most, self.level = guarantee, most, level
        self.local = bool(level)
        self._paths: dict[int, list[int]] = {}
        super().__init__(room, deserved, key)

    def may(self, queue: int, takes: Amounts) -> bool:
        """Say whether the queue, or a group above it, would then still hold at most what it deserves of something.

        Source: AddPreemptiveFn; LessEqualPartlyWithDimensionZeroFiltered.
        """
        if within(self.room, queue, self.most[queue], takes, ""):
            return False
        return any(self._below(node, takes) for node in (queue, *self._groups(queue)))

    def yields(self, queue: int, takes: Amounts, job: QueuedGang, left: Left) -> bool:
        """Say whether a job may be stopped.

        Its queue keeps its guarantee, and holds more than it deserves of something that the job has. A job that has
        nothing of what its queue deserves may be stopped at once. Source: AddReclaimableFn.
        """
        has = job.takes[job.on]
        if takes.keys().isdisjoint(has):
            return False
        mine, level = job.queue, self.level
        nodes = (
            (mine, *(node for node in self._groups(mine) if node not in self._same(queue, mine))) if level else (mine,)
        )
        for node in nodes:
            if self._relevant(has, node) and not self._exceeds(left.get(node, self.room.held[node]), has, node):
                return False
        if level and not self._relevant(has, mine) and self._kin(queue, mine) and not self._relevant(takes, queue):
            return False
        now, kept = left.get(mine, self.room.held[mine]), self.guarantee[mine]
        return all(now[c] - has.get(c, 0) >= least for c, least in enumerate(kept))

    def path(self, queue: int) -> list[int]:
        """Return the queue and those above it: the nearest relatives are asked first. Source: getQueueLevel."""
        if queue not in self._paths:
            self._paths[queue] = list(self.room.above(queue))
        return self._paths[queue]

    def _groups(self, queue: int) -> list[int]:
        above = self.path(queue)[1 : 1 + self.level]
        return [node for node in above if self.room.names[node] != ROOT]

    def _same(self, one: int, other: int) -> set[int]:
        """Return the groups that are above both at the same level. Source: getReclaimeeAncestorToCheck."""
        return {a for a, b in zip(self._groups(one), self._groups(other), strict=False) if a == b}

    def _kin(self, one: int, other: int) -> bool:
        return bool(set(self._groups(one)) & set(self._groups(other)))

    def _below(self, node: int, takes: Amounts) -> bool:
        held, owed = self.room.held[node], self.deserved[node]
        return any(held[c] + amount <= owed[c] for c, amount in takes.items())

    def _relevant(self, takes: Amounts, node: int) -> bool:
        return any(self.deserved[node][c] > 0 for c in takes)

    def _exceeds(self, held: Sequence[Any], has: Amounts, node: int) -> bool:
        owed = self.deserved[node]
        return any(held[c] > owed[c] > 0 for c in has)

"""YARN's capacity scheduler, as a policy of a market whose types are node labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from fairopt.models.common.amounts import light
from fairopt.models.common.holdings import Holdings, by_queue, entitlements_of
from fairopt.models.common.turns import TreeTurns
from fairopt.models.yarn.ideal import CapacityTree, ideal, order, standing
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Entitlements, Market
from fairopt.program import Array, objects


@dataclass(frozen=True)
class YarnCapacity(Computed):
    """Queues below their capacity go first, then the one that uses the smallest part of it, up to its maximum capacity.

    ``guarantee`` is the capacity, ``cap`` the maximum capacity, ``tier`` the priority of a queue, by type (partition).
    On every level of the tree the queue that goes first starts a gang; containers are gangs of one. What does not fit
    is passed over: nothing is reserved for it. GPUs are looked at, as the only resource.

    ``preemption`` plays the monitor, which YARN switches off by default, before that: it stops the gangs that started
    last in queues above their ideal allocation. ``max_ignored_over_capacity`` of a queue's capacity may be exceeded
    without that, ``natural_termination_factor`` of what is above is taken in a round, and at most
    ``total_preemption_per_round`` of the cluster.

    Source: Hadoop, PriorityUtilizationQueueOrderingPolicy.java, ParentQueue.java, PreemptableResourceCalculator.java,
    FifoCandidatesSelector.java; defaults of CapacitySchedulerConfiguration.java.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(YarnCapacity(), market, exact=True).shares[:, 0])
    4 0
    """

    preemption: bool = False
    max_ignored_over_capacity: Fraction = Fraction(1, 10)
    natural_termination_factor: Fraction = Fraction(1, 5)
    total_preemption_per_round: Fraction = Fraction(1, 10)

    name = "yarn-capacity"
    source = "Hadoop, YARN capacity scheduler"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.GUARANTEES, Entitled.CAPS, Entitled.GROUPS, Entitled.TIERS})
    claims = (
        Claim(
            "",
            "CapacityScheduler.md, Features",
            words="ensure resources are shared among the sub-queues of an organization before others use them",
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each queue holds afterwards, and why."""
        owed, room = entitlements_of(problem), Holdings.at_first(problem)
        k, best = len(owed.types), []
        for j in range(k):
            tree = _tree(owed, j, [row[j] for row in room.held], problem.capacity[j])
            wanted, taken = ideal(tree, self.total_preemption_per_round * problem.capacity[j])
            best.append(wanted)
            if self.preemption:
                self._preempt(owed, j, tree, taken, room)
        share = {name: max(_parts(owed, room.held, q)) for q, name in enumerate(owed.nodes)}
        for j in range(k):
            _start(owed, j, room)
        table = objects(amount for row in zip(*best, strict=True) for amount in row).reshape(-1, k)
        return room.decided(problem, "used / capacity", share, owed=table)

    def _preempt(self, owed: Entitlements, j: int, tree: CapacityTree, taken: Sequence[Any], room: Holdings) -> None:
        """Stop gangs of leaves, the lowest priority and the last first."""
        for q, name in enumerate(owed.users):
            if tree.kept[q] or tree.used[q] <= tree.guaranteed[q] * (1 + self.max_ignored_over_capacity):
                continue
            left = ceil(taken[q] * self.natural_termination_factor)
            for gang in reversed([each for each in room.running.values() if each.on == j and each.queue == q]):
                if left <= 0:
                    break
                if gang.preemptible and (gpus := gang.takes[j].get(j, 0)):
                    left -= gpus
                    room.stop(gang, f"{name!r} uses {tree.used[q]} {owed.types[j]} of {tree.guaranteed[q]}")


def _tree(owed: Entitlements, j: int, used: list[Any], capacity: Any) -> CapacityTree:
    n, gangs = len(owed.users), owed.gangs
    asks = [0] * len(owed.nodes)
    first = gangs.allowed.argmax(axis=1)  # what may run on several types is asked for on the first
    for g in np.flatnonzero(gangs.pending & gangs.allowed[:, j] & (first == j)).tolist():
        asks[gangs.user[g]] += int(gangs.gpus[g])
    held, fixed = owed.held[:, j], owed.fixed[:, j]
    kept = [bool(q < n and held[q] > 0 and fixed[q] >= held[q]) for q in range(len(owed.nodes))]
    parent, tier = owed.parent.tolist(), owed.tier.tolist()
    due, most = light(owed.guarantee[:, j]), light(owed.cap[:, j])
    return CapacityTree(parent, due, most, used, asks, kept, tier, capacity)


def _parts(owed: Entitlements, held: list[list[Any]], q: int) -> list[Any]:
    due = owed.guarantee[q]
    return [standing(has, due[j]) for j, has in enumerate(held[q][: len(owed.types)]) if has > 0 or due[j] > 0] or [0]


def _start(owed: Entitlements, j: int, room: Holdings) -> None:
    """Start gangs on one type, of those that wait."""
    held, pending = room.held, (gang for own in room.waiting.values() for gang in own)
    queues = by_queue(gang for gang in pending if gang.on < 0 and j in gang.takes)
    most, due, tiers = light(owed.cap[:, j]), light(owed.guarantee[:, j]), owed.tier.tolist()

    def key(node: int, _: int) -> tuple[Any, ...]:
        return *order(standing(held[node][j], due[node]), tiers[node]), -due[node]

    turns = TreeTurns(owed.parent.tolist(), owed.path, queues, key)
    while (q := turns.first()) is not None:
        gang = queues[q].popleft()
        gpus = gang.takes[j].get(j, 0)
        full = next((node for node in owed.path(q) if held[node][j] + gpus > most[node]), None)
        if full is not None:
            has = f"{owed.nodes[full]!r} uses {held[full][j]} {owed.types[j]}"
            room.waits[gang.name] = f"{has}, may have {most[full]}, and it takes {gpus}"
        elif gpus > room.free[j]:
            room.waits[gang.name] = f"{room.free[j]} {owed.types[j]} free, and it takes {gpus}"
        else:
            room.start(gang, j)
        turns.changed(q)

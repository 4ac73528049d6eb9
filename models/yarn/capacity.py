"""YARN's capacity scheduler, as a policy of a market whose types are node labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf
from typing import Any

import numpy as np

from fairopt.errors import require
from fairopt.models.common.holdings import Holdings, TreeTurns, by_queue, entitlements_of, light, quick, ratio
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Entitlements, Market
from fairopt.program import Array, objects

#: YARN's resource calculators: the first counts all resources and rounds up, the second counts memory.
CALCULATORS = ("dominant", "default")


@dataclass(frozen=True)
class _CapacityTree:
    """Queues (N,): the queue above each (-1: none), and by queue what it is guaranteed and may have, uses and asks for.

    ``pending`` is what leaves ask for, without what is reserved for them. ``kept``: whether a queue cannot be preempted
    from. ``tier``: priorities. ``total``: how much there is.
    """

    parent: Sequence[int]
    guaranteed: Sequence[Any]
    most: Sequence[Any]
    used: Sequence[Any]
    pending: Sequence[Any]
    kept: Sequence[bool]
    tier: Sequence[int]
    total: Any

    @cached_property
    def below(self) -> dict[int, list[int]]:
        """The queues directly below each; those at the top below -1."""
        out: dict[int, list[int]] = {node: [] for node in range(-1, len(self.parent))}
        for node, over in enumerate(self.parent):
            out[over].append(node)
        return out

    @cached_property
    def downwards(self) -> list[int]:
        """All queues, each after the one above it."""
        out = list(self.below[-1])
        for node in out:
            out += self.below[node]
        return out

    @cached_property
    def asks(self) -> list[Any]:
        """What all leaves in a queue ask for (N,)."""
        out = [0 if self.below[node] else self.pending[node] for node in range(len(self.parent))]
        for node in reversed(self.downwards):
            if self.parent[node] >= 0:
                out[self.parent[node]] += out[node]
        return out

    @cached_property
    def untouchable(self) -> list[Any]:
        """What of each queue's excess is not preempted. Source: TempQueuePerPartition.java, updatePreemptableExtras."""
        loose, out = [0] * len(self.parent), [0] * len(self.parent)
        for node in reversed(self.downwards):
            extra = max(self.used[node] - self.guaranteed[node], 0)
            inner = self.below[node]
            within = sum(loose[child] for child in inner) if inner else 0 if self.kept[node] else extra
            loose[node], out[node] = min(within, extra), max(extra - within, 0)
        return out


def standing(has: Any, guaranteed: Any) -> Any:
    """Return the part of its guarantee that a queue has; one without a guarantee comes last."""
    return ratio(has, guaranteed) if guaranteed > 0 else inf


def order(part: Any, tier: int) -> tuple[bool, int, Any]:
    """Return the key by which queues beside each other go, the least first, from the part that it has and its priority.

    Queues below their guarantee come before the others; among either, higher priority, and then the smaller part.
    Source: PriorityUtilizationQueueOrderingPolicy.java, compare.

    >>> order(0.9, 0) < order(1.1, 7) < order(1.5, 7) < order(1, 0)
    True
    """
    return part >= 1, -tier, part


def ideal(tree: _CapacityTree, allowed: Any = inf, *, nearest: bool = False) -> tuple[list[Any], list[Any]]:
    """Return what each queue would ideally have (N,), and how much of each is to be preempted for that (N,).

    On every level queues keep what they use up to their guarantee. What is left goes to those that ask for more, to the
    ones with the smallest part of their guarantee first, in proportion to guarantees, up to what they ask for and may
    have; a leaf gets no more than its guarantee by preemption. At most ``allowed`` is preempted on each level. What is
    offered is rounded up to whole GPUs, or to the ``nearest``; of equals the one listed last is offered first.

    Source: AbstractPreemptableResourceCalculator.java at e7392ed2, computeFixpointAllocation;
    PreemptableResourceCalculator.java, computeIdealResourceDistribution; TempQueuePerPartition.java, offer;
    multiplyAndNormalizeUp of DominantResourceCalculator.java (up) and of DefaultResourceCalculator.java (nearest).
    """
    found: list[Any] = [0] * len(tree.parent)
    taken: list[Any] = [0] * len(tree.parent)
    _level(tree, -1, tree.total, found, taken, allowed, nearest)
    for node in tree.downwards:
        _level(tree, node, found[node], found, taken, allowed, nearest)
    return found, taken


def _level(
    tree: _CapacityTree, over: int, there: Any, found: list[Any], taken: list[Any], allowed: Any, nearest: bool
) -> None:
    nodes = tree.below[over]
    left = _fill(tree, [node for node in nodes if tree.guaranteed[node] > 0], there, found, nearest, even=False)
    poor = [node for node in nodes if tree.guaranteed[node] <= 0]
    if poor and left > 0:
        _fill(tree, poor, left, found, nearest, even=True)
    needed = sum(max(tree.used[node] - found[node], 0) for node in nodes)
    scale = ratio(allowed, needed) if needed > allowed else 1
    for node in nodes:
        least = max(min(tree.used[node] + tree.asks[node], tree.guaranteed[node]), found[node])
        taken[node] = floor(max(tree.used[node] - least, 0) * scale)


def _fill(tree: _CapacityTree, nodes: Sequence[int], left: Any, found: list[Any], nearest: bool, *, even: bool) -> Any:
    """Give queues on one level what they should have; return what nobody takes."""
    hungry = []
    for node in nodes:
        used, due = tree.used[node], tree.guaranteed[node]
        found[node] = due + tree.untouchable[node] if used > due else used
        left -= found[node]
        if found[node] < used + tree.asks[node]:
            hungry.append(node)
    while hungry and left > 0:
        whole = len(hungry) if even else sum(tree.guaranteed[node] for node in hungry)
        offered = left
        for node in _first(tree, hungry, found):
            part = offered * (1 if even else tree.guaranteed[node])
            offer = (2 * part + whole) // (2 * whole) if nearest else -(-part // whole)
            accepted = _accepts(tree, node, min(offer, left), found)
            found[node] += accepted
            left -= accepted
            if accepted <= 0:
                hungry.remove(node)
    return left


def _first(tree: _CapacityTree, nodes: Sequence[int], found: Sequence[Any]) -> list[int]:
    """Return the queues that nobody goes before, the last first. Source: getMostUnderservedQueues."""
    keys = {node: order(standing(found[node], tree.guaranteed[node]), tree.tier[node]) for node in nodes}
    best = min(keys.values())
    return [node for node in reversed(nodes) if keys[node] == best]


def _accepts(tree: _CapacityTree, node: int, offered: Any, found: Sequence[Any]) -> Any:
    used, due, has = tree.used[node], tree.guaranteed[node], found[node]
    accepted = min(max(tree.most[node] - has, 0), offered, used + tree.asks[node] - has)
    return accepted if tree.below[node] else min(accepted, max(max(used, due) - has, 0))


@dataclass(frozen=True)
class YarnCapacity(Computed):
    """Queues below their capacity go first, then the one that uses the smallest part of it, up to its maximum capacity.

    ``guarantee`` is the capacity, ``cap`` the maximum capacity, ``tier`` the priority of a queue, by type (partition).
    On every level of the tree the queue that goes first starts a gang; containers are gangs of one. What does not fit
    is passed over: nothing is reserved for it. GPUs are looked at, as the only resource.

    ``preemption`` plays the monitor, which YARN switches off by default, before that: it stops the gangs that started
    last in queues above their ideal allocation. ``max_ignored_over_capacity`` of a queue's capacity may be exceeded
    without that, ``natural_termination_factor`` of what is above is taken in a round, and at most
    ``total_preemption_per_round`` of the cluster. ``calculator``, "dominant" or "default", is the resource calculator,
    of which the second rounds what queues are offered to the nearest GPU and not up; None is what the market's
    `settings` say of it, else the first.

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
    calculator: str | None = None

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
        calculator = self.calculator or owed.settings.get("", {}).get("calculator", CALCULATORS[0])
        require(calculator in CALCULATORS, calculator, "calculator", f"Give one of {', '.join(CALCULATORS)}")
        for j in range(k):
            tree = _tree(owed, j, [row[j] for row in room.held], problem.capacity[j])
            wanted, taken = ideal(
                tree, self.total_preemption_per_round * problem.capacity[j], nearest=calculator == "default"
            )
            best.append(wanted)
            if self.preemption:
                self._preempt(owed, j, tree, taken, room)
        share = {name: max(_parts(owed, room.held, q)) for q, name in enumerate(owed.nodes)}
        for j in range(k):
            _start(owed, j, room)
        table = objects(amount for row in zip(*best, strict=True) for amount in row).reshape(-1, k)
        return room.decided(problem, "used / capacity", share, owed=table)

    def _preempt(self, owed: Entitlements, j: int, tree: _CapacityTree, taken: Sequence[Any], room: Holdings) -> None:
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


def _tree(owed: Entitlements, j: int, used: list[Any], capacity: Any) -> _CapacityTree:
    n, gangs = len(owed.users), owed.gangs
    asks = [0] * len(owed.nodes)
    first = gangs.allowed.argmax(axis=1)  # what may run on several types is asked for on the first
    for g in np.flatnonzero(gangs.pending & gangs.allowed[:, j] & (first == j)).tolist():
        asks[gangs.user[g]] += gangs.size(g)
    held, fixed = owed.held[:, j], owed.fixed[:, j]
    kept = [bool(q < n and held[q] > 0 and fixed[q] >= held[q]) for q in range(len(owed.nodes))]
    parent, tier = owed.parent.tolist(), owed.tier.tolist()
    due, most = light(owed.guarantee[:, j]), light(owed.cap[:, j])
    return _CapacityTree(parent, due, most, used, asks, kept, tier, capacity)


def _parts(owed: Entitlements, held: list[list[Any]], q: int) -> list[Any]:
    due = owed.guarantee[q]
    return [standing(has, due[j]) for j, has in enumerate(held[q][: len(owed.types)]) if has > 0 or due[j] > 0] or [0]


def _start(owed: Entitlements, j: int, room: Holdings) -> None:
    """Start gangs on one type, of those that wait."""
    held, pending = room.held, (gang for own in room.waiting.values() for gang in own)
    queues = by_queue(gang for gang in pending if gang.on < 0 and j in gang.takes)
    most, due, tiers = light(owed.cap[:, j]), light(owed.guarantee[:, j]), owed.tier.tolist()

    def key(node: int, _: int) -> tuple[Any, ...]:
        return tuple(quick((*order(standing(held[node][j], due[node]), tiers[node]), -due[node])))

    turns = TreeTurns(owed.parent.tolist(), owed.path, queues, key)
    while (q := turns.first()) is not None:
        own, path = queues[q], tuple(owed.path(q))
        while own:  # while none starts, it stays the queue's turn
            gang = own.popleft()
            gpus = gang.takes[j].get(j, 0)
            full = next((node for node in path if held[node][j] + gpus > most[node]), None)
            if full is not None:
                has = f"{owed.nodes[full]!r} uses {held[full][j]} {owed.types[j]}"
                room.waits[gang.name] = f"{has}, may have {most[full]}, and it takes {gpus}"
            elif gpus > room.free[j]:
                room.waits[gang.name] = f"{room.free[j]} {owed.types[j]} free, and it takes {gpus}"
            else:
                room.start(gang, j)
                break
        turns.changed(q)

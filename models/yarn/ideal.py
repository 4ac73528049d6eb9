"""The ideal allocation that YARN preempts towards, of one resource in one partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, inf
from typing import Any

from fairopt.models.common.amounts import ratio


@dataclass(frozen=True)
class CapacityTree:
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


def ideal(tree: CapacityTree, allowed: Any = inf) -> tuple[list[Any], list[Any]]:
    """Return what each queue would ideally have (N,), and how much of each is to be preempted for that (N,).

    On every level queues keep what they use up to their guarantee. What is left goes to those that ask for more, to the
    ones with the smallest part of their guarantee first, in proportion to guarantees, up to what they ask for and may
    have; a leaf gets no more than its guarantee by preemption. At most ``allowed`` is preempted on each level. What is
    offered is rounded up to whole GPUs; of equals the one listed last is offered first.

    Source: AbstractPreemptableResourceCalculator.java at e7392ed2, computeFixpointAllocation;
    PreemptableResourceCalculator.java, computeIdealResourceDistribution; TempQueuePerPartition.java, offer.
    """
    found: list[Any] = [0] * len(tree.parent)
    taken: list[Any] = [0] * len(tree.parent)
    _level(tree, -1, tree.total, found, taken, allowed)
    for node in tree.downwards:
        _level(tree, node, found[node], found, taken, allowed)
    return found, taken


def _level(tree: CapacityTree, over: int, there: Any, found: list[Any], taken: list[Any], allowed: Any) -> None:
    nodes = tree.below[over]
    left = _fill(tree, [node for node in nodes if tree.guaranteed[node] > 0], there, found, even=False)
    poor = [node for node in nodes if tree.guaranteed[node] <= 0]
    if poor and left > 0:
        _fill(tree, poor, left, found, even=True)
    needed = sum(max(tree.used[node] - found[node], 0) for node in nodes)
    scale = ratio(allowed, needed) if needed > allowed else 1
    for node in nodes:
        least = max(min(tree.used[node] + tree.asks[node], tree.guaranteed[node]), found[node])
        taken[node] = floor(max(tree.used[node] - least, 0) * scale)


def _fill(tree: CapacityTree, nodes: Sequence[int], left: Any, found: list[Any], *, even: bool) -> Any:
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
            accepted = _accepts(tree, node, min(-(-part // whole), left), found)
            found[node] += accepted
            left -= accepted
            if accepted <= 0:
                hungry.remove(node)
    return left


def _first(tree: CapacityTree, nodes: Sequence[int], found: Sequence[Any]) -> list[int]:
    """Return the queues that nobody goes before, the last first. Source: getMostUnderservedQueues."""
    keys = {node: order(standing(found[node], tree.guaranteed[node]), tree.tier[node]) for node in nodes}
    best = min(keys.values())
    return [node for node in reversed(nodes) if keys[node] == best]


def _accepts(tree: CapacityTree, node: int, offered: Any, found: Sequence[Any]) -> Any:
    used, due, has = tree.used[node], tree.guaranteed[node], found[node]
    accepted = min(max(tree.most[node] - has, 0), offered, used + tree.asks[node] - has)
    return accepted if tree.below[node] else min(accepted, max(max(used, due) - has, 0))

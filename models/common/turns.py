"""`TreeTurns`: whose turn it is in a tree of queues, from the top down to the queue that comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from heapq import heappop, heappush
from typing import Any

from fairopt.problem.entitled_rows import TOP


class TreeTurns:
    """Turns of queues in a tree: on every level the one with the least key, among those with somebody that waits.

    ``parent`` (N,): the node above each, `TOP` for none; ``path``: a node and those above it. ``waiting``: what waits,
    by leaf; whoever takes from it says so (`changed`). ``key`` orders nodes beside each other, by a node and the leaf
    that comes first below it; it is asked again for a leaf that has changed and the nodes above it. In a tie the node
    of the least number comes first.

    >>> turns = TreeTurns([2, 2, -1], [[0, 2], [1, 2], [2]].__getitem__, {0: [1], 1: [1]}, lambda node, _: (-node,))
    >>> turns.first()
    1
    """

    def __init__(
        self,
        parent: Sequence[int] | Mapping[int, int],
        path: Callable[[int], Iterable[int]],
        waiting: Mapping[int, Sized],
        key: Callable[[int, int], tuple[Any, ...]],
    ) -> None:
        self._parent, self._path, self._waiting, self._key = parent, path, waiting, key
        self._heaps: dict[int, list[tuple[Any, int]]] = {}
        self._now: dict[int, Any] = {}
        depth = {node: len(list(path(node))) for leaf in waiting for node in path(leaf)}
        for node in sorted(depth, key=lambda node: -depth[node]):
            self._enter(node)

    @classmethod
    def flat(cls, waiting: Mapping[int, Sized], key: Callable[[int], tuple[Any, ...]]) -> TreeTurns:
        """Return the turns of queues that are all beside each other."""
        return cls(dict.fromkeys(waiting, TOP), lambda queue: (queue,), waiting, lambda queue, _: key(queue))

    def first(self, node: int = TOP) -> int | None:
        """Return the leaf that comes first below a node, of all by default; None where nobody waits."""
        while node not in self._waiting:
            heap = self._heaps.get(node, [])
            while heap and self._now[heap[0][1]] != heap[0][0]:
                heappop(heap)  # its key has changed since
            if not heap:
                return None
            node = heap[0][1]
        return node

    def changed(self, leaf: int) -> None:
        """Find the places of a leaf and of those above it anew, by what waits and what their keys are now."""
        for node in self._path(leaf):
            self._enter(node)

    def _enter(self, node: int) -> None:
        leaf = self.first(node)
        self._now[node] = None
        if leaf is not None and self._waiting[leaf]:
            self._now[node] = self._key(node, leaf)
            heappush(self._heaps.setdefault(self._parent[node], []), (self._now[node], node))

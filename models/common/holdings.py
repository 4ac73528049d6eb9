"""What the nodes of a tree of entitlements hold while gangs start and stop, and whose turn it is in the tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairopt.numbers import whole_as_int
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP, tops_of
from fairopt.program import INFINITY, Array, Number


def light(amounts: Iterable[Any]) -> list[Any]:
    """Return the same amounts, whole Fractions as ints.

    >>> light([Fraction(2), Fraction(1, 2), 0.5])
    [2, Fraction(1, 2), 0.5]
    """
    return [whole_as_int(each) for each in amounts]


def ratio(part: Any, whole: Any) -> Any:
    """Return ``part`` over ``whole``, exactly for ints and Fractions, in floats for floats.

    >>> ratio(1, 3)
    Fraction(1, 3)
    """
    return Fraction(part, whole) if type(part) is int and type(whole) is int else part / whole


def quick(key: Iterable[Any]) -> Iterator[Any]:
    """Yield a key's numbers, each after its float: floats are quick to compare, and in the order of the numbers.

    >>> tuple(quick((Fraction(1, 2), (3,))))
    (0.5, Fraction(1, 2), 3.0, 3)
    """
    for each in key:
        if isinstance(each, tuple):
            yield from quick(each)
        else:
            yield _rounded(each)
            yield each


def _rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a Fraction beyond floats
        return INFINITY if number > 0 else -INFINITY


#: Amounts by column; a column that is left out is 0.
Amounts = Mapping[int, Number]


def entitlements_of(market: Market) -> Entitlements:
    """Return the entitlements of a market, which `fairopt.policy.decide` demands of it."""
    assert market.entitlements is not None
    return market.entitlements


@dataclass(eq=False, slots=True)
class QueuedGang:
    """A gang as rules move it about: its number among the market's, its queue (a node), and what it takes.

    ``takes``: `Amounts` by the column of each type that it may run on; a rule that counts otherwise says so. ``place``:
    where it stands among all gangs; those of the highest ``tier`` come first, then the eldest. ``on``: the type that it
    runs on, -1 while it waits.
    """

    number: int
    name: str
    queue: int
    takes: Any
    tier: int = 0
    preemptible: bool = True
    place: int = 0
    on: int = -1


def gangs_of(owed: Entitlements) -> list[QueuedGang]:
    """Return all gangs in their places."""
    gangs = owed.gangs
    users, tiers, kept, on = (each.tolist() for each in (gangs.user, gangs.tier, gangs.preemptible, gangs.on))
    kinds = gangs.kinds.tolist()
    alike: dict[int, dict[int, Amounts]] = {}
    out = []
    for place, gang in enumerate(gangs.order().tolist()):
        same = kinds[gang]
        if same not in alike:
            alike[same] = {j: takes_of(owed, gang, j) for j in np.flatnonzero(gangs.allowed[gang]).tolist()}
        row = (gangs.names[gang], users[gang], alike[same], tiers[gang], kept[gang], place, on[gang])
        out.append(QueuedGang(gang, *row))
    return out


def linked(owed: Entitlements, by: Iterable[Iterable[int]] = ()) -> list[list[int]]:
    """Return the users in parts: those in one tree of groups are together, and those that stand together in ``by``."""
    of, parts = tops_of(owed.parent, owed.upwards), dict[int, list[int]]()
    for users in by:
        tops = {of[user] for user in users}
        of = [min(tops) if top in tops else top for top in of] if len(tops) > 1 else of
    for user in range(len(owed.users)):
        parts.setdefault(of[user], []).append(user)
    return list(parts.values())


def by_queue(gangs: Iterable[QueuedGang]) -> dict[int, deque[QueuedGang]]:
    """Return gangs by queue, in the order in which they are given."""
    queues: dict[int, deque[QueuedGang]] = {}
    for gang in gangs:
        queues.setdefault(gang.queue, deque()).append(gang)
    return queues


@dataclass
class Holdings:
    """What each node holds of each column, with those below it, and what is free; columns are types and goods.

    ``parent`` (N,): the node above each, `TOP` for none. ``held`` (N, W) and ``free`` (W,) change as gangs start and
    stop; whole numbers in them are ints, since Fractions take ten times as long. ``running``: gangs by number, the last
    that started last; ``waiting``: those that wait by queue, the first first. ``started`` names those that started in
    order; ``waits`` and ``stopped`` say by name why a gang does not run, or was stopped.
    """

    names: Sequence[str]
    columns: Sequence[str]
    parent: Sequence[int]
    free: list[Any]
    held: list[list[Any]]
    waiting: dict[int, deque[QueuedGang]]
    running: dict[int, QueuedGang] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    waits: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def at_first(market: Market) -> Holdings:
        """Return what a market with entitlements says."""
        owed = entitlements_of(market)
        held = [light(row) for row in owed.total(owed.held).tolist()]
        there = light([*market.capacity.tolist(), *owed.stock.tolist()])
        free = [all_ - sum(held[top][column] for top in owed.tops) for column, all_ in enumerate(there)]
        gangs = gangs_of(owed)
        waiting, running = by_queue(each for each in gangs if each.on < 0), {g.number: g for g in gangs if g.on >= 0}
        return Holdings(owed.nodes, owed.columns, owed.parent.tolist(), free, held, waiting, running)

    def above(self, node: int) -> Iterable[int]:
        """Yield a node, the one above it, and so on."""
        while node != TOP:
            yield node
            node = self.parent[node]

    def lacks(self, takes: Amounts) -> list[int]:
        """Return the columns of which less is free than somebody takes."""
        return [column for column, amount in takes.items() if amount > self.free[column]]

    def beyond(self, node: int, takes: Amounts, most: Sequence[Any]) -> int | None:
        """Return the first column of which a node would hold more than ``most`` (W,) with ``takes``; None for none."""
        held = self.held[node]
        for column, amount in takes.items():
            if held[column] + amount > most[column]:
                return column
        return None

    def obstacle(self, node: int, takes: Amounts, most: Sequence[Any], kept: Sequence[Any] | None = None) -> str:
        """Say why a node may not start what takes so much; "" where it may.

        ``most`` (W,): its limits; ``kept`` (W,): what of the free is kept for others.
        """
        for column, amount in takes.items():
            needs, has = f"{self.columns[column]}: needs {amount}", self.held[node][column]
            free = self.free[column] - (kept[column] if kept else 0)
            if amount > free:
                return f"{needs}, {max(free, 0)} are free"
            if has + amount > most[column]:
                return f"{needs}, {self.names[node]!r} has {has} of at most {most[column]}"
        return ""

    def start(self, gang: QueuedGang, gpu_type: int) -> None:
        """Let a gang run on a type; its queue, and those above it, then hold what it takes."""
        gang.on = gpu_type
        self.running[gang.number] = gang
        self.started.append(gang.name)
        self.waits.pop(gang.name, None)
        self.stopped.pop(gang.name, None)
        self.add(gang, 1)

    def stop(self, gang: QueuedGang, why: str) -> None:
        """Stop a gang that runs."""
        del self.running[gang.number]
        self.stopped[gang.name] = why
        self.add(gang, -1)
        gang.on = -1

    def add(self, gang: QueuedGang, sign: int) -> None:
        """Let what a gang takes be held, or with -1 not be: for a trial, which is taken back."""
        for column, amount in gang.takes[gang.on].items():
            self.free[column] -= sign * amount
            for at in self.above(gang.queue):
                self.held[at][column] += sign * amount

    def said(self, amounts: Mapping[int, object]) -> str:
        """Return amounts in words."""
        return ", ".join(f"{_short(amount)} {self.columns[column]}" for column, amount in amounts.items())

    def decided(
        self, market: Market, unit: str, share: Mapping[str, Number], **more: Any
    ) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each user holds now, in the market's numbers, and why.

        ``unit``, ``share`` and ``more`` are of the `DecisionReason`.
        """
        gangs, (n, k) = entitlements_of(market).gangs, market.shape
        on = np.full(len(gangs), -1, dtype=np.int64)
        on[list(self.running)] = [gang.on for gang in self.running.values()]
        told = {"order": tuple(self.started), "waits": self.waits, "stopped": self.stopped} | more
        held = np.array([row[:k] for row in self.held[:n]], dtype=market.capacity.dtype) + 0 * market.capacity
        return held, DecisionReason(gangs.placed(on), unit, share, **told)


def takes_of(owed: Entitlements, gang: int, gpu_type: int) -> dict[int, Number]:
    """Return what a gang takes on a type: its GPUs, and what is counted of the other resources."""
    gangs = owed.gangs
    takes: dict[int, Any] = {gpu_type: gangs.size(gang)} if gangs.gpus[gang] else {}
    return takes | {column: light([amount])[0] for column, amount in owed.goods_of(gang, gpu_type)}


def _short(amount: Any) -> str:
    return str(amount) if amount == int(amount) else f"{float(amount):.4g}"


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
        below: dict[int, set[int]] = {}
        for leaf in waiting:
            for node in path(leaf):
                below.setdefault(parent[node], set()).add(node)
        #: Below a node that has one only, that one's turn it is, whatever its key.
        self._only = {above: next(iter(nodes)) for above, nodes in below.items() if len(nodes) == 1}
        rivals = [node for nodes in below.values() if len(nodes) > 1 for node in nodes]
        self._rivals = sorted(rivals, key=lambda node: -len(list(path(node))))
        self.all_changed()

    @classmethod
    def flat(cls, waiting: Mapping[int, Sized], key: Callable[[int], tuple[Any, ...]]) -> TreeTurns:
        """Return the turns of queues that are all beside each other."""
        return cls(dict.fromkeys(waiting, TOP), lambda queue: (queue,), waiting, lambda queue, _: key(queue))

    def first(self, node: int = TOP) -> int | None:
        """Return the leaf that comes first below a node, of all by default; None where nobody waits."""
        while node not in self._waiting:
            if node in self._only:
                node = self._only[node]
                continue
            heap = self._heaps.get(node, [])
            while heap and self._now[heap[0][1]] is not heap[0][0]:
                heappop(heap)  # its key has changed since
            if not heap:
                return None
            node = heap[0][1]
        return node if self._waiting[node] else None

    def changed(self, leaf: int) -> None:
        """Find the places of a leaf and of those above it anew, by what waits and what their keys are now."""
        for node in self._path(leaf):
            if self._parent[node] not in self._only:
                self._enter(node)

    def all_changed(self) -> None:
        """Find the places of all anew."""
        for node in self._rivals:
            self._enter(node)

    def _enter(self, node: int) -> None:
        leaf = self.first(node)
        self._now[node] = None
        if leaf is not None:
            self._now[node] = self._key(node, leaf)
            heappush(self._heaps.setdefault(self._parent[node], []), (self._now[node], node))

"""Hierarchical dominant resource fairness, as Volcano's plugin "drf" computes it with ``enableHierarchy``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from fairopt.models.common.holdings import Amounts, Holdings, QueuedGang, TreeTurns, entitlements_of
from fairopt.models.volcano.actions import allocate
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Array


class QueueTree:
    """The shares of queues and groups; jobs are the children of queues. Turns are by share over weight, from the top.

    A node's amounts are those of its children that hold anything: a saturated child's as they are, and the others'
    scaled down to the smallest of their dominant shares. Saturated is a job that has all that it requests of something,
    or holds something while something that it requests is used up; and a node whose children all are. Saturated nodes
    come last. Without ``saturation`` nothing is, which is the naive version of docs/design/hdrf.md.

    Nodes are numbered as ``parent`` (N,), with -1 at the top; ``weight`` (N,); ``total`` (W,). Numbers are floats, as
    in Volcano. Source: volcano at ed72c7c8, pkg/scheduler/plugins/drf/drf.go, compareQueues, updateHierarchicalShare.
    """

    def __init__(
        self, parent: Sequence[int], weight: Sequence[float], total: Sequence[float], *, saturation: bool = True
    ) -> None:
        self._parent, self._total, self._saturation = list(parent), np.array(total, dtype=float), saturation
        self._weight = np.array(weight, dtype=float)
        self._part = np.divide(1.0, self._total, out=np.zeros(len(total)), where=self._total > 0)
        n, width = len(parent), len(total)
        self._below: list[list[int]] = [[] for _ in range(n)]
        for node, over in enumerate(self._parent):
            if over != TOP:
                self._below[over].append(node)
        self.held, self.share = np.zeros((n, width)), np.zeros(n)
        self._saturated = np.zeros(n, dtype=bool)
        self._there = np.zeros(n, dtype=bool)  # whether it has jobs: Volcano makes no node of a queue without any
        self._rows: list[dict[str, int]] = [{} for _ in range(n)]
        self._has: list[Array] = [np.zeros((0, width))] * n
        self._asks: list[Array] = [np.zeros((0, width))] * n
        self._used = np.zeros(width)
        self._spent = np.zeros(width, dtype=bool)
        self._turns: TreeTurns | None = None

    def add(self, queue: int, jobs: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
        """Add the jobs of a queue by name, with what each holds and requests altogether (W,)."""
        self._rows[queue] = {name: at for at, name in enumerate(jobs)}
        self._has[queue] = np.array([held for held, _ in jobs.values()], dtype=float)
        self._asks[queue] = np.array([asks for _, asks in jobs.values()], dtype=float)
        self._used = self._used + self._has[queue].sum(axis=0)

    def settle(self) -> None:
        """Compute all shares, after jobs were added or a resource was used up."""
        self._spent = self._used >= self._total
        for queue, jobs in enumerate(self._rows):
            self._there[[node for node in self._path(queue) if jobs]] = True
        for node in sorted(range(len(self._parent)), key=lambda each: -len(list(self._path(each)))):
            self._update(node)
        if self._turns is not None:
            self._turns.all_changed()

    def grow(self, queue: int, name: str, takes: Mapping[int, float]) -> None:
        """Let a job hold more, and update the shares above it."""
        row = self._rows[queue][name]
        for column, amount in takes.items():
            self._has[queue][row, column] += amount
            self._used[column] += amount
        if not np.array_equal(self._spent, self._used >= self._total):
            self.settle()
            return
        for node in self._path(queue):
            self._update(node)

    # -- turns ---------------------------------------------------------------------------------------------------
    def turns(self, waiting: Mapping[int, Sized]) -> TreeTurns:
        """Return whose turn it is, of queues in which somebody waits."""
        self._turns = TreeTurns(self._parent, self._path, waiting, self._key)
        return self._turns

    def runs(self, job: QueuedGang) -> None:
        """Take notice of a job that runs now."""
        self.grow(job.queue, job.name, {column: float(amount) for column, amount in job.takes[job.on].items()})

    def _key(self, node: int, leaf: int) -> tuple[tuple[bool, float], ...]:
        """Return what a node is compared by, where a leaf comes first below it; in a tie the next level decides."""
        down = [*takewhile(lambda each: each != self._parent[node], self._path(leaf))][::-1]
        return tuple((bool(self._saturated[each]), float(self.share[each] / self._weight[each])) for each in down)

    # -- shares --------------------------------------------------------------------------------------------------
    def _update(self, node: int) -> None:
        children = np.array(self._below[node], dtype=np.int64)
        children = children[self._there[children]]
        if children.size:
            has, saturated = self.held[children], self._saturated[children]
        elif self._rows[node]:
            has = self._has[node]
            saturated = self._satisfied(has, self._asks[node])
        else:
            return
        share = self.share[children] if children.size else (has * self._part).max(axis=1, initial=0.0)
        scaled = (share > 0) & ~saturated
        least = min(1.0, share[scaled].min()) if scaled.any() else 1.0
        factor = np.where(scaled, least / np.where(scaled, share, 1.0), (share > 0) & saturated)
        self.held[node] = factor @ has
        self.share[node] = (self.held[node] * self._part).max(initial=0.0)
        self._saturated[node] = self._saturation and bool(saturated.all())

    def _satisfied(self, has: Array, asks: Array) -> Array:
        """Say which jobs are saturated (m,), by what they hold anything of. Source: resourceSaturated."""
        if not self._saturation:
            return np.zeros(len(has), dtype=bool)
        full = ((has > 0) & (asks > 0) & (has >= asks)).any(axis=1)
        blocked = ((has > 0) & (asks > 0) & self._spent).any(axis=1)
        return np.asarray(full | blocked)

    def _path(self, node: int) -> Iterator[int]:
        while node != TOP:
            yield node
            node = self._parent[node]


@dataclass(frozen=True)
class VolcanoHdrf(Computed):
    """Queues start jobs while GPUs are free, the queue with the smallest dominant share in the tree first.

    ``borrow_weight`` are the weights of all nodes; one below 1 counts as 1. ``saturation=False`` is the naive version.

    Source: volcano-sh/volcano at ed72c7c8, docs/design/hdrf.md, pkg/scheduler/plugins/drf/drf.go; Bhattacharya et al.,
    Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(VolcanoHdrf(), market, exact=True).shares[:, 0])
    4 0
    """

    saturation: bool = True

    name = "volcano-hdrf"
    source = "Volcano, docs/design/hdrf.md and pkg/scheduler/plugins/drf"
    traits = frozenset({Trait.ENTITLED})
    supports = frozenset({Entitled.GROUPS})
    claims = (
        Claim("", "docs/design/hdrf.md, Background", words="To avoid this starvation, HDRF rescales children"),
        Claim("", "docs/design/hdrf.md, Background", words="HDRF ignores saturated resources when computing the share"),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each queue holds after a session, and why."""
        owed = entitlements_of(problem)
        room = Holdings.at_first(problem)
        total = [float(each) for each in (*problem.capacity, *owed.stock)]
        weight = [max(1.0, float(each)) for each in owed.borrow_weight]
        tree = QueueTree(room.parent, weight, total, saturation=self.saturation)
        jobs: dict[int, dict[str, tuple[list[float], list[float]]]] = {}
        width = len(total)
        for job in (*room.running.values(), *(job for own in room.waiting.values() for job in own)):
            asks = _row(job.takes[job.on] if job.on >= 0 else next(iter(job.takes.values())), width)
            jobs.setdefault(job.queue, {})[job.name] = (asks if job.on >= 0 else [0.0] * width, asks)
        for queue, each in jobs.items():
            tree.add(queue, each)
        tree.settle()
        shares = dict(zip(owed.nodes, tree.share.tolist(), strict=True))
        allocate(room, tree.turns(room.waiting), runs=tree.runs)
        return room.decided(problem, "dominant share", shares)


def _row(takes: Amounts, width: int) -> list[float]:
    return [float(takes.get(column, 0)) for column in range(width)]

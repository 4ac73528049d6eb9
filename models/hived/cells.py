"""Cells of GPUs, their buddy allocation, and virtual clusters made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import NamedTuple

from fairopt.problem import Cluster
from fairopt.program import Number


class GpuCell(NamedTuple):
    """``size`` GPUs from GPU ``first`` on, of a top-level cell ``root``."""

    root: int
    first: int
    size: int


@dataclass(frozen=True)
class Chain:
    """Equal top-level cells of one GPU type: racks, or hosts where a host is in no rack.

    ``sizes``: GPUs of a cell at each level, from 1 upwards; each divides the next (the source's hierarchical uniform
    composability). ``roots``: the hosts of each top-level cell. ``gpus``: those of a host.
    """

    gpu_type: int
    gpus: int
    sizes: tuple[int, ...]
    roots: tuple[tuple[int, ...], ...]

    def leaves(self, cell: GpuCell) -> list[tuple[int, int]]:
        """Return the GPUs of a cell: pairs (host, number of the GPU in it)."""
        hosts = self.roots[cell.root]
        return [(hosts[at // self.gpus], at % self.gpus) for at in range(cell.first, cell.first + cell.size)]


def chains(cluster: Cluster) -> tuple[Chain, ...]:
    """Return the chains of a cluster. Inside a host each cell has two halves, or its GPUs where their number is odd.

    Source: HiveD, OSDI 2020 (GPU, PCIe switch, CPU socket, node, rack).
    """
    racks: dict[tuple[int, int, str | int], list[int]] = {}
    for host, size in enumerate(cluster.gpus.tolist()):
        rack = cluster.rack[host] if cluster.rack else ""
        racks.setdefault((int(cluster.gpu_type[host]), size, rack or host), []).append(host)
    found: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
    for (gpu_type, size, _), hosts in racks.items():
        found.setdefault((gpu_type, size, len(hosts)), []).append(tuple(hosts))
    out = []
    for (gpu_type, size, count), roots in found.items():
        sizes = [size]
        while sizes[0] > 1:
            sizes.insert(0, sizes[0] // 2 if sizes[0] % 2 == 0 else 1)
        out.append(Chain(gpu_type, size, (*sizes, *([count * size] if count > 1 else [])), tuple(roots)))
    return tuple(out)


class FreeCells:
    """The free cells of a forest: no free cell lies in another, and no cell is free whose buddies are all free.

    ``sizes`` are those of all levels, rising; ``roots`` gives the size of each top-level cell.

    Source: HiveD, OSDI 2020, buddy cell allocation.

    >>> free = FreeCells([1, 2, 4], [4, 4])
    >>> one = free.allocate(1)
    >>> free.allocate(4), sorted(free.cells)
    (GpuCell(root=1, first=0, size=4), [GpuCell(root=0, first=1, size=1), GpuCell(root=0, first=2, size=2)])
    >>> free.release(one); sorted(free.cells)
    [GpuCell(root=0, first=0, size=4)]
    """

    def __init__(self, sizes: Sequence[int], roots: Sequence[int]) -> None:
        self.sizes, self.roots = sizes, roots
        self.cells = {GpuCell(root, 0, size) for root, size in enumerate(roots)}

    def children(self, cell: GpuCell) -> list[GpuCell]:
        """Return the cells that a cell is split into."""
        size = self.sizes[self.sizes.index(cell.size) - 1]
        return [GpuCell(cell.root, first, size) for first in range(cell.first, cell.first + cell.size, size)]

    def allocate(
        self,
        size: int,
        usable: Callable[[GpuCell], bool] = lambda cell: True,
        cost: Callable[[GpuCell], int] = lambda cell: 0,
    ) -> GpuCell | None:
        """Take a free cell of ``size`` out of the smallest free cell that holds one; None where there is none.

        The cell must be ``usable``; among cells of one size the cheapest comes first, then the first.
        """
        for cell in sorted((each for each in self.cells if each.size >= size), key=lambda c: (c.size, cost(c), c)):
            if (found := self._find(cell, size, usable)) is not None:
                self.take(found)
                return found
        return None

    def _find(self, cell: GpuCell, size: int, usable: Callable[[GpuCell], bool]) -> GpuCell | None:
        if cell.size == size:
            return cell if usable(cell) else None
        return next(filter(None, (self._find(child, size, usable) for child in self.children(cell))), None)

    def take(self, wanted: GpuCell) -> None:
        """Take a cell that is free, or part of a free one, which is split."""
        cell = next(
            each
            for each in self.cells
            if each.root == wanted.root and each.first <= wanted.first < each.first + each.size
        )
        self.cells.remove(cell)
        while cell != wanted:
            parts = self.children(cell)
            cell = parts[(wanted.first - cell.first) // parts[0].size]
            self.cells |= {part for part in parts if part != cell}

    def release(self, cell: GpuCell) -> None:
        """Give a cell back; it is merged with its buddies as long as all of them are free."""
        self.cells.add(cell)
        while cell.size < self.roots[cell.root]:
            size = self.sizes[self.sizes.index(cell.size) + 1]
            parent = GpuCell(cell.root, cell.first // size * size, size)
            parts = set(self.children(parent))
            if not parts <= self.cells:
                return
            self.cells = self.cells - parts | {parent}
            cell = parent


def virtual_clusters(chain: Chain, weights: Iterable[Number]) -> list[list[int]]:
    """Return the sizes of the cells of each tenant's virtual cluster on a chain, in proportion to ``weights``.

    From the top level down, each tenant gets as many whole cells as its proportion still holds; what is left of a level
    is split. Single GPUs that are left go to the largest remainders. Hence the assignment is feasible: all virtual
    clusters together are a way to split the top-level cells. The source leaves the assignment to the operator.

    >>> virtual_clusters(Chain(0, 8, (1, 2, 4, 8), ((0,), (1,))), [1, 1, 2])
    [[4], [4], [8]]
    """
    parts = [Fraction(weight) for weight in weights]
    cells, top = len(chain.roots), chain.sizes[-1]
    due = [part * cells * top / sum(parts) for part in parts]
    given: list[list[int]] = [[] for _ in due]
    for size, larger in zip(reversed(chain.sizes), (top, *reversed(chain.sizes)), strict=False):
        cells *= larger // size
        for tenant, owed in enumerate(due):
            whole = floor(owed / size)
            given[tenant] += [size] * whole
            due[tenant] -= whole * size
            cells -= whole
    for tenant in sorted(range(len(due)), key=lambda tenant: (-due[tenant], -parts[tenant], tenant))[:cells]:
        given[tenant].append(1)
    return given

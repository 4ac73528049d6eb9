"""HiveD: each tenant has a virtual cluster of cells, which is as good as a cluster of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import Tally
from fairopt.models.hived.cells import Chain, FreeCells, GpuCell, chains, virtual_clusters
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue, Spots
from fairopt.simulation import Consolidated, Placement, by_throughput, choose, placed


@dataclass(frozen=True)
class _VirtualCell:
    """Part of a virtual cluster: a cell in top-level cell ``root`` of a ``tenant`` on a ``chain``; all are numbers.

    That top-level cell is bound to a cell of the cluster as long as a job runs in it: in its top-level cell
    ``on_root``, from GPU ``on_first`` on.
    """

    chain: int
    tenant: int
    root: int
    first: int
    size: int
    on_root: int
    on_first: int

    @property
    def top(self) -> tuple[int, int, int]:
        """The top-level cell of the virtual cluster in which it lies."""
        return self.chain, self.tenant, self.root


#: The virtual cells that a job holds.
Cells: TypeAlias = tuple[_VirtualCell, ...]


@dataclass(frozen=True)
class HiveD(Policy):
    """Jobs run first in, first out in their tenant's virtual cluster, and on idle GPUs of others until these want them.

    A virtual cluster has cells of several sizes: pairs of GPUs, hosts, racks (`Cluster.rack`). A job takes a cell of
    it, or several. The first job in a top-level virtual cell binds it to a cell of the cluster, by buddy allocation;
    when the last job in it is done, both are free again. A job that runs in its virtual cluster is not stopped.

    * ``overtake``: a job for which its virtual cluster has no room now is skipped; else it blocks its tenant's later
      jobs. A job that is larger than the virtual cluster never blocks; `Schedule.notes` says so.
    * ``opportunistic``: whether jobs that wait run on idle GPUs, at the lowest priority: they are stopped when GPUs are
      wanted, and start again in their virtual cluster when it has room.
    * ``placement``: how hosts are chosen for those.

    Readings. The operator assigns cells to tenants; here it is done by the tenants' weights (`virtual_clusters`). A
    gang lies in the smallest free cell that holds it, else in several cells, the largest first; it prefers the type
    that is fastest for it. Jobs have no priorities inside a virtual cluster. A host that failed is not bound, so that a
    tenant may have to wait then, as in the source.

    Source: HiveD, OSDI 2020; github.com/microsoft/hivedscheduler, pkg/algorithm/cell_allocation.go.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(HiveD(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of hived, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "hived"
    source = "HiveD, OSDI 2020"
    states = (Tally[Cells], _VirtualCell)
    claims = (
        Claim(
            "",
            "HiveD, OSDI 2020, the theorem on safety",
            "the virtual clusters fit together, and no host fails",
            words="any_request_within_a_virtual_cluster_is_granted",
        ),
    )
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS, Trait.WORK_CONSERVING})
    overtake: bool = False
    opportunistic: bool = True
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Tally[Cells], solve: Session) -> Schedule:
        """Keep what runs in virtual clusters, grant cells in order of arrival, fill the rest; see `Policy.decide`."""
        cells = _Cells(problem, state)
        notes: dict[int, str] = {}
        blocked: set[int] = set()
        for row in problem.able:
            tenant = int(problem.jobs.tenant[row])
            if row in cells.granted or row in problem.leased or tenant in blocked:
                continue
            if large := cells.too_large(row):
                notes[row] = f"larger than the virtual cluster of {problem.jobs.tenants[tenant]!r}: {large}"
            elif not cells.grant(row) and not self.overtake:
                blocked.add(tenant)
        guaranteed = cells.as_leased()
        order = problem.able if self.opportunistic else []
        running = [row for row in order if guaranteed.running[row]]
        requests = choose(guaranteed, [*running, *(row for row in order if not guaranteed.running[row])])
        return Schedule(
            self.name,
            problem,
            dict(placed(guaranteed, requests, self.placement)),  # of `guaranteed`, which says otherwise who ran where
            notes=notes,
            state=cells.held(),
        )


class _Cells:
    """The cells of a round: what runs in virtual clusters stays, and more is granted."""

    def __init__(self, queue: Queue, state: Tally[Cells]) -> None:
        self.queue = queue
        self.chains = chains(queue.cluster)
        weights = queue.jobs.tenant_weight.tolist()
        self.roots = [virtual_clusters(chain, weights) for chain in self.chains]
        self.physical = [FreeCells(chain.sizes, [chain.sizes[-1]] * len(chain.roots)) for chain in self.chains]
        self.virtual = {
            (number, tenant): FreeCells(chain.sizes, sizes)
            for number, chain in enumerate(self.chains)
            for tenant, sizes in enumerate(self.roots[number])
        }
        self.bound: dict[tuple[int, int, int], GpuCell] = {}
        self.granted: dict[int, Cells] = {}
        going_on = (row for row, name in enumerate(queue.jobs.names) if queue.running[row] and name in state.of)
        for row in going_on:
            parts = state.of[queue.jobs.names[row]]
            for part in parts:
                if part.top not in self.bound:
                    cell = GpuCell(part.on_root, part.on_first, self.roots[part.chain][part.tenant][part.root])
                    self.physical[part.chain].take(cell)
                    self.bound[part.top] = cell
                self.virtual[part.chain, part.tenant].take(GpuCell(part.root, part.first, part.size))
            self.granted[row] = parts
        self.closed = {
            (host, gpu) for host in np.flatnonzero(~queue.up).tolist() for gpu in range(queue.cluster.gpus[host])
        }
        self._close_foreign()
        # GPUs of other jobs that run: cells without any are bound first, so that fewer jobs are stopped
        self.busy = [0] * len(queue.cluster.hosts)
        for row in np.flatnonzero(queue.running).tolist():
            for host, gpus in () if row in self.granted else queue.last[row]:
                self.busy[host] += gpus

    def _close_foreign(self) -> None:
        """Take GPUs out that jobs hold by leases which this policy did not give."""
        used = {gpu for parts in self.granted.values() for part in parts for gpu in self._gpus(part)}
        for row, spots in self.queue.leased.items():
            for host, gpus in () if row in self.granted else spots:
                there = range(int(self.queue.cluster.gpus[host]))
                free = [(host, gpu) for gpu in there if (host, gpu) not in used | self.closed]
                self.closed |= set(free[:gpus])

    def _gpus(self, part: _VirtualCell) -> list[tuple[int, int]]:
        """Return the GPUs (host, number) of a virtual cell that is bound."""
        top = self.bound[part.top]
        return self.chains[part.chain].leaves(GpuCell(top.root, top.first + part.first, part.size))

    def _open(self, chain: Chain, cell: GpuCell) -> bool:
        return not self.closed or self.closed.isdisjoint(chain.leaves(cell))

    def too_large(self, row: int) -> str:
        """Return why a job does not fit its tenant's virtual cluster on any type that is open to it; "" if it does."""
        queue, tenant, gpus = self.queue, self.queue.jobs.tenant[row], int(self.queue.jobs.gpus[row])
        quota = {
            gpu_type: sum(
                sum(self.roots[number][tenant])
                for number, chain in enumerate(self.chains)
                if chain.gpu_type == gpu_type
            )
            for gpu_type in queue.open_to(row)
        }
        if any(gpus <= own for own in quota.values()):
            return ""
        return "; ".join(f"{queue.cluster.types[each]}: needs {gpus} GPUs of {own}" for each, own in quota.items())

    def grant(self, row: int) -> bool:
        """Give a job cells of its tenant's virtual cluster, on the fastest type with room; False where none has any."""
        gpus, tenant = int(self.queue.jobs.gpus[row]), int(self.queue.jobs.tenant[row])
        for gpu_type in by_throughput(self.queue, row):
            numbers = [number for number, chain in enumerate(self.chains) if chain.gpu_type == gpu_type]
            parts = self._within_one(numbers, tenant, gpus) or self._of_several(numbers, tenant, gpus)
            if parts:
                self.granted[row] = parts
                return True
        return False

    def _sizes(self, numbers: list[int]) -> list[int]:
        return sorted({size for number in numbers for size in self.chains[number].sizes})

    def _within_one(self, numbers: list[int], tenant: int, gpus: int) -> Cells:
        """Take ``gpus`` that lie in one cell, the smallest that holds them; () where there is none."""
        for size in (each for each in self._sizes(numbers) if each >= gpus):
            for number in numbers:
                if size in self.chains[number].sizes and (whole := self._bind(number, tenant, size)):
                    free, first, parts = self.virtual[number, tenant], whole.first, []
                    free.release(GpuCell(whole.root, first, size))
                    for part in reversed(self.chains[number].sizes):
                        while whole.first + gpus - first >= part:
                            free.take(GpuCell(whole.root, first, part))
                            parts.append(replace(whole, first=first, size=part))
                            first += part
                    return tuple(parts)
        return ()

    def _of_several(self, numbers: list[int], tenant: int, gpus: int) -> Cells:
        """Take cells of ``gpus`` in all, the largest first; () where there are too few."""
        parts: list[_VirtualCell] = []
        for size in reversed(self._sizes(numbers)):
            for number in numbers:
                while size <= gpus and size in self.chains[number].sizes and (part := self._bind(number, tenant, size)):
                    parts.append(part)
                    gpus -= size
        if gpus:
            self._give_back(parts)
        return () if gpus else tuple(parts)

    def _bind(self, number: int, tenant: int, size: int) -> _VirtualCell | None:
        """Take a virtual cell, and bind its top-level cell where it is not bound; None where that cannot be."""
        chain, free = self.chains[number], self.virtual[number, tenant]

        def usable(cell: GpuCell) -> bool:
            top = self.bound.get((number, tenant, cell.root))
            if top is not None:
                return self._open(chain, GpuCell(top.root, top.first + cell.first, cell.size))
            whole = self.physical[number].allocate(
                free.roots[cell.root],
                lambda each: self._open(chain, each),
                lambda each: sum(self.busy[host] for host, _ in chain.leaves(each)),
            )
            if whole is None:
                return False
            self.bound[number, tenant, cell.root] = whole
            return True

        found = free.allocate(size, usable)
        if found is None:
            return None
        top = self.bound[number, tenant, found.root]
        return _VirtualCell(number, tenant, *found, top.root, top.first)

    def _give_back(self, parts: list[_VirtualCell]) -> None:
        for part in parts:
            free = self.virtual[part.chain, part.tenant]
            free.release(GpuCell(part.root, part.first, part.size))
            if GpuCell(part.root, 0, free.roots[part.root]) in free.cells:
                self.physical[part.chain].release(self.bound.pop(part.top))

    def as_leased(self) -> Queue:
        """Return the queue in which all jobs that run in virtual clusters hold leases on their GPUs."""
        queue = self.queue
        last, running, lease = list(queue.last), queue.running.copy(), queue.lease.copy()
        for row, parts in self.granted.items():
            if row not in queue.leased:
                last[row], running[row], lease[row] = self._spots(parts), True, queue.end
        return replace(queue, last=tuple(last), running=running, lease=lease)

    def _spots(self, parts: Cells) -> Spots:
        hosts: dict[int, int] = {}
        for part in parts:
            for host, _ in self._gpus(part):
                hosts[host] = hosts.get(host, 0) + 1
        return tuple(sorted(hosts.items()))

    def held(self) -> Tally[Cells]:
        """Return who holds what, for the next round."""
        return Tally({self.queue.jobs.names[row]: parts for row, parts in self.granted.items()})

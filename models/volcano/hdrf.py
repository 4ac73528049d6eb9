"""Hierarchical dominant resource fairness, as Volcano's plugin "drf" computes it with ``enableHierarchy``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from fairopt.models.common.holdings import Amounts, entitlements_of
from fairopt.models.volcano.actions import allocate
from fairopt.models.volcano.cluster import QueueTree, VolcanoCluster, decided
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Market
from fairopt.program import Array


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
        cluster = VolcanoCluster.of(problem)
        weight = [max(1.0, float(each)) for each in owed.borrow_weight]
        tree = QueueTree(cluster.parent, weight, [float(each) for each in cluster.total], saturation=self.saturation)
        jobs: dict[int, dict[str, tuple[list[float], list[float]]]] = {}
        width = len(cluster.total)
        for job, way in cluster.runs.values():
            jobs.setdefault(job.queue, {})[job.name] = (_row(job.ways[way], width), _row(job.ways[way], width))
        for queue, waiting in cluster.waits.items():
            for job in waiting:
                asks = _row(next(iter(job.ways.values()), {}), width)
                jobs.setdefault(queue, {})[job.name] = ([0.0] * width, asks)
        for queue, each in jobs.items():
            tree.add(queue, each)
        tree.settle()
        shares = dict(zip(owed.nodes, tree.share.tolist(), strict=True))
        tree.open(cluster.waits)
        started, waits = allocate(cluster, tree, runs=tree.runs)
        grounds = partial(DecisionReason, unit="dominant share", share=shares)
        return decided(problem, cluster, grounds, started, waits)


def _row(takes: Amounts, width: int) -> list[float]:
    return [float(takes.get(column, 0)) for column in range(width)]

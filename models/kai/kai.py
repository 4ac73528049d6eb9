"""KAI Scheduler as a policy: one cycle, or several, in every node pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.errors import require
from fairopt.models.common.holdings import linked
from fairopt.models.kai.cycle import ACTIONS, Cycle
from fairopt.models.kai.devices import Devices
from fairopt.models.kai.pool import NodePool
from fairopt.models.kai.reclaiming import saturation
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.numbers import amount, whole
from fairopt.program import INFINITY, Array, Number, cast

_DOCS = "KAI-Scheduler d5bc503a, docs"


@dataclass(frozen=True)
class Kai(Computed):
    """KAI Scheduler: quotas, then the rest by priority and weight; gangs start, reclaim and preempt by these shares.

    A GPU type is a node pool, which the scheduler treats as a cluster of its own; goods whose flavor is the type's name
    (CPU, memory) are divided and checked beside its GPUs. Options, with the source's defaults:

    * ``k``: how much past usage counts in what is divided beyond quotas; the market's ``usage`` is then a queue's usage
      as a share of the cluster's GPUs over time. Without past usage it changes nothing.
    * ``saturation``: how many times as saturated as the reclaiming queue the other must stay (at least 1).
    * ``cycles``: how many cycles are played; fewer where one changes nothing.
    * ``actions``: what a cycle does, in order: allocate, consolidation, reclaim, preempt; None for what the market's
      `settings` say of the cluster, as a snapshot has it, else these four.

    Where the settings say which nodes a pool has, pods are on the GPUs of nodes (`Devices`) and may move; else the GPUs
    of a pool count as one.

    Errors: `BadInput` for options out of range. Source: pkg/scheduler/plugins/proportion and pkg/scheduler/actions at
    d5bc503a; docs/schedulers/kai.md says what is not modelled.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [6, 4], users=["A", "B"], types=["H100"], on=["H100", None])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> found = allocate(Kai(), market)
    >>> found.shares.tolist(), dict(found.evidence.stopped)
    ([[Fraction(0, 1)], [Fraction(4, 1)]], {'g1': "it was reclaimed for 'g2' of 'B'"})
    """

    k: Number = 1
    saturation: Number = 1
    cycles: int = 1
    actions: tuple[str, ...] | None = None

    name = "kai"
    source = "KAI Scheduler (NVIDIA), github.com/kai-scheduler/KAI-Scheduler at d5bc503a"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT, Trait.UNIT_FREE})
    supports = frozenset(Entitled)
    claims = (
        Claim("", f"{_DOCS}/fairness/README.md", words="deserved quota for a queue will always be allocated to it"),
        Claim(
            "",
            f"{_DOCS}/scheduling-deep-dive/README.md",
            words="a queue that uses only its guaranteed resources never has workloads reclaimed",
        ),
        Claim(
            "",
            f"{_DOCS}/scheduling-deep-dive/README.md",
            words="workloads that are not preemptible never consume surplus capacity",
        ),
    )

    def __post_init__(self) -> None:
        amount(self.k, "k")
        amount(1 if self.saturation == 1 else self.saturation - 1, "saturation, less 1")
        whole(self.cycles, "cycles")
        known = self.actions is None or (set(self.actions) <= set(ACTIONS) and len(self.actions) > 0)
        require(known, ", ".join(self.actions or ()), "actions", f"Give some of {', '.join(ACTIONS)}")

    def parts(self, problem: Market) -> list[list[int]]:
        """Return the queues by the node pools in which they hold or may have anything."""
        owed = problem.entitlements
        assert owed is not None
        there = np.zeros(problem.shape, dtype=bool)
        np.logical_or.at(there, owed.gangs.user, owed.gangs.allowed)
        for column, kind in enumerate([*owed.types, *(good.flavor for good in owed.goods)]):
            if kind in owed.types:
                there[:, owed.types.index(kind)] |= np.asarray(owed.held[:, column] > 0, dtype=bool)
        return linked(owed, [np.flatnonzero(own).tolist() for own in there.T])

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that queues hold after the cycles, and why."""
        owed = problem.entitlements
        assert owed is not None  # ENTITLED: no market without comes here
        number = problem.arithmetic
        gangs, n, k = owed.gangs, len(owed.users), len(owed.types)
        order: dict[str, None] = {}
        stopped: dict[str, str] = {}
        waits: dict[str, str] = {}
        fair = np.zeros((len(owed.nodes), k), dtype=object)
        share: dict[str, Number] = dict.fromkeys(owed.nodes, number(0))
        last = k - 1 - np.argmax(gangs.allowed[:, ::-1], axis=1)  # the type after which a gang waits for good
        said = owed.settings.get("", {}).get("kai.actions", ", ".join(ACTIONS))
        actions = self.actions or replace(self, actions=tuple(filter(None, said.split(", "))) or None).actions or ()
        devices = [_devices(owed, gangs, j) for j in range(k)]
        for cycle in range(self.cycles):
            before, now = gangs, owed.running(gangs) if cycle else owed
            waits.clear()
            for j in range(k):
                pool = NodePool(problem, now, gangs, j, self.k, devices[j])
                play = Cycle(pool, self.saturation)
                play.run(actions)
                on = gangs.on.copy()
                on[list(play.started)] = j
                on[list(play.stopped)] = -1
                gangs = gangs.placed(on)
                order.update(dict.fromkeys(gangs.names[gang] for gang in play.order))
                for gang in play.started:
                    waits.pop(gangs.names[gang], None)
                gone = {gangs.names[gang]: why for gang, why in play.stopped.items()}
                stopped.update(gone)
                waits.update(gone)
                waits.update({job.name: play.why(job) for job in play.waiting if last[job.number] == j})
                fair[:, j] = [row[0] for row in pool.shares]
                for node, name in enumerate(owed.nodes):
                    if pool.shares[node][0] or pool.allocated[node][0]:
                        part = saturation(pool.allocated[node][0], pool.shares[node][0])
                        share[name] = max(share[name], part if part == INFINITY else number(part))
            if (gangs.on == before.on).all():
                break
        held = owed.held[:, :k] - owed.gangs.held(n) + gangs.held(n)
        ran = {
            name for name, was, now in zip(gangs.names, owed.gangs.on, gangs.on, strict=True) if was >= 0 and now < 0
        }
        unit = "GPUs held over the fair share, in the pool where that is most"
        return held, DecisionReason(
            gangs,
            unit,
            share,
            cast(fair, number),
            tuple(order),
            waits,
            {name: why for name, why in stopped.items() if name in ran},
        )


def _devices(owed: Entitlements, gangs: Gangs, gpu_type: int) -> Devices | None:
    """Return the GPUs of a pool by node; None where the market does not say which nodes it has."""
    nodes = owed.settings.get("", {}).get(f"kai.nodes.{owed.types[gpu_type]}")
    if nodes is None:
        return None
    pods = {gang: each["kai.pods"] for gang, each in enumerate(gangs.settings) if "kai.pods" in each}
    return Devices(nodes, pods, np.flatnonzero(gangs.on == gpu_type).tolist())

"""Fair Tree over time: each round the users who used least of late, by their accounts, start their jobs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.common.schedulers import Room, Tally, non_preemptive, ordered
from fairopt.models.slurm.tree import ROOT, AssociationTree, Ties, fair_tree, to_bits
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, placed

#: Past use is kept to as many bits as a long double has on x86; exact decay would double them every round.
BITS = 64


@dataclass(frozen=True)
class SlurmFairTreeRounds(Policy):
    """Jobs start by Fair Tree over decayed usage, are never stopped, and one that finds no room blocks those behind.

    * A tenant is an association, and its weight its shares. In a tenant's name "/" leads from an account to what is in
      it ("physics/hep/ada"); an account's shares are those of all that it holds.
    * A job is charged GPUs times the length of each round that it runs in, once that begins.
    * ``half_life``: in the trace's unit of time, PriorityDecayHalfLife, 7 days in seconds; None for no decay.
      Usage is multiplied by 2 ** -(time / half_life), and rounded to 64 bits.
    * ``backfill``: who finds no room is passed over; without time limits, so that it may wait for long.
    * ``ties``: as of `SlurmFairTree`. ``placement``: where the chosen go. Of one user, first come first served.

    Source: Slurm 284c3b95, src/plugins/priority/multifactor/fair_tree.c, fair_tree_decay; priority_multifactor.c,
    _apply_decay and _apply_new_usage; src/slurmctld/job_scheduler.c.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(SlurmFairTreeRounds(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of slurm-fair-tree-rounds, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "slurm-fair-tree-rounds"
    source = "Slurm, Fair Tree Fairshare Algorithm (Cox and Morrison, 2014)"
    traits = frozenset({Trait.ONE_TYPE, Trait.RUNS_TO_COMPLETION})
    #: The GPU-time charged to each tenant, decayed.
    states = (Tally[Number],)
    half_life: object = 604_800
    backfill: bool = False
    ties: Ties = Ties.CODE
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        positive = self.half_life is None or exact(self.half_life, f"{self.name}, half_life") > 0
        require(positive, self.half_life, f"{self.name}, half_life", "Give a positive time, or None for no decay")
        require(isinstance(self.backfill, bool), self.backfill, f"{self.name}, backfill", "Give true or false")
        told = ", ".join(f"Ties.{each.name}" for each in Ties)
        require(isinstance(self.ties, Ties), self.ties, f"{self.name}, ties", f"Give {told}")

    def decide(self, problem: Queue, state: Tally[Number], solve: Session) -> Schedule:
        """Decay, rank and start; see `Policy.decide`."""
        queue, jobs = non_preemptive(problem), problem.jobs
        usage = self._decayed(problem, state)
        rank = np.array(self._ranks(problem, usage), dtype=np.int64)
        waiting = [row for row in queue.able if row not in queue.leased]
        room = Room(queue)
        for row in ordered(waiting, -rank[jobs.tenant], jobs.arrival).tolist():
            if not room.start(row) and not self.backfill:
                break
        placements = placed(queue, room.requests, self.placement)
        for row in placements:
            tenant = jobs.tenant_of(row)
            usage[tenant] = usage.get(tenant, problem.number(0)) + int(jobs.gpus[row]) * problem.length
        return Schedule(self.name, problem, placements, state=Tally(usage, problem.now))

    def _decayed(self, queue: Queue, state: Tally[Number]) -> dict[str, Number]:
        passed = Fraction(queue.now) - Fraction(state.until)
        if self.half_life is None or not passed:
            return dict(state.of)
        with localcontext() as context:
            context.prec = 30
            lives = passed / exact(self.half_life, "half_life")
            left = Fraction(Decimal(2) ** -(Decimal(lives.numerator) / Decimal(lives.denominator)))
        kept = {tenant: Fraction(used) * left for tenant, used in state.of.items() if used}
        return {tenant: queue.number(to_bits(used, BITS)) for tenant, used in kept.items()}

    def _ranks(self, queue: Queue, usage: Mapping[str, Number]) -> tuple[int, ...]:
        """Return the rank of each tenant, the highest first in line."""
        tenants = queue.jobs.tenants
        place: dict[str, int] = {}
        above: list[int] = [ROOT] * len(tenants)
        share = [Fraction(each) for each in queue.jobs.tenant_weight.tolist()]
        used = [Fraction(usage.get(tenant, 0)) for tenant in tenants]
        for user, tenant in enumerate(tenants):
            parts = tenant.split("/")[:-1]
            at = user
            for depth in range(len(parts), 0, -1):
                name = "/".join(parts[:depth])
                if name not in place:
                    place[name] = len(above)
                    above.append(ROOT)
                    share.append(Fraction(0))
                    used.append(Fraction(0))
                above[at], at = place[name], place[name]
                share[at] += share[user]
                used[at] += used[user]
        return tuple(fair_tree(AssociationTree.of(above, share, used, users=len(tenants)), self.ties).rank)

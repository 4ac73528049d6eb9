"""Lies that are told in every round: a tenant that states other throughputs, while its jobs run at the true ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.models import (
    CooperativeOEF,
    FirstInFirstOut,
    GandivaFair,
    GavelRounds,
    NonCooperativeOEF,
    OEFRounds,
    Themis,
)
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed
from fairopt.simulation import run

#: Jobs of each tenant, tenants, and what the liar multiplies its throughput on the fast type by.
EACH, TENANTS, FACTORS = 5, 4, (0.1, 0.3, 0.6, 0.9, 1.1, 1.6, 3.0, 10.0)
LENGTH = 60


@dataclass(frozen=True)
class Lying(Policy):
    """A policy that is told, in every round, that the jobs of the first tenant are ``factor`` (k,) times as fast."""

    policy: Policy
    factor: tuple[float, ...]

    problem = Queue
    name = "lying"
    source = "our own"

    @property
    def methods(self) -> Any:  # type: ignore[override]
        """The policy's own."""
        return self.policy.methods

    @property
    def has_program(self) -> bool:
        """Whether backends can solve the policy."""
        return self.policy.has_program

    def start(self, problem: Any) -> Any:
        """Return the policy's own state."""
        return self.policy.start(problem)

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Return what the policy decides on the queue that it is told."""
        speeds = problem.jobs.throughput.copy()
        speeds[problem.jobs.tenant == 0] *= np.array(self.factor)
        told = replace(problem, jobs=replace(problem.jobs, throughput=speeds))
        decided = self.policy.decide(told, state, solve)
        assert isinstance(decided, Schedule)
        return replace(decided, queue=problem)


def small(seed: int) -> tuple[Trace, Cluster]:
    """Return jobs of four tenants, all there at once, on four slow and four fast GPUs."""
    random = np.random.default_rng(seed)
    count = EACH * TENANTS
    tenant = [f"t{number % TENANTS}" for number in range(count)]
    fast = np.where(np.arange(count) % TENANTS == 0, 2.0, random.choice([1.2, 2.0, 4.0], count))
    jobs = Jobs.of(
        types=["slow", "fast"],
        arrival=[0] * count,
        gpus=random.choice([1, 1, 2], count).tolist(),
        work=random.integers(600, 3600, count).tolist(),
        tenant=tenant,
        throughput=[[1, float(value)] for value in fast],
    )
    return Trace(jobs).as_(float), Cluster.uniform({"slow": (2, 2), "fast": (2, 2)})


def completion(policy: Policy, trace: Trace, cluster: Cluster) -> float:
    """Return the mean time at which the first tenant's jobs are done."""
    done = {}
    for record in run(policy, trace, cluster, length=LENGTH):
        for job in record.ran:
            if job.completed:
                done[job.job] = float(job.end)
    mine = [name for name, tenant in zip(trace.jobs.names, trace.jobs.tenant, strict=True) if tenant == 0]
    return float(np.mean([done[name] for name in mine]))


def repeated(seeds: int = 4) -> Finding:
    """What a tenant gains that lies in every round."""
    lines, alike = [], []
    policies = (
        ("oef-rounds by cooperative OEF", OEFRounds(CooperativeOEF())),
        ("oef-rounds by non-cooperative OEF", OEFRounds(NonCooperativeOEF())),
        ("gavel-rounds", GavelRounds()),
        ("gandiva-fair", GandivaFair()),
        ("themis", Themis()),
        ("fifo", FirstInFirstOut()),
    )
    for name, policy in policies:
        best: list[float] = []
        one: dict[float, list[float]] = {factor: [] for factor in FACTORS}
        for seed in range(seeds):
            trace, cluster = small(seed)
            truth = completion(policy, trace, cluster)
            each = {factor: truth / completion(Lying(policy, (1.0, factor)), trace, cluster) for factor in FACTORS}
            best.append(max(1.0, *each.values()))
            for factor, ratio in each.items():
                one[factor].append(ratio)
        same = max(FACTORS, key=lambda factor: float(np.mean(one[factor])))
        lines.append(f"{name} {float(np.mean(best)):.3f}")
        alike.append(f"{name} {float(np.mean(one[same])):.3f} by {same:g} times")
    return Finding(
        Ruling.QUALIFIED,
        "Mean completion time of the liar's jobs at the truth over that after the best lie of each trace: "
        f"{listed(lines)}.\n"
        f"{TENANTS} tenants with {EACH} jobs each, all there at once, 4 slow and 4 fast GPUs, rounds of {LENGTH} s, "
        f"{seeds} traces. The first tenant states, in every round, its throughput on fast GPUs times one of "
        f"{', '.join(f'{factor:g}' for factor in FACTORS)}.\n"
        f"After the one lie that is best on average: {listed(alike)}.",
    )

"""fairopt's answers beside those of Gavel's own policies: ``python benchmarks/against_gavel_policies.py CHECKOUT``.

``CHECKOUT`` is a copy of github.com/stanford-futuredata/gavel (commit c4fa4009 was used). Its classes are called as its
scheduler calls them, on random jobs with gang sizes and priority weights; nothing in it is changed. They need cvxpy
with ECOS, and the water filling policies GLPK_MI too (pip install cvxopt). Each line is about one of its policies: the
largest relative difference of the throughputs where they are unique, else of the objective, worked out from both
allocations by the same function.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fairopt.backends import Highs, Session
from fairopt.models import (
    GavelIsolated,
    GavelProportional,
    HierarchicalWaterFilling,
    MaxMin,
    PartialAllocation,
    WaterFilling,
)
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import LeastMakespan, ThroughputByCost
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import Policy, decide
from fairopt.problem import Entitlements, Market
from fairopt.program import Array

TYPES = ("k80", "p100", "v100")
COST = {"k80": 0.8, "p100": 2.0, "v100": 3.1}
TIME = Normaliser.EQUAL_TIME


class Drawn(NamedTuple):
    """Jobs: throughput of the gang ``speed`` (n, k), ``gang`` sizes, ``weight``, steps ``left``, and the cluster."""

    speed: Array
    gang: Array
    weight: Array
    left: Array
    gpus: Array
    entity: list[int]
    fifo: list[bool]
    entity_weight: list[int]

    @property
    def jobs(self) -> range:
        """Gavel's job ids."""
        return range(len(self.gang))

    def gavel(self) -> tuple[dict[int, dict[str, float]], dict[int, int], dict[int, float], dict[str, int]]:
        """Return throughputs, scale factors, priority weights and the cluster as Gavel takes them."""
        speeds = {i: dict(zip(TYPES, map(float, self.speed[i]), strict=True)) for i in self.jobs}
        gangs, weights = dict(enumerate(self.gang.tolist())), dict(enumerate(self.weight.tolist()))
        return speeds, gangs, weights, dict(zip(TYPES, self.gpus.tolist(), strict=True))

    def market(self, weight: Array | None = None, entitlements: Entitlements | None = None) -> Market:
        """Return the market whose shares are GPUs: time fractions times the size of the gang."""
        speed, own = self.speed / self.gang[:, None], self.weight if weight is None else weight
        names = [f"j{i}" for i in self.jobs]
        more = {"demand": self.gang.tolist(), "users": names, "types": TYPES, "entitlements": entitlements}
        return Market.of(speed.tolist(), self.gpus.tolist(), weight=own.tolist(), **more)  # type: ignore[arg-type]

    def rates(self, shares: Array) -> Array:
        """Return the gangs' throughputs (n,) of shares in GPUs."""
        return np.asarray((self.speed / self.gang[:, None] * shares.astype(float)).sum(axis=1))

    def job_market(self) -> JobMarket:
        """Return the jobs as an objective takes them: none has waited."""
        market, nothing = self.market(np.ones(len(self.gang))).as_(float), np.zeros(len(self.gang))
        return JobMarket(tuple(self.jobs), market, self.left, self.left, nothing)


def drawn(seed: int) -> Drawn:
    """Return 3 to 10 jobs of gangs of 1, 2 and 4, which run everywhere, in two or three entities."""
    random = Random(seed)
    n, entities = random.randint(3, 10), random.randint(2, 3)
    speed = np.array([sorted(random.uniform(0.2, 2) for _ in TYPES) for _ in range(n)])
    gang = np.array([random.choice((1, 1, 2, 4)) for _ in range(n)])
    weight = np.array([float(random.randint(1, 5)) for _ in range(n)])
    left = np.array([float(random.randint(10**3, 10**5)) for _ in range(n)])
    gpus = np.array([random.randint(4, 8) for _ in TYPES])
    entity = [i % entities for i in range(n)]
    fifo = [random.random() < 0.5 for _ in range(entities)]
    return Drawn(speed, gang, weight, left, gpus, entity, fifo, [random.randint(1, 5) for _ in range(entities)])


def apart(one: Array | float, other: Array | float) -> float:
    """Return the largest relative difference."""
    mine, theirs = np.atleast_1d(one), np.atleast_1d(other)
    return float((np.abs(mine - theirs) / np.maximum(np.abs(theirs), 1e-9)).max())


# -- one function for each of Gavel's policies: the difference on one instance, None where it has no answer to compare
def max_min(policies: Any, drew: Drawn) -> float:
    theirs = policies.max_min_fairness.MaxMinFairnessPolicyWithPerf(solver="ECOS").get_allocation(*drew.gavel())
    least = [(normalised(drew, each) / drew.weight).min() for each in (ours(MaxMin(TIME), drew), in_gpus(theirs, drew))]
    return apart(*least)


def water_filling(policies: Any, drew: Drawn) -> float:
    made = policies.max_min_fairness_water_filling.MaxMinFairnessWaterFillingPolicyWithPerf()
    theirs = in_gpus(made.get_allocation(*drew.gavel()), drew)
    return apart(normalised(drew, ours(WaterFilling(TIME), drew)), normalised(drew, theirs))


def hierarchical(policies: Any, drew: Drawn) -> float:
    entities = [f"entity{e}" for e in range(len(drew.fifo))]
    weight = np.where(np.array(drew.fifo)[drew.entity], 1.0, drew.weight)
    rules = {name: "fifo" if first else "fairness" for name, first in zip(entities, drew.fifo, strict=True)}
    made = policies.max_min_fairness_water_filling.MaxMinFairnessWaterFillingPolicyWithPerf(rules)
    weights = dict(zip(entities, drew.entity_weight, strict=True))
    jobs = {name: [i for i in drew.jobs if drew.entity[i] == e] for e, name in enumerate(entities)}
    speeds, gangs, _, cluster = drew.gavel()
    given = (speeds, gangs, dict(enumerate(weight.tolist())), cluster)
    theirs = in_gpus(made.get_allocation(*given, entity_weights=weights, entity_to_job_mapping=jobs), drew)
    group = {f"j{i}": entities[drew.entity[i]] for i in drew.jobs}
    names = [f"j{i}" for i in drew.jobs]
    owed = Entitlements.of(names, TYPES, group=group, groups=entities, borrow_weight=weights)
    policy = HierarchicalWaterFilling(TIME, [name for name, first in zip(entities, drew.fifo, strict=True) if first])
    found = ours(policy, drew, weight=weight, entitlements=owed)
    return apart(1 + normalised(drew, found), 1 + normalised(drew, theirs))  # in FIFO a ratio may be 0


def finish_time(policies: Any, drew: Drawn) -> float:
    made = policies.finish_time_fairness.FinishTimeFairnessPolicyWithPerf(solver="ECOS")
    speeds, gangs, weights, cluster = drew.gavel()
    left, waited = dict(enumerate(drew.left.tolist())), dict.fromkeys(drew.jobs, 0)
    theirs = in_gpus(made.get_allocation(speeds, gangs, weights, waited, left, cluster), drew)
    objective, jobs = FinishTimeFairness(normaliser=Normaliser.ISOLATED), drew.job_market()
    found = objective.shares(jobs, Session(Highs()))[1].values["share"]
    return apart(*(objective.largest(jobs, each, objective.isolated(jobs)) for each in (found, theirs)))


def makespan(policies: Any, drew: Drawn) -> float:
    made = policies.min_total_duration.MinTotalDurationPolicyWithPerf(solver="ECOS")
    speeds, gangs, _, cluster = drew.gavel()
    theirs = in_gpus(made.get_allocation(speeds, gangs, dict(enumerate(drew.left.tolist())), cluster), drew)
    found = LeastMakespan().shares(drew.job_market(), Session(Highs()))[1].values["share"]
    return apart(*((drew.left / drew.rates(each)).max() for each in (found, theirs)))


def cost(policies: Any, drew: Drawn) -> float:
    made = policies.max_sum_throughput.ThroughputNormalizedByCostSumWithPerfSLOs(solver="ECOS")
    speeds, gangs, _, cluster = drew.gavel()
    deadline = {i: 3 * drew.left[i] / drew.speed[i].max() for i in drew.jobs if i % 2}
    more = {"instance_costs": COST, "SLOs": deadline, "num_steps_remaining": dict(enumerate(drew.left.tolist()))}
    theirs = in_gpus(made.get_allocation(speeds, gangs, cluster, **more), drew)
    objective = ThroughputByCost(COST, {f"j{i}": float(each) for i, each in deadline.items()})
    found = objective.shares(drew.job_market(), Session(Highs()))[1].values["share"]
    worth = drew.speed / drew.gang[:, None] / np.array([COST[name] for name in TYPES])
    return apart(*((worth * each).sum() for each in (found, theirs)))


def isolated(policies: Any, drew: Drawn) -> float:
    speeds, gangs, _, cluster = drew.gavel()
    theirs = in_gpus(policies.isolated.IsolatedPolicy().get_allocation(speeds, gangs, cluster), drew)
    return apart(ours(GavelIsolated(), drew, weight=np.ones(len(drew.gang))), theirs)


def proportional(policies: Any, drew: Drawn) -> float | None:
    speeds, _, _, cluster = drew.gavel()
    theirs = in_gpus(policies.proportional.ProportionalPolicy().get_allocation(speeds, cluster), drew)
    if (theirs.sum(axis=0) > drew.gpus + 1e-9).any():
        return None  # it gives out more than there is
    return apart(ours(GavelProportional(), drew), theirs)


def strategy_proof(policies: Any, drew: Drawn) -> float:
    made = policies.max_min_fairness_strategy_proof.MaxMinFairnessStrategyProofPolicyWithPerf(solver="ECOS")
    theirs, _ = made.get_allocation(*drew.gavel())
    found = ours(PartialAllocation(), drew, weight=np.ones(len(drew.gang)))
    return apart(drew.rates(found), drew.rates(in_gpus(theirs, drew)))


Compared = Callable[[Any, Drawn], float | None]
PAIRS: tuple[tuple[str, str, Compared], ...] = (
    ("MaxMinFairness_Perf", "max-min, equal-time", max_min),
    ("MaxMinFairnessWaterFilling_Perf", "water-filling, equal-time", water_filling),
    ("the same with entities", "hierarchical-water-filling", hierarchical),
    ("FinishTimeFairness_Perf", "FinishTimeFairness, isolated", finish_time),
    ("MinTotalDuration_Perf", "LeastMakespan", makespan),
    ("ThroughputNormalizedByCostSum_PerfSLOs", "ThroughputByCost", cost),
    ("Isolated", "gavel-isolated", isolated),
    ("Proportional", "gavel-proportional", proportional),
    ("MaxMinFairnessStrategyProof", "partial-allocation", strategy_proof),
)


def in_gpus(found: Mapping[int, Mapping[str, float]], drew: Drawn) -> Array:
    """Return Gavel's time fractions as GPUs (n, k)."""
    return np.array([[found[i][name] for name in TYPES] for i in drew.jobs]) * drew.gang[:, None]


def normalised(drew: Drawn, shares: Array) -> Array:
    """Return throughputs (n,) over those of X_equal, times the gangs, as Gavel's objective has them."""
    return np.asarray(drew.rates(shares) * drew.gang / (drew.speed * drew.gpus / drew.gpus.sum()).sum(axis=1))


def ours(policy: Policy, drew: Drawn, **more: Any) -> Array:
    """Return our shares (n, k)."""
    return np.asarray(decide(policy, drew.market(**more).as_(float)).shares)


def load(checkout: Path) -> Any:
    """Return Gavel's package of policies."""
    sys.path[:0] = [str(checkout / "scheduler"), str(checkout / "scheduler" / "policies")]
    import policies  # type: ignore[import-not-found]

    for name in (
        "finish_time_fairness",
        "isolated",
        "max_min_fairness",
        "max_min_fairness_strategy_proof",
        "max_min_fairness_water_filling",
        "max_sum_throughput",
        "min_total_duration",
        "proportional",
    ):
        setattr(policies, name, import_module(f"policies.{name}"))
    return policies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--instances", type=int, default=100)
    given = parser.parse_args()
    policies = load(given.checkout)
    print("| Gavel's policy | ours | instances | median difference | largest | instances above 0.1% |")
    print("|---|---|---|---|---|---|", flush=True)
    for theirs, own, compared in PAIRS:
        found = []
        for seed in range(given.instances):
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append((compared(policies, drawn(seed)), seed))
        known = sorted((each, seed) for each, seed in found if each is not None)
        values, above = [each for each, _ in known], [seed for each, seed in known if each > 1e-3]
        named = f"{len(above)}{f' (seeds {above[-3:]})' if above else ''}"
        print(f"| {theirs} | {own} | {len(known)} | {np.median(values):.1e} | {values[-1]:.1e} | {named} |", flush=True)


if __name__ == "__main__":
    main()

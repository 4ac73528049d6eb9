"""Divisible tasks of several resources: who runs how many, and the properties of NSDI 2011 Sec. 3, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np

from fairopt.models.drf.drf import filled, rates
from fairopt.program import Array, fractions


@dataclass(frozen=True)
class Tasks:
    """Users with tasks of one kind each: ``demand`` (n, m), ``capacity`` (m,), ``weight`` (n,), in Fractions."""

    demand: Array
    capacity: Array
    weight: Array

    @classmethod
    def of(cls, demand: Any, capacity: Any, weight: Any = None) -> Tasks:
        """Return them in Fractions; all weights 1 by default."""
        given = demand, capacity, [1] * len(demand) if weight is None else weight
        return cls(*(fractions(np.array(each, dtype=object)) for each in given))

    def runs(self, user: int, bundle: Array) -> Fraction:
        """Return how many tasks a user runs with a bundle (m,)."""
        number: Fraction = min(has / need for has, need in zip(bundle, self.demand[user], strict=True) if need > 0)
        return number

    def without(self, user: int) -> Tasks:
        """Return the others."""
        rest = [each for each in range(len(self.weight)) if each != user]
        return replace(self, demand=self.demand[rest], weight=self.weight[rest])

    def reporting(self, user: int, demand: Array) -> Tasks:
        """Return what the policy sees when a user reports another demand (m,)."""
        told = self.demand.copy()
        told[user] = demand
        return replace(self, demand=told)

    def __str__(self) -> str:
        demands = ", ".join(f"<{', '.join(map(str, row))}>" for row in self.demand)
        weights = "" if all(self.weight == 1) else f", weights {', '.join(map(str, self.weight))}"
        return f"demands {demands} of <{', '.join(map(str, self.capacity))}>{weights}"


#: A policy: the tasks (n,) that users run.
Rule = Callable[[Tasks], Array]


def drf(tasks: Tasks) -> Array:
    """Return the tasks under Dominant Resource Fairness."""
    return filled(tasks.demand, tasks.capacity, rates(tasks.demand, tasks.capacity, tasks.weight))


def asset(tasks: Tasks) -> Array:
    """Return the tasks under asset fairness: the sum of a user's shares of all resources grows alike for all.

    Source: NSDI 2011, Sec. 5.1.
    """
    return filled(tasks.demand, tasks.capacity, tasks.weight / (tasks.demand / tasks.capacity).sum(axis=1))


# -- properties: None where they hold, else who is wronged, in words ------------------------------------------------
def sharing_incentive(rule: Rule, tasks: Tasks) -> str | None:
    """Whether somebody runs fewer tasks than on its part, by weight, of every resource."""
    own = rule(tasks)
    for user, part in enumerate(tasks.weight / tasks.weight.sum()):
        alone = tasks.runs(user, tasks.capacity * part)
        if own[user] < alone:
            return f"user {user + 1} runs {own[user]} tasks, and {alone} on its part"
    return None


def envy_freeness(rule: Rule, tasks: Tasks) -> str | None:
    """Whether somebody would run more tasks with another's bundle, scaled to its own weight."""
    own, n = rule(tasks), len(tasks.weight)
    for user, other in product(range(n), repeat=2):
        bundle = tasks.demand[other] * own[other] * tasks.weight[user] / tasks.weight[other]
        if tasks.runs(user, bundle) > own[user]:
            return f"user {user + 1} would run {tasks.runs(user, bundle)} tasks with the bundle of user {other + 1}"
    return None


def pareto_efficiency(rule: Rule, tasks: Tasks) -> str | None:
    """Whether somebody could run more and nobody less: that is so where something is left of all that it needs."""
    left = tasks.capacity - rule(tasks) @ tasks.demand
    for user, demand in enumerate(tasks.demand):
        if (left[np.asarray(demand > 0)] > 0).all():
            return f"user {user + 1} could run {tasks.runs(user, left)} tasks more"
    return None


def strategy_proofness(rule: Rule, tasks: Tasks, reports: Callable[[Array], Iterator[Array]]) -> str | None:
    """Whether somebody runs more of its true tasks by one of the ``reports``."""
    own = rule(tasks)
    for user, demand in enumerate(tasks.demand):
        for report in reports(demand):
            gets = tasks.runs(user, rule(tasks.reporting(user, report))[user] * report)
            if gets > own[user]:
                return (
                    f"user {user + 1} runs {gets} tasks instead of {own[user]} by reporting "
                    f"<{', '.join(map(str, report))}>"
                )
    return None


def bottleneck_fairness(rule: Rule, tasks: Tasks) -> str | None:
    """Whether a resource that is everybody's dominant one is divided otherwise than by weight."""
    shares = tasks.demand / tasks.capacity
    for j in range(len(tasks.capacity)):
        if (shares[:, j] == shares.max(axis=1)).all():
            got = rule(tasks) * shares[:, j]
            if (got != tasks.weight / tasks.weight.sum()).any():
                return f"shares of resource {j + 1}, which is everybody's bottleneck: {', '.join(map(str, got))}"
    return None


def population_monotonicity(rule: Rule, tasks: Tasks) -> str | None:
    """Whether somebody runs fewer tasks after another has left."""
    own = rule(tasks)
    for gone in range(len(own)):
        for user, after in zip(np.delete(np.arange(len(own)), gone), rule(tasks.without(gone)), strict=True):
            if after < own[user]:
                return f"user {user + 1} falls from {own[user]} to {after} tasks when user {gone + 1} leaves"
    return None


def resource_monotonicity(rule: Rule, tasks: Tasks, factor: int) -> str | None:
    """Whether somebody runs fewer tasks when there is ``factor`` times as much of one resource."""
    own = rule(tasks)
    for j in range(len(tasks.capacity)):
        capacity = tasks.capacity.copy()
        capacity[j] *= factor
        for user, after in enumerate(rule(replace(tasks, capacity=capacity))):
            if after < own[user]:
                return f"user {user + 1} falls from {own[user]} to {after} tasks with {factor} times resource {j + 1}"
    return None


# -- problems -------------------------------------------------------------------------------------------------------
def in_order(users: int, resources: int, largest: int, *, least: int = 1) -> Iterator[Tasks]:
    """Yield all demands of whole numbers up to ``largest``, smallest first, of 1 of each resource, equal weights."""
    cells = list(product(range(least, largest + 1), repeat=users * resources))
    for cell in sorted(cells, key=lambda each: (max(each), sum(each))):
        demand = np.array(cell).reshape(users, resources)
        if demand.any(axis=1).all() and demand.any(axis=0).all():
            yield Tasks.of(demand, [1] * resources)


def at_random(count: int, seed: int, *, zeros: bool) -> Iterator[Tasks]:
    """Yield problems of 2 to 5 users and 1 to 4 resources with weights; with ``zeros``, of which some need not all."""
    dice = Random(seed)
    while count:
        n, m = dice.randint(2, 5), dice.randint(1, 4)
        demand = [
            [dice.choice([0, 1, 2]) * dice.randint(1, 9) if zeros else dice.randint(1, 9) for _ in range(m)]
            for _ in range(n)
        ]
        if all(map(any, demand)):
            count -= 1
            yield Tasks.of(demand, [dice.randint(5, 60) for _ in range(m)], [dice.randint(1, 4) for _ in range(n)])


def lies(demand: Array) -> Iterator[Array]:
    """Yield reports: each amount none, half, twice or as it is, and one more than it is."""
    for by in product((Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)), repeat=len(demand)):
        if any(by):
            told = demand * np.array(by, dtype=object)
            if told.any():
                yield told
    yield demand + 1

"""Hierarchical water filling: the weight of a group is divided among its members that can still rise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.models.gavel.water_filling import WaterFilling, WaterLevels
from fairopt.policy import Claim, Trait, session
from fairopt.problem import Market
from fairopt.problem.labels import nearest
from fairopt.program import Array


@dataclass(frozen=True)
class HierarchicalWaterFilling(WaterFilling):
    """Water filling in which groups rise by their weights, and divide what they get among their members.

    In each round the ratios of all users rise together, each as fast as its part of the weight, from what they have:
    max t such that ratio_i >= reached_i + part_i t. Who can rise no more keeps its ratio and has no part from then on.
    At each node the weight is divided among the members that can still rise: in proportion to their weights
    (fairness), or all of it to the first of them in the order of the market (FIFO). A user's weight is the market's, a
    group's is its ``borrow_weight``. Members of weight 0 rise when all their siblings are done, and then alike.

    * ``fifo``: names of the groups whose members go first in, first out.
    * ``normaliser``: what throughputs are compared with, for each unit of weight; Gavel has equal time.

    Without groups this is `WaterFilling` with the same normaliser. Groups may lie inside each other; the source has one
    level of entities above the jobs. Floors and caps are those of `WaterFilling`, and bottlenecks are found by duals as
    there; the source solves an integer program. Errors: `BadInput` for a name in ``fifo`` that no group has.

    Source: Gavel, OSDI 2020, Sec. 4.3; scheduler/policies/max_min_fairness_water_filling.py, `WaterFillingAlgorithm`:
    `_compute_priority_weights` (parts of the weight), `_run_get_allocation_iterations` (rounds); commit c4fa4009.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements
    >>> users, group = ["A", "B", "C"], {"A": "ml", "B": "ml", "C": "bio"}
    >>> owed = Entitlements.of(users, ["H100"], group=group, borrow_weight={"ml": 1, "bio": 2})
    >>> market = Market.of([[1], [1], [1]], [12], users=users, types=["H100"], entitlements=owed)
    >>> [str(row[0]) for row in allocate(HierarchicalWaterFilling(), market, exact=True).shares]
    ['2', '2', '8']
    """

    fifo: Sequence[str] = ()

    name = "hierarchical-water-filling"
    source = "Gavel, OSDI 2020, Sec. 4.3"
    methods = ()
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.EXACT, Trait.DETERMINED})
    claims = (Claim("pareto_efficiency", "at the end nobody can rise", assumes="no floors and caps"),)
    examples = ()

    def _fair(self, problem: Market) -> Array:
        mean = problem.weight.sum() / len(problem.users)
        return np.asarray(super()._fair(problem) * mean / problem.weight)

    def _rising(self, problem: Market, levels: WaterLevels) -> Array:
        """Return each user's part of the weight (n,): from the top down, among those that can still rise."""
        owed, n = problem.entitlements, len(problem.users)
        groups = () if owed is None else owed.groups
        if strange := set(self.fifo) - set(groups):
            raise BadInput(f"got {min(strange)!r}", place="fifo", remedy=nearest(min(strange), groups, "group"))
        if owed is None:
            open_weight = np.where(levels.fixed, 0, problem.weight)
            return np.asarray(open_weight / open_weight.sum())
        open_ = owed.total(~levels.fixed) > 0
        weight = np.concatenate([problem.weight, owed.borrow_weight[n:]])
        part = weight * 0
        for node in (None, *reversed(owed.upwards)):
            below = owed.tops if node is None else owed.children[node]
            able = [child for child in below if open_[child]]
            heavy = [child for child in able if weight[child] > 0]
            if node is not None and owed.nodes[node] in self.fifo:
                able, heavy = able[:1], []
            whole = weight[0] / weight[0] if node is None else part[node]
            total = sum(weight[child] for child in heavy)
            for child in heavy or able:
                part[child] = whole * weight[child] / total if heavy else whole / len(able)
        return part[:n]

    def bundle(self, user: int, problem: Market, before: Any, solve: Session) -> Array:
        """Return what ``user`` gets (k,): without groups by the method of `WaterFilling`, which needs few programs."""
        if problem.entitlements is not None or solve.number is not float:
            return super().bundle(user, problem, before, solve)
        same = WaterFilling(self.normaliser)
        return same.bundle(user, problem, before, session(same))

    def _rates(self, market: Market, levels: WaterLevels) -> Array:
        before = [
            replace(levels, fixed_in=levels.fixed_in * (levels.fixed_in < at + 1)) for at in range(len(levels.pushes))
        ]
        return np.array([self._rising(market, each) for each in before])

    def told(self, market: Market) -> str:
        """Return the name for certificates, whose verifier takes the parts of the weight as they are told."""
        return super().told(market).replace(self.name, f"{self.name} at rates that are told", 1)

    def _raised(self, levels: WaterLevels, rising: Array, reached: Any, stuck: Array) -> Array:
        """Return the ratios (n,) after a round, of those too that can still rise."""
        return np.asarray(levels.level + rising * reached)

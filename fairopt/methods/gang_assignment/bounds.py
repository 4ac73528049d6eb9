"""The Lagrangian dual of the gang assignment, and the bounds that it proves.

The dual has one variable w_i a type, which pays w_i for each GPU in use; a job takes the type where cost - w_i * gang
is least, or waits at 0. GPUs that may stay idle are one more group of gangs of one GPU that cost nothing, so that every
type is to be filled exactly: L(w) = sum_i w_i Y_i + sum_g m_g min(0, min_i c_gi - w_i d_g). In the multipliers of the
program, q = max(0, max w) is the reward of Eq. (7) and p_i = q - w_i >= 0 the price of Eq. (1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.methods.gang_assignment.groups import Groups
from fairopt.methods.gang_assignment.problem import GangAssignment, Multipliers
from fairopt.program import ROUNDING, Array

#: About so many groups are looked at where a sample of them will do.
SAMPLE = 6000
#: A limit on regrets that only a type that is not allowed exceeds.
EVERYTHING = float(np.finfo(float).max)
#: The sums below have a handful of operations for each term: what they can be off by, as a part of the terms' sizes.
SUMMED = 8 * ROUNDING


@dataclass(frozen=True, eq=False)
class Priced:
    """What the groups choose at some ``duals`` (k,): ``base`` (g,) the type, k for waiting; ``reduced`` (g,) its cost.

    That is the reduced cost of one job, w_i paid for each of its GPUs. ``value`` is L(w), ``demand`` (k,) the GPUs
    asked for of each type.
    """

    groups: Groups
    duals: Array
    base: Array
    reduced: Array
    demand: Array
    value: float

    @property
    def off(self) -> float:
        """About how many groups choose the wrong type: GPUs asked for too much or too little, in groups."""
        wrong = float(np.abs(self.groups.capacity - self.demand).sum())
        return wrong * len(self.groups.gang) / float(self.groups.weight.sum())

    @classmethod
    def at(cls, groups: Groups, duals: Array) -> Priced:
        """Price every group at ``duals``; shape (k,), cost a GPU."""
        types, jobs = groups.cost.shape
        base, reduced = np.empty(jobs, dtype=np.int8), np.empty(jobs)
        for block in groups.blocks():
            size = groups.size[block]
            best = np.zeros(len(size)) if groups.waiting else np.full(len(size), np.inf)
            chosen = np.full(len(size), types, dtype=np.int8)
            for i in range(types):
                own = groups.cost[i, block] - duals[i] * size
                chosen[own < best] = i
                np.minimum(best, own, out=best)
            base[block], reduced[block] = chosen, best
        demand = np.bincount(base, weights=groups.weight, minlength=types + 1)[:types]
        value = float(duals @ groups.capacity + reduced @ groups.count)
        return cls(groups, duals, base, reduced, demand, value)

    def near(self, limit: float) -> tuple[Array, Array, Array]:
        """Return the deviations that cost at most ``limit``: group, type (k: waiting) and regret, one entry each."""
        types = len(self.duals)
        found: list[tuple[Array, Array, Array]] = []
        for block in self.groups.blocks():
            size, base, reduced = self.groups.size[block], self.base[block], self.reduced[block]
            for i in range(types + self.groups.waiting):
                regret = (self.groups.cost[i, block] - self.duals[i] * size if i < types else 0.0) - reduced
                at = np.flatnonzero((regret <= limit) & (base != i))
                if len(at):
                    found.append((at + block.start, np.full(len(at), i), regret[at]))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        group, to, regret = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return group, to, regret

    def limit_for(self, columns: int) -> float:
        """Return a limit within which lie about so many deviations, judged from a sample of the groups."""
        types, jobs = self.groups.cost.shape
        step = max(1, jobs // (4 * SAMPLE))
        size, base = self.groups.size[::step], self.base[::step]
        regret = np.zeros((types + 1, len(size)))
        regret[:types] = self.groups.cost[:, ::step] - self.duals[:, None] * size
        regret -= self.reduced[::step]
        regret[base, np.arange(len(size))] = np.inf
        every = regret[: types + self.groups.waiting].ravel()
        wanted = columns // step + 1
        return min(float(np.partition(every, wanted)[wanted]), EVERYTHING) if wanted < len(every) else EVERYTHING


def size(priced: Priced) -> float:
    """Return the sum of the sizes of the dual's terms, in the unit of cost: what tolerances refer to."""
    return float(np.abs(priced.duals) @ priced.groups.capacity + np.abs(priced.reduced) @ priced.groups.count)


def safe_value(priced: Priced) -> float:
    """Return the dual's value less all that rounding can have added to it."""
    groups = priced.groups
    chosen = np.flatnonzero(priced.reduced)
    terms = (priced.reduced[chosen] * groups.count[chosen]).tolist() + (priced.duals * groups.capacity).tolist()
    asked = float(np.abs(priced.duals).max()) * float(groups.weight.sum())
    return math.fsum(terms) - SUMMED * (asked + size(priced))


def exact_bound(problem: GangAssignment, multipliers: Multipliers) -> Fraction:
    """Return the Lagrangian bound of some multipliers, every float taken as the rational number that it is.

    No assignment costs less, whatever the multipliers (negative ones count as 0). Capacities and the least are
    tightened first, in whole numbers. Every allowed cost is read as a Fraction, which takes a second for 100,000.

    Source: Lagrangian relaxation of FFT (2025), Eq. (1) and (7).
    """
    tight = problem.tightened(problem.classes())
    price = [max(Fraction(0), Fraction(float(each))) for each in multipliers.price]
    reward = max(Fraction(0), Fraction(float(multipliers.reward)))
    capacity = [int(each) for each in tight.capacity]
    total = reward * tight.least - sum((p * most for p, most in zip(price, capacity, strict=True)), Fraction(0))
    for job, gang in enumerate(tight.gangs.tolist()):
        own = np.flatnonzero(tight.allowed[job]).tolist()
        total += min([Fraction(0), *(Fraction(float(tight.cost[job, i])) + (price[i] - reward) * gang for i in own)])
    return total

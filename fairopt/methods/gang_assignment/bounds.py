"""The Lagrangian dual of the gang assignment: one wage a type, found without a solver.

Each type i pays its wage w_i for a GPU; a job takes the type where cost - wage * gang is least, or waits at 0. GPUs
that may stay idle are one more group of gangs of one GPU that cost nothing, so that every type is to be filled exactly
and the dual is over wages alone: L(w) = sum_i w_i Y_i + sum_g m_g min(0, min_i c_gi - w_i d_g). In the multipliers of
the program, q = max(0, max w) is the reward of Eq. (7) and p_i = q - w_i >= 0 the price of Eq. (1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.program import Array

#: Groups priced at a time: a block and what is made of it stay in the cache.
BLOCK = 1 << 14
#: The smoothed dual looks at no more groups than this; more are sampled.
SAMPLE = 6000
#: The soft dual: each temperature is this part of the last, with so many Newton steps at most, so many narrowings.
COOLING, STEPS, NARROWINGS = 4.0, 6, 6
#: Narrowing looks at no more deviations than this, and ends where fewer jobs than that are at the wrong type.
MOST_UNDECIDED, CLOSE = 16 * SAMPLE, 30
#: A limit on regrets that only a type that is not allowed exceeds.
EVERYTHING = float(np.finfo(float).max)


@dataclass(frozen=True, eq=False)
class Groups:
    """Like jobs together, and last, where some GPUs may idle, a group of gangs of one that stand for them.

    Shapes: ``cost`` (k, g), infinite where the type is not allowed; ``gang`` (GPUs) and ``count`` (jobs) (g,);
    ``capacity`` (k,) GPUs. ``waiting``: whether a group may wait (False: every job and idle GPU must be placed).
    """

    cost: Array
    gang: Array
    count: Array
    capacity: Array
    waiting: bool

    @cached_property
    def weight(self) -> Array:
        """The GPUs that a whole group asks for."""
        return (self.gang * self.count).astype(float)

    @cached_property
    def size(self) -> Array:
        """The gangs as floats."""
        return self.gang.astype(float)

    def blocks(self) -> list[slice]:
        """Return the groups in blocks."""
        return [slice(first, first + BLOCK) for first in range(0, len(self.gang), BLOCK)]


@dataclass(frozen=True, eq=False)
class Priced:
    """What the groups choose at some wages: ``base`` (g,) the type, k for waiting; ``reduced`` (g,) its reduced cost.

    ``value`` is L(w), ``demand`` (k,) the GPUs asked for of each type.
    """

    groups: Groups
    wages: Array
    base: Array
    reduced: Array
    demand: Array
    value: float

    @property
    def off(self) -> float:
        """About how many groups are asked for too much or too little."""
        wrong = float(np.abs(self.groups.capacity - self.demand).sum())
        return wrong * len(self.groups.gang) / float(self.groups.weight.sum())

    @classmethod
    def at(cls, groups: Groups, wages: Array) -> Priced:
        """Price every group at ``wages``; shape (k,), cost a GPU."""
        types, jobs = groups.cost.shape
        base, reduced = np.empty(jobs, dtype=np.int8), np.empty(jobs)
        for block in groups.blocks():
            size = groups.size[block]
            best = np.zeros(len(size)) if groups.waiting else np.full(len(size), np.inf)
            chosen = np.full(len(size), types, dtype=np.int8)
            for i in range(types):
                own = groups.cost[i, block] - wages[i] * size
                chosen[own < best] = i
                np.minimum(best, own, out=best)
            base[block], reduced[block] = chosen, best
        demand = np.bincount(base, weights=groups.weight, minlength=types + 1)[:types]
        value = float(wages @ groups.capacity + reduced @ groups.count)
        return cls(groups, wages, base, reduced, demand, value)

    def near(self, limit: float) -> tuple[Array, Array, Array]:
        """Return the deviations that cost at most ``limit``: group, type (k: waiting) and regret, one entry each."""
        types = len(self.wages)
        found: list[tuple[Array, Array, Array]] = []
        for block in self.groups.blocks():
            size, base, reduced = self.groups.size[block], self.base[block], self.reduced[block]
            for i in range(types + self.groups.waiting):
                regret = (self.groups.cost[i, block] - self.wages[i] * size if i < types else 0.0) - reduced
                at = np.flatnonzero((regret <= limit) & (base != i))
                if len(at):
                    found.append((at + block.start, np.full(len(at), i), regret[at]))
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        group, kind, regret = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return group, kind, regret

    def limit_for(self, columns: int) -> float:
        """Return a limit within which lie about so many deviations, judged from a sample of the groups."""
        types, jobs = self.groups.cost.shape
        step = max(1, jobs // (4 * SAMPLE))
        size, base = self.groups.size[::step], self.base[::step]
        regret = np.zeros((types + 1, len(size)))
        regret[:types] = self.groups.cost[:, ::step] - self.wages[:, None] * size
        regret -= self.reduced[::step]
        regret[base, np.arange(len(size))] = np.inf
        every = regret[: types + self.groups.waiting].ravel()
        wanted = columns // step + 1
        return min(float(np.partition(every, wanted)[wanted]), EVERYTHING) if wanted < len(every) else EVERYTHING


def smooth_wages(groups: Groups) -> Array:
    """Return wages near the dual's maximum: Newton on the dual with soft minima, softer to harder; shape (k,).

    Each GPU's job spreads over types as in a logit model of temperature t; wages at which demand meets capacity
    maximise a concave function of k variables. Many groups are sampled first and then narrowed to those undecided.
    """
    jobs = len(groups.gang)
    step = max(1, jobs // SAMPLE)
    some = np.unique(np.append(np.arange(0, jobs, step), jobs - 1))  # the last group may stand for idle GPUs
    weight = groups.weight[some]
    if step > 1:
        weight[:-1] *= (groups.weight.sum() - weight[-1]) / weight[:-1].sum()
    unit = groups.cost[:, some] / groups.size[some]
    wages, scale = _first_guess(unit, weight, float(groups.capacity.sum()), groups.waiting)
    wages = _newton(unit, weight, groups.capacity.astype(float), wages, groups.waiting, scale / COOLING ** np.arange(5))
    if step == 1:
        return wages
    priced, columns = Priced.at(groups, wages), SAMPLE
    for _ in range(NARROWINGS):
        # those that are looked at must be able to take up what is asked too much or too little
        columns = min(max(columns, int(8 * priced.off)), MOST_UNDECIDED)
        limit = priced.limit_for(columns)
        undecided = np.unique(priced.near(limit)[0])
        if limit == EVERYTHING or not len(undecided):
            break
        demand = np.bincount(
            priced.base[undecided], weights=groups.weight[undecided], minlength=len(groups.capacity) + 1
        )[:-1]
        target = groups.capacity - (priced.demand - demand)
        unit = groups.cost[:, undecided] / groups.size[undecided]
        heat = limit / float(np.median(groups.size[undecided])) / COOLING ** np.arange(1, 4)
        wages = _newton(unit, groups.weight[undecided], target, priced.wages, groups.waiting, heat)
        better = Priced.at(groups, wages)
        if better.value > priced.value:
            priced, columns = better, SAMPLE
            if better.off < CLOSE:
                break
        elif columns == MOST_UNDECIDED:
            break
        else:
            columns *= 4
    return priced.wages


def _first_guess(unit: Array, weight: Array, wanted: float, waiting: bool) -> tuple[Array, float]:
    """Return one wage for all types at which about ``wanted`` GPUs are asked for, and how far costs lie apart there."""
    types = len(unit)
    best = unit.min(axis=0)
    order = np.argsort(best)
    asked = np.cumsum(weight[order])
    low, middle, high = best[order][np.minimum(np.searchsorted(asked, wanted * np.array([0.5, 1, 1.5])), len(best) - 1)]
    scale = float(high - low) / 2
    if not waiting or scale <= 0:
        finite = unit[np.isfinite(unit)]
        scale = float(np.percentile(finite, 75) - np.percentile(finite, 25)) or float(np.abs(finite).mean()) or 1.0
    return np.full(types, middle if waiting else 0.0), scale


def _newton(unit: Array, weight: Array, target: Array, wages: Array, waiting: bool, heats: Array) -> Array:
    """Return the wages that maximise the soft dual, temperature by temperature; the last one is kept if one fails.

    Shapes: ``unit`` (k, s) cost a GPU, ``weight`` (s,) GPUs, ``target`` and ``wages`` (k,).
    """
    enough = 1e-3 * float(np.abs(target).sum()) + 0.5
    for heat in heats.tolist():
        value, spread, demand = _soft(unit, weight, target, wages, waiting, heat)
        for _ in range(STEPS):
            slope = target - demand
            if np.abs(slope).sum() < enough:
                break
            bend = (np.diag(demand) - (spread * weight) @ spread.T) / heat
            ridge = (1e-6 * float(np.trace(bend)) + 1e-9 * float(weight.sum()) / heat) / len(wages)
            step = np.linalg.solve(bend + ridge * np.eye(len(wages)), slope)
            step *= min(1.0, 8 * heat / max(float(np.abs(step).max()), 1e-300))
            length = 1.0
            while length > 1e-3:
                trial = _soft(unit, weight, target, wages + length * step, waiting, heat)
                if trial[0] >= value + 1e-4 * length * float(slope @ step):
                    break
                length /= 4
            else:
                break
            wages = wages + length * step
            value, spread, demand = trial
    return wages


def _soft(
    unit: Array, weight: Array, target: Array, wages: Array, waiting: bool, heat: float
) -> tuple[float, Array, Array]:
    """Return the soft dual's value, each job's spread over types (k, s), and the demand (k,)."""
    gain = (wages[:, None] - unit) / heat
    top = gain.max(axis=0)
    if waiting:
        np.maximum(top, 0.0, out=top)
    gain -= top
    spread = np.exp(gain, out=gain)
    total = spread.sum(axis=0)
    if waiting:
        total += np.exp(-top)
    spread /= total
    return float(wages @ target - heat * (weight @ (top + np.log(total)))), spread, spread @ weight

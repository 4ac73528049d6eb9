"""Optimal duals of the gang assignment: near ones by a smoothed dual, exact ones by small linear programs."""

from __future__ import annotations

import math

import numpy as np

from fairopt.methods.gang_assignment.deviations import Deviations, solve_deviations
from fairopt.methods.gang_assignment.groups import EVERYTHING, SAMPLE, Groups, Priced, size
from fairopt.methods.gang_assignment.problem import Multipliers
from fairopt.methods.result import StageClock
from fairopt.program import Array

#: The soft dual: each temperature is this part of the last, with so many Newton steps at most, so many narrowings.
COOLING, STEPS, NARROWINGS = 4.0, 6, 6
#: Narrowing looks at no more deviations than this, and ends where fewer jobs than that are at the wrong type.
MOST_UNDECIDED, CLOSE = 16 * SAMPLE, 30
#: Deviations in the first linear program, and how many times more are in the next where these are too few.
LINEAR, GROWTH = 600, 4
#: A start is tried where at most about so many groups are at the wrong type with it, with so many linear programs.
NEAR, TRIALS = 100, 2
#: Duals are optimal where no better ones are in sight by this part of the dual's terms.
NEGLIGIBLE = 1e-11


def best_duals(groups: Groups, start: Multipliers | None, clock: StageClock) -> tuple[Priced, int]:
    """Return the groups priced at optimal duals, near ``start`` if few are off there, and how many programs it took."""
    types = len(groups.capacity)
    if len(groups.gang) * (types + 1) <= LINEAR:  # one linear program has all deviations, from any duals
        return exact_duals(groups, Priced.at(groups, np.zeros(types)), clock)[:2]
    programs = 0
    if start is not None:
        trial = Priced.at(groups, start.reward - start.price)
        if trial.off <= NEAR and math.isfinite(trial.value):
            priced, programs, exact = exact_duals(groups, trial, clock, most=TRIALS)
            if exact:
                return priced, programs
    duals = smooth_duals(groups)
    priced, more, _ = exact_duals(groups, Priced.at(groups, duals), clock)
    return priced, programs + more


def exact_duals(groups: Groups, priced: Priced, clock: StageClock, most: int = 99) -> tuple[Priced, int, bool]:
    """Return the groups priced at better duals, how many linear programs that took, and whether they are optimal.

    Each knows the deviations near the duals only; where these are worse for groups left out, the next one knows more.
    """
    programs, done = 0, False
    columns = max(LINEAR, int(4 * priced.off))
    while not (clock.over or done or programs == most):
        limit = priced.limit_for(columns)
        answer = solve_deviations(Deviations.within(priced, limit), integer=False, time_limit=clock.left)
        programs += 1
        if answer.duals is not None:
            better = Priced.at(groups, priced.duals + answer.duals)
            reached = priced.value + answer.loss
            done = better.value >= reached - NEGLIGIBLE * size(better)
            if better.value > priced.value:
                priced = better
        done = done or limit == EVERYTHING
        columns *= GROWTH
    return priced, programs, done


def smooth_duals(groups: Groups) -> Array:
    """Return near-optimal duals (k,), by Newton's method on the dual with soft minima, made harder step by step.

    Each job spreads over types as in a logit model of some temperature; duals at which demand meets capacity maximise a
    concave function of k variables. Where there are many groups, a sample comes first, and then those undecided.
    """
    jobs = len(groups.gang)
    step = max(1, jobs // SAMPLE)
    some = np.unique(np.append(np.arange(0, jobs, step), jobs - 1))  # the last group may stand for idle GPUs
    weight = groups.weight[some]
    if step > 1:
        weight[:-1] *= (groups.weight.sum() - weight[-1]) / weight[:-1].sum()
    unit = groups.cost[:, some] / groups.size[some]
    duals, scale = _first_guess(unit, weight, float(groups.capacity.sum()), groups.waiting)
    duals = _newton(unit, weight, groups.capacity.astype(float), duals, groups.waiting, scale / COOLING ** np.arange(5))
    if step == 1:
        return duals
    priced, columns = Priced.at(groups, duals), SAMPLE
    for _ in range(NARROWINGS):
        # those that are looked at must be able to make up for what is asked too much or too little
        columns = min(max(columns, int(8 * priced.off)), MOST_UNDECIDED)
        limit = priced.limit_for(columns)
        undecided = np.unique(priced.near(limit)[0])
        if limit == EVERYTHING or not len(undecided):
            break
        base, weight = priced.base[undecided], groups.weight[undecided]
        demand = np.bincount(base, weights=weight, minlength=len(groups.capacity) + 1)[:-1]
        target = groups.capacity - (priced.demand - demand)
        unit = groups.cost[:, undecided] / groups.size[undecided]
        heat = limit / float(np.median(groups.size[undecided])) / COOLING ** np.arange(1, 4)
        duals = _newton(unit, weight, target, priced.duals, groups.waiting, heat)
        better = Priced.at(groups, duals)
        if better.value > priced.value:
            priced, columns = better, SAMPLE
            if better.off < CLOSE:
                break
        elif columns == MOST_UNDECIDED:
            break
        else:
            columns *= 4
    return priced.duals


def _first_guess(unit: Array, weight: Array, wanted: float, waiting: bool) -> tuple[Array, float]:
    """Return one dual for all types at which about ``wanted`` GPUs are asked for, and how far apart costs are there."""
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


def _newton(unit: Array, weight: Array, target: Array, duals: Array, waiting: bool, heats: Array) -> Array:
    """Return duals (k,) of the largest soft dual; ``unit`` (k, s) cost a GPU, ``weight`` (s,) GPUs, ``target`` (k,)."""
    enough = 1e-3 * float(np.abs(target).sum()) + 0.5
    for heat in heats.tolist():
        value, spread, demand = _soft(unit, weight, target, duals, waiting, heat)
        for _ in range(STEPS):
            slope = target - demand
            if np.abs(slope).sum() < enough:
                break
            bend = (np.diag(demand) - (spread * weight) @ spread.T) / heat
            ridge = (1e-6 * float(np.trace(bend)) + 1e-9 * float(weight.sum()) / heat) / len(duals)
            step = np.linalg.solve(bend + ridge * np.eye(len(duals)), slope)
            step *= min(1.0, 8 * heat / max(float(np.abs(step).max()), 1e-300))
            length = 1.0
            while length > 1e-3:
                trial = _soft(unit, weight, target, duals + length * step, waiting, heat)
                if trial[0] >= value + 1e-4 * length * float(slope @ step):
                    break
                length /= 4
            else:
                break
            duals = duals + length * step
            value, spread, demand = trial
    return duals


def _soft(
    unit: Array, weight: Array, target: Array, duals: Array, waiting: bool, heat: float
) -> tuple[float, Array, Array]:
    """Return the soft dual's value, each job's spread over types (k, s), and the demand (k,)."""
    gain = (duals[:, None] - unit) / heat
    top = gain.max(axis=0)
    if waiting:
        np.maximum(top, 0.0, out=top)
    gain -= top
    spread = np.exp(gain, out=gain)
    total = spread.sum(axis=0)
    if waiting:
        total += np.exp(-top)
    spread /= total
    return float(duals @ target - heat * (weight @ (top + np.log(total)))), spread, spread @ weight

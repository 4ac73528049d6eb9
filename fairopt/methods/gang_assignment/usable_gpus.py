"""How many GPUs can be kept busy at once: FFT's K, exactly, for gangs that run on one type each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.backends.highs import Highs
from fairopt.backends.solution import Status
from fairopt.errors import BadInput, NotSolved
from fairopt.program import INFINITY, Array, Formulation

#: Masks of allowed types are packed into one integer together with the gang's number.
MOST_TYPES = 40


@dataclass(frozen=True, eq=False)
class GangClasses:
    """Jobs with the same ``gang`` (c,) GPUs and ``allowed`` (c, k) types are one class of ``count`` (c,) jobs."""

    gang: Array
    count: Array
    allowed: Array


def gang_classes(gangs: Array, allowed: Array, capacity: Array) -> GangClasses:
    """Return the classes of the jobs that fit some type; a type that is smaller than the gang is not allowed to it.

    Shapes: ``gangs`` (n,), ``allowed`` (n, k), ``capacity`` (k,), in GPUs. Errors: `BadInput` for over 40 types.
    """
    types = len(capacity)
    if types > MOST_TYPES:
        raise BadInput(f"got {types} types", place="capacity", remedy=f"Give at most {MOST_TYPES}")
    sizes, size = _distinct(gangs)
    mask = np.zeros(len(gangs), dtype=np.int64)
    for i in range(types):
        mask |= allowed[:, i].astype(np.int64) << i
    if types <= 12 and len(sizes) << types <= 1 << 16:
        counts = np.bincount((size << types) | mask, minlength=len(sizes) << types)
        keys = np.flatnonzero(counts)
        count = counts[keys]
    else:
        keys, count = np.unique((size << types) | mask, return_counts=True)
    gang = sizes[keys >> types]
    fits = (((keys & ((1 << types) - 1))[:, None] >> np.arange(types)) & 1).astype(bool) & (gang[:, None] <= capacity)
    some = fits.any(axis=1)
    return GangClasses(gang[some], count[some], fits[some])


def _distinct(gangs: Array) -> tuple[Array, Array]:
    """Return the distinct gang sizes and each job's place among them; small sizes are counted, not sorted."""
    if len(gangs) and gangs.max() < 1 << 16:
        present = np.zeros(int(gangs.max()) + 1, dtype=bool)
        present[gangs] = True
        return np.flatnonzero(present), (np.cumsum(present) - 1)[gangs]
    sizes, size = np.unique(gangs, return_inverse=True)
    return sizes, size


def largest_filling(gang: Array, count: Array, capacity: int) -> int:
    """Return the most GPUs, up to ``capacity``, that some of the gangs fill exactly: a subset sum, in bits."""
    if int(gang @ count) <= capacity:
        return int(gang @ count)
    within = (1 << (capacity + 1)) - 1
    reachable = 1
    for size, jobs in zip(gang.tolist(), count.tolist(), strict=True):
        left, step = min(jobs, capacity // size), 1
        while left > 0:  # 1, 2, 4, ... jobs at a time reach every number of them
            taken = min(step, left)
            reachable |= (reachable << (taken * size)) & within
            left, step = left - taken, step * 2
        if reachable >> capacity:
            return capacity
    return reachable.bit_length() - 1


def fillable(classes: GangClasses, capacity: Array) -> Array:
    """Return, for each type, the most of its GPUs that the gangs allowed there can fill; shape (k,)."""
    pairs = zip(classes.allowed.T, capacity.tolist(), strict=True)
    filled = [largest_filling(classes.gang[own], classes.count[own], most) for own, most in pairs]
    return np.array(filled, dtype=np.int64)


def usable_gpus(gangs: Array, allowed: Array, capacity: Array, *, time_limit: float | None = None) -> int:
    """Return the most GPUs that can be kept busy when each gang runs on one allowed type or waits: FFT's K(t).

    Shapes: ``gangs`` (n,) and ``capacity`` (k,) in GPUs, ``allowed`` (n, k). The answer is exact: a greedy filling that
    reaches the sum of what each type alone can fill, or all jobs, is the most; else a MILP over classes of like jobs
    decides. Errors: `NotSolved` where the MILP does not end within ``time_limit`` seconds.

    Source: FFT (2025), Sec. 4.2.4, K(t) of Eq. (7).
    """
    capacity = np.asarray(capacity, dtype=np.int64)
    classes = gang_classes(np.asarray(gangs), np.asarray(allowed, dtype=bool), capacity)
    return most_busy(classes, fillable(classes, capacity), time_limit)


def most_busy(classes: GangClasses, room: Array, time_limit: float | None, enough: float = INFINITY) -> int:
    """Return `usable_gpus` of classes that can fill ``room`` (k,), or less if that is ``enough``; errors as there."""
    most = min(int(room.sum()), int(classes.gang @ classes.count))
    greedy = max(greedy_filling(classes, room, freedom) for freedom in (False, True))
    return greedy if greedy >= min(most, enough) else _by_milp(classes, room, most, time_limit)


def greedy_filling(classes: GangClasses, capacity: Array, freedom_first: bool) -> int:
    """Return the GPUs that a greedy filling keeps busy: large gangs first, or those with few types first."""
    freedom = classes.allowed.sum(axis=1)
    order = np.lexsort((-classes.gang, freedom) if freedom_first else (freedom, -classes.gang))
    left = capacity.copy()
    for each in order.tolist():
        gang, jobs = int(classes.gang[each]), int(classes.count[each])
        own = np.flatnonzero(classes.allowed[each])
        for i in own[np.argsort(-left[own], kind="stable")].tolist():
            taken = min(jobs, int(left[i]) // gang)
            left[i] -= taken * gang
            jobs -= taken
            if not jobs:
                break
    return int(capacity.sum() - left.sum())


def _by_milp(classes: GangClasses, capacity: Array, most: int, time_limit: float | None) -> int:
    p = Formulation("usable GPUs")
    placed = np.argwhere(classes.allowed)
    gang, count = classes.gang[placed[:, 0]], classes.count[placed[:, 0]]
    most_there = np.minimum(count, capacity[placed[:, 1]] // gang)
    x = p.variable("jobs", (len(placed),), lower=0, upper=most_there, integer=True)
    p.maximize((gang * x).sum(), equation="sum_gi d_g x_gi")
    own = (placed[:, :1] == np.arange(len(classes.gang))).T.astype(np.int64)
    p.constrain("jobs_once", own @ x <= classes.count, equation="sum_i x_gi <= m_g")
    at = (placed[:, 1:] == np.arange(len(capacity))).T * gang
    p.constrain("capacity", at @ x <= capacity, equation="sum_g d_g x_gi <= Y_i")
    p.constrain("busy", (gang * x).sum() <= most, equation="no more than each type alone can fill")
    solution = Highs().solve(p.program(), gap=0.0, time_limit=time_limit)
    if solution.status is not Status.OPTIMAL or solution.bound is None:
        raise NotSolved(f"how many GPUs can be kept busy was not decided: {solution.raw_status}", solution)
    jobs = np.rint(solution.point).astype(np.int64)
    # the point is checked in whole numbers; that none is better rests on HiGHS's bound, to less than one GPU
    if (at @ jobs > capacity).any() or (own @ jobs > classes.count).any() or float(solution.bound) >= gang @ jobs + 1:
        raise NotSolved("how many GPUs can be kept busy was not decided: HiGHS's answer does not hold", solution)
    return int(gang @ jobs)

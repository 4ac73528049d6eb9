"""FFT's program of one round: which jobs run on which type of GPU, at least cost and with all usable GPUs busy.

How many GPUs can be kept busy at once, FFT's K, is counted exactly, for gangs that run on one type each.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from fairopt.backends.highs import Highs
from fairopt.backends.solution import Status
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment.cheapest import on_cheapest
from fairopt.methods.gang_assignment.groups import IDLE, Groups
from fairopt.numbers import integers_or_floats, whole_numbers
from fairopt.program import INFINITY, Array, Formulation, Program

#: GPUs are counted in floats too; up to here these are exact.
MOST_GPUS = 2**53


@dataclass(frozen=True, eq=False)
class GangAssignment:
    """Jobs that each ask for a gang of GPUs of one type, and the cost of each job on each type.

    Shapes: ``cost`` (n, k), any unit, finite where allowed; ``gangs`` (n,) and ``capacity`` (k,), GPUs; ``allowed``
    (n, k). ``least``: the GPUs that must be busy. Errors: `BadInput` names the place.

    Source: FFT (2025), Eq. (1), (6), (7).

    >>> free = np.ones((2, 2), dtype=bool)
    >>> problem = GangAssignment(np.array([[1.0, 3], [2, 2]]), np.array([1, 2]), np.array([2, 2]), 3, free)
    >>> problem.violations(np.array([0, 0]))
    ('type 0 has 2 GPUs, 3 are asked of it',)
    """

    cost: Array
    gangs: Array
    capacity: Array
    least: int
    allowed: Array

    def __post_init__(self) -> None:
        cost = np.asarray(self.cost)
        if cost.ndim != 2 or not cost.shape[1]:
            raise BadInput(f"shape {cost.shape}", place="cost", remedy="Give a row a job and a column a type")
        if not integers_or_floats(cost):
            raise BadInput(f"an array of {cost.dtype}", place="cost", remedy="Give floats or integers")
        cost = cost.astype(float, copy=False)
        allowed = np.asarray(self.allowed)
        if allowed.dtype != np.bool_ or allowed.shape != cost.shape:
            found = f"an array of {allowed.dtype} of shape {allowed.shape}"
            raise BadInput(found, place="allowed", remedy=f"Give booleans of shape {cost.shape}, that of cost")
        broken = ~np.isfinite(cost) & allowed
        if broken.any():
            job, gpu_type = np.argwhere(broken)[0].tolist()
            remedy = "Give a finite cost, or say in allowed that the job cannot run there"
            raise BadInput(f"got {cost[job, gpu_type]}", place=f"cost[{job}, {gpu_type}]", remedy=remedy)
        gangs = _whole(self.gangs, "gangs", len(cost), 1)
        capacity = _whole(self.capacity, "capacity", cost.shape[1], 0)
        least = _whole([self.least], "least", 1, 0)
        for name, value in (("cost", cost), ("allowed", allowed), ("gangs", gangs), ("capacity", capacity)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "least", int(least[0]))

    def classes(self) -> Groups:
        """Return the jobs that fit somewhere, by gang size and allowed types."""
        return Groups.without_costs(self.gangs, self.allowed, self.capacity)

    def groups(self) -> Groups:
        """Return the groups of a tightened problem: jobs with the same gang, allowed types and costs are one group."""
        idle = int(self.capacity.sum()) - self.least
        # where all jobs must run none waits; the reward of Eq. (7) is then as large as it needs to be
        waiting = int(self.gangs[self.allowed.any(axis=1)].sum()) > self.least
        return Groups.of(self.cost, self.gangs, self.allowed, self.capacity, idle=idle, waiting=waiting)

    def tightened(self, classes: Groups) -> GangAssignment:
        """Return a problem of the same assignments: capacities that can be filled, a least that can be met exactly."""
        capacity = fillable(classes, self.capacity)
        step = int(np.gcd.reduce(classes.gang)) if len(classes.gang) else 1
        allowed = self.allowed
        if len(self.gangs) and self.gangs.max() > capacity.min():
            allowed = allowed & (self.gangs[:, None] <= capacity)
        tight = copy(self)  # not made anew: a check reads every cost
        for name, value in (("capacity", capacity), ("least", -(-self.least // step) * step), ("allowed", allowed)):
            object.__setattr__(tight, name, value)
        return tight

    def program(self) -> Program:
        """Return the problem as a program in binary ``x``, one entry a job and type."""
        p = Formulation("gang assignment")
        x = p.variable("x", self.cost.shape, lower=0, upper=self.allowed.astype(np.int64), integer=True)
        p.minimize((np.where(self.allowed, self.cost, 0.0) * x).sum(), equation="sum_ji c_ji x_ji", source="Eq. (6)")
        p.constrain("one_type", x.sum(axis=1) <= 1, equation="sum_i x_ji <= 1", source="Eq. (1)")
        busy = self.gangs[:, None] * x
        p.constrain("capacity", busy.sum(axis=0) <= self.capacity, equation="sum_j d_j x_ji <= Y_i", source="Eq. (1)")
        p.constrain("work_conserving", busy.sum() >= self.least, equation="sum_ji d_j x_ji >= K", source="Eq. (7)")
        return p.program()

    def violations(self, type_of: Array) -> tuple[str, ...]:
        """Return, in words, which constraints an assignment breaks; ``type_of`` (n,): a type, or -1 for waiting."""
        runs = np.flatnonzero(type_of != IDLE)
        chosen = type_of[runs]
        busy = np.zeros(len(self.capacity), dtype=np.int64)
        np.add.at(busy, chosen, self.gangs[runs])
        found = [f"job {job} may not run on type {type_of[job]}" for job in runs[~self.allowed[runs, chosen]].tolist()]
        over = np.flatnonzero(busy > self.capacity).tolist()
        found += [f"type {i} has {self.capacity[i]} GPUs, {busy[i]} are asked of it" for i in over]
        if busy.sum() < self.least:
            found.append(f"{busy.sum()} GPUs are busy, {self.least} must be")
        return tuple(found)


def _whole(values: object, place: str, count: int, least: int) -> Array:
    array = np.asarray(values)
    if array.shape != (count,):
        raise BadInput(f"shape {array.shape}", place=place, remedy=f"Give {count} whole numbers")
    if count and not whole_numbers(array):
        raise BadInput(f"an array of {array.dtype}", place=place, remedy="Give whole numbers of GPUs")
    wrong = np.flatnonzero((array < least) | (array > MOST_GPUS))
    if len(wrong):
        remedy = f"Give whole numbers from {least} to 2^53"
        raise BadInput(f"got {array[wrong[0]]}", place=f"{place}[{wrong[0]}]", remedy=remedy)
    return array.astype(np.int64)


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


def fillable(classes: Groups, capacity: Array) -> Array:
    """Return, for each type, the most of its GPUs that the gangs allowed there can fill; shape (k,)."""
    pairs = zip(classes.allowed, capacity.tolist(), strict=True)
    filled = [largest_filling(classes.gang[own], classes.count[own], most) for own, most in pairs]
    return np.array(filled, dtype=np.int64)


def usable_gpus(gangs: Array, allowed: Array, capacity: Array, *, time_limit: float | None = None) -> int:
    """Return the most GPUs that can be kept busy when each gang runs on one allowed type or waits: FFT's K(t).

    Shapes: ``gangs`` (n,) and ``capacity`` (k,) in GPUs, ``allowed`` (n, k). The answer is exact: a greedy filling that
    reaches the sum of what each type alone can fill, or all jobs, is the most; else a MILP over classes of like jobs
    decides. Errors: `NotSolved` where the MILP does not end within ``time_limit`` seconds.

    Source: FFT (2025), Sec. 4.2.4, K(t) of Eq. (7).

    >>> usable_gpus(np.array([2, 3]), np.ones((2, 1), dtype=bool), np.array([4]))  # one of the gangs, not both
    3
    """
    capacity, gangs = np.asarray(capacity, dtype=np.int64), np.asarray(gangs)
    # the type with the most GPUs often has room for all that may run there, and the others for the rest
    type_of = on_cheapest(np.where(allowed & (gangs[:, None] <= capacity), -capacity, INFINITY), gangs, capacity)
    if type_of is not None:
        return int(gangs[type_of != IDLE].sum())
    classes = Groups.without_costs(gangs, np.asarray(allowed, dtype=bool), capacity)
    return most_busy(classes, fillable(classes, capacity), time_limit)


def most_busy(classes: Groups, room: Array, time_limit: float | None, enough: float = INFINITY) -> int:
    """Return `usable_gpus` of classes that can fill ``room`` (k,), or less if that is ``enough``; errors as there."""
    most = min(int(room.sum()), int(classes.gang @ classes.count))
    greedy = max(greedy_filling(classes, room, freedom) for freedom in (False, True))
    return greedy if greedy >= min(most, enough) else _by_milp(classes, room, most, time_limit)


def greedy_filling(classes: Groups, capacity: Array, freedom_first: bool) -> int:
    """Return the GPUs that a greedy filling keeps busy: large gangs first, or those with few types first."""
    freedom = classes.allowed.sum(axis=0)
    order = np.lexsort((-classes.gang, freedom) if freedom_first else (freedom, -classes.gang))
    left = capacity.copy()
    for each in order.tolist():
        gang, jobs = int(classes.gang[each]), int(classes.count[each])
        own = np.flatnonzero(classes.allowed[:, each])
        for i in own[np.argsort(-left[own], kind="stable")].tolist():
            taken = min(jobs, int(left[i]) // gang)
            left[i] -= taken * gang
            jobs -= taken
            if not jobs:
                break
    return int(capacity.sum() - left.sum())


def _by_milp(classes: Groups, capacity: Array, most: int, time_limit: float | None) -> int:
    p = Formulation("usable GPUs")
    placed = np.argwhere(classes.allowed.T)
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

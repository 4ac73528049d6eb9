"""What each user does at given prices: the cheapest way to its target, and how close the next cheapest is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.level.problem import BLOCK, LevelProblem
from fairopt.program import Array

#: A type whose GPUs are worth less than this part of the mean is priced as if they were worth that much.
FREE = 1e-5


@dataclass(frozen=True, eq=False)
class TypeShare:
    """What users hold of one type each: ``start + slope * t`` GPUs of ``type``; all (n,). -1: none, with start 0."""

    type: Array
    start: Array
    slope: Array

    def at(self, level: float) -> Array:
        """Return the GPUs at a level (n,)."""
        return np.asarray(self.start + self.slope * level)


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The cheapest way of every user to reach its target.

    Users hold one type each, ``high``. Where demands force users to hold two, they hold some of ``low`` as well, which
    is None where nobody has a demand. All (n,): ``value`` is the price of one unit of throughput, ``demand_dual`` that
    of the right to one GPU more. ``margin`` says how far prices may move, relatively, before a user would choose
    otherwise.
    """

    high: TypeShare
    low: TypeShare | None
    value: Array
    demand_dual: Array | None
    margin: Array

    @property
    def shares(self) -> tuple[TypeShare, ...]:
        """What users hold of their types."""
        return (self.high,) if self.low is None else (self.high, self.low)

    def held(self, users: Array, types: int) -> tuple[Array, Array]:
        """Return what ``users`` (a mask) hold together: (k,) at level 0, and (k,) for each unit of level."""
        start, slope = np.zeros(types), np.zeros(types)
        for share in self.shares:
            some = users & (share.type >= 0)
            start += np.bincount(share.type[some], weights=share.start[some], minlength=types)
            slope += np.bincount(share.type[some], weights=share.slope[some], minlength=types)
        return start, slope

    def cost(self, prices: Array, level: float) -> Array:
        """Return what each user's GPUs cost (n,)."""
        return np.asarray(sum(prices[share.type] * share.at(level) for share in self.shares))

    def range(self, users: Array, problem: LevelProblem) -> tuple[float, float]:
        """Return the levels between which what ``users`` (a mask) hold by their choice is not negative."""
        if self.low is None or problem.demand is None:
            return -np.inf, np.inf
        pairs = [(share.start, share.slope) for share in self.shares]
        # what is left of the demand must not become negative for users with one type
        pairs.append((problem.demand - self.high.start, -self.high.slope))
        low, high = -np.inf, np.inf
        for start, slope in pairs:
            falls, rises = users & (slope < 0), users & (slope > 0)
            high = min(high, float((-start[falls] / slope[falls]).min(initial=np.inf)))
            low = max(low, float((-start[rises] / slope[rises]).max(initial=-np.inf)))
        return low, high


def floored(problem: LevelProblem, prices: Array, part: float = FREE) -> Array:
    """Return prices raised so that the GPUs of each type are worth at least a ``part`` of what they are on average."""
    mean = float(prices @ problem.capacity) / len(prices)
    return np.maximum(prices, max(part * mean, 1e-200) / problem.capacity)


def cheapest(problem: LevelProblem, prices: Array) -> tuple[Array, Array, Array]:
    """Return for each user the type with the cheapest throughput, its price, and the next cheapest price; all (n,)."""
    k, n = problem.shape
    first, best, second = np.zeros(n, dtype=np.int64), np.empty(n), np.full(n, np.inf)
    for start in range(0, n, BLOCK):
        part = slice(start, start + BLOCK)
        where, low, next_ = first[part], best[part], second[part]
        np.multiply(problem.need[0, part], prices[0], out=low)
        for j in range(1, k):
            cost = problem.need[j, part] * prices[j]
            np.minimum(next_, np.maximum(low, cost), out=next_)
            np.copyto(where, j, where=cost < low)
            np.minimum(low, cost, out=low)
    return first, best, second


def choose(problem: LevelProblem, prices: Array, level: float) -> BestResponse:
    """Return the cheapest choices at positive ``prices`` (k,); pairs of types are those for targets at ``level``."""
    first, best, second = cheapest(problem, prices)
    users = np.arange(len(first))
    with np.errstate(invalid="ignore"):
        margin = np.where(np.isfinite(second), (second - best) / (second + best), np.inf)
    need = problem.need[first, users]
    start, slope = problem.floor * need, problem.rate * need
    if problem.demand is None:
        return BestResponse(TypeShare(first, start, slope), None, best, None, margin)
    low = np.full(len(first), -1)
    start_low, slope_low, demand_dual = np.zeros(len(first)), np.zeros(len(first)), np.zeros(len(first))
    free = 1 - (start + slope * level) / problem.demand
    np.minimum(margin, np.abs(free), out=margin)
    tight = np.flatnonzero(free < 0)
    if len(tight):
        pairs = _walk(problem, tight, first[tight], prices, level)
        two = pairs[0] != pairs[1]  # a user whose cheapest type is its fastest can only be short by rounding
        margin[tight[~two]] = 0.0
        tight, (pair_low, pair_high, value, pair_dual, pair_margin) = tight[two], (each[two] for each in pairs)
        s_low, s_high = 1 / problem.need[pair_low, tight], 1 / problem.need[pair_high, tight]
        demand, apart = problem.demand[tight], s_high - s_low
        start_low[tight] = (demand * s_high - problem.floor[tight]) / apart
        start[tight] = (problem.floor[tight] - demand * s_low) / apart
        slope_low[tight], slope[tight] = -problem.rate[tight] / apart, problem.rate[tight] / apart
        low[tight], first[tight] = pair_low, pair_high
        best[tight], demand_dual[tight], margin[tight] = value, pair_dual, pair_margin
    return BestResponse(TypeShare(first, start, slope), TypeShare(low, start_low, slope_low), best, demand_dual, margin)


def _walk(problem: LevelProblem, users: Array, first: Array, prices: Array, level: float) -> tuple[Array, ...]:
    """Return low and high type, value, demand dual and margin of ``users`` with too small demands for their cheapest.

    Each walks up the lower convex envelope of (speed, price) from its cheapest type to where its target lies.
    """
    assert problem.demand is not None
    speed = problem.speed(users)
    count = np.arange(len(users))
    aim = (problem.floor[users] + problem.rate[users] * level) / problem.demand[users]
    fastest = speed.max(axis=0)
    aim = np.minimum(aim, fastest)
    low, high = first.copy(), first.copy()
    value = np.zeros(len(users))
    going = speed[low, count] < fastest
    while going.any():
        at = np.flatnonzero(going)
        here = high[at]
        step = speed[:, at] - speed[here, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(step > 0, (prices[:, None] - prices[here]) / step, np.inf)
        cheapest_step = slope.min(axis=0)
        # of types on one line the nearest is next, so that no point of the envelope is left out
        nearest = np.where(slope <= cheapest_step, step, np.inf).argmin(axis=0)
        low[at], high[at], value[at] = here, nearest, cheapest_step
        reached = speed[nearest, at]
        going[at] = (reached < aim[at]) & (reached < fastest[at])
    demand_dual = np.maximum(value * speed[low, count] - prices[low], 0.0)
    cost = prices[:, None] + demand_dual
    reduced = cost - value * speed
    reduced[low, count] = reduced[high, count] = np.inf
    room = speed[high, count] - speed[low, count]
    with np.errstate(invalid="ignore", divide="ignore"):
        margin = (reduced / cost).min(axis=0) / 2
        for side in (speed[high, count] - aim, aim - speed[low, count]):
            margin = np.minimum(margin, np.abs(side) / room)
    return low, high, value, demand_dual, margin

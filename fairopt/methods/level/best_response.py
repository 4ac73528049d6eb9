"""What each user does at given prices: the cheapest way to its target, and how close the next cheapest is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.level.problem import BLOCK, Task
from fairopt.program import Array

#: A type whose GPUs are worth less than this part of the mean is judged as if they were worth that much.
FREE = 1e-5


@dataclass(frozen=True, eq=False)
class Choice:
    """The cheapest way of every user to reach its target; all (n,).

    A user holds ``start_high + slope_high * t`` GPUs of type ``high``, and as much of type ``low`` where it needs two
    (-1: one is enough). ``value`` is the price of one unit of throughput, ``rent`` that of its right to one GPU more.
    ``margin`` says how far prices may move, relatively, before it would choose otherwise.
    """

    high: Array
    low: Array | None
    start_high: Array
    slope_high: Array
    start_low: Array | None
    slope_low: Array | None
    value: Array
    rent: Array | None
    margin: Array

    def held(self, users: Array, types: int) -> tuple[Array, Array]:
        """Return what ``users`` (a mask) hold together: (k,) at level 0, and (k,) for each unit of level."""
        high = self.high[users]
        start = np.bincount(high, weights=self.start_high[users], minlength=types)
        slope = np.bincount(high, weights=self.slope_high[users], minlength=types)
        if self.low is not None and self.start_low is not None and self.slope_low is not None:
            two = users & (self.low >= 0)
            start += np.bincount(self.low[two], weights=self.start_low[two], minlength=types)
            slope += np.bincount(self.low[two], weights=self.slope_low[two], minlength=types)
        return start, slope

    def cost(self, prices: Array, level: float) -> Array:
        """Return what each user's GPUs cost (n,)."""
        cost = prices[self.high] * (self.start_high + self.slope_high * level)
        if self.low is not None and self.start_low is not None and self.slope_low is not None:
            cost += np.where(self.low >= 0, prices[self.low], 0.0) * (self.start_low + self.slope_low * level)
        return np.asarray(cost)

    def range(self, users: Array, task: Task) -> tuple[float, float]:
        """Return the levels between which the ways of ``users`` (a mask) can be gone."""
        if self.low is None or task.demand is None:
            return -np.inf, np.inf
        assert self.start_low is not None
        assert self.slope_low is not None
        room = task.demand - self.start_high  # of users with one type, that must stay positive
        pairs = [(self.start_high, self.slope_high), (self.start_low, self.slope_low), (room, -self.slope_high)]
        low, high = -np.inf, np.inf
        for start, slope in pairs:
            falls, rises = users & (slope < 0), users & (slope > 0)
            high = min(high, float((-start[falls] / slope[falls]).min(initial=np.inf)))
            low = max(low, float((-start[rises] / slope[rises]).max(initial=-np.inf)))
        return low, high


def floored(task: Task, prices: Array, part: float = FREE) -> Array:
    """Return prices of which none is next to nothing: less than a ``part`` of the mean worth of a type."""
    mean = float(prices @ task.capacity) / len(prices)
    return np.maximum(prices, max(part * mean, 1e-200) / task.capacity)


def cheapest(task: Task, prices: Array) -> tuple[Array, Array, Array]:
    """Return for each user the type with the cheapest throughput, its price, and the next cheapest price; all (n,)."""
    k, n = task.shape
    first, best, second = np.zeros(n, dtype=np.int64), np.empty(n), np.full(n, np.inf)
    for start in range(0, n, BLOCK):
        part = slice(start, start + BLOCK)
        where, low, next_ = first[part], best[part], second[part]
        np.multiply(task.need[0, part], prices[0], out=low)
        for j in range(1, k):
            cost = task.need[j, part] * prices[j]
            np.minimum(next_, np.maximum(low, cost), out=next_)
            np.copyto(where, j, where=cost < low)
            np.minimum(low, cost, out=low)
    return first, best, second


def choose(task: Task, prices: Array, level: float) -> Choice:
    """Return the cheapest ways at positive ``prices`` (k,); pairs of types are those for the targets at ``level``."""
    first, best, second = cheapest(task, prices)
    users = np.arange(len(first))
    with np.errstate(invalid="ignore"):
        margin = np.where(np.isfinite(second), (second - best) / (second + best), np.inf)
    need = task.need[first, users]
    start, slope = task.floor * need, task.rate * need
    if task.demand is None:
        return Choice(first, None, start, slope, None, None, best, None, margin)
    low = np.full(len(first), -1)
    start_low, slope_low, rent = np.zeros(len(first)), np.zeros(len(first)), np.zeros(len(first))
    free = 1 - (start + slope * level) / task.demand
    np.minimum(margin, np.abs(free), out=margin)
    tight = np.flatnonzero(free < 0)
    if len(tight):
        pair = _walk(task, tight, first[tight], prices, level)
        two = pair.low != pair.high  # a user whose cheapest type is its fastest can only be short by rounding
        margin[tight[~two]] = 0.0
        tight, pair_low, pair_high = tight[two], pair.low[two], pair.high[two]
        s_low, s_high = 1 / task.need[pair_low, tight], 1 / task.need[pair_high, tight]
        demand, apart = task.demand[tight], s_high - s_low
        start_low[tight] = (demand * s_high - task.floor[tight]) / apart
        start[tight] = (task.floor[tight] - demand * s_low) / apart
        slope_low[tight], slope[tight] = -task.rate[tight] / apart, task.rate[tight] / apart
        low[tight], first[tight] = pair_low, pair_high
        best[tight], rent[tight], margin[tight] = pair.value[two], pair.rent[two], pair.margin[two]
    return Choice(first, low, start, slope, start_low, slope_low, best, rent, margin)


@dataclass(frozen=True, eq=False)
class _Pairs:
    low: Array
    high: Array
    value: Array
    rent: Array
    margin: Array


def _walk(task: Task, users: Array, first: Array, prices: Array, level: float) -> _Pairs:
    """Walk up the lower convex envelope of (speed, price) from each user's cheapest type to where its target lies."""
    assert task.demand is not None
    speed = task.speed(users)
    count = np.arange(len(users))
    aim = (task.floor[users] + task.rate[users] * level) / task.demand[users]
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
        # of types in one line the nearest: so no point of the envelope is passed over
        nearest = np.where(slope <= cheapest_step, step, np.inf).argmin(axis=0)
        low[at], high[at], value[at] = here, nearest, cheapest_step
        reached = speed[nearest, at]
        going[at] = (reached < aim[at]) & (reached < fastest[at])
    rent = np.maximum(value * speed[low, count] - prices[low], 0.0)
    cost = prices[:, None] + rent
    reduced = cost - value * speed
    reduced[low, count] = reduced[high, count] = np.inf
    room = speed[high, count] - speed[low, count]
    with np.errstate(invalid="ignore", divide="ignore"):
        margin = (reduced / cost).min(axis=0) / 2
        for side in (speed[high, count] - aim, aim - speed[low, count]):
            margin = np.minimum(margin, np.abs(side) / room)
    return _Pairs(low, high, value, rent, margin)

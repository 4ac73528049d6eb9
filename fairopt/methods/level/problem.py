"""The largest common level as a problem in numbers without units, and the cheapest way of each user at given prices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.errors import BadInput
from fairopt.methods.grouping import equal_runs, equal_users
from fairopt.program import Array

#: Users are treated in blocks of this size: the rows of a block stay in the processor's cache.
BLOCK = 8192
#: The size of the sample that tells whether there are many duplicates.
SAMPLED = 2000
#: Duplicates are merged where the sample has fewer distinct users than this part of it.
DISTINCT = 0.9
#: A user may use a type that takes this part more GPUs than its demand: rounding.
EVEN = 1e-13
#: A type whose GPUs are worth less than this part of the mean is priced as if they were worth that much.
FREE = 1e-5


@dataclass(frozen=True, eq=False)
class AskedLevel:
    """What a caller of `raise_level` asks, in its own units; see there."""

    speedup: Array
    capacity: Array
    rate: Array
    floor: Array | None = None
    demand: Array | None = None

    @cached_property
    def needy(self) -> Array:
        """Which users (n,) are to have anything."""
        return self.rate > 0 if self.floor is None else (self.rate > 0) | (self.floor > 0)

    @cached_property
    def types(self) -> Array:
        """The types that have GPUs: those of the `problem`."""
        return np.flatnonzero(self.capacity > 0)

    @cached_property
    def users(self) -> Array | slice:
        """The users of the `problem`: those that need something."""
        return slice(None) if self.needy.all() else np.flatnonzero(self.needy)

    @property
    def problem(self) -> LevelProblem:
        """The problem without units; types without GPUs and users that need nothing are left out, equal ones are one.

        Errors: `BadInput` where a user that is to be raised cannot run anywhere, or nobody is to be raised.
        """
        return self._merged[0]

    @cached_property
    def _merged(self) -> tuple[LevelProblem, Array | slice, Array | float]:
        """The problem, which of its users each user of the caller is, and the part of that one that it is."""
        speedup, rate, amount = self.speedup, self.rate[self.users], self.capacity[self.types].astype(float)
        if len(self.types) < len(self.capacity):
            speedup = speedup[:, self.types]
        speedup = speedup[self.users]
        floor, demand = (None if each is None else each[self.users] for each in (self.floor, self.demand))
        n, k = speedup.shape
        need, unit = np.empty((k, n)), np.empty(n)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for first in range(0, n, BLOCK):
                part = slice(first, first + BLOCK)
                speed = np.ascontiguousarray(speedup[part].T, dtype=float)
                unit[part] = (speed * amount[:, None]).max(axis=0, initial=0.0)
                np.divide(unit[part], speed, out=need[:, part])
        if n == 0 or not (unit > 0).all() or not (rate > 0).any():
            where = "rate" if n == 0 or (unit > 0).all() else f"user {int(np.argmin(unit > 0))}"
            raise BadInput("no user can get more", place=where, remedy="Give users that run on some type with GPUs")
        by = rate / unit
        level = float(by.sum())
        floors = np.zeros(n) if floor is None else floor / unit
        limits = None if demand is None or not np.isfinite(demand).any() else demand.astype(float)
        return LevelProblem(need, amount, by / level, floors, limits, level).merged()

    def shares(self, shares: Array) -> Array:
        """Return the shares (n, k) of all users and types that the caller knows, for those of the problem (k, n)."""
        _, of, part = self._merged
        if shares.T.shape == self.speedup.shape:  # nobody was left out or merged
            return np.ascontiguousarray(shares.T)
        all_shares = np.zeros(self.speedup.shape)
        for type_, amount in zip(self.types.tolist(), shares, strict=True):
            all_shares[self.users, type_] = amount[of] * part
        return all_shares

    def duals(self, prices: Array, demand_dual: Array | None, by: float) -> tuple[Array, Array]:
        """Return prices and demand duals of the `problem`, divided ``by`` a number, of all types and users."""
        all_prices, demand_duals = np.zeros(len(self.capacity)), np.zeros(len(self.rate))
        all_prices[self.types] = prices / by
        if demand_dual is not None:
            demand_duals[self.users] = demand_dual[self._merged[1]] / by
        return all_prices, demand_duals


@dataclass(frozen=True, eq=False)
class LevelProblem:
    """Maximise t such that each user reaches ``floor + rate * t``; types are rows and users are columns.

    Shapes: ``need`` (k, n) GPUs of a type for one unit of a user's throughput, infinity where it cannot run or there
    are no GPUs; ``capacity`` (k,); ``rate``, ``floor`` (n,); ``demand`` (n,) GPUs, infinity for no limit, or None where
    nobody has a limit. A user's unit is the throughput that all GPUs of its best type would give it. ``rate`` adds up
    to 1, so that without floors and demands the optimum lies between 1 and k. One of the caller's levels is ``unit`` of
    these.
    """

    need: Array
    capacity: Array
    rate: Array
    floor: Array
    demand: Array | None
    unit: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """(types, users)."""
        k, n = self.need.shape
        return k, n

    @property
    def size(self) -> Array:
        """The size of each user (n,): the part of its best type that it needs at level 1."""
        return np.asarray(self.rate + self.floor)

    @property
    def limit(self) -> Array | float:
        """The demands (n,), infinity where there are none."""
        return np.inf if self.demand is None else self.demand

    @cached_property
    def reach(self) -> Array:
        """The level that each user's demand allows (n,), infinity where the demand is no limit."""
        if self.demand is None:
            return np.full(len(self.rate), np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (self.demand / self.need.min(axis=0) - self.floor) / self.rate
        return np.where(self.rate > 0, reach, np.inf)

    @property
    def highest(self) -> float:
        """The level that the demands alone allow, infinity where they are no limit."""
        return float(self.reach.min(initial=np.inf))

    def evened(self) -> LevelProblem:
        """Return a problem without demands in which users rise in their proportions at the `highest` level.

        Users may use those types only of which any alone takes no more GPUs than the demand. If the level of the new
        problem is at least 1, the demand of one user alone limits the level of this one.
        """
        target = self.floor + self.rate * self.highest
        slow = self.need * target > self.limit * (1 + EVEN)
        need = np.where(slow & (self.need > self.need.min(axis=0)), np.inf, self.need)
        return replace(self, need=need, rate=target, floor=np.zeros(len(self.floor)), demand=None)

    def speed(self, users: Array) -> Array:
        """Return the throughput of one GPU (k, len(users)), 0 where a user cannot run."""
        return np.asarray(1.0 / self.need[:, users])

    def select(self, users: Array, times: Array | None = None) -> LevelProblem:
        """Return the problem of some users, each counted ``times``."""
        by = 1.0 if times is None else times
        return LevelProblem(
            need=self.need.take(users, axis=1),  # unlike need[:, users], row after row
            capacity=self.capacity,
            rate=self.rate[users] * by,
            floor=self.floor[users] * by,
            demand=None if self.demand is None else self.demand[users] * by,
        )

    def merged(self) -> tuple[LevelProblem, Array | slice, Array | float]:
        """Return the problem in which users that are equal up to size are one, if a sample shows many of them.

        Also which user each becomes (n,), and the part of that one that it is.
        """
        n = len(self.rate)
        few = self if n < 2 * SAMPLED else self.select(np.arange(0, n, n // SAMPLED))
        if len(equal_runs(few._keys())[1]) > DISTINCT * len(few.rate):
            return self, slice(None), 1.0
        first, of = equal_users(self._keys())
        size = self.size
        total = np.bincount(of, weights=size, minlength=len(first))
        return replace(self.select(first, total / size[first]), unit=self.unit), of, size / total[of]

    def _keys(self) -> Array:
        """Return numbers (q, n) that are the same for users that are equal up to size."""
        size = self.size
        more = () if self.demand is None else (self.demand / size,)
        return np.vstack((self.rate / size, self.need, *more))

    def sample(self, count: int) -> LevelProblem:
        """Return the problem of about ``count`` users drawn by size, who stand for all; always the same ones."""
        size = self.size
        until = np.cumsum(size)
        draws = (np.arange(count) + np.random.default_rng(count).random(count)) * (until[-1] / count)
        users, times = np.unique(np.minimum(np.searchsorted(until, draws), len(until) - 1), return_counts=True)
        return self.select(users, times * (until[-1] / count) / size[users])


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The cheapest way of every user to reach its target: ``start + slope * t`` GPUs of a ``type``, all (h, n).

    Users hold one type each, the first row. Where demands force users to hold two, they hold some of a second one as
    well, the faster first; there is no second row where nobody has a demand, and in it type -1 where a user holds none,
    with start and slope 0. All (n,): ``value`` is the price of one unit of throughput, ``demand_dual`` that of the
    right to one GPU more. ``margin`` says how far prices may move, relatively, before a user would choose otherwise.
    """

    type: Array
    start: Array
    slope: Array
    value: Array
    demand_dual: Array | None
    margin: Array

    def at(self, level: float) -> Array:
        """Return the GPUs (h, n) that users hold at a level."""
        return np.asarray(self.start + self.slope * level)

    def held(self, users: Array, types: int) -> tuple[Array, Array]:
        """Return what ``users`` (a mask) hold together: (k,) at level 0, and (k,) for each unit of level."""
        some = users & (self.type >= 0)
        start, slope = (np.bincount(self.type[some], each[some], types) for each in (self.start, self.slope))
        return start, slope

    def cost(self, prices: Array, level: float) -> Array:
        """Return what each user's GPUs cost (n,)."""
        return np.asarray((prices[self.type] * self.at(level)).sum(axis=0))

    def range(self, users: Array, problem: LevelProblem) -> tuple[float, float]:
        """Return the levels between which what ``users`` (a mask) hold by their choice is not negative."""
        if len(self.type) == 1 or problem.demand is None:
            return -np.inf, np.inf
        # what is left of the demand must not become negative for users with one type
        starts, slopes = [*self.start, problem.demand - self.start[0]], [*self.slope, -self.slope[0]]
        low, high = -np.inf, np.inf
        for start, slope in zip(starts, slopes, strict=True):
            falls, rises = users & (slope < 0), users & (slope > 0)
            high = min(high, float((-start[falls] / slope[falls]).min(initial=np.inf)))
            low = max(low, float((-start[rises] / slope[rises]).max(initial=-np.inf)))
        return low, high


@dataclass(frozen=True, eq=False)
class LevelPoint:
    """Prices (k,) and a ``level`` near the optimum, or at it, found in so many ``steps``.

    ``shares`` (k, active) are those of the ``active`` users, None for all in order; others hold what ``choice`` says at
    the level. ``demand_dual`` (n,). At a vertex it is the ``only`` optimum where all users would pay clearly more for
    what they do not have.
    """

    prices: Array
    level: float
    shares: Array
    active: Array | None = None
    choice: BestResponse | None = None
    demand_dual: Array | None = None
    steps: int = 0
    only: bool = False


def nearest(margin: Array, count: int) -> Array:
    """Return a mask (n,) of the users nearest to a tie, at least ``count``."""
    if count >= len(margin):
        return np.ones(len(margin), dtype=bool)
    return np.asarray(margin <= np.partition(margin, count)[count])


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
        return BestResponse(first[None], start[None], slope[None], best, None, margin)
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
    type_, starts, slopes = (np.stack(each) for each in ((first, low), (start, start_low), (slope, slope_low)))
    return BestResponse(type_, starts, slopes, best, demand_dual, margin)


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

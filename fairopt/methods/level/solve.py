"""The largest common level that users can reach: prices of the types, found without a program of all users.

Maximise t subject to ``sum_j speedup_lj x_lj >= floor_l + rate_l t`` within capacities and demands. At given prices
every user has one cheapest way to its target, in almost all cases the same for all prices nearby; so only the few that
are near a tie need a linear program. Near which prices the optimum is, Newton's method says where demands do not matter
(`fairopt.methods.level.smoothing`), or else a sample of the users; these are made exact by the simplex method in boxes
of prices (`fairopt.methods.level.box`). Where no demand matters and no other optimum ties, no program is needed at all
(`fairopt.methods.level.price_simplex`). Nothing is left to tolerances: what is returned comes with bounds that count
all rounding (`fairopt.methods.level.bounds`).

Source: Bixby, Gregory, Lustig, Marsten and Shanno, Very large-scale linear programming: a case study in combining
interior point and simplex methods, 1992 (sifting); the prices are the dual of OEF Eq. (9).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from operator import attrgetter

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.level.bounds import near_start, proved, upper_bound
from fairopt.methods.level.box import NEGLIGIBLE, ROUGH, Box, one_demand_dual
from fairopt.methods.level.price_simplex import bound, near_prices, sifted
from fairopt.methods.level.problem import AskedLevel, LevelPoint, LevelProblem, choose, floored
from fairopt.methods.result import StageClock, gap_of
from fairopt.program import INFINITY, Array

_log = logging.getLogger(__name__)

#: Up to so many users, the simplex method in prices is tried first.
STEPPED = 200_000
#: Where a user needs more times a type's GPUs than this, whoever has rationals is asked, or HiGHS.
FAR_APART = 1e12
#: Problems of up to so many pairs of a user and a type are one small program.
WHOLE = 600
#: Where demands matter, one user in so many is solved first.
SAMPLED = 8
#: Where users need no more than this part of each type, GPUs remain, whatever was rounded.
PLENTY = 0.99
#: Bounds so near to each other are those of an optimum to the last digits.
DIGITS = 1e-12
#: For a ceiling, Newton's method ends where a step lowers it by less than this part, or after so many steps.
COARSE, MOST_STEPS = 1e-3, 60


def raise_level(
    speedup: Array,
    capacity: Array,
    rate: Array,
    *,
    floor: Array | None = None,
    demand: Array | None = None,
    start: tuple[Array, float] | None = None,
) -> Solution:
    """Return the largest t at which every user l can have a throughput of ``floor[l] + rate[l] * t``.

    Shapes: ``speedup`` (n, k), 0 where a user cannot run; ``capacity`` (k,); the others (n,), not negative, infinity in
    ``demand`` for no limit. ``start`` is the `Solution.warm_start` of a market like this one: its prices save most of
    the work. Where they mislead, prices are found anew. What comes back is `fairopt.methods.level.bounds.proved`.
    Errors: `BadInput` where somebody cannot run or nobody is to be raised; `NotSolved`; `OutOfTime`, with the solution
    of the best prices by then, if there were any.

    >>> found = raise_level(np.array([[1.0, 2], [1, 5]]), np.ones(2), np.ones(2))
    >>> round(found.lower, 6), round(found.upper, 6)
    (2.142857, 2.142857)
    """
    clock, asked = StageClock(), AskedLevel(speedup, capacity, rate, floor, demand)
    problem = asked.problem
    clock.lap("build")
    effort = {"steps": 0.0, "boxes": 0.0, "largest": 0.0, "restarts": 0.0}
    near: tuple[Array, float] | None = None
    try:
        found, prices = _directly(problem, effort)
        if found is not None:
            clock.lap("solve")
            try:
                result = _proved(asked, found, effort, clock)
            except NotSolved as failure:
                _log.info("the simplex method in prices was of no use: %s", failure)
            else:
                if gap_of(result) <= DIGITS:
                    return result
        near = None if prices is None else _with_bound(problem, prices)
        first = near if problem.demand is None else None
        if first is None and start is not None:
            first = near_start(start, asked)
        found = _solve(problem, effort, first)
    except OutOfTime as over:
        guess = LevelPoint(*near, problem.need[:, :0]) if over.solution is None and near else over.solution
        if guess is not None:
            over.solution = _proved_by_then(asked, _chosen(problem, guess), effort, clock)
        raise
    clock.lap("solve")
    return _proved(asked, found, effort, clock)


def _proved(
    asked: AskedLevel, found: LevelPoint, effort: dict[str, float], clock: StageClock, *, ended: bool = True
) -> Solution:
    duals = asked.duals(found.prices, found.demand_dual, asked.problem.unit)
    shares = asked.shares(_all_shares(found, asked.problem.shape))
    return proved(asked, shares, *duals, clock=clock, effort=effort, ended=ended)


def _proved_by_then(asked: AskedLevel, found: LevelPoint, effort: dict[str, float], clock: StageClock) -> Solution:
    """Return what a method that is stopped has; it may be the demand of one user that proves most."""
    clock.lap("solve")
    ways, problem = [found], asked.problem
    if problem.highest < INFINITY:
        ways.append(replace(found, prices=found.prices * 0, demand_dual=one_demand_dual(problem)))
    proofs = [_proved(asked, way, effort, clock, ended=False) for way in ways]
    return min(proofs, key=attrgetter("upper"))


def _directly(problem: LevelProblem, effort: dict[str, float]) -> tuple[LevelPoint | None, Array | None]:
    """Return the optimum where no demand matters, or one user's alone does; None where that is not seen.

    Also prices near the optimum without demands, None where numbers are too far apart. Errors: `OutOfTime`, with a
    guess.
    """
    if _far_apart(problem):
        return None, None
    limited = problem.demand is not None
    free, prices = replace(problem, demand=None) if limited else problem, None
    with np.errstate(all="ignore"):
        try:
            prices = 1.0 / problem.capacity if _plenty(problem) else near_prices(free)
            if limited and bound(free, prices) >= problem.highest:
                return (_limited_by_one(problem) if problem.need.size > WHOLE else None), prices
        except OutOfTime as over:
            prices = over.solution if prices is None else prices
            over.solution = LevelPoint(prices, bound(free, prices), problem.need[:, :0])
            raise
        at = sifted(free, prices) if len(problem.rate) <= STEPPED else None
    if at is None:
        return None, prices
    if not at.only or (limited and (_all_shares(at, problem.shape).sum(axis=0) > problem.limit).any()):
        return None, at.prices
    effort["steps"] += at.steps
    return at, at.prices


def _with_bound(problem: LevelProblem, prices: Array) -> tuple[Array, float] | None:
    """Return prices (k,) with the level that they bound without demands; None where they say nothing."""
    with np.errstate(all="ignore"):
        level = bound(problem, prices)
    return (prices, level) if np.isfinite(level) else None


def _plenty(problem: LevelProblem) -> bool:
    """Return whether GPUs remain where all users have the `highest` level on the type of which they need least.

    Then no prices prove that level to be out of reach, and any will do.
    """
    if not problem.highest < INFINITY:
        return False
    part = problem.need / problem.capacity[:, None]
    type_ = part.argmin(axis=0)
    least = part[type_, np.arange(len(type_))] * (problem.floor + problem.rate * problem.highest)
    return bool((np.bincount(type_, weights=least, minlength=len(part)) <= PLENTY).all())


def _far_apart(problem: LevelProblem) -> bool:
    """Return whether some user needs too many times a type's GPUs."""
    most = problem.need.max(axis=1)
    if not np.isfinite(most).all():
        most = np.where(np.isfinite(problem.need), problem.need, 0.0).max(axis=1)
    return bool((most > FAR_APART * problem.capacity).any())


def ceiling(asked: AskedLevel, cap: Array, open_: Array) -> float:
    """Return a level that the ``open_`` users, each up to its ``cap``, cannot all be above; at most a little too high.

    Prices that prove targets too high tell the next level: the one whose targets cost as much as all GPUs do. That is
    still not too low. Shapes: ``cap``, ``open_`` (n,).
    """
    upper, values = _bound(replace(asked, demand=None))
    level = affordable(values * asked.rate, upper, cap, open_)
    for _ in range(MOST_STEPS):
        target = asked.rate * np.where(open_, np.minimum(cap, level), 0.0)
        upper, values = _bound(replace(asked, rate=target))
        following = affordable(values * asked.rate, upper, cap, open_)
        if not following < level * (1 - COARSE):
            return min(following, level)
        level = following
    return level


def _bound(asked: AskedLevel) -> tuple[float, Array]:
    """Return a level that none is above, about the part `COARSE` too high, and the values (n,) that prove it."""
    problem = asked.problem
    free = problem if problem.demand is None else replace(problem, demand=None)
    with np.errstate(all="ignore"):
        prices = near_prices(free)
    prices = floored(problem, prices) if np.isfinite(prices).all() else 1.0 / problem.capacity
    demand_dual = choose(problem, prices, min(bound(free, prices), problem.highest)).demand_dual
    upper, _, _, values = upper_bound(asked, *asked.duals(prices, demand_dual, 1.0))
    return upper, values


def affordable(price: Array, spent: float, cap: Array, open_: Array) -> float:
    """Return the level at which ``open_`` users, up to their caps, pay ``spent``, at a ``price`` (n,) by ratio."""
    price, caps = price[open_], cap[open_]
    order = np.argsort(caps, kind="stable")
    price, caps = price[order], caps[order]
    # at level t users below their cap pay price * t, and those at it price * cap
    at_caps = np.concatenate([[0.0], np.cumsum(price * np.where(np.isfinite(caps), caps, 0.0))])
    rising = price.sum() - np.concatenate([[0.0], np.cumsum(price)])
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(rising > 0, (spent - at_caps) / rising, INFINITY)[:-1]
    at = np.flatnonzero(levels <= caps)
    return float(levels[at[0]]) if len(at) else float(caps[-1])


def _solve(problem: LevelProblem, effort: dict[str, float], near: tuple[Array, float] | None) -> LevelPoint:
    """Return the optimum, from prices and a level ``near`` it, or from those of a sample of the users."""
    n = len(problem.rate)
    if problem.need.size > WHOLE and n > SAMPLED:
        try:
            if near is not None:
                return _from(problem, effort, LevelPoint(*near, problem.need[:, :0]))
            return _from(problem, effort, _solve(problem.sample(n // SAMPLED), effort, None))
        except NotSolved as failure:  # prices too far off cost time only
            _log.info("prices nearby were of no use: %s", failure)
            effort["restarts"] += 1
    effort["boxes"] += 1
    return Box(problem, 1.0 / problem.capacity, 1.0).whole()


def _from(problem: LevelProblem, effort: dict[str, float], near: LevelPoint) -> LevelPoint:
    """Return the optimum near a guess. Errors: `NotSolved`; `OutOfTime`, with the guess."""
    try:
        if near.level >= problem.highest * (1 - ROUGH) and (limited := _limited_by_one(problem)) is not None:
            return limited
        box = Box(problem, near.prices, near.level)
        found = box.settle()
    except OutOfTime as over:
        over.solution = near
        raise
    effort["boxes"] += box.boxes
    effort["largest"] = max(effort["largest"], box.largest)
    return found


def _chosen(problem: LevelProblem, guess: LevelPoint) -> LevelPoint:
    """Return what a guess tells of all users: its shares where it has them, else what they choose at its prices."""
    prices, level = floored(problem, guess.prices), min(guess.level, problem.highest)
    choice = choose(problem, prices, level)
    known = np.arange(guess.shares.shape[1] if guess.shares.shape == problem.shape else 0)
    return LevelPoint(prices, level, guess.shares[:, known], known, choice, choice.demand_dual)


def _limited_by_one(problem: LevelProblem) -> LevelPoint | None:
    """Return the optimum if the demand of one user alone limits the level; None where that is not seen.

    Then all can have that level, mostly with GPUs to spare, on types any of which alone is fast enough for the demand.
    """
    k, n = problem.shape
    even = problem.evened()
    users, shares = np.arange(n), np.zeros((k, n))
    type_ = (even.need / even.capacity[:, None]).argmin(axis=0)
    shares[type_, users] = even.rate * even.need[type_, users]
    if not _fits(problem, shares):
        with np.errstate(all="ignore"):
            at = sifted(even, near_prices(even))
        reaching = None if at is None else _reaching(problem, at)
        if reaching is None:
            return None
        shares = reaching
    prices, dual = 1.0 / problem.capacity, one_demand_dual(problem)
    choice = choose(problem, prices, problem.highest)
    return LevelPoint(np.zeros(k), problem.highest, shares, users, choice, dual)


def _reaching(problem: LevelProblem, at: LevelPoint) -> Array | None:
    """Return shares (k, n) like those ``at`` a point, as large as the `highest` level asks, if they fit; else None."""
    shares = _all_shares(at, problem.shape)
    reached = (shares / problem.need).sum(axis=0)
    if not (reached > 0).all():
        return None
    shares = shares * ((problem.floor + problem.rate * problem.highest) / reached)
    return shares if _fits(problem, shares) else None


def _fits(problem: LevelProblem, shares: Array) -> bool:
    """Return whether ``shares`` (k, n) keep demands and capacities, but for rounding."""
    within = problem.demand is None or bool((shares.sum(axis=0) <= problem.demand * (1 + NEGLIGIBLE)).all())
    return within and bool((shares.sum(axis=1) <= problem.capacity * (1 + NEGLIGIBLE)).all())


def _all_shares(found: LevelPoint, shape: tuple[int, int]) -> Array:
    """Return the shares (k, n) of all users at a point."""
    shares = np.zeros(shape)
    if found.choice is not None:
        for type_, amount in zip(found.choice.type, found.choice.at(found.level), strict=True):
            some = np.flatnonzero(type_ >= 0)
            shares[type_[some], some] = np.maximum(amount[some], 0.0)
    shares[:, slice(None) if found.active is None else found.active] = found.shares
    return shares

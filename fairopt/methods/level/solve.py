"""The largest common level that users can reach: prices of the types, found without a program of all users.

Maximise t subject to ``sum_j speedup_lj x_lj >= floor_l + rate_l t`` within capacities and demands. At given prices
every user has one cheapest way to its target, in almost all cases the same for all prices nearby; so only the few that
are near a tie need a linear program. Prices are guessed from a sample of users by an interior-point method, then the
users near a tie and the sum of all others are solved exactly by the simplex method in a box around the guess. Where
the prices are inside the box and nobody has a cheaper way, the vertex is the optimum of the whole; otherwise the box
moves and grows. Nothing is left to tolerances: what is returned comes with bounds that count all rounding.

Source: Bixby, Gregory, Lustig, Marsten and Shanno, Very large-scale linear programming: a case study in combining
interior point and simplex methods, 1992 (sifting); the prices are the dual of OEF Eq. (9).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.level.best_response import Choice, choose, floored
from fairopt.methods.level.bounds import lower_bound, upper_bound
from fairopt.methods.level.interior_point import interior
from fairopt.methods.level.problem import Scale, Task, task_of
from fairopt.methods.level.vertex import Rest, Vertex, vertex
from fairopt.program import Array

#: Up to so many pairs of a user and a type the whole is one small program.
WHOLE = 160
#: From more users than this, prices are guessed from a sample first.
DIRECT = 3000
#: The part of its users that a sample has.
SAMPLED = 4
#: The sample's prices are found to the first relative gap, those guessed from all users to the second at best.
ROUGH, FINE = 1e-4, 1e-6
#: Users that choose otherwise at prices that are so many gaps away are taken as undecided: the guess is no better.
TIE = 10.0
#: Users whose demands allow levels higher by no more than this part are taken as limited by them.
ABOVE = 0.01, 1e-4
#: Boxes move and grow; each holds more than the last, so that this many are never needed.
MOST_BOXES = 60
#: What users could save by choosing otherwise, as a part of the level, when that is rounding.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Raised:
    """A common level, who holds what, and what proves it.

    The largest level is between ``lower`` and ``upper``, whatever was rounded. Shapes: ``shares`` (n, k) GPUs, which
    reach ``level`` for every user; ``prices`` (k,), ``rents`` (n,) and ``values`` (n,) are the level gained by one GPU
    more of a type, by one more of demand, and lost by one unit of throughput more that a user must have.
    ``effort`` counts what was done.
    """

    level: float
    shares: Array
    prices: Array
    rents: Array
    values: Array
    lower: float
    upper: float
    effort: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """How far the largest level may be above ``lower``, as a part of ``upper``."""
        return (self.upper - self.lower) / abs(self.upper) if self.upper else self.upper - self.lower


@dataclass(eq=False)
class _Found:
    """The optimum of a task, in its units."""

    prices: Array
    level: float
    choice: Choice
    active: Array
    shares: Array
    rent: Array | None


def raise_level(
    speedup: Array,
    capacity: Array,
    rate: Array,
    *,
    floor: Array | None = None,
    demand: Array | None = None,
    start: Raised | None = None,
) -> Raised:
    """Return the largest t at which every user l can have a throughput of ``floor[l] + rate[l] * t``.

    Shapes: ``speedup`` (n, k), 0 where a user cannot run; ``capacity`` (k,); the others (n,), not negative, infinity in
    ``demand`` for no limit. ``start`` is the answer to a market like this one: its prices save most of the work.
    Errors: `BadInput` where somebody cannot run or nobody is to be raised; `NotSolved`.
    """
    begun = perf_counter()
    task, scale = task_of(speedup, capacity, rate, floor, demand)
    effort = {"prepare": perf_counter() - begun, "steps": 0.0, "boxes": 0.0, "largest": 0.0}
    found = _solve(task, effort, _given(task, scale, start))
    effort["solve"] = perf_counter() - begun - effort["prepare"]
    return _raised(found, task, scale, (speedup, capacity, rate, floor, demand), effort)


def bound_level(
    speedup: Array,
    capacity: Array,
    rate: Array,
    *,
    floor: Array | None = None,
    demand: Array | None = None,
    tolerance: float = ROUGH,
) -> tuple[float, Array]:
    """Return a level that none is above, about the relative ``tolerance`` too high, and the values (n,) that prove it.

    The other arguments are those of `raise_level`, and so are the values and errors. Much less work: nobody is told
    what it holds.
    """
    task, scale = task_of(speedup, capacity, rate, floor, demand)
    effort = {"steps": 0.0}
    found, level = _guess(task, effort, tolerance)
    n, k = speedup.shape
    prices, rents = np.zeros(k), np.zeros(n)
    prices[scale.types] = found
    rent = choose(task, found, min(level, task.highest)).rent
    if rent is not None:
        rents[slice(None) if scale.users is None else scale.users] = rent
    upper, _, _, values = upper_bound(speedup, capacity, rate, floor, demand, prices, rents)
    return upper, values


def _given(task: Task, scale: Scale, start: Raised | None) -> tuple[Array, float] | None:
    """Return the prices and the level of a start; None where demands alone made them, which say nothing of prices."""
    if start is None:
        return None
    prices, level = start.prices[scale.types] * scale.level, start.level * scale.level
    return (prices, level) if prices @ task.capacity > ROUGH * level else None


def _solve(task: Task, effort: dict[str, float], given: tuple[Array, float] | None) -> _Found:
    k, n = task.shape
    if n * k <= WHOLE:
        return _whole(task, effort)
    prices, level = _guess(task, effort, _precision(n)) if given is None else given
    found = _limited(task, effort) if level >= task.highest * (1 - ROUGH) else None
    return found or _settle(task, prices, level, effort)


def _precision(users: int) -> float:
    """Return the relative gap of a guess: few users need not be told apart by prices as many must."""
    return min(max(0.1 / users, FINE), ROUGH)


def _whole(task: Task, effort: dict[str, float]) -> _Found:
    k, n = task.shape
    none = np.zeros(k)
    at = vertex(task, np.ones((k, n), dtype=bool), Rest(none, none), 1.0, 1.0 / task.capacity)
    effort["boxes"] += 1
    choice = choose(task, floored(task, at.prices), at.level)
    return _Found(at.prices, at.level, choice, np.arange(n), at.shares, at.rent)


def _guess(task: Task, effort: dict[str, float], tolerance: float) -> tuple[Array, float]:
    """Return prices near the optimal ones, and the level, by a relative gap of ``tolerance``."""
    task = task.merged()
    k, n = task.shape
    none = np.zeros(k)
    if n <= DIRECT:
        found = interior(task, none, none, 1.0 / task.capacity, min(0.6 * k, task.highest), tolerance)
    else:
        sample = max(DIRECT, n // SAMPLED)
        prices, level = _guess(task.sample(sample), effort, ROUGH)
        if level > task.highest:
            return prices, level
        choice = choose(task, prices, min(level, task.highest))
        count = int(3 * n * (k / sample) ** 0.5)
        while True:
            near = _nearest(choice.margin, count)
            held, rising = choice.held(~near, k)
            found = interior(task.select(np.flatnonzero(near)), held, rising, prices, level, tolerance)
            width = float(choice.margin[~near].min(initial=np.inf))
            moved = floored(task, found.prices) / prices
            if near.all() or max(float(moved.max()), 1 / float(moved.min())) <= 1 + 2 * width:
                break
            effort["steps"] += found.steps
            count *= 4
    effort["steps"] += found.steps
    return floored(task, found.prices), found.level


def _limited(task: Task, effort: dict[str, float]) -> _Found | None:
    """Return the optimum if the demand of one user alone limits the level; None where it is not seen to do so.

    Then everybody can have what it has at the highest level that demands allow, mostly with GPUs to spare: it need
    not be an optimum of anything, and that of the interior-point method will do.
    """
    k, n = task.shape
    target = task.floor + task.rate * task.highest
    none = np.zeros(k)
    for above in ABOVE:
        even = task.evened(above)
        prices, level = 1.0 / task.capacity, 0.6
        if n > DIRECT:
            prices, level = _guess(even, effort, ROUGH)
            level = min(level, even.highest)
            if level < 1 - ROUGH:
                return None
        inside = interior(even, none, none, prices, level, ROUGH)
        effort["steps"] += inside.steps
        if inside.level < 1 - ROUGH:
            return None
        reached = np.einsum("ij,ij->j", even.speed(np.arange(n)), inside.shares)
        if (reached > 0).all():
            shares = inside.shares * (target / reached)
            within = task.demand is None or (shares.sum(axis=0) <= task.demand * (1 + NOTHING)).all()
            if within and (shares.sum(axis=1) <= task.capacity * (1 + NOTHING)).all():
                choice = choose(task, prices, task.highest)
                return _Found(np.zeros(k), task.highest, choice, np.arange(n), shares, _only(task))
    return None


def _nearest(margin: Array, count: int) -> Array:
    """Return a mask (n,) of the users nearest to a tie, at least ``count``."""
    if count >= len(margin):
        return np.ones(len(margin), dtype=bool)
    return np.asarray(margin <= np.partition(margin, count)[count])


def _settle(task: Task, prices: Array, level: float, effort: dict[str, float]) -> _Found:
    """Return the optimum, starting with a box around ``prices``."""
    k, n = task.shape
    want = min(8 * k, n)
    level = min(level, task.highest)
    extra = np.zeros(n, dtype=bool)
    before: tuple[tuple[Array, float], ...] = ()
    for _ in range(MOST_BOXES):
        centre = floored(task, prices)
        choice = choose(task, centre, level)
        if task.demand is None:  # of all multiples of the prices the one that the optimum has: rate @ value is 1
            weight = float(task.rate @ choice.value)
            centre, prices = centre / weight, prices / weight
        near = _nearest(choice.margin, want) | (choice.margin <= TIE * _precision(n))
        active = np.flatnonzero(near | extra)
        # as far as prices can move before anybody else would choose otherwise
        width = min(float(choice.margin[~near].min(initial=np.inf)), 0.999)
        among = _candidates(task, active, centre, level, width)
        for earlier in before:
            among |= _candidates(task, active, *earlier, width)
        fixed = np.ones(n, dtype=bool)
        fixed[active] = False
        held, rising = choice.held(fixed, k)
        least, most = choice.range(fixed, task)
        rest = Rest(held, rising, least, most)
        if fixed.any() and level < task.highest * (1 - TIE * FINE):
            cheap = np.where(prices < centre, 0.0, centre * (1 - width))
            rest = replace(rest, cheap=cheap, dear=centre * (1 + width))
        elif fixed.any():
            # where a user's demand alone limits the level, all prices may be 0, and a box would only keep them apart:
            # one GPU more of a type is never worth so much as these prices
            rest = replace(rest, cheap=np.zeros(k), dear=2 * k * max(level, 1.0) / task.capacity)
        at = vertex(task.select(active), among, rest, level, centre)
        effort["boxes"] += 1
        effort["largest"] = max(effort["largest"], len(active))
        saved = _saved(task, at, choice, active, fixed)
        worth = max(abs(at.level), 1e-300)
        if at.bought <= NOTHING and at.level >= task.highest * (1 - NOTHING):
            return _Found(np.zeros(k), at.level, choice, active, at.shares, _only(task))
        everything = not fixed.any() and bool((among | np.isinf(task.need)).all())
        if everything or (at.inside and saved.sum() <= NOTHING * worth):
            return _Found(at.prices, at.level, choice, active, at.shares, _rents(task, at, active))
        cheaper = saved > 0.01 * NOTHING * worth / n
        if cheaper.sum() > 2 * want:
            cheaper = _nearest(-saved, 2 * want)
        extra = (extra & at.inside) | cheaper
        if at.inside:
            extra |= near
        else:
            want = 2 * want
        prices, level = at.prices, min(at.level, task.highest)
        before = (centre, level), (floored(task, prices, 0.0), level)
    raise NotSolved(f"no optimum in {MOST_BOXES} boxes of prices")


def _candidates(task: Task, active: Array, prices: Array, level: float, width: float) -> Array:
    """Return which types (k, len(active)) may be used by ``active`` users while prices move by ``width``."""
    part = task.select(active)
    speed, column = part.speed(np.arange(len(active))), np.arange(len(active))
    among = np.zeros(speed.shape, dtype=bool)
    levels = [level] if task.demand is None else [level, level * (1 - width), min(level * (1 + width), task.highest)]
    for each in levels:
        choice = choose(part, prices, each)
        cost = prices[:, None] + (0.0 if choice.rent is None else choice.rent)
        among |= cost * (1 - width) <= choice.value * speed * (1 + width) * (1 + 1e-12)
        among[choice.high, column] = True
        if choice.low is not None:
            two = choice.low >= 0
            among[choice.low[two], column[two]] = True
    return among


def _only(task: Task) -> Array:
    """Return the rents (n,) where the demand of one user alone limits the level: only that has one."""
    rent = np.zeros(len(task.rate))
    rent[int(task.reach.argmin())] = 1.0
    return rent


def _rents(task: Task, at: Vertex, active: Array) -> Array | None:
    """Return the rents of all users (n,) at the vertex's prices.

    Of an active user it is that of the small program, which knows how far its value of throughput is needed, unless a
    type that it was not offered there makes another rent prove more.
    """
    prices = floored(task, at.prices, 0.0)
    rent = choose(task, prices, at.level).rent
    if rent is None or at.rent is None or task.demand is None:
        return rent
    need, demand = task.need[:, active], np.where(np.isfinite(task.demand[active]), task.demand[active], 0.0)
    target = task.floor[active] + task.rate[active] * at.level
    ours, theirs = (
        ((prices[:, None] + each) * need).min(axis=0) * target - each * demand for each in (rent[active], at.rent)
    )
    rent[active] = np.where(theirs >= ours - NOTHING * np.abs(ours), at.rent, rent[active])
    return rent


def _saved(task: Task, at: Vertex, choice: Choice, active: Array, fixed: Array) -> Array:
    """Return what each user (n,) could save at the vertex's prices by choosing otherwise."""
    now = choose(task, floored(task, at.prices, 0.0), at.level).cost(at.prices, at.level)
    paid = choice.cost(at.prices, at.level)
    paid[active] = at.prices @ at.shares
    return np.asarray(np.maximum(paid - now, 0.0))


def _raised(
    found: _Found,
    task: Task,
    scale: Scale,
    asked: tuple[Array, Array, Array, Array | None, Array | None],
    effort: dict[str, float],
) -> Raised:
    """Return the answer in the units asked, with its bounds."""
    begun = perf_counter()
    speedup, capacity, rate, floor, demand = asked
    n, k = speedup.shape
    shares = np.zeros((n, k))
    choice, level = found.choice, found.level
    users = np.arange(n) if scale.users is None else scale.users
    fixed = np.ones(len(users), dtype=bool)
    fixed[found.active] = False
    rows = users[fixed]
    shares[rows, scale.types[choice.high[fixed]]] = (choice.start_high + choice.slope_high * level)[fixed]
    if choice.low is not None and choice.start_low is not None and choice.slope_low is not None:
        two = fixed & (choice.low >= 0)
        shares[users[two], scale.types[choice.low[two]]] = (choice.start_low + choice.slope_low * level)[two]
    np.maximum(shares, 0.0, out=shares)
    shares[np.ix_(users[found.active], scale.types)] = found.shares.T
    prices = np.zeros(k)
    prices[scale.types] = found.prices / scale.level
    rents = np.zeros(n)
    if found.rent is not None:
        rents[users] = found.rent / scale.level
    upper, prices, rents, values = upper_bound(speedup, capacity, rate, floor, demand, prices, rents)
    lower = lower_bound(shares, speedup, capacity, rate, floor, demand)
    effort["certify"] = perf_counter() - begun
    return Raised(lower, shares, prices, rents, values, lower, upper, effort)

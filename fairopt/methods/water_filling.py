"""Water filling by prices: round by round the largest common level, and the users that can be raised no more.

In a round the users still open rise together until the GPUs that they compete for are sold out. Prices prove the
level (`fairopt.methods.level`), and they show who is held down by it: users whose raising would lower the level. All
others have no use for what is sold out and go on without it, so that there are about as many rounds as types.

Demands cap what a user can have. Users whose cap is below the level are fixed at
their cap in the same round. If the caps are more than there is, exact prices tell which of them are above the level.

Source: Radunovic and Le Boudec, A Unified Framework for Max-Min and Min-Max Fairness, 2007 (rounds); Dinkelbach 1967
(the iteration towards the level).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.level import raise_level
from fairopt.methods.level.problem import AskedLevel
from fairopt.methods.level.solve import MOST_STEPS, affordable, ceiling
from fairopt.methods.result import duals_of, ends_of, gap_of, proven, rounded_down, rounded_up
from fairopt.program import INFINITY, ROUNDING, Array, Number

_log = logging.getLogger(__name__)

#: A user is fixed at a level where its ratio is proved to be able to gain no more than this part.
TIGHT = 1e-9
#: Prices are well above rounding error where the GPUs of the type are worth at least this part of all.
DEAR = 1e-8
#: A user would clearly pay less than the price of a type where it is less by this part.
CLEARLY = 1e-6
#: A user is barred from a type where its ratio is proved to gain no more than this part by it.
BARRED = 1e-10
#: Fixed users keep their levels less a small part, so that rounding cannot make that impossible: the next part is tried
#: where it does. What they give up is counted in `_Filling.doubt`.
GIVEN_UP = (1e-15, 1e-13, 1e-10)
#: A level that rounding may have changed by more than this part is refused.
DOUBT = 1e-8
#: A level counts as reached that is short by no more than this part.
REACHED = 1e-12
#: More of a type, relative to all of it, is no rounding.
BOOKED = 1e-9


def fill(speedup: Array, capacity: Array, fair: Array, demand: Array | None = None) -> Solution:
    """Return the lexicographically largest ratios of throughput to ``fair`` (n,), the least first.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,); ``demand`` (n,), infinity for no limit. The solution bounds the least
    ratio; ``upper`` is None where it is proved only if others have theirs. Its values are "share" (n, k), and (n,) for
    each user "level", its ratio, "fixed_in", the round that fixed it, and "slack": as long as users fixed earlier have
    their levels, and all others at least the level of the round, no allocation gives user l more than ``level * (1 +
    slack)``, whatever was rounded. The evidence are the rounds: bounds on the level of each, with duals as of
    `fairopt.methods.level`, and the values "fixed" (n,), users whose raising would lower it, and "capped" (n,), users
    at their cap. Errors: `NotSolved`; `OutOfTime`, with the solution of the rounds by then, if there were any: later
    levels may be larger.

    >>> found = fill(np.array([[1.0, 2], [1, 5]]), np.ones(2), np.array([1.5, 3]))
    >>> len(found.evidence)
    1
    """
    filling = _Filling(speedup, capacity, fair, demand)
    begun = perf_counter()
    try:
        filling.run()
    except OutOfTime as over:
        first = over.solution
        if not filling.rounds and isinstance(first, Solution):
            # where some are at their caps, the level of the others bounds nothing
            known = first if filling.demand is None else replace(first, bound=None, upper=None)
            filling.count(known, *np.zeros((2, len(fair)), dtype=bool))
        over.solution = filling.solution(begun, ended=False) if filling.rounds else None
        raise
    return filling.solution(begun)


class _Filling:
    """The state between rounds: who is fixed where, and who may still use what."""

    def __init__(self, speedup: Array, capacity: Array, fair: Array, demand: Array | None) -> None:
        n, _ = speedup.shape
        self.speedup = np.where(capacity > 0, speedup, 0.0)
        self.capacity, self.fair = capacity, fair
        self.demand = demand if demand is not None and np.isfinite(demand).any() else None
        self.usable = self.speedup > 0
        self.level, self.slack = np.zeros(n), np.zeros(n)
        #: What users could still get, as a part of their ratio, of types that they were barred from, by round. All
        #: users of a round could get that much together, not each.
        self.leaks: list[Array] = []
        self.fixed_in = np.zeros(n, dtype=np.int64)
        #: The part by which each user's level may be off, because levels before it are.
        self.doubt = np.zeros(n)
        self.rounds: list[Solution] = []
        self.effort = {"rounds": 0.0, "programs": 0.0}
        #: Shares with which all have their levels or that of the last round.
        self.shares = np.zeros_like(self.speedup)

    def run(self) -> None:
        """Fix users, round by round, until all are fixed."""
        while (open_ := self.fixed_in == 0).any():
            self._round(open_)

    def solution(self, begun: float, *, ended: bool = True) -> Solution:
        """Return the levels, those of the last round for who is not fixed yet."""
        shares, level = self.shares, np.where(self.fixed_in == 0, ends_of(self.rounds[-1])[0], self.level)
        if (shares.sum(axis=0) > self.capacity * (1 + BOOKED)).any():
            raise NotSolved("the shares of the last round are more than there is")
        self.effort["rounds"] = float(len(self.rounds))
        ratio = (shares * self.speedup).sum(axis=1) / (self.fair * level)
        reached = min(rounded_down(float(ratio.min()), len(self.capacity) + 4), 1.0)
        return proven(
            "prices",
            rounded_down(float(level.min()) * reached, 2),
            self._least_bound(),
            ended=ended,
            values={"share": shares, "level": level, "fixed_in": self.fixed_in, "slack": self.slack},
            effort=self.effort,
            seconds=perf_counter() - begun,
            evidence=tuple(self.rounds),
        )

    def _round(self, open_: Array) -> None:
        """Fix the next users."""
        speedup = np.where(self.usable, self.speedup, 0.0)
        # what the GPUs of the fastest types allow is left to prices
        limit = INFINITY if self.demand is None else self.demand * speedup.max(axis=1) / self.fair
        cap = np.where(open_, limit, INFINITY)
        top = self._ceiling(speedup, open_, cap) if np.isfinite(cap[open_]).any() else 0.0
        result, given_up, capped, rising = self._raise_open(speedup, open_, cap, top)
        number = len(self.rounds) + 1
        self.level[capped], self.slack[capped], self.fixed_in[capped] = cap[capped], self._leak()[capped], number
        fixed = np.zeros_like(rising)
        if rising.any():
            fixed = self._held_down(result, rising)
            # between the bounds, since later levels can depend on earlier ones a hundred thousand times as strongly
            lower, upper = ends_of(result)
            self.level[fixed], self.fixed_in[fixed] = (lower + upper) / 2, number
            self.doubt[fixed] = self._doubt(result, given_up)
        self.count(result, fixed, capped)
        self._bar(result)

    def count(self, result: Solution, fixed: Array, capped: Array) -> None:
        """Keep what a round found."""
        self.rounds.append(replace(result, values={"fixed": fixed, "capped": capped}))
        self.shares = result.values["share"]

    # -- raising -----------------------------------------------------------------------------------------------------
    def _raise_open(self, speedup: Array, open_: Array, cap: Array, top: float) -> tuple[Solution, float, Array, Array]:
        """Return the level of the open users, the part that fixed ones give up for it, who is capped and who rises.

        No level is above ``top``. If the level turns out lower than some of the caps, users with these caps are raised
        as well: prices tell below which level that is so.
        """
        # a user that has all that its demand allows spends it on its fastest types, and needs no other limit
        fastest = speedup == speedup.max(axis=1, keepdims=True)
        for _ in range(MOST_STEPS):
            capped = open_ & (cap <= top)
            if not (open_ & ~capped).any():  # the largest caps are raised, since a program must raise at least one user
                capped = open_ & (cap < cap[open_].max())
            rising = open_ & ~capped
            target = AskedLevel(
                speedup=np.where(capped[:, None] & ~fastest, 0.0, speedup),
                capacity=self.capacity,
                rate=np.where(rising, self.fair, 0.0),
                floor=np.where(capped, cap, np.where(open_, 0.0, self.level)) * self.fair,
                demand=None if self.demand is None else np.where(capped, INFINITY, self.demand),
            )
            attempt = self._raised_or_lower(target, speedup, open_, cap, top)
            if isinstance(attempt, float):
                top = attempt
                continue
            result, given_up = attempt
            result = self._with_demand_duals(result, speedup, target.speedup, capped)
            highest = cap[capped].max(initial=0.0)
            lower, upper = ends_of(result)
            if lower >= highest * (1 - REACHED):
                if lower >= cap[rising].max() * (1 - REACHED):
                    capped, rising = open_, np.zeros_like(rising)
                self.usable &= ~(capped[:, None] & ~fastest)
                return result, given_up, capped, rising
            price = duals_of(result, "target")[0] * self.fair
            spent = upper + float((price[capped] * cap[capped]).sum())
            top = min(affordable(price, spent, cap, open_), float(np.nextafter(highest, 0.0)))
        raise NotSolved(f"no level after {MOST_STEPS} prices")

    def _raised_or_lower(
        self, target: AskedLevel, speedup: Array, open_: Array, cap: Array, top: float
    ) -> tuple[Solution, float] | float:
        """Return the level of a target; or a level lower than ``top``, where the caps are more than there is."""
        try:
            return self._raised(target)
        except NotSolved:
            # exact prices of all targets say whether, and by how much, the caps are more than there is
            targets = np.where(open_, np.minimum(cap, top), 0.0) * self.fair
            kept = np.where(open_, 0.0, self.level) * self.fair
            together, _ = self._raised(AskedLevel(speedup, self.capacity, targets, kept, self.demand))
            reached, most = ends_of(together)
            lower = affordable(duals_of(together, "target")[0] * self.fair, most, cap, open_)
            if reached < 1 - REACHED and lower < top:
                return lower
            raise

    def _raised(self, target: AskedLevel) -> tuple[Solution, float]:
        """Return the level of a target, and the part that fixed users give up for it: the first of `GIVEN_UP`."""
        for part in GIVEN_UP[:-1]:
            try:
                return self._raised_for(target, part), part
            except NotSolved as failure:
                _log.debug("no level (%s); the next part is given up", failure)
        return self._raised_for(target, GIVEN_UP[-1]), GIVEN_UP[-1]

    def _raised_for(self, target: AskedLevel, part: float) -> Solution:
        """Raise users, the others keeping what they have less a ``part`` of it."""
        self.effort["programs"] += 1
        speedup, rate, kept = target.speedup, target.rate, target.floor
        assert kept is not None
        alone = (rate == 0) & (kept > 0) & ((speedup > 0).sum(axis=1) == 1)
        users, type_ = np.flatnonzero(alone), speedup[alone].argmax(axis=1)
        least = kept * (1 - part)
        gpus = least[alone] / speedup[alone, type_]
        floor = np.where(alone, 0.0, least)
        taken = np.bincount(type_, weights=gpus, minlength=len(self.capacity))
        left = np.where(taken > 0, np.maximum(self.capacity - taken, 0.0), self.capacity)
        # where no more is left than these give up, nothing is: a type of next to no GPUs would get a price of nothing
        left = np.where(left > (2 * part + ROUNDING) * taken, left, 0.0)
        needy = (rate > 0) | (floor > 0)
        if (taken > self.capacity * (1 + REACHED)).any() or not ((speedup[needy] > 0) & (left > 0)).any(axis=1).all():
            raise NotSolved("users are to keep more than there is")
        if not (rate > 0).any():
            raise NotSolved("numbers too far apart for floats: nobody is left to be raised")
        result = raise_level(speedup, left, rate, floor=floor if floor.any() else None, demand=target.demand)
        result.values["share"][users, type_] = gpus
        return result

    def _with_demand_duals(self, result: Solution, speedup: Array, usable: Array, capped: Array) -> Solution:
        """Return the same with values of capped users, those of the last bit, so high that slower types do not pay."""
        users = np.flatnonzero(capped)
        if not len(users):
            return result
        prices, demand_duals, values = duals_of(result, "capacity", "demand", "target")
        place = np.where(usable[users] > 0, prices, INFINITY).argmin(axis=1)
        price, fast = prices[place][:, None], speedup[users, place][:, None]
        slower = (speedup[users] > 0) & (speedup[users] < fast)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(slower, (price - prices) / (fast - speedup[users]), 0.0)
        values, demand_duals = values.copy(), demand_duals.copy()
        values[users] = np.maximum((price / fast)[:, 0], step.max(axis=1))
        demand_duals[users] = np.maximum(values[users] * fast[:, 0] - price[:, 0], 0.0)
        return replace(result, duals={"capacity": prices, "demand": demand_duals, "target": values})

    def _ceiling(self, speedup: Array, open_: Array, cap: Array) -> float:
        """Return a level, at most a little too high, that the open users cannot all be above."""
        kept = rounded_down(np.where(open_, 0.0, self.level) * self.fair, 9)
        rate = np.where(open_, self.fair, 0.0)
        asked = AskedLevel(speedup, self.capacity, rate, kept if kept.any() else None, self.demand)
        return ceiling(asked, cap, open_)

    def _least_bound(self) -> Number | None:
        """Return what no allocation's least ratio is above; None where it is proved only if others have theirs."""
        first = self.rounds[0]
        least = int(np.where(self.fixed_in == 0, INFINITY, self.level).argmin())
        if first.values["capped"][least]:  # its demand allows no more, whatever the others have
            return rounded_up(float(self.level[least]), 4)
        return first.upper if self.fixed_in[least] <= 1 and not first.values["capped"].any() else None

    # -- after a round -----------------------------------------------------------------------------------------------
    def _doubt(self, result: Solution, given_up: float) -> float:
        """Return by what part the level may be too high, as others keep too little, at their values; or `NotSolved`."""
        kept = duals_of(result, "target")[0] * self.fair * self.level * (self.fixed_in > 0)
        doubt = gap_of(result) + float((kept * (given_up + self.doubt)).sum()) / ends_of(result)[0]
        if doubt > DOUBT:
            raise NotSolved(
                f"in round {len(self.rounds) + 1} a level depends on earlier ones so much that rounding may have "
                f"changed it by a part of {doubt:.1g}; decide with the exact backend"
            )
        return doubt

    def _leak(self) -> Array:
        """Return what users (n,) can gain by what they are barred from, as parts of their ratios."""
        return np.asarray(sum(self.leaks, np.zeros_like(self.fair)))

    def _held_down(self, result: Solution, rising: Array) -> Array:
        """Return which users are at the level in every optimum, as far as can be told in floats; at least one."""
        lower, values = ends_of(result)[0], duals_of(result, "target")[0] * self.fair
        push = np.where(rising, values, 0.0)
        worth = values * np.where(self.fixed_in > 0, self.level, lower) / lower
        gap = gap_of(result) + sum(float((worth * leak).max()) for leak in self.leaks) + 4 * ROUNDING
        with np.errstate(divide="ignore"):
            slack = np.where(rising, self._leak() + gap / push, INFINITY)
        # a user all of whose types have prices well above rounding error pays for being raised, however small it is
        fixed = (slack <= TIGHT) | (rising & ~(self.usable & ~self._dear(result)).any(axis=1))
        if not fixed.any():  # the values add up to one, so that half of the largest is far above rounding
            fixed = push >= 0.5 * push.max()
        self.slack[fixed] = slack[fixed]
        return np.asarray(fixed)

    def _dear(self, result: Solution) -> Array:
        """Return which types (k,) have prices well above rounding error, beside all that is paid."""
        prices, demand_duals = duals_of(result, "capacity", "demand")
        spent, limited = prices * self.capacity, demand_duals > 0
        of_demands = 0.0 if self.demand is None else (demand_duals[limited] * self.demand[limited]).sum()
        return np.asarray(spent >= DEAR * (spent.sum() + of_demands))

    def _bar(self, result: Solution) -> None:
        """Bar users from types that are sold out to others, where what they could get of these is negligible."""
        speedup = np.where(self.usable, self.speedup, 0.0)
        (lower, upper), (prices, demand_duals, values) = (
            ends_of(result),
            duals_of(result, "capacity", "demand", "target"),
        )
        excess = (upper - lower) + abs(upper) * 4 * ROUNDING
        cost = prices + demand_duals[:, None]
        dear = cost - values[:, None] * speedup
        has = self.fair * np.where(self.fixed_in > 0, self.level, lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            leak = np.where(dear > 0, speedup * excess / dear / has[:, None], INFINITY)
        # prices well above rounding error, and clearly higher than what a user would pay, also exclude users of low
        # weight, whose leak is not small
        exact_fallback = self._dear(result) & (dear >= CLEARLY * cost)
        barred = (speedup > 0) & ((leak <= BARRED) | exact_fallback) & ((speedup > 0).sum(axis=1) > 1)[:, None]
        self.usable &= ~barred
        self.leaks.append(np.where(barred, leak, 0.0).max(axis=1))

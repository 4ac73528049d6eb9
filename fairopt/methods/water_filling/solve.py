"""Water filling by prices: round by round the largest common level, and who can be raised no more.

In a round the users still open rise together until the GPUs that they compete for are sold out. Prices prove the
level (`level_prices.raise_level`), and by them also who is held down by it: whoever would lower the level by being
raised. Everybody else has no use for what is sold out and goes on without it, so that rounds are about as many as
types. What a user can have at most of the types that it may still use, by its demand alone, is its cap; where the
caps of many lie below the level, a level that is hardly too high is found by Newton's method on rough prices of what
all would want; whose cap is below has it, and where that is too much, the exact prices tell whose is not.

Source: Radunovic and Le Boudec, A Unified Framework for Max-Min and Min-Max Fairness, 2007 (rounds); Dinkelbach 1967
(the iteration towards the level).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.level.solve import Raised, bound_level, raise_level
from fairopt.methods.proven import ROUNDING
from fairopt.methods.water_filling.round_lp import raise_plainly
from fairopt.program import INFINITY, Array

#: A user is fixed at a level where its ratio is proved to be able to gain no more than this part.
TIGHT = 1e-9
#: Prices are no rounding where the GPUs of the type are worth at least this part of all.
DEAR = 1e-8
#: What a user would pay for a type is clearly less than its price where it is so by this part.
CLEARLY = 1e-6
#: A user is barred from a type where its ratio is proved to gain no more than this part by it.
BARRED = 1e-10
#: What fixed users have is demanded a little less of later rounds, so that rounding cannot make it impossible; the
#: next amount is tried where that is not enough.
SLACK = 1e-15, 1e-13, 1e-10
#: With a larger gap than this, prices are put right by a program of all users.
GAP = 1e-10
#: Levels that rounding may have changed by more than this part are no answer.
DOUBT = 1e-8
#: Caps are reached where they are but for this part.
REACHED = 1e-12
#: Newton's method ends where a step lowers the level by less than this part.
COARSE = 1e-3
MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class Round:
    """One round: its ``level`` and the bound ``upper`` on it, whom it fixed, and what proves it.

    Shapes: ``prices`` (k,), ``rents``, ``values`` (n,) are the dual of the round; ``fixed`` and ``capped`` are the
    users fixed because raising them lowers the level, and those that have all that their demand allows.
    """

    level: float
    upper: float
    fixed: Array
    capped: Array
    prices: Array
    rents: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Filled:
    """Ratios that are lexicographically max-min, and an allocation that reaches them.

    Shapes: ``level``, ``fixed_in`` (n,) each user's ratio and the round that fixed it; ``shares`` (n, k).
    ``slack`` (n,): where everybody fixed earlier has its level, and everybody else at least the level of the round, no
    allocation gives user l more than ``level * (1 + slack)``, whatever was rounded. The shares reach at least
    ``reached`` times all levels. ``effort`` counts what was done.
    """

    level: Array
    fixed_in: Array
    slack: Array
    shares: Array
    reached: float
    rounds: tuple[Round, ...]
    effort: dict[str, float]


def fill(speedup: Array, capacity: Array, fair: Array, demand: Array | None = None) -> Filled:
    """Return the lexicographically largest ratios of throughput to ``fair`` (n,), the least first.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,); ``demand`` (n,), infinity for no limit. Errors: `NotSolved`.
    """
    return _Filling(speedup, capacity, fair, demand).run()


class _Filling:
    """The state of the water: who is fixed where, and who may still use what."""

    def __init__(self, speedup: Array, capacity: Array, fair: Array, demand: Array | None) -> None:
        n, _ = speedup.shape
        self.speedup = np.where(capacity > 0, speedup, 0.0)
        self.capacity, self.fair = capacity, fair
        self.limits = demand is not None and bool(np.isfinite(demand).any())
        self.demand = demand if demand is not None and self.limits else None
        self.usable = self.speedup > 0
        self.level, self.slack = np.zeros(n), np.zeros(n)
        #: What each user could still get of types that it is barred from, as a part of its ratio, round by round; all
        #: of a round's users could get that together, not each.
        self.leaks: list[Array] = []
        self.fixed_in = np.zeros(n, dtype=np.int64)
        #: By how much each user's level may be off, as a part of it, since those before it were.
        self.doubt, self._given_up = np.zeros(n), 0.0
        self.rounds: list[Round] = []
        self.effort = {"rounds": 0.0, "programs": 0.0, "plain": 0.0}

    def run(self) -> Filled:
        shares = np.zeros_like(self.speedup)
        while (open_ := self.fixed_in == 0).any():
            shares = self._round(open_)
        self.effort["rounds"] = float(len(self.rounds))
        ratio = (shares * self.speedup).sum(axis=1) / (self.fair * self.level)
        reached = float(ratio.min()) * (1 - (len(self.capacity) + 4) * ROUNDING)
        return Filled(self.level, self.fixed_in, self.slack, shares, min(reached, 1.0), tuple(self.rounds), self.effort)

    def _round(self, open_: Array) -> Array:
        """Fix the next users, and return shares with which all have their levels or that of the round."""
        speedup = np.where(self.usable, self.speedup, 0.0)
        cap = self._caps(speedup, open_)
        ceiling = self._highest(speedup, open_, cap) if np.isfinite(cap[open_]).any() else 0.0
        raised, capped, rising, speedup = self._below(speedup, open_, cap, ceiling)
        number = len(self.rounds) + 1
        self.level[capped], self.slack[capped], self.fixed_in[capped] = cap[capped], self._leak()[capped], number
        fixed = np.zeros_like(rising)
        if rising.any():
            fixed = self._held_down(raised, rising)
            # between the bounds, since later levels can depend on earlier ones a hundred thousand times as strongly
            self.level[fixed], self.fixed_in[fixed] = (raised.lower + raised.upper) / 2, number
            self.doubt[fixed] = self._doubt(raised)
        self.rounds.append(Round(raised.lower, raised.upper, fixed, capped, raised.prices, raised.rents, raised.values))
        self._bar(raised, speedup)
        return raised.shares

    def _doubt(self, raised: Raised) -> float:
        """Return by what part the level of a round may be too high since others keep too little; `NotSolved` if much.

        By duality the level rises by no more than what they keep too little of, at their values.
        """
        kept = raised.values * self.fair * self.level * (self.fixed_in > 0)
        doubt = raised.gap + float((kept * (self._given_up + self.doubt)).sum()) / raised.level
        if doubt > DOUBT:
            raise NotSolved(
                f"in round {len(self.rounds) + 1} a level depends on earlier ones so much that rounding may have "
                f"changed it by a part of {doubt:.1g}; decide with the exact back end"
            )
        return doubt

    def _below(self, speedup: Array, open_: Array, cap: Array, ceiling: float) -> tuple[Raised, Array, Array, Array]:
        """Raise the open users whose caps are above the level, the others being at their caps.

        No level is above ``ceiling``. Where it turns out lower than some caps, their users are raised with the others;
        the level from which they cannot be told by the prices is the next ceiling. Returns the level reached, who is
        at its cap, who is not, and the speedups (n, k) on the types that are of use to them.
        """
        for _ in range(MOST_STEPS):
            capped = open_ & (cap <= ceiling)
            if not (open_ & ~capped).any():  # the largest caps are raised, for a program must raise somebody
                capped = open_ & (cap < cap[open_].max())
            rising = open_ & ~capped
            # who has all that its demand allows spends it on its fastest types, and needs no other limit
            fastest = speedup == speedup.max(axis=1, keepdims=True)
            usable = np.where(capped[:, None] & ~fastest, 0.0, speedup)
            demand = None if self.demand is None else np.where(capped, INFINITY, self.demand)
            held = np.where(capped, cap, np.where(open_, 0.0, self.level))
            highest = cap[capped].max(initial=0.0)
            asked = np.where(rising, self.fair, 0.0), held, usable, demand
            try:
                raised = self._try(raise_level, SLACK[0], *asked)
            except NotSolved:  # the caps may be more than there is: by how much, exact prices of all targets say
                following = self._lowered(speedup, open_, cap, ceiling)
                if following < ceiling:
                    ceiling = following
                    continue
                raised = self._raise(*asked)
            if raised.gap > GAP:
                raised = self._raise(*asked)
            raised = self._with_rents(raised, speedup, usable, capped)
            if raised.lower >= highest * (1 - REACHED):
                if raised.lower >= cap[rising].max() * (1 - REACHED):
                    capped, rising = open_, np.zeros_like(rising)
                self.usable &= ~(capped[:, None] & ~fastest)
                return raised, capped, rising, np.where(self.usable, self.speedup, 0.0)
            push = raised.values * self.fair
            spent = raised.upper + float((push * cap)[capped].sum())
            ceiling = min(_affordable(push, spent, cap, open_), np.nextafter(highest, 0.0))
        raise NotSolved(f"no level after {MOST_STEPS} prices")

    def _lowered(self, speedup: Array, open_: Array, cap: Array, ceiling: float) -> float:
        """Return a level, no more than ``ceiling``, that open users, each up to its cap, cannot all be above."""
        target = np.where(open_, np.minimum(cap, ceiling), 0.0) * self.fair
        raised = self._raise(target, np.where(open_, 0.0, self.level), speedup, self.demand)
        if raised.lower >= 1 - REACHED:
            return ceiling
        return min(ceiling, _affordable(raised.values * self.fair, raised.upper, cap, open_))

    def _with_rents(self, raised: Raised, speedup: Array, usable: Array, capped: Array) -> Raised:
        """Return the same with values and rents of those at their caps for which nothing slower pays, either.

        The value is what the last bit of throughput costs that faster GPUs give.
        """
        users = np.flatnonzero(capped)
        if not len(users):
            return raised
        place = np.where(usable[users] > 0, raised.prices, INFINITY).argmin(axis=1)
        price, fast = raised.prices[place][:, None], speedup[users, place][:, None]
        slower = (speedup[users] > 0) & (speedup[users] < fast)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(slower, (price - raised.prices) / (fast - speedup[users]), 0.0)
        values, rents = raised.values.copy(), raised.rents.copy()
        values[users] = np.maximum((price / fast)[:, 0], step.max(axis=1))
        rents[users] = np.maximum(values[users] * fast[:, 0] - price[:, 0], 0.0)
        return replace(raised, values=values, rents=rents)

    def _raise(self, rate: Array, held: Array, speedup: Array, demand: Array | None) -> Raised:
        """Raise users by ``rate`` while the others keep the ratios ``held``: by prices, or by the whole program."""
        best: Raised | None = None
        for method in (raise_level, raise_plainly):
            for slack in SLACK:
                try:
                    raised = self._try(method, slack, rate, held, speedup, demand)
                except NotSolved as error:  # tried otherwise next, and raised where nothing helps
                    failed = error
                    continue
                if best is None or raised.gap < best.gap:
                    best = raised
                break
            if best is not None and best.gap <= GAP:
                return best
            self.effort["plain"] += 1
        if best is None:
            raise failed
        return best

    def _try(
        self,
        method: Callable[..., Raised],
        slack: float,
        rate: Array,
        held: Array,
        speedup: Array,
        demand: Array | None,
    ) -> Raised:
        """Raise users by a ``method``, the others keeping ``held`` less the part ``slack``.

        Who may use one type only, and keeps what it has, is taken off that type beforehand.
        """
        self.effort["programs"] += 1
        alone = (rate == 0) & (held > 0) & ((speedup > 0).sum(axis=1) == 1)
        users, type_ = np.flatnonzero(alone), speedup[alone].argmax(axis=1)
        least = held * self.fair * (1 - slack)
        gpus = least[alone] / speedup[alone, type_]
        floor = np.where(alone, 0.0, least)
        taken = np.bincount(type_, weights=gpus, minlength=len(self.capacity))
        left = np.where(taken > 0, np.maximum(self.capacity - taken, 0.0), self.capacity)
        needy = (rate > 0) | (floor > 0)
        if (taken > self.capacity * (1 + REACHED)).any() or not ((speedup[needy] > 0) & (left > 0)).any(axis=1).all():
            raise NotSolved("users are to keep more than there is")
        raised = method(speedup, left, rate, floor=floor if floor.any() else None, demand=demand)
        raised.shares[users, type_] = gpus
        self._given_up = slack
        return raised

    def _leak(self) -> Array:
        """Return what users (n,) can gain by what they are barred from, as parts of their ratios."""
        return np.asarray(sum(self.leaks, np.zeros_like(self.fair)))

    def _caps(self, speedup: Array, open_: Array) -> Array:
        """Return the ratio (n,) that a user has with all of its demand on the fastest type that it may use."""
        if self.demand is None:
            return np.full(len(self.fair), INFINITY)
        # what there is of the fastest types limits a user as well, but that is for prices to say
        return np.where(open_, self.demand * speedup.max(axis=1) / self.fair, INFINITY)

    def _highest(self, speedup: Array, open_: Array, cap: Array) -> float:
        """Return a level that open users, each up to its cap, cannot all be above, and hardly more than they can be.

        At prices that prove targets too high, the level at which targets would cost no more than all GPUs do is still
        not too low, and is the next one to try.
        """
        start = np.where(open_, self.fair, 0.0)
        held = np.where(open_, 0.0, self.level) * self.fair * (1 - SLACK[0])
        floor = held if held.any() else None
        upper, values = bound_level(speedup, self.capacity, start, floor=floor, tolerance=COARSE)
        level = _affordable(values * self.fair, upper, cap, open_)
        for _ in range(MOST_STEPS):
            target = start * np.where(open_, np.minimum(cap, level), 0.0)
            upper, values = bound_level(
                speedup, self.capacity, target, floor=floor, demand=self.demand, tolerance=COARSE
            )
            following = _affordable(values * self.fair, upper, cap, open_)
            if not following < level * (1 - COARSE):
                return min(following, level)
            level = following
        return level

    def _held_down(self, raised: Raised, rising: Array) -> Array:
        """Return which users are at the level in every optimum, as far as can be told in floats; at least one."""
        push = np.where(rising, raised.values * self.fair, 0.0)
        worth = raised.values * self.fair * np.where(self.fixed_in > 0, self.level, raised.level) / raised.level
        gap = raised.gap + sum(float((worth * leak).max()) for leak in self.leaks) + 4 * ROUNDING
        with np.errstate(divide="ignore"):
            slack = np.where(rising, self._leak() + gap / push, INFINITY)
        # who can run on types only whose prices are no rounding pays for being raised, however little it weighs
        fixed = (slack <= TIGHT) | (rising & ~(self.usable & ~self._dear(raised)).any(axis=1))
        if not fixed.any():  # the values of all add up to one: no rounding can reach half of the largest
            fixed = push >= 0.5 * push.max()
        self.slack[fixed] = slack[fixed]
        return np.asarray(fixed)

    def _dear(self, raised: Raised) -> Array:
        """Return which types (k,) have prices that are no rounding."""
        spent = raised.prices * self.capacity
        return np.asarray(spent >= DEAR * spent.sum())

    def _bar(self, raised: Raised, speedup: Array) -> None:
        """Bar users from types that are sold out to others: what they could get of these is next to nothing.

        The excess is what all of them could buy together of what is dearer to them than what they hold.
        """
        excess = (raised.upper - raised.lower) + abs(raised.upper) * 4 * ROUNDING
        cost = raised.prices + raised.rents[:, None]
        dear = cost - raised.values[:, None] * speedup
        has = self.fair * np.where(self.fixed_in > 0, self.level, raised.level)
        with np.errstate(divide="ignore", invalid="ignore"):
            leak = np.where(dear > 0, speedup * excess / dear / has[:, None], INFINITY)
        # prices that are no rounding, and clearly higher than what the user would pay, bar whoever weighs little, too
        surely = self._dear(raised) & (dear >= CLEARLY * cost)
        barred = (speedup > 0) & ((leak <= BARRED) | surely) & ((speedup > 0).sum(axis=1) > 1)[:, None]
        self.usable &= ~barred
        self.leaks.append(np.where(barred, leak, 0.0).max(axis=1))


def _affordable(push: Array, spent: float, cap: Array, open_: Array) -> float:
    """Return the level at which all open users, each up to its cap, pay what is ``spent`` if a ratio costs ``push``."""
    push, caps = push[open_], cap[open_]
    order = np.argsort(caps, kind="stable")
    push, caps = push[order], caps[order]
    # at level t: the capped pay push * cap, the others push * t
    below = np.concatenate([[0.0], np.cumsum(push * np.where(np.isfinite(caps), caps, 0.0))])
    above = push.sum() - np.concatenate([[0.0], np.cumsum(push)])
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(above > 0, (spent - below) / above, INFINITY)[:-1]
    at = np.flatnonzero(levels <= caps)
    return float(levels[at[0]]) if len(at) else float(caps[-1])

"""Prices near the optimum by Newton's method, where users divide what they spend among cheap types.

Users divide it by a power of how cheap types are. The higher the power, the nearer are the prices that sell everything
to those of the optimum, and the fewer users there are that divide anything.

Source: the logit demand of McFadden, Conditional logit analysis of qualitative choice behavior, 1974.
"""

from __future__ import annotations

import numpy as np

from fairopt.deadline import left
from fairopt.methods.level.problem import LevelProblem, cheapest
from fairopt.program import Array

#: What a type that nobody runs on is worth at first, as a part of all.
UNUSED = 1e-9
#: The largest exponent of 2 that is a power by which users divide their spending.
MOST_SQUARES = 12
#: More users than this need prices one power sharper.
HANDFUL = 32
#: The most by which the logarithm of a price changes in a step at power 1; at higher powers it is less.
LONGEST = 1.0
#: On a path, a step changes how users divide what they spend by this power of e at most; after this it is there.
FARTHEST, THERE = 3.0, 3.0
#: So many steps are made to correct prices at first, and at each further power.
FIRST_STEPS, NEXT_STEPS = 8, 4
#: Users who spend less than this part elsewhere spend all on their cheapest type; with more than so many it is asked.
DIVIDED, CROWD = 3e-4, 100
#: It is worth while to leave out this part of the users.
MANY = 0.3
#: Of more users than this, those who clearly spend all on one type are left out before the first step.
VERY_MANY = 200_000
#: Parts below this are none, which is asked of powers with higher exponents than the second.
TINY, LOW = 1e-100, 4


def smoothed_prices(problem: LevelProblem, most: int = MOST_SQUARES) -> Array:
    """Return positive prices (k,) near the optimum, by Newton's method.

    Users divide what they spend by a power of how cheap types are, first the square, then twice as much in every step,
    to an exponent of 2 of ``most``. Where numbers are far apart the result may be no numbers.
    """
    capacity, size = problem.capacity, problem.size
    spending = _Spending(problem.need, size)
    prices = np.maximum((spending.speed / spending.speed.sum(axis=0)).mean(axis=1), UNUSED) / capacity
    prices /= prices @ capacity
    enough = len(size).bit_length() + (len(size) > HANDFUL)
    for squares in range(1, min(enough, most) + 1):
        spending.at(prices, squares)
        try:
            prices *= spending.change(prices * capacity)
        except np.linalg.LinAlgError:
            break
    return np.asarray(prices)


def follow(problem: LevelProblem, prices: Array, squares: int, top: int) -> Array:
    """Return the prices (k,) at 2 to the power of ``top``, or as far as steps lead, from those at ``squares``.

    Prices at a power are off by about a constant part of 1 / power. Errors: `OutOfTime`, with the prices by then.
    """
    spending, most = _Spending.divided(problem, prices, squares), FIRST_STEPS
    while (found := spending.corrected(prices, problem.capacity, squares, most)) is not None:
        prices = found
        left(found=prices)
        if squares >= top:
            break
        if len(spending.size) > CROWD:
            spending = spending.without_sure()
        squares, most = squares + 1, NEXT_STEPS
    return prices


class _Spending:
    """How users divide what they spend at prices: as ``part`` (k, n), by a power of 2 of how cheap types are.

    ``size`` (n,) is the throughput that each is to have; others hold ``load`` (k,) GPUs at all prices.
    ``total`` (n,) is the sum of each user's parts, of which the cheapest type's is 1, and ``least`` (n,) its price of
    a unit of throughput. ``worth`` (k, n) is the throughput that a unit of money buys. The arrays are used again.
    """

    def __init__(self, need: Array, size: Array, load: Array | float = 0.0) -> None:
        self.size, self._need, self._load = size, need, load
        self.speed, self._squares = 1.0 / need, 0
        self.worth, self.part = np.empty(need.shape), np.empty(need.shape)
        self.least, self.total = np.empty(need.shape[1]), np.empty(need.shape[1])
        self._none = np.empty(need.shape, dtype=bool)

    @classmethod
    def divided(cls, problem: LevelProblem, prices: Array, squares: int) -> _Spending:
        """Return the spending of a problem; of very many users without those who spend all on their cheapest type."""
        need, size = problem.need, problem.size
        if len(size) <= VERY_MANY:
            return cls(need, size)
        type_, best, second = cheapest(problem, prices)
        sure = best < second * DIVIDED ** (1.0 / (1 << squares))
        out, some = np.flatnonzero(sure), np.flatnonzero(~sure)
        load = np.bincount(type_[out], size[out] * need[type_[out], out], len(need))
        return cls(need.take(some, axis=1), size[some], load)

    def at(self, prices: Array, squares: int) -> None:
        """Set all to what they are at ``prices`` (k,) and the power of 2 with the exponent ``squares``."""
        part, least, self._squares = self.part, self.least, squares
        np.multiply(self.speed, (1.0 / prices)[:, None], out=self.worth)
        np.maximum.reduce(self.worth, axis=0, out=least)
        np.divide(1.0, least, out=least)
        np.multiply(self.worth, least, out=part)
        if squares > LOW:  # numbers that are far smaller would take many times as long
            np.less(part, TINY ** (1.0 / (1 << squares)), out=self._none)
            np.copyto(part, 0.0, where=self._none)
        for _ in range(squares):
            np.multiply(part, part, out=part)
        np.add.reduce(part, axis=0, out=self.total)

    def change(self, supply: Array) -> Array:
        """Return by what to multiply prices (k,): a step of Newton's method, not too far.

        ``supply`` (k,) is what the GPUs are worth, together 1. ``worth`` is lost.
        """
        spent = self.size * self.least
        spent /= spent.sum()
        longest = LONGEST / (1 << self._squares) ** 0.5
        step = self.step(spent, 0.0, supply)
        return np.asarray(np.exp(np.minimum(np.maximum(step, -longest), longest)))

    def step(self, spent: Array, fixed: Array | float, supply: Array) -> Array:
        """Return what Newton's method adds to the logarithms of prices (k,). ``worth`` is lost.

        Users have ``spent`` (n,), and others ``fixed`` (k,), together 1, as ``supply`` (k,) is.
        """
        part, power = self.part, 1 << self._squares
        each = spent / self.total
        divided = part @ each
        demand = divided + fixed
        each /= self.total
        change = np.multiply(part, each, out=self.worth) @ part.T * (1.0 + power) - demand[:, None] * demand
        change.ravel()[:: len(demand) + 1] -= divided * power - fixed + supply
        return np.asarray(np.linalg.solve(change, supply - demand))

    def without_sure(self) -> _Spending:
        """Return the same without those who spend all on their cheapest type, if they are many: they hold it."""
        sure = self.total < 1.0 + DIVIDED
        out, some = np.flatnonzero(sure), np.flatnonzero(~sure)
        if len(out) < MANY * len(sure):
            return self
        type_ = self.part.take(out, axis=1).argmax(axis=0)
        load = self._load + np.bincount(type_, self.size[out] * self._need[type_, out], len(self.part))
        return _Spending(self._need.take(some, axis=1), self.size[some], load)

    def corrected(self, prices: Array, capacity: Array, squares: int, most: int) -> Array | None:
        """Return prices (k,) near ``prices`` that sell everything; None where so many steps do not lead there."""
        for _ in range(most):
            self.at(prices, squares)
            spent, fixed, supply = self.size * self.least, self._load * prices, capacity * prices
            total = spent.sum() + fixed.sum()
            try:
                step = self.step(spent / total, fixed / total, supply / supply.sum())
            except np.linalg.LinAlgError:
                return None
            length = max(float(step.max()), -float(step.min())) * (1 << squares)
            if not length < np.inf:
                return None
            prices = prices * np.exp(step * (FARTHEST / max(length, FARTHEST)))
            if length <= THERE:
                return np.asarray(prices)
        return None

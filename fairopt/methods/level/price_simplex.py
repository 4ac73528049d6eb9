"""The optimum of markets without demands by a simplex method in prices: as many unknowns as types, whatever the users.

At given prices each user has one cheapest type, its *key*. A basis is the level and, for all types but one, a *pair*: a
user and a second type that is as cheap for it as its key, or a type without a price. Newton's method in smoothed prices,
where users divide what they spend among cheap types, gives prices to start from; at first, types are traded for each
other at these, and each step takes one such trade, or what has become negative, out of the basis.

Source: Dantzig and Van Slyke, Generalized upper bounding techniques, 1967, for the dual simplex method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.level.problem import LevelProblem
from fairopt.program import Array

#: Users divide their spending by these powers of how cheap types are, one power after another.
POWERS = (2, 2, 4, 8, 16, 32, 64, 128)
#: The most by which the logarithm of a price changes in a step at power 1; at higher powers it is less.
LONGEST = 1.0
#: Parts of a type below this are rounding, and so are changes of reduced costs below the second part of the largest.
NEGATIVE, STILL = 1e-11, 1e-12
#: A basis is given up after so many steps for each type.
MOST_STEPS = 12
#: What a column of the basis is where it is no pair of a user and a type.
TRADE, FREE = -2, -1
#: Reduced costs are at least this, so that a division by them gives a number.
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class PriceVertex:
    """``prices`` (k,), the ``level`` and ``shares`` (k, n) at the optimal vertex."""

    prices: Array
    level: float
    shares: Array


def smoothed_prices(problem: LevelProblem) -> Array:
    """Return positive prices (k,) near the optimum."""
    need, capacity, size = problem.need, problem.capacity, problem.size
    speed = 1.0 / need
    prices = (speed / speed.sum(axis=0)).mean(axis=1) / capacity
    diagonal = np.arange(len(prices))
    for power in POWERS:
        cost = need * prices[:, None]
        least = cost.min(axis=0)
        part = least / cost
        for _ in range(power.bit_length() - 1):  # all powers are powers of two, and squares are quick
            part *= part
        part /= part.sum(axis=0)
        spent = size * least
        total = float(spent.sum())
        part_spent = part * spent
        demand, supply = part_spent.sum(axis=1) / total, prices * capacity
        supply /= supply.sum()
        change = part_spent @ part.T * ((1 + power) / total) - demand[:, None] * demand + supply[:, None] * supply - 1.0
        change[diagonal, diagonal] -= demand * power + supply
        longest = LONGEST / power**0.5
        prices = prices * np.exp(np.linalg.solve(change, supply - demand).clip(-longest, longest))
    return prices


def price_vertex(problem: LevelProblem) -> PriceVertex | None:
    """Return the optimum of a ``problem`` without demands, None where steps lead nowhere: users tie, or numbers are off."""
    try:
        with np.errstate(all="ignore"):
            return _Basis(problem, smoothed_prices(problem)).settle()
    except np.linalg.LinAlgError:
        return None


class _Basis:
    """The state between two steps: the ``key`` of each user, and pairs of ``users`` and ``types``, one for each column.

    The first column is the level's. A last user, who needs nothing, stands for types without a price.
    """

    def __init__(self, problem: LevelProblem, prices: Array) -> None:
        k, n = problem.shape
        self.problem, self.capacity = problem, problem.capacity.tolist()
        self.speed = np.zeros((k, n + 1))
        np.divide(1.0, problem.need, out=self.speed[:, :n])
        self.everybody = np.arange(n)
        self.key = np.append((problem.need * prices[:, None]).argmin(axis=0), 0)
        self.key_need = np.append(problem.need[self.key[:n], self.everybody], 0.0)
        self.users, self.types = [TRADE] * k, list(range(k))
        self.matrix = np.eye(k)
        self.matrix[0, 1:] = -prices[1:] / prices[0]

    def settle(self) -> PriceVertex | None:
        """Step until nothing is negative."""
        k, n = self.problem.shape
        rate, floor, capacity = self.problem.rate, self.problem.floor, self.problem.capacity
        for _ in range(MOST_STEPS * k):
            key, need = self.key[:n], self.key_need[:n]
            self.matrix[:, 0] = np.bincount(key, rate * need, k)
            inverse = np.linalg.inv(self.matrix)
            amounts = inverse @ (capacity - np.bincount(key, floor * need, k))
            own = self._left_to_keys(amounts.tolist())
            column, user = self._most_negative(amounts.tolist(), own)
            if user is not None:
                self._exchange(user, amounts)
            elif column is None:
                return self._vertex(inverse[0], amounts.tolist(), own)
            elif not self._step(column, inverse[0], inverse[column] if amounts[column] < 0 else -inverse[column]):
                break
        return None

    def _left_to_keys(self, amounts: list[float]) -> dict[int, float]:
        """Return what users of pairs have of their keys, in GPUs, when they have ``amounts`` of the pairs' types."""
        own: dict[int, float] = {}
        for user, type_, amount in zip(self.users, self.types, amounts, strict=True):
            if user >= 0:
                target = self.problem.floor[user] + self.problem.rate[user] * amounts[0]
                has = own.get(user, target * self.key_need[user])
                own[user] = has - amount * self.speed[type_, user] * self.key_need[user]
        return own

    def _most_negative(self, amounts: list[float], own: dict[int, float]) -> tuple[int | None, int | None]:
        """Return the column, or the user whose key, is the most negative part of a type; trades are negative anyway."""
        least, column, user = -NEGATIVE, None, None
        for place in range(1, len(amounts)):
            part = amounts[place] / self.capacity[self.types[place]]
            part = -abs(part) if self.users[place] == TRADE else part
            if part < least:
                least, column = part, place
        for each, amount in own.items():
            part = amount / self.capacity[self.key[each]]
            if part < least:
                least, user = part, each
        return column, user

    def _exchange(self, user: int, amounts: Array) -> None:
        """Make the type of a user's largest pair its key, and its key the type of that pair."""
        column = max((place for place, each in enumerate(self.users) if each == user), key=lambda place: amounts[place])
        self.key[user], self.types[column] = self.types[column], self.key[user]
        self.key_need[user] = self.problem.need[self.key[user], user]
        for place, each in enumerate(self.users):
            if each == user:
                self._write(place)

    def _step(self, column: int, prices: Array, way: Array) -> bool:
        """Move prices along ``way`` (k,) until the first user would choose otherwise, who takes over the column."""
        paid, change = prices[self.key] * self.key_need, way[self.key] * self.key_need
        dear, falls = prices[:, None] - self.speed * paid, way[:, None] - self.speed * change
        dear[self.key[:-1], self.everybody] = np.inf
        for place, user in enumerate(self.users):
            if place and place != column and user != TRADE:
                dear[self.types[place], user] = np.inf
        falls[falls > -STILL * np.abs(way).max()] = 0.0
        speed_of_fall = falls / np.maximum(dear, LEAST)
        type_, user = divmod(int(speed_of_fall.argmin()), len(paid))
        if not speed_of_fall[type_, user] < 0:
            return False
        self.users[column] = user if self.speed[type_, user] > 0 else FREE
        self.types[column] = type_
        self._write(column)
        return True

    def _write(self, column: int) -> None:
        """Set what one GPU of the column's type takes of all types, now that the user needs less of its key."""
        user, type_ = self.users[column], self.types[column]
        entries = self.matrix[:, column]
        entries[:] = 0.0
        entries[type_] = 1.0
        if user >= 0:
            entries[self.key[user]] -= self.speed[type_, user] * self.key_need[user]

    def _vertex(self, prices: Array, amounts: list[float], own: dict[int, float]) -> PriceVertex:
        k, n = self.problem.shape
        shares = np.zeros((k, n))
        target = self.problem.floor + self.problem.rate * amounts[0]
        shares[self.key[:n], self.everybody] = target * self.key_need[:n]
        for user, amount in own.items():
            shares[self.key[user], user] = max(amount, 0.0)
        for user, type_, amount in zip(self.users, self.types, amounts, strict=True):
            if user >= 0:
                shares[type_, user] = max(amount, 0.0)
        return PriceVertex(np.maximum(prices, 0.0), amounts[0], shares)

"""The optimum of markets without demands by a simplex method in prices: as many unknowns as types, whatever the users.

At given prices each user has one cheapest type, its *key*. A basis is the level and, for all types but one, a *pair*: a
user and a second type that is as cheap for it as its key, or a type without a price. Newton's method in smoothed
prices, where users divide what they spend among cheap types, says near which prices the optimum is. The pairs nearest
to a tie there are mostly its basis. Where they are not, types are traded for each other at these prices at first, and
each step takes one such trade, or what has become negative, out of the basis.

Where there is another optimum this is said: which of several is found hangs on last digits. Of many users those near a
tie are solved alone, then all others are asked what they would choose.

Source: Dantzig and Van Slyke, Generalized upper bounding techniques, 1967, for the dual simplex method; Bixby, Gregory,
Lustig, Marsten and Shanno, Very large-scale linear programming: a case study in combining interior point and simplex
methods, 1992 (sifting).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.methods.level.problem import LevelPoint, LevelProblem, choose, floored, nearest
from fairopt.methods.level.smoothing import follow, smoothed_prices
from fairopt.program import Array

#: Parts of a type below this are rounding, and so are changes of reduced costs below the second part of the largest.
NEGATIVE, STILL = 1e-11, 1e-12
#: Steps for each type after which a guessed basis is given up, and any.
FEW_STEPS, MOST_STEPS = 3, 4
#: So many pairs of a guessed basis are changed at most.
MENDED = 12
#: Pairs are sought among so many for each type.
PAIRS = 4
#: A guess may be so much of the highest price off; what is dearer by less than this part ties.
DEARER, CLEARLY = 1e-13, 1e-9
#: What a column of the basis is where it is no pair of a user and a type.
TRADE, FREE = -2, -1
#: Reduced costs are at least this, so that a division by them gives a number.
LEAST = 1e-300
#: Prices of up to so many users need no sample.
FEW = 1500
#: Prices of a sample of at least so many, and one user in so many, come first.
SAMPLE, SAMPLED = 250, 8
#: So many users for each type are near a tie.
NEAREST = 20
#: Prices are made so sharp that one user in so many divides what it spends, or fewer.
SHARP = 4
#: The part of the way to smoothed prices by which other prices are moved, to where users do not tie.
ASIDE = 0.01
#: How often users near a tie are sought.
ROUNDS = 3
#: GPUs of each type (k,), or 0 of all.
Amount = Array | float


def bound(problem: LevelProblem, prices: Array) -> float:
    """Return a level that none is above, but for rounding, by positive ``prices`` (k,)."""
    value = (problem.need * prices[:, None]).min(axis=0)
    return float((prices @ problem.capacity - problem.floor @ value) / (problem.rate @ value))


def price_vertex(problem: LevelProblem, prices: Array, held: Amount = 0.0, rising: Amount = 0.0) -> LevelPoint | None:
    """Return an optimum without demands, from positive ``prices`` (k,) near it; others hold ``held + rising * level``.

    None where steps lead nowhere: users tie, or numbers are far apart.
    """
    basis = _Basis(problem, prices, held, rising)
    basis.tie(prices)
    inverse = basis.mended()
    found = None if inverse is None else basis.settle(FEW_STEPS, inverse)
    if found is None:
        basis = _Basis(problem, prices, held, rising)
        found = basis.settle(MOST_STEPS)
    return found


def near_prices(problem: LevelProblem) -> Array:
    """Return positive prices (k,) near the optimum of a problem without demands. Errors: `OutOfTime`, with prices."""
    n = len(problem.rate)
    if n <= FEW:
        return smoothed_prices(problem)
    sample = problem.sample(max(n // SAMPLED, SAMPLE))
    # the fewer users stand for all, the less do their prices say
    squares = 3 + len(sample.rate).bit_length() // 2
    prices = follow(sample, smoothed_prices(sample, squares), squares, squares)
    return follow(problem, prices, squares, (SHARP * n).bit_length())


def sifted(problem: LevelProblem, smoothed: Array) -> LevelPoint | None:
    """Return an optimum of a problem without demands, from ``smoothed`` prices (k,) near it.

    Where it is not the only one, its prices are such that users do not tie. None where the steps lead nowhere: users
    tie, or numbers are far apart.
    """
    k, n = problem.shape
    if n <= NEAREST * k:
        at = price_vertex(problem, smoothed)
        return None if at is None else _told(problem, replace(at, active=np.arange(n)), smoothed)
    prices, steps = smoothed, 0
    for _ in range(ROUNDS):
        choice = choose(problem, prices, 1.0)
        core = nearest(choice.margin, NEAREST * k)
        active = np.flatnonzero(core)
        at = price_vertex(problem.select(active), prices, *choice.held(~core, k))
        if at is None:
            return None
        steps += at.steps
        prices = floored(problem, at.prices, 0.0)
        cost = problem.need * prices[:, None]
        own = cost[choice.type[0], np.arange(n)]
        own[active] = 0.0
        only = np.count_nonzero(cost <= own / (1 - CLEARLY)) == n - len(active)
        if only or not (cost < own / (1 + CLEARLY)).any():
            found = replace(at, only=at.only and only, steps=steps, choice=choice, active=active)
            return _told(problem, found, smoothed)
    return None


def _told(problem: LevelProblem, at: LevelPoint, smoothed: Array) -> LevelPoint:
    """Return an optimum if it is the only one, else with prices where users do not tie."""
    if at.only:
        return at
    prices = floored(problem, at.prices, 0.0)
    # at prices where users tie, what they choose hangs on last digits
    return replace(at, prices=prices * (smoothed / prices) ** ASIDE)


class _Basis:
    """The state between two steps: the ``key`` of each user, and pairs of ``users`` and ``types``, one for each column.

    The first column is the level's. A last user, who needs nothing, stands for types without a price.
    """

    def __init__(self, problem: LevelProblem, prices: Array, held: Amount, rising: Amount) -> None:
        k, n = problem.shape
        self._supply, self._rising = problem.capacity - held, rising
        self.problem, self.capacity, self.everybody = problem, problem.capacity.tolist(), np.arange(n)
        self.speed = np.zeros((k, n + 1))
        np.divide(1.0, problem.need, out=self.speed[:, :n])
        self.key = np.append((problem.need * prices[:, None]).argmin(axis=0), 0)
        self.key_need = np.append(problem.need[self.key[:n], self.everybody], 0.0)
        self.users, self.types = [TRADE] * k, list(range(k))
        self.matrix = np.eye(k)
        self.matrix[0, 1:] = -prices[1:] / prices[0]
        self._set_level()

    def tie(self, prices: Array) -> None:
        """Make pairs of those that are nearest to a tie at ``prices``, where they join types that none join yet."""
        k, n = self.problem.shape
        key = self.key[:n]
        cost = self.problem.need * prices[:, None]
        margin = cost / cost[key, self.everybody]
        margin[key, self.everybody] = np.inf
        nearest, most = margin.ravel(), PAIRS * k
        some = nearest.argpartition(most)[:most] if nearest.size > most else np.arange(nearest.size)
        part, column = list(range(k)), 1
        for place in some[nearest[some].argsort()].tolist():
            type_, user = divmod(place, n)
            mine, other = part[type_], part[key[user]]
            if mine != other and nearest[place] < np.inf:
                part = [other if each == mine else each for each in part]
                self.users[column], self.types[column] = user, type_
                self._write(column)
                column += 1

    def mended(self) -> Array | None:
        """Let users choose what is cheaper than the basis says, pair by pair, as in the primal simplex method.

        Returns the inverse of the basis that is left when nobody would choose otherwise; None where none is found.
        """
        for _ in range(MENDED):
            try:
                inverse = np.linalg.inv(self.matrix)
            except np.linalg.LinAlgError:
                return None
            dear = self._dear(inverse[0])
            type_, user = divmod(int(dear.argmin()), len(self.key))
            if dear[type_, user] >= -DEARER * inverse[0].max():
                return np.asarray(inverse)
            taken = inverse[1:, type_] - inverse[1:, self.key[user]] * (self.speed[type_, user] * self.key_need[user])
            amounts = np.maximum(inverse[1:] @ self._left, 0.0)
            enough = np.where(taken > STILL, amounts / np.maximum(taken, STILL), np.inf)
            if not (enough < np.inf).any():  # with one type there is no other column
                return None
            self._replace(int(enough.argmin()) + 1, type_, user)
        return None

    def _set_level(self) -> None:
        """Set the column of the level, and what is left of the GPUs at level 0 (k,)."""
        k, n = self.problem.shape
        key, need = self.key[:n], self.key_need[:n]
        self.matrix[:, 0] = np.bincount(key, self.problem.rate * need, k) + self._rising
        self._left = self._supply - np.bincount(key, self.problem.floor * need, k)

    def _replace(self, column: int, type_: int, user: int) -> None:
        """Put a pair in a column; a user that cannot run on the type stands for the type without a price."""
        self.users[column] = user if self.speed[type_, user] > 0 else FREE
        self.types[column] = type_
        self._write(column)

    def _dear(self, prices: Array, leaving: int = 0) -> Array:
        """Return by how much each type is too dear for each user (k, n + 1), infinity in the basis but ``leaving``."""
        dear: Array = prices[:, None] - self.speed * (prices[self.key] * self.key_need)
        dear[self.key[:-1], self.everybody] = np.inf
        for place, user in enumerate(self.users):
            if place and place != leaving and user != TRADE:
                dear[self.types[place], user] = np.inf
        return dear

    def _is_only(self, prices: Array) -> bool:
        """Whether all users would pay clearly more at ``prices`` for what is not in the basis."""
        dear = self._dear(prices)[:, :-1]
        return bool((dear > CLEARLY * prices[:, None])[self.speed[:, :-1] > 0].all())

    def settle(self, most: int, inverse: Array | None = None) -> LevelPoint | None:
        """Step until nothing is negative, at most ``most`` times for each type; None where that leads nowhere.

        ``inverse`` is that of the basis at first, where it is known.
        """
        for steps in range(most * len(self.types)):
            try:
                inverse = np.linalg.inv(self.matrix) if inverse is None or steps else inverse
            except np.linalg.LinAlgError:
                break
            amounts = inverse @ self._left
            own = self._left_to_keys(amounts.tolist())
            column, user = self._most_negative(amounts.tolist(), own)
            if user is not None:
                self._exchange(user, amounts)
            elif column is None:
                prices, shares = np.maximum(inverse[0], 0.0), self._shares(amounts.tolist(), own)
                return LevelPoint(prices, float(amounts[0]), shares, steps=steps, only=self._is_only(prices))
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
        self._set_level()
        for place, each in enumerate(self.users):
            if each == user:
                self._write(place)

    def _step(self, column: int, prices: Array, way: Array) -> bool:
        """Move prices along ``way`` (k,) until the first user would choose otherwise, who takes over the column."""
        dear = self._dear(prices, column)
        falls = way[:, None] - self.speed * (way[self.key] * self.key_need)
        falls[falls > -STILL * np.abs(way).max()] = 0.0
        speed_of_fall = falls / np.maximum(dear, LEAST)
        type_, user = divmod(int(speed_of_fall.argmin()), len(self.key))
        if not speed_of_fall[type_, user] < 0:
            return False
        self._replace(column, type_, user)
        return True

    def _write(self, column: int) -> None:
        """Set what one GPU of the column's type takes of all types, now that the user needs less of its key."""
        user, type_ = self.users[column], self.types[column]
        entries = self.matrix[:, column]
        entries[:] = 0.0
        entries[type_] = 1.0
        if user >= 0:
            entries[self.key[user]] -= self.speed[type_, user] * self.key_need[user]

    def _shares(self, amounts: list[float], own: dict[int, float]) -> Array:
        k, n = self.problem.shape
        shares = np.zeros((k, n))
        target = self.problem.floor + self.problem.rate * amounts[0]
        shares[self.key[:n], self.everybody] = target * self.key_need[:n]
        for user, amount in own.items():
            shares[self.key[user], user] = max(amount, 0.0)
        for user, type_, amount in zip(self.users, self.types, amounts, strict=True):
            if user >= 0:
                shares[type_, user] = max(amount, 0.0)
        return shares

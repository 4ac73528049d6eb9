"""Maximal Nash welfare where demands bind: rational shares, prices and demand duals as near to the optimum as one asks.

At an optimum every user holds best buys at prices p and a demand dual q_i of its own, which is positive only at its
demand. Once it is known who may buy what, these equations are linear in p: two best buys of a user without a demand
dual stand in the ratio of its speedups; those of a user with a demand dual lie on a line over its speedups, of slope
w_i / u_i. What is left is a smooth convex problem of at most one unknown a type,

    min p.m + sum_i q_i(p) d_i - w_i log (w_i / u_i)(p),

which Newton's method solves to any number of digits. Shares follow from one exact linear program over the best buys.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from fairopt.deadline import left
from fairopt.methods.eisenberg_gale.best_parts import BestParts
from fairopt.methods.eisenberg_gale.bounds import UtilityBounds, utility_bounds
from fairopt.methods.eisenberg_gale.equations import ONE, ZERO, echelon, fraction, matrix, solutions
from fairopt.problem import Market
from fairopt.program import INFINITY, Array

#: How much worse than a best buy a type may look in floats and be one, as a part of its cost, and which part of what is
#: paid is nothing; tried in turn.
NEAR = ((1e-7, 1e-7), (1e-7, 0.0), (1e-5, 1e-5), (1e-9, 1e-9), (1e-11, 1e-11), (1e-3, 1e-3), (1e-13, 1e-13))
#: Costs that differ by no more than this part are the same up to rounding.
TIED = 1e-12
#: Digits beyond those asked for, which rounding may use up.
SPARE = 16
#: Bits of a price that may be any in a range.
SIMPLE = 20
MOST_STEPS = 60
#: So often who reaches its demand is corrected.
MOST_CHANGES = 20
#: Up to so many users with a demand dual and two best buys, prices are tried for being simple fractions that are
#: optimal.
MOST_TRIED = 200


@dataclass(frozen=True, eq=False)
class NearOptimum:
    """Exact ``shares`` (n, k), ``prices`` (k,) and ``demand_duals`` (n,), and what they prove of the optimum."""

    shares: Array
    prices: Array
    demand_duals: Array
    bounds: UtilityBounds

    @classmethod
    def of(cls, market: Market, shares: Array, prices: Array, demand_duals: Array) -> NearOptimum:
        """Return what these prove."""
        return cls(shares, prices, demand_duals, utility_bounds(market, shares, prices, demand_duals))


def near_optimum(market: Market, shares: Array, prices: Array, demand_duals: Array, digits: int) -> NearOptimum:
    """Return what can be proved from a draft in floats: utilities to so many ``digits``, or as near as it comes.

    ``market`` is in Fractions. The draft's ``prices`` (k,) and ``demand_duals`` (n,) suggest who buys what. Where no
    such guess leads to an optimum, the draft itself is bounded, its ``shares`` (n, k) scaled down into what there is.
    """
    found = []
    for near in NEAR:
        solved: NearOptimum | _Buys | None = _Buys.near(market, prices, demand_duals, *near)
        for _ in range(MOST_CHANGES):
            left()
            if not isinstance(solved, _Buys):
                break
            solved = solved.solved(prices, digits)
        if isinstance(solved, NearOptimum):
            found.append(solved)
            if solved.bounds.error * 10**digits <= 1:
                return solved
    return min([*found, _corrected(market, shares, prices, demand_duals)], key=lambda near: near.bounds.error)


def _corrected(market: Market, shares: Array, prices: Array, demand_duals: Array) -> NearOptimum:
    """Return the fractions that a draft's numbers are, with shares that break nothing."""
    usable = (market.speedup > 0) & (market.capacity > 0)
    exact = np.where(usable, _fractions(np.maximum(shares, 0.0)), np.array(ZERO))
    limited = market.limit < INFINITY
    over = [sum(column, ZERO) / there for column, there in zip(exact.T, market.capacity, strict=True) if there]
    over += [sum(exact[i], ZERO) / market.limit[i] for i in np.flatnonzero(limited)]
    price, demand_dual = (
        _fractions(np.maximum(prices, 0.0)),
        _fractions(np.where(limited, np.maximum(demand_duals, 0.0), 0.0)),
    )
    return NearOptimum.of(market, exact / max(ONE, *over), price, demand_dual)


def _fractions(array: Array) -> Array:
    return np.array([Fraction(value) for value in array.ravel().tolist()], dtype=object).reshape(array.shape)


def _short(value: Fraction, bits: int) -> Fraction:
    """Return a number with so many leading bits."""
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    if shift < 0:
        return Fraction(value.numerator // (value.denominator << -shift) << -shift)
    return Fraction((value.numerator << shift) // value.denominator, 1 << shift)


@dataclass(frozen=True, eq=False)
class _Buys:
    """Who may buy what: ``best`` (n lists) are the best buys of each user, the slowest first.

    ``rented`` (n,) says which users have a demand dual; types in ``free`` (k,) cost nothing.
    """

    market: Market
    best: list[list[int]]
    rented: list[bool]
    free: Array

    @classmethod
    def near(cls, market: Market, prices: Array, demand_duals: Array, near: float, nothing: float) -> _Buys:
        """Return what prices and demand duals in floats suggest."""
        floats = market.as_(float)
        usable = (floats.speedup > 0) & (floats.capacity > 0)
        with np.errstate(all="ignore"):
            cost = np.where(usable, (prices + demand_duals[:, None]) / floats.speedup, INFINITY)
            least = cost.min(axis=1, keepdims=True)
            pays = np.where(usable, floats.speedup * least, 0.0)
            # a type costs p_j + q, and were it as good as the best buy a, (p_a + q) s_j / s_a: compared term by term,
            # since the demand dual may be so much larger than the prices that it hides them
            cheap = np.where(cost <= least * (1 + TIED), prices, INFINITY).argmin(axis=1)[:, None]
            ratio = floats.speedup / np.take_along_axis(floats.speedup, cheap, axis=1)
            terms = np.array(
                [np.broadcast_to(prices, cost.shape), -prices[cheap] * ratio, demand_duals[:, None] * (1 - ratio)]
            )
            found = usable & (terms.sum(axis=0) <= near * np.abs(terms).max(axis=0))
            # beside the most that is paid a demand dual, or a price, may look like nothing, and matter for the cheapest
            paid = np.where(found, pays, pays.max())
            rented = (demand_duals > nothing * paid.min(axis=1)) & (floats.limit < INFINITY)
            free = prices <= nothing * paid.min(axis=0)
        rows = zip(found, market.speedup, strict=True)
        best = [sorted(np.flatnonzero(row).tolist(), key=speed.__getitem__) for row, speed in rows]
        return cls(market, best, rented.tolist(), free | ~found.any(axis=0))

    def solved(self, prices: Array, digits: int) -> NearOptimum | _Buys | None:
        """Return the best allocation that buys only these types, or who may buy what instead, or None for neither."""
        if not all(self.best):  # numbers that are beyond floats suggest nothing
            return None
        if any(
            not demand_dual and self.free[types].any()
            for types, demand_dual in zip(self.best, self.rented, strict=True)
        ):
            return None
        found = self._prices(prices, digits)
        if found is None or min(found) < 0:
            return None
        slopes = [self._slope(i, found) for i in range(len(self.best))]
        if min(slopes) <= 0:
            return None
        paid = [slope * self.market.speedup[i, self.best[i][0]] for i, slope in enumerate(slopes)]
        demand_duals = [cost - found[types[0]] for cost, types in zip(paid, self.best, strict=True)]
        if wrong := [i for i, slope in enumerate(slopes) if demand_duals[i] < 0 or self._beyond(i, slope)]:
            return self._switched(wrong)
        shares = self._shares(found, slopes)
        return (
            None if shares is None else NearOptimum.of(self.market, shares, found, np.array(demand_duals, dtype=object))
        )

    def _beyond(self, i: int, slope: Fraction) -> bool:
        """Whether user i, without a demand dual, would be worth more at this slope than its whole demand."""
        market = self.market
        most = market.limit[i]
        return (
            not self.rented[i]
            and most < INFINITY
            and market.weight[i] > slope * most * market.speedup[i, self.best[i][-1]]
        )

    def _switched(self, users: list[int]) -> _Buys | None:
        """Return the same with a demand dual for those of these users that had none, who then buy what is fastest.

        Those that had one lose it; None where one of them buys several types.
        """
        best, rented = list(self.best), list(self.rented)
        for i in users:
            if rented[i] and len(best[i]) > 1:
                return None
            best[i], rented[i] = best[i][-1:], not rented[i]
        return replace(self, best=best, rented=rented)

    # -- prices --------------------------------------------------------------------------------------------------------
    def _apart(self, i: int) -> Fraction:
        """Return by how much user i's fastest best buy is faster than its slowest."""
        speed, types = self.market.speedup[i], self.best[i]
        return Fraction(speed[types[-1]] - speed[types[0]])

    def _slope(self, i: int, prices: Array) -> Fraction:
        """Return w_i / u_i at ``prices``, what a unit of utility is worth to user i."""
        market, low, high = self.market, self.best[i][0], self.best[i][-1]
        if not self.rented[i]:
            return Fraction(prices[low] / market.speedup[i, low])
        if apart := self._apart(i):
            return Fraction((prices[high] - prices[low]) / apart)
        return Fraction(market.weight[i] / (market.speedup[i, low] * market.limit[i]))

    def _relations(self) -> set[tuple[tuple[int, Fraction], ...]]:
        """Return the equations between prices that make these types best buys: places and coefficients of each."""
        found: set[tuple[tuple[int, Fraction], ...]] = {((j, ONE),) for j in np.flatnonzero(self.free).tolist()}
        for i, types in enumerate(self.best):
            speed, apart, low, high = self.market.speedup[i], self._apart(i), types[0], types[-1]
            for j in types[1:]:
                row: dict[int, Fraction] = {low: -ONE, j: ONE}
                if not self.rented[i]:
                    row[low] = -speed[j] / speed[low]
                elif apart and j != high:
                    part = (speed[j] - speed[low]) / apart
                    row |= {low: part - 1, high: -part}
                elif apart:
                    continue  # this one gives the slope
                found.add(tuple(sorted((at, value) for at, value in row.items() if value)))
        return found

    def _prices(self, prices: Array, digits: int) -> Array | None:
        """Return the prices (k,) at which the dual is least, to so many ``digits``; None where Newton's method fails.

        The search begins at ``prices`` in floats.
        """
        dual = _Dual.of(self)
        there, money = self.market.capacity, sum(self.market.weight, ZERO)
        # a price of nothing that is not free begins at the most that it can be
        t = [Fraction(float(prices[j])) or (money / there[j] if there[j] else ONE) for j in dual.loose]
        # prices that no logarithm speaks of are nothing where GPUs are left over; else they are not unique: they stay
        # where they begin, and may be simple
        over = [sum(column * dual.linear, ZERO) > 0 for column in dual.basis.T]
        t = [at if i in dual.curved else ZERO if over[i] else _short(at, SIMPLE) for i, at in enumerate(t)]
        weights = self.market.weight
        bits = int((digits + SPARE + len(str(int(max(weights) / min(weights))))) * 3.33)
        for _ in range(MOST_STEPS):
            left()
            if (moved := dual.step(t, bits)) is None:
                return None
            step, size = moved
            t = [_short(at + by / max(ONE, 2 * size), 2 * bits) for at, by in zip(t, step, strict=True)]
            if size * 2 ** (bits // 2) < 1:
                break
        else:
            return None
        if len(dual.pairs) <= MOST_TRIED:
            simple = [at.limit_denominator(10 ** (digits // 2)) for at in t]
            slope = dual.gradient(simple, None)
            t = [at if off else plain for at, plain, off in zip(t, simple, slope, strict=True)]
        return dual.prices([_short(at, bits) if at.denominator >> bits // 2 else at for at in t])

    # -- shares --------------------------------------------------------------------------------------------------------
    def _shares(self, prices: Array, slopes: list[Fraction]) -> Array | None:
        """Return shares (n, k) that give all users nearly what the slopes say, and sell all that has a price."""
        market, weight = self.market, self.market.weight
        alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for i, types in enumerate(self.best):
            ratio = market.limit[i] / weight[i] if market.limit[i] < INFINITY else INFINITY
            alike[(self.rented[i], ratio, *types, *(market.speedup[i, types] if self.rented[i] else ()))].append(i)
        program = BestParts(market.capacity, self.free | (prices == 0))
        for users in alike.values():
            i, money = users[0], sum(weight[users], ZERO)
            for j in self.best[i]:
                program.buy(j, sum(market.limit[users], ZERO) if self.rented[i] else money / prices[j])
            if self.rented[i]:
                program.gpus([ONE for _ in self.best[i]], ONE)
            elif market.limit[i] < INFINITY:
                program.gpus([weight[i] / prices[j] / market.limit[i] for j in self.best[i]], ZERO)
            if not self.rented[i] or self._apart(i):  # else whatever it buys is worth the same
                per_part = slopes[i] * market.limit[i] / weight[i] if self.rented[i] else None
                program.worth([ONE if per_part is None else per_part * market.speedup[i, j] for j in self.best[i]])
        parts = program.solved()
        if parts is None:
            return None
        shares, place = np.full(market.shape, ZERO, dtype=object), 0
        for users in alike.values():
            for j in self.best[users[0]]:
                for i in users:
                    shares[i, j] = parts[place] * (market.limit[i] if self.rented[i] else weight[i] / prices[j])
                place += 1
        return shares


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual as a function of prices p = ``basis`` t: linear, less ``money`` (k,) times log p, less the pairs' terms.

    ``linear`` (k,) are its coefficients; ``loose`` places of p are t itself. A pair (high, low, weight) has the term
    - weight log(p_high - p_low).
    """

    basis: Array
    loose: list[int]
    linear: Array
    money: Array
    pairs: list[tuple[int, int, Fraction]]

    @classmethod
    def of(cls, buys: _Buys) -> _Dual:
        market = buys.market
        basis, loose = solutions(len(market.types), buys._relations())
        linear, money = market.capacity * ONE, np.full(len(market.types), ZERO, dtype=object)
        pairs: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for i, types in enumerate(buys.best):
            low, high, apart = types[0], types[-1], buys._apart(i)
            if not buys.rented[i]:
                money[low] += market.weight[i]
                continue
            linear[low] -= market.limit[i]
            if apart:  # q = slope s_low - p_low
                part = market.speedup[i, low] / apart * market.limit[i]
                linear[high] += part
                linear[low] -= part
                pairs[high, low] += market.weight[i]
        return cls(basis, loose, linear, money, [(*ends, weight) for ends, weight in pairs.items()])

    @cached_property
    def rows(self) -> list[Array]:
        """What the logarithms are of, as coefficients of t."""
        rows = [self.basis[j] for j, money in enumerate(self.money) if money]
        return rows + [self.basis[high] - self.basis[low] for high, low, _ in self.pairs]

    @cached_property
    def curved(self) -> list[int]:
        """The places of t that Newton's method moves: the dual is strictly convex in these."""
        return echelon([list(row) for row in self.rows], len(self.loose))[1]

    def prices(self, t: list[Fraction]) -> Array:
        return np.array([sum((x * at for x, at in zip(row, t, strict=True) if x), ZERO) for row in self.basis])

    def gradient(self, t: list[Fraction], bits: int | None) -> list[Fraction]:
        """Return the gradient in t, with terms of so many ``bits``, or exactly; 1 everywhere outside of the domain."""
        p, slope = self.prices(t), self.linear.copy()
        terms: list[tuple[tuple[int, int | None], Fraction, Fraction]]
        terms = [((j, None), p[j], money) for j, money in enumerate(self.money) if money]
        terms += [((high, low), p[high] - p[low], weight) for high, low, weight in self.pairs]
        if any(value <= 0 for _, value, _ in terms):
            return [ONE] * len(t)
        for (up, down), value, weight in terms:
            rate = weight / value if bits is None else _short(weight / value, bits)
            slope[up] -= rate
            if down is not None:
                slope[down] += rate
        return [sum((x * y for x, y in zip(column, slope, strict=True) if x), ZERO) for column in self.basis.T]

    def step(self, t: list[Fraction], bits: int) -> tuple[list[Fraction], Fraction] | None:
        """Return Newton's step, and the most by which it changes any logarithm; None where there is none."""
        p, size, rows, curved = self.prices(t), len(t), self.rows, self.curved
        weights = [*(money for money in self.money if money), *(weight for _, _, weight in self.pairs)]
        values = [sum((x * at for x, at in zip(row, t, strict=True) if x), ZERO) for row in rows]
        if any(value <= 0 for value in values) or min(p, default=ZERO) < 0:
            return None
        hessian = [[ZERO] * len(curved) for _ in curved]
        for row, value, weight in zip(rows, values, weights, strict=True):
            rate = _short(weight / value**2, bits)
            for a, i in enumerate(curved):
                for b, j in enumerate(curved):
                    if row[i] and row[j]:
                        hessian[a][b] += rate * row[i] * row[j]
        slope = self.gradient(t, 2 * bits)
        step = [ZERO] * size
        if curved:
            right = matrix([[-slope[i]] for i in curved], 1)
            try:
                moved = matrix(hessian, len(curved)).solve(right)
            except ZeroDivisionError:
                return None
            for a, i in enumerate(curved):
                step[i] = _short(fraction(moved[a, 0]), 2 * bits)
        changes = (sum((x * by for x, by in zip(row, step, strict=True) if x), ZERO) for row in rows)
        return step, max((abs(by / value) for by, value in zip(changes, values, strict=True)), default=ZERO)

"""What prices prove of shares: an equilibrium, of which maximal Nash welfare follows, or in floats a bound on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, fsum, isqrt, log
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.methods.result import proven
from fairopt.numbers import Arithmetic, arithmetic
from fairopt.problem import Market
from fairopt.program import INFINITY, ROUNDING, Array, Number

#: NumPy's logarithm is off by at most four units in the last place; here twice that.
LOGARITHM = 16 * ROUNDING
#: Outside of this range results may have underflowed or overflowed, which the factors below do not count.
SMALLEST, LARGEST = 1e-250, 1e250
#: The name in `Solution.effort` of the gap of the weighted mean of log u_i, which unlike the objective has no unit.
GAP_PER_WEIGHT = "gap per weight"
#: Sums of exact numbers are rounded to so many bits behind the point, where that is precise enough.
FINE = 2_048


@dataclass(frozen=True, eq=False)
class UtilityBounds:
    """At every allocation of maximal Nash welfare user i's utility lies between ``lower[i]`` and ``upper[i]``.

    Shapes (n,), in Fractions. ``gap`` is by how much the sum of w_i log u_i can be larger than that of the shares. With
    ``costs`` (n,), a price of a unit of utility, something proves the most that all utilities cost: prices and demand
    duals, or ``duals`` (m,) of the rows that shares keep; `around_optimum` says what follows.
    """

    costs: Array
    lower: Array
    upper: Array
    gap: Number
    duals: Array | None = None

    @property
    def error(self) -> Number:
        """The widest of the intervals, as a part of its lower end; 0 where all utilities are known exactly."""
        pairs = zip(self.lower, self.upper, strict=True)
        return max(INFINITY if not low else (high - low) / low for low, high in pairs)


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Prices at which every user, with its weight as its budget, can buy nothing better than its shares.

    Shapes: ``prices`` (k,) of one GPU of each type, in money of which a user has its weight; ``budgets`` (n,);
    ``spending`` (n, k) money of each user on each type. ``demand_duals`` (n,), where some demand binds, is what a user
    would pay for the right to use one more GPU; None where none does. The price of a type without GPUs is the most that
    anybody would pay for one.

    The conditions in `violations` are those of Karush, Kuhn and Tucker for the concave program of Eisenberg and Gale,
    so shares that violate none of them maximise Nash welfare.

    Prices and demand duals may be near those of an equilibrium only, whose utilities are irrational: then ``utilities``
    says what they prove of these, and all is in Fractions.

    Source: Eisenberg and Gale 1959; Varian 1974 (equal incomes).
    """

    prices: Array
    budgets: Array
    spending: Array
    demand_duals: Array | None = None
    utilities: UtilityBounds | None = None

    @classmethod
    def of(cls, market: Market, shares: Array, demand_duals: Array | None = None) -> Equilibrium:
        """Return the equilibrium that belongs to these shares; whether it is one, `violations` says.

        The price of a type is the most that anybody would pay at the margin, w_i v_ij / u_i, less the user's demand
        dual.
        """
        market = market.as_(arithmetic(shares))
        with np.errstate(all="ignore"):  # of who has nothing; divided first, since speedups may be 1e-300
            pays = market.speedup / (market.speedup * shares).sum(axis=1)[:, None] * market.weight[:, None]
            net = pays if demand_duals is None else np.maximum(pays - demand_duals[:, None], 0)
            prices = net.max(axis=0)
            return cls(prices, market.weight, shares * prices, demand_duals)

    @classmethod
    def near(cls, market: Market, shares: Array, prices: Array, demand_duals: Array) -> Equilibrium:
        """Return exact prices (k,) and demand duals (n,), and what they prove of the utilities by exact ``shares``.

        A type of which there is none costs the most that anybody would pay.
        """
        proved = utility_bounds(market, shares, prices, demand_duals)
        all_prices = np.where(market.capacity > 0, prices, cls.of(market, shares, demand_duals).prices)
        return cls(all_prices, market.weight, shares * all_prices, demand_duals, proved)

    @property
    def error(self) -> Number:
        """How far utilities can be from those of the optimum, as a part; 0 where they are known exactly."""
        return Fraction(0) if self.utilities is None else self.utilities.error

    def summary(self) -> dict[str, Any]:
        """Return its numbers by name, with what they prove of the utilities where these are irrational."""
        names = ("prices", "budgets", "spending", "demand_duals")
        told, found = {name: getattr(self, name) for name in names}, self.utilities
        return told if found is None else told | {"lower": found.lower, "upper": found.upper, "gap": found.gap}

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: floats or rationals."""
        return arithmetic(self.prices)

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.arithmetic.exact

    def violations(self, market: Market, shares: Array, tolerance: Number = 0) -> list[str]:
        """Return what keeps ``shares`` at these prices from being an equilibrium; empty where nothing does.

        No solver is asked. In Fractions a tolerance of 0 is a proof; in floats give one, relative to what there is.
        """
        number = self.arithmetic.number
        market = market.as_(number)
        users, types = market.users, market.types
        utility = (market.speedup * shares).sum(axis=1)
        demand_duals = self.budgets * 0 if self.demand_duals is None else self.demand_duals
        rest, money = market.capacity - shares.sum(axis=0), self.budgets.sum()
        limited = market.limit < market.capacity.sum()
        limit = np.where(limited, market.limit, 0)
        room = np.where(limited, limit - shares.sum(axis=1), 0)
        # w_i v_ij <= u_i (p_j + q_i), with equality where i holds any of j
        worth, cost = market.speedup * self.budgets[:, None], (self.prices + demand_duals[:, None]) * utility[:, None]
        scale = worth.max(axis=1, keepdims=True) * tolerance
        unequal = np.abs(self.budgets - market.weight) > tolerance * market.weight
        unbought = np.abs(self.spending - shares * self.prices) > tolerance * market.weight[:, None]
        overpaid = (cost - worth) * shares > scale * market.capacity
        unpaid = np.where(limited, np.abs(room * demand_duals) > tolerance * self.budgets, demand_duals != 0)
        broken: tuple[tuple[str, Array, tuple[tuple[str, ...], ...]], ...] = (
            ("{} has another budget than its weight", unequal, (users,)),
            ("{} on {}: spending is not price times shares", unbought, (users, types)),
            ("{} on {}: negative shares", shares < 0, (users, types)),
            ("{} has a negative price", self.prices < 0, (types,)),
            ("{} has a negative rent", demand_duals < 0, (users,)),
            ("{} is overbooked", rest < -tolerance * market.capacity, (types,)),
            ("{} has a price, but some is left", np.abs(rest * self.prices) > tolerance * money, (types,)),
            ("{} is over its demand", limited & (room < -tolerance * limit), (users,)),
            ("{} has a rent, but is not at its demand", unpaid, (users,)),
            ("{} gets nothing", utility <= 0, (users,)),
            ("{} would rather buy {}", worth > cost + scale, (users, types)),
            ("{} holds {}, which is not its best buy", overpaid, (users, types)),
        )
        return [
            text.format(*(name[int(at)] for name, at in zip(names, place, strict=True)))
            for text, where, names in broken
            for place in np.argwhere(np.asarray(where, dtype=bool))
        ]


def nash_bound(
    speedup: Array,
    capacity: Array,
    weight: Array,
    limit: Array,
    shares: Array,
    prices: Array,
    demand_duals: Array | None,
) -> Solution:
    """Return what ``prices`` (k,) and ``demand_duals`` (n,) prove of ``shares`` (n, k); other shapes are a market's.

    The largest sum of w_i log u_i lies between ``lower`` and ``upper``. The effort `GAP_PER_WEIGHT` is the distance by
    unit of weight, that of the weighted mean of the logarithms: no allocation has a weighted geometric mean of
    utilities that is more than e^gap times that of the shares. It is proved without a logarithm. Where ``lower`` and
    ``upper`` are so large that floats cannot tell them apart any better, it is much smaller than their distance. Where
    nothing is proved, there are no bounds and it is infinite.

    For any prices p and demand duals q >= 0 and any allocation x within capacities m and demands d

        sum_i w_i log u_i(x) <= sum_i w_i log(w_i max_j s_ij / (p_j + q_i)) + p.m + q.d - sum_i w_i.

    With b_i = w_i max_j s_ij / (p_j + q_i) / u_i, for utilities u_i of the shares, the right-hand side less what the
    shares reach is sum_i w_i log b_i + p.m + q.d - sum_i w_i, and log b_i <= b_i - 1: at an equilibrium all b_i are 1.
    Where the shares overbook a type by rounding, all of them are scaled down. The numbers given may be rounded
    themselves, each by half a unit in the last place.

    Source: the dual of Eisenberg and Gale 1959.

    >>> ones, prices = np.ones(2), np.array([0.6, 1.4])
    >>> speedup, shares = np.array([[1.0, 2], [1, 5]]), np.array([[1.0, 0.25], [0, 0.75]])
    >>> round(nash_bound(speedup, ones, ones, np.full(2, np.inf), shares, prices, None).effort[GAP_PER_WEIGHT], 3)
    0.032
    """
    k = len(capacity)
    factor = 1 + (k + 16) * ROUNDING  # more than all that one chain of operations over the types can lose
    usable = (speedup > 0) & (capacity > 0)
    used = np.where(usable, shares, 0.0)
    limited = limit < capacity.sum() * factor
    demand_duals = (
        np.zeros(len(weight)) if demand_duals is None else np.where(limited, np.maximum(demand_duals, 0.0), 0.0)
    )
    prices = np.where(capacity > 0, np.maximum(prices, 0.0), 0.0)
    _, exponent = np.frexp(speedup.max(axis=1))
    scaled = np.ldexp(speedup, -exponent[:, None])
    with np.errstate(all="ignore"):
        columns = [fsum(column) / amount for column, amount in zip(used.T.tolist(), capacity, strict=True) if amount]
        rows = (used.sum(axis=1) / limit)[limited]
        over = max(1.0, *columns, rows.max(initial=0.0)) * factor
        utility = (scaled * used).sum(axis=1) / over / factor
        best = np.where(usable, scaled / (prices + demand_duals[:, None]), 0.0).max(axis=1)
        ratio = weight * best / utility * factor * factor
        excess = weight * (ratio - 1)
        paid = np.concatenate([prices * capacity, np.where(limited, demand_duals * np.where(limited, limit, 0.0), 0.0)])
        value = weight * np.log(utility)
    parts = np.concatenate([utility, best, ratio])
    if not ((parts > SMALLEST) & (parts < LARGEST)).all() or (used < 0).any() or not np.isfinite(over):
        return proven("nothing", None, None, effort={GAP_PER_WEIGHT: INFINITY})
    total = fsum(weight)
    lost = 8 * ROUNDING * (fsum(np.abs(excess)) + fsum(weight * ratio) + fsum(paid) + total)
    gap = max(fsum([*excess, *paid, *-weight]), 0.0) + lost
    unit = weight * exponent * log(2)
    objective = fsum([*value, *unit])
    blurred = LOGARITHM * (fsum(np.abs(value)) + fsum(np.abs(unit)) + total)
    known = {"capacity": prices, "demand": demand_duals}
    effort = {GAP_PER_WEIGHT: gap / total * (1 + 8 * ROUNDING)}
    return proven("prices", objective - blurred, objective + blurred + gap, duals=known, effort=effort)


def utility_bounds(market: Market, shares: Array, prices: Array, demand_duals: Array) -> UtilityBounds:
    """Return what exact prices (k,) and demand duals (n,), none negative, prove of the optimum by exact shares (n, k).

    The shares break no capacity and no demand; a demand dual is 0 where there is no demand. With c_i = min_j (p_j +
    q_i) / s_ij, what a unit of utility costs user i at least, every allocation x has sum_i c_i u_i(x) <= p.m + q.d. Let
    phi(t) = t - 1 - log t, which is at least 0. For the optimum x* and the given shares, whose utilities are u_i,

        sum_i w_i phi(c_i u*_i / w_i) <= p.m + q.d - sum_i w_i + sum_i w_i (log(w_i / c_i) - log u*_i)
                                      <= p.m + q.d - sum_i w_i + sum_i w_i (w_i / (c_i u_i) - 1) = gap,

    since sum_i w_i log u*_i is no less than that of the shares, and log b <= b - 1. So w_i phi(t) <= gap holds for
    t = c_i u*_i / w_i. For t <= 1, phi(t) >= (1 - t)^2 / 2; for t >= 1, phi(t) >= (t - 1)^2 / (2 t), since both sides
    are 0 at 1 and the derivatives are (t - 1) / t and (t - 1)(t + 1) / (2 t^2). With e = gap / w_i therefore

        1 - sqrt(2 e) <= t <= 1 + e + sqrt(2 e + e^2).

    Ends of intervals are rounded outwards to few digits. Where the gap is 0 they are the utilities themselves.

    Source: the dual of Eisenberg and Gale 1959; its strong concavity in the utilities.
    """
    there = market.capacity > 0
    pairs = zip(market.speedup[:, there], demand_duals, strict=True)
    costs = [
        min((price + demand_dual) / s for price, s in zip(prices[there], row, strict=True) if s)
        for row, demand_dual in pairs
    ]
    own, weights = (market.speedup * shares).sum(axis=1), market.weight
    if not min(costs) > 0 or not min(own) > 0:
        nothing = np.full(len(own), Fraction(0), dtype=object)
        alone = market.utility(np.tile(market.capacity, (len(own), 1)))
        return UtilityBounds(np.array(costs, dtype=object), lower=nothing, upper=alone, gap=INFINITY)
    limited = market.limit < INFINITY
    terms = [*(prices * market.capacity), *(demand_duals[limited] * market.limit[limited]), *-weights]
    terms += [w * (w / (c * u) - 1) for w, c, u in zip(weights, costs, own, strict=True)]
    return around_optimum(weights, costs, terms)


def around_optimum(
    weights: Array, costs: Sequence[Fraction] | Array, terms: Sequence[Fraction], duals: Array | None = None
) -> UtilityBounds:
    """Return the intervals of `utility_bounds` for ``costs`` (n,) of a unit of utility, and the ``terms`` of the gap.

    The proof there asks of the costs only that no allocation has a larger sum of cost times utility than what stands
    for it in the terms; that may be the bound of a linear program over any rows.
    """
    # sums of long fractions are long: they are rounded up, unless little is left of them then. A verifier rounds, too
    gap = Fraction(sum(ceil(term * 2**FINE) for term in terms), 2**FINE)
    gap = _few_digits(gap * Fraction(1002, 1000)) if gap * 2**FINE > 10**6 * len(terms) else sum(terms, Fraction(0))
    ends = [_around(w / c, gap / w) for w, c in zip(weights, costs, strict=True)]
    lower, upper = (np.array(side, dtype=object) for side in zip(*ends, strict=True))
    return UtilityBounds(np.array(costs, dtype=object), lower, upper, gap, duals)


def _around(middle: Fraction, part: Fraction) -> tuple[Fraction, Fraction]:
    """Return ``middle`` times 1 - sqrt(2 e) and 1 + e + sqrt(2 e + e^2) for e = ``part``, rounded outwards."""
    if not part:
        return middle, middle
    low = middle * max(1 - _root(2 * part), Fraction(0))
    high = middle * (1 + part + _root(2 * part + part * part))
    width = high - low
    grain = _grain(width)
    return floor(low * grain) / grain, ceil(high * grain) / grain


def _grain(value: Fraction) -> Fraction:
    """Return a power of ten that makes ``value`` some hundreds or thousands."""
    exponent = (value.denominator.bit_length() - value.numerator.bit_length()) * 30103 // 100_000 + 3
    return Fraction(10) ** exponent


def _few_digits(value: Fraction) -> Fraction:
    """Return a number of few digits that is no less, and hardly more."""
    return Fraction(ceil(value * _grain(value))) / _grain(value)


def _root(square: Fraction) -> Fraction:
    """Return a number that is at least the root, by a thousandth of it at most."""
    shift = max(0, square.denominator.bit_length() - square.numerator.bit_length() + 24)
    scaled = -(-(square.numerator << 2 * shift) // square.denominator)
    return Fraction(isqrt(scaled) + 1, 1 << shift)

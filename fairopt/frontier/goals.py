"""What is to be as large as possible: welfare functions, which never fall when a user gets more.

F_l is what user l's equal share is worth to it, pi_l its weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from inspect import getdoc
from math import prod
from typing import ClassVar

import numpy as np

from fairopt.backends import Highs
from fairopt.errors import NotCapable
from fairopt.frontier.curve import CurvePoint, EfficientFace, UpperLine
from fairopt.frontier.relaxed import Relaxed
from fairopt.frontier.tradeoff import Aim, fixed, least_epsilon, optimum_at, point_of, program_of
from fairopt.methods.roots import GRAIN, LARGEST_EXPONENT, integers_in_proportion, root
from fairopt.problem import Market
from fairopt.program import Affine, Array, Formulation, Number, fractions


class Oracle:
    """What answers, exactly, how good a linear goal can be: ``aim`` adds what is maximised."""

    def __init__(self, market: Market, relaxed: Relaxed, aim: Aim, face: EfficientFace | None) -> None:
        self.program = program_of(market, relaxed, aim, face)

    def at(self, epsilon: Fraction) -> tuple[CurvePoint, UpperLine]:
        """Return a point at ``epsilon``, and a line above all points of the curve."""
        x, line = optimum_at(self.program, epsilon)
        return point_of(self.program, x, epsilon, Fraction(self.program.value(x))), line

    def level(self) -> UpperLine:
        """Return a line without slope above all points: the best where the property does not matter."""
        return optimum_at(self.program, None)[1]

    def least(self) -> Fraction:
        """Return the least epsilon at which there is a point; it is 0 but on an efficient face."""
        return least_epsilon(self.program)


class Welfare(ABC):
    """A goal. ``near``: the part of its largest value up to which its curve is followed; 0 where it is exact.

    ``finest``: the least such part that can be asked for.

    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> [(each.name, each.value(market, np.array([Fraction(1), Fraction(5)]))) for each in GOALS[:2]]
    [('total_efficiency', Fraction(6, 1)), ('nash_welfare', Fraction(1054092553389, 1000000000000))]
    """

    name: ClassVar[str]
    definition: ClassVar[str]
    near: ClassVar[Fraction] = Fraction(0)
    finest: ClassVar[Fraction] = Fraction(0)

    @property
    def says(self) -> str:
        """What it is, in a sentence."""
        return (getdoc(type(self)) or "").partition("\n")[0]

    @abstractmethod
    def value(self, market: Market, utilities: Array) -> Number:
        """Return the goal at throughputs (n,): exactly where they are exact, a root rounded down."""

    @abstractmethod
    def oracle(self, market: Market, relaxed: Relaxed, face: EfficientFace | None = None) -> Oracle:
        """Return what answers how good the goal can be on an exact market, or on an efficient face of it."""


class TotalEfficiency(Welfare):
    """The sum of all throughputs.

    Source: OEF Eq. (4).

    >>> TotalEfficiency().value(Market.of([[1, 2], [1, 5]], [1, 1]), np.array([Fraction(1), Fraction(5)]))
    Fraction(6, 1)
    """

    name, definition = "total_efficiency", "sum_l E_l(x_l)"

    def value(self, market: Market, utilities: Array) -> Number:
        """Return the sum."""
        total: Number = utilities.sum()
        return total

    def oracle(self, market: Market, relaxed: Relaxed, face: EfficientFace | None = None) -> Oracle:
        """Return exact answers."""
        return Oracle(market, relaxed, lambda p, market, own: p.maximize(own.sum()), face)


class LeastGain(Welfare):
    """The least ratio of a user's throughput to what its equal share is worth to it.

    Source: Gavel Sec. 4.1 (max-min).

    >>> LeastGain().value(Market.of([[1, 2], [1, 5]], [1, 1]), np.array([Fraction(1), Fraction(5)]))
    Fraction(2, 3)
    """

    name, definition = "least_gain", "min_l E_l(x_l) / F_l"

    def value(self, market: Market, utilities: Array) -> Number:
        """Return the least ratio."""
        least: Number = min(utilities / market.fair_utility())
        return least

    def oracle(self, market: Market, relaxed: Relaxed, face: EfficientFace | None = None) -> Oracle:
        """Return exact answers."""

        def aim(p: Formulation, market: Market, own: Affine) -> None:
            ratio = p.variable("least_ratio")
            p.constrain("least_ratio", own / market.fair_utility() >= ratio)
            p.maximize(ratio)

        return Oracle(market, relaxed, aim, face)


class NashGain(Welfare):
    """The geometric mean, by weight, of the ratios of throughput to what the equal share is worth.

    It is largest where Nash welfare is, and 1 at the equal split. It is concave and in general irrational: points are
    rounded down, and lines are above it by the inequality of means. Errors: `NotCapable` for weights whose ratios need
    high powers.

    Source: Nash, The bargaining problem, 1950; weights: Kalai, Nonsymmetric Nash solutions, 1977.

    >>> NashGain().value(Market.of([[1, 2], [1, 5]], [1, 1]), np.array([Fraction(3, 2), Fraction(12)]))
    Fraction(2, 1)
    """

    name, definition = "nash_welfare", "prod_l (E_l(x_l) / F_l) ^ (pi_l / sum(pi))"
    near, finest = Fraction(1, 1000), Fraction(1, 10**5)

    def value(self, market: Market, utilities: Array) -> Number:
        """Return the mean, rounded down where it is irrational."""
        gains = utilities / market.fair_utility()
        if not all(gains > 0):
            return Fraction(0) if market.exact else 0.0
        if not market.exact:
            return float(np.exp(market.weight @ np.log(gains) / market.weight.sum()))
        powers = _powers(market)
        return root(prod(gain**power for gain, power in zip(gains, powers, strict=True)), sum(powers))

    def oracle(self, market: Market, relaxed: Relaxed, face: EfficientFace | None = None) -> Oracle:
        """Return points that are reached and lines above, near each other."""
        return _Concave(self, market, relaxed, face)


#: All, in the order in which they are shown.
GOALS: tuple[Welfare, ...] = (TotalEfficiency(), NashGain(), LeastGain())


def _powers(market: Market) -> list[int]:
    powers = integers_in_proportion(market.weight)
    if powers is None:
        many = f"weights in proportion to whole numbers above {LARGEST_EXPONENT}"
        raise NotCapable(f"{NashGain.name} has {many} as exponents, which exact arithmetic does not reach; round them")
    return powers


#: Where floats are within this of the largest mean logarithm, or after so many rounds, they are near enough.
NEAR, MOST_ROUNDS = 1e-6, 60
#: Numbers that lead to exact programs are rounded to this; least gains that are taken for positive.
ROUNDED, LEAST = 2**40, 1e-6


class _Concave(Oracle):
    """Answers of the Nash welfare: near its optimum, found by tangents to logarithms, two exact linear programs.

    Source of the tangents: Kelley, The cutting-plane method for solving convex programs, 1960.
    """

    def __init__(self, goal: NashGain, market: Market, relaxed: Relaxed, face: EfficientFace | None) -> None:
        super().__init__(market, relaxed, lambda p, market, own: None, face)
        self.goal, self.market, self.relaxed, self.face = goal, market, relaxed, face
        self.powers, self.part = _powers(market), market.weight / market.weight.sum()
        self.tangents = [np.ones(len(market.users))]

    def at(self, epsilon: Fraction) -> tuple[CurvePoint, UpperLine]:
        gains, factors = self._near(epsilon)
        return self._point(gains, epsilon), self._line(factors, epsilon)

    def level(self) -> UpperLine:
        return self._line(self._near(None)[1], None)

    def _near(self, epsilon: Fraction | None) -> tuple[Array, Array]:
        """Return gains (n,) in floats near the optimum, and slopes (n,) of logarithms near there, from duals."""
        market, part = self.market.as_(float), self.part.astype(float)
        fair = market.fair_utility()
        for done in range(MOST_ROUNDS):
            program = fixed(program_of(market, self.relaxed, self._logarithms, self.face), epsilon)
            solution = Highs().solve(program).require_optimal()
            gains = np.maximum(market.utility(np.maximum(program.variable("share", solution.point), 0.0)) / fair, LEAST)
            if program.value(solution.point) - part @ np.log(gains) <= NEAR or done == MOST_ROUNDS - 1:
                break
            # far away from where a tangent touches, it says little: small gains are approached step by step
            self.tangents.append(np.maximum(gains, 4.0 ** -(done + 1)))
        assert solution.dual is not None
        rates = solution.dual[program.row_block("tangent 0").first :].reshape(len(self.tangents), -1).clip(min=0)
        return gains, np.maximum((rates / np.array(self.tangents)).sum(axis=0) / part, LEAST)

    def _logarithms(self, p: Formulation, market: Market, own: Affine) -> None:
        logarithm, fair = p.variable("logarithm", own.shape), market.fair_utility()
        for number, at in enumerate(self.tangents):
            p.constrain(f"tangent {number}", logarithm <= own / (fair * at) + (np.log(at) - 1))
        p.maximize((logarithm * self.part.astype(float)).sum())

    def _point(self, near: Array, epsilon: Fraction) -> CurvePoint:
        """Return an allocation that gives everybody nearly as much: the same part, as large as possible."""
        gains = fractions([Fraction(round(gain * ROUNDED), ROUNDED) for gain in near])

        def aim(p: Formulation, market: Market, own: Affine) -> None:
            scale = p.variable("scale")
            p.constrain("nearly", own / (market.fair_utility() * gains) >= scale)
            p.maximize(scale)

        program = program_of(self.market, self.relaxed, aim, self.face)
        x, _ = optimum_at(program, epsilon)
        utilities = (self.market.speedup * program.variable("share", x)).sum(axis=1)
        return point_of(program, x, epsilon, Fraction(self.goal.value(self.market, utilities)))

    def _line(self, slopes: Array, epsilon: Fraction | None) -> UpperLine:
        """Return a line above: a product is at most the mean of gains times factors whose product is at least 1."""
        factors = slopes / np.exp(self.part.astype(float) @ np.log(slopes))
        rounded = fractions([Fraction(round(factor / float(GRAIN))) * GRAIN for factor in factors])
        while prod(factor**power for factor, power in zip(rounded, self.powers, strict=True)) < 1:
            rounded = rounded * (1 + 10 * GRAIN)
        rates = self.part * rounded / self.market.fair_utility()
        program = program_of(
            self.market, self.relaxed, lambda p, market, own: p.maximize((own * rates).sum()), self.face
        )
        _, line = optimum_at(program, epsilon)
        return UpperLine(line.constant, line.slope, line.duals, rounded)

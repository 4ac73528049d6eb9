"""What is to be as large as possible, and an `Oracle` that is asked how large it can be.

Goals are welfare functions, which never fall when a user gets more. F_l is what user l's equal share is worth to it,
pi_l its weight. An oracle has the program of a trade-off: the best of a linear aim among allocations that have a
property up to epsilon. Epsilon is a variable, which each question fixes; its reduced cost is the slope of the line that
the duals prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Solution
from fairopt.certificates import other_variables, row_duals
from fairopt.errors import NotCapable
from fairopt.frontier.curve import UpperLine, point_at
from fairopt.frontier.relaxed import Relaxed
from fairopt.methods.roots import GRAIN, LARGEST_EXPONENT, integers_in_proportion, root
from fairopt.numbers import arithmetic
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Affine, Array, Formulation, Number, Program, Sense, fractions
from fairopt.properties import ParetoWeights
from fairopt.report import Statement

#: Adds what is maximised, given all users' throughputs (n,).
Aim: TypeAlias = Callable[[Formulation, Market, Affine], None]
EPSILON = "epsilon"
#: A face in floats is met up to this part.
SLACK = 1e-9


def program_of(market: Market, relaxed: Relaxed, aim: Aim, face: ParetoWeights | None = None) -> Program:
    """Return the program in the numbers of ``market``, over the allocations of an efficient face where one is given."""
    p = Formulation(f"{relaxed.name} up to epsilon")
    share = shares_of(p, market)
    own = (market.speedup * share).sum(axis=1)
    relaxed.constrain(p, market, share, p.variable(EPSILON, lower=0))
    if face is not None:
        weights, slack = (face.weights, 0) if market.exact else (face.weights.astype(float), SLACK)
        p.constrain("optimum", (own * weights).sum() >= face.worth(market) * (1 - slack))
    aim(p, market, own)
    return p.program().as_(market.arithmetic)


def fixed(program: Program, epsilon: Fraction | None) -> Program:
    """Return the program at ``epsilon``; at None as it is, where epsilon has no limit."""
    if epsilon is None:
        return program
    at, lower, upper = program.variable_block(EPSILON).first, program.lower.copy(), program.upper.copy()
    lower[at] = upper[at] = epsilon if arithmetic(lower).exact else float(epsilon)
    return replace(program, lower=lower, upper=upper)


class Oracle:
    """What answers, exactly, how good a linear goal can be, on an exact market or on an efficient ``face`` of it.

    ``aim`` adds what is maximised.
    """

    def __init__(self, market: Market, relaxed: Relaxed, face: ParetoWeights | None, aim: Aim) -> None:
        self.program = program_of(market, relaxed, aim, face)

    def at(self, epsilon: Fraction) -> tuple[Statement, UpperLine]:
        """Return a point at ``epsilon``, and a line above all points of the curve."""
        x, line = self._optimum(epsilon)
        others = other_variables(self.program, x) or {}
        # of the other variables those that the program names alone
        kept: dict[str, Fraction] = {name: others[name] for name in ("least_ratio", "level") if name in others}
        value = Fraction(self.program.value(x))
        return point_at(epsilon, value, self.program.variable("share", x), kept or None), line

    def level(self) -> UpperLine:
        """Return a line without slope above all points: the best where the property does not matter."""
        return self._optimum(None)[1]

    def least(self) -> Fraction:
        """Return the least epsilon at which there is a point; it is 0 but on an efficient face."""
        cost = np.full(len(self.program.cost), Fraction(0), dtype=object)
        cost[self.program.variable_block(EPSILON).first] = Fraction(1)
        least = replace(self.program, sense=Sense.MINIMIZE, cost=cost, offset=0)
        return Fraction(least.value(Exact().solve(least).require_optimal().point))

    def _optimum(self, epsilon: Fraction | None) -> tuple[Array, UpperLine]:
        """Return an exact optimum at ``epsilon``, and the line that its duals prove for every epsilon."""
        program = self.program
        solution: Solution = Exact().solve(fixed(program, epsilon)).require_optimal()
        assert solution.dual is not None
        assert solution.reduced_cost is not None
        slope = Fraction(solution.reduced_cost[program.variable_block(EPSILON).first])
        constant = Fraction(program.value(solution.point)) - slope * (epsilon or 0)
        return solution.point, UpperLine(constant, slope, row_duals(program, solution.dual))


@dataclass(frozen=True, eq=False)
class Welfare:
    """A goal. ``says`` is a sentence for everybody, ``definition`` its equation.

    ``value(market, utilities)`` is the goal at throughputs (n,): exactly where they are exact, a root rounded down.
    ``oracle(market, relaxed, face)`` answers how good it can be on an exact market, or on an efficient face of it.
    ``near``: the part of its largest value up to which its curve is followed; 0 where it is exact. ``finest``: the
    least such part that can be asked for.

    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> [(each.name, each.value(market, np.array([Fraction(1), Fraction(5)]))) for each in GOALS[:2]]
    [('total_efficiency', Fraction(6, 1)), ('nash_welfare', Fraction(1054092553389, 1000000000000))]
    >>> NASH.value(market, np.array([Fraction(3, 2), Fraction(12)])), LEAST_GAIN.value(market, market.fair_utility())
    (Fraction(2, 1), Fraction(1, 1))
    """

    name: str
    says: str
    definition: str
    value: Callable[[Market, Array], Number]
    oracle: Callable[[Market, Relaxed, ParetoWeights | None], Oracle]
    near: Fraction = Fraction(0)
    finest: Fraction = Fraction(0)


def _total(market: Market, utilities: Array) -> Number:
    """Return the sum of all throughputs."""
    total: Number = utilities.sum()
    return total


def _least_gain(market: Market, utilities: Array) -> Number:
    """Return the least ratio of a throughput to what the equal share is worth."""
    least: Number = min(utilities / market.fair_utility())
    return least


def _aim_least_gain(p: Formulation, market: Market, own: Affine) -> None:
    ratio = p.variable("least_ratio")
    p.constrain("least_ratio", own / market.fair_utility() >= ratio)
    p.maximize(ratio)


def _nash(market: Market, utilities: Array) -> Number:
    """Return the geometric mean of gains, rounded down where it is irrational."""
    gains = utilities / market.fair_utility()
    if not all(gains > 0):
        return Fraction(0) if market.exact else 0.0
    if not market.exact:
        return float(np.exp(market.weight @ np.log(gains) / market.weight.sum()))
    powers = _powers(market)
    return root(prod(gain**power for gain, power in zip(gains, powers, strict=True)), sum(powers))


def _powers(market: Market) -> list[int]:
    powers = integers_in_proportion(market.weight)
    if powers is None:
        many = f"weights in proportion to whole numbers above {LARGEST_EXPONENT}"
        raise NotCapable(f"nash_welfare has {many} as exponents, which exact arithmetic does not reach; round them")
    return powers


#: Where floats are within this of the largest mean logarithm, or after so many rounds, they are near enough.
NEAR, MOST_ROUNDS = 1e-6, 60
#: Numbers that lead to exact programs are rounded to this; least gains that are taken for positive.
ROUNDED, LEAST = 2**40, 1e-6


class _NashOracle(Oracle):
    """Answers of the Nash welfare: near its optimum, found by tangents to logarithms, two exact linear programs.

    Source of the tangents: Kelley, The cutting-plane method for solving convex programs, 1960.
    """

    def __init__(self, market: Market, relaxed: Relaxed, face: ParetoWeights | None) -> None:
        self.market, self.relaxed, self.face = market, relaxed, face
        self.powers, self.part = _powers(market), market.weight / market.weight.sum()
        self.tangents = [np.ones(len(market.users))]

    def at(self, epsilon: Fraction) -> tuple[Statement, UpperLine]:
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

    def _point(self, near: Array, epsilon: Fraction) -> Statement:
        """Return an allocation that gives everybody nearly as much: the same part, as large as possible."""
        gains = fractions([Fraction(round(gain * ROUNDED), ROUNDED) for gain in near])

        def aim(p: Formulation, market: Market, own: Affine) -> None:
            scale = p.variable("scale")
            p.constrain("nearly", own / (market.fair_utility() * gains) >= scale)
            p.maximize(scale)

        point, _ = Oracle(self.market, self.relaxed, self.face, aim).at(epsilon)
        utilities = (self.market.speedup * point.allocation).sum(axis=1)
        return point.but(value=Fraction(_nash(self.market, utilities)))

    def _line(self, slopes: Array, epsilon: Fraction | None) -> UpperLine:
        """Return a line above: a product is at most the mean of gains times factors whose product is at least 1."""
        factors = slopes / np.exp(self.part.astype(float) @ np.log(slopes))
        rounded = fractions([Fraction(round(factor / float(GRAIN))) * GRAIN for factor in factors])
        while prod(factor**power for factor, power in zip(rounded, self.powers, strict=True)) < 1:
            rounded = rounded * (1 + 10 * GRAIN)
        rates = self.part * rounded / self.market.fair_utility()
        linear = Oracle(self.market, self.relaxed, self.face, lambda p, market, own: p.maximize((own * rates).sum()))
        return replace(linear.level() if epsilon is None else linear.at(epsilon)[1], factors=rounded)


#: Source: OEF Eq. (4).
TOTAL = Welfare(
    "total_efficiency",
    "The sum of all throughputs.",
    "sum_l E_l(x_l)",
    _total,
    partial(Oracle, aim=lambda p, market, own: p.maximize(own.sum())),
)
#: It is largest where Nash welfare is, and 1 at the equal split. It is concave and in general irrational: points are
#: rounded down, and lines are above it by the inequality of means. Errors: `NotCapable` for weights whose ratios need
#: high powers. Source: Nash, The bargaining problem, 1950; weights: Kalai, Nonsymmetric Nash solutions, 1977.
NASH = Welfare(
    "nash_welfare",
    "The geometric mean, by weight, of the ratios of throughput to what the equal share is worth.",
    "prod_l (E_l(x_l) / F_l) ^ (pi_l / sum(pi))",
    _nash,
    _NashOracle,
    near=Fraction(1, 1000),
    finest=Fraction(1, 10**5),
)
#: Source: Gavel Sec. 4.1 (max-min).
LEAST_GAIN = Welfare(
    "least_gain",
    "The least ratio of a user's throughput to what its equal share is worth to it.",
    "min_l E_l(x_l) / F_l",
    _least_gain,
    partial(Oracle, aim=_aim_least_gain),
)
#: All, in the order in which they are shown.
GOALS: tuple[Welfare, ...] = (TOTAL, NASH, LEAST_GAIN)

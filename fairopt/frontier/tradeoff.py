"""The program of a trade-off, and an `Oracle` that is asked about it.

It is the best of a linear aim among allocations that have a property up to epsilon. Epsilon is a variable, which each
question fixes; its reduced cost is the slope of the line that the duals prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Solution
from fairopt.certificates import other_variables, row_duals
from fairopt.frontier.curve import CurvePoint, EfficientFace, UpperLine
from fairopt.frontier.relaxed import Relaxed
from fairopt.numbers import arithmetic
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Affine, Array, Formulation, Program, Sense

#: Adds what is maximised, given all users' throughputs (n,).
Aim: TypeAlias = Callable[[Formulation, Market, Affine], None]
EPSILON = "epsilon"
#: A face in floats is met up to this part.
SLACK = 1e-9


def program_of(market: Market, relaxed: Relaxed, aim: Aim, face: EfficientFace | None = None) -> Program:
    """Return the program in the numbers of ``market``, over the allocations of an efficient face where one is given."""
    p = Formulation(f"{relaxed.name} up to epsilon")
    share = shares_of(p, market)
    own = (market.speedup * share).sum(axis=1)
    relaxed.constrain(p, market, share, p.variable(EPSILON, lower=0))
    if face is not None:
        weights, worth = (face.weights, face.worth) if market.exact else (face.weights.astype(float), float(face.worth))
        p.constrain("optimum", (own * weights).sum() >= worth * (1 if market.exact else 1 - SLACK))
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

    def __init__(self, market: Market, relaxed: Relaxed, face: EfficientFace | None, aim: Aim) -> None:
        self.program = program_of(market, relaxed, aim, face)

    def at(self, epsilon: Fraction) -> tuple[CurvePoint, UpperLine]:
        """Return a point at ``epsilon``, and a line above all points of the curve."""
        x, line = self._optimum(epsilon)
        others = other_variables(self.program, x) or {}
        # of the other variables those that the program names alone
        kept: dict[str, Fraction] = {name: others[name] for name in ("least_ratio", "level") if name in others}
        value = Fraction(self.program.value(x))
        return CurvePoint(epsilon, value, self.program.variable("share", x), kept or None), line

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

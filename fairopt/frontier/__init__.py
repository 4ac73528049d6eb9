"""What a property costs: the most of a goal that allocations reach where the property may fail by epsilon, as a curve.

Curves of linear goals are exact, from end to end; Nash welfare, and allocations that are Pareto-efficient as well, have
proven bounds on both sides.
"""

from fairopt.frontier.curve import Curve, UpperLine
from fairopt.frontier.frontiers import Frontier, frontier
from fairopt.frontier.goals import GOALS, Welfare
from fairopt.frontier.relaxed import RELAXED, Relaxed

__all__ = [
    "GOALS",
    "RELAXED",
    "Curve",
    "Frontier",
    "Relaxed",
    "UpperLine",
    "Welfare",
    "frontier",
]

"""What a property costs: the most of a goal that allocations reach where the property may fail by epsilon, as a curve.

Curves of linear goals are exact, from end to end; Nash welfare, and allocations that are Pareto-efficient as well, have
proven bounds on both sides.
"""

from fairopt.frontier.curve import Curve, CurvePoint, EfficientFace, UpperLine
from fairopt.frontier.frontiers import Frontier, PolicyPoint, frontier
from fairopt.frontier.goals import GOALS, LeastGain, NashGain, TotalEfficiency, Welfare
from fairopt.frontier.relaxed import (
    RELAXED,
    EfficiencyWithin,
    EnvyWithin,
    Relaxed,
    SharingWithin,
    ThroughputWithin,
)

__all__ = [
    "GOALS",
    "RELAXED",
    "Curve",
    "CurvePoint",
    "EfficiencyWithin",
    "EfficientFace",
    "EnvyWithin",
    "Frontier",
    "LeastGain",
    "NashGain",
    "PolicyPoint",
    "Relaxed",
    "SharingWithin",
    "ThroughputWithin",
    "TotalEfficiency",
    "UpperLine",
    "Welfare",
    "frontier",
]

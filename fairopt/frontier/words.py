"""How a frontier reads, in tables and on its page."""

from __future__ import annotations

from inspect import getdoc

from fairopt.frontier.curve import Curve
from fairopt.frontier.frontiers import PolicyPoint
from fairopt.frontier.goals import Welfare
from fairopt.frontier.relaxed import Relaxed
from fairopt.program import Number


def sentence(of: Welfare | Relaxed) -> str:
    """Return what a goal or property is, in a sentence."""
    return (getdoc(type(of)) or "").partition("\n")[0]


def below(each: PolicyPoint, curve: Curve) -> str:
    """Return how far a policy is under a curve at its epsilon, as a part of the curve; ~ in floats, "-" for none."""
    epsilon, distance = each.epsilons.get(curve.against), each.distances.get((curve.goal, curve.against))
    most = 0 if epsilon is None else curve.below(max(epsilon, 0))
    return "-" if distance is None or not most else f"{'' if each.exact else '~'}{float(distance / most):z.1%}"


def decimal(value: Number | None) -> str:
    """Return a number to six digits; "-" for none."""
    return "-" if value is None else f"{float(value):.6g}"

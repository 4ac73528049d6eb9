"""How much lies pay: kinds of lies, the search for the one that pays most, and proved bounds on all of one kind."""

from fairopt.incentives.bounds import AtMost, at_most
from fairopt.incentives.lies import Demand, Lie, LieKind, Report, Sybils, Together, Weight, every_kind
from fairopt.incentives.search import Incentives, PaidLie, best_lie, incentives

__all__ = [
    "AtMost",
    "Demand",
    "Incentives",
    "Lie",
    "LieKind",
    "PaidLie",
    "Report",
    "Sybils",
    "Together",
    "Weight",
    "at_most",
    "best_lie",
    "every_kind",
    "incentives",
]

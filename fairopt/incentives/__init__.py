"""How much lies pay: kinds of lies, the search for the one that pays most, and proved bounds on all of one kind.

>>> from fairopt.problem import Market
>>> from fairopt.properties import Effort
>>> found = incentives("oef-noncooperative", Market.of([[1, 1], [1, 5]], [1, 1]), effort=Effort(evaluations=60))
>>> print(*(f"{kind.name}: {bound.factor}" for kind, bound in found.bounds.items()), sep=", ")
larger: 1, smaller: 18/5, any: 18/5, split: 18/5, copies: 18/5, weight: 2
"""

from fairopt.incentives.bounds import AtMost, at_most
from fairopt.incentives.lies import (
    AnyLieKind,
    DemandClaim,
    Lie,
    LieKind,
    SpeedupReport,
    Sybils,
    TwoReports,
    WeightClaim,
    every_kind,
    kind_of,
)
from fairopt.incentives.search import Incentives, PaidLie, best_lie, incentives

__all__ = [
    "AnyLieKind",
    "AtMost",
    "DemandClaim",
    "Incentives",
    "Lie",
    "LieKind",
    "PaidLie",
    "SpeedupReport",
    "Sybils",
    "TwoReports",
    "WeightClaim",
    "at_most",
    "best_lie",
    "every_kind",
    "incentives",
    "kind_of",
]

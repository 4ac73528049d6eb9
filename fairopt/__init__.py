"""fairopt: how scarce GPUs are shared, solved by any solver and checked property by property.

>>> import fairopt
>>> from fairopt.models import EqualSplit
>>> market = fairopt.Market.of([[1, 2], [1, 5]], capacity=[1, 1])
>>> fairopt.allocate(EqualSplit(), market).utilities.tolist()
[Fraction(3, 2), Fraction(3, 1)]
"""

from fairopt.compare import audit, compare
from fairopt.errors import BadInput, FairoptError, NotCapable, NotInstalled, NotSolved
from fairopt.metrics import metrics
from fairopt.policy import Decision, Policy, allocate, run
from fairopt.problem import Market, read_market, write_market
from fairopt.uniqueness import uniqueness

__all__ = [
    "BadInput",
    "Decision",
    "FairoptError",
    "Market",
    "NotCapable",
    "NotInstalled",
    "NotSolved",
    "Policy",
    "allocate",
    "audit",
    "compare",
    "metrics",
    "read_market",
    "run",
    "uniqueness",
    "write_market",
]

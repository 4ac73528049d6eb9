"""fairopt: how scarce GPUs are shared, solved by any solver and checked property by property.

>>> import fairopt
>>> from fairopt.models import EqualSplit
>>> market = fairopt.Market.of([[1, 2], [1, 5]], capacity=[1, 1])
>>> fairopt.allocate(EqualSplit(), market).utilities.tolist()
[Fraction(3, 2), Fraction(3, 1)]
"""

from fairopt.compare import compare, verify
from fairopt.errors import BadInput, FairoptError, NotCapable, NotInstalled, NotSolved
from fairopt.metrics import metrics
from fairopt.policy import Allocation, Decision, Policy, allocate, decide, run, uniqueness
from fairopt.problem import Market, read_market, write_market

__all__ = [
    "Allocation",
    "BadInput",
    "Decision",
    "FairoptError",
    "Market",
    "NotCapable",
    "NotInstalled",
    "NotSolved",
    "Policy",
    "allocate",
    "compare",
    "decide",
    "metrics",
    "read_market",
    "run",
    "uniqueness",
    "verify",
    "write_market",
]

"""Properties, one file each. Checking one gives a `Verdict` with a margin and a witness.

>>> from fairopt.datasets import oef_example
>>> print(EnvyFreeness().check(oef_example(), [["1/2", 0], ["1/2", 0], [0, 1]]).witness)
u2 gets 0.5; with the shares of u3, by weight, it would get 3
"""

from fairopt.properties.misreports.shrinking import Shrunk, shrink, shrink_market, shrinking_misreports, shrinks
from fairopt.properties.misreports.strategy_proofness import StrategyProofness
from fairopt.properties.over_optima import over_optima
from fairopt.properties.property import (
    AllocationProperty,
    Effort,
    MechanismProperty,
    OverOptima,
    Property,
    SlackCase,
)
from fairopt.properties.shares.adjacent_types import AdjacentTypes
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.shares.feasibility import Feasibility
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency, ParetoWeights
from fairopt.properties.shares.sharing_incentive import SharingIncentive
from fairopt.properties.shares.work_conservation import WorkConservation
from fairopt.properties.verdict import TOLERANCE, Answer, Verdict
from fairopt.properties.worst_reports import WorstShare, worst_share

__all__ = [
    "TOLERANCE",
    "AdjacentTypes",
    "AllocationProperty",
    "Answer",
    "Effort",
    "EnvyFreeness",
    "Feasibility",
    "MechanismProperty",
    "OverOptima",
    "ParetoEfficiency",
    "ParetoWeights",
    "Property",
    "SharingIncentive",
    "Shrunk",
    "SlackCase",
    "StrategyProofness",
    "Verdict",
    "WorkConservation",
    "WorstShare",
    "over_optima",
    "shrink",
    "shrink_market",
    "shrinking_misreports",
    "shrinks",
    "worst_share",
]

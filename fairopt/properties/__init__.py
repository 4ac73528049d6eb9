"""Properties: one file each; a `Verdict` with a margin and a witness."""

from fairopt.properties.adjacent_types import AdjacentTypes
from fairopt.properties.envy_freeness import EnvyFreeness
from fairopt.properties.feasibility import Feasibility
from fairopt.properties.pareto_efficiency import ParetoEfficiency, ParetoWeights
from fairopt.properties.sharing_incentive import SharingIncentive
from fairopt.properties.shrinking import Shrunk, shrink_market, shrinks
from fairopt.properties.smallest_lie import shrink, shrinking_lies
from fairopt.properties.strategy_proofness import Effort, MechanismProperty, Misreport, StrategyProofness
from fairopt.properties.verdict import TOLERANCE, Answer, Property, Verdict, plain
from fairopt.properties.work_conservation import WorkConservation

__all__ = [
    "TOLERANCE",
    "AdjacentTypes",
    "Answer",
    "Effort",
    "EnvyFreeness",
    "Feasibility",
    "MechanismProperty",
    "Misreport",
    "ParetoEfficiency",
    "ParetoWeights",
    "Property",
    "SharingIncentive",
    "Shrunk",
    "StrategyProofness",
    "Verdict",
    "WorkConservation",
    "plain",
    "shrink",
    "shrink_market",
    "shrinking_lies",
    "shrinks",
]

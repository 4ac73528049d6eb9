"""Properties, one file each. Checking one gives a `Verdict` with a margin and a witness.

>>> from fairopt.datasets import oef_example
>>> print(EnvyFreeness().check(oef_example(), [["1/2", 0], ["1/2", 0], [0, 1]]).witness)
u2 gets 0.5; with the shares of u3, by weight, it would get 3
"""

from typing import TYPE_CHECKING

from fairopt.later import later
from fairopt.properties.property import (
    AllocationProperty,
    Effort,
    MechanismProperty,
    Property,
    SlackCase,
)
from fairopt.properties.verdict import TOLERANCE, Answer, Verdict

if TYPE_CHECKING:
    from fairopt.properties.misreports.shrinking import shrink as shrink
    from fairopt.properties.misreports.shrinking import shrink_market as shrink_market
    from fairopt.properties.misreports.shrinking import shrinking_misreports as shrinking_misreports
    from fairopt.properties.misreports.shrinking import shrinks as shrinks
    from fairopt.properties.misreports.strategy_proofness import StrategyProofness as StrategyProofness
    from fairopt.properties.over_optima import over_optima as over_optima
    from fairopt.properties.shares.adjacent_types import AdjacentTypes as AdjacentTypes
    from fairopt.properties.shares.envy_freeness import EnvyFreeness as EnvyFreeness
    from fairopt.properties.shares.feasibility import Feasibility as Feasibility
    from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency as ParetoEfficiency
    from fairopt.properties.shares.pareto_efficiency import ParetoWeights as ParetoWeights
    from fairopt.properties.shares.sharing_incentive import SharingIncentive as SharingIncentive
    from fairopt.properties.shares.work_conservation import WorkConservation as WorkConservation
    from fairopt.properties.worst_reports import worst_share as worst_share

#: Names by module, which is loaded when one is first used: an audit searches no misreports.
_NAMES = {
    "misreports.shrinking": "shrink shrink_market shrinking_misreports shrinks",
    "misreports.strategy_proofness": "StrategyProofness",
    "over_optima": "over_optima",
    "shares.adjacent_types": "AdjacentTypes",
    "shares.envy_freeness": "EnvyFreeness",
    "shares.feasibility": "Feasibility",
    "shares.pareto_efficiency": "ParetoEfficiency ParetoWeights",
    "shares.sharing_incentive": "SharingIncentive",
    "shares.work_conservation": "WorkConservation",
    "worst_reports": "worst_share",
}
__getattr__ = later(__name__, _NAMES)

__all__ = [
    "TOLERANCE",
    "AdjacentTypes",
    "AllocationProperty",
    "Answer",
    "Effort",
    "EnvyFreeness",
    "Feasibility",
    "MechanismProperty",
    "ParetoEfficiency",
    "ParetoWeights",
    "Property",
    "SharingIncentive",
    "SlackCase",
    "StrategyProofness",
    "Verdict",
    "WorkConservation",
    "over_optima",
    "shrink",
    "shrink_market",
    "shrinking_misreports",
    "shrinks",
    "worst_share",
]

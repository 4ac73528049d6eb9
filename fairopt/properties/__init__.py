"""Properties, one file each. Checking one gives a `Verdict` with a margin and a witness.

>>> from fairopt.datasets import oef_example
>>> print(EnvyFreeness().check(oef_example(), [["1/2", 0], ["1/2", 0], [0, 1]]).witness)
u2 gets 0.5; with the shares of u3, by weight, it would get 3
"""

from typing import TYPE_CHECKING

from fairopt.later import later, offered
from fairopt.properties.property import AllocationProperty as AllocationProperty
from fairopt.properties.property import Effort as Effort
from fairopt.properties.property import MechanismProperty as MechanismProperty
from fairopt.properties.property import Property as Property
from fairopt.properties.property import SlackCase as SlackCase
from fairopt.properties.verdict import TOLERANCE as TOLERANCE
from fairopt.properties.verdict import Answer as Answer
from fairopt.properties.verdict import Verdict as Verdict

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

# a module is loaded when a name of it is first used: an audit searches no misreports
__getattr__ = later(__name__)
__all__ = offered(__name__)

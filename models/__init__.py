"""The published policies, one file each; a policy by a third party registers in the group ``fairopt.policies``."""

from fairopt.models.equal_split import EqualSplit
from fairopt.models.max_efficiency import MaxEfficiency
from fairopt.models.max_min import MaxMin
from fairopt.models.nash_welfare import NashWelfare
from fairopt.models.oef_cooperative import CooperativeOEF
from fairopt.models.oef_noncooperative import NonCooperativeOEF
from fairopt.models.partial_allocation import PartialAllocation
from fairopt.models.second_price_trading import SecondPriceTrading
from fairopt.models.water_filling import WaterFilling

__all__ = [
    "CooperativeOEF",
    "EqualSplit",
    "MaxEfficiency",
    "MaxMin",
    "NashWelfare",
    "NonCooperativeOEF",
    "PartialAllocation",
    "SecondPriceTrading",
    "WaterFilling",
]

"""The published policies, one file each; a policy by a third party registers in the groups ``fairopt.*policies``."""

from fairopt.models.allox import AlloX
from fairopt.models.batch_private import BatchPrivate
from fairopt.models.equal_split import EqualSplit
from fairopt.models.fcfs import FirstComeFirstServed
from fairopt.models.fft import FFT
from fairopt.models.fifo_quota import FifoQuota
from fairopt.models.gandiva_fair import GandivaFair
from fairopt.models.gavel_rounds import GavelRounds
from fairopt.models.lottery import GangAwareLottery, LotteryWithBackfilling
from fairopt.models.ltgf import LongTermGpuTimeFairness
from fairopt.models.max_efficiency import MaxEfficiency
from fairopt.models.max_min import MaxMin
from fairopt.models.nash_welfare import NashWelfare
from fairopt.models.oef_cooperative import CooperativeOEF
from fairopt.models.oef_noncooperative import NonCooperativeOEF
from fairopt.models.oef_rounds import OEFRounds
from fairopt.models.partial_allocation import PartialAllocation
from fairopt.models.posted_prices import PostedPricePacking
from fairopt.models.second_price_trading import SecondPriceTrading
from fairopt.models.split_stride import SplitStride
from fairopt.models.srtf import ShortestRemainingTimeFirst
from fairopt.models.stride import GangAwareStride
from fairopt.models.themis import Themis
from fairopt.models.tiresias import LeastAttainedService, ShortestServiceQueues
from fairopt.models.water_filling import WaterFilling

__all__ = [
    "FFT",
    "AlloX",
    "BatchPrivate",
    "CooperativeOEF",
    "EqualSplit",
    "FifoQuota",
    "FirstComeFirstServed",
    "GandivaFair",
    "GangAwareLottery",
    "GangAwareStride",
    "GavelRounds",
    "LeastAttainedService",
    "LongTermGpuTimeFairness",
    "LotteryWithBackfilling",
    "MaxEfficiency",
    "MaxMin",
    "NashWelfare",
    "NonCooperativeOEF",
    "OEFRounds",
    "PartialAllocation",
    "PostedPricePacking",
    "SecondPriceTrading",
    "ShortestRemainingTimeFirst",
    "ShortestServiceQueues",
    "SplitStride",
    "Themis",
    "WaterFilling",
]

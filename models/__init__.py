"""The published policies, a folder for each system. Outside policies register in the groups ``fairopt.*policies``."""

from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.models.baselines.allox import AlloX
from fairopt.models.baselines.equal_split import EqualSplit
from fairopt.models.baselines.fifo_quota import FifoQuota
from fairopt.models.baselines.max_efficiency import MaxEfficiency
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.baselines.themis import Themis
from fairopt.models.baselines.tiresias import LeastAttainedService, ShortestServiceQueues
from fairopt.models.fft.fft import FFT
from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair
from fairopt.models.gandiva_fair.lottery import GangAwareLottery, LotteryWithBackfilling
from fairopt.models.gandiva_fair.second_price_trading import SecondPriceTrading
from fairopt.models.gandiva_fair.split_stride import SplitStride
from fairopt.models.gandiva_fair.stride import GangAwareStride
from fairopt.models.gavel.max_min import MaxMin
from fairopt.models.gavel.rounds import GavelRounds
from fairopt.models.gavel.water_filling import WaterFilling
from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness
from fairopt.models.nash.nash_welfare import NashWelfare
from fairopt.models.nash.partial_allocation import PartialAllocation
from fairopt.models.oef.cooperative import CooperativeOEF
from fairopt.models.oef.noncooperative import NonCooperativeOEF
from fairopt.models.oef.rounds import OEFRounds

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

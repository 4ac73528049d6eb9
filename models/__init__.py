"""The published policies, a folder for each system. Outside policies register in the groups ``fairopt.*policies``.

>>> from fairopt.models import MaxMin
>>> print(*(claim.said() for claim in MaxMin.claims), sep=", ")
sharing_incentive
"""

from typing import TYPE_CHECKING

from fairopt.later import later, offered

if TYPE_CHECKING:
    from fairopt.models.armada.armada import Armada as Armada
    from fairopt.models.astraea.batch_private import BatchPrivate as BatchPrivate
    from fairopt.models.astraea.fcfs import FirstComeFirstServed as FirstComeFirstServed
    from fairopt.models.astraea.posted_prices import PostedPricePacking as PostedPricePacking
    from fairopt.models.baselines.allox import AlloX as AlloX
    from fairopt.models.baselines.easy_backfilling import EasyBackfilling as EasyBackfilling
    from fairopt.models.baselines.equal_split import EqualSplit as EqualSplit
    from fairopt.models.baselines.fifo import FirstInFirstOut as FirstInFirstOut
    from fairopt.models.baselines.fifo_quota import FifoQuota as FifoQuota
    from fairopt.models.baselines.max_efficiency import MaxEfficiency as MaxEfficiency
    from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst as ShortestRemainingTimeFirst
    from fairopt.models.baselines.themis import Themis as Themis
    from fairopt.models.baselines.tiresias import LeastAttainedService as LeastAttainedService
    from fairopt.models.baselines.tiresias import ShortestServiceQueues as ShortestServiceQueues
    from fairopt.models.drf.drf import DominantResourceFairness as DominantResourceFairness
    from fairopt.models.fft.fft import FFT as FFT
    from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair as GandivaFair
    from fairopt.models.gandiva_fair.lottery import GangAwareLottery as GangAwareLottery
    from fairopt.models.gandiva_fair.lottery import LotteryWithBackfilling as LotteryWithBackfilling
    from fairopt.models.gandiva_fair.second_price_trading import SecondPriceTrading as SecondPriceTrading
    from fairopt.models.gandiva_fair.split_stride import SplitStride as SplitStride
    from fairopt.models.gandiva_fair.stride import GangAwareStride as GangAwareStride
    from fairopt.models.gavel.hierarchical import HierarchicalWaterFilling as HierarchicalWaterFilling
    from fairopt.models.gavel.max_min import MaxMin as MaxMin
    from fairopt.models.gavel.partitions import GavelIsolated as GavelIsolated
    from fairopt.models.gavel.partitions import GavelProportional as GavelProportional
    from fairopt.models.gavel.rounds import GavelRounds as GavelRounds
    from fairopt.models.gavel.water_filling import WaterFilling as WaterFilling
    from fairopt.models.hived.hived import HiveD as HiveD
    from fairopt.models.kai.kai import Kai as Kai
    from fairopt.models.karma.karma import Karma as Karma
    from fairopt.models.kueue.kueue import Kueue as Kueue
    from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness as LongTermGpuTimeFairness
    from fairopt.models.nash.nash_welfare import NashWelfare as NashWelfare
    from fairopt.models.nash.partial_allocation import PartialAllocation as PartialAllocation
    from fairopt.models.oef.cooperative import CooperativeOEF as CooperativeOEF
    from fairopt.models.oef.efficient import EfficientOEF as EfficientOEF
    from fairopt.models.oef.noncooperative import NonCooperativeOEF as NonCooperativeOEF
    from fairopt.models.oef.rounds import OEFRounds as OEFRounds
    from fairopt.models.optimus.optimus import Optimus as Optimus
    from fairopt.models.pal.pal import PAL as PAL
    from fairopt.models.pollux.pollux import Pollux as Pollux
    from fairopt.models.robust.robust import RobustCooperativeOEF as RobustCooperativeOEF
    from fairopt.models.robust.robust import RobustMaxMin as RobustMaxMin
    from fairopt.models.shockwave.shockwave import Shockwave as Shockwave
    from fairopt.models.sia.sia import Sia as Sia
    from fairopt.models.slurm.rounds import SlurmFairTreeRounds as SlurmFairTreeRounds
    from fairopt.models.slurm.slurm import SlurmFairTree as SlurmFairTree
    from fairopt.models.slurm.slurm import SlurmMultifactor as SlurmMultifactor
    from fairopt.models.volcano.capacity import VolcanoCapacity as VolcanoCapacity
    from fairopt.models.volcano.hdrf import VolcanoHdrf as VolcanoHdrf
    from fairopt.models.volcano.proportion import VolcanoProportion as VolcanoProportion
    from fairopt.models.yarn.capacity import YarnCapacity as YarnCapacity

# a module is loaded when a name of it is first used: who takes one does not wait for all
__getattr__ = later(__name__)
__all__ = offered(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

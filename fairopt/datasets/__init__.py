"""Small real data with its sources: measured speedups, a trace, and the papers' own examples.

SOURCES.md beside this file has the origin, licence and checksum of each data file.

>>> oef_example().speedup.tolist()[0]
[Fraction(1, 1), Fraction(2, 1)]
"""

from __future__ import annotations

from fairopt.datasets.gavel import gavel_example as gavel_example
from fairopt.datasets.gavel import gavel_market as gavel_market
from fairopt.datasets.gavel import gavel_pair_speeds as gavel_pair_speeds
from fairopt.datasets.gavel import gavel_throughputs as gavel_throughputs
from fairopt.datasets.papers import astraea_example as astraea_example
from fairopt.datasets.papers import astraea_philly_cluster as astraea_philly_cluster
from fairopt.datasets.papers import astraea_venus_cluster as astraea_venus_cluster
from fairopt.datasets.papers import fft_cluster as fft_cluster
from fairopt.datasets.papers import gandiva_market as gandiva_market
from fairopt.datasets.papers import gandiva_table1 as gandiva_table1
from fairopt.datasets.papers import gandiva_table3 as gandiva_table3
from fairopt.datasets.papers import oef_cluster as oef_cluster
from fairopt.datasets.papers import oef_eq6 as oef_eq6
from fairopt.datasets.papers import oef_example as oef_example
from fairopt.datasets.philly import philly_cluster as philly_cluster
from fairopt.datasets.philly import philly_trace as philly_trace
from fairopt.datasets.tables import Throughput as Throughput
from fairopt.datasets.tables import dataset_path as dataset_path
from fairopt.later import offered

__all__ = offered(__name__)

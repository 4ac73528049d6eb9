"""Small real data with its sources: measured speedups, a trace, and the papers' own examples.

SOURCES.md beside this file has the origin, licence and checksum of each data file.

>>> oef_example().speedup.tolist()[0]
[Fraction(1, 1), Fraction(2, 1)]
"""

from __future__ import annotations

from fairopt.datasets.gavel import gavel_example, gavel_market, gavel_pair_speeds, gavel_throughputs
from fairopt.datasets.papers import (
    astraea_example,
    astraea_philly_cluster,
    astraea_venus_cluster,
    fft_cluster,
    gandiva_market,
    gandiva_table1,
    gandiva_table3,
    oef_cluster,
    oef_eq6,
    oef_example,
)
from fairopt.datasets.philly import philly_cluster, philly_trace
from fairopt.datasets.tables import Throughput, dataset_path

__all__ = [
    "Throughput",
    "astraea_example",
    "astraea_philly_cluster",
    "astraea_venus_cluster",
    "dataset_path",
    "fft_cluster",
    "gandiva_market",
    "gandiva_table1",
    "gandiva_table3",
    "gavel_example",
    "gavel_market",
    "gavel_pair_speeds",
    "gavel_throughputs",
    "oef_cluster",
    "oef_eq6",
    "oef_example",
    "philly_cluster",
    "philly_trace",
]

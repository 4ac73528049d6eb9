"""
What a user gains by a lie
==========================

The true throughput of one user, by what it reports for one type. Above the line the lie pays.
"""

from fairopt import plot
from fairopt.datasets import oef_example
from fairopt.models import CooperativeOEF, MaxMin, NonCooperativeOEF, SecondPriceTrading

plot.misreport([SecondPriceTrading(), MaxMin(), CooperativeOEF(), NonCooperativeOEF()], oef_example(), "u1", "GPU2")

"""
Who gets what
=============

A bar for each user, in GPUs, with a part for each type. At the bar's end stands the throughput, in multiples of the
user's own partition of the cluster.
"""

from fairopt import allocate, plot
from fairopt.datasets import gavel_example
from fairopt.models import CooperativeOEF

plot.shares(allocate(CooperativeOEF(), gavel_example()))

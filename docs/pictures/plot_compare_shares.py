"""
Several policies side by side
=============================

The same market under four policies, on one scale.
"""

from fairopt import allocate, plot
from fairopt.datasets import oef_example
from fairopt.models import CooperativeOEF, EqualSplit, MaxMin, NonCooperativeOEF

market = oef_example()
policies = [EqualSplit(), MaxMin(), CooperativeOEF(), NonCooperativeOEF()]
plot.compare_shares({policy.name: allocate(policy, market) for policy in policies})

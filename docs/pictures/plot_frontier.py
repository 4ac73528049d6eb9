"""
What fairness costs
===================

The largest total throughput among allocations that fail a property by at most epsilon, and where the policies are.
"""

from fairopt import frontier, plot
from fairopt.datasets import gavel_example

plot.frontier(frontier(gavel_example(), "total_efficiency", ["envy_freeness", "sharing_incentive", "equal_throughput"]))

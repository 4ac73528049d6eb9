"""
Who gets what
=============

Text.
"""

from fairopt import allocate, plot
from fairopt.datasets import oef_example
from fairopt.models import CooperativeOEF

plot.shares(allocate(CooperativeOEF(), oef_example()))

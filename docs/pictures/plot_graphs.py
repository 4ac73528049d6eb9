"""
Who could trade
===============

An arrow is a gift of GPUs in a trade by which both sides gain; the thick ones are a cycle. Of a Pareto-efficient
allocation there is none.
"""

from fairopt import allocate, plot, trade_graph
from fairopt.datasets import oef_example

market = oef_example()
plot.graph(trade_graph(market, allocate("equal-split", market)), "Who could trade: equal-split")

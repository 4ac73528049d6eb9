"""Pictures: of allocations, misreports and trade-offs, and of runs and studies.

Each function makes a figure of its own, or draws on ``ax``, and returns the figure; nothing is kept in pyplot. Save one
with ``plot.shares(decision).savefig("shares.png")``. matplotlib is an extra, imported when a figure is asked for.

>>> from fairopt import plot
>>> figure = plot.cdf({"srtf": [100, 250, 400], "fft": [120, 240, 390]}, "completion time (s)")
>>> figure.axes[0].get_ylabel()
'part of the jobs'
"""

from fairopt.experiment.plot.allocations import compare_shares, misreport, shares
from fairopt.experiment.plot.figures import COLOURS, HATCHES, LINES, LONGEST_NAME
from fairopt.experiment.plot.frontiers import frontier
from fairopt.experiment.plot.graphs import graph
from fairopt.experiment.plot.runs import against_load, cdf, gantt, over_time, tenant_share, tradeoff

__all__ = [
    "COLOURS",
    "HATCHES",
    "LINES",
    "LONGEST_NAME",
    "against_load",
    "cdf",
    "compare_shares",
    "frontier",
    "gantt",
    "graph",
    "misreport",
    "over_time",
    "shares",
    "tenant_share",
    "tradeoff",
]

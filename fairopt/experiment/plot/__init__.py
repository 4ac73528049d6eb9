"""Pictures: of allocations, misreports and trade-offs, and of runs and studies.

Each function makes a figure of its own, or draws on ``ax``, and returns the figure; nothing is kept in pyplot. Save one
with ``plot.shares(decision).savefig("shares.png")``. matplotlib is an extra, imported when a figure is asked for.

>>> from fairopt import plot
>>> figure = plot.cdf({"srtf": [100, 250, 400], "fft": [120, 240, 390]}, "completion time (s)")
>>> figure.axes[0].get_ylabel()
'part of the jobs'
"""

from fairopt.experiment.plot.allocations import compare_shares as compare_shares
from fairopt.experiment.plot.allocations import misreport as misreport
from fairopt.experiment.plot.allocations import shares as shares
from fairopt.experiment.plot.figures import COLOURS as COLOURS
from fairopt.experiment.plot.figures import HATCHES as HATCHES
from fairopt.experiment.plot.figures import LINES as LINES
from fairopt.experiment.plot.figures import LONGEST_NAME as LONGEST_NAME
from fairopt.experiment.plot.frontiers import frontier as frontier
from fairopt.experiment.plot.graphs import graph as graph
from fairopt.experiment.plot.runs import against_load as against_load
from fairopt.experiment.plot.runs import cdf as cdf
from fairopt.experiment.plot.runs import gantt as gantt
from fairopt.experiment.plot.runs import over_time as over_time
from fairopt.experiment.plot.runs import tenant_share as tenant_share
from fairopt.experiment.plot.runs import tradeoff as tradeoff
from fairopt.later import offered

__all__ = offered(__name__)

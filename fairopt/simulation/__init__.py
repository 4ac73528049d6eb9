"""Scheduling in rounds: policies with memory, the loop that runs them over a trace, and its record.

>>> from fairopt.datasets import philly_cluster, philly_trace
>>> from fairopt.models import FFT
>>> trace, cluster = philly_trace(), philly_cluster()
>>> History.of(trace, cluster, run(FFT(), trace, cluster, length=300, rounds=3))
<History: fft on <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>: 3 rounds, 9 of 1000 jobs completed by 900>
"""

from fairopt.later import offered
from fairopt.simulation.history import History as History
from fairopt.simulation.mechanics import Mechanics as Mechanics
from fairopt.simulation.mechanics import Setting as Setting
from fairopt.simulation.placement import Consolidated as Consolidated
from fairopt.simulation.placement import Placement as Placement
from fairopt.simulation.placement import Request as Request
from fairopt.simulation.placement import by_throughput as by_throughput
from fairopt.simulation.placement import choose as choose
from fairopt.simulation.placement import placed as placed
from fairopt.simulation.playing import run as run
from fairopt.simulation.record import Change as Change
from fairopt.simulation.record import JobRun as JobRun
from fairopt.simulation.record import JobState as JobState
from fairopt.simulation.record import Round as Round
from fairopt.simulation.record import Snapshot as Snapshot
from fairopt.simulation.record import begin as begin
from fairopt.simulation.record import snapshot_from as snapshot_from
from fairopt.simulation.record import snapshot_text as snapshot_text
from fairopt.simulation.rounds import advance as advance
from fairopt.simulation.rounds import next_queue as next_queue
from fairopt.simulation.rounds import present as present

__all__ = offered(__name__)

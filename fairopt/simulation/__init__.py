"""Scheduling in rounds: policies with memory, the loop that runs them over a trace, and its record.

>>> from fairopt.datasets import philly_cluster, philly_trace
>>> from fairopt.models import FFT
>>> trace, cluster = philly_trace(), philly_cluster()
>>> History.of(trace, cluster, run(FFT(), trace, cluster, length=300, rounds=3))
<History: fft on <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>: 3 rounds, 9 of 1000 jobs completed by 900>
"""

from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics, Setting
from fairopt.simulation.placement import Consolidated, Placement, Request, by_throughput, choose, placed
from fairopt.simulation.playing import run
from fairopt.simulation.record import Change, JobRun, JobState, Round, Snapshot, begin, snapshot_from, snapshot_text
from fairopt.simulation.rounds import advance, next_queue, present

__all__ = [
    "Change",
    "Consolidated",
    "History",
    "JobRun",
    "JobState",
    "Mechanics",
    "Placement",
    "Request",
    "Round",
    "Setting",
    "Snapshot",
    "advance",
    "begin",
    "by_throughput",
    "choose",
    "next_queue",
    "placed",
    "present",
    "run",
    "snapshot_from",
    "snapshot_text",
]

"""Scheduling in rounds: policies with memory, the loop that runs them over a trace, and its record."""

from fairopt.simulation.greedy import by_throughput, choose, placed
from fairopt.simulation.history import History
from fairopt.simulation.mechanics import Mechanics
from fairopt.simulation.placement import Consolidated, Placement, Request
from fairopt.simulation.record import Change, JobRun, JobState, Round, Snapshot
from fairopt.simulation.run import Stalled, advance, begin, next_queue, present, run
from fairopt.simulation.setting import Setting
from fairopt.simulation.snapshots import snapshot_from, snapshot_text

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
    "Stalled",
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

"""Scheduling in rounds: policies with memory, the loop that plays them over a trace, and its record."""

from fairopt.rounds.greedy import by_throughput, choose, placed
from fairopt.rounds.history import History
from fairopt.rounds.mechanics import Mechanics
from fairopt.rounds.placement import Consolidated, Placement, Want
from fairopt.rounds.policy import BrokenSchedule, RoundPolicy, RoundTrait, Schedule
from fairopt.rounds.record import Change, Ran, Round, Snapshot, Standing
from fairopt.rounds.run import Stalled, advance, begin, next_queue, present, run
from fairopt.rounds.snapshots import snapshot_from, snapshot_text

__all__ = [
    "BrokenSchedule",
    "Change",
    "Consolidated",
    "History",
    "Mechanics",
    "Placement",
    "Ran",
    "Round",
    "RoundPolicy",
    "RoundTrait",
    "Schedule",
    "Snapshot",
    "Stalled",
    "Standing",
    "Want",
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

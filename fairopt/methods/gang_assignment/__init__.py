"""Which gangs run on which type of GPU in one round, at least cost, proven: `solve_gangs`."""

from fairopt.methods.gang_assignment.problem import IDLE, GangAssignment, GangResult, Multipliers
from fairopt.methods.gang_assignment.solve import solve_gangs
from fairopt.methods.gang_assignment.usable_gpus import usable_gpus

__all__ = ["IDLE", "GangAssignment", "GangResult", "Multipliers", "solve_gangs", "usable_gpus"]

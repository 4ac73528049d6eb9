"""Which gangs run on which type of GPU in one round, at least cost, proven: `solve_gangs`."""

from fairopt.methods.gang_assignment.groups import IDLE
from fairopt.methods.gang_assignment.problem import GangAssignment, usable_gpus
from fairopt.methods.gang_assignment.proof import prove_gangs
from fairopt.methods.gang_assignment.solve import solve_gangs

__all__ = [
    "IDLE",
    "GangAssignment",
    "prove_gangs",
    "solve_gangs",
    "usable_gpus",
]

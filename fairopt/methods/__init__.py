"""Algorithms of our own: where a program's structure lets it be solved faster than by a solver, and proven as well."""

from fairopt.methods.gang_assignment.problem import IDLE, Effort, GangAssignment, GangSolution, Multipliers
from fairopt.methods.gang_assignment.solve import exact_bound, solve_gangs
from fairopt.methods.gang_assignment.usable_gpus import usable_gpus

__all__ = [
    "IDLE",
    "Effort",
    "GangAssignment",
    "GangSolution",
    "Multipliers",
    "exact_bound",
    "solve_gangs",
    "usable_gpus",
]

"""Algorithms of our own: where a program's structure lets it be solved faster than by a solver, and proven as well."""

from fairopt.algorithms.gang_assignment import IDLE, Effort, GangAssignment, GangSolution, Multipliers
from fairopt.algorithms.gang_solver import exact_bound, solve_gangs
from fairopt.algorithms.usable_gpus import usable_gpus

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

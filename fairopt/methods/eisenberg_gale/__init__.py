"""Maximal Nash welfare: an interior-point method, the exact equilibrium near its answer, and a bound by prices."""

from fairopt.methods.eisenberg_gale.bounds import Equilibrium, nash_bound
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium
from fairopt.methods.eisenberg_gale.solve import maximal_nash_welfare

__all__ = ["Equilibrium", "exact_equilibrium", "maximal_nash_welfare", "nash_bound"]

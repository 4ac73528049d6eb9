"""Back ends: one file per solver library, all behind `Backend.solve`."""

from fairopt.backends.highs import Highs, HighsSession, write
from fairopt.backends.solver import Backend, Capability, Options, Solver

__all__ = ["Backend", "Capability", "Highs", "HighsSession", "Options", "Solver", "write"]

"""Back ends: one file per solver library, all behind `Backend.solve`."""

from fairopt.backends.base import Backend, Capability, Options, Solver
from fairopt.backends.highs import Highs, HighsSession, write

__all__ = ["Backend", "Capability", "Highs", "HighsSession", "Options", "Solver", "write"]

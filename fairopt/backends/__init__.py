"""Back ends: one file per solver library, all behind `Backend.solve`."""

from fairopt.backends.highs import Highs, HighsSession, write
from fairopt.backends.solver import Backend, Capability, Method, Options, ProgramMethod, Session, Solver

__all__ = [
    "Backend",
    "Capability",
    "Highs",
    "HighsSession",
    "Method",
    "Options",
    "ProgramMethod",
    "Session",
    "Solver",
    "write",
]

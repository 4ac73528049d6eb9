"""Backends: one file per solver library, all behind `Backend.solve`.

>>> from fairopt.program import Formulation
>>> p = Formulation("one machine")
>>> share = p.variable("share", (2,), lower=0)
>>> p.maximize(3 * share[0] + 2 * share[1])
>>> p.constrain("capacity", share.sum() <= 1)
>>> Highs().solve(p.program()).objective
3.0
"""

from fairopt.backends.highs import Highs, write
from fairopt.backends.solver import Backend, Capability, Method, Options, Session

__all__ = [
    "Backend",
    "Capability",
    "Highs",
    "Method",
    "Options",
    "Session",
    "write",
]

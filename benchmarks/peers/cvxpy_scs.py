"""CVXPY with SCS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fairopt.benchmarks.peers.cvxpy_programs import CONIC, CvxpyPeer, Written
from fairopt.benchmarks.peers.plain import SharedGpus


@dataclass(frozen=True)
class CvxpyScs(CvxpyPeer):
    """SCS, a first-order method for cones; it runs on one thread.

    ``tolerance`` is absolute and relative. CVXPY's own, 1e-5, overbooks capacities by more than a task accepts.
    """

    name = "cvxpy-scs"
    tasks = tuple(CONIC)
    libraries: ClassVar[Sequence[str]] = ("cvxpy", "scs")
    modules: ClassVar[Sequence[str]] = ("cvxpy", "scs")
    solver = "SCS"
    programs: ClassVar[Mapping[str, Callable[[SharedGpus], Written]]] = CONIC
    tolerance: float = 1e-8
    iterations: int = 1_000_000

    def options(self, time_limit: float, threads: int) -> Mapping[str, Any]:
        """Return tolerances and limits."""
        return {
            "eps_abs": self.tolerance,
            "eps_rel": self.tolerance,
            "max_iters": self.iterations,
            "time_limit_secs": float(time_limit),
        }

    def timed_out(self, status: str, raw: Any) -> bool:
        """Return whether SCS says so; CVXPY calls where it stood an inaccurate optimum."""
        return "time_limit" in raw["info"]["status"]

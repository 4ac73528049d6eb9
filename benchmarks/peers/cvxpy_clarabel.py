"""CVXPY with Clarabel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fairopt.benchmarks.peers.cvxpy_programs import CONIC, CvxpyPeer, Written
from fairopt.benchmarks.peers.plain import SharedGpus


@dataclass(frozen=True)
class CvxpyClarabel(CvxpyPeer):
    """Clarabel, an interior-point method for cones, at its own tolerances, 1e-8."""

    name = "cvxpy-clarabel"
    tasks = tuple(CONIC)
    libraries: ClassVar[Sequence[str]] = ("cvxpy", "clarabel")
    modules: ClassVar[Sequence[str]] = ("cvxpy", "clarabel")
    solver = "CLARABEL"
    programs: ClassVar[Mapping[str, Callable[[SharedGpus], Written]]] = CONIC

    def options(self, time_limit: float, threads: int) -> Mapping[str, Any]:
        """Return the limits."""
        return {"time_limit": float(time_limit), "max_threads": threads}

    def timed_out(self, status: str, raw: Any) -> bool:
        """Return whether Clarabel says so; CVXPY has one word for limits of time and of iterations."""
        return str(raw.status) == "MaxTime"

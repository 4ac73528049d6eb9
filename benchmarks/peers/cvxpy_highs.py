"""CVXPY with HiGHS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fairopt.benchmarks.peers.cvxpy_programs import LINEAR, CvxpyPeer
from fairopt.benchmarks.peers.highs_direct import forget_threads


@dataclass(frozen=True)
class CvxpyHighs(CvxpyPeer):
    """HiGHS with its own settings, through CVXPY's interface for it."""

    name = "cvxpy-highs"
    tasks = tuple(LINEAR)
    libraries: ClassVar[Sequence[str]] = ("cvxpy", "highspy")
    modules: ClassVar[Sequence[str]] = ("cvxpy", "highspy")
    solver = "HIGHS"

    def options(self, time_limit: float, threads: int) -> Mapping[str, Any]:
        """Return the limits."""
        forget_threads()
        return {"time_limit": float(time_limit), "threads": threads}

    def timed_out(self, status: str, raw: Any) -> bool:
        """Return whether it was a limit: HiGHS has no other that is set."""
        return status == "user_limit"
